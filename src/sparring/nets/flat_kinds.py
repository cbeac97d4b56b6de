"""Which passes a network has on a GPU: its own where they are written, autograd's otherwise."""

from __future__ import annotations

import torch

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets import fused_mlp, fused_residual
from sparring.nets.captured import CapturedNet, why_eager
from sparring.nets.flat import FlatNet


def make_flat(
    rules: Rules,
    config: NetConfig,
    members: int,
    *,
    bf16: bool,
    device: torch.device,
    memory: int = 0,
) -> FlatNet:
    """Return room for the networks of all members. Their weights are loaded afterwards."""
    if config.normalise:
        raise ConfigError(
            "net.normalise True: graphs on a GPU do not keep what was seen; leave it out, or play "
            "on the CPU with --device cpu"
        )
    kind: type[FlatNet] = CapturedNet
    if config.kind == "mlp" and not fused_mlp.unsupported(config):
        kind = fused_mlp.FusedPerceptron
    if config.kind == "residual" and not fused_residual.unsupported(config, memory):
        kind = fused_residual.FusedResidual
    made = kind(rules, config, members, bf16=bf16, device=device, memory=memory)
    if isinstance(made, CapturedNet) and is_factory(config.kind) and device.type == "cuda":
        made.eager = why_eager(made)
    return made
