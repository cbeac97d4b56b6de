"""Benchmarks that hold sides against each other: words, cores, times, and that they still run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from sparring.errors import ConfigError

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield import_module


def test_a_side_is_typed_as_settings_and_variables(load: Load) -> None:
    read_side = load("sides.words").read_side
    table, variables = read_side(
        "collect.cpu=torch net.hidden=[8,8] ppo.lr=1e-3 net.no-such=true set=rounds=2 set=a=1 X_Y=z"
    )
    assert table == {
        "collect": {"cpu": "torch"},
        "net": {"hidden": [8, 8], "no_such": True},
        "ppo": {"lr": 1e-3},
        "set": ["rounds=2", "a=1"],
    }
    assert variables == {"X_Y": "z"}
    with pytest.raises(ConfigError, match="'fast' is no setting; write name=value"):
        read_side("fast")


def test_runs_side_by_side_have_cores_of_their_own(load: Load) -> None:
    cores = load("sides.cores")
    assert cores.read_cores("2,3,8-10,3") == [2, 3, 8, 9, 10]
    there = sorted(os.sched_getaffinity(0))
    assert cores.core_groups("", 1, 1) == [(there[0],)]
    groups = cores.core_groups("", 1, len(there))
    assert len({core for group in groups for core in group}) == len(there)
    with pytest.raises(ConfigError, match="run fewer at once"):
        cores.core_groups("", 1, len(there) + 1)
    with pytest.raises(ConfigError, match="no core 99999"):
        cores.core_groups("99999", 1, 1)
    with pytest.raises(ConfigError, match="give numbers of cores"):
        cores.core_groups("2-x", 1, 1)


def test_all_jobs_are_done_and_one_that_fails_is_told(load: Load) -> None:
    side_by_side = load("sides.cores").side_by_side
    core = min(os.sched_getaffinity(0))
    found: dict[int, int] = {}
    side_by_side([3, 4, 5], [(core,), (core,)], lambda job, _: job * job, found.__setitem__)
    assert found == {3: 9, 4: 16, 5: 25}
    with pytest.raises(ZeroDivisionError):
        side_by_side([1, 0], [(core,)], lambda job, _: 1 // job, found.__setitem__)


@pytest.mark.parametrize(
    ("wins", "after"),
    [
        ((0.1, 0.3, 0.5, 0.7), 25.0),  # halfway between the second and the third
        ((0.1, 0.5, 0.3, 0.5), 35.0),  # the first time was luck
        ((0.4, 0.6), 10.0),  # there from the first measurement on
        ((0.1, 0.2, 0.4), 30.0),  # the last one has nobody behind it
        ((0.1, 0.4, 0.3), None),
    ],
)
def test_a_strength_counts_when_it_is_there_to_stay(
    load: Load, wins: tuple[float, ...], after: float | None
) -> None:
    moments = [10.0 * at for at in range(1, len(wins) + 1)]
    found = load("sides.reaching").reached_after(moments, wins, 0.4)
    assert found == (after if after is None else pytest.approx(after))


def test_a_seed_that_never_arrives_is_later_than_all_others(load: Load) -> None:
    typical = load("sides.reaching").typical
    assert typical([10.0, None, 30.0]) == 30.0
    assert typical([10.0, None, None]) is None


def run_script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / name), *words], capture_output=True, text=True, check=False
    )


SMALL = "collect.games=16 collect.steps=16 ppo.minibatch=128 net.hidden=[16]"


@pytest.mark.slow
def test_two_trees_are_timed_in_turn() -> None:
    words = ("--before", str(ROOT / "src"), "--with", SMALL, "--threads", "1", "--rounds", "2")
    done = run_script("update_speed.py", *words, "--seconds", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    before, now = json.loads(done.stdout)["sides"]
    assert before["ratio"]["median"] == 1.0
    assert len(now["turns"]) == 2
    for side in (before, now):
        assert side["gflops"]["median"] > 0
        assert 0 < side["gflops_share"] < side["gflops_dense_share"]
    assert before["density"] == now["density"]


@pytest.mark.slow
def test_everybody_is_measured_at_moments_of_training_time() -> None:
    pytest.importorskip("sb3_contrib")
    words = ("--seconds", "2", "--every", "1", "--seeds", "1", "--games", "8", "--cores", "1")
    done = run_script("time_to_quality.py", *words, "--ours", "preset", "same", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert list(told["contestants"]) == ["maskable", "preset", "same"]
    assert told["target"] == told["contestants"]["maskable"]["win"]
    for one in told["contestants"].values():
        (run,) = one["runs"]
        assert run["curve"][-1]["seconds"] >= 2
        assert run["samples_per_s"] > 0
