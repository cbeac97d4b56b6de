"""Seat-fair matches: every deal is played from every seat; intervals count deals, not games."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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

MatchRunner = Callable[[Any], Iterator[tuple[int, tuple[MatchResult, Any]]]]
"""Plays tables in other processes, in any order: yields the index and result of each."""

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
"""Random opening actions, in games that are long enough for them."""


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
    make_recorder: Callable[[str], ReplayRecorder] | None = None,
    runner: MatchRunner | None = None,
) -> dict[str, MatchResult]:
    """Play a challenger against each opponent in turn; return the results by opponent.

    The opponent has all other seats.
    rules: the game; default: the one that the challenger was trained on.
    make_recorder: returns a recorder of replays for the match against an opponent.
    runner: plays the matches instead of this process, with the same deals for all.
    The other arguments are those of `play_match`.
    """
    if rules is None:
        trained = challenger.policy if isinstance(challenger, HasPolicy) else challenger
        if isinstance(trained, str) or not hasattr(trained, "rules"):
            raise ConfigError(f"{name_of(challenger)!r} has no game; give rules=")
        rules = trained.rules
    options: dict[str, Any] = {"games": games, "parallel": parallel, "seed": seed}
    options |= {"threads": threads, "greedy": greedy, "opening_plies": opening_plies}
    options |= {"timeout_s": timeout_s}
    if rules.seats == 1:
        if against:
            raise ConfigError(f"{rules.name} has one seat and no opponents; leave them out")
        if runner:
            ((_, (alone, _)),) = runner([[challenger]])
            return {ALONE: alone}
        options["recorder"] = make_recorder(ALONE) if make_recorder else None
        return {ALONE: play_match(rules, [challenger], progress=progress, **options)}
    if not against:
        bots = ", ".join(default_opponents(rules))
        raise ConfigError(f"no opponent given; {rules.name} has the bots {bots}")
    names = [name_of(opponent) for opponent in against]
    if len(set(names)) < len(names):
        raise ConfigError(f"an opponent is given twice: {', '.join(names)}; give each once")
    results: dict[str, MatchResult] = {}
    tables = [[challenger] + [opponent] * (rules.seats - 1) for opponent in against]
    if runner:
        for i, (result, _) in runner(tables):
            results[names[i]] = result
            if progress:
                progress(len(results) * whole_rounds(rules, games))
        return {name: results[name] for name in names}
    for i, (name, seats) in enumerate(zip(names, tables, strict=True)):
        options["progress"] = add_offset(progress, i * whole_rounds(rules, games))
        options["recorder"] = make_recorder(name) if make_recorder else None
        results[name] = play_match(rules, seats, **options)
    return results


def default_opponents(rules: Rules, count: int | None = None) -> tuple[str, ...]:
    """Return the `count` strongest bots, all of them by default; none for a game of one seat.

    A custom environment has only `random`.
    """
    if rules.seats == 1:
        return ()
    if is_custom(rules):
        return (RANDOM,)
    return rules.bots if count is None else rules.bots[-count:]


def default_games(rules: Rules) -> int:
    """Return the number of games of an evaluation; custom environments may be slow."""
    return CUSTOM_ENV_GAMES if is_custom(rules) else DEFAULT_GAMES


def strength_of(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the strength of a policy from summaries by opponent.

    That is the mean win share over opponents, which has less noise than the share against one of
    them; in a game of one seat, the score.
    """
    if rules.seats == 1:
        return float(results[ALONE]["score"])
    return sum(float(result["win"]) for result in results.values()) / len(results)


