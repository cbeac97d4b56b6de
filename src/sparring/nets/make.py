"""From a configuration to a network."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.capabilities.refusals import check_network
from sparring.config import NetConfig
from sparring.errors import ConfigError, suggestion
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet
from sparring.nets.custom import CustomNet
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.inputs import fit_memory_bytes
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.recurrent import RecurrentNet
from sparring.nets.residual import ResidualNet

KINDS: dict[str, type[Perceptron | ResidualNet | AttentionNet]] = {
    "mlp": Perceptron,
    "residual": ResidualNet,
    "attention": AttentionNet,
}


def make_net(
    rules: Rules,
    config: NetConfig,
    *,
    heads: Mapping[str, int] | None = None,
    memory: int = 0,
    threads: int = 1,
    roles: Mapping[str, NetConfig] | None = None,
) -> Net:
    """Return a fresh network for a game.

    roles: one for every role instead, each by its own configuration.
    heads: widths by name; left out, a policy and a value.
    memory: bytes behind the observation in every row; 0: as many as the network remembers.
    threads: those of the native layers.
    """
    if roles:
        for role, own in roles.items():
            check_network(own, role)
        nets = {
            role: make_net(rules, own, heads=heads, memory=memory, threads=threads)
            for role, own in roles.items()
        }
        return HierarchyNet(rules, nets)
    custom_kind = is_factory(config.kind)
    if not custom_kind and config.kind not in KINDS:
        raise ConfigError(f"net.kind {config.kind!r} is unknown{suggestion(config.kind, KINDS)}")
    check_network(config)
    memory = fit_memory_bytes(rules, config, memory)
    if custom_kind:
        return CustomNet(rules, config, heads=heads, memory=memory)
    if config.recurrent:
        return RecurrentNet(rules, config, heads=heads, memory=memory, threads=threads)
    return KINDS[config.kind](rules, config, heads=heads, memory=memory, threads=threads)
