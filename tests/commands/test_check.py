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
