"""Where trials are trained, and what their confirmation takes there."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring.sweep.sweep as sweeps
from sparring.cli import main
from sparring.config.tools import SweepConfig
from sparring.sweep.file import read_sweep
from sparring.sweep.settings import config_at
from sparring.sweep.storage import SweepFolder
from sparring.sweep.sweep import TrialPlacement, choose_placement
from sweep.sweep_helpers import write_sweep

LR = '"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }\n'
SHAPES = '"ppo.epochs" = [1, 2]\n"net.hidden" = [[16], [32]]\n'


def placed(tmp_path: Path, ranges: str) -> TrialPlacement:
    file = read_sweep(str(write_sweep(tmp_path, ranges)))
    return choose_placement(file, config_at(file, {}), SweepConfig(""))


def test_a_population_is_more_than_one_setting_with_several_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "uses_gpu", lambda _: True)  # as on a machine that has one
    monkeypatch.setattr(sweeps, "populated", lambda _: True)
    together = placed(tmp_path, LR + SHAPES)
    assert (together.kind, together.at_once) == ("populations", 8)
    assert together.shared == ("ppo.epochs", "net.hidden")
    apart = placed(tmp_path, SHAPES)
    assert (apart.kind, apart.at_once, apart.shared) == ("processes", 1, ())


def test_settings_that_cannot_be_one_population_are_confirmed_one_after_the_other() -> None:
    together = TrialPlacement("populations", 8, 1).confirm_s(3, 60.0)
    apart = TrialPlacement("populations", 8, 1, shared=("ppo.epochs",))
    assert apart.confirm_s(3, 60.0) == together + 60.0 + 8.0
    assert apart.confirm_s(0, 60.0) == 0


def test_a_folder_goes_on_in_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_sweep(tmp_path, LR, "trials = 2")
    folder = SweepFolder.make(tmp_path / "out", path.read_bytes(), {})
    assert main(["sweep", str(folder.path), "--out", str(tmp_path / "other")]) == 2
    assert "leave it out" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
