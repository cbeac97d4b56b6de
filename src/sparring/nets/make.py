"""From a configuration to a network."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.config import NetConfig
from sparring.errors import ConfigError, nearest
from sparring.games.rules import Rules
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet

KINDS: dict[str, type[Perceptron | ResidualNet]] = {"mlp": Perceptron, "residual": ResidualNet}


def make_net(
    rules: Rules,
    config: NetConfig,
    *,
    heads: Mapping[str, int] | None = None,
    memory: int = 0,
    threads: int = 1,
) -> Net:
    """Return a fresh network for a game.

    heads: widths by name; left out, a policy and a value.
    memory: bytes behind the observation in every row.
    threads: those of the native layers.
    """
    if config.kind not in KINDS:
        raise ConfigError(f"net.kind {config.kind!r} is unknown{nearest(config.kind, KINDS)}")
    if config.norm and config.kind != "mlp":
        raise ConfigError(
            f"net.norm True: only an mlp has layer norm, and net.kind is {config.kind!r}; "
            "leave net.norm out or set net.kind to mlp"
        )
    return KINDS[config.kind](rules, config, heads=heads, memory=memory, threads=threads)
