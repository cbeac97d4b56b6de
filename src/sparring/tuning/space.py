"""All points that may be tried: their settings, whether they fit, who is whose neighbour."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sparring.config import TrainConfig
from sparring.games.rules import Rules
from sparring.learn.replay import replay_bytes
from sparring.learn.room import LIST_BYTES, places_per_game, rollout_bytes
from sparring.machine import show_size
from sparring.pools.limits import bytes_per_game
from sparring.speed.rounds import steady
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.settings import merged
from sparring.tuning.knobs import (
    BATCH,
    DEVICE,
    GAMES,
    MINIBATCH,
    STEPS,
    THREADS,
    WORKERS,
    Knob,
    Point,
)

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


@dataclass(frozen=True)
class Space:
    """Settings to begin with, and what is turned in them."""

    base: TrainConfig
    knobs: tuple[Knob, ...]
    rules: Rules
    own: bool = False
    """The games are an environment of somebody's own, whose size nobody knows."""
    most_bytes: int = 0
    """That a training may take. 0: any number."""
    _configs: dict[Point, TrainConfig] = field(default_factory=dict, compare=False, repr=False)
    _bytes: dict[Point, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def preset(self) -> Point:
        """Where everything begins."""
        return Point(tuple((knob.name, knob.start) for knob in self.knobs))

    def config(self, point: Point) -> TrainConfig:
        """The settings of a point, complete, as a run would have them."""
        if point not in self._configs:
            self._configs[point] = merged(self.base, point.table, "tune")
        return self._configs[point]

    def timed(self, point: Point) -> TrainConfig:
        """The same as they are timed: in the middle of a run."""
        return steady(self.config(point))

    def rows(self, point: Point) -> int:
        """About how many rows a rollout has."""
        collect = self.base.collect
        games = int(point.get(GAMES, collect.games))
        return games * int(point.get(STEPS, collect.steps)) * max(self.rules.rows, 1)

    def why_not(self, point: Point) -> str:
        """Say why a point is not worth opening, "" if it is."""
        config = self.config(point)
        rows = self.rows(point)
        name = MINIBATCH.get(config.algo, "")
        if name and point.get(name, 0) and int(point[name]) > rows:
            return f"a rollout has {rows} rows at most"
        if config.collect.slots > config.collect.games:
            return f"there are {config.collect.games} games"
        if config.device == "cpu" and point.get(DEVICE, "") and config.pool == "cpu":
            return "the games are on the CPU in any case"
        if int(point.get(WORKERS, "0")) > config.collect.games:
            return f"there are {config.collect.games} games"
        needed = self.bytes(point)
        if self.most_bytes and needed > self.most_bytes:
            return f"needs {show_size(needed)} of memory, at most {show_size(self.most_bytes)}"
        return ""

    def bytes(self, point: Point) -> int:
        """About how much memory games, rollout and replay take."""
        if point in self._bytes:
            return self._bytes[point]
        config, rules = self.config(point), self.rules
        games, steps = config.collect.games, config.collect.steps
        pool = 0 if self.own else bytes_per_game(rules)
        each = pool + rollout_bytes(rules, rules.obs_bytes, steps)
        if self.on_gpu(config):  # a quarter of the rows once more, for cut games, and samples
            each += -(-steps // 4) * rules.rows * rules.obs_bytes
            each += LIST_BYTES * places_per_game(rules, steps)
        total = games * each
        if "replay" in sections_of(config.algo, config.dqn.mode):
            on_gpu = self.on_gpu(config)
            row = rules.obs_bytes
            total += replay_bytes(rules, row, config.replay, device=on_gpu, records=False)
        self._bytes[point] = total
        return total

    def on_gpu(self, config: TrainConfig) -> bool:
        """Whether games and rollout lie on a GPU."""
        return config.device != "cpu" and config.pool != "cpu" and not self.own

    def rounds(self, point: Point) -> int:
        """Rounds that hold two gradient steps at the least: where batches are large, some make
        none.
        """
        if BATCH not in dict(point.values):
            return 1
        return max(1, math.ceil(2 * int(point[BATCH]) / self.base.replay.ratio / self.rows(point)))

    def around(self, point: Point, known: Collection[str]) -> list[Point]:
        """All points that one move of any length leads to; of several knobs only known ones."""
        longest = max(len(knob.values) for knob in self.knobs) - 1
        found: dict[Point, None] = {}
        for stride in range(1, longest + 1):
            for move in self.moves(stride):
                if len(move) > 1 and not set(known).issuperset(move):
                    continue
                if (there := self.shifted(point, move)) is not None:
                    found[there] = None
        return list(found)

    def moves(self, stride: int) -> list[Move]:
        """Ways to go from a point: every knob up and down, then some of them together."""
        found: list[Move] = []
        for knob in self.knobs:
            found += [{knob.name: stride}, {knob.name: -stride}]
        here = {knob.short: knob.name for knob in self.knobs}
        here |= {knob.name: knob.name for knob in self.knobs}
        if BATCH in here:
            here["minibatch"] = BATCH
        for pair in TOGETHER:
            if all(name in here for name in pair):
                found += [
                    {here[name]: way * sign * stride for name, way in pair.items()}
                    for sign in (1, -1)
                ]
        return found

    def shifted(self, point: Point, move: Move) -> Point | None:
        """Where a move leads, or as far as there are values; None if nowhere."""
        knobs = {knob.name: knob for knob in self.knobs}
        changes = {}
        for name, way in move.items():
            values: Sequence[object] = knobs[name].values
            at = values.index(point[name])
            to = min(max(at + way, 0), len(values) - 1)
            if to == at:
                return None
            changes[name] = knobs[name].values[to]
        return point.turned(changes)
