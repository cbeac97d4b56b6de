"""Packages that come with extras: whether torch is installed, and what to type if one is not."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from sparring.errors import ConfigError

EXTRA_OF = {
    **dict.fromkeys(("torch", "tensorboard"), "train"),
    **{"gymnasium": "gymnasium", "pettingzoo": "pettingzoo", "matplotlib": "plot"},
    **{"onnx": "export", "onnxruntime": "export", "onnxscript": "export"},
}
"""The extra that brings a package."""


@cache
def has_torch() -> bool:
    """Whether torch is installed; it is not loaded."""
    try:
        return find_spec("torch") is not None
    except ImportError:
        return False


def set_threads(threads: int) -> None:
    """Give products of torch so many threads, where it is installed; those of numpy take all."""
    if has_torch():
        import torch

        torch.set_num_threads(threads)


def missing_package(error: ModuleNotFoundError, what: str) -> ConfigError:
    """Return the refusal of what needs a package that an extra brings; raise any other error."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        raise error
    return ConfigError(needs_package(what, package))


def needs_package(what: str, package: str) -> str:
    """Return the line for something that needs a package which is not installed."""
    return (
        f"{what} needs {package}, which is not installed: "
        f"pip install 'sparring[{EXTRA_OF.get(package, package)}]'"
    )
