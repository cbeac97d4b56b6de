"""What heads beside policy and value learn: who wins, by how much, and what is hidden.

Each is a term of the loss (`learn.terms`); its formulas are those of CPU and GPU alike, only where
targets come from differs (`learn.outcomes`, `learn.fused.outcomes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import HeadsConfig
from sparring.games.hidden import Hidden, StateField, field_of
from sparring.games.rules import Rules
from sparring.learn.outcomes import WIDTH, Outcomes, outcomes_of
from sparring.learn.terms import Arrays, Term, Weighted
from sparring.nets.net import (
    HIDDEN,
    RESULTS,
    SCORE,
    UNIT_MEMORY,
    WDL,
    Heads,
    demand_hidden,
    next_unit,
)
from sparring.schedule import Schedule

SEAT = "hidden_seat"
"""What a minibatch calls the seat that does not see what is hidden."""


class WdlTerm(Weighted):
    """Cross-entropy of win, draw and loss."""

    name = WDL

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        """column: what came of games."""
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Chances of each, as far as they are known."""
        return {WDL: self.column.found.result[samples, :RESULTS]}

    def each(self, heads: Heads, rows: Mapping[str, Tensor]) -> Tensor:
        """How surprised the head is; 0 where nobody knows."""
        wanted = rows[WDL]
        missed = -(wanted.nan_to_num(0.0) * heads[WDL].float().log_softmax(-1)).sum(-1)
        return missed.masked_fill(wanted[:, 0].isnan(), 0.0)


class ScoreTerm(Weighted):
    """The squared error of the final score, in its own unit."""

    name = SCORE

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        """column: what came of games."""
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Scores in the unit that this update measures them in."""
        scale = np.float32(float(learner.net.score_scale))
        return {SCORE: self.column.found.result[samples, RESULTS] / scale}

    def each(self, heads: Heads, rows: Mapping[str, Tensor]) -> Tensor:
        """How far the head is off, squared; 0 where nobody knows."""
        wanted = rows[SCORE]
        missed = (heads[SCORE].float().squeeze(-1) - wanted.nan_to_num(0.0)) ** 2
        return missed.masked_fill(wanted.isnan(), 0.0)


class HiddenTerm(Weighted):
    """The mean cross-entropy of everything that the seat does not see."""

    name = HIDDEN
    measured = ("hidden_accuracy",)

    def __init__(self, weight: Schedule, hidden: Hidden, state_field: StateField) -> None:
        """hidden: what that is. state_field: where games keep the truth."""
        super().__init__(weight)
        self.hidden, self.state_field = hidden, state_field

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Whose eyes they are; the bytes with the truth are among the rows already."""
        return {SEAT: seats_of(learner, samples)}

    def truth(self, rows: Mapping[str, Tensor]) -> Tensor:
        """The class of every item [rows, items]."""
        read: Tensor = self.hidden.read(torch, rows[HIDDEN], rows[SEAT])
        return read.long()

    def said(self, heads: Heads) -> Tensor:
        """Logits [rows, items, classes]."""
        said = heads[HIDDEN].float()
        return said.view(len(said), -1, len(self.hidden.classes))

    def each(self, heads: Heads, rows: Mapping[str, Tensor]) -> Tensor:
        """How surprised the head is, in the mean over items."""
        said = self.said(heads).transpose(1, 2)
        return functional.cross_entropy(said, self.truth(rows), reduction="none").mean(-1)

    def measure(self, heads: Heads, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The share of items whose class is guessed right, of those that say something."""
        truth = self.truth(rows)
        right, telling = self.said(heads).argmax(-1) == truth, truth != self.hidden.dull
        share = (right & telling).sum(-1) / telling.sum(-1).clamp(min=1)
        return {self.measured[0]: share}


class OutcomeColumn:
    """What came of the games of a rollout, and the units of it."""

    found: Outcomes
    """Of the present rollout."""

    def __init__(self, blend: float) -> None:
        """blend: share of win, draw and loss in the value of a position."""
        self.blend = blend

    def fill(self, learner: Any, samples: npt.NDArray[Any], returns: npt.NDArray[Any]) -> None:
        """Say what came of every decision; choose the units of scores and wins by it.

        A win is worth what returns gain with it: the slope of returns over win - loss. Where they
        lose with it, as in rewards for something else, it is worth nothing.
        """
        found = self.found = outcomes_of(learner.collector, saying(learner))
        net, together = learner.net, learner.together
        if SCORE in net.heads:
            total, count = together.totals(
                [float((found.scores**2).sum(dtype="f8")), float(len(found.scores))]
            )
            if count:
                size = max((total / count) ** 0.5, 1e-6)
                net.rescale_scores(next_unit(float(net.score_scale), size))
        if self.blend:
            known = found.final[samples]
            won = (found.result[samples, 0] - found.result[samples, 2])[known]
            sums = [float((returns[known] * won).sum(dtype="f8")), float((won**2).sum(dtype="f8"))]
            paid, decided = together.totals(sums)
            if decided:
                slope = (1 - UNIT_MEMORY) * max(paid, 0.0) / decided
                net.wdl_unit.fill_(UNIT_MEMORY * float(net.wdl_unit) + slope)


def head_terms(rules: Rules, config: HeadsConfig | None) -> list[Term]:
    """The terms of all heads that a run asks for."""
    if config is None:
        return []
    outcome, found = OutcomeColumn(config.blend), list[Term]()
    if any(config.wdl.values):
        found.append(WdlTerm(config.wdl, outcome))
    if any(config.score.values):
        found.append(ScoreTerm(config.score, outcome))
    if any(config.hidden.values):
        hidden = demand_hidden(rules)
        found.append(HiddenTerm(config.hidden, hidden, field_of(rules, hidden.field)))
    return found


def saying(learner: Any) -> Any:
    """What a learner's network says of rows, as `learn.outcomes` asks for it."""

    @torch.no_grad()
    def say(obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        net, heads = learner.net, learner.forward(torch.from_numpy(obs))
        said = torch.zeros(len(obs), WIDTH)
        if WDL in heads:
            said[:, :RESULTS] = heads[WDL].float().softmax(-1)
        if SCORE in heads:
            said[:, RESULTS:] = heads[SCORE].float() * net.score_scale
        return said.numpy()

    return say


def seats_of(learner: Any, places: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Who decided at places of a rollout."""
    rollout, seats = learner.collector.rollout, learner.rules.seats
    carried, chains = learner.collector.transitions.carried, learner.collector.transitions.chains
    played = rollout.seat.reshape(-1)[np.maximum(places - carried, 0)]
    seat: npt.NDArray[np.int8] = np.where(places < carried, places // chains % seats, played)
    return seat.astype(np.int8)
