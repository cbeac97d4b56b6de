"""Targets of PPO: what cut games are worth, discounts by role, and decisions of older weights.

Where roles have networks of their own, a role's decisions are a chain: what a seat is paid between
two of them, by the role's own weights, belongs to the first. So a manager's step reaches over all
that its worker does meanwhile, and is discounted once, and once more for every forced move of its
seat that was played without asking; a worker's last decision before the manager's next one may be
the end of what it is responsible for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sparring.learn.collect import Collector
from sparring.learn.plan import PPOHparams, RolePlan, Turns
from sparring.learn.playing import SelfPlay
from sparring.learn.transitions import NOT_A_SAMPLE, TO_NEXT, TRUNCATED, Transitions
from sparring.nets.distribution import evaluate_actions
from sparring.pools.lineups import LEARNER


@dataclass(frozen=True)
class Discounts:
    """How decisions of all roles are linked, a number for each role."""

    gamma_into: tuple[float, ...]
    """Of a step into its next decision."""
    gamma_of: tuple[float, ...]
    """Of its forced and last steps."""
    lambda_of: tuple[float, ...]
    ended_by: tuple[int, ...]
    """Bits of the roles whose decision ends what it did before."""


def discounts_of(
    roles: Sequence[RolePlan], hparams: Mapping[str, PPOHparams], member: int = 0
) -> Discounts:
    """Read them off the roles' own settings; hparams: as they are in one update."""
    names = [plan.role for plan in roles]
    own = [hparams[name] for name in names]
    into = [plan.settings[member].gamma_into for plan in roles]
    # What a role discounts by is its own affair; a step into it that counts nothing is everybody's.
    last = {name for at, name in enumerate(names) if into[at] and into[at][at] == 0}
    return Discounts(
        tuple(
            given[at] if given else hparam.gamma
            for at, (given, hparam) in enumerate(zip(into, own, strict=True))
        ),
        tuple(hparam.gamma for hparam in own),
        tuple(hparam.gae_lambda for hparam in own),
        tuple(sum(1 << names.index(by) for by in last | set(plan.ended_by)) for plan in roles),
    )


