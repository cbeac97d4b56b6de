"""Everybody against everybody: seat-fair matches of all pairs, and the ratings that follow.

In a game for two every pair meets once. With more seats one player meets a table full of another,
and the other way round: a cell of the matrix is then one number with one meaning, whoever else
takes part. Tables of many different players would give ratings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config.ranges import MAX_SEED
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.arena import add_offset, play_match, whole_rounds
from sparring.league.intervals import Sprt, Verdict
from sparring.league.match_batch import ReplayRecorder
from sparring.league.players import Player, name_of
from sparring.league.ratings import (
    Rating,
    check_names,
    default_anchors,
    rankings_of,
    rate,
    score_of,
)
from sparring.league.results import MatchRecord, MatchResult, summarize

Floats = npt.NDArray[np.float64]

FIRST_LOOK = 256
"""Games before a sequential test looks for the first time."""
NEXT_LOOK = 0.5
"""It looks again after so many more, as a share of those before."""
SEED_STRIDE, MAX_PARTS = 1_000_003, 1024
"""Between the seeds of two matches, and parts that a pairing may have: all have their own deals."""


@dataclass(frozen=True)
class Pairing:
    """One player against one other, or against a table full of it."""

    one: str
    two: str
    result: MatchResult
    verdict: Verdict = ""
    """What a sequential test decided about the first; nothing without one, or if it ran out."""

    def plain(self) -> dict[str, Any]:
        said = self.result.summary()
        names = ("games", "deals", "distinct_deals", "wins", "ties", "losses", "win", "low", "high")
        kept = {name: said[name] for name in (*names, "score", "others_score", "stats")}
        return {"one": self.one, "two": self.two, **kept, "verdict": self.verdict or None}


@dataclass(frozen=True)
class RoundRobinResult:
    """What a round robin found."""

    rules: Rules
    names: tuple[str, ...]
    pairings: tuple[Pairing, ...]
    ratings: tuple[Rating, ...]
    """The best first."""

    @property
    def order(self) -> list[str]:
        return [rating.player for rating in self.ratings]

    @property
    def games(self) -> int:
        return sum(pairing.result.games for pairing in self.pairings)

    def matrix(self) -> tuple[Floats, Floats, Floats]:
        """Return win shares [players, players] and the ends of their intervals, the best first."""
        size = len(self.names)
        share, low, high = (np.full((size, size), np.nan) for _ in range(3))
        place = {name: at for at, name in enumerate(self.order)}
        for pairing in self.pairings:
            one, two = place[pairing.one], place[pairing.two]
            first = pairing.result.first
            share[one, two] = first.win_share
            low[one, two], high[one, two] = first.win_interval
            if self.rules.seats == 2:
                share[two, one] = 1 - share[one, two]
                low[two, one], high[two, one] = 1 - high[one, two], 1 - low[one, two]
        return share, low, high


def pairs_of(rules: Rules, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return who meets whom: with more than two seats it matters who is alone."""
    return list(combinations(names, 2) if rules.seats == 2 else permutations(names, 2))


def check_players(rules: Rules, players: Sequence[Player]) -> None:
    names = [name_of(player) for player in players]
    if rules.seats == 1:
        raise ConfigError(f"{rules.name} has one seat: nobody meets anybody; use sparring eval")
    if len(names) < 2:
        known = f", this is {names[0]}" if names else ""
        raise ConfigError(
            f"an arena needs at least two players{known}; {rules.name} has the bots "
            f"{', '.join(rules.bots)}"
        )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is there twice; give each player once")


@dataclass(frozen=True)
class RoundRobinSettings:
    """How the matches are played."""

    games: int = 2048
    """Of each pairing, rounded up to whole rounds of the seats; with `sprt` the most."""
    seed: int = 0
    threads: int = 1
    greedy: bool = True
    opening_plies: int | None = None
    """As `play_match` takes them."""
    sprt: Sprt | None = None
    """Ends a pairing as soon as it is decided."""
    keep: Callable[[str, str], ReplayRecorder] | None = None
    """Says which games of a match between two are to be kept."""


Progress = Callable[[int, str], None]
"""Called with the games that were played or saved so far, and who is playing."""
PairingTables = Sequence[Sequence[Player]]
PairingRunner = Callable[[PairingTables], Iterator[tuple[int, tuple[MatchResult, Verdict]]]]
"""Plays pairings somewhere else, in any order: yields the number of each and what it says."""


