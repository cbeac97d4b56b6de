"""Hindsight: decisions seen once more, as if what came of them had been the goal.

A decision that set a goal gets the action that would have set the one that came true; a decision
that pursued it gets a row that shows the one that came true. Whoever would have decided otherwise
under that goal makes no difference: this is not what was played. So examples have a loss of their
own beside PPO's and never come into its ratio, and in a replay they are samples like others, with
what the rules would have paid. The work is done by csrc/core/goals.hpp, which the GPU shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring import _native
from sparring.config import HindsightConfig
from sparring.games.goals import demand_goals
from sparring.learn.rollout import Rollout
from sparring.nets.distribution import evaluate_actions
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment

SEEN = "hindsight"
"""What curves call the loss of examples."""


class Hindsight:
    """Sees a share of the decisions anew, by lot."""

    def __init__(self, pool: Pool, config: HindsightConfig, seed: int) -> None:
        demand_goals(pool.rules)
        self.pool, self.config, self.seed = pool, config, seed % 2**64
        self.goals = _native.Goals(pool.rules.native)
        self.weight = config.weight.at(Moment(0, 0.0))
        """Of the examples' loss, in this update."""

    @staticmethod
    def of(pool: GamePool, config: HindsightConfig | None, seed: int) -> Hindsight | None:
        """Make one, if anything is to be seen anew; the pool keeps records."""
        if config is None or not config.sees:
            return None
        assert isinstance(pool, Pool), "planning refuses other games"
        return Hindsight(pool, config, seed)

    def turn(self, moment: Moment) -> None:
        """Read the schedule."""
        self.weight = self.config.weight.at(moment)

    def rewards(self) -> list[float]:
        """What the games pay now, by part and role."""
        return self.pool.weights()

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


@dataclass
class Examples:
    """The examples of an update, to be dealt to the minibatches of every epoch."""

    rows: Mapping[str, Tensor]
    """obs, mask, action."""
    weight: float
    """Of their loss."""
    order: np.random.Generator
    """Shuffles them before every epoch."""

    def __len__(self) -> int:
        """How many."""
        return len(self.rows["action"])

    def deal(self, minibatches: int) -> list[dict[str, Tensor]]:
        """Shuffle them; number i of n minibatches gets those from i/n to (i + 1)/n.

        A minibatch then has `example_obs`, `example_mask`, `example_action` and `example_weight`.
        """
        count = len(self)
        device = self.rows["obs"].device
        shuffled = torch.from_numpy(self.order.permutation(count)).to(device)
        cuts = [count * i // minibatches for i in range(minibatches + 1)]
        weight = {"example_weight": torch.tensor(self.weight, device=device)}
        return [
            {f"example_{name}": rows[shuffled[first:end]] for name, rows in self.rows.items()}
            | weight
            for first, end in pairwise(cuts)
        ]


def example_loss(logits: Tensor, *, mask: Tensor, action: Tensor) -> Tensor:
    """The mean cross-entropy of the actions that would have been right."""
    log_prob, _ = evaluate_actions(logits, mask, action)
    return -log_prob.mean()
