"""Skull King played twice: by lot, and with the learner's bids replaced by what came true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import Lineup, Pool, _native
from sparring.config import CollectConfig
from sparring.learn.acting import ActorOutput, RngKeys
from sparring.learn.collect import Collector
from sparring.phases import Timing

REWARDS = {"score_delta": (1.0, 0.5), "manager": (0.25, 0.0), "worker": (0.0, 2.0)}
Bids = dict[tuple[int, int, int], int]


@dataclass
class ByLot:
    """Takes any legal action; bids may be told, by rollout, step and row."""

    bids: Bids = field(default_factory=dict)

    def act(
        self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8], keys: RngKeys
    ) -> ActorOutput:
        rng = np.random.default_rng([keys.rollout, keys.step])
        lots = rng.random((64, mask.shape[1]))[keys.rows]
        action = np.where(mask == 1, lots, -1.0).argmax(1).astype(np.int32)
        for i, row in enumerate(keys.rows):
            action[i] = self.bids.get((keys.rollout, keys.step, int(row)), action[i])
        return ActorOutput(action)


def make_collector(
    games: int, steps: int, *, by_role: bool = False, bids: Bids | None = None, **flags: Any
) -> Collector:
    """The learner sits in one seat, lots in the others."""
    lineups = [Lineup((0, 1, 1, 1), shuffle=False)]
    pool = Pool(
        "skull_king",
        games,
        seed=3,
        threads=1,
        config=flags,
        lineups=lineups,
        rewards=REWARDS,
        records=True,
    )
    config = CollectConfig(games=games, steps=steps)
    collector = Collector(pool, config, ByLot(bids or {}), (), Timing(), by_role=by_role)
    collector.actors[1] = ByLot()
    return collector


def right_bids(collector: Collector, rollouts: int) -> Bids:
    """What the learner would have had to bid, in rounds that end while these are played."""
    goals = _native.Goals(collector.pool.rules.native)
    found: Bids = {}
    waiting: dict[int, list[tuple[int, int, int]]] = {}
    for number in range(rollouts):
        collector.collect(number)
        rollout, at = collector.rollout, collector.transitions.max_pending
        assert rollout.record is not None
        for step in range(collector.steps):
            for game in range(collector.pool.num_games):
                row = at + step * collector.pool.num_games + game
                if rollout.policy[step, game] == 0 and rollout.mask[row, 0]:
                    waiting.setdefault(game, []).append((number, step, game))
                record = int(rollout.record[step, game, 0])
                if record:
                    right = goals.action(goals.achieved_goal(record))
                    found |= dict.fromkeys(waiting.pop(game, []), right)
    return found
