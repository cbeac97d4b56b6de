"""Seat-fair matches on a pool: who sits where is drawn, and every game counts exactly once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import Player, name_of
from sparring.league.results import MatchResult, PlayerResult, Record, summarise
from sparring.nets.policy import Policy
from sparring.pools.lineups import Lineup, PlayerId
from sparring.pools.native import Batch, Pool

__all__ = [
    "ALONE",
    "MatchResult",
    "PlayerResult",
    "evaluate",
    "least_share",
    "play_match",
    "strength_of",
    "usual_opponents",
]

Progress = Callable[[int], None]

ALONE = "alone"
"""What `evaluate` calls the match in a game of one seat."""
LOTS = 0x107
"""Keeps the lots of identical players apart from everything else that a seed decides."""


def evaluate(
    challenger: Player,
    against: Sequence[Player],
    *,
    rules: Rules | None = None,
    games: int = 4096,
    parallel: int = 4096,
    seed: int = 0,
    threads: int = 1,
    greedy: bool = True,
    progress: Progress | None = None,
) -> dict[str, MatchResult]:
    """Play a challenger against tables full of each opponent in turn; results by opponent.

    rules: the game; left out, the one that the challenger was trained for.
    """
    if rules is None:
        if isinstance(challenger, str):
            raise ConfigError(f"say which game the bot {challenger!r} is to play: rules=")
        rules = challenger.rules
    options: dict[str, Any] = {"games": games, "parallel": parallel, "seed": seed}
    options |= {"threads": threads, "greedy": greedy}
    if rules.seats == 1:
        if against:
            raise ConfigError(f"{rules.name} has one seat and no opponents; leave them out")
        return {ALONE: play_match(rules, [challenger], progress=progress, **options)}
    if not against:
        raise ConfigError(f"no opponent given; {rules.name} has the bots {', '.join(rules.bots)}")
    names = [name_of(opponent) for opponent in against]
    if len(set(names)) < len(names):
        raise ConfigError(f"an opponent was given twice: {', '.join(names)}; give each once")
    results: dict[str, MatchResult] = {}
    for at, (name, opponent) in enumerate(zip(names, against, strict=True)):
        table = [challenger] + [opponent] * (rules.seats - 1)
        count = shifted(progress, at * games)
        results[name] = play_match(rules, table, progress=count, **options)
    return results


def usual_opponents(rules: Rules, count: int | None = None) -> tuple[str, ...]:
    """Return the best bots, all of them without a count; nobody in a game of one seat."""
    if rules.seats == 1:
        return ()
    return rules.bots if count is None else rules.bots[-count:]


def strength_of(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return what makes one policy better than another, from summaries by opponent.

    That is the mean win share, which chance moves less than the share against one opponent; in a
    game of one seat, the score.
    """
    if rules.seats == 1:
        return float(results[ALONE]["score"])
    return sum(float(found["win"]) for found in results.values()) / len(results)


def least_share(rules: Rules, results: Mapping[str, Mapping[str, Any]]) -> float:
    """Return what is sure, the lower end of the 95 % interval, against the hardest opponent.

    That is a win share; in a game of one seat, the score.
    """
    if rules.seats == 1:
        low = results[ALONE]["score_low"]
        return -math.inf if low is None else float(low)
    return min(float(found["low"]) for found in results.values())


def shifted(progress: Progress | None, by: int) -> Progress | None:
    """Count on from the matches before."""
    return None if progress is None else lambda played: progress(by + played)


