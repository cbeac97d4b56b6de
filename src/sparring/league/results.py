"""What a match says: shares, scores and places, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.games.rules import Rules
from sparring.games.stats import stat_values
from sparring.league.intervals import Interval, is_skewed, mean_interval, share_interval
from sparring.pools.custom.cache import is_custom

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Keeps apart what is added up to a key: an odd number with bits all over."""


OUTCOMES = 3
"""Win, draw and loss."""
ALONE = "alone"
"""What the match in a game of one seat is called."""


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
    decided_interval: Interval
    """Of `decided_share`."""
    score: float
    score_interval: Interval
    rank: float
    """Mean place, 1 is first; players with equal scores share their places' mean."""

    @property
    def decided(self) -> int:
        return self.wins + self.losses

    @property
    def decided_share(self) -> float | None:
        """Share of the decided games that were won; None if there was none."""
        return self.wins / self.decided if self.decided else None


@dataclass(frozen=True)
class MatchRecord:
    """One line per game."""

    seat_of: npt.NDArray[np.intp]
    """[games, players], where everybody sat."""
    score: npt.NDArray[np.float32]
    """[games, seats]."""
    length: npt.NDArray[np.int32]
    end: npt.NDArray[np.uint8]
    deal: npt.NDArray[np.intp]
    """0 and up; games of the same deal had the same cards or opening."""
    moves: npt.NDArray[np.uint64]
    """A fingerprint of all actions; in an own environment of observations and rewards too."""
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """[rotations, counters], what the rules counted at the first player's seats, if anything."""

    def differing(self, chance: bool) -> tuple[int, int]:
        """Count the games, and the deals, that are no repetition of another one.

        Where there is chance, every deal is another: the same moves with other cards are no
        repetition. Without it only `moves` tell games apart.
        """
        deals = int(self.deal.max()) + 1
        if chance:
            key = self.moves ^ (self.deal.astype(np.uint64) * HASH_FACTOR)
            return len(np.unique(key)), deals
        by_deal = np.zeros(deals, np.uint64)
        rotation = 2 * self.seat_of[:, 0].astype(np.uint64) + 1
        np.add.at(by_deal, self.deal, self.moves * (rotation * HASH_FACTOR))
        return len(np.unique(self.moves)), len(np.unique(by_deal))


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
    deals: int
    """Cards or openings, each played once per rotation of the seats: what intervals count."""
    distinct_deals: int
    """Deals that are no repetition of another one."""
    distinct_games: int
    """Games that are no repetition: other moves or, where there is chance, another deal.

    In an own environment other observations or rewards make another game as well.
    """
    opening_plies: int
    """Decisions by lot at the start of every deal."""
    stats: dict[str, float]
    """How the first player plays: `rules.stats` by name, where anything was counted."""
    margin: float | None
    """How much more the first player scored than the others' mean; None without others."""
    margin_interval: Interval
    record: MatchRecord = field(repr=False, compare=False)
    """What every game brought, for ratings."""

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

    @property
    def skewed(self) -> bool:
        """Whether the first player's scores are so skewed that their interval is rough.

        Wins, draws and losses alone are no scores: the interval of the win share tells of them.
        """
        record = self.record
        score = np.take_along_axis(record.score, record.seat_of, axis=1)[:, 0]
        return len(np.unique(score)) > OUTCOMES and is_skewed(score, record.deal)

    def summary(self) -> dict[str, Any]:
        """The first player's result as plain values, as JSON has them."""
        first = self.first
        return {
            "games": first.games,
            "deals": self.deals,
            "distinct_deals": self.distinct_deals,
            "distinct_games": self.distinct_games,
            "opening_plies": self.opening_plies,
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
            "score_low": finite_or_none(first.score_interval[0]),
            "score_high": finite_or_none(first.score_interval[1]),
            "others_score": self.others_score,
            "margin": self.margin,
            "margin_low": finite_or_none(self.margin_interval[0]),
            "margin_high": finite_or_none(self.margin_interval[1]),
            "rank": first.rank,
            "seat_games": list(self.seat_games),
            "seat_wins": list(self.seat_shares),
            "ends": dict(self.ends),
            "length": self.length,
            "stats": dict(self.stats),
        }


def summarize(
    rules: Rules,
    names: Sequence[str],
    record: MatchRecord,
    *,
    opening_plies: int = 0,
) -> MatchResult:
    """Turn the score sheets into shares, means and intervals."""
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    top = score == score.max(axis=1, keepdims=True)
    share = top / top.sum(axis=1, keepdims=True)
    better = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    equal = (score[:, None, :] == score[:, :, None]).sum(axis=2)
    rank = better + (equal + 1) / 2
    games = len(score)
    # Nobody knows whether the seeds of an own environment change anything.
    chance = rules.chance and not is_custom(rules)
    distinct_games, distinct = record.differing(chance)
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
                win_interval=share_interval(share[:, at], record.deal, distinct),
                decided_interval=decided_interval(share[:, at], record.deal, distinct),
                score=float(score[:, at].mean(dtype=np.float64)),
                score_interval=mean_interval(score[:, at], record.deal, distinct),
                rank=float(rank[:, at].mean()),
            )
        )
    ahead = score[:, 0] - score[:, 1:].mean(axis=1, dtype=np.float64) if rules.seats > 1 else None
    sat = [record.seat_of[:, 0] == seat for seat in range(rules.seats)]
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
        deals=int(record.deal.max()) + 1,
        distinct_deals=distinct,
        distinct_games=distinct_games,
        opening_plies=opening_plies,
        stats=stat_values(rules.stats, record.counts.sum(0).tolist()) if len(record.counts) else {},
        margin=None if ahead is None else float(ahead.mean()),
        margin_interval=(
            (math.nan, math.nan) if ahead is None else mean_interval(ahead, record.deal, distinct)
        ),
        record=record,
    )


def save_result(path: Path, result: MatchResult) -> None:
    arrays = {one.name: getattr(result.record, one.name) for one in fields(MatchRecord)}
    names = np.array([player.name for player in result.players])
    with path.open("wb") as file:
        np.savez(file, names=names, opening_plies=result.opening_plies, **arrays)


def load_result(path: Path, rules: Rules) -> MatchResult:
    """Read a match of this game; what it says is worked out anew."""
    with np.load(path, allow_pickle=False) as found:
        record = MatchRecord(**{one.name: found[one.name] for one in fields(MatchRecord)})
        names, plies = found["names"].tolist(), int(found["opening_plies"])
    return summarize(rules, names, record, opening_plies=plies)


def decided_interval(
    share: npt.NDArray[Any], deal: npt.NDArray[np.intp], distinct: int
) -> Interval:
    """The 95 % interval of the share of games won among those won or lost."""
    decided = (share == 0) | (share == 1)
    if not decided.any():
        return 0.0, 1.0
    kept, numbered = np.unique(deal[decided], return_inverse=True)
    # Of the deals that are left the same part repeats others.
    left = max(1, round(distinct * len(kept) / (int(deal.max()) + 1)))
    return share_interval(share[decided], numbered, left)


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON can have it."""
    return value if math.isfinite(value) else None
