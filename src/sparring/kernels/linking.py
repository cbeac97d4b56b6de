"""Links kernels with rules that another compiler made, by nvJitLink: both are LTO-IR.

The linker optimizes both together, so that the rules are inlined into the kernels. It reads LTO-IR
of its own version and of older ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata

from sparring.errors import ConfigError, SparringError

COMPILERS = ("nvidia-nvvm", "nvidia-cuda-nvrtc")
"""Wheels of the compilers: of numba-cuda, and of the kernels."""
INSTALL = "pip install -U 'sparring[cuda-python-games]'"


@cache
def linker_version() -> str:
    """Version of nvJitLink; ConfigError where it is missing."""
    try:
        from cuda.bindings import nvjitlink

        major, minor = nvjitlink.version()
    except Exception as missing:  # each missing part has its own error
        raise ConfigError(
            f"rules in Python need nvJitLink on a GPU: {INSTALL} ({missing})"
        ) from None
    return f"{major}.{minor}"


def wheel_version(name: str) -> str:
    """The first two numbers of a wheel's version; 0.0 if it is not installed as one."""
    try:
        return ".".join(metadata.version(name).split(".")[:2])
    except metadata.PackageNotFoundError:
        return "0.0"


def newer_compilers() -> str:
    """Advice where a compiler of LTO-IR is newer than the linker, which cannot read its code."""
    linker = linker_version()
    for name in COMPILERS:
        made = wheel_version(name)
        if [*map(int, made.split("."))] > [*map(int, linker.split("."))]:
            return f"; {name} {made} is newer: pip install -U 'nvidia-nvjitlink>={made}'"
    return ""


def link(kernels: bytes, rules: Sequence[bytes], arch: str) -> bytes:
    """Link LTO-IR to machine code, without fused multiply-add."""
    from cuda.bindings import nvjitlink

    linker_version()
    options = [f"-arch={arch}", "-lto", "-fma=0"]
    handle = nvjitlink.create(len(options), options)
    try:
        for i, part in enumerate((kernels, *rules)):
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, part, len(part), f"part {i}")
        nvjitlink.complete(handle)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(max(1, nvjitlink.get_error_log_size(handle)))
        nvjitlink.get_error_log(handle, log)
        text = log.decode(errors="replace").strip("\0 \n")
        text = " ".join((text or str(error)).split())
        raise SparringError(
            f"nvJitLink {linker_version()} cannot link the rules to the kernels: {text}"
            f"{newer_compilers()}"
        ) from None
    code = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, code)
    nvjitlink.destroy(handle)
    return bytes(code)
