"""What a game may have in its folder beside its rules: `picture`, `terminal`, `preset`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def part_of(game: str, part: str = "") -> ModuleType | None:
    """Return a module of a game's folder, or the folder itself; None where there is none."""
    if not game.isidentifier():  # an environment of somebody else's
        return None
    folder = find_spec(f"sparring.games.{game}")
    if folder is None or folder.submodule_search_locations is None:
        return None
    name = f"{folder.name}.{part}" if part else folder.name
    return import_module(name) if find_spec(name) else None
