"""Worker processes play the very games of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pools.workers.helpers import assert_same, copied
from sparring.errors import ConfigError, IllegalActionError
from sparring.pools.custom import make_pool
from sparring.pools.lineups import Lineup
from sparring.pools.workers import WorkerPool
from sparring.pools.workers.parts import parts_of

GAMES, STEPS = 7, 40
ENVS = ("cards", "walk", "table", "parallel")
WORKERS = ((1, 3), (2, 0), (3, 2))
QUICK = {("cards", 2, 0), ("parallel", 1, 3)}
"""In the quick suite; starting processes takes a second each time."""
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in ((name, *ways) for name in ENVS for ways in WORKERS)
]


def tables(name: str) -> str:
    return f"own_envs:make_{name}"


@pytest.mark.parametrize(("name", "workers", "groups"), CASES)
def test_all_arrays_are_those_of_one_process(name: str, workers: int, groups: int) -> None:
    """Step for step: rows, masks, rewards, ends, last observations, line-ups and memory."""
    same: dict[str, Any] = {"seed": 3, "first_game": 2, "memory": 16}
    alone = make_pool(tables(name), GAMES, **same)
    with WorkerPool(tables(name), GAMES, workers=workers, groups=groups, **same) as pool:
        assert pool.rules.plain() == alone.rules.plain()
        if alone.rules.seats > 1:
            for one in (alone, pool):
                one.set_lineups([Lineup((0, 0)), Lineup((0, 1), shuffle=True)])
        assert_same(pool.reset(), alone.reset())
        rng = np.random.default_rng(1)
        for step in range(STEPS):
            if step == 20:
                assert_same(pool.reset(seed=9), alone.reset(seed=9))
            if step == 25:
                for one in (alone, pool):
                    one.set_rewards({"reward": 0.5})
            kept = rng.integers(0, 255, alone.memory.shape, np.uint8)
            alone.memory[:], pool.memory[:] = kept, kept
            action = alone.sample_actions()
            assert_same(pool.step(action), alone.step(action))


@pytest.mark.slow
def test_groups_step_at_their_own_pace() -> None:
    """However far a group is ahead of others: it plays what it plays in one process."""
    alone = make_pool(tables("cards"), GAMES, seed=5)
    with WorkerPool(tables("cards"), GAMES, workers=2, groups=5, seed=5) as pool:
        whole, slots = [copied(alone.reset())], range(pool.slots)
        actions = []
        for _ in range(12):
            actions.append(alone.sample_actions())
            whole.append(copied(alone.step(actions[-1])))
        pool.reset()
        assert [len(pool.batch(slot).policy) for slot in slots] == [1, 2, 1, 1, 2]
        at, waiting, seen = dict.fromkeys(slots, 0), set(), 0
        rng = np.random.default_rng(2)
        while min(at.values()) < 12:
            idle = [slot for slot in slots if slot not in waiting and at[slot] < 12]
            for slot in idle:
                if rng.random() < 0.5:
                    first, count = pool.batch(slot).first, len(pool.batch(slot).policy)
                    pool.send(actions[at[slot]][first : first + count], slot)
                    waiting.add(slot)
            for slot in pool.ready(waiting, timeout_s=30) if waiting else ():
                batch, waiting, at[slot] = pool.recv(slot), waiting - {slot}, at[slot] + 1
                assert_stretch(batch, whole[at[slot]])
                seen += len(batch.final_game)
        assert seen == sum(len(step["final_game"]) for step in whole)


def assert_stretch(batch: Any, whole: dict[str, Any]) -> None:
    """Compare a group's batch with its stretch of a whole one."""
    first, games = batch.first, len(batch.terminated)
    ends = (whole["final_game"] >= first) & (whole["final_game"] < first + games)
    for name, array in copied(batch).items():
        wanted = whole[name][ends] if name.startswith("final") else whole[name][first:][:games]
        np.testing.assert_array_equal(array, wanted - first if name == "final_game" else wanted)


@pytest.mark.slow
def test_nothing_is_ready_before_it_was_sent_and_waiting_has_a_bound() -> None:
    with WorkerPool(tables("sleepy_cards"), 2, workers=1) as pool:
        pool.reset()
        pool.send(pool.sample_actions()[:1], 0)
        assert pool.ready([0], timeout_s=0) == []
        with pytest.raises(IllegalActionError, match="group 0 is being stepped"):
            pool.send([0], 0)
        assert pool.ready([0]) == [0]
        pool.recv(0)


@pytest.mark.slow
def test_illegal_actions_are_refused_before_anything_is_stepped() -> None:
    with WorkerPool(tables("cards"), 4, workers=2) as pool:
        before = copied(pool.reset())
        action = pool.sample_actions()
        wrong = action.copy()
        wrong[3] = np.flatnonzero(pool.batch().mask[3] == 0)[0]
        with pytest.raises(IllegalActionError, match="Cards env 3, seat 0"):
            pool.step(wrong)
        with pytest.raises(IllegalActionError, match="Cards env 3"):
            pool.send(wrong[3:], 3)
        assert_same(pool.batch(), before)
        assert pool.step(action) is pool.batch()


@pytest.mark.slow
def test_flags_reach_every_process() -> None:
    word = "pools.workers.faulty_envs:make_trouble"
    with WorkerPool(word, 3, workers=2) as pool:
        pool.reset()
        pool.set_config(speed=6)
        pool.step(np.zeros(3, np.int64))
        assert pool.step(np.zeros(3, np.int64)).truncated.all()
        with pytest.raises(ConfigError, match="has no flags color"):
            pool.set_config(color="red")
        with pytest.raises(ConfigError, match="cannot be sent"):
            pool.set_config(speed=object())


@pytest.mark.parametrize(
    ("word", "workers", "groups", "said"),
    [
        pytest.param(
            *("own_envs:make_vector", 2, 0, "makes a vector of 4 envs.*--workers 0"),
            marks=pytest.mark.slow,
        ),
        ("own_envs:make_trouble", 1, 0, "the simulator's port is taken"),
        ("own_envs:make_cards", 5, 0, "workers 5: there are 4 games; give 1..4"),
        ("own_envs:make_cards", 2, 9, "env.groups 9: there are 4 games"),
        pytest.param(
            *("own_envs:make_nobody", 1, 0, "own_envs has no 'make_nobody'"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_cannot_be_made_is_told_in_a_line(
    word: str, workers: int, groups: int, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        WorkerPool(word, 4, workers=workers, groups=groups)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("games", [1, 5, 16])
@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("groups", [0, 1, 2, 5, 16])
def test_every_game_is_in_one_part(games: int, workers: int, groups: int) -> None:
    if workers > games or groups > games:
        return
    parts = parts_of(games, workers, groups)
    assert [g for part in parts for g in range(part.first, part.first + part.games)] == [
        *range(games)
    ]
    assert [part.index for part in parts] == [*range(len(parts))]
    assert {part.worker for part in parts} == {*range(workers)}
    slots = [part.slot for part in parts]
    assert slots == sorted(slots)
    assert {*slots} == {*range(slots[-1] + 1)}
    assert slots[-1] + 1 <= (groups or 2 * workers)
