"""Transitions: links each decision of a seat with its next one, with reward, discount and end.

csrc/core/transitions.hpp and csrc/core/gae.hpp do the work, for CPU and GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules

NOT_A_SAMPLE, TO_NEXT, TERMINATED, TRUNCATED = 0, 1, 2, 3
"""How a transition ends; see `End` in csrc/core/transitions.hpp."""

PENDING_DTYPE = np.dtype(
    [("row", np.int32), ("decisions", np.int32), ("role", np.int32), ("reward", np.float32)]
)
"""A pending transition; `PendingTransition` in csrc/core/transitions.hpp."""

MAX_SKIPPED = 10**6
"""Limit of forced moves between two decisions of a seat; games have less than a thousandth."""


class Transitions:
    """Transitions of one policy in a rollout.

    Arrays have one place per row of the rollout, after `max_pending` places for transitions that
    were pending when the previous rollout ended. Before the next rollout is written, copy the rows
    at `pending_rows()` to the places `pending_rows() >= 0`. Return estimators read `end`, `next`,
    `paid`, `discount` and `tail`.
    """

    def __init__(
        self, rules: Rules, games: int, steps: int, *, learner: int = 0, by_role: bool = False
    ) -> None:
        """Allocate the arrays for rollouts of `steps` steps.

        by_role: link a decision with the seat's next one in the same role, instead of its next one
            in any role. Rewards are always weighted by the role of the decision.
        """
        if PENDING_DTYPE.itemsize != _native.PENDING_BYTES:
            raise ConfigError("the native core was built from another version; reinstall")
        self.rules, self.games, self.steps, self.learner = rules, games, steps, learner
        self.chains = len(rules.roles) if by_role else 1
        self.max_pending = games * rules.seats * self.chains
        self.places = self.max_pending + steps * games * rules.rows
        self.pending: npt.NDArray[Any] = np.zeros(self.max_pending, PENDING_DTYPE)
        self.pending["row"] = -1
        self.end = np.zeros(self.places, np.uint8)
        self.next = np.zeros(self.places, np.int32)
        self.paid = np.zeros(self.places, np.float32)
        self.discount = np.zeros(self.places, np.float32)
        self.tail = np.zeros(self.places, np.float32)

    def pending_rows(self) -> npt.NDArray[np.int32]:
        """Return the row of the pending transition of every (game, seat, chain), -1 for none."""
        rows: npt.NDArray[np.int32] = self.pending["row"].copy()
        return rows

    def samples(self) -> npt.NDArray[np.intp]:
        """Return the places of complete transitions."""
        return np.flatnonzero(self.end)

    def link(
        self,
        *,
        seat: npt.NDArray[np.int8],
        role: npt.NDArray[np.int8],
        policy: npt.NDArray[np.int16],
        reward: npt.NDArray[np.float32],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        gamma: float,
        gamma_into: Sequence[float] = (),
        gamma_of: Sequence[float] = (),
        ended_by: Sequence[int] = (),
        final_value: npt.NDArray[np.float32] | None = None,
        final_role: npt.NDArray[np.int8] | None = None,
        skipped: npt.NDArray[np.uint16] | None = None,
    ) -> None:
        """Fill end, next, paid, discount and tail.

        seat, role, policy: [steps, games * rows]; reward: [steps, games, seats, roles];
        terminated, truncated: [steps, games];
        final_value: [steps, games, seats], bootstrap value of a truncated game, NaN if unknown
        (its last decision is dropped then);
        gamma_into: discount of a step into each role, instead of gamma. 0 for the role that opens
        a round makes every round a separate problem.
        gamma_of: by role, discount of its forced and last steps, instead of gamma.
        ended_by: by role, bit mask of roles whose decisions terminate its transitions. Default: a
        decision into which the discount is 0 terminates those of all roles.
        final_role: [steps, games, seats], role of the bootstrap value; last decisions in other
        roles are dropped. Default: the value holds for all roles.
        """
        rules, steps = self.rules, self.steps
        if len(gamma_into) not in (0, len(rules.roles)):
            raise ConfigError(f"gamma_into needs one discount per role: {', '.join(rules.roles)}")
        shapes: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {
            "seat": (seat, (steps, self.games * rules.rows)),
            "role": (role, (steps, self.games * rules.rows)),
            "policy": (policy, (steps, self.games * rules.rows)),
            "reward": (reward, (steps, self.games, rules.seats, len(rules.roles))),
            "terminated": (terminated, (steps, self.games)),
            "truncated": (truncated, (steps, self.games)),
        }
        if final_value is None:
            final_value = np.full((steps, self.games, rules.seats), np.nan, np.float32)
        shapes["final_value"] = (final_value, (steps, self.games, rules.seats))
        if skipped is not None:
            shapes["skipped"] = (skipped, (steps, self.games, rules.seats))
        if final_role is not None:
            shapes["final_role"] = (final_role, (steps, self.games, rules.seats))
        for name, (array, shape) in shapes.items():
            if array.shape != shape:
                raise ConfigError(f"{name} has shape {array.shape}, need {shape}")
        _native.link_transitions(
            seats=rules.seats,
            roles=len(rules.roles),
            chains=self.chains,
            learner=self.learner,
            gamma=gamma,
            gamma_into=[float(g) for g in gamma_into] or [gamma] * len(rules.roles),
            gamma_of=[float(g) for g in gamma_of],
            ended_by=list(ended_by),
            seat=np.ascontiguousarray(seat).reshape(steps, self.games, rules.rows),
            role=np.ascontiguousarray(role),
            policy=np.ascontiguousarray(policy),
            reward=np.ascontiguousarray(reward),
            terminated=np.ascontiguousarray(terminated).view(np.uint8),
            truncated=np.ascontiguousarray(truncated).view(np.uint8),
            final_value=np.ascontiguousarray(final_value),
            final_role=None if final_role is None else np.ascontiguousarray(final_role),
            skipped=None if skipped is None else np.ascontiguousarray(skipped),
            pending=self.pending.view(np.uint8),
            end=self.end,
            next=self.next,
            link_reward=self.paid,
            discount=self.discount,
            bootstrap=self.tail,
        )

    def advantages(
        self,
        value: npt.NDArray[np.float32],
        gae_lambda: float,
        *,
        lambda_of: Sequence[float] = (),
        role: npt.NDArray[np.int8] | None = None,
        rho: npt.NDArray[np.float32] | None = None,
        trace: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the generalized advantage estimate (GAE) of every place, 0 for non-samples.

        lambda_of: lambda by role; needs the role of the rows [steps, games * rows].
        rho, trace: truncated importance weights by place of off-policy decisions:
        A = rho * (paid + discount * next value - value) + discount * lambda * trace * next A.
        With lambda 1, value + A is the V-trace target. Give both or none.
        """
        by_place = {"value": value, "rho": rho, "trace": trace}
        for name, array in by_place.items():
            if array is not None and array.shape != (self.places,):
                raise ConfigError(f"{name} has shape {array.shape}, need {(self.places,)}")
        weights = {}
        if rho is not None and trace is not None:
            weights = {"rho": np.ascontiguousarray(rho), "trace": np.ascontiguousarray(trace)}
        elif rho is not None or trace is not None:
            raise ConfigError("rho and trace go together: give both or none")
        advantage = np.zeros(self.places, np.float32)
        _native.estimate_advantages(
            steps=self.steps,
            games=self.games,
            rows=self.rules.rows,
            seats=self.rules.seats,
            chains=self.chains,
            gae_lambda=gae_lambda,
            lambda_of=[float(one) for one in lambda_of],
            role=None if role is None else np.ascontiguousarray(role),
            value=np.ascontiguousarray(value),
            end=self.end,
            next=self.next,
            reward=self.paid,
            discount=self.discount,
            bootstrap=self.tail,
            advantage=advantage,
            **weights,
        )
        return advantage

    def load_pending(self, raw: bytes, action: npt.NDArray[Any] | None = None) -> None:
        """Restore pending transitions. action: of each, to be checked."""
        pending = read_pending(raw, len(self.pending))
        check_pending(pending, self.rules, action)
        self.pending[:] = pending


def check_pending(
    pending: npt.NDArray[Any], rules: Rules, action: npt.NDArray[Any] | None = None
) -> None:
    """Raise if pending transitions are invalid: native code does not check them."""
    used = pending["row"] >= 0
    decisions, role, reward = (pending[name][used] for name in ("decisions", "role", "reward"))
    valid = (decisions >= 0) & (decisions <= MAX_SKIPPED) & (role >= 0) & (role < len(rules.roles))
    valid &= np.isfinite(reward)
    if action is not None and not rules.box:
        chosen = action[used]
        valid &= (chosen >= 0) & (chosen < rules.actions)
    if not valid.all():
        raise StateError(f"the checkpoint holds pending transitions that {rules.name} cannot have")


def read_pending(raw: bytes, count: int) -> npt.NDArray[Any]:
    """Return pending transitions that were saved as bytes."""
    if len(raw) != count * PENDING_DTYPE.itemsize:
        raise StateError("the checkpoint was taken with another number of games")
    return np.frombuffer(raw, PENDING_DTYPE).copy()