def play_match(
    rules: Rules,
    seats: Sequence[Player],
    *,
    games: int = 4096,
    parallel: int = 4096,
    seed: int = 0,
    threads: int = 1,
    greedy: bool = True,
    progress: Progress | None = None,
) -> MatchResult:
    """Play `games` games on up to `parallel` tables. The same arguments give the same result.

    seats: one policy or bot name per seat; who sits where is drawn anew for every game.
    greedy: policies play their most probable action; False draws, from the seed.
    progress: called with the number of games played so far.
    """
    if games < 2:
        raise ConfigError(f"games={games}: an interval needs at least 2")
    if parallel < 1:
        raise ConfigError(f"parallel={parallel} must be at least 1")
    if len(seats) != rules.seats:
        raise ConfigError(f"{rules.name} has {rules.seats} seats, not {len(seats)}")
    players, policies = number_players(rules, seats)
    pool = Pool(
        rules,
        min(parallel, games),
        seed=seed,
        threads=threads,
        lineups=[Lineup(tuple(players))],
        observe=bool(policies),
    )
    record = play_games(pool, policies, games, greedy, progress)
    names = [name_of(seat) for seat in seats]
    ids = np.array([pool.player_id(player) for player in players])
    return summarise(rules, names, sit_down(ids, record.player, seed), record)


def number_players(
    rules: Rules, seats: Sequence[Player]
) -> tuple[list[PlayerId], dict[int, Policy]]:
    """Give every policy an id, the same one wherever it sits; bots keep their names."""
    players: list[PlayerId] = []
    policies: dict[int, Policy] = {}
    for seat in seats:
        if isinstance(seat, str):
            rules.bot(seat)
            players.append(seat)
            continue
        known = [number for number, policy in policies.items() if policy is seat]
        if not known:
            seat.check_fits(rules)
            known = [len(policies)]
            policies[known[0]] = seat
        players.append(known[0])
    return players, policies


def play_games(
    pool: Pool,
    policies: dict[int, Policy],
    games: int,
    greedy: bool,
    progress: Progress | None,
) -> Record:
    """Play until every table has finished its share of the games.

    The share is fixed beforehand: taking the first games that finish would favour short ones.
    """
    tables, seats = pool.num_games, pool.rules.seats
    share = np.full(tables, games // tables)
    share[: games % tables] += 1
    first_line = np.cumsum(share) - share
    played = np.zeros(tables, np.intp)
    record = Record(
        np.zeros((games, seats), np.float32),
        np.zeros((games, seats), np.int16),
        np.zeros(games, np.int32),
        np.zeros(games, np.uint8),
    )
    batch = pool.reset()
    step = 0
    while (playing := played < share).any():
        batch = pool.step(choose(pool, batch, policies, playing, greedy=greedy, step=step))
        step += 1
        counted = playing[batch.final_game]
        if not counted.any():
            continue
        table = batch.final_game[counted]
        line = first_line[table] + played[table]
        record.score[line] = batch.final_score[counted]
        record.player[line] = batch.final_policy[counted]
        record.length[line] = batch.final_length[counted]
        record.end[line] = batch.final_reason[counted]
        played[table] += 1
        if progress is not None:
            progress(int(played.sum()))
    return record


def choose(
    pool: Pool,
    batch: Batch,
    policies: dict[int, Policy],
    playing: npt.NDArray[np.bool_],
    *,
    greedy: bool,
    step: int,
) -> npt.NDArray[Any]:
    """Answer all rows: one batched forward per policy, only for tables that still count."""
    # Tables with nothing left to count need some legal action, the cheapest there is.
    action = pool.sample_actions()
    counts = np.repeat(playing, pool.rules.rows)
    for number, policy in policies.items():
        rows = np.flatnonzero((batch.policy == number) & counts)
        if len(rows):
            action[rows] = policy.act(
                batch.obs[rows],
                batch.mask[rows],
                greedy=greedy,
                seed=pool.seed,
                rollout=number,
                step=step,
            )
    return action


def sit_down(
    ids: npt.NDArray[Any], player: npt.NDArray[np.int16], seed: int
) -> npt.NDArray[np.intp]:
    """Return the seat of every player [games, players].

    The pool cannot tell copies of one bot or policy apart, so lots decide which copy sat where.
    """
    key = np.array([seed % 2**64, LOTS], np.uint64)  # as a list it would lose digits from 2**63 on
    lots = np.random.Generator(np.random.Philox(key=key)).random(player.shape)
    by_player = np.lexsort((lots, player), axis=1)
    seat_of = np.empty_like(by_player)
    seat_of[:, np.argsort(ids, kind="stable")] = by_player
    return seat_of
