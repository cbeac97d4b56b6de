"""From a configuration to a network."""

from __future__ import annotations

from sparring.config import NetConfig
from sparring.errors import ConfigError, nearest
from sparring.games.rules import Rules
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet

KINDS = ("mlp", "residual")


def make_net(rules: Rules, config: NetConfig, *, threads: int = 1) -> Net:
    """Return a fresh network for a game. `threads` are those of the native layers."""
    if config.kind == "mlp":
        return Perceptron(rules, config, threads=threads)
    if config.kind == "residual":
        return ResidualNet(rules, config, threads=threads)
    raise ConfigError(f"net.kind {config.kind!r} is unknown{nearest(config.kind, KINDS)}")
