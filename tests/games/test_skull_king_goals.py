"""A round seen in hindsight is the round in which the other bid had been made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sparring import _native
from sparring.errors import ConfigError
from sparring.pools.native import Pool

REWARDS = {"score_delta": (1.0, 0.5), "manager": (0.25, 0.0), "worker": (0.0, 2.0)}
LAST = 1 << 30
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rascal": {"scoring": "RASCAL", "obs": "COMPACT", "history": 1},
    "cannonball": {"scoring": "RASCAL", "cannonball": 1, "phase_embed": 1, "open_bids": 1},
    "ghost": {"num_players": 2, "history": 1, "phase_embed": 1},
    "six": {"num_players": 6, "deck": "CLASSIC66"},
}


@dataclass
class Played:
    """Every step of some games, by step and game."""

    obs: npt.NDArray[np.uint8]
    mask: npt.NDArray[np.uint8]
    seat: npt.NDArray[np.int8]
    action: npt.NDArray[np.int32]
    reward: npt.NDArray[np.float32]
    record: npt.NDArray[np.uint32]
    over: npt.NDArray[np.bool_]


def play(config: dict[str, Any], games: int, steps: int, given: Any = None) -> Played:
    """Play one round after the other: by lot, or as `given` says."""
    flags = {**config, "episode": "ROUND"}
    pool = Pool("skull_king", games, seed=5, threads=1, config=flags, rewards=REWARDS, records=True)
    batch, kept = pool.reset(), []
    for step in range(steps):
        action = (pool.sample_actions() if given is None else given[step]).copy()
        row = batch.obs.copy(), batch.mask.copy(), batch.seat.copy(), action
        pool.step(action)
        kept.append((*row, batch.reward.copy(), batch.record.copy(), batch.terminated.copy()))
    return Played(*(np.array(column) for column in zip(*kept, strict=True)))


def records_behind(played: Played) -> npt.NDArray[np.uint32]:
    """The record that every seat's round had in the end, by step and game; 0 if it never ended."""
    found = np.zeros_like(played.record)
    comes = np.zeros_like(played.record[0])
    for step in reversed(range(len(found))):
        comes = np.where(played.over[step][:, None], played.record[step], comes)
        found[step] = comes
    return found


def check_hindsight(config: dict[str, Any], games: int, steps: int) -> int:
    """Play rounds, and once more with the bid that came true; return how many were compared."""
    rules = Pool("skull_king", 1, threads=1, config={**config, "episode": "ROUND"}).rules
    goals = _native.Goals(rules.native)
    real = play(config, games, steps)
    records, every = records_behind(real), np.arange(games)
    episode = np.cumsum(real.over, axis=0) - real.over
    target = (episode + every) % rules.seats  # whose bid is changed, another one every round
    record = np.take_along_axis(records, target[..., None], 2)[..., 0]
    bids, own = real.mask[:, :, 0] == 1, real.seat == target
    given = real.action.copy()
    for step, game in np.argwhere(bids & own & (record != 0)):
        given[step, game] = goals.action(goals.achieved_goal(int(record[step, game])))
    other = play(config, games, steps, given)
    assert np.array_equal(other.mask, real.mask)

    relabeled, action = real.obs.copy(), real.action.copy()
    chosen = own & (record != 0)
    rows, answers = relabeled[chosen], action[chosen]
    done = np.zeros(len(rows), np.uint8)
    goals.relabel(record[chosen], rows, real.mask[chosen], answers, done)
    assert done.all()
    assert np.array_equal(rows, other.obs[chosen])
    assert np.array_equal(answers, other.action[chosen])

    stage = np.array([[goals.decision(row)[1] for row in rows] for rows in real.obs])
    behind = np.where(real.over[:-1], LAST, stage[1:])
    weights = rules.weights(REWARDS)
    for step, game in np.argwhere(record[:-1] != 0):
        one, at = int(record[step, game]), (step, game, target[step, game])
        for role in range(2):
            span = int(stage[step, game]), int(behind[step, game])
            for goal, paid in ((goals.desired_goal(one), real), (goals.achieved_goal(one), other)):
                said = goals.goal_reward(weights, role, one, goal, *span)
                assert np.float32(said) == paid.reward[at][role]
    return int((record[:-1] != 0)[real.over[:-1]].sum())


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_and_rewards_are_those_of_the_other_bid(name: str) -> None:
    assert check_hindsight(CONFIGS[name], games=48, steps=160) > 100


@pytest.mark.slow
def test_ten_thousand_rounds() -> None:
    compared = sum(check_hindsight(config, games=250, steps=300) for config in CONFIGS.values())
    assert compared > 10_000


def test_a_row_says_role_and_stage() -> None:
    flags = {"scoring": "RASCAL", "cannonball": 1}
    pool = Pool("skull_king", 8, seed=1, threads=1, config=flags)
    goals, batch, before = _native.Goals(pool.rules.native), pool.reset(), np.full(8, -1)
    for _ in range(400):
        pool.step(pool.sample_actions())
        rows = np.array([goals.decision(row) for row in batch.obs])
        assert np.array_equal(rows[:, 0], batch.role)
        assert np.array_equal(rows[:, 2], batch.mask[:, 0])
        assert (rows[:, 0][rows[:, 2] == 1] == goals.role).all()
        assert (rows[:, 1] >= np.where(batch.terminated, 0, before)).all()
        before = rows[:, 1]


def test_records_are_kept_only_where_they_tell_everything() -> None:
    with pytest.raises(ConfigError, match=r"abilities=1: .*set abilities=0"):
        Pool("skull_king", 1, config={"abilities": 1}, records=True)
    with pytest.raises(ConfigError, match="tic_tac_toe has no goals"):
        Pool("tic_tac_toe", 1, records=True)


def test_records_change_nothing_else() -> None:
    digests = set()
    for records in (False, True):
        pool = Pool("skull_king", 16, seed=2, threads=1, records=records)
        batch = pool.reset()
        pool.run_random(100)
        digests.add(pool.digest())
        assert batch.record.shape == (16 if records else 0, 4)
    assert len(digests) == 1
