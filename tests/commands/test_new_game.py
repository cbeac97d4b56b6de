"""`sparring new-game`: what it writes compiles, is formatted, and is there whole or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.commands.new_game import find_checkout, write_game
from sparring.errors import ConfigError
from sparring.games import sources
from sparring.games.sources import listed_games

ROOT = Path(__file__).parents[2]
CONTRACT = """
#include "core/validation.hpp"
#include "games/{name}.hpp"
using G = sparring::{name}::Game;
static_assert(sparring::Game<G> && sparring::HasBounds<G>);
template std::string sparring::check_env(const sparring::Env<G>&, const G::Config&,
                                           const sparring::u8*, bool);
"""
WRITTEN = {
    "csrc/games/{}.hpp",
    "src/sparring/games/{}/__init__.py",
    "src/sparring/games/{}/preset.py",
    "src/sparring/games/{}/terminal.py",
    "tests/games/test_{}.py",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with what the command looks at, the core linked."""
    root = tmp_path / "checkout"
    for folder in ("csrc/games", "src/sparring/games", "tests/games"):
        (root / folder).mkdir(parents=True)
    (root / "csrc/core").symlink_to(ROOT / "csrc/core")
    (root / "src/sparring/games/rules.py").touch()
    for name in ("CMakeLists.txt", ".clang-format", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    return root


def files_of(root: Path) -> dict[str, bytes]:
    """Every file of a checkout with its content."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def tool(*words: str | Path) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_written_fulfils_the_contract(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(checkout)
    assert main(["new-game", "nim", "--into", str(checkout)]) == 0
    told = capsys.readouterr().out
    assert "make install && .venv/bin/sparring check nim\n" in told
    assert "sparring train nim" in told
    now = files_of(checkout)
    assert set(now) - set(before) == {place.format("nim") for place in WRITTEN}
    games = listed_games(checkout / "CMakeLists.txt")
    assert games == sorted([*(listed_games(ROOT / "CMakeLists.txt") or ()), "nim"])
    assert not any(b"my_game" in now[place] or b"My game" in now[place] for place in now)
    whole = checkout / "contract.cpp"
    whole.write_text(CONTRACT.format(name="nim"))
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
    compiler = os.environ.get("CXX", "c++")
    tool(compiler, "-std=c++20", "-fsyntax-only", *warnings, f"-I{checkout / 'csrc'}", whole)


def test_what_was_written_is_told_as_json(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-game", "nim", "--into", str(checkout), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["files"]) == {place.format("nim") for place in WRITTEN}
    assert told["next"][1] == ".venv/bin/sparring check nim"


@pytest.mark.parametrize("name", ["nim", "the_longest_name_that_a_game_may_have_40"])
def test_what_is_written_is_formatted(name: str, checkout: Path) -> None:
    files = write_game(checkout, name)
    scripts = Path(sys.executable).parent
    headers = [file for file in files if file.suffix == ".hpp"]
    tool(scripts / "clang-format", "--dry-run", "--Werror", *headers)
    for words in (("format", "--check"), ("check", "--no-cache")):
        tool(scripts / "ruff", *words, checkout / "src", checkout / "tests")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "lower case letters"),
        ("Nim", "lower case letters"),
        ("3nim", "lower case letters"),
        ("a__b", "lower case letters"),
        ("_nim", "lower case letters"),
        ("nim_", "lower case letters"),
        ("../nim", "lower case letters"),
        ("nïm", "lower case letters"),
        ("n" * 41, "40 characters"),
        ("union", "a word of C++ or Python; try union_game"),
        ("lambda", "a word of C++ or Python; try lambda_game"),
        ("shogi", "there is a game called 'shogi' already"),
        ("duel", "there is a game called 'duel' already"),
        ("rules", "has another meaning in sparring; try rules_game"),
        ("latest", "has another meaning"),
        ("memcpy", "has another meaning"),
        ("field", "has another meaning"),
        ("std", "has another meaning"),
        *((word, f"try {word}_game") for word in ("i32", "u8", "f32")),  # types of the core
        *((word, f"try {word}_game") for word in ("random", "self", "past", "best", "person")),
    ],
)
def test_a_name_that_is_no_good_is_refused_in_a_line(
    name: str, told: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(checkout)
    assert main(["new-game", name, "--into", str(checkout)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert files_of(checkout) == before


@pytest.mark.parametrize("command", ["check nim", "train nim --dry-run", "play nim"])
def test_a_game_that_is_not_built_yet_says_how_to_build_it(
    command: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sources, "REPOSITORY", checkout)
    monkeypatch.chdir(checkout)
    write_game(checkout, "nim")
    assert main(command.split()) == 2
    assert "'nim' is written but not built: make install\n" in capsys.readouterr().err
    monkeypatch.chdir(checkout.parent)
    assert main(["check", "nim"]) == 2
    assert f"not built: cd {checkout} && make install\n" in capsys.readouterr().err


@pytest.mark.parametrize("there", sorted(WRITTEN))
def test_nothing_is_overwritten(there: str, checkout: Path) -> None:
    mine = checkout / there.format("nim")
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = files_of(checkout)
    with pytest.raises(ConfigError, match=f"{there.format('nim')} exists and is not overwritten"):
        write_game(checkout, "nim")
    assert files_of(checkout) == before


def test_a_disk_that_refuses_leaves_nothing_behind(checkout: Path) -> None:
    """The test's folder is a file here, so that the last of the files cannot be written."""
    (checkout / "tests" / "games").rmdir()
    (checkout / "tests" / "games").write_text("no folder")
    before = files_of(checkout)
    with pytest.raises(OSError, match="games"):
        write_game(checkout, "nim")
    assert files_of(checkout) == before
    assert not (checkout / "src/sparring/games/nim").exists()


def test_without_sources_it_says_where_they_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(other)\n")
    assert main(["new-game", "nim", "--into", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--into {tmp_path} is not a checkout of sparring" in line
    assert find_checkout() == ROOT


def test_an_installed_copy_says_to_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "python3" / "site-packages" / "sparring" / "games"
    site.mkdir(parents=True)
    copy = shutil.copy(ROOT / "src/sparring/games/sources.py", site)
    spec = importlib.util.spec_from_file_location("installed", copy)
    assert spec
    assert spec.loader
    installed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(installed)
    monkeypatch.setattr(sources, "REPOSITORY", installed.REPOSITORY)
    with pytest.raises(ConfigError, match=r"not installed; clone the repository"):
        find_checkout()
    assert not sources.not_built_hint("shogi")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_game_is_built_and_passes_its_check(tmp_path: Path) -> None:
    """A checkout with this one game, built anew."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name in ("csrc", "src", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "CMakeLists.txt").read_text()
    for game in listed_games(ROOT / "CMakeLists.txt") or ():
        text = text.replace(f"    {game}\n", "", 1)
    (root / "CMakeLists.txt").write_text(text)
    write_game(root, "nim")
    scripts, build = Path(sys.executable).parent, root / "build"
    options = (f"-DPython_EXECUTABLE={sys.executable}", "-DSPARRING_WASM=OFF")
    tool(scripts / "cmake", "-G", "Ninja", "-S", root, "-B", build, *options)
    tool(scripts / "cmake", "--build", build)
    (library,) = build.glob("_native*.so")
    shutil.copy(library, root / "src" / "sparring")
    editable = "sys.meta_path[:] = [f for f in sys.meta_path if f.__module__[:1] != '_' or 'frozen'"
    code = f"import sys; {editable} in f.__module__]; sys.path.insert(0, {str(root / 'src')!r}); "
    code += "import sparring.cli as cli; sys.exit(cli.main(sys.argv[1:]))"
    tool(sys.executable, "-c", code, "check", "nim")
    tool(sys.executable, "-c", code, "check", "nim", "--set", "vary=0")
    train = "train nim --updates 2 --collect.games 16 --eval.off --eval.final-games 8"
    tool(sys.executable, "-c", code, *train.split(), "--runs", tmp_path / "runs")
