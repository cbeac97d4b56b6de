from __future__ import annotations

import json

import pytest

from sparring import Pool
from sparring.cli import main


def test_check_prints_a_line_per_property(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "tic_tac_toe", "--games", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok   ") for line in lines[:-1])
    assert lines[-1] == "tic_tac_toe passed"


def test_check_with_flags_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = "check skull_king --games 1 --set num_players=3 --set rounds=1,2 --json"
    assert main(words.split()) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is True
    assert report["flags"]["num_players"] == 3
    assert len(report["findings"]) >= 9


def test_a_failed_check_exits_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Pool.digest
    monkeypatch.setattr(Pool, "digest", lambda self: honest(self) + self.threads)
    assert main(["check", "tic_tac_toe", "--games", "1"]) == 3
    shown = capsys.readouterr().out
    assert "FAIL threads and splits" in shown
    assert shown.endswith("tic_tac_toe FAILED\n")


def test_an_environment_is_checked_in_another_process_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "own_envs:make_cards", "--games", "3", "--set", "render_mode=ansi"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ok   other process: the same episodes" in lines
    assert lines[-1].startswith("own_envs:make_cards passed: gymnasium.Env, 3 episodes, 18 steps")


def test_what_is_wrong_with_an_environment_exits_3_and_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "proof.broken_envs:make_by_hash", "--games", "2", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    (wrong,) = [one for one in report["findings"] if one["verdict"] == "wrong"]
    assert (wrong["name"], wrong["seed"], wrong["step"]) == ("other process", 0, 0)
    assert "sort sets" in wrong["advice"]
    assert main(["check", "proof.broken_envs:Breaks", "--games", "1"]) == 3
    shown = capsys.readouterr().out
    assert "FAIL legal actions: seed 0, episode 0, step 4: step() raised ZeroDivision" in shown
    assert "?    same object: the env did not get that far" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("own_envs:make_nothing", "returns NoneType; it has to return"),
        ("own_envs:make_trouble", "OSError: the simulator's port is taken"),
        ("own_envs:make_cards --set size=3", "unexpected keyword argument 'size'"),
        ("own_envs:make_cards --set size", "set 'size' is not key=value"),
        ("own_envs:nobody", "has no 'nobody'"),
        ("no_such_file.py:make", "there is no file"),
        ("tic_tac_toe --seconds 3", "--seconds is for custom environments"),
    ],
)
def test_mistakes_are_one_line(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *words.split()]) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not shown.out
