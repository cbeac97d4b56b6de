"""Positions as text."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparring.games.state import State


def text_view(state: State, viewer: int | None = None) -> str:
    """Show a position: by the game's own view if it has one, else its fields by name."""
    module = f"sparring.games.{state.rules.name}"
    if importlib.util.find_spec(module) is not None:
        view = getattr(importlib.import_module(module), "text_view", None)
        if view is not None:
            return str(view(state, viewer))
    native = state.native.text(-1 if viewer is None else viewer)
    if native:
        return native
    fields = state.fields()
    return "\n".join(f"{name}: {' '.join(map(str, value))}" for name, value in fields.items())
