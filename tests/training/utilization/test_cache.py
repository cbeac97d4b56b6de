"""What was measured is kept once per machine, and whatever becomes of the file harms nobody."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparring.machine import cores
from sparring.training.callbacks import Callbacks
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of
from sparring.training.planning.training import run_plan
from sparring.training.records import metrics
from sparring.training.train import complete, train_with
from sparring.training.utilization import cache, peaks
from sparring.training.utilization.cache import MeasurementCache
from sparring.training.utilization.monitor import monitor_run
from sparring.training.utilization.peaks import ComputeDevice, saved_peaks
from sparring.training.utilization.share import MinibatchTimings

ONE_THREAD = ComputeDevice("cpu", 1)
SMALL: dict[str, Any] = {
    "device": "cpu",
    "threads": 1,
    "net": {"hidden": (16,)},
    "collect": {"games": 16, "steps": 16},
    "ppo": {"minibatch": 64},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARRING_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARRING_CACHE", str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv("SPARRING_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "sparring"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "sparring"


def test_what_is_kept_is_there_for_the_next_process_and_can_be_dropped(folder: Path) -> None:
    MeasurementCache().put("a", rate=2.0)
    MeasurementCache().put("b", rate=3.0)
    assert MeasurementCache().numbers("a", "rate") == [2.0]
    assert [path.name for path in folder.iterdir()] == [cache.file().name]
    MeasurementCache().drop(["a", "c"])
    assert (MeasurementCache().numbers("a", "rate"), MeasurementCache().numbers("b", "rate")) == (
        None,
        [3.0],
    )


def test_what_a_busy_moment_gave_is_measured_again_in_a_calm_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_load(load: float) -> None:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))

    set_load(2.0 * cores())
    MeasurementCache().put("a", rate=1.0)
    assert not MeasurementCache().measured_under_load("a")  # now is no better
    set_load(0.1)
    assert MeasurementCache().measured_under_load("a")
    MeasurementCache().put("a", rate=2.0)
    assert not MeasurementCache().measured_under_load("a")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"text"',
        '{"format": 0, "entries": {"a": {"rate": 1.0}}}',
        '{"format": 2, "entries": []}',
        '{"format": 2, "entries": {"a": 3}}',
        '{"format": 2, "entries": {"a": {"rate": "fast"}}}',
        '{"format": 2, "entries": {"a": {"rate": -1}}}',
        '{"format": 2, "entries": {"a": {"rate": NaN}}}',
        '{"format": 2, "entries": {"a": {"rate": null}}}',
        "\x00\xff",
    ],
)
def test_a_damaged_or_old_file_counts_as_nothing_and_is_replaced(folder: Path, text: str) -> None:
    folder.mkdir()
    cache.file().write_text(text, "latin-1")
    assert MeasurementCache().numbers("a", "rate") is None
    MeasurementCache().put("a", rate=5.0)
    assert MeasurementCache().numbers("a", "rate") == [5.0]


@pytest.mark.parametrize("entry", [{}, {"now": 1}, {"now": "x", "ratios": [[1, 2]]}, {"ratios": 3}])
def test_a_damaged_pace_counts_as_none(entry: dict[str, Any]) -> None:
    assert MinibatchTimings.from_json(entry) is None
    whole = MinibatchTimings(64, ((16, 2.0, 2.5), (64, 1.0, 1.0)))
    assert MinibatchTimings.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    assert MinibatchTimings.from_json({**whole.to_json(), "ratios": [[16, -1.0, 2.0]]}) is None


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    MeasurementCache().put("a", rate=7.0)
    assert MeasurementCache().numbers("a", "rate") == [7.0]  # this process does not measure again
    MeasurementCache().drop(["a"])
    assert MeasurementCache().numbers("a", "rate") is None
    assert folder.read_text() == "a file where the folder should be"


def test_a_disk_that_is_full_or_read_only_is_none_either(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARRING_CACHE", str(small_disk))
    MeasurementCache().put("a", rate=1.0)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    MeasurementCache().put("a", rate=2.0)
    MeasurementCache().put("b", rate=3.0)
    assert (MeasurementCache().numbers("a", "rate"), MeasurementCache().numbers("b", "rate")) == (
        [2.0],
        [3.0],
    )


def test_other_threads_are_another_ceiling(folder: Path) -> None:
    store = MeasurementCache()
    for what, name in peaks.peak_names(ONE_THREAD).items():
        store.put(name, rate=float(len(what)))
    assert saved_peaks(ONE_THREAD, MeasurementCache()) == {
        "float32": 7.0,
        "bf16": 4.0,
        "memory": 6.0,
    }
    assert saved_peaks(ComputeDevice("cpu", 2), MeasurementCache()) == {}


def test_the_first_run_that_is_watched_measures_and_learns_as_if_it_had_not(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    calm = {"ppo": {"minibatch": 64, "lr": "1e-3", "entropy": "0.01"}}  # whatever the clock says
    asked = {**SMALL, **calm, "minutes": 1.0, "eval": {"off": True}, "tensorboard": False}
    config = complete("tic_tac_toe", "", asked)
    seen: list[Any] = []

    def stop(run: Any) -> None:
        seen.append(run.status.utilization)
        if run.status.update == 3:
            run.stop("seen enough")

    def trained(name: str, *, quiet: bool) -> tuple[Path, dict[str, Any]]:
        runs = replace(config, runs=str(tmp_path / name))
        agent = train_with(runs, quiet=quiet, callbacks=Callbacks(on_update=stop))
        assert agent.run is not None
        return agent.run, agent.policy.net.state_dict()

    alone, weights = trained("quiet", quiet=True)
    assert "charts/machine_share" not in metrics.read(alone)
    assert not folder.exists()
    watched, same = trained("watched", quiet=False)
    assert "measuring this machine with these settings: about two" in capsys.readouterr().err
    for name, value in weights.items():
        assert value.equal(same[name]), name
    assert len(metrics.read(watched)["charts/machine_share"][0]) == 2  # the first one warms up
    assert "of this machine" in seen[-1].line
    later, _ = trained("later", quiet=True)
    assert "charts/machine_share" in metrics.read(later)  # from what is kept
    plan = resolve(members_of(config))
    assert (
        monitor_run(run_plan(config), plan, make_learner(config, plan), quiet=False).timings
        is not None
    )
    assert "measuring" not in capsys.readouterr().err
    sizes = [name for name in MeasurementCache().entries if name.startswith("minibatches of 64,")]
    assert {one[0] for one in MeasurementCache().entries[sizes[0]]["ratios"]} == {16, 64, 256}
    monkeypatch.setattr(os, "getloadavg", lambda: (9e9, 0.0, 0.0))
    for name, entry in MeasurementCache().entries.items():
        MeasurementCache().put(name, **entry)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monitor_run(run_plan(config), plan, make_learner(config, plan), quiet=False)
    assert "settings again, because it was busy when it was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("budget", "quiet"),
    [({"minutes": 5.0}, True), ({"minutes": 0.5}, False), ({"updates": 9}, False)],
)
def test_nothing_is_measured_for_nobody_or_for_a_moment(
    folder: Path, capsys: pytest.CaptureFixture[str], budget: dict[str, float], quiet: bool
) -> None:
    config = complete("tic_tac_toe", "", {**SMALL, **budget})
    plan = resolve(members_of(config))
    learner = make_learner(config, plan)
    monitor = monitor_run(run_plan(config), plan, learner, quiet=quiet)
    assert monitor.add_update(learner.iterate(0.0), 1.0, {}) is None
    assert monitor.add_update(learner.iterate(0.0), 1.0, {}) is None
    assert not folder.exists()
    assert capsys.readouterr().err == ""
