"""What came of games: for every decision of a seat, whether it won in the end, and its score.

A decision whose game ended in the rollout takes what came of that game. One whose game goes on
takes what the network itself says at that seat's last decision of the rollout, and one whose game
was cut takes what it says about the seat's last row there; where there is none, nothing is known.

`End` is a place in a table [steps + 1, games, seats]: the step in which a game ended, or behind all
steps if it goes on. So nothing has to be swept backwards: a decision's place in the table is known
at once, and the table is filled apart. `learn.fused.outcomes` is the same on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparring.learn.collect import Collector
from sparring.learn.rollout import Episodes, Rollout
from sparring.nets.net import RESULTS

Floats = npt.NDArray[np.float32]
Say = Callable[[npt.NDArray[np.uint8]], Floats]
"""What the network says of rows: [rows, RESULTS + 1], chances of win, draw and loss, and score."""
WIDTH = RESULTS + 1


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
    end = ends_of(rollout, collector.transitions.carried, seats)
    table = np.full(((steps + 1) * games * seats, WIDTH), np.nan, np.float32)
    ended = table[: steps * games * seats].reshape(steps, games, seats, WIDTH)
    scores = final_scores(rollout, collector.earned.episodes(), seats)
    over = rollout.terminated & ~np.isnan(scores).any(-1)
    ended[over] = results_of(scores[over])
    put_cuts(rollout, table, say)
    put_expected(rollout, end, table[steps * games * seats :], say)
    place = np.minimum(end, steps * games * seats - 1) // seats
    final = (end < steps * games * seats) & over.reshape(-1)[place]
    return Outcomes(table[end], final, scores[over].reshape(-1))


def ends_of(rollout: Rollout, carried: int, seats: int) -> npt.NDArray[np.intp]:
    """For every place, where what came of it stands in the table."""
    steps, games = rollout.terminated.shape
    over = rollout.terminated | rollout.truncated
    step = np.where(over, np.arange(steps)[:, None], steps)
    step = np.minimum.accumulate(step[::-1])[::-1]
    rows = rollout.seat.shape[1] // games
    game = np.repeat(np.arange(games), rows)
    seat = np.maximum(rollout.seat, 0)
    played = (step[:, game] * games + game) * seats + seat
    chains = carried // (games * seats)
    open_game, open_seat = np.divmod(np.arange(carried) // chains, seats)
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
    if not rollout.cuts.where:
        return
    where, mirrored = (np.concatenate(each) for each in (rollout.cuts.where, rollout.cuts.mirrored))
    said = say(np.concatenate(rollout.cuts.obs))
    table[where] = said
    table[where[mirrored] ^ 1] = turned(said[mirrored])


def turned(said: Floats) -> Floats:
    """The same as the other seat of a zero-sum game sees it."""
    return np.concatenate([said[:, RESULTS - 1 :: -1], -said[:, RESULTS:]], -1)


def put_expected(rollout: Rollout, end: npt.NDArray[np.intp], expected: Floats, say: Say) -> None:
    """Write what is expected of games that go on, by the last decision of every seat."""
    first = len(rollout.terminated) * len(expected)
    last = np.full(len(expected), -1, np.intp)
    decided = np.flatnonzero(end >= first)
    decided = decided[is_asked(rollout, decided)]
    last[end[decided] - first] = decided  # of several the latest stays
    known = last >= 0
    if known.any():
        expected[known] = say(rollout.obs[last[known]])


def is_asked(rollout: Rollout, places: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether somebody was to decide there; open decisions may be nobody's, and come first."""
    carried = len(rollout.obs) - rollout.seat.size
    seat = rollout.seat.reshape(-1)[np.maximum(places - carried, 0)]
    return (places < carried) | (seat >= 0)
