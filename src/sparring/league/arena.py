"""Seat-fair matches: every deal is played from every seat, and intervals count deals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.custom_env import CUSTOM_ENV_GAMES, EpisodeSettings, play_custom
from sparring.league.deals import Progress, play_deals
from sparring.league.match_batch import MatchSettings, ReplayRecorder
from sparring.league.players import (
    AnyPlayer,
    BatchPlayer,
    HasPolicy,
    Player,
    is_random,
    name_of,
    random_player,
)
from sparring.league.results import ALONE, MatchResult, PlayerResult, summarize
from sparring.league.seating import resolve_player
from sparring.pools import limits
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.cache import RANDOM, is_custom
from sparring.pools.lineups import PlayerId

__all__ = [
    "ALONE",
    "MatchResult",
    "PlayerResult",
    "default_games",
    "default_opponents",
    "evaluate",
    "guaranteed_share",
    "play_match",
    "strength_of",
    "whole_rounds",
]

DEFAULT_GAMES = 4096
DEFAULT_PLIES = 6
"""Decisions by lot, where a game is long enough for so many."""


def evaluate(
    challenger: AnyPlayer,
    against: Sequence[AnyPlayer],
    *,
    rules: Rules | None = None,
    games: int = 4096,
    parallel: int = 4096,
    seed: int = 0,
    threads: int = 1,
    greedy: bool = True,
    opening_plies: int | None = None,
    timeout_s: float = math.inf,
    progress: Progress | None = None,
    keep: Callable[[str], ReplayRecorder] | None = None,
) -> dict[str, MatchResult]:
    """Play a challenger against tables full of each opponent in turn; results by opponent.

    rules: the game; left out, the one that the challenger was trained for.
    keep: says by the opponent's name which games are to be kept.
    The other arguments are those of `play_match`.
    """
    if rules is None:
        trained = challenger.policy if isinstance(challenger, HasPolicy) else challenger
        if isinstance(trained, str) or not hasattr(trained, "rules"):
            raise ConfigError(f"say which game {name_of(challenger)!r} is to play: rules=")
        rules = trained.rules
    options: dict[str, Any] = {"games": games, "parallel": parallel, "seed": seed}
    options |= {"threads": threads, "greedy": greedy, "opening_plies": opening_plies}
    options |= {"timeout_s": timeout_s}
    if rules.seats == 1:
        if against:
            raise ConfigError(f"{rules.name} has one seat and no opponents; leave them out")
        kept = keep(ALONE) if keep else None
        return {ALONE: play_match(rules, [challenger], progress=progress, keep=kept, **options)}
    if not against:
        known = ", ".join(default_opponents(rules))
        raise ConfigError(f"no opponent given; {rules.name} has the bots {known}")
    names = [name_of(opponent) for opponent in against]
    if len(set(names)) < len(names):
        raise ConfigError(f"an opponent was given twice: {', '.join(names)}; give each once")
    results: dict[str, MatchResult] = {}
    for at, (name, opponent) in enumerate(zip(names, against, strict=True)):
        table = [challenger] + [opponent] * (rules.seats - 1)
        count = add_offset(progress, at * whole_rounds(rules, games))
        kept = keep(name) if keep else None
        results[name] = play_match(rules, table, progress=count, keep=kept, **options)
    return results


def default_opponents(rules: Rules, count: int | None = None) -> tuple[str, ...]:
    """Return the best bots, all of them without a count; nobody in a game of one seat.

    An environment of somebody's own has none but the one who plays anything.
    """
    if rules.seats == 1:
        return ()
    if is_custom(rules):
        return (RANDOM,)
    return rules.bots if count is None else rules.bots[-count:]


def default_games(rules: Rules) -> int:
    """Return how many games tell how strong somebody is, or how many there is time for."""
    return CUSTOM_ENV_GAMES if is_custom(rules) else DEFAULT_GAMES


def strength_of(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return what makes one policy better than another, from summaries by opponent.

    That is the mean win share, which chance moves less than the share against one opponent; in a
    game of one seat, the score.
    """
    if rules.seats == 1:
        return float(results[ALONE]["score"])
    return sum(float(found["win"]) for found in results.values()) / len(results)


