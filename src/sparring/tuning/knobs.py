"""What can be turned, how far, and whether it changes what is learned."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, nearest
from sparring.training.planning.algorithms import sections_of

GAMES, STEPS, SLOTS, BF16 = "collect.games", "collect.steps", "collect.slots", "collect.bf16"
BATCH, THREADS, WORKERS, DEVICE, POOL = "replay.batch", "threads", "workers", "device", "pool"
MINIBATCH = {"ppo": "ppo.minibatch", "dqn": "dqn.minibatch"}
"""By algorithm; DQN has them in its mode rollouts."""
ALTERING = frozenset({GAMES, STEPS, BATCH, *MINIBATCH.values()})
"""What changes what is learned, and not only how fast."""

Value = int | str | bool


@dataclass(frozen=True)
class Knob:
    """A setting that is tried, and its values from low to high; the preset's is among them."""

    name: str
    values: tuple[Value, ...]
    start: Value

    @property
    def alters(self) -> bool:
        """Whether turning it changes what is learned."""
        return self.name in ALTERING

    @property
    def short(self) -> str:
        """Its name without the table that it stands in."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Point:
    """One value for every knob."""

    values: tuple[tuple[str, Value], ...]

    def __getitem__(self, name: str) -> Value:
        return dict(self.values)[name]

    def get(self, name: str, default: Value) -> Value:
        """The value of a knob, or another one where there is no such knob."""
        return dict(self.values).get(name, default)

    def turned(self, changes: Mapping[str, Value]) -> Point:
        """The same with some knobs turned."""
        return Point(tuple((name, changes.get(name, value)) for name, value in self.values))

    @property
    def table(self) -> dict[str, Any]:
        """As a file of settings has it: tables within a table."""
        found: dict[str, Any] = {}
        for name, value in self.values:
            section, _, key = name.rpartition(".")
            (found.setdefault(section, {}) if section else found)[key] = value
        return found

    def beside(self, other: Point) -> str:
        """What differs from another point, in words."""
        theirs = dict(other.values)
        turned = [(name, value) for name, value in self.values if theirs.get(name) != value]
        words = [f"{name.rpartition('.')[2]} {shown(value)}" for name, value in turned]
        return ", ".join(words)


@dataclass(frozen=True)
class Ground:
    """What knobs depend on besides the settings: where things are, and what there is."""

    cores: int
    threads: int
    """That the preset has, where it says one per core."""
    device: str = "cpu"
    """Of the network, with the preset."""
    games_on: str = "cpu"
    gpu: bool = False
    """Whether there is one at all."""
    own: bool = False
    """The games are an environment of somebody's own."""
    fixed_games: bool = False
    """Its factory decides how many."""


def shown(value: Value) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def around(start: int, lowest: int, highest: int) -> tuple[int, ...]:
    """Powers of two times a number: from 2^lowest to 2^highest of it, whole ones alone."""
    found = [start * 2**power for power in range(highest + 1)]
    small = [start // 2**power for power in range(1, -lowest + 1) if start % 2**power == 0]
    return tuple(sorted(set(found + small)))


def counts_to(most: int, first: int = 1) -> tuple[int, ...]:
    """1, 2, 4 and so on up to a number, which is among them."""
    found = {2**power for power in range(most.bit_length()) if 2**power <= most}
    return tuple(sorted({first, *found, most}))


def knobs_of(config: TrainConfig, ground: Ground, *, free_device: bool = False) -> list[Knob]:
    """All that can be turned, with what suits the game as the middle.

    free_device: nobody has said where the network lives.
    """
    on_gpu = ground.device != "cpu"
    found = []
    if not ground.fixed_games:
        found.append(numbers(GAMES, config.collect.games, -2, 3))
    sections = sections_of(config.algo, config.dqn.mode)
    if "replay" in sections:
        found.append(numbers(BATCH, config.replay.batch, -1, 3))
    elif config.algo in MINIBATCH and not config.hierarchy.on:  # there each role has its own
        own = getattr(config, config.algo).minibatch
        found.append(numbers(MINIBATCH[config.algo], own, -2, 3))
    found.append(numbers(STEPS, config.collect.steps, -2, 2))
    if ground.games_on == "cpu":
        counts = sorted({*counts_to(ground.cores), ground.threads})
        found.append(Knob(THREADS, tuple(counts), ground.threads))
    if ground.own:
        start = config.workers if config.workers.isdecimal() else "0"
        counts = sorted({0, *counts_to(ground.cores), int(start)})
        found.append(Knob(WORKERS, tuple(map(str, counts)), start))
    elif ground.games_on == "cpu":
        slots = sorted({1, 2, config.collect.slots})
        found.append(Knob(SLOTS, tuple(slots), config.collect.slots))
    if on_gpu:
        found.append(Knob(BF16, (False, True), config.collect.bf16))
        if not ground.own and config.pool == "auto" and ground.games_on != "cpu":
            found.append(Knob(POOL, ("cpu", "auto"), "auto"))
    if free_device and ground.gpu:
        found.append(Knob(DEVICE, ("cpu", "cuda"), ground.device))
    return [knob for knob in found if len(knob.values) > 1]


def numbers(name: str, start: int, lowest: int, highest: int) -> Knob:
    """A knob over powers of two times its start."""
    return Knob(name, around(start, lowest, highest), start)


def chosen(knobs: Sequence[Knob], only: Sequence[str], *, same_learning: bool) -> list[Knob]:
    """Those that are asked for, by name or as name=value,value.

    same_learning: none that changes what is learned.
    """
    known = {knob.name: knob for knob in knobs}
    found: dict[str, Knob] = {}
    for word in only:
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise ConfigError(f"only: nothing to try called {name!r}{nearest(name, known)}")
        found[name] = with_values(known[name], text) if equals else known[name]
    found = found or known
    if same_learning:
        if wrong := [name for name in found if only and name in ALTERING]:
            raise ConfigError(
                f"only {wrong[0]}: it changes what is learned, which same_learning leaves alone; "
                "leave one of them out"
            )
        found = {name: knob for name, knob in found.items() if not knob.alters}
    if not found:
        raise ConfigError("nothing to try: all settings that could be are left out")
    return list(found.values())


def with_values(knob: Knob, text: str) -> Knob:
    """A knob with values that somebody typed; the preset's own is tried as well."""
    kind = type(knob.start)
    try:
        given = [] if kind is str else tomllib.loads(f"x = [{text}]")["x"]
    except tomllib.TOMLDecodeError:
        given = [text]
    given = text.split(",") if kind is str else given
    counted = knob.name == WORKERS  # a word, of which only numbers can be tried
    wrong = any(
        type(value) is not kind or (counted and not str(value).isdecimal()) for value in given
    )
    if not given or wrong:
        words = {int: "whole numbers", bool: "true or false", str: "words"}
        what = words[int if counted else kind]
        raise ConfigError(f"only {knob.name}={text}: give {what}, such as {example(knob)}")
    values = dict.fromkeys((*given, knob.start))
    if len(values) < 2:
        raise ConfigError(f"only {knob.name}={text}: that is what it has already; give others")
    numeric = kind is not str or all(str(value).isdecimal() for value in values)
    ordered = sorted(values, key=int) if numeric else list(values)
    return Knob(knob.name, tuple(ordered), knob.start)


def example(knob: Knob) -> str:
    """How values of a knob are typed."""
    words = [str(value).lower() for value in knob.values[:3]]
    return f"{knob.name}={','.join(words)}"
