"""Sweeps that train: small ones of tic-tac-toe, by every way that a CPU has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.sweep.executor import ProcessExecutor
from sparring.sweep.file import read_sweep
from sparring.sweep.search import TrialSearch, confirm
from sparring.sweep.settings import check_points, config_at
from sparring.sweep.storage import TRIALS, SweepFolder
from sparring.sweep.trials import (
    DONE,
    FAILED,
    PRUNED,
    Evaluation,
    Executor,
    Trial,
    TrialJob,
    best_of,
    never_prune,
)
from sweep.sweep_helpers import Direct, write_sweep

HEAD = """
game = "tic_tac_toe"
updates = 4
device = "cpu"
threads = 1
[net]
hidden = [16]
[collect]
games = 16
steps = 8
[ppo]
minibatch = 64
[eval]
games = 64
final_games = 128
"""
RANGES = """
"ppo.lr" = { low = 1e-4, high = 1e-2, log = true }
"ppo.epochs" = [1, 2]
"""


def swept(place: Path, path: Path, executor: Executor) -> list[Trial]:
    file = read_sweep(str(path))
    config = check_points(file)
    folder = SweepFolder.make(place, path.read_bytes(), {})
    try:
        return TrialSearch(file, folder, executor, config).run()
    finally:
        executor.close()


def said(trials: Sequence[Trial]) -> list[object]:
    """What does not depend on the clock."""
    return [(t.settings, t.state, t.value, t.low, t.high, t.decisions, t.seed) for t in trials]


def test_two_trials_of_a_few_updates(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 2", HEAD)
    trials = swept(tmp_path / "out", path, Direct("strength"))
    assert [trial.state for trial in trials] == [DONE, DONE]
    for trial in trials:
        assert trial.value is not None
        assert trial.low is not None
        assert trial.high is not None
        assert 0 <= trial.low <= trial.value <= trial.high <= 1
        assert trial.decisions == 4 * 16 * 8
        assert trial.curve[-1][2] == trial.value
        assert json.loads((Path(trial.run) / "events.json").read_text())[-1]["why"] == "done"
    lines = (tmp_path / "out" / TRIALS).read_text().splitlines()
    assert len(lines) == 4  # two that begin, two that end


@pytest.mark.slow
def test_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 3", HEAD)
    slow = swept(tmp_path / "slow", path, Direct("strength"))
    fast = swept(tmp_path / "fast", path, ProcessExecutor("strength", at_once=1, threads=1))
    assert said(fast) == said(slow)


@pytest.mark.slow
def test_tasks_of_ray_find_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from sparring.sweep.ray_executor import RayExecutor

    path = write_sweep(tmp_path, RANGES, "trials = 2", HEAD)
    slow = swept(tmp_path / "slow", path, Direct("strength"))
    tasks = swept(tmp_path / "tasks", path, RayExecutor("local", "strength", at_once=1))
    for here, there in zip(slow, tasks, strict=True):
        assert there.settings == here.settings
        assert (there.value, there.low, there.high) == pytest.approx(
            (here.value, here.low, here.high)
        )
        assert there.decisions == here.decisions


@pytest.mark.slow
def test_a_population_that_is_refused_is_trained_in_smaller_parts(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 2", HEAD)
    executor = ProcessExecutor("strength", at_once=2, threads=1, populations=True)
    executor.shared = ("ppo.epochs",)
    trials = swept(tmp_path / "out", path, executor)  # there is no GPU for a population here
    assert [trial.state for trial in trials] == [DONE, DONE]
    assert trials[0].settings["ppo.epochs"] == trials[1].settings["ppo.epochs"]


@pytest.mark.slow
def test_a_process_that_dies_is_a_failed_trial_and_nothing_is_left(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 2", HEAD.replace("updates = 4", "minutes = 5"))
    file = read_sweep(str(path))
    executor = ProcessExecutor("strength", at_once=2, threads=1)
    jobs = [
        TrialJob(Trial(n, {}), config_at(file, {}, seed=n, name=f"t{n}", folder=str(tmp_path)))
        for n in range(2)
    ]
    executor.begin(jobs, never_prune)
    pids = [child.process.pid for child in executor._children]
    os.kill(pids[0], signal.SIGKILL)
    (ended,) = executor.wait()
    assert (ended.number, ended.state) == (0, FAILED)
    assert "killed" in ended.why
    assert executor.free == 1
    executor.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
def test_a_process_that_dies_while_it_waits_says_nothing_twice(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 1", HEAD)
    config = config_at(read_sweep(str(path)), {}, name="t", folder=str(tmp_path))
    executor = ProcessExecutor("strength", at_once=2, threads=1)
    executor.begin([TrialJob(Trial(0, {}), config)], never_prune)
    assert [ended.number for ended in executor.wait()] == [0]
    (child,) = executor._children
    child.process.kill()
    child.process.wait()
    assert executor._hear(child) == []
    assert executor.free == 2
    executor.close()


@pytest.mark.slow
def test_a_hopeless_trial_is_stopped_in_its_process(tmp_path: Path) -> None:
    long = HEAD.replace("updates = 4", "decisions = 1000000") + "every_decisions = 512\n"
    path = write_sweep(tmp_path, RANGES, "trials = 1", long)
    file = read_sweep(str(path))
    executor = ProcessExecutor("strength", at_once=1, threads=1)

    def judge(_number: int, curve: Sequence[Evaluation]) -> str:
        return "below the others" if len(curve) > 1 else ""

    config = config_at(file, {}, name="t", folder=str(tmp_path))
    executor.begin([TrialJob(Trial(0, {}), config)], judge)
    found: list[Trial] = executor.wait()
    executor.close()
    assert found[0].state == PRUNED
    assert found[0].why == "below the others"
    assert found[0].decisions < 100_000
    assert len(found[0].curve) > 1


@pytest.mark.slow
def test_settings_that_diverge_fail_and_say_so(tmp_path: Path) -> None:
    head = HEAD.replace("[ppo]", "[ppo]\nmax_grad_norm = 1e9\ntarget_kl = 0")
    ranges = '"ppo.lr" = [1e-3, 1e12]'
    path = write_sweep(tmp_path, ranges, "trials = 2", head.replace("updates = 4", "updates = 30"))
    trials = swept(tmp_path / "out", path, Direct("strength"))
    states = {trial.settings["ppo.lr"]: trial.state for trial in trials}
    assert states == {1e-3: DONE, 1e12: FAILED}
    assert all("diverged" in trial.why for trial in trials if trial.state == FAILED)


@pytest.mark.slow
def test_the_whole_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_sweep(tmp_path, RANGES, "trials = 2\nconfirm = 2", HEAD)
    assert main(["sweep", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    folder = tmp_path / "sweeps" / "tried"
    assert len(told["trials"]) == 2
    assert told["confirmed"]["difference"]["low"] is not None
    assert len(told["confirmed"]["best"]) == len(told["confirmed"]["preset"]) == 2
    assert all(Path(name).stat().st_size for name in told["pictures"])
    assert (folder / "best.toml").exists()
    # Once more: all is there, and nothing is trained.
    before = (folder / TRIALS).read_bytes()
    assert main(["sweep", str(folder)]) == 0
    assert (folder / TRIALS).read_bytes() == before
    assert "over 2 fresh seeds" in capsys.readouterr().out
    assert main(["sweep", str(path), "--sampler", "random"]) == 2
    assert "sweep.sampler was 'tpe', is 'random'" in capsys.readouterr().err
    words = ["train", "--config", str(folder / "best.toml"), "--updates", "1", "--dry-run"]
    assert main([*words, "--device", "cpu"]) == 0


@pytest.mark.slow
def test_ctrl_c_saves_and_tells_how_to_go_on(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "trials = 60\nconfirm = 0\nat_once = 1", HEAD)
    words = [sys.executable, "-m", "sparring", "sweep", str(path)]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    until, line = time.monotonic() + 60, ""
    while not line.startswith("trial 0") and time.monotonic() < until:
        line = process.stderr.readline()
    inside = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(30) == 130
    assert "continue with: sparring sweep sweeps/tried" in rest
    assert inside
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    records = SweepFolder(tmp_path / "sweeps" / "tried").trials
    assert records.ended[0].state == DONE
    assert len(records.lost) <= 1


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(place.parent.name))
    return found


@pytest.mark.slow
def test_the_best_setting_is_measured_over_many_games(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, RANGES, "confirm = 1", HEAD)
    file, folder = read_sweep(str(path)), SweepFolder.make(tmp_path / "out", path.read_bytes(), {})
    best = Trial(0, {"ppo.lr": 1e-3, "ppo.epochs": 2}, DONE, 0.5)
    found = confirm(file, folder, Direct("strength"), best)
    assert best_of([best]) is best
    for run in found.runs:
        results = json.loads((Path(run) / "results.json").read_text())["results"]
        assert all(one["games"] == 128 for one in results.values())
