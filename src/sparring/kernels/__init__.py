"""Our headers as GPU code: compiled at first use, kept on disk, launched on torch's stream.

Needs the extra `cuda` (NVRTC and its bindings) and a CUDA build of torch, no toolkit.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from sparring import _native
from sparring.errors import ConfigError, SparringError
from sparring.kernels.views import Interface, View

HEADERS = Path(_native.__file__).parent / "csrc"
"""The sources that this build of the native core was made from."""
EXTRA = "the GPU needs the extra cuda: pip install 'sparring[cuda]'"


class Kernel:
    """One function on the GPU."""

    def __init__(self, handle: Any, name: str, interface: Interface) -> None:
        self._handle, self.name = handle, name
        self._converters = interface.converters(name)
        self._shared_bytes = 0

    def reserve(self, shared_bytes: int) -> None:
        """Give every block this much shared memory from now on."""
        from cuda.bindings import driver

        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(self._handle, limit, shared_bytes), self.name)
        self._shared_bytes = shared_bytes

    def resident(self, block: int) -> int:
        """Return how many blocks of so many threads a multiprocessor has room for at once."""
        from cuda.bindings import driver

        asked = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            self._handle, block, self._shared_bytes
        )
        return int(checked(asked, self.name))

    def __call__(self, grid: int | tuple[int, ...], block: int, *args: Any) -> None:
        """Launch on the current stream. Tensors go as addresses, views by value, None as null."""
        from cuda.bindings import driver

        values = [convert(value) for convert, value in zip(self._converters, args, strict=True)]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        if min(x, y, z) < 1:
            return
        checked(
            driver.cuLaunchKernel(
                self._handle,
                *(x, y, z, block, 1, 1, self._shared_bytes),
                *(stream, ctypes.addressof(pointers), 0),
            ),
            self.name,
        )


class Module:
    """Compiled kernels, by name."""

    def __init__(self, code: bytes, device: torch.device, interface: Interface) -> None:
        from cuda.bindings import driver

        self._interface = interface

        torch.zeros(1, device=device)  # makes the device's context
        with torch.cuda.device(device):
            self._module = checked(driver.cuModuleLoadData(code), "load kernels")
        self._kernels: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        from cuda.bindings import driver

        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._kernels:
            handle = checked(driver.cuModuleGetFunction(self._module, name.encode()), name)
            self._kernels[name] = Kernel(handle, name, self._interface)
        return self._kernels[name]

    def view(self, struct: str, /, **fields: Any) -> View:
        """Fill a view that the kernels take, by name."""
        return self._interface.view(struct, **fields)

    def names(self, struct: str) -> list[str]:
        """The fields of a structure that the kernels know, in order."""
        return self._interface.names(struct)


def checked(answer: tuple[Any, ...], what: str) -> Any:
    """Return what a driver call gave, or raise what it says went wrong."""
    code, *values = answer
    if int(code):
        raise SparringError(f"CUDA: {what}: {getattr(code, 'name', code)}")
    return values[0] if values else None


def build(
    source: str, defines: Mapping[str, object], *, exact: bool, device: torch.device
) -> Module:
    """Compile a source for a device, or take what an earlier call left on disk.

    exact: no fused multiply-add, so that floats come out as on a CPU.
    """
    if device.index:  # launches go to the current device, which is the first
        raise ConfigError(
            f"device {str(device)!r}: kernels run on the first GPU that is seen; make it that one "
            f"with CUDA_VISIBLE_DEVICES={device.index}"
        )
    major, minor = torch.cuda.get_device_capability(device)
    code = compiled(source, defines, exact=exact, arch=f"sm_{major}{minor}")
    return Module(code, device, Interface(source, defines, HEADERS))


def compiled(
    source: str, defines: Mapping[str, object], *, exact: bool, arch: str, draft: bool = False
) -> bytes:
    """Return machine code. The same sources and options are compiled once per machine.

    draft: compile quickly, to code that runs slowly.
    """
    source += Interface(source, defines, HEADERS).checks()
    options = [
        "--std=c++20",
        f"-arch={arch}",
        f"-I{HEADERS}",
        "-default-device",
        f"--fmad={'false' if exact else 'true'}",
        *(["--Ofast-compile=max"] if draft else []),
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]
    file = cache_folder() / f"{fingerprint(source, options)}.cubin"
    kept = read_kept(file)
    if kept is None:
        kept = run_compiler(source, options)
        keep(file, kept)
    return kept


def fingerprint(source: str, options: Sequence[str]) -> str:
    """Return what the machine code depends on, as one number."""
    digest = hashlib.sha256(headers_digest())
    for text in (source, *(word for word in options if not word.startswith("-I")), version()):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:32]


@cache
def headers_digest() -> bytes:
    """Return a fingerprint of all headers."""
    digest = hashlib.sha256()
    files = sorted(f for f in HEADERS.rglob("*") if f.suffix in (".hpp", ".cuh"))
    if not files:
        raise SparringError(f"no headers in {HEADERS}; install sparring again")
    for file in files:
        digest.update(str(file.relative_to(HEADERS)).encode() + b"\0" + file.read_bytes())
    return digest.digest()


@cache
def version() -> str:
    """Return NVRTC's version; asks for the extra where it is missing."""
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as missing:
        raise ConfigError(f"{EXTRA} ({missing})") from None
    return f"{major}.{minor}"


def run_compiler(source: str, options: Sequence[str]) -> bytes:
    """Run NVRTC; its complaints become the error."""
    from cuda.bindings import nvrtc

    version()
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []), "NVRTC")
    words = [option.encode() for option in options]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
    if int(code):
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program), "NVRTC")
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SparringError(f"the kernels do not compile:\n{log.decode(errors='replace')}")
    made: bytes = b" " * checked(nvrtc.nvrtcGetCUBINSize(program), "NVRTC")
    checked(nvrtc.nvrtcGetCUBIN(program, made), "NVRTC")
    nvrtc.nvrtcDestroyProgram(program)
    return made


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sparring" / "kernels"


def read_kept(file: Path) -> bytes | None:
    """Return kept machine code; None if there is none or it was damaged."""
    try:
        kept = file.read_bytes()
    except OSError:
        return None
    digest, code = kept[:32], kept[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(file: Path, code: bytes) -> None:
    """Write machine code; where that is impossible, the next start compiles again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(hashlib.sha256(code).digest() + code)
        Path(temporary.name).replace(file)
    except OSError:
        return
