"""Loss terms of auxiliary heads (outcome, final score, hidden cards), and KL to a reference policy.

CPU and GPU share the formulas; targets come from this module or from `learn.fused.heads`.

The target of a decision is the result of its game if that ended in the rollout. Otherwise it is
bootstrapped: from the network's prediction at the seat's last decision of the rollout, or at the
final observation of a truncated game. A table [steps + 1, games, seats] holds the targets: at the
step in which a game ended, or in the last entry if it goes on.
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
from sparring.learn.opponents import OpponentsTerm
from sparring.learn.rollout import Episodes, Rollout
from sparring.learn.terms import Arrays, Term, Weighted
from sparring.learn.transforms import MIRRORED, Mirroring
from sparring.nets.distribution import gaussian_kl, masked_log_probs
from sparring.nets.heads import HIDDEN, POLICY, RESULTS, SCORE, WDL, check_hidden
from sparring.nets.net import SCALE_DECAY, HeadOutputs, Net, next_scale
from sparring.schedule import Schedule

Floats = npt.NDArray[np.float32]
Predict = Callable[[npt.NDArray[np.uint8]], Floats]
"""Predicts [rows, RESULTS + 1]: probabilities of win, draw and loss, and the score."""
WIDTH = RESULTS + 1
SEAT = "hidden_seat"
"""Column with the seat of each row."""


@dataclass(frozen=True)
class Outcomes:
    """Targets of outcome and score, by place of the rollout."""

    result: Floats
    """[places, RESULTS + 1]: probabilities of win, draw and loss, and the score; NaN: unknown."""
    final: npt.NDArray[np.bool_]
    """[places], whether the game ended; False: the target is bootstrapped."""
    scores: Floats
    """Scores of all seats of the games that ended."""


def outcomes_of(collector: Collector, predict: Predict) -> Outcomes:
    """Return the targets of a rollout; those of rows without a seat are arbitrary."""
    rollout, rules = collector.rollout, collector.pool.rules
    (steps, games), seats = rollout.terminated.shape, rules.seats
    end = ends_of(rollout, collector.transitions.max_pending, seats)
    table = np.full(((steps + 1) * games * seats, WIDTH), np.nan, np.float32)
    ended = table[: steps * games * seats].reshape(steps, games, seats, WIDTH)
    scores = final_scores(rollout, collector.finished.episodes(), seats)
    over = rollout.terminated & ~np.isnan(scores).any(-1)
    ended[over] = results_of(scores[over])
    write_truncated(rollout, table, predict)
    write_bootstrapped(rollout, end, table[steps * games * seats :], predict)
    place = np.minimum(end, steps * games * seats - 1) // seats
    final = (end < steps * games * seats) & over.reshape(-1)[place]
    return Outcomes(table[end], final, scores[over].reshape(-1))


def ends_of(rollout: Rollout, max_pending: int, seats: int) -> npt.NDArray[np.intp]:
    """Return the index of every place's target in the table."""
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
    pending = (step[0, open_game] * games + open_game) * seats + open_seat
    return np.concatenate([pending, played.reshape(-1)])


def final_scores(rollout: Rollout, episodes: Episodes | None, seats: int) -> Floats:
    """Return the scores of games that ended [steps, games, seats], NaN everywhere else."""
    steps, games = rollout.terminated.shape
    scores = np.full((steps, games, seats), np.nan, np.float32)
    if episodes is None:
        return scores
    game, step = np.nonzero((rollout.terminated | rollout.truncated).T)
    order = np.argsort(episodes.game, kind="stable")
    whole = np.bincount(game, minlength=games) == np.bincount(episodes.game, minlength=games)
    # If a game was lost without a record, the ends of its index cannot be told apart.
    kept, has_target = whole[game], order[whole[episodes.game[order]]]
    scores[step[kept], game[kept]] = episodes.score[has_target][:, :seats]
    return scores


def results_of(scores: Floats) -> Floats:
    """Return win, draw or loss of every seat against the best other one, and its score."""
    seats = scores.shape[-1]
    found = np.zeros((*scores.shape, WIDTH), np.float32)
    found[..., RESULTS] = scores
    for seat in range(seats):
        others = np.delete(scores, seat, -1)
        best = others.max(-1) if seats > 1 else scores[..., seat]
        ahead = np.sign(scores[..., seat] - best).astype(np.intp)
        np.put_along_axis(found[..., seat, :], (1 - ahead)[..., None], 1.0, -1)
    return found