def guaranteed_share(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return what is sure, the lower end of the 95 % interval, against the hardest opponent.

    That is a win share; in a game of one seat, the score.
    """
    if rules.seats == 1:
        low = results[ALONE]["score_low"]
        return -math.inf if low is None else float(low)
    return min(float(found["low"]) for found in results.values())


def add_offset(progress: Progress | None, by: int) -> Progress | None:
    return None if progress is None else lambda played: progress(by + played)


def whole_rounds(rules: Rules, games: int) -> int:
    """Return how many games are played: whole rounds of the seats, so that nobody owns one."""
    return -(-games // rules.seats) * rules.seats


def play_match(
    rules: Rules,
    seats: Sequence[AnyPlayer],
    *,
    games: int = 4096,
    parallel: int = 4096,
    seed: int = 0,
    threads: int = 1,
    greedy: bool = True,
    opening_plies: int | None = None,
    timeout_s: float = math.inf,
    progress: Progress | None = None,
    keep: ReplayRecorder | None = None,
) -> MatchResult:
    """Play `games` games on about `parallel` tables. The same arguments give the same result.

    seats: one player per seat: a word for a bot or a policy, a policy, an agent, or a function
        `(obs, mask, rng) -> actions`. Every deal is played once per rotation: with the same cards,
        everybody one seat further on. Who sits next to whom is drawn by deal.
    games: rounded up to whole rounds of the seats; the result says how many were played.
    greedy: policies play their most probable action; False draws, from the seed. NAME@sampled,
        NAME@greedy and `policy.always` decide it for one player.
    opening_plies: decisions by lot at the start of a deal; left out, none but where a game without
        chance would repeat itself, as between greedy policies.
    timeout_s: of an environment of one's own: seconds after which no more games begin; the result
        says how many were played.
    progress: called with the number of games played so far.
    keep: the games that are to be kept as replays; they are in it afterwards.
    """
    if games < 2:
        raise ConfigError(f"games={games}: an interval needs at least 2")
    if parallel < 1:
        raise ConfigError(f"parallel={parallel} must be at least 1")
    if len(seats) != rules.seats:
        raise ConfigError(f"{rules.name} has {rules.seats} seats, not {len(seats)}")
    if is_custom(rules):
        if keep is not None:
            raise ConfigError(f"{rules.name} is your own environment; games of sparring are kept")
        check_plies(rules, opening_plies or 0)
        return play_custom_match(
            rules, seats, EpisodeSettings(games, seed, greedy, timeout_s), progress
        )
    players, policies = number_players(rules, seats)
    if opening_plies is None:
        answering = [player if isinstance(player, str) else policies[player] for player in players]
        opening_plies = default_plies(rules, answering, greedy=greedy)
    else:
        check_plies(rules, opening_plies)
    deals = whole_rounds(rules, games) // rules.seats
    plan = MatchSettings(deals, parallel, seed, threads, greedy, opening_plies)
    record = play_deals(rules, players, policies, plan, progress=progress, keep=keep)
    names = [name_of(seat) for seat in seats]
    return summarize(rules, names, record, opening_plies=opening_plies)


def play_custom_match(
    rules: Rules,
    seats: Sequence[AnyPlayer],
    terms: EpisodeSettings,
    progress: Progress | None = None,
    given: CustomPool | None = None,
) -> MatchResult:
    """Play whole episodes in an environment of somebody's own; `random` plays anything.

    given: the environments, where a program brought them along.
    """
    players: list[BatchPlayer] = []
    for seat in seats:
        player = random_player(rules) if seat == RANDOM else resolve_player(seat, rules)
        if isinstance(player, str):  # a bot's name, and there are none
            raise ConfigError(f"{rules.name} has no bot {player!r}; there is {RANDOM}")
        players.append(player)
    record = play_custom(rules, players, terms, progress, given)
    return summarize(rules, [name_of(seat) for seat in seats], record)


def number_players(
    rules: Rules, seats: Sequence[AnyPlayer]
) -> tuple[list[PlayerId], dict[int, BatchPlayer]]:
    """Give everybody who answers rows an id, the same one wherever it sits; bots keep names."""
    players: list[PlayerId] = []
    policies: dict[int, BatchPlayer] = {}
    known: dict[int | str, PlayerId] = {}
    for given in seats:
        key = given if isinstance(given, str) else id(given)
        if key not in known:
            player = resolve_player(given, rules)
            if isinstance(player, str):
                known[key] = player
            else:
                known[key] = len(policies)
                policies[len(policies)] = player
        players.append(known[key])
    return players, policies


def default_plies(rules: Rules, players: Sequence[BatchPlayer | str], *, greedy: bool) -> int:
    """Return how many decisions are left to lots unless somebody says otherwise.

    None, if chance deals the cards or anybody draws, as bots do: then games differ anyway. Policies
    that take their most probable action do not, and of functions nobody knows. At most so many that
    even the shortest games by lot leave every seat one decision.
    """
    drawn = rules.chance or any(is_random(player, greedy=greedy) for player in players)
    if drawn or rules.seats == 1:
        return 0
    shortest = int(limits.lengths_by_lot(rules, DEFAULT_PLIES + rules.seats).min())
    return max(0, min(DEFAULT_PLIES, shortest - rules.seats))


def check_plies(rules: Rules, plies: int, name: str = "opening_plies=") -> int:
    """Refuse openings that leave nothing to play, and those of an environment of one's own.

    name: how the user wrote it.
    """
    if plies and is_custom(rules):
        raise ConfigError(
            f"{name}{plies}: {rules.name} is your own environment, its seeds decide how games "
            "open; leave it out"
        )
    return limits.check_plies(rules, plies, name)


def seat_splits(rules: Rules, games: int) -> list[tuple[int, int]]:
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
    return sum(count for _, count in seat_splits(rules, games))


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
    tables = seat_splits(rules, games)
    for at, (mine, part) in enumerate(tables):
        result = play_match(
            rules,
            [ours] * mine + [theirs] * (rules.seats - mine),
            games=part,
            seed=seed + at,
            threads=threads,
            greedy=greedy,
            progress=add_offset(progress, played),
        )
        total += sum(player.win_share for player in result.players[:mine])
        played, deals = played + result.games, deals + result.distinct_deals
    return total / len(tables), played, deals
