"""Builds a network from its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.capabilities.refusals import check_network
from sparring.config import NetConfig
from sparring.errors import ConfigError, suggestion
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet
from sparring.nets.critic_rows import rules_read
from sparring.nets.custom import CustomNet
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.inputs import fit_memory_bytes
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.pixels import PIXEL_NETS, PixelNet
from sparring.nets.recurrent import RecurrentNet
from sparring.nets.residual import ResidualNet

KINDS: dict[str, type[Perceptron | ResidualNet | AttentionNet | PixelNet]] = {
    "mlp": Perceptron,
    "residual": ResidualNet,
    "attention": AttentionNet,
    **PIXEL_NETS,
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
    """Return a freshly initialized network for a game.

    roles: configurations by role, for a network per role instead.
    heads: widths by name; left out, a policy and a value.
    memory: bytes of memory in every row; 0: as many as the network needs.
    threads: of the native layers.
    """
    if roles:
        for role, role_config in roles.items():
            check_network(role_config, role)
        nets = {
            role: make_net(rules, role_config, heads=heads, memory=memory, threads=threads)
            for role, role_config in roles.items()
        }
        return HierarchyNet(rules, nets)
    rules, custom_kind = rules_read(rules, config), is_factory(config.kind)
    if not custom_kind and config.kind not in KINDS:
        raise ConfigError(f"net.kind {config.kind!r} is unknown{suggestion(config.kind, KINDS)}")
    check_network(config)
    memory = fit_memory_bytes(rules, config, memory)
    if custom_kind:
        return CustomNet(rules, config, heads=heads, memory=memory)
    if config.recurrent:
        return RecurrentNet(rules, config, heads=heads, memory=memory, threads=threads)
    return KINDS[config.kind](rules, config, heads=heads, memory=memory, threads=threads)
