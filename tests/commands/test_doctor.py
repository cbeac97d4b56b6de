from __future__ import annotations

import builtins
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from sparring import Pool
from sparring.cli import main
from sparring.commands.doctor import check_extras, measure_ceilings, show_ceilings


def test_doctor_reports_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    names = {finding["name"] for finding in report["findings"]}
    parts = {
        "python",
        "numpy",
        "torch",
        "native core",
        "self-test",
        "disk",
        "terminal",
        "web",
        "wasm",
    }
    assert parts <= names
    assert {"extra gymnasium", "extra sb3", "web", "wasm"} <= names
    assert report["healthy"] is True


@pytest.mark.slow
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


def test_doctor_survives_a_source_folder_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    (found,) = check_extras()
    assert (found.status, found.name) == ("note", "extras")
    assert "unknown" in found.detail


def test_doctor_exits_3_on_a_broken_core(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Pool.digest
    monkeypatch.setattr(Pool, "digest", lambda self: honest(self) + (self.threads == 4))
    assert main(["doctor"]) == 3
    shown = capsys.readouterr().out
    assert "problem tic_tac_toe signature" in shown
    assert "reinstall" in shown


def test_doctor_measures_the_machine_and_shows_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARRING_CACHE", str(tmp_path / "new"))
    findings = {finding.name: finding for finding in show_ceilings()}
    assert "--measure" in findings["ceilings"].todo
    assert not (tmp_path / "new").exists()
    for found in (list(measure_ceilings()), list(show_ceilings())):
        names = [finding.name for finding in found if finding.status == "ok"]
        for what in ("products in float32", "products in bf16", "memory"):
            assert f"ceiling of {what}" in names
        assert str(tmp_path / "new") in found[-1].detail
