"""From the settings of `hierarchy` and `roles` to a network and settings for every role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from sparring.config import HierarchyConfig, NetConfig, TrainConfig
from sparring.config.ranges import read_count, settings_of
from sparring.errors import ConfigError, suggestion
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.learn.plan import RolePlan
from sparring.nets.inputs import Inputs
from sparring.training.planning.requests import changed
from sparring.training.planning.settings import merged

ALGO = "ppo"
"""The algorithm that knows hierarchies."""
NET, ENDED_BY = "net", "ended_by"
SWITCHES = {"true": True, "1": True, "false": False, "0": False}


@dataclass
class RoleSettings:
    """What words say about one role."""

    changes: dict[str, dict[str, Any]] = field(default_factory=lambda: {NET: {}, ALGO: {}})
    ended_by: tuple[str, ...] = ()


def read_roles(rules: Rules, configs: Sequence[TrainConfig]) -> tuple[RolePlan, ...]:
    """Return the roles' networks and settings, one of these for every member; none without."""
    config = configs[0]
    check_hierarchy(rules, config)
    if not config.hierarchy.on:
        return ()
    said = read_words(rules, config)
    plans = []
    for role in rules.roles:
        own, where = said[role], f"roles: {role}"
        net: NetConfig = merged(config.net, own.changes[NET], where)
        Inputs(rules, block_names=net.inputs)  # refuses blocks that there are not
        settings = tuple(merged(one.ppo, own.changes[ALGO], where) for one in configs)
        if any(len(one.gamma_into) not in (0, len(rules.roles)) for one in settings):
            raise ConfigError(f"{where}: ppo.gamma_into needs one discount for each role")
        plans.append(RolePlan(role, net, settings, own.ended_by))
    if len({plan.net.squash for plan in plans}) > 1:
        raise ConfigError("roles: net.squash is the same for all roles; set it as --net.squash")
    return tuple(plans)


def nets_by_role(roles: Sequence[RolePlan], config: TrainConfig) -> dict[str, NetConfig]:
    """Return the networks by role; one called "" where it is for all."""
    return {role.role: role.net for role in roles} or {"": config.net}


def check_hierarchy(rules: Rules, config: TrainConfig) -> None:
    hierarchy = config.hierarchy
    if not hierarchy.on:
        name = changed(hierarchy, HierarchyConfig())
        what = f"roles {config.roles[0]}" if config.roles else ""
        what = what or (f"hierarchy.{name} {getattr(hierarchy, name)}" if name else "")
        if what:
            raise ConfigError(f"{what}: of a network per role; add --hierarchy.on or leave it out")
        return
    words = ("together", "alternately", *rules.roles)
    if hierarchy.learn not in words:
        hint = suggestion(hierarchy.learn, words)
        raise ConfigError(f"hierarchy.learn {hierarchy.learn!r} is unknown{hint}")


def read_words(rules: Rules, config: TrainConfig) -> dict[str, RoleSettings]:
    said = {role: RoleSettings() for role in rules.roles}
    for word in config.roles:
        name, text = read_pair(word, "roles")
        role, _, setting = name.partition(".")
        if role not in said:
            raise ConfigError(f"roles: {rules.name} has no role {role!r}{suggestion(role, said)}")
        section, _, key = setting.partition(".")
        if setting == ENDED_BY:
            said[role].ended_by = read_ends(rules, role, text)
        elif section in said[role].changes and key:
            kinds = settings_of(getattr(config, section))
            known = kinds[key][0] if key in kinds else str  # `merged` refuses other names
            said[role].changes[section][key] = typed(known, text, word)
        else:
            sections = f"{NET}.*, {ALGO}.* and {ENDED_BY}"
            raise ConfigError(f"roles: {word!r}: a role has the settings {sections}")
    return said


def read_ends(rules: Rules, role: str, text: str) -> tuple[str, ...]:
    ends = tuple(filter(None, (part.strip() for part in text.split(","))))
    for other in ends:
        if other not in rules.roles or other == role:
            others = [one for one in rules.roles if one != role]
            raise ConfigError(f"roles: {role}.ended_by {other!r}{suggestion(other, others)}")
    return ends


def typed(kind: Any, text: str, word: str) -> Any:
    """Read a value as its setting wants it; ranges are checked where it is set."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        parts = (part.strip() for part in text.split(","))
        return tuple(typed(inner, part, word) for part in parts if part)
    try:
        if kind is int:
            return read_count(text)
        if kind is float:
            return float(text)
        if kind is bool:
            return SWITCHES[text.strip().lower()]
    except (ValueError, OverflowError, KeyError):
        wanted = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise ConfigError(f"roles: {word!r} needs {wanted}") from None
    return text
