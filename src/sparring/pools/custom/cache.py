"""Pools of custom environments for evaluation, play and drawing, cached by factory name.

A run saves the name of the factory, `rules.factory`; a run that was trained on an object has none.
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
from sparring.pools.custom.layout import Pixels
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import TablePool
from sparring.pools.custom.tables import EnvTable

RANDOM = "random"
"""Name of the opponent that plays random legal actions."""
MODE = "render_mode"


def is_custom(rules: Rules) -> bool:
    return isinstance(rules, CustomRules)


def pixels_of(rules: Rules) -> Pixels | None:
    """The pixels that a game's observations consist of; None: they are something else."""
    return rules.pixels if isinstance(rules, CustomRules) else None


def factory_of(rules: Rules) -> str:
    """The name of an environment's factory; refuses environments without one."""
    assert isinstance(rules, CustomRules)
    if not rules.factory:
        raise ConfigError(
            f"{rules.name} was given as an object, which cannot be made again; train on a "
            "factory, such as my_module:make_env, to evaluate, play and draw it"
        )
    check_factory_trusted(rules.factory, "game")
    return rules.factory


MAX_CACHED = 2
"""Cached pools; the least recently used one is closed for another."""
_cached: dict[tuple[str, int, str], CustomPool] = {}


def cached_pool(word: str, games: int, mode: str = "") -> CustomPool:
    """Make environments by their factory, or return cached ones: some take long to start.

    games: ignored by a vector, which has its number of games.
    mode: render mode, "" for none.
    """
    key = word, games, mode
    pool = _cached.pop(key, None) or make_uncached(*key)
    _cached[key] = pool  # the most recently used is the last
    while len(_cached) > MAX_CACHED:
        close(_cached.pop(next(iter(_cached))))
    return pool


def make_uncached(word: str, games: int, mode: str) -> CustomPool:
    factory: str | Callable[[], Any] = word
    if mode and takes_mode(load_factory(word, "game")):
        factory = partial(load_factory(word, "game"), **{MODE: mode})
    pool = make_pool(factory, copies=games)
    for table in tables_of(pool) if mode else ():
        set_mode(table.env, mode)
    return pool


@atexit.register
def close_cached() -> None:
    while _cached:
        close(_cached.popitem()[1])


def tables_of(pool: CustomPool) -> list[EnvTable]:
    """The environments of a pool that play one game each; a vector has none."""
    return pool.tables if isinstance(pool, TablePool) else []


def close(pool: CustomPool) -> None:
    """Close windows, simulators and other resources of environments."""
    with suppress(SparringError):  # nothing can be done about it at the end of a program
        pool.close()


def takes_mode(factory: Callable[..., Any]) -> bool:
    """Whether a factory accepts a render mode."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(each.name == MODE or each.kind is each.VAR_KEYWORD for each in parameters)


def modes_of(env: Any) -> list[str]:
    """Render modes of an environment."""
    return list((getattr(env, "metadata", None) or {}).get("render_modes") or [])


def set_mode(env: Any, mode: str) -> None:
    """Set a supported render mode where the factory did not."""
    if mode in modes_of(env) and getattr(env, MODE, None) != mode:
        with suppress(AttributeError):
            setattr(env.unwrapped, MODE, mode)


def check_same(name: str, mine: Rules, now: Rules) -> None:
    """Refuse an environment that is no longer what a policy was trained for."""
    sizes = [(len(rules.features), rules.actions, rules.box, rules.seats) for rules in (mine, now)]
    if sizes[0] != sizes[1]:
        texts = [
            "{} numbers, {} actions, {} numbers per action, {} seats".format(*s) for s in sizes
        ]
        raise ConfigError(
            f"{name} was trained with {texts[0]}; {factory_of(mine)} now makes {texts[1]}"
        )
