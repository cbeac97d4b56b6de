"""Which passes a network has on a GPU: its own where they are written, autograd's otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets import fused_mlp, fused_residual
from sparring.nets.captured import CapturedNet
from sparring.nets.flat import FlatNet


def make_flat(
    rules: Rules,
    config: NetConfig,
    members: int,
    *,
    bf16: bool,
    device: torch.device,
    memory: int = 0,
    heads: Mapping[str, int] | None = None,
) -> FlatNet:
    """Return room for the networks of all members. Their weights are loaded afterwards.

    heads: those of a network of which more is asked than policy and value.
    """
    if config.normalise:
        raise ConfigError(
            "net.normalise True: graphs on a GPU do not keep what was seen; leave it out, or play "
            "on the CPU with --device cpu"
        )
    room: dict[str, Any] = {"bf16": bf16, "device": device, "memory": memory}
    if heads is not None:
        return CapturedNet(rules, config, members, heads=heads, **room)
    kind: type[FlatNet] = CapturedNet
    if config.kind == "mlp" and not fused_mlp.unsupported(config):
        kind = fused_mlp.FusedPerceptron
    if config.kind == "residual" and not fused_residual.unsupported(config, memory):
        kind = fused_residual.FusedResidual
    return kind(rules, config, members, **room)
