"""Three phases as a curriculum, and the same written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparring.curriculum.curriculum import SINGLE_PHASE, Curriculum
from sparring.curriculum.phases import Phase
from sparring.games.rules import Rules
from sparring.learn.plan import Seating
from sparring.pools import LEARNER, Lineup
from sparring.schedule import Moment, Schedule

SKULL_KING = Rules("skull_king", {"rounds": [1, 2, 3]})
SELF = Lineup((LEARNER,) * 4)
HARD = Lineup((LEARNER, "captain", "captain", "captain"))


def read(text: str) -> Schedule:
    return Schedule.read(text)


def seatings(**weights: str) -> tuple[Seating, ...]:
    known = {"alone": SELF, "hard": HARD}
    return tuple(Seating(known[name], read(weight)) for name, weight in weights.items())


def three_phases() -> Curriculum:
    """Decisions end the first, games the second; the last one stays."""
    first = Phase(
        "first",
        decisions=5000,
        opponents=(),
        rewards={"score_delta": read("0:1,4000:0.2"), "manager.win": read("2")},
        settings={"ppo": {"lr": read("0:1e-3,5000:1e-4")}},
    )
    second = Phase(
        "second",
        episodes=300,
        opponents=(),
        flags={"round_weights": [read("0ep:1,200ep:5"), 1.0, 1.0]},
        rewards={"score_delta": read("0%:1,100%:3")},
        clear_replay=True,
    )
    last = Phase("last")
    seated = (
        seatings(alone="1", hard="0:0,3000:2"),
        seatings(hard="1"),
        seatings(alone="1", hard="0:5,20000:1"),
    )
    own = Phase(SINGLE_PHASE, rewards={"win": read("0:0,20000:1")})
    return Curriculum(SKULL_KING, (first, second, last), seated, own)


def along(points: list[tuple[float, float]], at: float) -> float:
    (start, value), (end, target) = points
    return target if at >= end else value + (target - value) * (at - start) / (end - start)


class Reference:
    """The same three phases, written out."""

    def __init__(self) -> None:
        self.phase, self.begun = 0, Moment(0, 0.0)
        self.rounds: Any = None

    def go(self, now: Moment) -> None:
        gone = now.decisions - self.begun.decisions, now.episodes - self.begun.episodes
        if (self.phase == 0 and gone[0] >= 5000) or (self.phase == 1 and gone[1] >= 300):
            self.phase, self.begun = self.phase + 1, now

    def apply(self, pool: Any, now: Moment) -> None:
        decisions = now.decisions - self.begun.decisions
        games = now.episodes - self.begun.episodes
        win = along([(0, 0), (20000, 1)], now.decisions)
        if self.phase == 0:
            paid = {"score_delta": along([(0, 1), (4000, 0.2)], decisions), "win": (2, win)}
            hard = along([(0, 0), (3000, 2)], decisions)
            tables = [(SELF, 1.0), (HARD, hard)]
            rounds = SKULL_KING.config["round_weights"]
        elif self.phase == 1:
            paid = {"score_delta": along([(0, 1), (300, 3)], games), "win": win}
            tables = [(HARD, 1.0)]
            rounds = [along([(0, 1), (200, 5)], games), 1.0, 1.0]
        else:
            paid = {"score_delta": 1.0, "win": win}  # as the game has it
            tables = [(SELF, 1.0), (HARD, along([(0, 5), (20000, 1)], now.decisions))]
            rounds = SKULL_KING.config["round_weights"]
        pool.set_lineups([Lineup(t.players, weight) for t, weight in tables if weight > 0])
        pool.set_rewards(paid)
        if rounds != self.rounds:
            pool.set_config(round_weights=rounds)
            self.rounds = rounds


def moments(count: int, seed: int) -> list[Moment]:
    """As updates bring them, in uneven steps."""
    draw = np.random.default_rng(seed)
    steps = draw.integers(1, 60, size=(count, 2)).cumsum(axis=0)
    return [Moment(int(d), i / count, int(e) // 4) for i, (d, e) in enumerate(steps)]
