"""What commands say while they are under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring.cli import main
from sparring.commands.shared import printing
from sparring.speed import profiling
from sparring.speed.curves import CurveReader


def test_steps_count_from_one_to_all_and_amounts_are_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "LINE_EVERY_S", -1.0)
    with printing.ProgressBar("measuring", 3) as steps:
        for name in ("rule_easy", "rule_hard", "captain"):
            steps.next(name)
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["(1/3)", "(2/3)", "(3/3)"]
    with printing.ProgressBar("playing", 64) as games:
        for played in (0, 64):
            games.reach(played, "games")
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["(0/64)", "(64/64)"]


SMALL = "tic_tac_toe --updates 1 --collect.games 4 --collect.steps 16 --net.hidden 8 --threads 1"


def test_a_run_says_when_it_is_measured_and_what_ctrl_c_leaves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [*SMALL.split(), "--eval.off", "--eval.final-games", "7", "--runs", str(tmp_path)]
    line = "sparring: trained; measuring 8 games against each of random, careful; Ctrl-C leaves"
    assert main(["train", *words]) == 0
    assert line in capsys.readouterr().err
    assert main(["train", *words, "--json"]) == 0
    assert line not in capsys.readouterr().err


class Curves(CurveReader):
    """A training that makes an update between any two looks."""

    made = 0

    def last_update(self) -> int:
        self.made += 1
        return self.made


def test_a_profile_by_updates_says_how_many_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(profiling, "POLL_S", 0.0)
    said: list[str] = []

    def watch(seconds: float, updates: int) -> None:
        profiler = profiling.TrainingProfiler(
            0, tmp_path, profiling.SamplingOptions(), said.append, lambda: None
        )
        profiler.curves = Curves(tmp_path)
        profiler.wait("sampling", seconds, updates)

    watch(3600.0, updates=3)
    assert said == ["sampling: update 2, 2 updates left", "sampling: update 3, 1 update left"]
    said.clear()
    watch(0.01, updates=0)
    assert said[0] == "sampling: update 2, 0 s left"
