"""Matches in an environment of somebody's own: whole episodes, each with a seed of its own.

Which episodes there are is fixed beforehand, so that neither how many are played at once nor which
of them ends first decides what is measured. Every deal, which is a seed, is played from every seat.
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
"""Episodes of a measurement, unless somebody says otherwise: they may take seconds each."""
MAX_ENVS = 8
"""Environments that are played side by side, which spares calls of the network."""
FIRST_SEED, SEEDS = 1_000_000_000, 2**31
"""Seeds of measurements are apart from those of training, which count from the run's own on."""
PATIENCE = 2.0
"""Episodes that are under way when the time is over have as much again to end."""


@dataclass(frozen=True)
class EpisodeSettings:
    """How a match is played."""

    games: int
    seed: int = 0
    greedy: bool = True
    timeout_s: float = float("inf")
    """Seconds after which no more episodes begin."""


@dataclass
class MatchEpisode:
    """A game under way, and what it has brought so far."""

    deal: int
    ahead: int
    """By how many seats everybody has moved on."""
    score: npt.NDArray[np.float64]
    length: int = 0
    moves: int = 0
    """A fingerprint of all that was seen, played and paid."""
    end: int = TERMINATED
    held: Memories = field(default_factory=dict)
    """What the players remember of it, by seat."""

    def note(self, *parts: npt.NDArray[Any]) -> None:
        """Add what was seen, played or paid: nobody knows whether seeds change anything."""
        for part in parts:
            self.moves = zlib.crc32(np.ascontiguousarray(part).tobytes(), self.moves)


@dataclass
class FinishedEpisodes:
    """The episodes that are over, and the clock."""

    terms: EpisodeSettings
    total: int
    told: Callable[[int], None] | None
    lines: list[MatchEpisode] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, line: MatchEpisode) -> None:
        self.lines.append(line)
        if self.told:
            self.told(len(self.lines))

    @property
    def may_begin(self) -> bool:
        return time.monotonic() - self.started < self.terms.timeout_s

    @property
    def may_go_on(self) -> bool:
        return time.monotonic() - self.started < PATIENCE * self.terms.timeout_s


