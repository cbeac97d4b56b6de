"""Networks of somebody's own: as a program gives them, as a run's file names them, and at first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from sparring.config import NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory, is_given, lasting_name, require_named
from sparring.games.rules import Rules
from sparring.nets.inputs import memory_of
from sparring.nets.make import make_net
from sparring.nets.net import Net, asked_heads
from sparring.nets.own import keep_net
from sparring.nets.run.recognised import Layers, recognise


def name_net(changes: dict[str, Any]) -> None:
    """Put a name where a program gave the class of a network, or a network.

    It may stand for all settings of the network, or for its kind; arguments may be a table.
    """
    given = changes.get("net")
    if given is None or isinstance(given, NetConfig):
        return
    settings = dict(given) if isinstance(given, Mapping) else {"kind": given}
    kind, words = settings.get("kind", ""), settings.get("set", ())
    if not isinstance(kind, str):
        settings["kind"] = keep_net(kind)
    if isinstance(words, Mapping):
        settings["set"] = tuple(f"{key}={json.dumps(value)}" for key, value in words.items())
    changes["net"] = settings


def net_again(given: Any, config: TrainConfig, run: str) -> None:
    """Take the network of a run that goes on, where the program that began it brought it along."""
    if not is_factory(config.net.kind):
        raise ConfigError(f"net: {run} has net.kind {config.net.kind}, none of your own")
    keep_net(given, config.net.kind)


def lasting_net(net: NetConfig) -> NetConfig:
    """The same with the whole path of a file, so that it is found from everywhere."""
    return replace(net, kind=lasting_name(net.kind))


def is_own_net(config: TrainConfig) -> bool:
    """Whether any network of a run is somebody's own."""
    return is_factory(config.net.kind) or any(".net.kind=" in word for word in config.roles)


def require_code(config: TrainConfig) -> None:
    """Refuse settings that name code which nobody at this keyboard named, before any is loaded."""
    named = [("game", config.game), ("algo", config.algo), ("net.kind", config.net.kind)]
    for word in config.roles:
        key, _, value = word.partition("=")
        if key.endswith(".net.kind"):
            named.append((f"roles {key}", value))
    for what, word in named:
        require_named(word, what)


def only_here(config: TrainConfig) -> bool:
    """Whether a run's network is an object of this program, which no other process finds."""
    return is_given(config.net.kind)


def check_own_nets(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    """Refuse modules that cannot be made or trained, before anything else is made."""
    for net in nets.values():
        if not is_factory(net.kind):
            continue
        if only_here(config) and (config.actors or config.cluster or config.replicas > 1):
            raise ConfigError(
                f"net.kind {net.kind}: other processes cannot find an object of this program; give "
                "a class of a module, or leave actors, replicas and cluster out"
            )
        made_own(rules, net, asked_heads(rules, config.heads))


def is_perceptron(rules: Rules, net: NetConfig) -> bool:
    """Whether a network is computed as a perceptron, whoever wrote it."""
    if is_factory(net.kind):
        return isinstance(recognise(made_own(rules, net)), Layers)
    return net.perceptron


def made_own(rules: Rules, net: NetConfig, heads: Mapping[str, int] | None = None) -> Net:
    """Make a network to look at. heads: widths by name; left out, a policy and a value."""
    with torch.random.fork_rng(devices=[]):
        return make_net(rules, net, heads=heads, memory=memory_of(rules, net))


def own_weights(rules: Rules, net: NetConfig) -> int:
    """How many weights a network of somebody's own has."""
    return sum(parameter.numel() for parameter in made_own(rules, net).parameters())