def guaranteed_share(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the lower end of the 95 % interval of the win share against the hardest opponent.

    In a game of one seat, that of the score.
    """
    if rules.seats == 1:
        low = results[ALONE]["score_low"]
        return -math.inf if low is None else float(low)
    return min(float(result["low"]) for result in results.values())


def add_offset(progress: Progress | None, offset: int) -> Progress | None:
    return None if progress is None else lambda played: progress(offset + played)


def whole_rounds(rules: Rules, games: int) -> int:
    """Return the number of games rounded up, so that each player has each seat equally often."""
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
    recorder: ReplayRecorder | None = None,
) -> MatchResult:
    """Play `games` games, about `parallel` at once. The same arguments give the same result.

    seats: one player per seat: the name of a bot or policy, a policy, an agent, or a function
        `(obs, mask, rng) -> actions`. Every deal is played once per rotation: with the same cards,
        all players one seat further on. Neighbors are random in each deal.
    games: rounded up to whole rounds of the seats; the result has the number played.
    greedy: policies play their most probable action; False samples, from the seed. NAME@sampled,
        NAME@greedy and `policy.always` set it for one player.
    opening_plies: random actions at the start of a deal; default: none, except in games without
        chance that would repeat themselves, as between greedy policies.
    timeout_s: in a custom environment, seconds after which no more games begin; the result has
        the number played.
    progress: called with the number of games played so far.
    recorder: records games as replays.
    """
    if games < 2:
        raise ConfigError(f"games={games}: an interval needs at least 2")
    if parallel < 1:
        raise ConfigError(f"parallel={parallel} must be at least 1")
    if len(seats) != rules.seats:
        raise ConfigError(f"{rules.name} has {rules.seats} seats, not {len(seats)}")
    if is_custom(rules):
        if recorder is not None:
            raise ConfigError(f"{rules.name} is a custom environment, which has no replays")
        check_plies(rules, opening_plies or 0)
        return play_custom_match(
            rules, seats, EpisodeSettings(games, seed, greedy, timeout_s), progress
        )
    players, policies = number_players(rules, seats)
    if opening_plies is None:
        resolved = [player if isinstance(player, str) else policies[player] for player in players]
        opening_plies = default_plies(rules, resolved, greedy=greedy)
    else:
        check_plies(rules, opening_plies)
    deals = whole_rounds(rules, games) // rules.seats
    settings = MatchSettings(deals, parallel, seed, threads, greedy, opening_plies)
    record = play_deals(rules, players, policies, settings, progress=progress, recorder=recorder)
    names = [name_of(seat) for seat in seats]
    return summarize(rules, names, record, opening_plies=opening_plies)


def play_custom_match(
    rules: Rules,
    seats: Sequence[AnyPlayer],
    settings: EpisodeSettings,
    progress: Progress | None = None,
    pool: CustomPool | None = None,
) -> MatchResult:
    """Play whole episodes in a custom environment; `random` takes any legal action.

    pool: existing environments; default: the factory makes new ones.
    """
    players: list[BatchPlayer] = []
    for seat in seats:
        player = random_player(rules) if seat == RANDOM else resolve_player(seat, rules)
        if isinstance(player, str):  # a bot's name, but custom environments have no bots
            raise ConfigError(f"{rules.name} has no bot {player!r}; use {RANDOM}")
        players.append(player)
    record = play_custom(rules, players, settings, progress, pool)
    return summarize(rules, [name_of(seat) for seat in seats], record)


def number_players(
    rules: Rules, seats: Sequence[AnyPlayer]
) -> tuple[list[PlayerId], dict[int, BatchPlayer]]:
    """Give each policy an id, one for all its seats; bots keep their names."""
    players: list[PlayerId] = []
    policies: dict[int, BatchPlayer] = {}
    ids: dict[int | str, PlayerId] = {}
    for seat in seats:
        key = seat if isinstance(seat, str) else id(seat)
        if key not in ids:
            player = resolve_player(seat, rules)
            if isinstance(player, str):
                ids[key] = player
            else:
                ids[key] = len(policies)
                policies[len(policies)] = player
        players.append(ids[key])
    return players, policies


def default_plies(rules: Rules, players: Sequence[BatchPlayer | str], *, greedy: bool) -> int:
    """Return the default number of random opening actions.

    0 if the game has chance or a player acts randomly, as bots do: then games differ anyway.
    Greedy policies do not, and functions may not. At most so many that even the shortest random
    games leave every seat one decision.
    """
    varied = rules.chance or any(is_random(player, greedy=greedy) for player in players)
    if varied or rules.seats == 1:
        return 0
    shortest = int(limits.lengths_by_lot(rules, DEFAULT_PLIES + rules.seats).min())
    return max(0, min(DEFAULT_PLIES, shortest - rules.seats))


def check_plies(rules: Rules, plies: int, name: str = "opening_plies=") -> int:
    """Reject openings that leave nothing to play, and openings of custom environments.

    name: as the user wrote it.
    """
    if plies and is_custom(rules):
        raise ConfigError(
            f"{name}{plies}: {rules.name} is a custom environment, its seeds decide how games "
            "open; leave it out"
        )
    return limits.check_plies(rules, plies, name)


def seat_splits(rules: Rules, games: int) -> list[tuple[int, int]]:
    """Return (our seats, games) for a match in which two players share the seats.

    With an odd number of seats each side has one seat more in half of the games, so that equal
    players win half.
    """
    few = rules.seats // 2
    if rules.seats % 2 == 0:
        return [(few, whole_rounds(rules, games))]
    more, half = games - games // 2, games // 2
    return [(few, whole_rounds(rules, more)), (few + 1, whole_rounds(rules, half))]


def games_between(rules: Rules, games: int) -> int:
    """Return the number of games that a pair plays: `games` rounded up to whole rounds."""
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
    """Return (our win share, games, distinct deals) of a match in which both have half the seats.

    progress: called with the number of games played so far.
    """
    total, played, deals = 0.0, 0, 0
    splits = seat_splits(rules, games)
    for i, (mine, part) in enumerate(splits):
        result = play_match(
            rules,
            [ours] * mine + [theirs] * (rules.seats - mine),
            games=part,
            seed=seed + i,
            threads=threads,
            greedy=greedy,
            progress=add_offset(progress, played),
        )
        total += sum(player.win_share for player in result.players[:mine])
        played, deals = played + result.games, deals + result.distinct_deals
    return total / len(splits), played, deals
