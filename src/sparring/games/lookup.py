"""What a game may have in its folder beside its rules: `picture`, `terminal`, `preset`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from sparring.errors import SparringError


def game_module(game: str, what: str = "") -> ModuleType | None:
    """Return a module of a game's folder, or the folder itself; None where there is none."""
    if not game.isidentifier():  # an environment of somebody else's
        return None
    folder = find_spec(f"sparring.games.{game}")
    if folder is None or folder.submodule_search_locations is None:
        return None
    name = f"{folder.name}.{what}" if what else folder.name
    if find_spec(name) is None:
        return None
    try:
        return import_module(name)
    except Exception as error:  # somebody's own file, whatever is wrong with it
        text = f"{type(error).__name__}: {error}"
        raise SparringError(f"{name} of {game} cannot be imported: {text}; mend it") from error
