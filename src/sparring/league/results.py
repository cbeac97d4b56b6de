"""What a match says: shares, scores and places, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rules

Interval = tuple[float, float]

Z_95 = 1.959964
"""Half the width of a 95 % interval, in standard errors."""


@dataclass(frozen=True)
class PlayerResult:
    """How one player of a line-up did."""

    name: str
    games: int
    wins: int
    """Games with the highest score alone."""
    ties: int
    """Games with the highest score shared."""
    losses: int
    win_share: float
    """Mean over games; k players who share the highest score get 1/k of the win each."""
    win_interval: Interval
    score: float
    score_interval: Interval
    rank: float
    """Mean place, 1 is first; players with equal scores share their places' mean."""

    @property
    def decided(self) -> int:
        """Games that were won or lost."""
        return self.wins + self.losses

    @property
    def decided_share(self) -> float | None:
        """Share of the decided games that were won; None if there was none."""
        return self.wins / self.decided if self.decided else None

    @property
    def decided_interval(self) -> Interval:
        """Its 95 % interval."""
        return wilson(self.decided_share or 0.0, self.decided) if self.decided else (0.0, 1.0)


@dataclass(frozen=True)
class MatchResult:
    """What a match found. Intervals hold the true value in 95 of 100 matches."""

    game: str
    games: int
    seats: int
    players: tuple[PlayerResult, ...]
    seat_games: tuple[int, ...]
    """By seat: how often the first player sat there."""
    seat_shares: tuple[float | None, ...]
    """By seat: the first player's win share there, None if it never sat there."""
    ends: dict[str, int]
    """Games by the reason why they ended."""
    length: float
    """Decisions per game, all seats together."""

    @property
    def first(self) -> PlayerResult:
        """The first player, in `evaluate` the challenger."""
        return self.players[0]

    @property
    def parity(self) -> float:
        """The win share of a player that is as good as the others."""
        return 1 / self.seats

    @property
    def others_score(self) -> float | None:
        """Mean score of everybody but the first player."""
        others = [player.score for player in self.players[1:]]
        return sum(others) / len(others) if others else None

    def summary(self) -> dict[str, Any]:
        """The first player's result as plain values, as JSON has them."""
        first = self.first
        return {
            "games": first.games,
            "win": first.win_share,
            "low": first.win_interval[0],
            "high": first.win_interval[1],
            "parity": self.parity,
            "wins": first.wins,
            "ties": first.ties,
            "losses": first.losses,
            "decided_win": first.decided_share,
            "decided_low": first.decided_interval[0],
            "decided_high": first.decided_interval[1],
            "score": first.score,
            "score_low": known(first.score_interval[0]),
            "score_high": known(first.score_interval[1]),
            "others_score": self.others_score,
            "rank": first.rank,
            "seat_games": list(self.seat_games),
            "seat_wins": list(self.seat_shares),
            "ends": dict(self.ends),
            "length": self.length,
        }


@dataclass(frozen=True)
class Record:
    """One line per counted game, in the order of (table, episode)."""

    score: npt.NDArray[np.float32]
    """[games, seats]."""
    player: npt.NDArray[np.int16]
    """[games, seats], who sat there as the pool numbers it."""
    length: npt.NDArray[np.int32]
    end: npt.NDArray[np.uint8]


def summarise(
    rules: Rules, names: Sequence[str], seat_of: npt.NDArray[np.intp], record: Record
) -> MatchResult:
    """Turn the score sheets into shares, means and intervals."""
    score = np.take_along_axis(record.score, seat_of, axis=1)
    top = score == score.max(axis=1, keepdims=True)
    share = top / top.sum(axis=1, keepdims=True)
    better = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    equal = (score[:, None, :] == score[:, :, None]).sum(axis=2)
    rank = better + (equal + 1) / 2
    games = len(score)
    players = []
    for at, name in enumerate(names):
        wins, shared = int((share[:, at] == 1).sum()), int(top[:, at].sum())
        players.append(
            PlayerResult(
                name=name,
                games=games,
                wins=wins,
                ties=shared - wins,
                losses=games - shared,
                win_share=float(share[:, at].mean()),
                win_interval=wilson(float(share[:, at].mean()), games),
                score=float(score[:, at].mean(dtype=np.float64)),
                score_interval=interval_of_mean(score[:, at]),
                rank=float(rank[:, at].mean()),
            )
        )
    sat = [seat_of[:, 0] == seat for seat in range(rules.seats)]
    counts = np.bincount(record.end, minlength=len(rules.ends))
    return MatchResult(
        game=rules.name,
        games=games,
        seats=rules.seats,
        players=tuple(players),
        seat_games=tuple(int(here.sum()) for here in sat),
        seat_shares=tuple(float(share[here, 0].mean()) if here.any() else None for here in sat),
        ends={end: int(count) for end, count in zip(rules.ends, counts, strict=True) if count},
        length=float(record.length.mean()),
    )


def wilson(share: float, games: int) -> Interval:
    """The 95 % interval of a win share."""
    # A split win varies less than whole ones of the same mean, so Wilson's interval is never too
    # narrow here; and unlike a normal one it keeps its width at 0 and 100 %.
    weight = Z_95**2 / games
    middle = (share + weight / 2) / (1 + weight)
    half = Z_95 / (1 + weight) * math.sqrt((share * (1 - share) + weight / 4) / games)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def known(value: float) -> float | None:
    """Return a number as JSON can have it."""
    return value if math.isfinite(value) else None


def interval_of_mean(values: npt.NDArray[Any]) -> Interval:
    """The 95 % interval of a mean over many games, where the normal approximation is good.

    One game says nothing about how much games differ: then both ends are nan.
    """
    wide = values.astype(np.float64)
    if len(wide) < 2:
        return math.nan, math.nan
    half = Z_95 * float(wide.std(ddof=1)) / math.sqrt(len(wide))
    return float(wide.mean()) - half, float(wide.mean()) + half
