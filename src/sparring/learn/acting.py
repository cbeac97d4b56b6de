"""Acting: what policies are asked and answer, and how a learner chooses its own actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.games.rules import Rules
from sparring.learn.forward import Forward
from sparring.nets.distribution import Sampler
from sparring.nets.net import POLICY, Heads, head_width

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Draws:
    """Which random numbers answer some rows: the same whatever batch the rows come in."""

    rollout: int
    step: int | npt.NDArray[np.intp]
    """Of all rows, or of each: groups of games may have come to different ones."""
    rows: npt.NDArray[np.intp]

    @property
    def one_step(self) -> int:
        """The step of all rows."""
        assert isinstance(self.step, int)
        return self.step

    def draw(
        self, sampler: Sampler, head: Tensor, mask: Bytes, **how: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Return actions and their log-probabilities. how: see `Sampler.draw`."""
        where: dict[str, Any] = {"rollout": self.rollout, "step": self.step, "rows": self.rows}
        return sampler.draw(head, mask, **where, **how)

    def of(self, rows: Any) -> Draws:
        """Those of some of the rows."""
        step = self.step if isinstance(self.step, int) else self.step[rows]
        return Draws(self.rollout, step, self.rows[rows])


@dataclass(frozen=True)
class Answer:
    """What a policy says about some rows."""

    action: npt.NDArray[Any]
    """The learner's as drawn, before bounds or squashing; others' as games take it."""
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """What the learner keeps beside it."""
    memory: Bytes | None = None
    """What is remembered of each row's seat, the first bytes of its memory [rows, bytes]."""


class Actor(Protocol):
    """Answers the rows of one policy."""

    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row."""


@runtime_checkable
class SeatsAnew(Protocol):
    """An actor whose players last for a game."""

    def begin(self, games: Iterable[int] | None = None) -> None:
        """Let games begin anew, by their numbers in the run; all of them if none are given."""


class GroupedActor(Protocol):
    """Answers the rows of several policies together."""

    slots: int
    """Policies 1 to this one."""

    def answer(self, obs: Bytes, mask: Bytes, slot: npt.NDArray[np.int16], draws: Draws) -> Answer:
        """Choose an action for every row; `slot` says whose it is."""


class Exploring:
    """Answers the learner's rows by its choice; with probability epsilon, any legal action."""

    def __init__(
        self,
        forward: Forward,
        rules: Rules,
        seed: int,
        *,
        greedy: bool,
        keep: Callable[[Heads, Tensor], Mapping[str, npt.NDArray[np.float32]]] | None = None,
    ) -> None:
        """Act with a network.

        greedy: its best action, else one that is drawn from its head.
        keep: what is kept of every row beside its action, of what heads say and its mask.
        """
        self.forward, self.rules, self.greedy, self.keep = forward, rules, greedy, keep
        self.sampler = Sampler(seed)
        self.epsilon = np.zeros(0, np.float32)
        """By game; of one entry: the same in all of them."""

    def set_epsilon(self, epsilon: float | npt.NDArray[np.float32]) -> None:
        """Set how often any action is taken, for all games or for each."""
        self.epsilon = np.atleast_1d(np.asarray(epsilon, np.float32))

    @torch.no_grad()
    def answer(self, obs: Bytes, mask: Bytes, draws: Draws) -> Answer:
        """Choose an action for every row."""
        if self.keep is None and (self.epsilon == 1).all():
            heads = {POLICY: torch.zeros(len(obs), head_width(self.rules))}
        else:
            heads = self.forward(torch.from_numpy(obs))
        game = draws.rows // self.rules.rows
        epsilon = self.epsilon[game] if len(self.epsilon) > 1 else self.epsilon
        explored = np.broadcast_to(epsilon, len(obs))
        squash = self.forward.net.config.squash
        how: dict[str, Any] = {"greedy": self.greedy, "epsilon": explored, "squash": squash}
        action, _ = draws.draw(self.sampler, heads[POLICY], mask, **how)
        kept = self.keep(heads, torch.from_numpy(mask)) if self.keep else {}
        return Answer(action, kept, self.forward.memory(obs, heads))
