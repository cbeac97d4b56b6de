"""Terms of the loss about other heads than policy and value, and the anchor of a policy.

Heads learn who wins, by how much, and what is hidden. Each is a term (`learn.terms`); its formulas
are those of CPU and GPU alike, only where targets come from differs: here, or in
`learn.fused.heads`.

A decision whose game ended in the rollout takes what came of that game. One whose game goes on
takes what the network itself says at that seat's last decision of the rollout, and one whose game
was cut takes what it says about the seat's last row there; where there is none, nothing is known.
What came of decisions lies in a table [steps + 1, games, seats]: at the step in which a game ended,
or behind all steps if it goes on. So nothing has to be swept backwards: a decision's place in the
table is known at once, and the table is filled apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sparring.config import HeadsConfig
from sparring.games.hidden import Hidden, StateField, state_field
from sparring.games.rules import Rules
from sparring.learn.collect import Collector
from sparring.learn.rollout import Episodes, Rollout
from sparring.learn.terms import Arrays, Term, Weighted
from sparring.learn.transforms import MIRRORED, Mirroring
from sparring.nets.distribution import masked_log_probs
from sparring.nets.net import (
    HIDDEN,
    POLICY,
    RESULTS,
    SCALE_DECAY,
    SCORE,
    WDL,
    HeadOutputs,
    Net,
    check_hidden,
    next_scale,
)
from sparring.schedule import Schedule

Floats = npt.NDArray[np.float32]
Say = Callable[[npt.NDArray[np.uint8]], Floats]
"""What the network says of rows: [rows, RESULTS + 1], chances of win, draw and loss, and score."""
WIDTH = RESULTS + 1
SEAT = "hidden_seat"
"""What a minibatch calls the seat that does not see what is hidden."""


@dataclass(frozen=True)
class Outcomes:
    """What came of every decision, by place of the rollout."""

    result: Floats
    """[places, RESULTS + 1]: chances of win, draw and loss, and the score; NaN: not known."""
    final: npt.NDArray[np.bool_]
    """[places], whether that is how the game ended, rather than what the network expects."""
    scores: Floats
    """Of all seats of the games that ended."""


def outcomes_of(collector: Collector, say: Say) -> Outcomes:
    """Say what came of every decision of a rollout. Nobody's rows have any outcome."""
    rollout, rules = collector.rollout, collector.pool.rules
    (steps, games), seats = rollout.terminated.shape, rules.seats
    end = ends_of(rollout, collector.transitions.max_pending, seats)
    table = np.full(((steps + 1) * games * seats, WIDTH), np.nan, np.float32)
    ended = table[: steps * games * seats].reshape(steps, games, seats, WIDTH)
    scores = final_scores(rollout, collector.finished.episodes(), seats)
    over = rollout.terminated & ~np.isnan(scores).any(-1)
    ended[over] = results_of(scores[over])
    put_cuts(rollout, table, say)
    put_expected(rollout, end, table[steps * games * seats :], say)
    place = np.minimum(end, steps * games * seats - 1) // seats
    final = (end < steps * games * seats) & over.reshape(-1)[place]
    return Outcomes(table[end], final, scores[over].reshape(-1))


