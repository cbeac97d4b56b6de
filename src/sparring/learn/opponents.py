"""Loss term of the head that predicts what the other seats do before a seat is to move again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sparring.games.rules import Rules
from sparring.learn.terms import Arrays, Weighted
from sparring.nets.heads import OPPONENTS
from sparring.nets.net import HeadOutputs
from sparring.schedule import Schedule

UNKNOWN = -1
"""Target where the other seat does not move before, or a bot or the next rollout moves for it."""


def next_actions(seat: Tensor, action: Tensor, over: Tensor, seats: int) -> Tensor:
    """Return the next action of every other seat [steps, rows, seats - 1], from the left one on.

    seat, action: [steps, rows]. over: [steps, games], whether the game ended in the step. Only
    actions before the row's seat moves again count; those of the same step do.
    """
    (steps, rows), games = seat.shape, over.shape[1]
    each, device = rows // games, seat.device
    step = torch.arange(steps, device=device)[:, None]
    row = torch.arange(rows, device=device)
    game, mine = row // each, seat.clamp(min=0).long()
    # From each step on, when every seat moves first: its step and row, as one number.
    never = 2 * steps * each
    moves = torch.full((steps + 1, games, seats + 1), never, device=device)
    moved = game * (seats + 1) + torch.where(seat >= 0, mine, seats)
    moves.view(steps + 1, -1).scatter_(1, moved, step * each + row % each)
    first = moves.flip(0).cummin(0).values.flip(0)[:, game]
    again = first[1:].gather(2, mine[..., None]) // each
    found = first[:-1].gather(2, (mine[..., None] + torch.arange(1, seats, device=device)) % seats)
    last = torch.where(over, step, 2 * steps).flip(0).cummin(0).values.flip(0)[:, game]
    then = found // each
    known = (then < again) & (then <= last[..., None]) & (found < never) & (seat >= 0)[..., None]
    place = then.clamp(max=steps - 1) * rows + (game * each)[:, None] + found % each
    return torch.where(known, action.reshape(-1).long()[place], UNKNOWN)


class OpponentsTerm(Weighted):
    """Mean cross-entropy of the next actions of the other seats, over those that are known."""

    name = OPPONENTS
    measured = ("opponents_accuracy",)

    def __init__(self, weight: Schedule, rules: Rules) -> None:
        super().__init__(weight)
        self.seats, self.actions = rules.seats, rules.actions

    def targets(self, rollout: Any, max_pending: int) -> npt.NDArray[np.int32]:
        """Return the targets of all places; decisions before the rollout have none."""
        found = np.full((len(rollout.action), self.seats - 1), UNKNOWN, np.int32)
        over = torch.from_numpy(rollout.terminated | rollout.truncated)
        seat = torch.from_numpy(np.ascontiguousarray(rollout.seat))
        action = torch.from_numpy(np.ascontiguousarray(rollout.action[max_pending:]))
        actions = next_actions(seat, action.view(seat.shape), over, self.seats)
        found[max_pending:] = actions.view(-1, self.seats - 1).numpy()
        return found

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        collector = learner.collector
        targets = self.targets(collector.rollout, collector.transitions.max_pending)
        return {OPPONENTS: targets[samples]}

    def logits(self, heads: HeadOutputs) -> Tensor:
        """Logits [rows, other seats, actions]."""
        return heads[OPPONENTS].float().view(-1, self.seats - 1, self.actions)

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        target = rows[OPPONENTS].long()
        known = target != UNKNOWN
        loss = functional.cross_entropy(
            self.logits(heads).transpose(1, 2), target.clamp(min=0), reduction="none"
        )
        return (loss * known).sum(-1) / known.sum(-1).clamp(min=1)

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the accuracy over actions that are known."""
        target = rows[OPPONENTS].long()
        known = target != UNKNOWN
        right = (self.logits(heads).argmax(-1) == target) & known
        return {self.measured[0]: right.sum(-1) / known.sum(-1).clamp(min=1)}
