"""The folder of a sweep is data: whatever stands in its files, it is read or refused in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparring.config.tools import SweepConfig
from sparring.errors import ConfigError
from sparring.sweep.file import read_sweep
from sparring.sweep.search import remove_confirmation
from sparring.sweep.storage import CONFIRM, OPTIONS, SPENT, TRIALS, SweepFolder, TrialLog
from sparring.sweep.sweep import prepare
from sweep.sweep_helpers import write_sweep

DEEP = "[" * 100_000


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    path = write_sweep(tmp_path, '"ppo.lr" = { low = 1e-4, high = 1e-2 }', "trials = 2")
    return SweepFolder.make(tmp_path / "sweep", path.read_bytes(), {})


def write_line(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps({"number": 0, "settings": {"ppo.lr": 1e-3}, **entries}) + "\n")


@pytest.mark.parametrize(
    "entries",
    [
        {"number": "0"},
        {"number": -1},
        {"number": [0]},
        {"settings": []},
        {"state": "lost"},
        {"value": "0.5"},
        {"value": 10**400},
        {"curve": [[1, 2]]},
        {"curve": 1},
        {"seed": None},
        {"extra": []},
        {"\x1b[31m": 1},
    ],
    ids=str,
)
def test_a_line_that_is_no_trial_is_named(entries: dict[str, Any], folder: SweepFolder) -> None:
    write_line(folder.path / TRIALS, **entries)
    with pytest.raises(ConfigError, match="line 1 is damaged"):
        TrialLog(folder.path / TRIALS)


@pytest.mark.parametrize("line", ["7", "null", '"x"', "[]", DEEP])
def test_a_line_that_is_no_object_is_named(line: str, folder: SweepFolder) -> None:
    (folder.path / TRIALS).write_text(f"{line}\n")
    with pytest.raises(ConfigError, match="line 1 is damaged"):
        TrialLog(folder.path / TRIALS)


def test_no_folder_outside_of_a_sweep_is_removed(folder: SweepFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious-1"
    precious.mkdir()
    write_line(folder.path / CONFIRM, extra={"side": str(tmp_path / "precious"), "of": {}})
    with pytest.raises(ConfigError, match="damaged"):
        remove_confirmation(folder)
    assert precious.is_dir()


@pytest.mark.parametrize("extra", [{}, {"side": "best"}, {"of": {}}, {"side": "best", "of": 3}])
def test_a_run_that_confirms_says_what(extra: dict[str, Any], folder: SweepFolder) -> None:
    write_line(folder.path / CONFIRM, extra=extra)
    with pytest.raises(ConfigError, match="line 1 is damaged: extra"):
        remove_confirmation(folder)


@pytest.mark.parametrize("settings", [{"net.kind": "os:system"}, {"ppo.lr": 7}, {"ppo.lr": "1e-3"}])
def test_trials_have_only_what_the_ranges_have(
    settings: dict[str, Any], folder: SweepFolder
) -> None:
    write_line(folder.path / TRIALS, settings=settings)
    with pytest.raises(ConfigError, match=r"trial 0 has .* which no range of the sweep has"):
        prepare(SweepConfig(str(folder.path)))


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, '"ppo.lr" = [1e-3, 1e-4]', f"trials = {10**400}")
    with pytest.raises(ConfigError, match=r"sweep\.trials 1000"):
        read_sweep(str(path))


@pytest.mark.parametrize("text", ["7", "[]", DEEP, '{"seconds": 1e400}', '{"seconds": []}', "{"])
def test_damaged_notes_count_as_none(text: str, folder: SweepFolder) -> None:
    (folder.path / OPTIONS).write_text(text)
    (folder.path / SPENT).write_text(text)
    assert folder.spent_s == 0
    prepare(SweepConfig(str(folder.path)))