def play_round_robin(
    rules: Rules,
    players: Sequence[Player],
    settings: RoundRobinSettings,
    *,
    anchors: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    elsewhere: PairingRunner | None = None,
) -> RoundRobinResult:
    """Play all pairings and rate the players. The same arguments give the same result.

    anchors: ratings that are given; left out, the bot `random` has 0, or the weakest bot that
        plays, or the first player.
    elsewhere: who plays the pairings instead of this process.
    """
    check_players(rules, players)
    known = {name_of(player): player for player in players}
    names = tuple(known)
    anchors = default_anchors(names, rules.bots) if anchors is None else anchors
    check_names(names, anchors, [])  # before hours of games
    most, pairs = whole_rounds(rules, settings.games), pairs_of(rules, names)
    tables = [[known[one]] + [known[two]] * (rules.seats - 1) for one, two in pairs]
    found: dict[int, Pairing] = {}

    def tell(at: int, played: int) -> None:
        if progress is not None:
            progress(len(found) * most + played, " - ".join(pairs[at]))

    def here(tables: PairingTables) -> Iterator[tuple[int, tuple[MatchResult, Verdict]]]:
        for at, table in enumerate(tables):
            yield at, play_pairing(rules, table, settings, at, partial(tell, at))

    for at, (result, verdict) in (elsewhere or here)(tables):
        tell(at, most)
        found[at] = Pairing(*pairs[at], result, verdict)
    pairings = [found[at] for at in range(len(pairs))]
    convert = score_of if rules.seats == 2 else rankings_of
    matches: list[Any] = [convert(pairing.result) for pairing in pairings]
    ratings = rate(names, matches, anchors=anchors, seats=rules.seats, seed=settings.seed)
    return RoundRobinResult(rules, names, tuple(pairings), tuple(ratings))


def play_pairing(
    rules: Rules,
    table: Sequence[Player],
    settings: RoundRobinSettings,
    number: int,
    progress: Callable[[int], None],
) -> tuple[MatchResult, Verdict]:
    """Play one pairing, in parts if a sequential test may end it before."""
    most = whole_rounds(rules, settings.games)
    parts: list[MatchResult] = []
    verdict: Verdict = ""
    played = 0
    while played < most and not verdict:
        games = most - played
        if settings.sprt is not None:
            games = min(games, whole_rounds(rules, max(FIRST_LOOK, round(NEXT_LOOK * played))))
        seed = settings.seed + SEED_STRIDE * (number * MAX_PARTS + len(parts))
        part = play_match(
            rules,
            table,
            games=games,
            seed=seed % (MAX_SEED + 1),
            threads=settings.threads,
            greedy=settings.greedy,
            opening_plies=settings.opening_plies,
            progress=add_offset(progress, played),
            keep=settings.keep(name_of(table[0]), name_of(table[1])) if settings.keep else None,
        )
        parts.append(part)
        played += part.games
        if settings.sprt is not None:
            result = join_matches(rules, parts)
            worth = result.distinct_deals / result.deals
            verdict = settings.sprt.verdict(deal_shares(result), worth)
    return join_matches(rules, parts), verdict


def join_matches(rules: Rules, parts: Sequence[MatchResult]) -> MatchResult:
    """Return matches of the same players as one; deals that repeat are found across them."""
    if len(parts) == 1:
        return parts[0]
    records = [part.record for part in parts]
    before = np.cumsum([0, *(part.deals for part in parts[:-1])])
    deal = [record.deal + first for record, first in zip(records, before, strict=True)]
    together = {
        field.name: np.concatenate([getattr(record, field.name) for record in records])
        for field in fields(MatchRecord)
    }
    record = MatchRecord(**(together | {"deal": np.concatenate(deal)}))
    names = [player.name for player in parts[0].players]
    return summarize(rules, names, record, opening_plies=parts[0].opening_plies)


def deal_shares(result: MatchResult) -> Floats:
    """Return the first player's mean win share in every deal."""
    found = result.record
    score = np.take_along_axis(found.score, found.seat_of, axis=1)
    top = score == score.max(axis=1, keepdims=True)
    share = top[:, 0] / top.sum(axis=1)
    shares: Floats = np.bincount(found.deal, share) / np.bincount(found.deal)
    return shares.round(9)  # thirds add up to the same number in any order
