"""Learners of other places than this process, by name. None is loaded before it is asked for.

Whoever plans a run knows names alone: learners that several processes make up lie in packages above
planning, as these processes plan their own part of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sparring.errors import ConfigError

_FACTORIES: dict[tuple[str, str], str] = {}
"""`module:function` by algorithm and place."""


def register(name: str, factory: str) -> None:
    """Say who makes a learner.

    name: of an algorithm and a place, as "ppo@actors".
    factory: `module:function`, which takes a run's configuration and its plan.
    """
    algo, _, place = name.partition("@")
    _FACTORIES[algo, place] = factory


def factory_at(algo: str, place: str) -> Callable[..., Any]:
    """Return what makes the learners of an algorithm in a place; refuse one that has none there."""
    if (algo, place) not in _FACTORIES:
        known = [one for one, there in _FACTORIES if there == place]
        instead = f"use {' or '.join(known)}, or " if known else ""
        raise ConfigError(f"algo {algo} has no learner with {place}; {instead}leave {place} out")
    module, _, function = _FACTORIES[algo, place].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
