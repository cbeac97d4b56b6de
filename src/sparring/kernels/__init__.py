"""CUDA kernels from csrc headers: compiled at first use, cached, launched on the stream of torch.

Needs the extra `cuda` (NVRTC and its bindings) and a CUDA build of torch, no toolkit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, Unpack

import torch

from sparring.errors import ConfigError
from sparring.kernels import compiling
from sparring.kernels.compiling import HEADERS, Program, checked, version
from sparring.kernels.views import Interface, KernelView

__all__ = [
    "HEADERS",
    "Kernel",
    "KernelModule",
    "LinkedRules",
    "build",
    "build_ahead",
    "compiled",
    "version",
]


class Kernel:
    """A kernel function."""

    def __init__(self, handle: Any, name: str, interface: Interface) -> None:
        self._handle, self.name = handle, name
        self._converters = interface.converters(name)
        self._shared_bytes = 0

    def reserve(self, shared_bytes: int) -> None:
        from cuda.bindings import driver

        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(self._handle, limit, shared_bytes), self.name)
        self._shared_bytes = shared_bytes

    def __call__(self, grid: int | tuple[int, ...], block: int, *args: Any) -> None:
        """Launch on the current stream. Tensors are passed as addresses, views by value."""
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


class KernelModule:
    """Compiled kernels, by name."""

    def __init__(self, codes: Sequence[bytes], device: torch.device, interface: Interface) -> None:
        from cuda.bindings import driver

        self._interface = interface

        torch.zeros(1, device=device)  # creates the device's context
        with torch.cuda.device(device):
            self._units = [checked(driver.cuModuleLoadData(code), "load kernels") for code in codes]
        self._kernels: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        from cuda.bindings import driver

        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._kernels:
            results = [driver.cuModuleGetFunction(unit, name.encode()) for unit in self._units]
            result = next((one for one in results if not int(one[0])), results[0])
            self._kernels[name] = Kernel(checked(result, name), name, self._interface)
        return self._kernels[name]

    def view(self, struct: str, /, **fields: Any) -> KernelView:
        """Make a view, an argument struct of kernels, from its fields."""
        return self._interface.view(struct, **fields)

    def names(self, struct: str) -> list[str]:
        return self._interface.names(struct)


LinkedRules = Callable[[str], tuple[bytes, ...]]
"""Makes LTO-IR of rules that kernels call, for an architecture such as sm_90."""


class CompileOptions(TypedDict):
    """Options of compilation."""

    exact: bool
    """No fused multiply-add, so that results equal those of a CPU."""
    device: torch.device
    units: NotRequired[int]
    """Number of parts that are compiled in parallel; SPARRING_UNIT selects the kernels of each."""
    what: NotRequired[str]
    """Name of the game or network, for progress output."""
    linked: NotRequired[LinkedRules]


def build(
    source: str, defines: Mapping[str, object], **options: Unpack[CompileOptions]
) -> KernelModule:
    """Compile a source for a device, or load it from the cache on disk."""
    programs = programs_of(source, defines, **options)
    for program in programs:
        compiling.start(program)
    codes = [compiling.finish(program) for program in programs]
    return KernelModule(codes, options["device"], Interface(source, defines, HEADERS))


def build_ahead(
    source: str, defines: Mapping[str, object], **options: Unpack[CompileOptions]
) -> None:
    """Start compiling in the background, for a later `build` with the same arguments."""
    for program in programs_of(source, defines, **options):
        compiling.start(program)


def programs_of(
    source: str, defines: Mapping[str, object], **options: Unpack[CompileOptions]
) -> list[Program]:
    device, units, what = options["device"], options.get("units", 1), options.get("what", "")
    if device.index:  # launches go to the current device, which is the first
        raise ConfigError(
            f"device {str(device)!r}: kernels run on the first visible GPU; make it that one "
            f"with CUDA_VISIBLE_DEVICES={device.index}"
        )
    major, minor = torch.cuda.get_device_capability(device)
    arch = f"sm_{major}{minor}"
    linked = options["linked"](arch) if "linked" in options else ()
    marks = [{"SPARRING_UNIT": unit} for unit in range(units)] if units > 1 else [{}]
    return [
        compiling.program(
            source,
            {**defines, **mark},
            exact=options["exact"],
            arch=arch,
            what=what,
            linked=linked,
        )
        for mark in marks
    ]


def compiled(
    source: str, defines: Mapping[str, object], *, exact: bool, arch: str, draft: bool = False
) -> bytes:
    """Return machine code, from the cache if the same source and options were compiled before.

    draft: compile quickly, to code that runs slowly.
    """
    return compiling.finish(compiling.program(source, defines, exact=exact, arch=arch, draft=draft))
