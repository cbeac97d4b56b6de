"""Hindsight: decisions seen once more, as if what came of them had been the goal.

A decision that set a goal gets the action that would have set the one that came true; a decision
that pursued it gets a row that shows the one that came true. Whoever would have decided otherwise
under that goal makes no difference: this is not what was played. So examples have a loss of their
own beside PPO's and never come into its ratio, and in a replay they are samples like others, with
what the rules would have paid. The work is done by csrc/core/goals.hpp, which the GPU shares.
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
from sparring.nets.net import POLICY, HeadOutputs
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool


class Hindsight:
    """Sees a share of the decisions anew, by lot."""

    def __init__(self, pool: GamePool, config: HindsightConfig, seed: int) -> None:
        """See what a pool plays, which keeps records."""
        assert isinstance(pool, Pool), "planning refuses other games"
        check_goals(pool.rules)
        self.pool, self.config, self.seed = pool, config, seed % 2**64
        self.goals = _native.Goals(pool.rules.native)

    def term(self) -> ExamplesTerm:
        """Of a learner from rollouts: the loss of examples."""
        return ExamplesTerm(self)

    def sampling(self) -> dict[str, Any]:
        """How a replay sees samples anew: by which goals, for which pay, and how many of them."""
        return {"goals": self.goals, "rewards": self.pool.weights(), "share": self.config.share}

    def examples(
        self, rollout: Rollout, samples: npt.NDArray[np.intp], update: int
    ) -> dict[str, npt.NDArray[Any]]:
        """See a share of some decisions anew, whose goals were settled.

        Which ones depends on seed, update and place alone. Those of whom nothing can be learned are
        left out. Return rows by name: obs, mask, action.
        """
        assert rollout.of_place is not None
        places = np.ascontiguousarray(samples, np.int64)
        drawn = np.zeros(len(places), np.uint8)
        _native.draw_hindsight(
            record=rollout.of_place,
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
        self.goals.relabel(record=record, obs=obs, mask=mask, action=action, done=done)
        seen = done.view(np.bool_)
        return {"obs": obs[seen], "mask": mask[seen], "action": action[seen]}


class ExamplesTerm(Weighted):
    """The cross-entropy of what would have been right. Values learn nothing of it."""

    name, counted = "hindsight", "examples"

    def __init__(self, hindsight: Hindsight) -> None:
        super().__init__(hindsight.config.weight)
        self.hindsight = hindsight

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Nothing: it is not about samples."""
        return {}

    def rows(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Examples among some decisions of the learner's rollout."""
        return self.hindsight.examples(learner.collector.rollout, samples, learner.updates)

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """How surprised the policy is."""
        log_prob, _ = evaluate_actions(heads[POLICY], rows["mask"], rows["action"])
        return -log_prob

    def native_loss(
        self,
        work: Any,
        said: npt.NDArray[np.float32],
        rows: Mapping[str, Tensor],
        grad: npt.NDArray[np.float32],
    ) -> float:
        """The same by native code."""
        missed: float = work.example_loss(
            said=said,
            mask=rows["mask"].numpy(),
            action=rows["action"].numpy(),
            drawn=None,
            weight=self.weight,
            grad=grad,
        )
        return missed / len(said)
