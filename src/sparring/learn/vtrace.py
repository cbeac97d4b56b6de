"""PPO from rollouts that older weights have played: V-trace beneath PPO's clipped surrogate.

Whoever plays somewhere else, plays with weights that are some updates behind. A decision of the
present policy pi would have been made more or less often than by the policy mu that made it; what
it brought is weighted by rho = min(pi / mu, limit), and so are, by another limit, the traces along
which values learn of it (V-trace, Espeholt et al. 2018). PPO then keeps the policy near the present
one, not near the older one that played (the decoupled objective of Hilton et al. 2022). Decisions
of the present policy stay as they are: without any lag this is PPO, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.learn.knobs import Knobs
from sparring.learn.learner import Snapshot
from sparring.learn.on_policy import Arrays
from sparring.learn.ppo import PPO
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT, TRUNCATED, Transitions
from sparring.nets.distribution import evaluate_actions
from sparring.pools.lineups import LEARNER

CHUNK = 16_384
"""Rows of a forward pass that says what the present policy thinks of them."""
LATE = "late.bin"
"""Where snapshots say which decisions that are still open are to be corrected."""
Places = npt.NDArray[np.intp]


class LaggedPPO(PPO):
    """PPO whose collector says how many updates behind the weights were that played each game.

    It does so in `lag`, [games]; one without it plays with the present weights.
    """

    def __init__(self, *args: Any, rho: float = 1.0, trace: float = 1.0, **options: Any) -> None:
        """Take over a pool. rho, trace: most that a decision, and what came after it, weighs."""
        super().__init__(*args, **options)
        self.most_rho, self.most_trace = rho, trace
        self._late = np.zeros(self.collector.transitions.carried, np.bool_)
        """Whether each decision that is still open is to be corrected once it is complete."""
        self._present: Arrays = {}
        """log_prob and value of every place as the present policy has them, where others played."""
        self._weights: dict[str, float] = {}
        """What curves show of them."""

    def lag(self) -> npt.NDArray[np.int32]:
        """How many updates behind the weights are that played each game."""
        none = np.zeros(self.pool.num_games, np.int32)
        lag: npt.NDArray[np.int32] = getattr(self.collector, "lag", none)
        return lag

    # Learning

    def rows(self) -> Arrays:
        """Rows as the present policy sees them."""
        return {**super().rows(), **self._present}

    def estimates(self, samples: Places, knobs: Knobs) -> Arrays:
        """V-trace where older weights have played, plain advantages where they have not."""
        stale = self._stale()
        self._present, self._weights = {}, {"fleet/rho_mean": 1.0, "fleet/rho_clipped": 0.0}
        if not len(stale):
            return super().estimates(samples, knobs)
        transitions, lam = self.collector.transitions, knobs.gae_lambda
        behaviour = self.collector.rollout.columns["log_prob"]
        self._present = self._ask(stale)
        value = self._present["value"]
        ratio = np.exp(self._present["log_prob"][stale] - behaviour[stale])
        rho, trace = (np.ones(transitions.places, np.float32) for _ in range(2))
        rho[stale] = np.minimum(ratio, self.most_rho)
        trace[stale] = np.minimum(ratio, self.most_trace)
        advantage = transitions.advantages(value, lam, rho=rho, trace=trace)
        weighed = np.isin(stale, samples)
        if weighed.any():
            self._weights["fleet/rho_mean"] = float(rho[stale][weighed].mean())
            self._weights["fleet/rho_clipped"] = float((ratio > self.most_rho)[weighed].mean())
        return {
            "advantage": unweighted(transitions, value, advantage, lam)[samples],
            "returns": (value + advantage)[samples],
            "rho": rho[samples],
        }

    def stats(self, samples: Places, targets: Arrays, knobs: Knobs) -> dict[str, float]:
        """PPO's, and how far the weights are from those that played."""
        return {**super().stats(samples, targets, knobs), **self._weights}

    def _stale(self) -> Places:
        """The learner's decisions that are to be corrected; the rollout is linked.

        That is what lagging weights decided, and what has waited for its game while others were
        learned from. A decision that its game's next rollout completes is as old in PPO too.
        """
        rules, transitions = self.rules, self.collector.transitions
        policy = self.collector.rollout.policy
        absent = (policy.reshape(-1, self.pool.num_games, rules.rows) < 0).all((0, 2))
        front = self._late | np.repeat(absent, rules.seats * transitions.chains)
        by_row = np.repeat(self.lag() > 0, rules.rows)
        late = np.concatenate([front, np.tile(by_row, self.collector.steps)])
        rows = transitions.open_rows()
        self._late = (rows >= 0) & late[rows]
        decided = transitions.end != NOT_A_SAMPLE
        decided[transitions.carried :] |= policy.reshape(-1) == LEARNER
        return np.flatnonzero(decided & late)

    @torch.no_grad()
    def _ask(self, places: Places) -> Arrays:
        """Log-probabilities and values of all places, at these as the present policy has them."""
        rollout = self.collector.rollout
        found: Arrays = {name: rollout.columns[name].copy() for name in ("log_prob", "value")}
        for first in range(0, len(places), CHUNK):
            part = places[first : first + CHUNK]
            heads = self.forward(torch.from_numpy(rollout.obs[part]))
            head = heads["policy"].float().cpu()
            mask, action = (torch.from_numpy(a[part]) for a in (rollout.mask, rollout.action))
            found["log_prob"][part] = evaluate_actions(head, mask, action)[0].numpy()
            found["value"][part] = self.net.true_values(heads).float().cpu().numpy()
        return found

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """PPO's, and which open decisions are to be corrected, if any."""
        saved = super().snapshot(member)
        if not self.exact or not self._late.any():
            return saved
        return replace(saved, blobs={**saved.blobs, LATE: self._late.tobytes()})

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Go on from there."""
        super().restore(snapshot, member)
        late = snapshot.blobs.get(LATE, bytes(len(self._late)))
        self._late = np.frombuffer(late, np.bool_).copy()


def unweighted(
    transitions: Transitions,
    value: npt.NDArray[np.float32],
    advantage: npt.NDArray[np.float32],
    gae_lambda: float,
) -> npt.NDArray[np.float32]:
    """What every decision brought before it is weighted: paid + discount * next v - value.

    advantage: v - value, with weights. A lambda below 1 takes less of the next one's, as in GAE.
    """
    end, discount, lam = transitions.end, transitions.discount, np.float32(gae_lambda)
    goes_on = end == TO_NEXT
    following = np.where(goes_on, transitions.next, 0)
    after = np.where(end == TRUNCATED, transitions.tail, np.float32(0))
    after = np.where(goes_on, value[following], after)
    further = np.where(goes_on & (end[following] != NOT_A_SAMPLE), advantage[following], 0)
    brought: npt.NDArray[np.float32] = (
        transitions.paid - value + discount * after + discount * lam * further.astype(np.float32)
    )
    return brought
