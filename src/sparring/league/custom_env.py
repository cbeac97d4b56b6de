"""Matches in a custom environment: whole episodes, each with its own seed.

The set of episodes is fixed in advance, so that neither the number played at once nor which of
them ends first changes the result. A deal is a seed here, and is played from every seat.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config import EnvConfig
from sparring.errors import SparringError, VectorError
from sparring.games.rules import Rules
from sparring.league.players import BatchPlayer
from sparring.league.results import MatchRecord
from sparring.nets.roots import Roots
from sparring.nets.stateful_player import Memories
from sparring.pools.custom.base import TERMINATED, TRUNCATED, CustomPool
from sparring.pools.custom.buffers import GAME_RUNNING, GAME_TRUNCATED
from sparring.pools.custom.cache import cached_pool, check_same, factory_of
from sparring.pools.custom.faults import empty_mask_error
from sparring.pools.custom.seats import TablePool
from sparring.pools.lineups import NO_POLICY
from sparring.pools.workers.episodes import EnvEpisodes, LocalEpisodes, open_episodes
from sparring.pools.workers.supervisor import Limits

CUSTOM_ENV_GAMES = 128
"""Default episodes of an evaluation: each may take seconds."""
MAX_ENVS = 8
"""Environments played at once, so that the network runs on batches."""
FIRST_SEED, SEEDS = 1_000_000_000, 2**31
"""Evaluation seeds differ from training seeds, which count up from the run's seed."""
GRACE_FACTOR = 2.0
"""Running episodes may end until this multiple of the timeout."""


@dataclass(frozen=True)
class EpisodeSettings:
    """Episodes, seed and timeout of a match in a custom environment."""

    games: int
    seed: int = 0
    greedy: bool = True
    timeout_s: float = float("inf")
    """Seconds after which no more episodes begin."""


@dataclass
class MatchEpisode:
    """A running episode with its score so far."""

    deal: int
    rotation: int
    """Number of seats by which all players have moved on."""
    score: npt.NDArray[np.float64]
    length: int = 0
    hash: int = 0
    """Of all observations, actions and rewards."""
    end: int = TERMINATED
    memories: Memories = field(default_factory=dict)
    """Recurrent memory, by seat."""

    def update_hash(self, *parts: npt.NDArray[Any]) -> None:
        """Add observations, actions or rewards: seeds alone may not make episodes differ."""
        for part in parts:
            self.hash = zlib.crc32(np.ascontiguousarray(part).tobytes(), self.hash)


@dataclass
class MatchEpisodes:
    """Finished episodes of a match, and its clock."""

    settings: EpisodeSettings
    total: int
    progress: Callable[[int], None] | None
    episodes: list[MatchEpisode] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, episode: MatchEpisode) -> None:
        self.episodes.append(episode)
        if self.progress:
            self.progress(len(self.episodes))

    @property
    def may_begin(self) -> bool:
        return time.monotonic() - self.started < self.settings.timeout_s

    @property
    def may_continue(self) -> bool:
        return time.monotonic() - self.started < GRACE_FACTOR * self.settings.timeout_s


