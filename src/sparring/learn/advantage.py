"""Rows of a rollout become transitions of one seat, and transitions become advantages.

The work is done by csrc/core/advantage.hpp, which the GPU shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules

NOT_A_SAMPLE, TO_NEXT, TERMINATED, TRUNCATED = 0, 1, 2, 3
"""What follows a decision; see `Link` in csrc/core/advantage.hpp."""

_OPEN = np.dtype([("row", np.int32), ("decisions", np.int32), ("reward", np.float32)])


class Assembler:
    """Links every decision with the same seat's next one and estimates its advantage.

    Arrays have one place per row of the rollout, behind `carried` places for decisions that were
    still open when the previous rollout ended. Before the next rollout is written, copy the rows
    at `open_rows()` to the places `open_rows() >= 0`.
    """

    def __init__(
        self, rules: Rules, games: int, steps: int, *, learner: int = 0, by_role: bool = False
    ) -> None:
        """Prepare for rollouts of `steps` steps.

        by_role: manager and worker are separate learners; a role's next row is the seat's next
            one in that role, and it is paid by that role's weights. Otherwise a seat is one
            learner and is paid by the first role's weights.
        """
        if _OPEN.itemsize != _native.OPEN_BYTES:
            raise ConfigError("the native core was built from another version; reinstall")
        self.rules, self.games, self.steps, self.learner = rules, games, steps, learner
        self.chains = len(rules.roles) if by_role else 1
        self.carried = games * rules.seats * self.chains
        self.places = self.carried + steps * games * rules.rows
        self.open: npt.NDArray[Any] = np.zeros(self.carried, _OPEN)
        self.open["row"] = -1
        self.link = np.zeros(self.places, np.uint8)
        self.next = np.zeros(self.places, np.int32)
        self.paid = np.zeros(self.places, np.float32)
        self.discount = np.zeros(self.places, np.float32)
        self.tail = np.zeros(self.places, np.float32)
        self.advantage = np.zeros(self.places, np.float32)

    def open_rows(self) -> npt.NDArray[np.int32]:
        """Return where the open decision of every (game, seat, chain) lies, -1 if there is none."""
        rows: npt.NDArray[np.int32] = self.open["row"].copy()
        return rows

    def samples(self) -> npt.NDArray[np.intp]:
        """Return the places that can be learned from."""
        return np.flatnonzero(self.link)

    def run(
        self,
        *,
        seat: npt.NDArray[np.int8],
        role: npt.NDArray[np.int8],
        policy: npt.NDArray[np.int16],
        value: npt.NDArray[np.float32],
        reward: npt.NDArray[np.float32],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        gamma: float,
        lambda_: float,
        gamma_into: Sequence[float] = (),
        final_value: npt.NDArray[np.float32] | None = None,
        skipped: npt.NDArray[np.uint16] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Fill link, next, paid, discount, tail and advantage; return the advantages.

        seat, role, policy: [steps, games * rows]; value: [places];
        reward: [steps, games, seats, roles]; terminated, truncated: [steps, games];
        final_value: [steps, games, seats], the value after a cut, NaN where nobody knows it
        (that decision is then dropped rather than guessed);
        gamma_into: the discount of a step into each role, where it is not gamma. 0 for the role
        that opens a round makes every round a problem of its own.
        """
        rules, steps = self.rules, self.steps
        if len(gamma_into) not in (0, len(rules.roles)):
            raise ConfigError(f"gamma_into needs one discount per role: {', '.join(rules.roles)}")
        shapes: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {
            "seat": (seat, (steps, self.games * rules.rows)),
            "role": (role, (steps, self.games * rules.rows)),
            "policy": (policy, (steps, self.games * rules.rows)),
            "value": (value, (self.places,)),
            "reward": (reward, (steps, self.games, rules.seats, len(rules.roles))),
            "terminated": (terminated, (steps, self.games)),
            "truncated": (truncated, (steps, self.games)),
        }
        if final_value is None:
            final_value = np.full((steps, self.games, rules.seats), np.nan, np.float32)
        shapes["final_value"] = (final_value, (steps, self.games, rules.seats))
        if skipped is not None:
            shapes["skipped"] = (skipped, (steps, self.games, rules.seats))
        for name, (array, shape) in shapes.items():
            if array.shape != shape:
                raise ConfigError(f"{name} has shape {array.shape}, need {shape}")
        _native.link_rollout(
            rules.seats,
            len(rules.roles),
            self.chains,
            self.learner,
            gamma,
            lambda_,
            [float(g) for g in gamma_into] or [gamma] * len(rules.roles),
            np.ascontiguousarray(seat).reshape(steps, self.games, rules.rows),
            np.ascontiguousarray(role),
            np.ascontiguousarray(policy),
            np.ascontiguousarray(value),
            np.ascontiguousarray(reward),
            np.ascontiguousarray(terminated).view(np.uint8),
            np.ascontiguousarray(truncated).view(np.uint8),
            np.ascontiguousarray(final_value),
            None if skipped is None else np.ascontiguousarray(skipped),
            self.open.view(np.uint8),
            self.link,
            self.next,
            self.paid,
            self.discount,
            self.tail,
            self.advantage,
        )
        return self.advantage
