"""A duel: whether one player is stronger than another, by a sequential test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparring.games.rules import Rules
from sparring.league.arena import add_offset, play_match, seat_splits, whole_rounds
from sparring.league.intervals import Interval, Sprt, Verdict, deal_share_interval
from sparring.league.players import Player
from sparring.league.results import MatchResult
from sparring.league.round_robin import deal_shares, games_to_next_test, join_matches, part_seed


@dataclass(frozen=True)
class Duel:
    """What a duel came to."""

    games: int
    share: float
    """Of the wins; equal players have one half."""
    interval: Interval
    verdict: Verdict
    """About the first player; "" if it is not decided."""


def play_duel(
    rules: Rules,
    one: Player,
    two: Player,
    *,
    games: int,
    sprt: Sprt,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Duel:
    """Play until the test decides, at most `games` games, each deal from every seat.

    Both have half of the seats: among copies of the other, a single player may do badly that is no
    weaker, since copies suit each other. With an odd number of seats each has one more in half of
    the games, and two deals, one of each kind, count as one.
    """
    tables = [seats for seats, _ in seat_splits(rules, 1)]
    parts: list[list[MatchResult]] = [[] for _ in tables]
    played = 0
    verdict: Verdict = ""
    while played < games and not verdict:
        wanted = min(games - played, games_to_next_test(played))
        each = max(whole_rounds(rules, -(-wanted // len(tables))), 2 * rules.seats)
        for at, mine in enumerate(tables):
            part = play_match(
                rules,
                [one] * mine + [two] * (rules.seats - mine),
                games=each,
                seed=part_seed(seed, at, len(parts[at])),
                threads=threads,
                progress=add_offset(progress, played),
            )
            parts[at].append(part)
            played += part.games
        joined = [join_matches(rules, part) for part in parts]
        shares = np.mean([deal_shares(r, n) for r, n in zip(joined, tables, strict=True)], axis=0)
        distinct = min(result.distinct_deals / result.deals for result in joined)
        verdict = sprt.verdict(shares, distinct)
    mean = float(shares.mean())
    deals = max(round(len(shares) * distinct), 1)
    variance = float(shares.var(ddof=1)) if deals > 1 else float("nan")
    return Duel(played, mean, deal_share_interval(mean, variance, deals), verdict)
