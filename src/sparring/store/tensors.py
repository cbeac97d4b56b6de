"""Tensors of safetensors files that nobody vouches for, and the networks that they are to fit."""

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
    """Return the tensors of a file; whatever is wrong with it is a ValueError."""
    try:
        found: dict[str, Tensor] = safetensors.load(data)
    except KeyError as unknown:
        raise ValueError(f"tensors of type {unknown} cannot be read") from None
    except (SafetensorError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ValueError(f"no safetensors file: {str(error).splitlines()[0]}") from error
    return found


def metadata_of(data: bytes) -> dict[str, str]:
    """Return the texts in the head of a file whose tensors were read."""
    head = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")])
    texts: dict[str, str] = head.get(METADATA) or {}
    METADATA_SCHEMA(texts, METADATA)
    return texts


class SkipNormalInit(TorchFunctionMode):
    """Leaves out drawing of normal numbers: of tensors without memory it takes torch seconds."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call anything else."""
        named = kwargs or {}
        if func.__name__.endswith("normal_"):
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def check_fits_net(build: Callable[[], Net], weights: Mapping[str, Tensor]) -> None:
    """Raise a ValueError unless weights are those of a network of ours; no memory is taken."""
    with torch.device("meta"), SkipNormalInit():
        net = build()
    check_same_tensors(net.state_dict(), weights)


def check_same_tensors(wanted: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise a ValueError unless tensors have the names, shapes and types of others."""
    for name, tensor in wanted.items():
        if name not in weights:
            raise ValueError(f"its weights lack {name}")
        given = weights[name]
        if (given.shape, given.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(
                f"its {name} is {describe_tensor(given)}, "
                f"the network's is {describe_tensor(tensor)}"
            )
    for name in weights:
        if name not in wanted:
            raise ValueError(f"its weights hold {shortened(name)}, which the network does not have")


def describe_tensor(tensor: Tensor) -> str:
    """Say type and shape of a tensor."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
