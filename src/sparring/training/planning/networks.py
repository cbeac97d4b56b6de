"""What settings of networks, of their heads and of learning from records need. The rest is refused.

A setting that nothing would come of is an error, unless a preset says it: whoever chooses another
kind of network has not asked for what suits the usual one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from sparring.config import CloningConfig, HeadsConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.rules import Rules, game_names
from sparring.nets.memory import memory_of
from sparring.pools.limits import MOST_MEMORY
from sparring.schedule import Schedule
from sparring.training.planning.presets import presets_of
from sparring.training.planning.roles import role_nets

ALGO = "ppo"
"""The algorithm that has heads beside policy and value."""
GRU, STACK = "gru", "stack"


def check_networks(rules: Rules, config: TrainConfig) -> None:
    """Refuse settings of networks that nothing would come of."""
    usual = NetConfig()
    for role, net in (role_nets(rules, config) or {"": config.net}).items():
        where = f"roles {role}.net" if role else "net"
        preset = list(said_by_presets(config, "net", role))
        for name, needs in unused_of(net).items():
            given = getattr(net, name)
            if given != getattr(usual, name) and not any(same(given, one, name) for one in preset):
                way = for_role(needs, role, name, given) if role else f"{needs}, or leave it out"
                raise ConfigError(f"{where}.{name} {shown(given)}: {way}")
        check_room(rules, net, where)
    check_heads(config)
    check_teaching(config)


def unused_of(net: NetConfig) -> dict[str, str]:
    """The settings that a network has no use for, and what they would need."""
    tokens = ("token_width", "token_layers", "token_heads")
    widths = ("policy_hidden", "value_hidden")
    needs: dict[str, str] = {}
    if not is_factory(net.kind):
        needs["set"] = (
            f"arguments are those of a network of your own, and net.kind is {net.kind}; "
            "set --net.kind module:Class"
        )
    if net.kind != "attention":
        text = (
            f"things are those of attention, and net.kind is {net.kind}; add --net.kind attention"
        )
        needs |= dict.fromkeys(tokens, text)
    if net.kind != "mlp" or not net.shared:
        has = f"net.kind is {net.kind}" if net.kind != "mlp" else "net.shared is off"
        text = f"layers of a head stand behind the shared ones of an mlp, and {has}"
        way = "set --net.kind mlp" if net.kind != "mlp" else "add --net.shared"
        needs |= dict.fromkeys(widths, f"{text}; {way}")
    if net.memory != GRU:
        text = "of a memory that the network writes; add --net.memory gru"
        needs |= dict.fromkeys(("memory_width", "segment"), text)
    if net.memory != STACK:
        needs["frames"] = "of a memory of observations; add --net.memory stack"
    return needs


def for_role(needs: str, role: str, name: str, given: Any) -> str:
    """The same advice for one of several networks: by its role, and how others keep the setting."""
    own = re.sub(r"--net\.(\w+) (\S+)$", rf"--roles {role}.net.\1=\2", needs)
    own = re.sub(r"--net\.(\w+)$", rf"--roles {role}.net.\1=true", own)
    value = ",".join(map(str, given)) if isinstance(given, tuple) else given
    return f"{own}, or give it to the roles that have it: --roles ROLE.net.{name}={value}"


def said_by_presets(
    config: TrainConfig, section: str, role: str = ""
) -> Iterator[Mapping[str, Any]]:
    """What presets of the game say about a section, or about that of a role."""
    if is_factory(config.game) or config.game not in game_names():
        return
    for gpu in (False, True):
        asked: dict[str, Any] = {"gpu": gpu, "hierarchy": config.hierarchy.on}
        for _, table in presets_of(config.game, config.algo, config.dqn.mode, **asked):
            yield table.get(section, {})
            yield table.get("roles", {}).get(role, {}).get(section, {})


def same(given: Any, table: Mapping[str, Any], name: str) -> bool:
    """Whether a table says the same of a setting."""
    told = table.get(name)
    return name in table and (tuple(told) if isinstance(told, list) else told) == given


def check_room(rules: Rules, net: NetConfig, where: str) -> None:
    """Refuse a memory that no row has room for."""
    if memory_of(rules, net) > MOST_MEMORY:
        most = MOST_MEMORY // (4 * len(rules.features)) + 1
        raise ConfigError(
            f"{where}.frames {net.frames}: {rules.name} has {len(rules.features)} features, of "
            f"which at most {most} frames are remembered"
        )


def check_heads(config: TrainConfig) -> None:
    """Refuse heads that nobody would train, or that nobody would ask."""
    heads, name = config.heads, changed(config.heads, HeadsConfig())
    if name and config.algo != ALGO:
        raise ConfigError(
            f"heads.{name} {shown(getattr(heads, name))}: heads beside policy and value learn with "
            f"{ALGO} alone; the algorithm is {config.algo}; leave it out"
        )
    if name and config.hierarchy.on:
        raise ConfigError(
            f"heads.{name} {shown(getattr(heads, name))}: a network per role has a policy and a "
            "value; leave it out, or hierarchy.on"
        )
    if heads.blend and heads.wdl == Schedule.constant(0.0):
        raise ConfigError(
            f"heads.blend {heads.blend:g}: there is no head of win, draw and loss to blend in; "
            "give its weight with --heads.wdl, or leave it out"
        )


def check_teaching(config: TrainConfig) -> None:
    """Refuse settings of learning from records where there are none."""
    name = changed(config.cloning, CloningConfig())
    given = f"cloning.{name} {shown(getattr(config.cloning, name))}" if name else ""
    if config.teach_minutes != TrainConfig.teach_minutes:
        given = f"teach_minutes {config.teach_minutes:g}"
    if given and not config.teach:
        raise ConfigError(
            f"{given}: nothing is learned from records; add --teach with records or bots, or leave "
            "it out"
        )


def changed(section: Any, usual: Any) -> str:
    """The first setting that is not as usual, "" if there is none."""
    names = (field.name for field in fields(section))
    return next((name for name in names if getattr(section, name) != getattr(usual, name)), "")


def shown(value: Any) -> str:
    """A value as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
