"""Round robin: seat-fair matches of all pairs, and the ratings that follow from them.

In a game for two every pair meets once. With more seats one player meets another that has all other
seats, and the other way round: so a cell of the matrix does not depend on the other players.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations, permutations
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from sparring.config.ranges import MAX_SEED
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.arena import add_offset, play_match, whole_rounds
from sparring.league.intervals import Interval, Sprt, Verdict
from sparring.league.match_batch import ReplayRecorder
from sparring.league.players import Player, name_of
from sparring.league.ratings import (
    PairScore,
    Rankings,
    Rating,
    check_names,
    default_anchors,
    rankings_of,
    rate,
    score_of,
)
from sparring.league.results import MatchRecord, MatchResult, summarize

Floats = npt.NDArray[np.float64]

FIRST_TEST_GAMES = 256
"""Games before the first look of a sequential test."""
NEXT_TEST_SHARE = 0.5
"""Further games before its next look, as a share of those played."""
SEED_STRIDE, MAX_PARTS = 1_000_003, 1024
"""Difference between the seeds of two matches, and most parts of a pairing: no deal repeats."""


class PlayedPairing(Protocol):
    """What ratings and tables need of one player against another that has all other seats."""

    @property
    def one(self) -> str:
        """The player."""

    @property
    def two(self) -> str:
        """The other."""

    @property
    def games(self) -> int:
        """Games played."""

    @property
    def deals(self) -> int:
        """Deals played, each from every seat."""

    @property
    def distinct_deals(self) -> int:
        """Deals that differ."""

    @property
    def win_share(self) -> float:
        """Of the player."""

    @property
    def win_interval(self) -> Interval:
        """Of the win share."""

    def score(self) -> PairScore | Rankings:
        """Return the results for `rate`."""


AnyPairing = TypeVar("AnyPairing", bound=PlayedPairing)


@dataclass(frozen=True)
class Pairing:
    """One player against another, which has all other seats."""

    one: str
    two: str
    result: MatchResult
    verdict: Verdict = ""
    """Decision of the sequential test about the first player; "" without one or if undecided."""

    @property
    def games(self) -> int:
        return self.result.games

    @property
    def deals(self) -> int:
        return self.result.deals

    @property
    def distinct_deals(self) -> int:
        return self.result.distinct_deals

    @property
    def win_share(self) -> float:
        return self.result.first.win_share

    @property
    def win_interval(self) -> Interval:
        return self.result.first.win_interval

    def score(self) -> PairScore | Rankings:
        """Return the results for `rate`."""
        return score_of(self.result) if self.result.seats == 2 else rankings_of(self.result)

    def plain(self) -> dict[str, Any]:
        summary = self.result.summary()
        names = ("games", "deals", "distinct_deals", "wins", "ties", "losses", "win", "low", "high")
        values = {name: summary[name] for name in (*names, "score", "others_score", "stats")}
        return {"one": self.one, "two": self.two, **values, "verdict": self.verdict or None}


@dataclass(frozen=True)
class RoundRobinResult(Generic[AnyPairing]):
    """Pairings and ratings of a round robin."""

    rules: Rules
    names: tuple[str, ...]
    pairings: tuple[AnyPairing, ...]
    ratings: tuple[Rating, ...]
    """Best first."""

    @property
    def order(self) -> list[str]:
        return [rating.player for rating in self.ratings]

    @property
    def games(self) -> int:
        return sum(pairing.games for pairing in self.pairings)

    def matrix(self) -> tuple[Floats, Floats, Floats]:
        """Return win shares [players, players] and the ends of their intervals, best first."""
        size = len(self.names)
        share, low, high = (np.full((size, size), np.nan) for _ in range(3))
        index = {name: i for i, name in enumerate(self.order)}
        for pairing in self.pairings:
            one, two = index[pairing.one], index[pairing.two]
            share[one, two] = pairing.win_share
            low[one, two], high[one, two] = pairing.win_interval
            if self.rules.seats == 2:
                share[two, one] = 1 - share[one, two]
                low[two, one], high[two, one] = 1 - high[one, two], 1 - low[one, two]
        return share, low, high


def pairs_of(rules: Rules, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return all pairs; with more than two seats both orders, since the first has one seat."""
    return list(combinations(names, 2) if rules.seats == 2 else permutations(names, 2))


