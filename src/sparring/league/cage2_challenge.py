"""The CAGE-2 challenge: its nine settings and its published leaderboard."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparring.games.cage2 import UNITS, true_states
from sparring.games.rules import Rules
from sparring.league.arena import number_players, play_match
from sparring.league.deals import choose_actions
from sparring.league.intervals import student_95
from sparring.league.match_batch import MatchBatch
from sparring.league.players import Player
from sparring.nets.stateful_player import max_memory_bytes
from sparring.pools.lineups import Lineup
from sparring.pools.native import Pool

GAME = "cage2"
EPISODES = 1000
REDS = {"B_line": "B_LINE", "Meander": "MEANDER", "sleep": "SLEEP"}
LENGTHS = (30, 50, 100)
SETTINGS = tuple((red, steps) for steps in LENGTHS for red in REDS)
"""The nine settings of the total score."""
FIXED = ("red", "max_steps")
"""Flags that the challenge sets."""


@dataclass(frozen=True)
class Published:
    """A row of the challenge's leaderboard."""

    rank: int
    name: str
    total: float
    means: tuple[float, float, float, float, float, float]
    """Of B_line and Meander with 30 steps, with 50, with 100."""
    sleep_means: tuple[float | None, ...] = (0.0, 0.0, 0.0)
    """Against a red that sleeps, with 30, 50 and 100 steps; None if not published."""

    @property
    def row(self) -> tuple[float | None, ...]:
        """Means of all nine settings, in the order of SETTINGS."""
        pairs = zip(self.means[::2], self.means[1::2], self.sleep_means, strict=True)
        return tuple(mean for setting in pairs for mean in setting)


LEADERBOARD = (
    Published(1, "CardiffUni", -54.57, (-3.47, -5.64, -6.41, -8.69, -13.76, -16.60)),
    Published(2, "Keeping it RL", -56.90, (-3.48, -6.47, -5.85, -10.33, -11.39, -19.38)),
    Published(3, "Mindrake", -57.05, (-3.53, -6.76, -6.20, -10.13, -12.78, -17.65)),
    Published(7, "UoA", -69.88, (-3.87, -6.54, -6.74, -12.01, -14.63, -26.09)),
    Published(10, "Keeping it RL, PPO", -73.98, (-4.76, -8.03, -8.13, -12.91, -17.19, -22.94)),
    Published(13, "CCS, PPO", -95.47, (-8.75, -7.31, -14.92, -12.04, -30.19, -22.21)),
    Published(
        17,
        "UTS, DQN",
        -154.71,
        (-5.87, -10.93, -10.82, -26.29, -23.96, -67.89),
        (None, None, None),
    ),
    Published(
        18,
        "restore in turn",
        -823.89,
        (-58.83, -44.29, -93.05, -85.75, -184.34, -192.63),
        (-27.0, -46.0, -92.0),
    ),
    Published(
        19,
        "random",
        -2015.61,
        (-154.06, -33.43, -347.10, -171.49, -726.92, -566.41),
        (-2.80, -4.45, -8.94),
    ),
    Published(20, "sleep", -3112.20, (-218.65, -39.31, -480.17, -267.60, -1134.03, -972.43)),
)
"""Published with preset=CHALLENGE, 1,000 episodes per setting; ten of its twenty rows."""


@dataclass(frozen=True)
class SettingScore:
    """Mean score of the episodes of one setting."""

    mean: float
    error: float
    """Standard error of the mean."""


@dataclass(frozen=True)
class RepairScore:
    """Repairs of one unit per episode, and the share of them that followed the order."""

    repairs: float
    in_order: float | None


def play_settings(
    challenger: Player,
    rules: Rules,
    *,
    games: int,
    seed: int,
    threads: int,
    greedy: bool,
    progress: Callable[[str], None],
) -> dict[tuple[str, int], SettingScore]:
    """Return the mean score of every setting."""
    scores = {}
    for i, (red, length) in enumerate(SETTINGS):
        progress(f"{red}, {length} steps")
        setting = rules.changed({"red": REDS[red], "max_steps": length})
        result = play_match(
            setting, [challenger], games=games, seed=seed + i, threads=threads, greedy=greedy
        )
        low, high = result.first.score_interval
        standard_errors = 2 * student_95(result.distinct_deals - 1)
        scores[red, length] = SettingScore(result.first.score, (high - low) / standard_errors)
    return scores


def total_of(scores: dict[tuple[str, int], SettingScore]) -> SettingScore:
    """Return the sum over all settings, by which the challenge ranks."""
    error = math.sqrt(sum(score.error**2 for score in scores.values()))
    return SettingScore(sum(score.mean for score in scores.values()), error)


def score_repairs(
    challenger: Player, rules: Rules, *, games: int, seed: int, threads: int, sampled: bool = False
) -> dict[str, RepairScore]:
    """Count the repairs of whole episodes by unit, and those that followed the order."""
    # The games are one step longer than is played, so that the last position can be read.
    longest = int(rules.fields["max_steps"].high) - 1
    length = min(int(rules.config["max_steps"]), longest)
    players, policies = number_players(rules, [challenger])
    pool = Pool(
        rules.changed({"max_steps": length + 1}),
        games,
        seed=seed,
        threads=threads,
        lineups=[Lineup(tuple(players))],
        observe=bool(policies),
        memory=max_memory_bytes(list(policies.values())),
    )
    match = MatchBatch(pool, np.ones(games, np.intp))
    for step in range(length):
        (action,) = choose_actions([match], policies, greedy=not sampled, step=step)
        match.batch = pool.step(action)
    states = true_states(pool.tables)
    repairs, in_order = states["repairs"].sum(0), states["in_order"].sum(0)
    return {
        unit: RepairScore(
            float(repairs[i]) / games, float(in_order[i] / repairs[i]) if repairs[i] else None
        )
        for i, unit in enumerate(UNITS)
    }
