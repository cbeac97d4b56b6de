"""Our headers as GPU code: compiled at first use, kept on disk, launched on torch's stream.

Needs the extra `cuda` (NVRTC and its bindings) and a CUDA build of torch, no toolkit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, Unpack

import torch

from sparring.errors import ConfigError
from sparring.kernels import compiling
from sparring.kernels.compiling import HEADERS, Program, checked, version
from sparring.kernels.views import Interface, KernelView

__all__ = ["HEADERS", "Kernel", "KernelModule", "ahead", "build", "compiled", "version"]


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


class KernelModule:
    """Compiled kernels, by name."""

    def __init__(self, codes: Sequence[bytes], device: torch.device, interface: Interface) -> None:
        from cuda.bindings import driver

        self._interface = interface

        torch.zeros(1, device=device)  # makes the device's context
        with torch.cuda.device(device):
            self._units = [checked(driver.cuModuleLoadData(code), "load kernels") for code in codes]
        self._kernels: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        from cuda.bindings import driver

        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._kernels:
            found = [driver.cuModuleGetFunction(unit, name.encode()) for unit in self._units]
            answer = next((one for one in found if not int(one[0])), found[0])
            self._kernels[name] = Kernel(checked(answer, name), name, self._interface)
        return self._kernels[name]

    def view(self, struct: str, /, **fields: Any) -> KernelView:
        """Fill a view that the kernels take, by name."""
        return self._interface.view(struct, **fields)

    def names(self, struct: str) -> list[str]:
        """The fields of a structure that the kernels know, in order."""
        return self._interface.names(struct)


class How(TypedDict):
    """How a source is compiled."""

    exact: bool
    """No fused multiply-add, so that floats come out as on a CPU."""
    device: torch.device
    units: NotRequired[int]
    """Parts that are compiled side by side; the source keeps kernels for the one that SPARRING_UNIT
    numbers."""
    what: NotRequired[str]
    """Whose kernels they are, for those who wait."""


def build(source: str, defines: Mapping[str, object], **how: Unpack[How]) -> KernelModule:
    """Compile a source for a device, or take what an earlier call left on disk."""
    programs = programs_of(source, defines, **how)
    for program in programs:
        compiling.start(program)
    codes = [compiling.finish(program) for program in programs]
    return KernelModule(codes, how["device"], Interface(source, defines, HEADERS))


def ahead(source: str, defines: Mapping[str, object], **how: Unpack[How]) -> None:
    """Begin to compile what `build` will ask for with the same arguments."""
    for program in programs_of(source, defines, **how):
        compiling.start(program)


def programs_of(source: str, defines: Mapping[str, object], **how: Unpack[How]) -> list[Program]:
    """What has to be compiled for a source on a device."""
    device, units, what = how["device"], how.get("units", 1), how.get("what", "")
    if device.index:  # launches go to the current device, which is the first
        raise ConfigError(
            f"device {str(device)!r}: kernels run on the first GPU that is seen; make it that one "
            f"with CUDA_VISIBLE_DEVICES={device.index}"
        )
    major, minor = torch.cuda.get_device_capability(device)
    marks = [{"SPARRING_UNIT": unit} for unit in range(units)] if units > 1 else [{}]
    return [
        compiling.program(
            source, {**defines, **mark}, exact=how["exact"], arch=f"sm_{major}{minor}", what=what
        )
        for mark in marks
    ]


def compiled(
    source: str, defines: Mapping[str, object], *, exact: bool, arch: str, draft: bool = False
) -> bytes:
    """Return machine code. The same sources and options are compiled once per machine.

    draft: compile quickly, to code that runs slowly.
    """
    return compiling.finish(compiling.program(source, defines, exact=exact, arch=arch, draft=draft))
