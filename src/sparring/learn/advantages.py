"""Targets of PPO: bootstrapping of truncated games, discounts by role, V-trace.

If every role has a network, the decisions of a role form a chain: rewards between two of them, by
the reward weights of the role, belong to the first. A manager's step spans all decisions of its
worker in between; it is discounted once, and once more for every forced move of its seat. The
manager's next decision may end the worker's subproblem.
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
    """Discounts of all roles, one number per role."""

    gamma_into: tuple[float, ...]
    """Discount of a step into the role's next decision."""
    gamma_of: tuple[float, ...]
    """Discount of its forced and last steps."""
    lambda_of: tuple[float, ...]
    ended_by: tuple[int, ...]
    """Bit mask of roles whose decision terminates the role's subproblem."""


def discounts_of(
    roles: Sequence[RolePlan], hparams: Mapping[str, PPOHparams], member: int = 0
) -> Discounts:
    """Return the discounts by the settings of each role."""
    names = [plan.role for plan in roles]
    role_hparams = [hparams[name] for name in names]
    into = [plan.settings[member].gamma_into for plan in roles]
    # A step with discount 0 into a role terminates the subproblems of all roles.
    terminal_roles = {name for at, name in enumerate(names) if into[at] and into[at][at] == 0}
    return Discounts(
        tuple(
            gammas[at] if gammas else hparam.gamma
            for at, (gammas, hparam) in enumerate(zip(into, role_hparams, strict=True))
        ),
        tuple(hparam.gamma for hparam in role_hparams),
        tuple(hparam.gae_lambda for hparam in role_hparams),
        tuple(
            sum(1 << names.index(other) for other in terminal_roles | set(plan.ended_by))
            for plan in roles
        ),
    )