def play_custom(
    rules: Rules,
    players: Sequence[BatchPlayer],
    settings: EpisodeSettings,
    progress: Callable[[int], None] | None = None,
    pool: CustomPool | None = None,
) -> MatchRecord:
    """Play whole episodes; the first of the players is evaluated.

    players: one per seat; each rotation moves all of them one seat further on.
    progress: called with the number of finished episodes.
    pool: environments that exist and that no factory makes; their current episodes are lost.
    """
    deals = -(-settings.games // rules.seats)
    results = MatchEpisodes(settings, deals * rules.seats, progress)
    if pool is None:
        play_in_new_envs(rules, players, results, deals)
    elif isinstance(pool, TablePool):
        play_separately(LocalEpisodes(pool), players, results, deals)
    else:
        play_in_vector_env(pool, players, results, deals)
    episodes = complete_deals(results.episodes, rules.seats)
    if len(episodes) < 2:
        raise SparringError(
            f"{rules.name}: {len(episodes)} of {results.total} episodes ended within "
            f"{GRACE_FACTOR * settings.timeout_s:g} s; raise eval.timeout_s, or end "
            "episodes with a time limit (gymnasium.wrappers.TimeLimit)"
        )
    return make_record(episodes, rules.seats)


def play_in_new_envs(
    rules: Rules, players: Sequence[BatchPlayer], results: MatchEpisodes, deals: int
) -> None:
    """Play in environments that the factory makes."""
    factory, games = factory_of(rules), min(MAX_ENVS, deals * rules.seats)
    try:
        # A search copies environments, which it cannot in another process.
        local = any(getattr(player, "budget", None) for player in players)
        episodes = open_episodes(factory, games, limits_of(players), local=local)
    except VectorError:
        pool = cached_pool(factory, games)
        check_env_unchanged(players, rules, pool.rules)
        play_in_vector_env(pool, players, results, deals)
    else:
        check_env_unchanged(players, rules, episodes.rules)
        results.started = time.monotonic()  # the time to start environments does not count
        play_separately(episodes, players, results, deals)


def check_env_unchanged(players: Sequence[BatchPlayer], rules: Rules, now: Rules) -> None:
    """Reject players that were trained on an environment with other spaces."""
    for player in players:
        check_same(player.name, rules, now)


def limits_of(players: Sequence[BatchPlayer]) -> Limits:
    """Return the longest timeouts of the runs in which the players were trained."""
    configs = [getattr(player, "meta", {}).get("config", {}).get("env", {}) for player in players]

    def longest(name: str, default: float) -> float:
        return max((float(env[name]) for env in configs if name in env), default=default)

    step_s = longest("step_timeout_s", EnvConfig.step_timeout_s)
    return Limits(step_s, longest("start_timeout_s", EnvConfig.start_timeout_s), restarts=0)


def seed_of(seed: int, deal: int) -> int:
    return (FIRST_SEED + seed + deal) % SEEDS


# Environments that are reset one by one


def play_separately(
    games: EnvEpisodes, players: Sequence[BatchPlayer], results: MatchEpisodes, deals: int
) -> None:
    """Play each episode in the next free environment."""
    seats, seed = games.rules.seats, results.settings.seed
    waiting = (
        MatchEpisode(deal, rotation, np.zeros(seats))
        for deal in range(deals)
        for rotation in range(seats)
    )
    free, running = [*range(len(games.game_buffers))], dict[int, MatchEpisode]()
    step = 0
    while results.may_continue:
        for episode in islice(waiting, len(free)) if results.may_begin else ():
            game = free.pop()
            games.start(game, seed_of(seed, episode.deal))
            running[game] = episode
        games.wait()
        if not running:
            return
        actions = choose_actions(games, players, running, results.settings, step)
        for game, action in actions.items():
            buffers = games.game_buffers[game]
            running[game].update_hash(buffers.obs, action)
            running[game].length += int((buffers.seat >= 0).sum())
            games.step(game, action)
        games.wait()
        step += 1
        for game in actions:
            buffers, episode = games.game_buffers[game], running[game]
            episode.score += buffers.reward[0]
            episode.update_hash(buffers.reward)
            if buffers.end[0] != GAME_RUNNING:
                episode.update_hash(buffers.last_obs)
                episode.end = TRUNCATED if buffers.end[0] == GAME_TRUNCATED else TERMINATED
                episode.memories.clear()
                results.add(running.pop(game))
                free.append(game)


def choose_actions(
    games: EnvEpisodes,
    players: Sequence[BatchPlayer],
    running: Mapping[int, MatchEpisode],
    settings: EpisodeSettings,
    step: int,
) -> dict[int, npt.NDArray[Any]]:
    """Return the actions [rows] of every running game; each player gets one batch."""
    rules = games.rules
    shape = (rules.rows, rules.box) if rules.box else (rules.rows,)
    kind = np.float32 if rules.box else np.int64
    actions = {game: np.zeros(shape, kind) for game in running}
    rows_by_player: dict[int, list[tuple[int, int, int]]] = {}
    for game, episode in running.items():
        buffers = games.game_buffers[game]
        for row, seat in enumerate(buffers.seat.tolist()):
            if seat >= 0:
                if not rules.box and not buffers.mask[row].any():
                    raise empty_mask_error(f"{rules.name}, step {episode.length}", seat)
                number = (seat - episode.rotation) % rules.seats
                rows_by_player.setdefault(number, []).append((game, row, seat))
    for number, rows in rows_by_player.items():
        player = players[number]
        no_memory = np.zeros(player.memory_bytes, np.uint8)
        chosen, memory = player.decide(
            np.stack([games.game_buffers[game].obs[row] for game, row, _ in rows]),
            np.stack([games.game_buffers[game].mask[row] for game, row, _ in rows]),
            np.stack([running[game].memories.get(seat, no_memory) for game, _, seat in rows]),
            greedy=settings.greedy,
            seed=settings.seed,
            rollout=number,
            step=step,
            roots=roots_of(games, rows),
        )
        for (game, row, seat), action, state in zip(rows, chosen, memory, strict=True):
            actions[game][row] = action
            running[game].memories[seat] = state
    return actions


def roots_of(games: EnvEpisodes, rows: Sequence[tuple[int, int, int]]) -> Roots | None:
    """Return the positions of (game, row, seat), for players that search."""
    if games.pool is None:
        return None
    return [(games.pool, np.array([game * games.rules.rows + row for game, row, _ in rows]))]


# Vector environments, which start all episodes together


def play_in_vector_env(
    pool: CustomPool, players: Sequence[BatchPlayer], results: MatchEpisodes, deals: int
) -> None:
    """Play one episode per sub-environment, then reset with other seeds, until all are played."""
    settings, games = results.settings, pool.num_games
    for first in range(0, deals, games):
        if not results.may_begin:
            return
        batch, step = pool.reset(seed_of(settings.seed, first)), 0
        memory = np.zeros((games, players[0].memory_bytes), np.uint8)
        running = {
            game: MatchEpisode(first + game, 0, np.zeros(1))
            for game in range(min(games, deals - first))
        }
        while running and results.may_continue:
            action = pool.sample_actions()
            rows = np.array([row for row in running if batch.policy[row] != NO_POLICY], np.intp)
            options: dict[str, Any] = {
                "greedy": settings.greedy,
                "seed": settings.seed,
                "step": step,
                "roots": [(pool, rows)],
            }
            action[rows], memory[rows] = players[0].decide(
                batch.obs[rows], batch.mask[rows], memory[rows], **options
            )
            for row in rows:
                running[int(row)].update_hash(batch.obs[row], action[row])
                running[int(row)].length += 1
            batch, step = pool.step(action), step + 1
            for number, episode in running.items():
                episode.update_hash(batch.reward[number])
            for at, game in enumerate(batch.final_game):
                if int(game) in running:
                    episode = running.pop(int(game))
                    episode.score[:] = batch.final_score[at]
                    episode.end = int(batch.final_reason[at])
                    episode.update_hash(batch.final_obs[at])
                    results.add(episode)


# Results


def complete_deals(episodes: Sequence[MatchEpisode], seats: int) -> list[MatchEpisode]:
    """Return the episodes of deals that were played from every seat; deals count from 0."""
    by_deal: dict[int, list[MatchEpisode]] = {}
    for episode in sorted(episodes, key=lambda episode: (episode.deal, episode.rotation)):
        by_deal.setdefault(episode.deal, []).append(episode)
    complete = [rotations for rotations in by_deal.values() if len(rotations) == seats]
    return [
        replace(episode, deal=deal)
        for deal, rotations in enumerate(complete)
        for episode in rotations
    ]


def make_record(episodes: Sequence[MatchEpisode], seats: int) -> MatchRecord:
    rotation = np.array([episode.rotation for episode in episodes], np.intp)
    return MatchRecord(
        seat_of=(np.arange(seats)[None] + rotation[:, None]) % seats,
        score=np.array([episode.score for episode in episodes], np.float32),
        length=np.array([episode.length for episode in episodes], np.int32),
        end=np.array([episode.end for episode in episodes], np.uint8),
        deal=np.array([episode.deal for episode in episodes], np.intp),
        action_hash=np.array([episode.hash for episode in episodes], np.uint64),
    )
