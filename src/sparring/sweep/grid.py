"""Candidates of `sparring tune`: their settings, memory and neighbors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.config.tools import TuneConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.memory import LIST_BYTES, places_per_game, rollout_bytes
from sparring.learn.plan import CPU
from sparring.learn.replay import replay_bytes
from sparring.machine import cores, format_bytes, free_memory
from sparring.pools.custom.make import env_info
from sparring.pools.limits import bytes_per_game
from sparring.pygames.registry import is_env
from sparring.speed.rounds import has_replay
from sparring.sweep.parameters import (
    BATCH,
    DEVICE,
    GAMES,
    MINIBATCH,
    STEPS,
    THREADS,
    WORKERS,
    TuneCandidate,
    TuneContext,
    select_parameters,
    tunable_parameters,
)
from sparring.sweep.space import SearchRange
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of, merged, with_preset

Move = Mapping[str, int]
"""Parameters, and by how many values each is moved."""
COUPLED: tuple[dict[str, int], ...] = (
    {GAMES: 1, "minibatch": 1},
    {GAMES: 1, STEPS: -1},
    {GAMES: 1, THREADS: 1},
    {GAMES: 1, WORKERS: 1},
    {"minibatch": 1, THREADS: 1},
)
"""Parameters that depend on each other: moved together they may pay where neither does alone."""
MEMORY_SHARE = 0.8
"""Share of the free memory for all candidates that are open at once."""


@dataclass(frozen=True)
class Grid:
    """Settings to start from, and the parameters to tune."""

    base: TrainConfig
    parameters: tuple[SearchRange, ...]
    rules: Rules
    is_custom: bool = False
    """Whether the game is a custom environment, whose size is unknown."""
    max_bytes: int = 0
    """Maximum bytes of a training; 0: no limit."""
    _configs: dict[TuneCandidate, TrainConfig] = field(
        default_factory=dict, compare=False, repr=False
    )
    _bytes: dict[TuneCandidate, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def preset(self) -> TuneCandidate:
        return TuneCandidate(
            tuple((parameter.name, parameter.start) for parameter in self.parameters)
        )

    def config(self, point: TuneCandidate) -> TrainConfig:
        """Return the complete settings of a candidate."""
        if point not in self._configs:
            self._configs[point] = merged(self.base, point.table, "tune")
        return self._configs[point]

    def rows(self, point: TuneCandidate) -> int:
        """Estimate the rows of a rollout."""
        collect = self.base.collect
        games = int(point.get(GAMES, collect.games))
        return games * int(point.get(STEPS, collect.steps)) * max(self.rules.rows, 1)

    def unsupported_reason(self, point: TuneCandidate) -> str:
        """Return why a candidate is not worth trying, "" if it is."""
        config = self.config(point)
        rows, games = self.rows(point), config.collect.games
        if int(point.get(MINIBATCH.get(config.algo, ""), 0)) > rows:
            return f"a rollout has {rows} rows at most"
        if max(config.collect.groups, int(point.get(WORKERS, "0"))) > games:
            return f"there are {games} games"
        if config.device == "cpu" and point.get(DEVICE, "") and config.pool == "cpu":
            return "the games are on the CPU in any case"
        needed = self.bytes(point)
        if self.max_bytes and needed > self.max_bytes:
            return f"needs {format_bytes(needed)} of memory, at most {format_bytes(self.max_bytes)}"
        return ""

    def bytes(self, point: TuneCandidate) -> int:
        """Estimate the bytes of games, rollout and replay."""
        if point in self._bytes:
            return self._bytes[point]
        config, rules, row = self.config(point), self.rules, self.rules.obs_bytes
        steps = config.collect.steps
        on_gpu = config.device != "cpu" and config.pool != "cpu" and not self.is_custom
        each = rollout_bytes(rules, row, steps) + (0 if self.is_custom else bytes_per_game(rules))
        if on_gpu:  # a quarter of the rows again for truncated games, and samples
            each += -(-steps // 4) * rules.rows * row
            each += LIST_BYTES * places_per_game(rules, steps)
        total = config.collect.games * each
        if has_replay(config):
            total += replay_bytes(rules, row, config.replay, device=on_gpu, records=False)
        self._bytes[point] = total
        return total

    def rounds(self, point: TuneCandidate) -> int:
        """Return the number of rounds that has at least two gradient steps."""
        batch = int(point.get(BATCH, 0))
        return max(1, math.ceil(2 * batch / self.base.replay.ratio / self.rows(point)))

    def neighbors(self, point: TuneCandidate, known: Set[str]) -> list[TuneCandidate]:
        """Return all candidates one move away; coupled moves only of `known` parameters."""
        longest = max(len(parameter.choices) for parameter in self.parameters) - 1
        moves = [move for stride in range(1, longest + 1) for move in self.moves(stride)]
        return self.apply_moves(
            point, (one for one in moves if len(one) == 1 or known >= one.keys())
        )

    def apply_moves(self, point: TuneCandidate, moves: Iterable[Move]) -> list[TuneCandidate]:
        """Return the candidates that moves lead to, each once."""
        found = (self.moved(point, move) for move in moves)
        return list(dict.fromkeys(there for there in found if there is not None))

    def moves(self, stride: int) -> list[Move]:
        """Return all moves: every parameter up and down, then coupled ones."""
        names = [parameter.name for parameter in self.parameters]
        here = {name.rpartition(".")[2]: name for name in names} | {name: name for name in names}
        if BATCH in here:
            here["minibatch"] = BATCH
        pairs = [pair for pair in COUPLED if here.keys() >= pair.keys()]
        return [
            {here[name]: sign * way * stride for name, way in move.items()}
            for move in [*({name: 1} for name in names), *pairs]
            for sign in (1, -1)
        ]

    def moved(self, point: TuneCandidate, move: Move) -> TuneCandidate | None:
        """Return the candidate that a move leads to; None if all its values are at an end."""
        changes = {}
        for parameter in self.parameters:
            if way := move.get(parameter.name):
                at = parameter.choices.index(point[parameter.name])
                to = min(max(at + way, 0), len(parameter.choices) - 1)
                if to == at:
                    return None
                changes[parameter.name] = parameter.choices[to]
        return point.replaced(changes)

    @property
    def memory_limit(self) -> int:
        """Maximum bytes of all candidates that are open at once."""
        if self.max_bytes:
            return self.max_bytes
        free = free_memory() if self.base.device == CPU else torch.cuda.mem_get_info()[0]
        return round(MEMORY_SHARE * free)


def make_grid(config: TuneConfig) -> Grid:
    """Validate the settings and return the grid; nothing is opened or measured yet."""
    settings = read_settings(config)
    plan = resolve(members_of(settings), played=False)
    is_custom = is_env(settings.game)
    context = TuneContext(
        cores=cores(),
        threads=plan.threads,
        device=plan.device,
        games_on=plan.games_on,
        gpu=torch.cuda.is_available(),
        is_custom=is_custom,
        fixed_games=bool(is_custom and env_info(settings.game).games),
    )
    free = config.device == settings.device == "auto"
    known = tunable_parameters(settings, context, free_device=free)
    parameters = select_parameters(known, config.only, same_learning=config.same_learning)
    # The written settings name the device that was timed.
    settings = replace(settings, device=plan.device)
    grid = Grid(settings, tuple(parameters), plan.rules, is_custom, round(config.gigabytes * 2**30))
    for parameter in parameters:
        for value in parameter.choices:  # raises now for invalid values of the user
            grid.config(grid.preset.replaced({parameter.name: value}))
    needed = grid.bytes(grid.preset)
    if grid.max_bytes and needed > grid.max_bytes:
        raise ConfigError(
            f"gigabytes {config.gigabytes:g}: games and rollout of the preset alone need "
            f"{format_bytes(needed)}; give more, or begin with fewer games in a file (--config)"
        )
    return grid


def read_settings(config: TuneConfig) -> TrainConfig:
    """Return the settings of `sparring train`; raise for those of several runs or machines."""
    base = with_preset(config.game, config.config, algo=config.algo)
    device = base.device if config.device == "auto" else config.device
    if uses_gpu(device):
        base = with_preset(config.game, config.config, algo=config.algo, gpu=True)
    changes: dict[str, Any] = {
        "seed": config.seed or base.seed,
        "device": device,
        "set": (*base.set, *config.set),
    }
    if base.workers == "auto":  # tune finds the best number
        changes["workers"] = "0"
    settings: TrainConfig = merged(base, changes, "tune")
    usual = TrainConfig()
    for name in ("cluster", "actors", "replicas", "devices", "population", "seeds", "vary"):
        given = getattr(settings, name)
        if given != getattr(usual, name):
            raise ConfigError(
                f"{name} {given}: tune times one run in one process; leave it out of the file"
            )
    return settings
