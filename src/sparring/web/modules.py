"""The games as WebAssembly: where the modules lie that the build made."""

from __future__ import annotations

from pathlib import Path

from sparring import _native
from sparring.errors import SparringError
from sparring.games.rules import game_names

MODULES = Path(_native.__file__).parent / "wasm"


def module_file(game: str) -> Path:
    """Return a game's module; an error says what is missing."""
    file = MODULES / f"{game}.wasm"
    if not file.is_file():
        raise SparringError(
            f"{game} has no WebAssembly module here: this sparring was built without its "
            "toolchain; install a wheel, or in a checkout: make web"
        )
    return file


def why_not_played(game: str) -> str:
    """Return in one line why a page cannot play a game here; "" if it can."""
    if game not in game_names():
        return "pages play the games of sparring itself"
    try:
        module_file(game)
    except SparringError as wrong:
        return str(wrong)
    return ""
