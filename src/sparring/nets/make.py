"""From a configuration to a network."""

from __future__ import annotations

from collections.abc import Mapping

from sparring.config import NetConfig
from sparring.errors import ConfigError, nearest
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.attention import AttentionNet
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.memory import room_for
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.own import OwnNet
from sparring.nets.recurrent import RecurrentNet
from sparring.nets.residual import ResidualNet

KINDS: dict[str, type[Perceptron | ResidualNet | AttentionNet]] = {
    "mlp": Perceptron,
    "residual": ResidualNet,
    "attention": AttentionNet,
}
LAYERS = "has layers of its own for policy and value"
MLP_ALONE = {
    "norm": "has layer norm",
    "normalise": "normalises",
    "inputs": "leaves blocks out",
    "policy_hidden": LAYERS,
    "value_hidden": LAYERS,
}
"""What settings of a network ask for that no other kind can do."""


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
    check_memory(config, roles or {})
    if roles:
        for role, own in roles.items():
            demand_mlp(own, role)
        nets = {
            role: make_net(rules, own, heads=heads, memory=memory, threads=threads)
            for role, own in roles.items()
        }
        return HierarchyNet(rules, nets)
    memory = room_for(rules, config, memory)
    if is_factory(config.kind):
        return OwnNet(rules, config, heads=heads, memory=memory)
    if config.set:
        raise ConfigError(
            f"net.set {' '.join(config.set)}: only a network of your own takes arguments, and "
            f"net.kind is {config.kind!r}; leave net.set out, or set net.kind to module:Class"
        )
    if config.kind not in KINDS:
        raise ConfigError(f"net.kind {config.kind!r} is unknown{nearest(config.kind, KINDS)}")
    demand_mlp(config)
    if config.memory == "gru":
        return RecurrentNet(rules, config, heads=heads, memory=memory, threads=threads)
    return KINDS[config.kind](rules, config, heads=heads, memory=memory, threads=threads)


def demand_mlp(config: NetConfig, role: str = "") -> None:
    """Refuse what an mlp alone has. role: whose network it is, where each has its own."""
    for name, can in MLP_ALONE.items() if config.kind != "mlp" else ():
        given = getattr(config, name)
        if not given:
            continue
        shown, blank = (given, "false") if given is True else (" ".join(map(str, given)), "")
        where, way = f"net.{name}", f"leave net.{name} out or set net.kind to mlp"
        if role:  # a preset may have said it, and then it cannot be left out
            where = f"roles {role}.net.{name}"
            way = f"add --roles {role}.net.{name}={blank} or --roles {role}.net.kind=mlp"
        raise ConfigError(
            f"{where} {shown}: only an mlp {can}, and net.kind is {config.kind!r}; {way}"
        )


def check_memory(config: NetConfig, roles: Mapping[str, NetConfig]) -> None:
    """Refuse memory where there is none."""
    for role, own in roles.items():
        if own.memory:
            raise ConfigError(
                f"net.memory {own.memory} of {role}: networks by role have no memory; "
                "leave net.memory out, or the hierarchy"
            )
    if config.memory and config.kind != "mlp" and not roles:
        raise ConfigError(
            f"net.memory {config.memory}: only an mlp has memory, and net.kind is "
            f"{config.kind!r}; leave net.memory out or set net.kind to mlp"
        )
