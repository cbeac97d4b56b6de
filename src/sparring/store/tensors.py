"""Tensors from untrusted safetensors files, and checks that they fit a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sparring.config.ranges import shortened
from sparring.nets.net import Net
from sparring.store.schema import mapping_of, parse_json, string

METADATA = "__metadata__"

METADATA_SCHEMA = mapping_of(string)


def unpack_tensors(data: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file; raises ValueError if it is damaged."""
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
    """Return weights with float32 for float16, in which a file takes half the room."""
    return {n: one.float() if one.dtype == torch.float16 else one for n, one in weights.items()}


class SkipNormalInit(TorchFunctionMode):
    """Skips normal initialization, which takes seconds even for meta tensors."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func.__name__.endswith("normal_"):
            return args[0] if args else options["tensor"]
        return func(*args, **options)


def check_fits_net(build: Callable[[], Net], weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights fit a network; builds it without memory."""
    with torch.device("meta"), SkipNormalInit():
        net = build()
    check_same_tensors(net.state_dict(), weights)


def check_same_tensors(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights have the expected names, shapes and types."""
    for name, tensor in expected.items():
        if name not in weights:
            raise ValueError(f"its weights lack {name}")
        given = weights[name]
        if (given.shape, given.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(
                f"its {name} is {describe_tensor(given)}, "
                f"the network's is {describe_tensor(tensor)}"
            )
    for name in weights:
        if name not in expected:
            raise ValueError(f"its weights hold {shortened(name)}, which the network does not have")


def describe_tensor(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
