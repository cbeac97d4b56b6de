"""Positions as text."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

from sparring.errors import SparringError

if TYPE_CHECKING:
    from sparring.games.state import State


def game_module(name: str) -> ModuleType | None:
    """Return the Python module of a game, for those that have one."""
    module = f"sparring.games.{name}"
    return importlib.import_module(module) if importlib.util.find_spec(module) else None


def text_view(state: State, viewer: int | None = None) -> str:
    """Show a position: by the game's own view if it has one, else as plainly as possible."""
    rules = state.rules
    if viewer is not None and not 0 <= viewer < rules.seats:
        raise SparringError(f"{rules.name} has seats 0..{rules.seats - 1}, not {viewer}")
    view = getattr(game_module(rules.name), "text_view", None)
    if view is not None:
        return str(view(state, viewer))
    native = state.native.text(-1 if viewer is None else viewer)
    if native:
        return native
    if viewer is not None and rules.hides:
        return observation_view(state, viewer)
    fields = state.fields()
    return "\n".join(f"{name}: {' '.join(map(str, value))}" for name, value in fields.items())


def observation_view(state: State, viewer: int) -> str:
    """Show what a seat observes, feature by feature where it is not 0. Leaks nothing."""
    seen = zip(state.rules.features, state.observe(viewer), strict=True)
    return "\n".join(f"{feature.name}: {value:g}" for feature, value in seen if value)