def linking_by_role(
    roles: Sequence[RolePlan], hparams: Mapping[str, PPOHparams], role: npt.NDArray[np.int8]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How decisions are linked and advantages estimated. role: of the rollout's rows."""
    own = discounts_of(roles, hparams)
    linking = {"gamma": 1.0, "gamma_into": own.gamma_into, "gamma_of": own.gamma_of}
    linking |= {"ended_by": own.ended_by, "by_final_role": True}
    return linking, {"gae_lambda": 1.0, "lambda_of": own.lambda_of, "role": role}


def place_roles(collector: Collector) -> npt.NDArray[np.int8]:
    """The role of every place: decisions that were carried over, then the rollout's rows."""
    roles, rollout = collector.transitions.chains, collector.rollout
    chains = collector.transitions.max_pending // roles
    pending = np.tile(np.arange(roles, dtype=np.int8), chains)
    return np.concatenate([pending, rollout.role.reshape(-1)])


def samples_by_role(
    collector: Collector, samples: Places, turns: Turns, update: int
) -> dict[str, Places]:
    """The samples of every role that has some and whose turn it is."""
    roles, of_sample = collector.pool.rules.roles, place_roles(collector)[samples]
    shares = {role: samples[of_sample == number] for number, role in enumerate(roles)}
    return {
        role: mine
        for role, mine in shares.items()
        if len(mine) and turns.learns(role, roles, update)
    }


@torch.no_grad()
def bootstrap_truncated(playing: SelfPlay, *, by_role: bool) -> None:
    """Value the last observations of truncated games, which their last decisions are paid.

    by_role: the rollout keeps in which role each was to move.
    """
    rollout = playing.collector.rollout
    obs = np.concatenate(rollout.truncations.obs)
    heads = playing.forward(torch.from_numpy(obs))
    value = playing.net.unscaled_values(heads).cpu().numpy()
    rollout.truncations.set_values(rollout, value, playing.rules.role_of(obs) if by_role else None)


CHUNK = 16_384
"""Rows of a forward pass that says what the present policy thinks of them."""
LATE = "late.bin"
"""Where snapshots say which decisions that are still open are to be corrected."""
Arrays = dict[str, npt.NDArray[Any]]
Places = npt.NDArray[np.intp]


class VTrace:
    """Targets of decisions that older weights have made, beneath PPO's clipped surrogate.

    The collector says by game how many updates behind the weights were that played it, in `lag`
    [games]; one without it plays with the present weights. A decision of the present policy pi
    would have been made more or less often than by the policy mu that made it; what it brought is
    weighted by rho = min(pi / mu, limit), and so are, by another limit, the traces along which
    values learn of it (V-trace, Espeholt et al. 2018). PPO then keeps the policy near the present
    one, not near the older one that played (the decoupled objective of Hilton et al. 2022).
    Decisions of the present policy stay as they are: without any lag this is PPO, bit for bit.
    """

    def __init__(self, rho: float = 1.0, trace: float = 1.0) -> None:
        """rho, trace: most that a decision, and what came after it, weighs."""
        self.max_rho, self.max_trace = rho, trace
        self.present: Arrays = {}
        """log_prob and value of every place as the present policy has them, where others played."""
        self.figures: dict[str, float] = {}
        """What curves show of the weights."""
        self._late: npt.NDArray[np.bool_] | None = None
        """Whether each decision that is still open is to be corrected once it is complete."""

    def targets(self, playing: SelfPlay, samples: Places, gae_lambda: float) -> Arrays:
        """V-trace by place where older weights have played, plain advantages where they have not.

        The rollout is linked.
        """
        transitions, columns = playing.collector.transitions, playing.collector.rollout.columns
        stale = self._stale(playing.collector)
        self.present, self.figures = (
            {},
            {"distributed/rho_mean": 1.0, "distributed/rho_clipped": 0.0},
        )
        if not len(stale):
            value = columns["value"]
            advantage = transitions.advantages(value, gae_lambda)
            return {"advantage": advantage, "returns": advantage + value}
        self.present = ask(playing, stale)
        value = self.present["value"]
        ratio = np.exp(self.present["log_prob"][stale] - columns["log_prob"][stale])
        rho, trace = (np.ones(transitions.places, np.float32) for _ in range(2))
        rho[stale] = np.minimum(ratio, self.max_rho)
        trace[stale] = np.minimum(ratio, self.max_trace)
        advantage = transitions.advantages(value, gae_lambda, rho=rho, trace=trace)
        weighed = np.isin(stale, samples)
        if weighed.any():
            self.figures["distributed/rho_mean"] = float(rho[stale][weighed].mean())
            self.figures["distributed/rho_clipped"] = float((ratio > self.max_rho)[weighed].mean())
        brought = unweighted(transitions, value, advantage, gae_lambda)
        return {"advantage": brought, "returns": value + advantage, "rho": rho}

    def _stale(self, collector: Collector) -> Places:
        """The learner's decisions that are to be corrected.

        That is what lagging weights decided, and what has waited for its game while others were
        learned from. A decision that its game's next rollout completes is as old in PPO too.
        """
        pool, transitions, policy = collector.pool, collector.transitions, collector.rollout.policy
        rules = pool.rules
        lag: npt.NDArray[np.int32] = getattr(collector, "lag", np.zeros(pool.num_games, np.int32))
        absent = (policy.reshape(-1, pool.num_games, rules.rows) < 0).all((0, 2))
        front = np.repeat(absent, rules.seats * transitions.chains)
        if self._late is not None:
            front |= self._late
        by_row = np.repeat(lag > 0, rules.rows)
        late = np.concatenate([front, np.tile(by_row, collector.steps)])
        rows = transitions.pending_rows()
        self._late = (rows >= 0) & late[rows]
        decided = transitions.end != NOT_A_SAMPLE
        decided[transitions.max_pending :] |= policy.reshape(-1) == LEARNER
        return np.flatnonzero(decided & late)

    def blobs(self) -> dict[str, bytes]:
        """What snapshots have of it: which open decisions are to be corrected, if any."""
        if self._late is None or not self._late.any():
            return {}
        return {LATE: self._late.tobytes()}

    def load(self, blobs: Mapping[str, bytes]) -> None:
        late = blobs.get(LATE)
        self._late = None if late is None else np.frombuffer(late, np.bool_).copy()


@torch.no_grad()
def ask(playing: SelfPlay, places: Places) -> Arrays:
    """Log-probabilities and values of all places, at these as the present policy has them."""
    rollout = playing.collector.rollout
    found: Arrays = {name: rollout.columns[name].copy() for name in ("log_prob", "value")}
    for first in range(0, len(places), CHUNK):
        part = places[first : first + CHUNK]
        heads = playing.forward(torch.from_numpy(rollout.obs[part]))
        head = heads["policy"].float().cpu()
        mask, action = (torch.from_numpy(a[part]) for a in (rollout.mask, rollout.action))
        found["log_prob"][part] = evaluate_actions(head, mask, action)[0].numpy()
        found["value"][part] = playing.net.unscaled_values(heads).float().cpu().numpy()
    return found


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
