"""Collecting from groups of games that are answered whenever they are ready."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
import torch

from pools.workers.helpers import gone
from sparring.config import CollectConfig
from sparring.errors import SparringWarning
from sparring.learn.acting import ActorOutput, RngKeys
from sparring.learn.collect import Collector
from sparring.nets.sampling import ActionSampler
from sparring.phases import Timing
from sparring.pools.custom import make_pool
from sparring.pools.lineups import Lineup
from sparring.pools.workers import WorkerPool

GAMES = 6


class Uniform:
    """Any legal action, by the row's own random number; notes what was asked at once."""

    def __init__(self) -> None:
        self.sampler, self.asked = ActionSampler(4), [0]

    def act(self, obs: Any, mask: Any, keys: RngKeys) -> ActorOutput:
        self.asked.append(len({*np.atleast_1d(keys.step).tolist()}))
        heads = torch.zeros(mask.shape)
        action, log_prob = self.sampler.draw(
            heads, mask, rollout=keys.rollout, step=keys.step, rows=keys.rows
        )
        return ActorOutput(action, {"log_prob": log_prob})


class First:
    """The first legal action."""

    def act(self, obs: Any, mask: Any, keys: RngKeys) -> ActorOutput:
        assert isinstance(keys.one_step, int)
        return ActorOutput(mask.argmax(axis=1).astype(np.int32))


def collector(pool: Any, steps: int) -> Collector:
    pool.set_lineups([Lineup((0,) * pool.rules.seats), Lineup((1,) * pool.rules.seats)])
    made = Collector(
        pool, CollectConfig(games=GAMES, steps=steps), Uniform(), ["log_prob"], Timing()
    )
    made.actors[1] = First()
    return made


def kept(collector: Collector) -> dict[str, Any]:
    rollout, transitions = collector.rollout, collector.transitions
    names = ("seat", "role", "policy", "reward", "terminated", "truncated")
    arrays = {name: getattr(rollout, name).copy() for name in names}
    linked = {name: getattr(transitions, name).copy() for name in ("end", "next", "paid")}
    return {**{name: array.copy() for name, array in rollout.rows().items()}, **arrays, **linked}


@pytest.mark.parametrize(
    ("name", "steps", "groups"),
    [
        pytest.param("cards", 9, 0, marks=pytest.mark.slow),
        pytest.param("table", 9, 6, marks=pytest.mark.slow),
        pytest.param("parallel", 4, 3, marks=pytest.mark.slow),
        pytest.param("cards", 1, 4, marks=pytest.mark.slow),
    ],
)
def test_rollouts_are_those_of_one_process(name: str, steps: int, groups: int) -> None:
    """Rows, draws, links and open decisions, whichever group was ready first."""
    word = f"own_envs:make_{name}"
    alone = collector(make_pool(word, GAMES, seed=2), steps)
    with WorkerPool(word, GAMES, workers=2, groups=groups, seed=2) as pool:
        many = collector(pool, steps)
        for number in range(4):
            stats = [one.collect(number) for one in (alone, many)]
            for one in (alone, many):
                one.link(0.9, required=False)
            wanted, found = kept(alone), kept(many)
            for what in wanted:
                np.testing.assert_array_equal(found[what], wanted[what], what)
            for one in (alone, many):
                one.keep_pending()
            assert stats[0] == {k: v for k, v in stats[1].items() if not k.startswith("workers/")}
            assert alone.decisions == many.decisions


def test_a_restart_drops_open_decisions() -> None:
    """What a lost game would have paid is not guessed, and nothing is linked across."""
    with WorkerPool("own_envs:make_walk", GAMES, workers=2, seed=2) as pool:
        played = Collector(
            pool, CollectConfig(games=GAMES, steps=8), Uniform(), ["log_prob"], Timing()
        )
        played.collect(0)
        played.link(0.9)
        played.keep_pending()
        os.kill(pool.pids[0], signal.SIGKILL)
        assert gone(pool.pids[:1])
        with pytest.warns(SparringWarning, match="SIGKILL"):
            played.collect(1)
        samples = played.link(0.9)
        cut = played.rollout.truncated & ~np.isfinite(played.rollout.final_value).any(axis=2)
        lost = np.flatnonzero(cut.any(axis=0))
        assert lost.tolist() == [0, 1, 2]
        max_pending = played.transitions.max_pending
        for game in lost:
            step = int(cut[:, game].argmax())
            assert step == 0  # the actions for games that were gone
            assert max_pending + step * GAMES + game not in samples
            if game in samples:  # open before: what followed was seen before the worker died
                assert played.transitions.next[game] == max_pending + game
        assert played.finished.stats()["charts/games"] == sum(
            int((played.rollout.terminated | played.rollout.truncated)[:, game].sum())
            - int(game in lost)
            for game in range(GAMES)
        )


def test_rows_of_several_steps_are_drawn_as_if_each_were_alone() -> None:
    rng = np.random.default_rng(0)
    head, mask = torch.from_numpy(rng.normal(size=(30, 5))), np.ones((30, 5), np.uint8)
    step, rows = rng.integers(3, 7, 30), rng.permutation(30)
    epsilon = np.full(30, 0.3, np.float32)
    action, log_prob = ActionSampler(8).draw(
        head, mask, rollout=2, step=step, rows=rows, epsilon=epsilon
    )
    for row in range(30):
        one = slice(row, row + 1)
        drawn = ActionSampler(8).draw(
            head[one],
            mask[one],
            rollout=2,
            step=int(step[row]),
            rows=rows[one],
            epsilon=epsilon[one],
        )
        assert (action[row], log_prob[row]) == (drawn[0][0], drawn[1][0])
