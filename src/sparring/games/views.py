"""Positions of games as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.errors import SparringError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.pygames.registry import is_registered, position_text


class ViewableState(Protocol):
    """State that can be shown as text."""

    rules: Rules
    native: Any

    def fields(self) -> Mapping[str, npt.NDArray[Any]]: ...

    def observe(self, seat: int) -> npt.NDArray[np.float32]: ...


def text_view(state: ViewableState, viewer: int | None = None) -> str:
    """Return a position as text, with the game's view if it has one."""
    rules = state.rules
    if viewer is not None and not 0 <= viewer < rules.seats:
        raise SparringError(f"{rules.name} has seats 0..{rules.seats - 1}, not {viewer}")
    view = getattr(game_module(rules.name), "text_view", None)
    if view is not None:
        return str(view(state, viewer))
    if is_registered(rules.name):
        return rules_text(state, -1 if viewer is None else viewer)
    native = str(state.native.text(-1 if viewer is None else viewer))
    if native:
        return native
    return plain_view(state, viewer)


def rules_text(state: ViewableState, viewer: int) -> str:
    """Return a position by the `text` of rules in Python, by its fields if they have none."""
    name, config = state.rules.name, state.rules.config
    told = position_text(name, state.native.serialize(), viewer, config)
    return plain_view(state, viewer if viewer >= 0 else None) if told is None else told


def plain_view(state: ViewableState, viewer: int | None) -> str:
    """Return a position as its fields, or as a seat sees it where something is hidden."""
    if viewer is not None and state.rules.hides:
        return observation_view(state, viewer)
    fields = state.fields()
    return "\n".join(f"{name}: {' '.join(map(str, value))}" for name, value in fields.items())


def observation_view(state: ViewableState, viewer: int) -> str:
    """Return the nonzero features of a seat's observation."""
    seen = zip(state.rules.features, state.observe(viewer), strict=True)
    return "\n".join(f"{feature.name}: {value:g}" for feature, value in seen if value)
