"""Optional modules of a game's folder, such as `picture`, `terminal` and `preset`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from sparring.errors import SparringError


def game_module(game: str, module: str = "") -> ModuleType | None:
    """Return a module of a game's folder, or the package itself; None if it does not exist."""
    if not game.isidentifier():  # a custom environment
        return None
    folder = find_spec(f"sparring.games.{game}")
    if folder is None or folder.submodule_search_locations is None:
        return None
    name = f"{folder.name}.{module}" if module else folder.name
    if find_spec(name) is None:
        return None
    try:
        return import_module(name)
    except Exception as error:  # the user's file may raise anything
        text = f"{type(error).__name__}: {error}"
        raise SparringError(f"{name} of {game} cannot be imported: {text}; fix it") from error
