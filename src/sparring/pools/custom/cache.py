"""Environments of somebody's own made once more, to measure, play or draw what was trained there.

A run knows the name of the factory, `rules.factory`; whoever trained on an object has none.
"""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.factories import check_factory_trusted, load_factory
from sparring.games.rules import Rules
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import TablePool
from sparring.pools.custom.tables import Table

RANDOM = "random"
"""The opponent that every environment has: somebody who plays anything that is legal."""
MODE = "render_mode"


def is_custom(rules: Rules) -> bool:
    """Whether a game is an environment of somebody's own."""
    return isinstance(rules, CustomRules)


def factory_of(rules: Rules) -> str:
    """The name of what makes the environment; without one there is nothing to be done."""
    assert isinstance(rules, CustomRules)
    if not rules.factory:
        raise ConfigError(
            f"{rules.name} is your own environment, given as an object, which cannot be made "
            "again; train on a factory, such as my_module:make_env, to measure, play and draw it"
        )
    check_factory_trusted(rules.factory, "game")
    return rules.factory


KEPT = 2
"""Pools that are kept; another one closes that which was used the longest ago."""
_kept: dict[tuple[str, int, str], CustomPool] = {}


def cached_pool(word: str, games: int, mode: str = "") -> CustomPool:
    """Make environments by their factory; they are kept, as some take long to start.

    games: a vector has as many as it has.
    mode: how they are to be rendered, "" if they are not.
    """
    key = word, games, mode
    pool = _kept.pop(key, None) or make_anew(*key)
    _kept[key] = pool  # the newest is the last
    while len(_kept) > KEPT:
        close(_kept.pop(next(iter(_kept))))
    return pool


def make_anew(word: str, games: int, mode: str) -> CustomPool:
    """Make them, whatever is kept."""
    factory: str | Callable[[], Any] = word
    if mode and takes_mode(load_factory(word, "game")):
        factory = partial(load_factory(word, "game"), **{MODE: mode})
    pool = make_pool(factory, copies=games)
    for table in tables_of(pool) if mode else ():
        set_mode(table.env, mode)
    return pool


@atexit.register
def close_kept() -> None:
    while _kept:
        close(_kept.popitem()[1])


def tables_of(pool: CustomPool) -> list[Table]:
    """Environments that play one game each; a vector has none."""
    return pool.tables if isinstance(pool, TablePool) else []


def close(pool: CustomPool) -> None:
    """Let go of what environments hold, such as windows or simulators."""
    with suppress(SparringError):  # at the end of a program nobody can do anything about it
        pool.close()


def takes_mode(factory: Callable[..., Any]) -> bool:
    """Whether a factory can be told how its environment is to be rendered."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(each.name == MODE or each.kind is each.VAR_KEYWORD for each in parameters)


def modes_of(env: Any) -> list[str]:
    """How an environment says that it can be rendered."""
    return list((getattr(env, "metadata", None) or {}).get("render_modes") or [])


def set_mode(env: Any, mode: str) -> None:
    """Have an environment rendered in a mode that it has, where its factory did not choose it."""
    if mode in modes_of(env) and getattr(env, MODE, None) != mode:
        with suppress(AttributeError):
            setattr(env.unwrapped, MODE, mode)


def check_same(name: str, mine: Rules, now: Rules) -> None:
    """Refuse an environment that is not any more what a policy was trained for."""
    sizes = [(len(rules.features), rules.actions, rules.box, rules.seats) for rules in (mine, now)]
    if sizes[0] != sizes[1]:
        told = ["{} numbers, {} actions, {} numbers per action, {} seats".format(*s) for s in sizes]
        raise ConfigError(
            f"{name} was trained with {told[0]}; {factory_of(mine)} now makes {told[1]}"
        )
