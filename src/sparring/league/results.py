"""Results of a match: win shares, scores and ranks, each with its 95 % interval."""

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
"""Odd multiplier of a hash: keeps summed keys distinct."""


OUTCOMES = 3
"""Scores of a game with win, draw and loss alone."""
ALONE = "alone"
"""Name of the match in a game of one seat, which has no opponents."""


@dataclass(frozen=True)
class PlayerResult:
    """Result of one player of a match."""

    name: str
    games: int
    wins: int
    """Games in which the player alone has the highest score."""
    ties: int
    """Games in which the player shares the highest score."""
    losses: int
    win_share: float
    """Mean over games; k players that share the highest score get 1/k of the win each."""
    win_interval: Interval
    decided_interval: Interval
    """Of `decided_share`."""
    score: float
    score_interval: Interval
    rank: float
    """Mean rank, 1 is first; players with equal scores get the mean of their ranks."""

    @property
    def decided(self) -> int:
        return self.wins + self.losses

    @property
    def decided_share(self) -> float | None:
        """Share of the decided games that were won; None if there was none."""
        return self.wins / self.decided if self.decided else None


@dataclass(frozen=True)
class MatchRecord:
    """The games of a match as arrays, one line per game."""

    seat_of: npt.NDArray[np.intp]
    """[games, players], the seat of each player."""
    score: npt.NDArray[np.float32]
    """[games, seats]."""
    length: npt.NDArray[np.int32]
    end: npt.NDArray[np.uint8]
    deal: npt.NDArray[np.intp]
    """0 and up; games of the same deal had the same cards or opening."""
    action_hash: npt.NDArray[np.uint64]
    """Of all actions; in a custom environment of observations and rewards too."""
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """[rotations, counters], of the first player's seats; empty if the rules count nothing."""

    def count_distinct(self, chance: bool) -> tuple[int, int]:
        """Return the numbers of distinct games and of distinct deals.

        With chance, every deal is distinct: the same actions with other cards are another game.
        Without chance, games are distinct if their actions differ.
        """
        deals = int(self.deal.max()) + 1
        if chance:
            key = self.action_hash ^ (self.deal.astype(np.uint64) * HASH_FACTOR)
            return len(np.unique(key)), deals
        by_deal = np.zeros(deals, np.uint64)
        rotation = 2 * self.seat_of[:, 0].astype(np.uint64) + 1
        np.add.at(by_deal, self.deal, self.action_hash * (rotation * HASH_FACTOR))
        return len(np.unique(self.action_hash)), len(np.unique(by_deal))


