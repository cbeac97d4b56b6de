"""The commands as a user meets them: help, exit codes, one-line errors, JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import sparring
from sparring.cli import main
from sparring.commands.shared.table import COMMANDS

PROGRAM = Path(sys.executable).with_name("sparring")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_help_is_quick_and_lists_every_command() -> None:
    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    best = 10.0
    for _ in range(3):
        before = cpu_s()
        done = run(str(PROGRAM), "--help")
        best = min(best, cpu_s() - before)
        assert done.returncode == 0
        assert done.stderr == ""
        for command in COMMANDS:
            assert f"  {command.name} " in done.stdout
    assert best < 0.5


def test_names_of_the_package_are_loaded_when_asked_for() -> None:
    asked = """
import sys, sparring
loaded = [name for name in sys.modules if name.startswith(("sparring.", "numpy"))]
assert loaded == [], loaded
assert set(dir(sparring)) == {*sparring.__all__, "errors", "games", "pools", "__version__"}
assert sparring.Rules("tic_tac_toe").seats == 2 and sparring.pools.NO_POLICY < 0
assert "torch" not in sys.modules
assert all(getattr(sparring, name) is not None for name in sparring.__all__)
assert not hasattr(sparring, "nothing")
"""
    done = run(sys.executable, "-c", asked)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["bench", "pool", "--help"], ["games"]])
def test_no_learning_library_is_loaded(words: list[str]) -> None:
    asked = f"""
import sys
from sparring.cli import main
main({words!r})
names = ("torch", "gymnasium", "pettingzoo", "tensorboard", "matplotlib")
heavy = [m for m in names if m in sys.modules]
sys.exit(", ".join(heavy) or 0)
"""
    done = run(sys.executable, "-c", asked)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"usage: sparring {command}" in shown
    assert "--json" in shown or command in ("play", "usi", "completion")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sparring {sparring.__version__}\n"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("gaems", "did you mean 'games'?"),
        ("bench", "bench pool"),
        ("bench poool skull_king", "did you mean 'bench pool'?"),
        ("games skul_king", "did you mean 'skull_king'?"),
        ("games --actions", "need a game"),
        ("games skull_king --set num_player=3", "did you mean 'num_players'?"),
        ("games skull_king --set num_players=9", "2..8"),
        ("games skull_king --set num_players", "key=value"),
        ("games skull_king --set ghost=1 --set ghost=0", "twice"),
        ("games skull_king --set skip_forced=maybe", "must be 0 or 1"),
        ("games skull_king --set rounds=1,x", "not a number"),
        ("games skull_king --set cannonball=1", "scoring=RASCAL"),
        ("bench pool", "GAME"),
        ("bench pool skull_king --gmaes 3", "did you mean --games?"),
        ("bench pool skull_king --games three", "--games"),
        ("bench pool skull_king --games 0", "at least 1"),
        ("bench pool skull_king --rounds 0", "at least 1"),
        ("bench pool skull_king --seconds 0", "above 0"),
        ("bench pool skull_king --seconds nan", "above 0"),
        ("bench pool skull_king --threads 0 --seconds 0.1 --games 8", "from 1 to 1024"),
        ("check", "GAME"),
        ("check tic_tac_toe --games 0", "at least 1"),
        ("play skull_king --seat 4", "0..3"),
        ("play skull_king --against capten", "did you mean 'captain'?"),
        ("play skull_king --against captain,random", "give 1 or 3"),
        ("doctor --jsn", "--json"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    words: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    lines = [line for line in shown.err.splitlines() if "warning: load" not in line]
    assert len(lines) == 1
    assert hint in lines[0]


def test_the_installed_program_exits_with_the_code() -> None:
    done = run(str(PROGRAM), "gaems")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    shell = f"{PROGRAM} games skull_king --features | head -1"
    done = run("bash", "-c", shell)
    assert "index" in done.stdout
    assert done.stderr == ""


def test_set_reaches_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    words = "games skull_king --json --set num_players=6 --set abilities=1 --set rounds=1,2,3"
    assert main(words.split()) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["seats"] == 6
    assert shown["actions"] == 102
    assert shown["config"]["rounds"][:4] == [1, 2, 3, 0]


def test_set_takes_a_list_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = "games skull_king --json --set rounds=5 --set skip_forced=0"
    assert main(words.split()) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["config"]["rounds"] == [5, *[0] * 9]
    assert shown["config"]["skip_forced"] == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    command = f"{sys.executable} -m sparring games"
    for place, code in (("> /dev/full", 3), (">&-", 0)):
        ended = subprocess.run(
            f"{command} {place}", shell=True, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, "Traceback" in ended.stderr) == (code, False), ended.stderr


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_of_a_first_word_lists_the_second_ones(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", word]) == 0
    out = capsys.readouterr().out
    assert "bench pool" in out
    assert "bench scaling" in out
    assert "doctor" not in out
