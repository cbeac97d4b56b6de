"""Names of games: what one may be called, and its place in the list of all."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from sparring.errors import ConfigError
from sparring.games.rules import TEST_GAMES
from sparring.games.sources import GAMES, LIST, listed_games

LONGEST = 40
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
PLAYERS = frozenset(("best", "bot", "latest", "past", "person", "random", "self"))
"""What commands and settings call players and runs."""
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and_eq asm auto bitand bitor bool case catch char compl concept const
    consteval constexpr constinit decltype default delete do double dynamic_cast enum explicit
    export extern float friend goto inline int long mutable namespace new noexcept not_eq nullptr
    operator or_eq private protected public register reinterpret_cast requires short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw typedef typeid
    typename union unsigned using virtual void volatile wchar_t xor xor_eq""",
    )
)
"""Of C++, besides those that Python has too."""


def check_name(root: Path, name: str) -> None:
    """Refuse a name that C++, Python or the checkout has another use for."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise ConfigError(
            f"a game cannot be called {name!r}: small letters, digits and single underscores, a "
            f"letter first, {LONGEST} characters at most, such as connect_four"
        )
    if name in KEYWORDS or keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a word of C++ or Python; try {name}_game")
    if name in (listed_games(root / LIST) or ()) or name in TEST_GAMES:
        raise ConfigError(f"there is a game called {name!r} already; choose another name")
    if name in PLAYERS or is_ours(root, name):
        raise ConfigError(f"{name!r} means something else in sparring; try {name}_game")


def is_ours(root: Path, name: str) -> bool:
    """Whether a namespace of this name hides what the core calls, or a module its namesake."""
    games = root / "src" / "sparring" / "games"
    if (games / f"{name}.py").exists():
        return True
    called = re.compile(rf"\b{name}\s*(\(|<|::)|\busing {name}\b")
    return any(called.search(file.read_text()) for file in (root / "csrc/core").glob("*.hpp"))


def with_game(text: str, name: str) -> str:
    """Return the text of CMakeLists.txt with one more game, at its place in the alphabet."""
    found = GAMES.search(text)
    assert found is not None, "a checkout has the list"
    names = sorted([*found["names"].split(), name])
    lines = "".join(f"    {one}\n" for one in names)
    return text[: found.start("names")] + lines + text[found.end("names") :]
