"""Two players at the tables of a game, however many seats it has."""

from __future__ import annotations

from sparring.games.rules import Rules
from sparring.league.arena import play_match
from sparring.league.players import Player


def share_of_wins(
    rules: Rules,
    ours: Player,
    theirs: Player,
    *,
    games: int,
    seed: int,
    threads: int,
    greedy: bool = False,
) -> tuple[float, int, int]:
    """Return our share of the wins at tables that both share evenly, and of how many games.

    The third number is that of deals that differ, which are independent of each other.

    With an odd number of seats there are two kinds of tables, each side having one seat more in
    half of the games; so that equals always win half.
    """
    few = rules.seats // 2
    counts = [few] if rules.seats % 2 == 0 else [few, few + 1]
    total, played, deals = 0.0, 0, 0
    for at, mine in enumerate(counts):
        seats = [ours] * mine + [theirs] * (rules.seats - mine)
        part = games // len(counts) + (games % len(counts) if at == 0 else 0)
        result = play_match(
            rules, seats, games=part, seed=seed + at, threads=threads, greedy=greedy
        )
        total += sum(player.win_share for player in result.players[:mine])
        played, deals = played + result.games, deals + result.distinct_deals
    return total / len(counts), played, deals
