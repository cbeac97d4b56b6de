"""`sparring new-game`: write the files of a small complete game, to be changed into another."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from sparring.commands.shared.printing import echo, print_json
from sparring.config.commands import NewGameConfig
from sparring.errors import ConfigError
from sparring.games import sources
from sparring.games.rules import TEST_GAMES
from sparring.games.sources import GAME_LIST, GAME_LIST_FILE, listed_games
from sparring.store.files import write_atomic, write_file

TEMPLATE = Path(__file__).with_name("template")
TARGETS = {
    "header.hpp": "csrc/games/my_game.hpp",
    "folder/__init__.py": "src/sparring/games/my_game/__init__.py",
    "folder/preset.py": "src/sparring/games/my_game/preset.py",
    "folder/terminal.py": "src/sparring/games/my_game/terminal.py",
    "test.py": "tests/games/test_my_game.py",
}
"""Target of each template file in a checkout."""
MAX_LENGTH = 40
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
PLAYERS = frozenset(("best", "bot", "latest", "past", "person", "random", "self"))
"""Names that commands and settings reserve for players and runs."""
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
"""Keywords of C++ that Python does not have."""


def run(config: NewGameConfig) -> int:
    """Write the files of a game, add it to the list of games, and print the next steps."""
    if config.python:
        return write_python(config)
    root = find_checkout(config.into)
    files = [str(file.relative_to(root)) for file in write_game(root, config.name)]
    where = "" if Path.cwd() == root else f"cd {root} && "
    check, train, play = (
        f".venv/bin/sparring {command} {config.name}" for command in ("check", "train", "play")
    )
    if config.json:
        facts = {"game": config.name, "checkout": str(root), "files": files, "list": GAME_LIST_FILE}
        print_json({**facts, "next": [f"{where}make install", check, train, play]})
        return 0
    echo(f"wrote {', '.join(files)}")
    echo(f"added {config.name} to the list in {GAME_LIST_FILE}")
    echo(f"next: {where}make install && {check}")
    echo(f"then: {train}, {play}")
    return 0


def write_python(config: NewGameConfig) -> int:
    """Write one file with rules in Python, and print the next steps."""
    folder = Path(config.into or ".")
    if not NAME.fullmatch(config.name) or keyword.iskeyword(config.name):
        raise ConfigError(
            f"{config.name!r} is not a valid name: lower case letters, digits and single "
            "underscores, a letter first, such as go_fish"
        )
    if not folder.is_dir():
        raise ConfigError(f"--into {config.into}: there is no such folder")
    file = folder / f"{config.name}.py"
    if file.exists():
        raise ConfigError(f"{file} exists and is not overwritten; choose another name")
    text = renamed((TEMPLATE / "rules.py.in").read_text(), config.name)
    write_file(file, text.encode())
    word = f"{file}:{renamed('MyGame', config.name)}"
    steps = [f"sparring {command} {word}" for command in ("check", "train", "play")]
    if config.json:
        print_json({"game": word, "files": [str(file)], "next": steps})
        return 0
    echo(f"wrote {file}")
    echo(f"next: {steps[0]}")
    echo(f"then: {steps[1]}, {steps[2]}")
    return 0


def find_checkout(into: str = "") -> Path:
    """Return the named checkout, or the one that sparring runs from."""
    root = Path(into).resolve() if into else sources.REPOSITORY
    needed = (GAME_LIST_FILE, *(str(Path(target).parents[-2]) for target in TARGETS.values()))
    if (
        all((root / name).exists() for name in needed)
        and listed_games(root / GAME_LIST_FILE) is not None
    ):
        return root
    if into:
        raise ConfigError(
            f"--into {into} is not a checkout of sparring: it needs {GAME_LIST_FILE} and csrc/"
        )
    raise ConfigError(
        "a native game is compiled with sparring's sources, which are not installed; clone the "
        "repository, run make install in it, then sparring new-game there, or use --into CHECKOUT"
    )


def write_game(root: Path, name: str) -> list[Path]:
    """Write all files of a game, or none."""
    check_name(root, name)
    files = {root / renamed(to, name): TEMPLATE / file for file, to in TARGETS.items()}
    taken = [path for path in files if path.exists()]
    if taken:
        raise ConfigError(
            f"{taken[0].relative_to(root)} exists and is not overwritten; choose "
            "another name, or remove it"
        )
    texts = {path: renamed(file.read_text(), name) for path, file in files.items()}
    games = with_game((root / GAME_LIST_FILE).read_text(), name)
    created: list[Path] = []
    try:
        for path, text in texts.items():
            created += reversed([folder for folder in path.parents if not folder.exists()])
            path.parent.mkdir(parents=True, exist_ok=True)
            created.append(path)
            write_file(path, text.encode())
        write_atomic(root / GAME_LIST_FILE, games.encode())  # last: from here on the game is built
    except BaseException:
        for path in reversed(created):
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        raise
    return list(texts)


def renamed(text: str, name: str) -> str:
    """Return a template text with the name of the game, in all spellings."""
    words = name.replace("_", " ").strip()
    spelled = {
        "my_game": name,
        "MyGame": words.title().replace(" ", ""),
        "My game": words[0].upper() + words[1:],
    }
    return re.sub("|".join(spelled), lambda found: spelled[found[0]], text)


def check_name(root: Path, name: str) -> None:
    """Refuse a name that C++, Python or the checkout uses otherwise."""
    if not NAME.fullmatch(name) or len(name) > MAX_LENGTH:
        raise ConfigError(
            f"{name!r} is not a valid name: lower case letters, digits and single underscores, a "
            f"letter first, {MAX_LENGTH} characters at most, such as go_fish"
        )
    if name in KEYWORDS or keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a word of C++ or Python; try {name}_game")
    if name in (listed_games(root / GAME_LIST_FILE) or ()) or name in TEST_GAMES:
        raise ConfigError(f"there is a game called {name!r} already; choose another name")
    if name in PLAYERS or is_taken(root, name):
        raise ConfigError(f"{name!r} has another meaning in sparring; try {name}_game")


def is_taken(root: Path, name: str) -> bool:
    """Whether a namespace or module of this name would hide one of sparring."""
    games = root / "src" / "sparring" / "games"
    if (games / f"{name}.py").exists():
        return True
    called = re.compile(rf"\b{name}\s*(\(|<|::)|\busing {name}\b")
    return any(called.search(file.read_text()) for file in (root / "csrc/core").glob("*.hpp"))


def with_game(text: str, name: str) -> str:
    """Return the text of CMakeLists.txt with one more game, in alphabetical order."""
    found = GAME_LIST.search(text)
    assert found is not None, "a checkout has the list"
    names = sorted([*found["names"].split(), name])
    lines = "".join(f"    {one}\n" for one in names)
    return text[: found.start("names")] + lines + text[found.end("names") :]