def play_custom(
    rules: Rules,
    players: Sequence[BatchPlayer],
    terms: EpisodeSettings,
    told: Callable[[int], None] | None = None,
    given: CustomPool | None = None,
) -> MatchRecord:
    """Play whole episodes; the first of the players is measured.

    players: one per seat, in the order in which they sit; the next rotation has everybody one seat
    further on. told: called with the number of episodes that are over.
    given: environments that a program brought along, of which nobody else can make any; whatever
    they were playing is over then.
    """
    deals = -(-terms.games // rules.seats)
    results = FinishedEpisodes(terms, deals * rules.seats, told)
    if given is None:
        play_in_new_envs(rules, players, results, deals)
    elif isinstance(given, TablePool):
        play_separately(LocalEpisodes(given), players, results, deals)
    else:
        play_in_vector_env(given, players, results, deals)
    lines = complete_deals(results.lines, rules.seats)
    if len(lines) < 2:
        raise SparringError(
            f"{rules.name}: {len(lines)} of {results.total} episodes ended within "
            f"{PATIENCE * terms.timeout_s:g} s; raise eval.timeout_s, or end "
            "episodes with a time limit (gymnasium.wrappers.TimeLimit)"
        )
    return make_record(lines, rules.seats)


def play_in_new_envs(
    rules: Rules, players: Sequence[BatchPlayer], results: FinishedEpisodes, deals: int
) -> None:
    """Play in environments that a factory makes."""
    word, games = factory_of(rules), min(MAX_ENVS, deals * rules.seats)
    try:
        episodes = open_episodes(word, games, limits_of(players))
    except VectorError:
        pool = cached_pool(word, games)
        check_env_unchanged(players, rules, pool.rules)
        play_in_vector_env(pool, players, results, deals)
    else:
        check_env_unchanged(players, rules, episodes.rules)
        results.started = time.monotonic()  # environments take their time to be there
        play_separately(episodes, players, results, deals)


def check_env_unchanged(players: Sequence[BatchPlayer], rules: Rules, now: Rules) -> None:
    """Refuse players for whom the environment is another one by now."""
    for player in players:
        check_same(player.name, rules, now)


def limits_of(players: Sequence[BatchPlayer]) -> Limits:
    """How long a step may take: as long as in the runs that the players come from."""
    known = [getattr(player, "meta", {}).get("config", {}).get("env", {}) for player in players]

    def longest(name: str, usual: float) -> float:
        return max((float(one[name]) for one in known if name in one), default=usual)

    step_s = longest("step_timeout_s", EnvConfig.step_timeout_s)
    return Limits(step_s, longest("start_timeout_s", EnvConfig.start_timeout_s), restarts=0)


def seed_of(seed: int, deal: int) -> int:
    return (FIRST_SEED + seed + deal) % SEEDS


# Environments one by one


def play_separately(
    games: EnvEpisodes, players: Sequence[BatchPlayer], results: FinishedEpisodes, deals: int
) -> None:
    """Play every episode in whichever environment is free next."""
    seats, seed = games.rules.seats, results.terms.seed
    waiting = (
        MatchEpisode(deal, ahead, np.zeros(seats))
        for deal in range(deals)
        for ahead in range(seats)
    )
    free, going = [*range(len(games.game_buffers))], dict[int, MatchEpisode]()
    step = 0
    while results.may_go_on:
        for episode in islice(waiting, len(free)) if results.may_begin else ():
            game = free.pop()
            games.start(game, seed_of(seed, episode.deal))
            going[game] = episode
        games.wait()
        if not going:
            return
        answers = choose_actions(games, players, going, results.terms, step)
        for game, action in answers.items():
            buffers = games.game_buffers[game]
            going[game].note(buffers.obs, action)
            going[game].length += int((buffers.seat >= 0).sum())
            games.step(game, action)
        games.wait()
        step += 1
        for game in answers:
            buffers, episode = games.game_buffers[game], going[game]
            episode.score += buffers.reward[0]
            episode.note(buffers.reward)
            if buffers.end[0] != GAME_RUNNING:
                episode.note(buffers.last_obs)
                episode.end = TRUNCATED if buffers.end[0] == GAME_TRUNCATED else TERMINATED
                episode.held.clear()
                results.add(going.pop(game))
                free.append(game)


def choose_actions(
    games: EnvEpisodes,
    players: Sequence[BatchPlayer],
    going: Mapping[int, MatchEpisode],
    terms: EpisodeSettings,
    step: int,
) -> dict[int, npt.NDArray[Any]]:
    """Ask whoever is to decide, each player once for all games; actions [rows] of every game."""
    rules = games.rules
    shape = (rules.rows, rules.box) if rules.box else (rules.rows,)
    kind = np.float32 if rules.box else np.int64
    actions = {game: np.zeros(shape, kind) for game in going}
    asked: dict[int, list[tuple[int, int, int]]] = {}
    for game, episode in going.items():
        buffers = games.game_buffers[game]
        for row, seat in enumerate(buffers.seat.tolist()):
            if seat >= 0:
                if not rules.box and not buffers.mask[row].any():
                    raise empty_mask_error(f"{rules.name}, step {episode.length}", seat)
                number = (seat - episode.ahead) % rules.seats
                asked.setdefault(number, []).append((game, row, seat))
    for number, places in asked.items():
        player = players[number]
        nothing = np.zeros(player.memory_bytes, np.uint8)
        answers, memory = player.decide(
            np.stack([games.game_buffers[game].obs[row] for game, row, _ in places]),
            np.stack([games.game_buffers[game].mask[row] for game, row, _ in places]),
            np.stack([going[game].held.get(seat, nothing) for game, _, seat in places]),
            greedy=terms.greedy,
            seed=terms.seed,
            rollout=number,
            step=step,
        )
        for (game, row, seat), action, held in zip(places, answers, memory, strict=True):
            actions[game][row] = action
            going[game].held[seat] = held
    return actions


# Vectors, which begin all of their episodes together


def play_in_vector_env(
    pool: CustomPool, players: Sequence[BatchPlayer], results: FinishedEpisodes, deals: int
) -> None:
    """Play one episode in every sub-env, and again with other seeds until there are enough."""
    terms, games = results.terms, pool.num_games
    for first in range(0, deals, games):
        if not results.may_begin:
            return
        batch, step = pool.reset(seed_of(terms.seed, first)), 0
        memory = np.zeros((games, players[0].memory_bytes), np.uint8)
        going = {
            game: MatchEpisode(first + game, 0, np.zeros(1))
            for game in range(min(games, deals - first))
        }
        while going and results.may_go_on:
            action = pool.sample_actions()
            mine = np.array([row for row in going if batch.policy[row] != NO_POLICY], np.intp)
            how: dict[str, Any] = {"greedy": terms.greedy, "seed": terms.seed, "step": step}
            action[mine], memory[mine] = players[0].decide(
                batch.obs[mine], batch.mask[mine], memory[mine], **how
            )
            for row in mine:
                going[int(row)].note(batch.obs[row], action[row])
                going[int(row)].length += 1
            batch, step = pool.step(action), step + 1
            for number, episode in going.items():
                episode.note(batch.reward[number])
            for at, game in enumerate(batch.final_game):
                if int(game) in going:
                    episode = going.pop(int(game))
                    episode.score[:] = batch.final_score[at]
                    episode.end = int(batch.final_reason[at])
                    episode.note(batch.final_obs[at])
                    results.add(episode)


# What came of it


def complete_deals(lines: Sequence[MatchEpisode], seats: int) -> list[MatchEpisode]:
    """Deals that were played from every seat, counted from 0, in order."""
    found: dict[int, list[MatchEpisode]] = {}
    for line in sorted(lines, key=lambda line: (line.deal, line.ahead)):
        found.setdefault(line.deal, []).append(line)
    whole = [each for each in found.values() if len(each) == seats]
    return [replace(line, deal=deal) for deal, each in enumerate(whole) for line in each]


def make_record(lines: Sequence[MatchEpisode], seats: int) -> MatchRecord:
    ahead = np.array([line.ahead for line in lines], np.intp)
    return MatchRecord(
        seat_of=(np.arange(seats)[None] + ahead[:, None]) % seats,
        score=np.array([line.score for line in lines], np.float32),
        length=np.array([line.length for line in lines], np.int32),
        end=np.array([line.end for line in lines], np.uint8),
        deal=np.array([line.deal for line in lines], np.intp),
        moves=np.array([line.moves for line in lines], np.uint64),
    )
