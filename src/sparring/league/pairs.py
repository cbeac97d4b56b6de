"""Two players at the tables of a game, however many seats it has."""

from __future__ import annotations

from sparring.games.rules import Rules
from sparring.league.arena import play_match, shifted, whole_rounds
from sparring.league.deals import Progress
from sparring.league.players import Player


def tables_of(rules: Rules, games: int) -> list[tuple[int, int]]:
    """Return the kinds of tables that two players share: our seats, and how many games are played.

    With an odd number of seats there are two kinds, each side having one seat more in half of the
    games; so that equals always win half.
    """
    few = rules.seats // 2
    if rules.seats % 2 == 0:
        return [(few, whole_rounds(rules, games))]
    more, half = games - games // 2, games // 2
    return [(few, whole_rounds(rules, more)), (few + 1, whole_rounds(rules, half))]


def games_between(rules: Rules, games: int) -> int:
    """Return how many games a pair plays that is asked for so many: whole rounds of the seats."""
    return sum(count for _, count in tables_of(rules, games))


def share_of_wins(
    rules: Rules,
    ours: Player,
    theirs: Player,
    *,
    games: int,
    seed: int,
    threads: int,
    greedy: bool = False,
    progress: Progress | None = None,
) -> tuple[float, int, int]:
    """Return our share of the wins at tables that both share evenly, and of how many games.

    The third number is that of deals that differ, which are independent of each other.
    progress: called with the number of games played so far.
    """
    total, played, deals = 0.0, 0, 0
    tables = tables_of(rules, games)
    for at, (mine, part) in enumerate(tables):
        result = play_match(
            rules,
            [ours] * mine + [theirs] * (rules.seats - mine),
            games=part,
            seed=seed + at,
            threads=threads,
            greedy=greedy,
            progress=shifted(progress, played),
        )
        total += sum(player.win_share for player in result.players[:mine])
        played, deals = played + result.games, deals + result.distinct_deals
    return total / len(tables), played, deals