def ends_of(rollout: Rollout, max_pending: int, seats: int) -> npt.NDArray[np.intp]:
    """For every place, where what came of it stands in the table."""
    steps, games = rollout.terminated.shape
    over = rollout.terminated | rollout.truncated
    step = np.where(over, np.arange(steps)[:, None], steps)
    step = np.minimum.accumulate(step[::-1])[::-1]
    rows = rollout.seat.shape[1] // games
    game = np.repeat(np.arange(games), rows)
    seat = np.maximum(rollout.seat, 0)
    played = (step[:, game] * games + game) * seats + seat
    chains = max_pending // (games * seats)
    open_game, open_seat = np.divmod(np.arange(max_pending) // chains, seats)
    waiting = (step[0, open_game] * games + open_game) * seats + open_seat
    return np.concatenate([waiting, played.reshape(-1)])


def final_scores(rollout: Rollout, episodes: Episodes | None, seats: int) -> Floats:
    """The scores of games that ended [steps, games, seats], NaN everywhere else."""
    steps, games = rollout.terminated.shape
    scores = np.full((steps, games, seats), np.nan, np.float32)
    if episodes is None:
        return scores
    game, step = np.nonzero((rollout.terminated | rollout.truncated).T)
    order = np.argsort(episodes.game, kind="stable")
    whole = np.bincount(game, minlength=games) == np.bincount(episodes.game, minlength=games)
    # Of a place that lost a game without a trace nobody knows which of its ends was that.
    kept, known = whole[game], order[whole[episodes.game[order]]]
    scores[step[kept], game[kept]] = episodes.score[known][:, :seats]
    return scores


def results_of(scores: Floats) -> Floats:
    """Win, draw or loss of every seat against the best other one, and its score [..., WIDTH]."""
    seats = scores.shape[-1]
    found = np.zeros((*scores.shape, WIDTH), np.float32)
    found[..., RESULTS] = scores
    for seat in range(seats):
        others = np.delete(scores, seat, -1)
        best = others.max(-1) if seats > 1 else scores[..., seat]
        ahead = np.sign(scores[..., seat] - best).astype(np.intp)
        np.put_along_axis(found[..., seat, :], (1 - ahead)[..., None], 1.0, -1)
    return found


def put_cuts(rollout: Rollout, table: Floats, say: Say) -> None:
    """Write what is expected of games that were cut, where somebody was to move."""
    if not rollout.truncations.where:
        return
    where, mirrored = (
        np.concatenate(each) for each in (rollout.truncations.where, rollout.truncations.mirrored)
    )
    said = say(np.concatenate(rollout.truncations.obs))
    table[where] = said
    table[where[mirrored] ^ 1] = turned(said[mirrored])


def turned(said: Floats) -> Floats:
    """The same as the other seat of a zero-sum game sees it."""
    return np.concatenate([said[:, RESULTS - 1 :: -1], -said[:, RESULTS:]], -1)


def put_expected(rollout: Rollout, end: npt.NDArray[np.intp], expected: Floats, say: Say) -> None:
    """Write what is expected of games that go on, by the last decision of every seat."""
    # Open decisions come first, whoever made them; of the rows some may be nobody's.
    first, max_pending = len(rollout.terminated) * len(expected), len(end) - rollout.seat.size
    last = np.full(len(expected), -1, np.intp)
    asked = np.concatenate([np.ones(max_pending, np.bool_), rollout.seat.reshape(-1) >= 0])
    decided = np.flatnonzero((end >= first) & asked)
    last[end[decided] - first] = decided  # of several the latest stays
    known = last >= 0
    if known.any():
        expected[known] = say(rollout.obs[last[known]])


class WdlTerm(Weighted):
    """Cross-entropy of win, draw and loss."""

    name = WDL

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Chances of each, as far as they are known."""
        return {WDL: self.column.found.result[samples, :RESULTS]}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """How surprised the head is; 0 where nobody knows."""
        wanted = rows[WDL]
        missed = -(wanted.nan_to_num(0.0) * heads[WDL].float().log_softmax(-1)).sum(-1)
        return missed.masked_fill(wanted[:, 0].isnan(), 0.0)


class ScoreTerm(Weighted):
    """The squared error of the final score, in its own unit."""

    name = SCORE

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Scores in the unit that this update measures them in."""
        scale = np.float32(float(learner.net.score_scale))
        return {SCORE: self.column.found.result[samples, RESULTS] / scale}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """How far the head is off, squared; 0 where nobody knows."""
        wanted = rows[SCORE]
        missed = (heads[SCORE].float().squeeze(-1) - wanted.nan_to_num(0.0)) ** 2
        return missed.masked_fill(wanted.isnan(), 0.0)


class HiddenTerm(Weighted):
    """The mean cross-entropy of everything that the seat does not see."""

    name = HIDDEN
    measured = ("hidden_accuracy",)

    def __init__(self, weight: Schedule, hidden: Hidden, state_field: StateField) -> None:
        super().__init__(weight)
        self.hidden, self.state_field = hidden, state_field

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Whose eyes they are; the bytes with the truth are among the rows already."""
        return {SEAT: seats_of(learner, samples)}

    def truth(self, rows: Mapping[str, Tensor]) -> Tensor:
        """The class of every item [rows, items]."""
        read: Tensor = self.hidden.read(torch, rows[HIDDEN], rows[SEAT])
        return read.long()

    def said(self, heads: HeadOutputs) -> Tensor:
        """Logits [rows, items, classes]."""
        said = heads[HIDDEN].float()
        return said.view(len(said), -1, len(self.hidden.classes))

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        """How surprised the head is, in the mean over items."""
        said = self.said(heads).transpose(1, 2)
        return functional.cross_entropy(said, self.truth(rows), reduction="none").mean(-1)

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
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
        net, process_group = learner.net, learner.process_group
        if SCORE in net.heads:
            total, count = process_group.totals(
                [float((found.scores**2).sum(dtype="f8")), float(len(found.scores))]
            )
            if count:
                size = max((total / count) ** 0.5, 1e-6)
                net.rescale_score_head(next_scale(float(net.score_scale), size))
        if self.blend:
            known = found.final[samples]
            won = (found.result[samples, 0] - found.result[samples, 2])[known]
            sums = [float((returns[known] * won).sum(dtype="f8")), float((won**2).sum(dtype="f8"))]
            paid, decided = process_group.totals(sums)
            if decided:
                slope = (1 - SCALE_DECAY) * max(paid, 0.0) / decided
                net.wdl_unit.fill_(SCALE_DECAY * float(net.wdl_unit) + slope)


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
        hidden = check_hidden(rules)
        found.append(HiddenTerm(config.hidden, hidden, state_field(rules, hidden.field)))
    return found


def saying(learner: Any) -> Any:
    """What a learner's network says of rows, as `learn.head_terms` asks for it."""

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
    max_pending, chains = (
        learner.collector.transitions.max_pending,
        learner.collector.transitions.chains,
    )
    played = rollout.seat.reshape(-1)[np.maximum(places - max_pending, 0)]
    seat: npt.NDArray[np.int8] = np.where(places < max_pending, places // chains % seats, played)
    return seat.astype(np.int8)


REFERENCE = "reference"
"""The column of log-probabilities of the reference policy."""
AT_ONCE = 4096


class KLPenalty(Weighted):
    """KL(anchor || policy) over the legal actions: holds a policy near to a frozen one.

    What was cloned is not forgotten while values are still poor; a schedule lets go of it.
    """

    name = "reference_kl"

    def __init__(self, net: Net, weight: Schedule, mirrors: Sequence[Mirroring] = ()) -> None:
        """Hold a policy near to what this network says; nobody may change that any more.

        mirrors: in which rows are learned from: so is the anchor's word.
        """
        super().__init__(weight)
        self.net, self.mirrors = net.eval(), mirrors

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Of every sample, the anchor's log-probabilities; -inf where an action is not legal."""
        rows = learner.rows()
        said = [
            self.said(rows["obs"][part], rows["mask"][part]).numpy()
            for part in np.array_split(samples, -(-len(samples) // AT_ONCE) or 1)
        ]
        return {REFERENCE: np.concatenate(said)}

    @torch.no_grad()
    def said(self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8]) -> Tensor:
        """What the anchor says about rows, in 16 bits: there may be thousands of actions."""
        device = next(self.net.parameters()).device
        own = np.ascontiguousarray(obs[:, : self.net.inputs.row_bytes])
        logits = self.net(torch.from_numpy(own).to(device))[POLICY]
        return masked_log_probs(logits, torch.from_numpy(mask).to(device)).half().cpu()

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        wanted = rows[REFERENCE].float()
        for mirror in self.mirrors:
            image = wanted.index_select(1, mirror.places)
            wanted = torch.where(rows[MIRRORED].unsqueeze(1), image, wanted)
        legal = torch.isfinite(wanted)
        log_probs = masked_log_probs(heads[POLICY], legal).masked_fill(~legal, 0.0)
        return (wanted.exp() * (wanted.masked_fill(~legal, 0.0) - log_probs)).sum(-1)
