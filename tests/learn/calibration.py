"""How far the chances that a network sees can be believed: what it said against what happened.

Games that it has not learned from are played to their ends. All decisions at which it gave a win
about the same chance should have been won about as often; the mean distance between the two is the
expected calibration error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.learn.head_terms import results_of
from sparring.nets.heads import RESULTS, WDL
from sparring.nets.policy import Policy
from sparring.nets.sampling import log_softmax
from sparring.pools import Lineup, Pool
from sparring.pools.lineups import LEARNER

BINS = 10
AT_ONCE = 256
"""Games that are played side by side."""


@dataclass(frozen=True)
class Told:
    """Decisions: what was said, and what came of their games."""

    said: npt.NDArray[np.float32]
    """[decisions, RESULTS], chances."""
    happened: npt.NDArray[np.float32]
    """[decisions, RESULTS], 1 for what came."""
    games: int


@dataclass(frozen=True)
class Bin:
    """Decisions at which something was given about the same chance."""

    said: float
    """Mean chance."""
    happened: float
    """Share of those in which it came."""
    count: int


def listen(
    policy: Policy,
    games: int,
    *,
    seed: int,
    lineups: Sequence[Lineup] = (),
    greedy: bool = False,
) -> Told:
    """Play games to their ends and note what a policy says at every decision of its own.

    seed: another than that of its training. lineups: whom it meets; left out, itself. Chances hold
    for the company in which they were learned. Seats of other policies are its own as well, but
    nobody listens to them. Games that were cut count for nothing.
    """
    if WDL not in policy.net.heads:
        raise ConfigError(
            f"{policy.name} has no head of win, draw and loss; train one with --heads.wdl"
        )
    rules, rounds = policy.rules, -(-games // AT_ONCE)
    company = list(lineups) or [Lineup((LEARNER,) * rules.seats)]
    pool = Pool(rules, min(games, AT_ONCE), seed=seed, lineups=company, memory=policy.memory_bytes)
    heard = Heard(pool.num_games, rounds)
    batch, step = pool.reset(), 0
    while not heard.all:
        mine = np.flatnonzero(batch.policy >= LEARNER)
        obs, mask = batch.obs[mine], batch.mask[mine]
        said = np.exp(log_softmax(policy.heads(obs)[WDL]))
        game, seat, own = mine // rules.rows, batch.seat[mine], batch.policy[mine] == LEARNER
        heard.note(game[own], seat[own], said[own])
        actions: npt.NDArray[Any] = pool.sample_actions()
        actions[mine], memory = policy.decide(obs, mask, greedy=greedy, seed=seed, step=step)
        if policy.memory_bytes:
            pool.memory[game, seat] = memory
        batch, step = pool.step(actions), step + 1
        heard.end(batch.final_game, batch.final_score, batch.terminated)
    return heard.told()


class Heard:
    """What was said in games that are not over yet, and in those that are."""

    def __init__(self, games: int, rounds: int) -> None:
        """rounds: games that count, of every place."""
        self.left = np.full(games, rounds)
        self.open: list[list[tuple[int, npt.NDArray[np.float32]]]] = [[] for _ in range(games)]
        self.said: list[npt.NDArray[np.float32]] = []
        self.happened: list[npt.NDArray[np.float32]] = []
        self.games = 0

    @property
    def all(self) -> bool:
        """Whether enough games are over."""
        return not (self.left > 0).any()

    def note(
        self,
        game: npt.NDArray[np.intp],
        seat: npt.NDArray[np.int8],
        said: npt.NDArray[np.float32],
    ) -> None:
        """Keep what was said of decisions; of places that have played enough, nothing."""
        for one, who, chances in zip(game, seat, said, strict=True):
            if self.left[one] > 0:
                self.open[one].append((int(who), chances))

    def end(
        self,
        ended: npt.NDArray[np.int32],
        score: npt.NDArray[np.float32],
        terminated: npt.NDArray[np.bool_],
    ) -> None:
        """See what came of games."""
        for game, result in zip(ended, results_of(score), strict=True):
            if self.left[game] > 0 and terminated[game]:
                self.games += 1
                self.said += [chances for _, chances in self.open[game]]
                self.happened += [result[seat, :RESULTS] for seat, _ in self.open[game]]
            self.left[game] -= 1
            self.open[game].clear()

    def told(self) -> Told:
        """All of it."""
        if not self.said:
            raise ConfigError("no game came to its end; every one was cut: raise the game's limit")
        return Told(np.stack(self.said), np.stack(self.happened), self.games)


def reliability(
    said: npt.NDArray[np.float32], happened: npt.NDArray[np.float32], bins: int = BINS
) -> list[Bin]:
    """Sort decisions by the chance that something was given; empty bins are left out."""
    which = np.minimum((said * bins).astype(int), bins - 1)
    found = []
    for number in range(bins):
        mine = which == number
        if mine.any():
            means = float(said[mine].mean()), float(happened[mine].mean())
            found.append(Bin(*means, int(mine.sum())))
    return found


def calibration_error(bins: Sequence[Bin]) -> float:
    """The expected distance between what was said and what happened."""
    total = sum(one.count for one in bins)
    return sum(one.count * abs(one.said - one.happened) for one in bins) / max(total, 1)
