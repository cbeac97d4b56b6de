"""What `sparring tune` turns, how far, and whether it changes what is learned."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, suggestion
from sparring.sweep.space import CHOICE, Range
from sparring.training.planning.algorithms import sections_of

GAMES, STEPS, SLOTS, BF16 = "collect.games", "collect.steps", "collect.groups", "collect.bf16"
BATCH, THREADS, WORKERS, DEVICE, POOL = "replay.batch", "threads", "workers", "device", "pool"
MINIBATCH = {"ppo": "ppo.minibatch", "dqn": "dqn.minibatch"}
"""By algorithm; DQN has them in its mode rollouts."""
ALTERING = frozenset({GAMES, STEPS, BATCH, *MINIBATCH.values()})
"""What changes what is learned, and not only how fast."""

Value = int | str | bool


@dataclass(frozen=True)
class Point(Mapping[str, Value]):
    """One value for every knob."""

    pairs: tuple[tuple[str, Value], ...]

    def __getitem__(self, name: str) -> Value:
        return dict(self.pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.pairs))

    def __len__(self) -> int:
        return len(self.pairs)

    def turned(self, changes: Mapping[str, Value]) -> Point:
        return Point(tuple((name, changes.get(name, value)) for name, value in self.pairs))

    @property
    def table(self) -> dict[str, Any]:
        """As a file of settings has it: tables within a table."""
        found: dict[str, Any] = {}
        for name, value in self.pairs:
            section, _, key = name.rpartition(".")
            (found.setdefault(section, {}) if section else found)[key] = value
        return found

    def changed(self, other: Point) -> dict[str, Value]:
        """The values that another point has otherwise."""
        return {name: value for name, value in self.pairs if (name, value) not in other.pairs}

    def beside(self, other: Point) -> str:
        """The same in words."""
        turned = self.changed(other).items()
        return ", ".join(f"{name.rpartition('.')[2]} {switched(value)}" for name, value in turned)


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


def switched(value: Value) -> str:
    """A value in words, in which a switch is on or off."""
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def counts_to(most: int, *others: int) -> list[int]:
    """1, 2, 4 and so on up to a number, which is among them, and others."""
    found = {2**power for power in range(most.bit_length()) if 2**power <= most}
    return sorted({*found, most, *others})


def knob(name: str, values: Iterable[Value], start: Value) -> Range:
    """A setting that is tried, and its values from low to high; the preset's is among them."""
    return Range(name, CHOICE, choices=tuple(values), start=start)


def knobs_of(config: TrainConfig, ground: Ground, *, free_device: bool = False) -> list[Range]:
    """All that can be turned, with what suits the game as the middle.

    free_device: nobody has said where the network lives.
    """
    collect, on_cpu = config.collect, ground.games_on == "cpu"
    found = [] if ground.fixed_games else [numbers(GAMES, collect.games, -2, 3)]
    if "replay" in sections_of(config.algo, config.dqn.mode):
        found.append(numbers(BATCH, config.replay.batch, -1, 3))
    elif config.algo in MINIBATCH and not config.hierarchy.on:  # there each role has its own
        own = getattr(config, config.algo).minibatch
        found.append(numbers(MINIBATCH[config.algo], own, -2, 3))
    found.append(numbers(STEPS, collect.steps, -2, 2))
    if on_cpu:
        found.append(knob(THREADS, counts_to(ground.cores, ground.threads), ground.threads))
    if ground.own:
        start = config.workers if config.workers.isdecimal() else "0"
        found.append(knob(WORKERS, map(str, counts_to(ground.cores, 0, int(start))), start))
    elif on_cpu:
        found.append(knob(SLOTS, sorted({1, 2, collect.groups}), collect.groups))
    if ground.device != "cpu":
        found.append(knob(BF16, (False, True), collect.bf16))
        if not ground.own and config.pool == "auto" and not on_cpu:
            found.append(knob(POOL, ("cpu", "auto"), "auto"))
    if free_device and ground.gpu:
        found.append(knob(DEVICE, ("cpu", "cuda"), ground.device))
    return [one for one in found if len(one.choices) > 1]


def numbers(name: str, start: int, lowest: int, highest: int) -> Range:
    """A knob over powers of two times its start, from 2^lowest to 2^highest, whole ones alone."""
    small = [start // 2**power for power in range(-lowest, 0, -1) if start % 2**power == 0]
    return knob(name, [*small, *(start * 2**power for power in range(highest + 1))], start)


def chosen(knobs: Sequence[Range], only: Sequence[str], *, same_learning: bool) -> list[Range]:
    """Those that are asked for, by name or as name=value,value.

    same_learning: none that changes what is learned.
    """
    known = {one.name: one for one in knobs}
    found: dict[str, Range] = {}
    for word in only:
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise ConfigError(f"only: nothing to try called {name!r}{suggestion(name, known)}")
        found[name] = with_values(known[name], text) if equals else known[name]
    found = found or known
    if same_learning:
        if wrong := [name for name in found if only and name in ALTERING]:
            raise ConfigError(
                f"only {wrong[0]}: it changes what is learned, which same_learning leaves alone; "
                "leave one of them out"
            )
        found = {name: one for name, one in found.items() if name not in ALTERING}
    if not found:
        raise ConfigError("nothing to try: all settings that could be are left out")
    return list(found.values())


def with_values(one: Range, text: str) -> Range:
    """A knob with values that somebody typed; the preset's own is tried as well."""
    kind, counted = type(one.start), one.name == WORKERS  # words, of which only numbers are tried
    try:
        given = text.split(",") if kind is str else tomllib.loads(f"x = [{text}]")["x"]
    except tomllib.TOMLDecodeError:
        given = [text]
    right = all(type(value) is kind for value in given)
    if not given or not right or (counted and not all(value.isdecimal() for value in given)):
        words = {int: "whole numbers", bool: "true or false", str: "words"}
        typed = ",".join(str(value).lower() for value in one.choices[:3])
        raise ConfigError(
            f"only {one.name}={text}: give {words[int if counted else kind]}, such as "
            f"{one.name}={typed}"
        )
    values = list(dict.fromkeys((*given, one.start)))
    if len(values) < 2:
        raise ConfigError(f"only {one.name}={text}: that is what it has already; give others")
    if counted or kind is not str:
        values.sort(key=int)
    return knob(one.name, values, one.start)