def write_truncated(rollout: Rollout, table: Floats, predict: Predict) -> None:
    """Write predictions at the final observations of truncated games."""
    if not rollout.truncations.where:
        return
    where, mirrored = (
        np.concatenate(each) for each in (rollout.truncations.where, rollout.truncations.mirrored)
    )
    outputs = predict(np.concatenate(rollout.truncations.obs))
    table[where] = outputs
    table[where[mirrored] ^ 1] = from_opponent(outputs[mirrored])


def from_opponent(outputs: Floats) -> Floats:
    """Return a prediction from the opponent's side of a zero-sum game."""
    return np.concatenate([outputs[:, RESULTS - 1 :: -1], -outputs[:, RESULTS:]], -1)


def write_bootstrapped(
    rollout: Rollout, end: npt.NDArray[np.intp], expected: Floats, predict: Predict
) -> None:
    """Write predictions at the last decision of every seat in games that go on."""
    # Pending transitions come first; some of the rows may have no seat.
    first, max_pending = len(rollout.terminated) * len(expected), len(end) - rollout.seat.size
    last = np.full(len(expected), -1, np.intp)
    asked = np.concatenate([np.ones(max_pending, np.bool_), rollout.seat.reshape(-1) >= 0])
    decided = np.flatnonzero((end >= first) & asked)
    last[end[decided] - first] = decided  # the last assignment wins
    has_target = last >= 0
    if has_target.any():
        expected[has_target] = predict(rollout.obs[last[has_target]])


class WdlTerm(Weighted):
    """Cross-entropy of win, draw and loss."""

    name = WDL

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        return {WDL: self.column.outcomes.result[samples, :RESULTS]}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        target = rows[WDL]
        loss = -(target.nan_to_num(0.0) * heads[WDL].float().log_softmax(-1)).sum(-1)
        return loss.masked_fill(target[:, 0].isnan(), 0.0)


class ScoreTerm(Weighted):
    """Squared error of the final score divided by `score_scale`."""

    name = SCORE

    def __init__(self, weight: Schedule, column: OutcomeColumn) -> None:
        super().__init__(weight)
        self.column = column

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        scale = np.float32(float(learner.net.score_scale))
        return {SCORE: self.column.outcomes.result[samples, RESULTS] / scale}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        target = rows[SCORE]
        loss = (heads[SCORE].float().squeeze(-1) - target.nan_to_num(0.0)) ** 2
        return loss.masked_fill(target.isnan(), 0.0)