def check_players(rules: Rules, players: Sequence[Player]) -> None:
    names = [name_of(player) for player in players]
    if rules.seats == 1:
        raise ConfigError(f"{rules.name} has one seat and no opponents; use sparring eval")
    if len(names) < 2:
        given = f", this is {names[0]}" if names else ""
        raise ConfigError(
            f"an arena needs at least two players{given}; {rules.name} has the bots "
            f"{', '.join(rules.bots)}"
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is given twice; give each player once")


@dataclass(frozen=True)
class RoundRobinSettings:
    """Settings of all matches of a round robin."""

    games: int = 2048
    """Of each pairing, rounded up to whole rounds of the seats; with `sprt` the maximum."""
    seed: int = 0
    threads: int = 1
    greedy: bool = True
    opening_plies: int | None = None
    """See `play_match`."""
    sprt: Sprt | None = None
    """Ends a pairing as soon as it is decided."""
    make_recorder: Callable[[str, str], ReplayRecorder] | None = None
    """Returns the recorder of replays for a match between two players."""


Progress = Callable[[int, str], None]
"""Called with the games played or skipped so far, and the names of the pair."""
PairingTables = Sequence[Sequence[Player]]
PairingRunner = Callable[[PairingTables], Iterator[tuple[int, tuple[MatchResult, Verdict]]]]
"""Plays pairings in other processes, in any order: yields the index and result of each."""


def play_round_robin(
    rules: Rules,
    players: Sequence[Player],
    settings: RoundRobinSettings,
    *,
    anchors: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    runner: PairingRunner | None = None,
) -> RoundRobinResult[Pairing]:
    """Play all pairings and rate the players. The same arguments give the same result.

    anchors: fixed ratings; default: 0 for the bot `random`, else for the weakest bot that plays,
        else for the first player.
    runner: plays the pairings instead of this process.
    """
    check_players(rules, players)
    by_name = {name_of(player): player for player in players}
    names = tuple(by_name)
    anchors = default_anchors(names, rules.bots) if anchors is None else anchors
    check_names(names, anchors, [])  # fails before hours of games
    max_games, pairs = whole_rounds(rules, settings.games), pairs_of(rules, names)
    tables = [[by_name[one]] + [by_name[two]] * (rules.seats - 1) for one, two in pairs]
    played_pairings: dict[int, Pairing] = {}

    def report(i: int, played: int) -> None:
        if progress is not None:
            progress(len(played_pairings) * max_games + played, " - ".join(pairs[i]))

    def play_locally(tables: PairingTables) -> Iterator[tuple[int, tuple[MatchResult, Verdict]]]:
        for i, table in enumerate(tables):
            yield i, play_pairing(rules, table, settings, i, partial(report, i))

    for i, (result, verdict) in (runner or play_locally)(tables):
        report(i, max_games)
        played_pairings[i] = Pairing(*pairs[i], result, verdict)
    pairings = [played_pairings[i] for i in range(len(pairs))]
    return rate_pairings(rules, names, pairings, anchors=anchors, seed=settings.seed)


def rate_pairings(
    rules: Rules,
    names: Sequence[str],
    pairings: Sequence[AnyPairing],
    *,
    anchors: Mapping[str, float] | None = None,
    seed: int = 0,
) -> RoundRobinResult[AnyPairing]:
    """Rate the players of pairings. anchors: see `play_round_robin`."""
    anchors = default_anchors(names, rules.bots) if anchors is None else anchors
    matches: list[Any] = [pairing.score() for pairing in pairings]
    ratings = rate(names, matches, anchors=anchors, seats=rules.seats, seed=seed)
    return RoundRobinResult(rules, tuple(names), tuple(pairings), tuple(ratings))


def play_pairing(
    rules: Rules,
    table: Sequence[Player],
    settings: RoundRobinSettings,
    number: int,
    progress: Callable[[int], None],
) -> tuple[MatchResult, Verdict]:
    """Play one pairing, in parts if a sequential test may end it early."""
    max_games = whole_rounds(rules, settings.games)
    parts: list[MatchResult] = []
    verdict: Verdict = ""
    played = 0
    while played < max_games and not verdict:
        games = max_games - played
        if settings.sprt is not None:
            games = min(games, whole_rounds(rules, games_to_next_test(played)))
        recorder = None
        if settings.make_recorder:
            recorder = settings.make_recorder(name_of(table[0]), name_of(table[1]))
        part = play_match(
            rules,
            table,
            games=games,
            seed=part_seed(settings.seed, number, len(parts)),
            threads=settings.threads,
            greedy=settings.greedy,
            opening_plies=settings.opening_plies,
            progress=add_offset(progress, played),
            recorder=recorder,
        )
        parts.append(part)
        played += part.games
        if settings.sprt is not None:
            result = join_matches(rules, parts)
            distinct = result.distinct_deals / result.deals
            verdict = settings.sprt.verdict(deal_shares(result), distinct)
    return join_matches(rules, parts), verdict


def games_to_next_test(played: int) -> int:
    """Return how many games a sequential test plays before it looks again."""
    return max(FIRST_TEST_GAMES, round(NEXT_TEST_SHARE * played))


def part_seed(seed: int, number: int, part: int) -> int:
    """Return the seed of a part of a pairing."""
    return (seed + SEED_STRIDE * (number * MAX_PARTS + part)) % (MAX_SEED + 1)


def join_matches(rules: Rules, parts: Sequence[MatchResult]) -> MatchResult:
    """Return matches of the same players as one; distinct deals are counted across them."""
    if len(parts) == 1:
        return parts[0]
    records = [part.record for part in parts]
    offsets = np.cumsum([0, *(part.deals for part in parts[:-1])])
    deal = [record.deal + offset for record, offset in zip(records, offsets, strict=True)]
    columns = {
        field.name: np.concatenate([getattr(record, field.name) for record in records])
        for field in fields(MatchRecord)
    }
    record = MatchRecord(**(columns | {"deal": np.concatenate(deal)}))
    names = [player.name for player in parts[0].players]
    return summarize(rules, names, record, opening_plies=parts[0].opening_plies)


def deal_shares(result: MatchResult, players: int = 1) -> Floats:
    """Return the mean win share of the first players together in every deal."""
    record = result.record
    score = np.take_along_axis(record.score, record.seat_of, axis=1)
    top = score == score.max(axis=1, keepdims=True)
    share = top[:, :players].sum(axis=1) / top.sum(axis=1)
    shares: Floats = np.bincount(record.deal, share) / np.bincount(record.deal)
    return shares.round(9)  # thirds add up to the same number in any order
