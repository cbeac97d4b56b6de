"""Which passes a network has on a GPU: its own where they are written, autograd's otherwise."""

from __future__ import annotations

import warnings

import torch

from sparring.config import NetConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets import fused_mlp, fused_residual
from sparring.nets.captured import CapturedNet, why_eager
from sparring.nets.flat import FlatNet
from sparring.nets.fused_own import OwnPerceptron
from sparring.nets.make import make_net
from sparring.nets.recognised import perceptron_config


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
    if is_factory(config.kind):
        return make_own(rules, config, members, bf16=bf16, device=device, memory=memory)
    kind: type[FlatNet] = CapturedNet
    if config.kind == "mlp" and not fused_mlp.unsupported(config):
        kind = fused_mlp.FusedPerceptron
    if config.kind == "residual" and not fused_residual.unsupported(config, memory):
        kind = fused_residual.FusedResidual
    return kind(rules, config, members, bf16=bf16, device=device, memory=memory)


def make_own(
    rules: Rules,
    config: NetConfig,
    members: int,
    *,
    bf16: bool,
    device: torch.device,
    memory: int = 0,
) -> FlatNet:
    """The same for somebody's own networks: our kernels if it is a perceptron, else autograd."""
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and not used
        net = make_net(rules, config, memory=memory)
    ours = perceptron_config(net, config)
    if isinstance(ours, NetConfig) and not fused_mlp.unsupported(ours):
        made = OwnPerceptron(net, ours, members, bf16=bf16, device=device)
        if not (why := made.differs()):
            return made
        warnings.warn(
            SparringWarning(f"net.kind {config.kind} is run by torch: {why}"), stacklevel=4
        )
    captured = CapturedNet(rules, config, members, bf16=bf16, device=device, memory=memory)
    captured.eager = why_eager(captured) if device.type == "cuda" else ""
    return captured
