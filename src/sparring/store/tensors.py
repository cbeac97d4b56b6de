"""Tensors from untrusted safetensors files, and checks that they fit a network.

Where torch is not installed, arrays of numpy take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError

from sparring.config.ranges import shortened
from sparring.extras import has_torch
from sparring.store.schema import mapping_of, parse_json, string

if TYPE_CHECKING:
    from torch import Tensor

    from sparring.nets.net import Net

METADATA = "__metadata__"

METADATA_SCHEMA = mapping_of(string)


def unpack_tensors(data: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file; raises ValueError if it is damaged."""
    safetensors = import_module(f"safetensors.{'torch' if has_torch() else 'numpy'}")
    try:
        tensors: dict[str, Tensor] = safetensors.load(data)
    except KeyError as unknown:
        raise ValueError(f"tensors of type {unknown} cannot be read") from None
    except (SafetensorError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ValueError(f"no safetensors file: {str(error).splitlines()[0]}") from error
    return tensors


def metadata_of(data: bytes) -> dict[str, str]:
    """Return the metadata in the header of a valid file."""
    header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata: dict[str, str] = header.get(METADATA) or {}
    METADATA_SCHEMA(metadata, METADATA)
    return metadata


def widen_halves(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with float32 for float16, in which a file takes half the bytes."""
    return {name: to_float32(one) if is_half(one) else one for name, one in weights.items()}


def narrow_to_halves(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with float16 matrices; what is a vector, such as a bias, stays as it is.

    Raises ValueError for numbers that float16 cannot hold.
    """
    narrow = {n: one.half() if one.dim() > 1 else one for n, one in weights.items()}
    for name, one in narrow.items():
        if not one.isfinite().all():
            raise ValueError(f"{name} holds numbers that 16 bits cannot hold")
    return narrow


def is_half(tensor: Any) -> bool:
    return str(tensor.dtype) in ("float16", "torch.float16")


def to_float32(tensor: Any) -> Any:
    return tensor.astype(np.float32) if isinstance(tensor, np.ndarray) else tensor.float()


def check_fits_net(build: Callable[[], Net], weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights fit a network; builds it without memory."""
    if has_torch():
        import torch

        with torch.device("meta"), skip_normal_init():
            net = build()
    else:
        net = build()
    check_same_tensors(net.state_dict(), weights)


def skip_normal_init() -> Any:
    """Return a context without normal initialization, which takes seconds even for meta tensors."""
    from torch.overrides import TorchFunctionMode

    class SkipNormalInit(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            options = kwargs or {}
            if func.__name__.endswith("normal_"):
                return args[0] if args else options["tensor"]
            return func(*args, **options)

    return SkipNormalInit()


def check_same_tensors(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights have the expected names, shapes and types."""
    for name, tensor in expected.items():
        if name not in weights:
            raise ValueError(f"its weights lack {name}")
        given = weights[name]
        if (tuple(given.shape), given.dtype) != (tuple(tensor.shape), tensor.dtype):
            raise ValueError(
                f"its {name} is {describe_tensor(given)}, "
                f"the network's is {describe_tensor(tensor)}"
            )
    for name in weights:
        if name not in expected:
            raise ValueError(f"its weights hold {shortened(name)}, which the network does not have")


def describe_tensor(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
