"""Games listed in a checkout's CMakeLists.txt, which may not be built yet."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
"""Root of the source checkout; for an installed package a folder without the list."""
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
    """Return how to build a listed game that is not built, "" if it is not listed."""
    if name not in (listed_games(REPOSITORY / GAME_LIST_FILE) or ()):
        return ""
    where = "" if Path.cwd() == REPOSITORY else f"cd {REPOSITORY} && "
    return f"the game {name!r} is written but not built: {where}make install"
