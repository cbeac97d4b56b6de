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


def request(kind: str, **changes: object) -> dict[str, object]:
    small = {"game": "tic_tac_toe", "kind": kind, "seed": 0, "threads": 1, "minutes": 0.01}
    settings = {"collect": {"games": 16, "steps": 16}, "net": {"hidden": (8,)}}
    options = {"settings": settings, "device": "cpu", "points": 2, "match_games": 8}
    return {**small, **options, **changes}


def test_minutes_to_a_strength_are_measured_after_the_training(load: Load) -> None:
    """Checkpoints of tic-tac-toe have an exact exploitability; the table names mark and time."""
    minutes, sides = load("minutes"), load("sides.minutes")
    run = {"seed": 0, **sides.train(request("sparring"))}
    times = [at["seconds"] for at in run["curve"]]
    assert times == sorted(times)
    assert all(0 < at["value"] <= 1 for at in run["curve"])
    run["curve"][-1]["value"] = 0.15
    found = minutes.summed_up("tic_tac_toe", [run], "")
    assert found["times"]["0.2"]["median"] <= times[-1] / 60
    assert found["times"]["0.1"] == {"median": None, "seeds": [None]}
    game = {"minutes": 0.01, "contestants": {"sparring": found}, "match_games": 8, "trial": True}
    facts = {"sparring": "0.1.0", "commit": "abc", "date": "2026-01-01"}
    table = minutes.tables_of({"machine": "mine", "games": {"tic_tac_toe": game | facts}})
    assert "| trained by | to 0.5 | to 0.2 | to 0.1 |" in table
    assert "never (never) | 0.01 | 0.15 |" in table


def test_the_champion_is_a_mark_where_there_is_one(load: Load) -> None:
    minutes = load("minutes")
    curve = [
        {"seconds": 60.0 * at, "decisions": at, "value": share, "champion": share / 2}
        for at, share in ((1, 0.2), (2, 0.6), (3, 0.6))
    ]
    found = minutes.summed_up("skull_king", [{"curve": curve}], "champion")
    times = {mark: one["median"] for mark, one in found["times"].items()}
    assert times == {
        "0.5": pytest.approx(1.75),
        "0.8": None,
        "0.95": None,
        "champion": pytest.approx(1.75),
    }
    assert not minutes.fits("dqn", "skull_king")
    assert minutes.fits("sac", "laser_hockey")


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


@pytest.mark.slow
def test_peers_are_measured_beside_ours(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    out = tmp_path / "minutes.json"
    words = ("--minutes", "0.02", "--seeds", "1", "--points", "2", "--match-games", "12")
    games = ("--games", "tic_tac_toe", "laser_hockey", "cage2", "--cores", "1")
    done = run_script("minutes.py", *games, *words, "--device", "cpu", "--out", str(out))
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())["games"]
    assert list(told["tic_tac_toe"]["contestants"]) == ["sparring", "maskable_ppo", "dqn"]
    assert list(told["laser_hockey"]["contestants"]) == ["sparring", "sac"]
    assert "| cage2 | MaskablePPO |" in done.stdout
    assert "a trial, with few games" in done.stdout