class HiddenTerm(Weighted):
    """Mean cross-entropy of all items that are hidden from the seat."""

    name = HIDDEN
    measured = ("hidden_accuracy",)

    def __init__(self, weight: Schedule, hidden: Hidden, state_field: StateField) -> None:
        super().__init__(weight)
        self.hidden, self.state_field = hidden, state_field

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        return {SEAT: seats_of(learner, samples)}

    def truth(self, rows: Mapping[str, Tensor]) -> Tensor:
        """The class of every item [rows, items]."""
        read: Tensor = self.hidden.read(torch, rows[HIDDEN], rows[SEAT])
        return read.long()

    def logits(self, heads: HeadOutputs) -> Tensor:
        """Logits [rows, items, classes]."""
        outputs = heads[HIDDEN].float()
        return outputs.view(len(outputs), -1, len(self.hidden.classes))

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        outputs = self.logits(heads).transpose(1, 2)
        return functional.cross_entropy(outputs, self.truth(rows), reduction="none").mean(-1)

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the accuracy over items whose class is not the uninformative one."""
        truth = self.truth(rows)
        correct, informative = self.logits(heads).argmax(-1) == truth, truth != self.hidden.dull
        share = (correct & informative).sum(-1) / informative.sum(-1).clamp(min=1)
        return {self.measured[0]: share}


class OutcomeColumn:
    """Outcome targets of a rollout, and the scales of scores and wins."""

    outcomes: Outcomes
    """Of the current rollout."""

    def __init__(self, blend: float) -> None:
        """blend: weight of the outcome head in the value of a position."""
        self.blend = blend

    def fill(self, learner: Any, samples: npt.NDArray[Any], returns: npt.NDArray[Any]) -> None:
        """Compute the targets; update the scales of scores and wins.

        The value of a win is the slope of returns over win - loss, or 0 if that is negative.
        """
        outcomes = self.outcomes = outcomes_of(learner.collector, predictor(learner))
        net, process_group = learner.net, learner.process_group
        if SCORE in net.heads:
            total, count = process_group.totals(
                [float((outcomes.scores**2).sum(dtype="f8")), float(len(outcomes.scores))]
            )
            if count:
                size = max((total / count) ** 0.5, 1e-6)
                net.rescale_score_head(next_scale(float(net.score_scale), size))
        if self.blend:
            has_target = outcomes.final[samples]
            won = (outcomes.result[samples, 0] - outcomes.result[samples, 2])[has_target]
            sums = [
                float((returns[has_target] * won).sum(dtype="f8")),
                float((won**2).sum(dtype="f8")),
            ]
            gain, decided = process_group.totals(sums)
            if decided:
                slope = (1 - SCALE_DECAY) * max(gain, 0.0) / decided
                net.wdl_unit.fill_(SCALE_DECAY * float(net.wdl_unit) + slope)


def head_terms(rules: Rules, config: HeadsConfig | None) -> list[Term]:
    """Return the loss terms of all configured heads."""
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
    if any(config.opponents.values):
        found.append(OpponentsTerm(config.opponents, rules))
    return found


def predictor(learner: Any) -> Any:
    """Return a function that predicts outcome and score of rows by a learner's network."""

    @torch.no_grad()
    def predict(obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        net, heads = learner.net, learner.forward(torch.from_numpy(obs))
        outputs = torch.zeros(len(obs), WIDTH)
        if WDL in heads:
            outputs[:, :RESULTS] = heads[WDL].float().softmax(-1)
        if SCORE in heads:
            outputs[:, RESULTS:] = heads[SCORE].float() * net.score_scale
        return outputs.numpy()

    return predict


def seats_of(learner: Any, places: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return the seats that decided at places of a rollout."""
    rollout, seats = learner.collector.rollout, learner.rules.seats
    max_pending, chains = (
        learner.collector.transitions.max_pending,
        learner.collector.transitions.chains,
    )
    played = rollout.seat.reshape(-1)[np.maximum(places - max_pending, 0)]
    seat: npt.NDArray[np.int8] = np.where(places < max_pending, places // chains % seats, played)
    return seat.astype(np.int8)


REFERENCE = "reference"
"""Column with log-probabilities of the reference policy."""
AT_ONCE = 4096


class KLPenalty(Weighted):
    """KL(reference || policy) over legal actions: keeps a policy near a frozen one.

    After behavior cloning it keeps the policy while values are still poor; a schedule fades it out.
    """

    name = "reference_kl"

    def __init__(self, net: Net, weight: Schedule, mirrors: Sequence[Mirroring] = ()) -> None:
        """Use a frozen network as the reference.

        mirrors: of the learner; log-probabilities of the reference are mirrored too.
        """
        super().__init__(weight)
        self.net, self.mirrors = net.eval(), mirrors

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Return what the reference says about samples, see `stored`."""
        rows = learner.rows()
        outputs = [
            self.look(rows["obs"][part], rows["mask"][part]).numpy()
            for part in np.array_split(samples, -(-len(samples) // AT_ONCE) or 1)
        ]
        return {REFERENCE: np.concatenate(outputs)}

    @torch.no_grad()
    def look(self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8]) -> Tensor:
        """Return the column of some rows."""
        device = next(self.net.parameters()).device
        rows_read = np.ascontiguousarray(obs[:, : self.net.inputs.row_bytes])
        head = self.net(torch.from_numpy(rows_read).to(device))[POLICY]
        return self.stored(head, torch.from_numpy(mask).to(device)).cpu()

    def stored(self, head: Tensor, mask: Tensor) -> Tensor:
        """Return the column for outputs of the policy head: log-probabilities, or Gaussians."""
        return head.float() if self.net.box else masked_log_probs(head, mask).to(self.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Of the column: there may be thousands of actions."""
        return torch.float32 if self.net.box else torch.float16

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        target = rows[REFERENCE].float()
        for mirror in self.mirrors:
            target = mirror.by_head(target, rows[MIRRORED])
        return kl_from(target, heads[POLICY], box=bool(self.net.box))


def kl_from(target: Tensor, head: Tensor, *, box: bool) -> Tensor:
    """Return KL(target || policy) of each row. target: see `KLPenalty.stored`."""
    if box:
        return gaussian_kl(target, head)
    legal = torch.isfinite(target)
    log_probs = masked_log_probs(head, legal).masked_fill(~legal, 0.0)
    return (target.exp() * (target.masked_fill(~legal, 0.0) - log_probs)).sum(-1)
