"""The points that `sparring tune` may try: their settings, whether they fit, who is near whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.config.tools import TuneConfig
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.learn.memory import LIST_BYTES, places_per_game, rollout_bytes
from sparring.learn.plan import CPU
from sparring.learn.replay import replay_bytes
from sparring.machine import cores, format_bytes, free_memory
from sparring.pools.custom.make import env_info
from sparring.pools.limits import bytes_per_game
from sparring.speed.rounds import has_replay
from sparring.sweep.knobs import (
    BATCH,
    DEVICE,
    GAMES,
    MINIBATCH,
    STEPS,
    THREADS,
    WORKERS,
    Ground,
    Point,
    chosen,
    knobs_of,
)
from sparring.sweep.space import Range
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of, merged, with_preset

Move = Mapping[str, int]
"""Knobs, and by how many values each is turned."""
TOGETHER: tuple[dict[str, int], ...] = (
    {GAMES: 1, "minibatch": 1},
    {GAMES: 1, STEPS: -1},
    {GAMES: 1, THREADS: 1},
    {GAMES: 1, WORKERS: 1},
    {"minibatch": 1, THREADS: 1},
)
"""Knobs that hold each other back: turned together they may pay where neither does alone."""
ROOM = 0.8
"""Share of the free memory that points which are open at once may take."""


@dataclass(frozen=True)
class Grid:
    """Settings to begin with, and what is turned in them."""

    base: TrainConfig
    knobs: tuple[Range, ...]
    rules: Rules
    own: bool = False
    """The games are an environment of somebody's own, whose size nobody knows."""
    max_bytes: int = 0
    """That a training may take. 0: any number."""
    _configs: dict[Point, TrainConfig] = field(default_factory=dict, compare=False, repr=False)
    _bytes: dict[Point, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def preset(self) -> Point:
        return Point(tuple((knob.name, knob.start) for knob in self.knobs))

    def config(self, point: Point) -> TrainConfig:
        """The settings of a point, complete, as a run would have them."""
        if point not in self._configs:
            self._configs[point] = merged(self.base, point.table, "tune")
        return self._configs[point]

    def rows(self, point: Point) -> int:
        """About how many rows a rollout has."""
        collect = self.base.collect
        games = int(point.get(GAMES, collect.games))
        return games * int(point.get(STEPS, collect.steps)) * max(self.rules.rows, 1)

    def why_not(self, point: Point) -> str:
        """Say why a point is not worth opening, "" if it is."""
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

    def bytes(self, point: Point) -> int:
        """About how much memory games, rollout and replay take."""
        if point in self._bytes:
            return self._bytes[point]
        config, rules, row = self.config(point), self.rules, self.rules.obs_bytes
        steps = config.collect.steps
        on_gpu = config.device != "cpu" and config.pool != "cpu" and not self.own
        each = rollout_bytes(rules, row, steps) + (0 if self.own else bytes_per_game(rules))
        if on_gpu:  # a quarter of the rows once more, for cut games, and samples
            each += -(-steps // 4) * rules.rows * row
            each += LIST_BYTES * places_per_game(rules, steps)
        total = config.collect.games * each
        if has_replay(config):
            total += replay_bytes(rules, row, config.replay, device=on_gpu, records=False)
        self._bytes[point] = total
        return total

    def rounds(self, point: Point) -> int:
        """Rounds that hold two gradient steps at the least: where batches are large, some make
        none.
        """
        batch = int(point.get(BATCH, 0))
        return max(1, math.ceil(2 * batch / self.base.replay.ratio / self.rows(point)))

    def around(self, point: Point, known: Set[str]) -> list[Point]:
        """All points that one move of any length leads to; of several knobs only known ones."""
        longest = max(len(knob.choices) for knob in self.knobs) - 1
        moves = [move for stride in range(1, longest + 1) for move in self.moves(stride)]
        return self.reached(point, (one for one in moves if len(one) == 1 or known >= one.keys()))

    def reached(self, point: Point, moves: Iterable[Move]) -> list[Point]:
        """Where moves lead to, each point once."""
        found = (self.shifted(point, move) for move in moves)
        return list(dict.fromkeys(there for there in found if there is not None))

    def moves(self, stride: int) -> list[Move]:
        """Ways to go from a point: every knob up and down, then some of them together."""
        names = [knob.name for knob in self.knobs]
        here = {name.rpartition(".")[2]: name for name in names} | {name: name for name in names}
        if BATCH in here:
            here["minibatch"] = BATCH
        pairs = [pair for pair in TOGETHER if here.keys() >= pair.keys()]
        return [
            {here[name]: sign * way * stride for name, way in move.items()}
            for move in [*({name: 1} for name in names), *pairs]
            for sign in (1, -1)
        ]

    def shifted(self, point: Point, move: Move) -> Point | None:
        """Where a move leads, or as far as there are values; None if nowhere."""
        changes = {}
        for knob in self.knobs:
            if way := move.get(knob.name):
                at = knob.choices.index(point[knob.name])
                to = min(max(at + way, 0), len(knob.choices) - 1)
                if to == at:
                    return None
                changes[knob.name] = knob.choices[to]
        return point.turned(changes)

    @property
    def room(self) -> int:
        """Bytes that points which are open at once may take together."""
        if self.max_bytes:
            return self.max_bytes
        free = free_memory() if self.base.device == CPU else torch.cuda.mem_get_info()[0]
        return round(ROOM * free)


def make_grid(config: TuneConfig) -> Grid:
    """Check everything, and return what is tried. Nothing is opened or measured yet."""
    settings = read_settings(config)
    plan = resolve(members_of(settings), played=False)
    own = is_factory(settings.game)
    ground = Ground(
        cores=cores(),
        threads=plan.threads,
        device=plan.device,
        games_on=plan.games_on,
        gpu=torch.cuda.is_available(),
        own=own,
        fixed_games=bool(own and env_info(settings.game).games),
    )
    free = config.device == settings.device == "auto"
    known = knobs_of(settings, ground, free_device=free)
    knobs = chosen(known, config.only, same_learning=config.same_learning)
    # What is written is what was timed: on this device, whatever other machines have.
    settings = replace(settings, device=plan.device)
    grid = Grid(settings, tuple(knobs), plan.rules, own, round(config.gigabytes * 2**30))
    for knob in knobs:
        for value in knob.choices:  # what somebody typed is refused now, not on the way
            grid.config(grid.preset.turned({knob.name: value}))
    needed = grid.bytes(grid.preset)
    if grid.max_bytes and needed > grid.max_bytes:
        raise ConfigError(
            f"gigabytes {config.gigabytes:g}: games and rollout of the preset alone need "
            f"{format_bytes(needed)}; give more, or begin with fewer games in a file (--config)"
        )
    return grid


def read_settings(config: TuneConfig) -> TrainConfig:
    """What `sparring train` would train with; settings of several runs or machines are refused."""
    base = with_preset(config.game, config.config, algo=config.algo)
    device = base.device if config.device == "auto" else config.device
    if uses_gpu(device):
        base = with_preset(config.game, config.config, algo=config.algo, gpu=True)
    changes: dict[str, Any] = {
        "seed": config.seed or base.seed,
        "device": device,
        "set": (*base.set, *config.set),
    }
    if base.workers == "auto":  # what pays is found here
        changes["workers"] = "0"
    settings: TrainConfig = merged(base, changes, "tune")
    usual = TrainConfig()
    for name in ("cluster", "actors", "replicas", "population", "seeds", "vary"):
        given = getattr(settings, name)
        if given != getattr(usual, name):
            raise ConfigError(
                f"{name} {given}: tune times one run in one process; leave it out of the file"
            )
    return settings
