"""`sparring usi`: a player over stdin and stdout."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparring import Rules, new_state
from sparring.cli import main
from sparring.games import shogi


@pytest.mark.parametrize(
    "encoding",
    [
        "ascii",
        "shift_jis",
        *(pytest.param(encoding, marks=pytest.mark.slow) for encoding in ("latin-1", "utf-8")),
    ],
)
def test_the_command_plays_over_its_streams(encoding: str) -> None:
    before = "usi\nisready\n名人\n".encode() + b"\xff\xfe\n"
    after = b"usinewgame\nposition startpos\ngo byoyomi 100\nquit\nusi\n\xff\n"
    program = Path(sys.executable).with_name("sparring")
    done = subprocess.run(
        [program, "usi", "greedy"],
        input=before + after,
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"},
    )
    told = done.stdout.decode("utf-8").splitlines()
    assert told.count("usiok") == 1
    assert any("no command '名人'" in line for line in told)
    assert any("no command '\ufffd" in line for line in told)
    assert told[-1].split()[0] == "bestmove"
    assert told[-1].split()[1] in shogi.moves(new_state("shogi"))
    assert done.stderr == b""


def test_every_line_is_told_at_once() -> None:
    program = Path(sys.executable).with_name("sparring")
    pipe = subprocess.PIPE
    with subprocess.Popen([program, "usi", "greedy"], stdin=pipe, stdout=pipe, text=True) as engine:
        assert engine.stdin
        assert engine.stdout
        for line, answer in (("isready", "readyok"), ("usi", "id name sparring greedy")):
            engine.stdin.write(f"{line}\n")
            engine.stdin.flush()
            assert engine.stdout.readline().strip() == answer  # while our side stays open
        engine.stdin.write("quit\n")


def test_bots_play_without_a_learning_library() -> None:
    asked = """
import io, sys
from sparring.cli import main
sys.stdin = io.StringIO("position startpos\\ngo\\n")
main(["usi", "ab2"])
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["greedyy"], "no player 'greedyy' for shogi; did you mean 'greedy'?"),
        (["greedy", "--seed", "-1"], "seed -1 must be from 0 to 2,147,483,647"),
        (["greedy", "--set", "plies=3"], "plies"),
    ],
)
def test_a_wrong_start_is_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["usi", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_a_policy_of_another_game_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from sparring.config import NetConfig
    from sparring.nets.mlp import Perceptron
    from sparring.nets.policy import Policy
    from sparring.store.policies import save_policy

    for game in ("tic_tac_toe", "shogi"):
        rules = Rules(game)
        net = Perceptron(rules, NetConfig(hidden=(8,)))
        save_policy(Policy(rules, net), tmp_path / game)
    assert main(["usi", str(tmp_path / "tic_tac_toe")]) == 2
    assert "plays tic_tac_toe, not shogi" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("position startpos\ngo\n"))
    assert main(["usi", str(tmp_path / "shogi")]) == 0
    assert "bestmove" in capsys.readouterr().out