@dataclass(frozen=True)
class MatchResult:
    """Result of a match. Intervals contain the true value in 95 of 100 matches."""

    game: str
    games: int
    seats: int
    players: tuple[PlayerResult, ...]
    seat_games: tuple[int, ...]
    """By seat: games of the first player there."""
    seat_shares: tuple[float | None, ...]
    """By seat: the first player's win share there, None without games."""
    ends: dict[str, int]
    """Number of games by the reason of their end."""
    length: float
    """Decisions per game, all seats together."""
    deals: int
    """Cards or openings, each played once per rotation of the seats; intervals count deals."""
    distinct_deals: int
    distinct_games: int
    """Games that differ in actions or, with chance, in their deal.

    In a custom environment also those that differ in observations or rewards.
    """
    opening_plies: int
    """Random actions at the start of every deal."""
    stats: dict[str, float]
    """Statistics of the first player's play: `rules.stats` by name."""
    margin: float | None
    """First player's score minus the mean of the others; None without others."""
    margin_interval: Interval
    record: MatchRecord = field(repr=False, compare=False)
    """All games, for ratings."""

    @property
    def first(self) -> PlayerResult:
        """The first player: in `evaluate` the challenger."""
        return self.players[0]

    @property
    def parity(self) -> float:
        """Win share of a player as strong as the others."""
        return 1 / self.seats

    @property
    def others_score(self) -> float | None:
        """Mean score of all players but the first."""
        others = [player.score for player in self.players[1:]]
        return sum(others) / len(others) if others else None

    @property
    def skewed(self) -> bool:
        """Whether the first player's scores are so skewed that their interval is inaccurate.

        False for games with win, draw and loss alone, whose win share has the interval.
        """
        record = self.record
        score = np.take_along_axis(record.score, record.seat_of, axis=1)[:, 0]
        return len(np.unique(score)) > OUTCOMES and is_skewed(score, record.deal)

    def summary(self) -> dict[str, Any]:
        """Return the first player's result as JSON values."""
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
    """Compute shares, means and intervals from the games of a match."""
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    top = score == score.max(axis=1, keepdims=True)
    share = top / top.sum(axis=1, keepdims=True)
    better = (score[:, None, :] > score[:, :, None]).sum(axis=2)
    equal = (score[:, None, :] == score[:, :, None]).sum(axis=2)
    rank = better + (equal + 1) / 2
    games = len(score)
    # A custom environment may ignore its seeds.
    chance = rules.chance and not is_custom(rules)
    distinct_games, distinct = record.count_distinct(chance)
    players = []
    for i, name in enumerate(names):
        wins, shared = int((share[:, i] == 1).sum()), int(top[:, i].sum())
        players.append(
            PlayerResult(
                name=name,
                games=games,
                wins=wins,
                ties=shared - wins,
                losses=games - shared,
                win_share=float(share[:, i].mean()),
                win_interval=share_interval(share[:, i], record.deal, distinct),
                decided_interval=decided_interval(share[:, i], record.deal, distinct),
                score=float(score[:, i].mean(dtype=np.float64)),
                score_interval=mean_interval(score[:, i], record.deal, distinct),
                rank=float(rank[:, i].mean()),
            )
        )
    margin = score[:, 0] - score[:, 1:].mean(axis=1, dtype=np.float64) if rules.seats > 1 else None
    in_seat = [record.seat_of[:, 0] == seat for seat in range(rules.seats)]
    counts = np.bincount(record.end, minlength=len(rules.ends))
    return MatchResult(
        game=rules.name,
        games=games,
        seats=rules.seats,
        players=tuple(players),
        seat_games=tuple(int(mask.sum()) for mask in in_seat),
        seat_shares=tuple(
            float(share[games_there, 0].mean()) if games_there.any() else None
            for games_there in in_seat
        ),
        ends={end: int(count) for end, count in zip(rules.ends, counts, strict=True) if count},
        length=float(record.length.mean()),
        deals=int(record.deal.max()) + 1,
        distinct_deals=distinct,
        distinct_games=distinct_games,
        opening_plies=opening_plies,
        stats=stat_values(rules.stats, record.counts.sum(0).tolist()) if len(record.counts) else {},
        margin=None if margin is None else float(margin.mean()),
        margin_interval=(
            (math.nan, math.nan) if margin is None else mean_interval(margin, record.deal, distinct)
        ),
        record=record,
    )


def save_result(path: Path, result: MatchResult) -> None:
    arrays = {column.name: getattr(result.record, column.name) for column in fields(MatchRecord)}
    names = np.array([player.name for player in result.players])
    with path.open("wb") as file:
        np.savez(file, names=names, opening_plies=result.opening_plies, **arrays)


def load_result(path: Path, rules: Rules) -> MatchResult:
    """Read a saved match of this game and compute its result."""
    with np.load(path, allow_pickle=False) as arrays:
        record = MatchRecord(**{column.name: arrays[column.name] for column in fields(MatchRecord)})
        names, plies = arrays["names"].tolist(), int(arrays["opening_plies"])
    return summarize(rules, names, record, opening_plies=plies)


def decided_interval(
    share: npt.NDArray[Any], deal: npt.NDArray[np.intp], distinct: int
) -> Interval:
    """Return the 95 % interval of the share of games won among those won or lost."""
    decided = (share == 0) | (share == 1)
    if not decided.any():
        return 0.0, 1.0
    deals, index = np.unique(deal[decided], return_inverse=True)
    # The same share of the remaining deals is distinct.
    distinct_decided = max(1, round(distinct * len(deals) / (int(deal.max()) + 1)))
    return share_interval(share[decided], index, distinct_decided)


def finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
