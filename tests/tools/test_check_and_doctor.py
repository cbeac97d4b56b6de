from __future__ import annotations

import builtins
import json
from typing import Any

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


def test_doctor_reports_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    names = {finding["name"] for finding in report["findings"]}
    parts = {"python", "numpy", "torch", "native core", "self-test", "disk", "terminal"}
    assert parts <= names
    assert {"extra gymnasium", "extra sb3"} <= names
    assert report["healthy"] is True


def test_doctor_survives_without_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = builtins.__import__

    def without_torch(name: str, *more: Any, **named: Any) -> Any:
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return honest(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "note    torch: cannot be imported" in shown
    assert "pip install 'torch>=2.9'" in shown


def test_doctor_exits_3_on_a_broken_core(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Pool.digest
    monkeypatch.setattr(Pool, "digest", lambda self: honest(self) + (self.threads == 4))
    assert main(["doctor"]) == 3
    shown = capsys.readouterr().out
    assert "problem tic_tac_toe signature" in shown
    assert "reinstall" in shown
