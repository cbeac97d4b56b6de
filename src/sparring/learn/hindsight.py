"""Hindsight experience replay (HER): decisions relabeled with the goal that was reached.

A decision that set a goal gets the action that sets the reached goal; a decision that pursued a
goal gets an observation that shows the reached one. Relabeled decisions are off-policy: PPO learns
from them by a separate loss term, outside of its ratio; a replay buffer samples them like others,
with the rewards of the reached goal. csrc/core/goals.hpp does the work, for CPU and GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring import _native
from sparring.config import HindsightConfig
from sparring.games.goals import check_goals
from sparring.learn.rollout import Rollout
from sparring.learn.terms import Arrays, Weighted
from sparring.nets.distribution import evaluate_actions
from sparring.nets.heads import POLICY
from sparring.nets.net import HeadOutputs
from sparring.pools.protocol import GamePool


class Hindsight:
    """Relabels a random share of the decisions."""

    def __init__(self, pool: GamePool, config: HindsightConfig, seed: int) -> None:
        """Relabel decisions of a pool that records goal results."""
        check_goals(pool.rules)
        self.pool: Any = pool
        """Has `weights`: planning refuses other games."""
        self.config, self.seed = config, seed % 2**64
        self.goals = _native.Goals(pool.rules.native)

    def term(self) -> ExamplesTerm:
        """Return the loss term of relabeled examples, for learners from rollouts."""
        return ExamplesTerm(self)

    def sampling(self) -> dict[str, Any]:
        """Return the arguments of native replay sampling."""
        return {
            "goals": self.goals,
            "reward_weights": self.pool.weights(),
            "share": self.config.share,
        }

    def examples(
        self, rollout: Rollout, samples: npt.NDArray[np.intp], update: int
    ) -> dict[str, npt.NDArray[Any]]:
        """Relabel a random share of decisions whose goal result is known.

        The choice depends on seed, update and place alone; decisions that cannot be relabeled are
        left out. Return rows by name: obs, mask, action.
        """
        assert rollout.of_place is not None
        places = np.ascontiguousarray(samples, np.int64)
        drawn = np.zeros(len(places), np.uint8)
        _native.draw_hindsight(
            goal_result=rollout.of_place,
            among=places,
            seed=self.seed,
            number=update % 2**32,
            share=self.config.share,
            drawn=drawn,
        )
        chosen = places[drawn.view(np.bool_)]
        obs, mask = rollout.obs[chosen], rollout.mask[chosen]
        action: npt.NDArray[np.int32] = rollout.action[chosen]
        done = np.zeros(len(chosen), np.uint8)
        record = rollout.of_place[chosen]
        self.goals.relabel(goal_result=record, obs=obs, mask=mask, action=action, done=done)
        relabeled = done.view(np.bool_)
        return {"obs": obs[relabeled], "mask": mask[relabeled], "action": action[relabeled]}


class ExamplesTerm(Weighted):
    """Cross-entropy of relabeled actions; trains the policy head only."""

    name, counted = "hindsight", "examples"

    def __init__(self, hindsight: Hindsight) -> None:
        super().__init__(hindsight.config.weight)
        self.hindsight = hindsight

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        return {}

    def rows(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Return the relabeled examples of an update."""
        return self.hindsight.examples(learner.collector.rollout, samples, learner.updates)

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        log_prob, _ = evaluate_actions(heads[POLICY], rows["mask"], rows["action"])
        return -log_prob

    def native_loss(
        self,
        work: Any,
        outputs: npt.NDArray[np.float32],
        rows: Mapping[str, Tensor],
        grad: npt.NDArray[np.float32],
    ) -> float:
        cross_entropy: float = work.example_loss(
            outputs=outputs,
            mask=rows["mask"].numpy(),
            action=rows["action"].numpy(),
            box_action=None,
            weight=self.weight,
            grad=grad,
        )
        return cross_entropy / len(outputs)