def linking_by_role(
    roles: Sequence[RolePlan], hparams: Mapping[str, PPOHparams], role: npt.NDArray[np.int8]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `Collector.link` and `Transitions.advantages`."""
    role_hparams = discounts_of(roles, hparams)
    linking = {
        "gamma": 1.0,
        "gamma_into": role_hparams.gamma_into,
        "gamma_of": role_hparams.gamma_of,
    }
    linking |= {"ended_by": role_hparams.ended_by, "by_final_role": True}
    return linking, {"gae_lambda": 1.0, "lambda_of": role_hparams.lambda_of, "role": role}


def place_roles(collector: Collector) -> npt.NDArray[np.int8]:
    """Return the role of every place: pending transitions, then the rollout's rows."""
    roles, rollout = collector.transitions.chains, collector.rollout
    chains = collector.transitions.max_pending // roles
    pending = np.tile(np.arange(roles, dtype=np.int8), chains)
    return np.concatenate([pending, rollout.role.reshape(-1)])


def samples_by_role(
    collector: Collector, samples: Places, turns: Turns, update: int
) -> dict[str, Places]:
    """Return the samples of every role that has some and learns in this update."""
    roles, of_sample = collector.pool.rules.roles, place_roles(collector)[samples]
    by_role = {role: samples[of_sample == number] for number, role in enumerate(roles)}
    return {
        role: role_samples
        for role, role_samples in by_role.items()
        if len(role_samples) and turns.learns(role, roles, update)
    }


@torch.no_grad()
def bootstrap_truncated(playing: SelfPlay, *, by_role: bool) -> None:
    """Compute bootstrap values from the final observations of truncated games.

    by_role: also store the role in which each seat was to move.
    """
    rollout = playing.collector.rollout
    obs = np.concatenate(rollout.truncations.obs)
    heads = playing.forward(torch.from_numpy(obs))
    value = playing.net.unscaled_values(heads).cpu().numpy()
    rollout.truncations.set_values(rollout, value, playing.rules.role_of(obs) if by_role else None)


CHUNK = 16_384
"""Rows of a forward pass over stale decisions."""
LATE = "late.bin"
"""File in snapshots: which pending transitions are stale."""
Arrays = dict[str, npt.NDArray[Any]]
Places = npt.NDArray[np.intp]


class VTrace:
    """V-trace targets (Espeholt et al. 2018) for decisions that older weights made.

    The collector's `lag` [games] counts the updates since the weights that played a game; without
    it all rollouts are on-policy. Advantages of stale decisions, made by policy mu instead of the
    current pi, are weighted by rho = min(pi / mu, limit), the traces by another limit. PPO's
    clipping is relative to the current policy, not to mu (decoupled objective, Hilton et al. 2022).
    Without lag this is PPO, bit for bit.
    """

    def __init__(self, rho: float = 1.0, trace: float = 1.0) -> None:
        """rho, trace: limits of the importance weights of advantages and traces."""
        self.max_rho, self.max_trace = rho, trace
        self.present: Arrays = {}
        """log_prob and value of every place by the current network; empty without stale ones."""
        self.figures: dict[str, float] = {}
        """Metrics of the importance weights."""
        self._late: npt.NDArray[np.bool_] | None = None
        """Whether each pending transition is stale."""

    def targets(self, playing: SelfPlay, samples: Places, **traces: Any) -> Arrays:
        """Return advantages and returns by place of a linked rollout; V-trace if any is stale.

        traces: lambdas, as `Transitions.advantages` takes them.
        """
        transitions, columns = playing.collector.transitions, playing.collector.rollout.columns
        stale = self._stale(playing.collector)
        self.present, self.figures = (
            {},
            {"distributed/rho_mean": 1.0, "distributed/rho_clipped": 0.0},
        )
        if not len(stale):
            value = columns["value"]
            advantage = transitions.advantages(value, **traces)
            return {"advantage": advantage, "returns": advantage + value}
        self.present = current_policy(playing, stale)
        value = self.present["value"]
        ratio = np.exp(self.present["log_prob"][stale] - columns["log_prob"][stale])
        rho, trace = (np.ones(transitions.places, np.float32) for _ in range(2))
        rho[stale] = np.minimum(ratio, self.max_rho)
        trace[stale] = np.minimum(ratio, self.max_trace)
        advantage = transitions.advantages(value, **traces, rho=rho, trace=trace)
        is_sample = np.isin(stale, samples)
        if is_sample.any():
            self.figures["distributed/rho_mean"] = float(rho[stale][is_sample].mean())
            self.figures["distributed/rho_clipped"] = float(
                (ratio > self.max_rho)[is_sample].mean()
            )
        gae_lambda: Any = np.float32(traces["gae_lambda"])
        if "lambda_of" in traces:
            by_role = np.asarray(traces["lambda_of"], np.float32)
            gae_lambda = by_role[place_roles(playing.collector)]
        delta = unweighted(transitions, value, advantage, gae_lambda)
        return {"advantage": delta, "returns": value + advantage, "rho": rho}

    def _stale(self, collector: Collector) -> Places:
        """Return the stale decisions of the learner.

        Those are decisions of lagging weights, and pending ones whose game was not in the last
        rollout. Decisions that the next rollout of their game completes are as old in PPO too.
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
        """Return the stale pending transitions for a snapshot, if there are any."""
        if self._late is None or not self._late.any():
            return {}
        return {LATE: self._late.tobytes()}

    def load(self, blobs: Mapping[str, bytes]) -> None:
        late = blobs.get(LATE)
        self._late = None if late is None else np.frombuffer(late, np.bool_).copy()


@torch.no_grad()
def current_policy(playing: SelfPlay, places: Places) -> Arrays:
    """Return log-probabilities and values of all places, recomputed at the given ones."""
    rollout = playing.collector.rollout
    columns: Arrays = {name: rollout.columns[name].copy() for name in ("log_prob", "value")}
    for first in range(0, len(places), CHUNK):
        part = places[first : first + CHUNK]
        heads = playing.forward(torch.from_numpy(rollout.obs[part]))
        head = heads["policy"].float().cpu()
        mask, action = (torch.from_numpy(a[part]) for a in (rollout.mask, rollout.action))
        columns["log_prob"][part] = evaluate_actions(head, mask, action)[0].numpy()
        if playing.critic is None:  # its values are current
            columns["value"][part] = playing.net.unscaled_values(heads).float().cpu().numpy()
    return columns


def unweighted(
    transitions: Transitions,
    value: npt.NDArray[np.float32],
    advantage: npt.NDArray[np.float32],
    gae_lambda: np.float32 | npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Return advantages before weighting: reward + discount * next v - value.

    advantage: v - value, weighted. gae_lambda: of all places, or of each; below 1 it shortens the
    trace, as in GAE.
    """
    end, discount = transitions.end, transitions.discount
    continues = end == TO_NEXT
    next_place = np.where(continues, transitions.next, 0)
    next_value = np.where(end == TRUNCATED, transitions.tail, np.float32(0))
    next_value = np.where(continues, value[next_place], next_value)
    next_advantage = np.where(
        continues & (end[next_place] != NOT_A_SAMPLE), advantage[next_place], 0
    )
    delta: npt.NDArray[np.float32] = (
        transitions.paid
        - value
        + discount * next_value
        + discount * gae_lambda * next_advantage.astype(np.float32)
    )
    return delta
