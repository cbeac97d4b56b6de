"""Pools that are too large, too many threads, seeds without end: one line each, never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring import ConfigError, Pool, _native, machine
from sparring.cli import main
from sparring.config import TrainConfig
from sparring.learn.collect import Collector
from sparring.learn.fused.examples import room_for
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.memory import chains_of, learning_bytes, rollout_bytes
from sparring.phases import Timing
from sparring.pools.limits import bytes_per_game
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import merged

needs_corridor = pytest.mark.skipif(
    "corridor" not in _native.game_names(), reason="the game corridor is only in test builds"
)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"threads": 100_000}, r"threads=100000 must be 1\.\.1024; this machine has \d+ cores"),
        ({"threads": 0}, r"threads=0 must be 1\.\.1024"),
        ({"threads": -1}, r"threads=-1 must be 1\.\.1024"),
        ({"threads": "all"}, "threads='all' must be a whole number"),
        ({"num_games": 0}, "num_games=0 must be at least 1"),
        ({"num_games": 1.5}, r"num_games=1\.5 must be a whole number"),
        ({"num_games": 10**9}, r"num_games=1000000000: .* shogi would need 1\d\.\d TiB of memory"),
        ({"num_games": 2**62}, r"are free; at most \d+ games fit"),
        ({"num_games": 10**30}, r"are free; at most \d+ games fit"),
        ({"first_game": 2**32}, "games are numbered up to 4294967295"),
        ({"slots": 10**20}, "is more than num_games=4"),
        ({"memory": 2**40}, "must be a multiple of 16 bytes, at most 1048576"),
        ({"seed": 10**22}, "seed=10000000000000000000000 does not fit into 64 bits"),
        ({"seed": -(2**63) - 1}, "does not fit into 64 bits"),
        ({"seed": 0.5}, r"seed=0\.5 must be a whole number"),
    ],
)
def test_what_no_pool_can_have_is_refused_in_one_line(settings: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint) as caught:
        Pool("shogi", **{"num_games": 4, **settings})
    assert "\n" not in str(caught.value)


def test_as_many_games_fit_as_the_error_says() -> None:
    each = bytes_per_game(sparring.Rules("tic_tac_toe"))
    free = 1000 * each + each // 2
    machine.check_memory_budget("num_games", 1000, each, "games", free=free)
    with pytest.raises(ConfigError, match=r"num_games=1001: .*at most 1000 games fit"):
        machine.check_memory_budget("num_games", 1001, each, "games", free=free)
    arrays = ("obs", "mask", "seat", "role", "policy", "reward", "envs", "legal", "final_obs")
    native = Pool("tic_tac_toe", 100, threads=1)._native
    assert sum(getattr(native, name).nbytes for name in arrays) < native.array_bytes == 100 * each


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "1000\n", "memory.current": "400\n"}, 600 + 30),
        ({"memory.max": "max\n", "memory.current": "400\n"}, None),
        ({"memory.limit_in_bytes": "1000\n", "memory.usage_in_bytes": "990\n"}, 10 + 30),
        ({}, None),
    ],
)
def test_the_limit_of_a_container_counts(
    files: dict[str, str], left: int | None, tmp_path: Path
) -> None:
    for name, text in {**files, "memory.stat": "anon 5\ninactive_file 30\n"}.items():
        (tmp_path / name).write_text(text)
    assert machine.cgroup_memory(tmp_path) == left
    assert machine.cgroup_memory(tmp_path / "elsewhere") is None


def test_seeds_of_64_bits_are_all_taken() -> None:
    for seed in (-(2**63), -1, 0, 2**63, 2**64 - 1, np.int64(-7), np.uint64(2**63)):
        assert Pool("tic_tac_toe", 1, seed=seed).seed == int(seed) % 2**64
    pool = Pool("tic_tac_toe", 1)
    with pytest.raises(ConfigError, match="64 bits"):
        pool.reset(seed=2**64)
    with pytest.raises(ConfigError, match="64 bits"):
        sparring.new_state("tic_tac_toe", seed=2**64)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("threads", [1, 2])
def test_send_and_recv_work_with_one_slot(threads: int) -> None:
    pool = Pool("skull_king", 40, seed=3, threads=threads)
    twin = Pool("skull_king", 40, seed=3, threads=1)
    pool.reset()
    twin.reset()
    for _ in range(30):
        actions = pool.sample_actions()
        twin.step(actions)
        pool.send(actions)
        assert np.array_equal(pool.recv().obs, twin.batch().obs)
    pool.send(pool.sample_actions())  # never received: the pool still goes away


@needs_corridor
@pytest.mark.timeout(20)
@pytest.mark.parametrize("length", [3, 0])
def test_a_game_of_forced_decisions_alone_is_refused(length: int) -> None:
    config = {"length": length, "skip_forced": 1}
    pool = Pool("corridor", 100, config=config)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"corridor game \d+: no policy was asked .*skip_for"):
            pool.reset()
    with pytest.raises(ConfigError, match="corridor game 0"):
        sparring.new_state("corridor", config=config)
    assert Pool("corridor", 2, config={"length": 3}).reset().mask.tolist() == [[1, 0]] * 2


@needs_corridor
@pytest.mark.timeout(20)
@pytest.mark.parametrize("slots", [1, 2])
def test_a_game_that_stops_asking_is_refused_until_the_next_reset(slots: int) -> None:
    pool = Pool("corridor", 8, config={"length": 0, "door": 2, "skip_forced": 1}, slots=slots)
    pool.reset()
    for slot in range(slots):
        pool.send(pool.sample_actions(slot), slot)
    for slot in range(slots):
        with pytest.raises(ConfigError, match="no policy was asked"):
            pool.recv(slot)
    with pytest.raises(ConfigError, match="no policy was asked"):
        pool.sample_actions()
    with pytest.raises(ConfigError, match="no policy was asked"):
        pool.step(np.zeros(8, np.int32))
    assert pool.reset().obs[:, 0].tolist() == [1] * 8


@pytest.mark.parametrize("game", ["skull_king", "laser_hockey", "shogi"])
def test_a_copy_of_a_game_plays_what_the_pool_plays(game: str) -> None:
    rules = sparring.Rules(game)
    lineup = sparring.Lineup((0, *["random"] * (rules.seats - 1)))
    pool = Pool(rules, 3, seed=4, first_game=7, threads=1, lineups=[lineup])
    batch = pool.reset()
    copy = sparring.load_state(pool.state_of(1).serialize())
    for _ in range(40):
        rows = slice(rules.rows, 2 * rules.rows)
        row = int(np.flatnonzero(batch.policy[rows] == 0)[0])
        seat = int(batch.seat[rows][row])
        assert np.array_equal(copy.observe_bytes(seat), batch.obs[rows][row])
        actions = pool.sample_actions().copy()
        copy.apply(actions[rows] if rules.rows > 1 else actions[1])
        batch = pool.step(actions)
        assert copy.over == bool(batch.terminated[1] | batch.truncated[1])
        if copy.over:
            break
    with pytest.raises(ConfigError, match=r"game 3 is outside 0\.\.2"):
        pool.state_of(3)


def test_threads_and_memory_that_the_system_refuses_are_an_error() -> None:
    """Little address space leaves room for some stacks, not for all of them."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux limits the address space")
    program = """
import resource, sparring
pool = sparring.Pool("tic_tac_toe", 2, threads=1)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 400 * 2**20, resource.RLIM_INFINITY))
try:
    sparring.Pool("tic_tac_toe", 2, threads=900)
except sparring.ConfigError as wrong:
    print(wrong)
try:
    sparring.Pool("shogi", 50_000, threads=1)
except sparring.ConfigError as wrong:
    print(wrong)
pool.reset()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    threads, memory = done.stdout.splitlines()
    assert "of 899 threads could be started" in threads
    assert "num_games=50000: the system refuses" in memory


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--threads 100000", "threads 100000 must be from 0 to 1024"),
        ("--threads -1", "threads -1 must be from 0 to 1024"),
        ("--seed 10000000000000000000000", "must be at most 9,223,372,036,854,775,807"),
        ("--collect.games 100000000", "collect.games=100000000: the games and a rollout of 32 ste"),
        ("--collect.games 100000000000", "are free; at most"),
        ("--collect.steps 900000000000", "(collect.steps) would need"),
    ],
)
def test_a_run_that_does_not_fit_leaves_nothing(
    words: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--device", "cpu", "--runs", str(tmp_path / "runs")]
    assert main(["train", "tic_tac_toe", *words.split(), *options]) == 2
    said = capsys.readouterr().err
    assert hint in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_measuring_with_too_many_threads_ends_in_one_line() -> None:
    """In a process of its own: threads that were never made brought it down at its end."""
    words = ["eval", "random", "--game", "tic_tac_toe", "--games", "8", "--threads", "100000"]
    command = [sys.executable, "-m", "sparring", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "threads 100000 must be from 0 to 1024" in done.stderr


@pytest.mark.parametrize(
    ("game", "more"),
    [
        ("tic_tac_toe", {}),
        ("laser_hockey", {}),
        ("skull_king", {"hierarchy": {"on": True}, "hindsight": {"on": True}}),
    ],
)
def test_the_room_of_a_rollout_is_what_it_takes(game: str, more: dict[str, Any]) -> None:
    small = {"game": game, "device": "cpu", "collect": {"games": 10, "steps": 12}, **more}
    plan = resolve([merged(TrainConfig(), small, "test")])
    pool = plan.host_pool()
    actor: Any = None
    collector = Collector(
        pool, plan.collect, actor, ("log_prob", "value"), Timing(), by_role=plan.by_role
    )
    owners = (collector.rollout, collector.transitions)
    found = [value for owner in owners for value in vars(owner).values()]
    found += collector.rollout.columns.values()
    taken = sum(array.nbytes for array in found if isinstance(array, np.ndarray))
    kept = {"chains": chains_of(plan), "records": plan.hindsight.relabels}
    assert 10 * rollout_bytes(plan.rules, pool.row_bytes, 12, **kept) == taken


def test_the_room_on_a_gpu_has_all_that_a_hierarchy_in_hindsight_keeps() -> None:
    """Open decisions of every role, records, and the rows of examples."""
    small = {"hierarchy": {"on": True}, "hindsight": {"on": True, "share": 1.0}}
    config = {"game": "skull_king", "device": "cpu", "collect": {"games": 32, "steps": 12}, **small}
    plan = resolve([merged(TrainConfig(), config, "test")])
    rules, row_bytes = plan.rules, plan.rules.obs_bytes
    rollout = FusedRollout(
        rules,
        32,
        12,
        members=1,
        row_bytes=row_bytes,
        squash=False,
        device=torch.device("cpu"),
        chains=chains_of(plan),
        examples=room_for(32 * 12 * rules.rows, plan.hindsight.share),
    )
    taken = sum(one.nbytes for one in vars(rollout).values() if isinstance(one, torch.Tensor))
    cuts = rollout.cut_obs.nbytes
    room = rollout_bytes(rules, row_bytes, 12, chains=chains_of(plan), records=True)
    assert 32 * (room + learning_bytes(plan)) >= taken - cuts
