"""The games that a checkout lists, some of which may not be built yet."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
"""Where sparring runs from its sources; a folder without the list where it is installed."""
GAME_LIST_FILE = "CMakeLists.txt"
GAME_LIST = re.compile(r"^set\(SPARRING_GAMES\n(?P<names>(?: +\w+\n)*)\)$", re.MULTILINE)


def listed_games(file: Path) -> list[str] | None:
    """Return the games that a CMakeLists.txt lists; None if it has no such list."""
    try:
        found = GAME_LIST.search(file.read_text())
    except (OSError, UnicodeDecodeError):
        return None
    return found["names"].split() if found else None


def not_built_hint(name: str) -> str:
    """Say how a game is built that is not there yet, "" if the checkout does not list it."""
    if name not in (listed_games(REPOSITORY / GAME_LIST_FILE) or ()):
        return ""
    where = "" if Path.cwd() == REPOSITORY else f"cd {REPOSITORY} && "
    return f"the game {name!r} is written but not built: {where}make install"
