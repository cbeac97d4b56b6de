"""Parameters that `sparring tune` tries, their values, and whether they change learning."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, suggestion
from sparring.sweep.space import CHOICE, SearchRange
from sparring.training.planning.algorithms import sections_of

GAMES, STEPS, GROUPS, BF16 = "collect.games", "collect.steps", "collect.groups", "collect.bf16"
BATCH, THREADS, WORKERS, DEVICE, POOL = "replay.batch", "threads", "workers", "device", "pool"
MINIBATCH = {"ppo": "ppo.minibatch", "dqn": "dqn.minibatch", "gumbel": "gumbel.minibatch"}
"""By algorithm; DQN has minibatches in its mode rollouts."""
CHANGES_LEARNING = frozenset({GAMES, STEPS, BATCH, *MINIBATCH.values()})
"""Parameters that change what is learned, not only how fast."""

Value = int | str | bool


@dataclass(frozen=True)
class TuneCandidate(Mapping[str, Value]):
    """Settings to try: one value for every parameter."""

    pairs: tuple[tuple[str, Value], ...]

    def __getitem__(self, name: str) -> Value:
        return dict(self.pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.pairs))

    def __len__(self) -> int:
        return len(self.pairs)

    def replaced(self, changes: Mapping[str, Value]) -> TuneCandidate:
        return TuneCandidate(tuple((name, changes.get(name, value)) for name, value in self.pairs))

    @property
    def table(self) -> dict[str, Any]:
        """Return the values as nested tables."""
        found: dict[str, Any] = {}
        for name, value in self.pairs:
            section, _, key = name.rpartition(".")
            (found.setdefault(section, {}) if section else found)[key] = value
        return found

    def differences(self, other: TuneCandidate) -> dict[str, Value]:
        """Return the values that differ from another candidate."""
        return {name: value for name, value in self.pairs if (name, value) not in other.pairs}

    def describe_changes(self, other: TuneCandidate) -> str:
        """Describe `differences` in words."""
        turned = self.differences(other).items()
        return ", ".join(f"{name.rpartition('.')[2]} {show_value(value)}" for name, value in turned)


@dataclass(frozen=True)
class TuneContext:
    """Machine and placement, which decide what can be tuned."""

    cores: int
    threads: int
    """Threads of the preset."""
    device: str = "cpu"
    """Device of the network in the preset."""
    games_on: str = "cpu"
    gpu: bool = False
    """Whether the machine has a GPU."""
    is_custom: bool = False
    """Whether the game is a custom environment."""
    fixed_games: bool = False
    """Whether the environment's factory decides the number of games."""


def show_value(value: Value) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def powers_up_to(most: int, *others: int) -> list[int]:
    """Return the powers of two up to `most`, with `most` and others."""
    found = {2**power for power in range(most.bit_length()) if 2**power <= most}
    return sorted({*found, most, *others})


def parameter(name: str, values: Iterable[Value], start: Value) -> SearchRange:
    """Return a parameter with its values in order; the preset's is among them."""
    return SearchRange(name, CHOICE, choices=tuple(values), start=start)


def tunable_parameters(
    config: TrainConfig, context: TuneContext, *, free_device: bool = False
) -> list[SearchRange]:
    """Return all parameters that can be tuned, with values around the preset.

    free_device: the user did not choose the device.
    """
    collect, on_cpu = config.collect, context.games_on == "cpu"
    found = [] if context.fixed_games else [powers_of_two(GAMES, collect.games, -2, 3)]
    if "replay" in sections_of(config.algo, config.dqn.mode):
        found.append(powers_of_two(BATCH, config.replay.batch, -1, 3))
    elif config.algo in MINIBATCH and not config.hierarchy.on:  # there each role has its own
        minibatch = getattr(config, config.algo).minibatch
        found.append(powers_of_two(MINIBATCH[config.algo], minibatch, -2, 3))
    found.append(powers_of_two(STEPS, collect.steps, -2, 2))
    if on_cpu:
        found.append(
            parameter(THREADS, powers_up_to(context.cores, context.threads), context.threads)
        )
    if context.is_custom:
        start = config.workers if config.workers.isdecimal() else "0"
        found.append(
            parameter(WORKERS, map(str, powers_up_to(context.cores, 0, int(start))), start)
        )
    elif on_cpu:
        found.append(parameter(GROUPS, sorted({1, 2, collect.groups}), collect.groups))
    if context.device != "cpu":
        found.append(parameter(BF16, (False, True), collect.bf16))
        if not context.is_custom and config.pool == "auto" and not on_cpu:
            found.append(parameter(POOL, ("cpu", "auto"), "auto"))
    if free_device and context.gpu:
        found.append(parameter(DEVICE, ("cpu", "cuda"), context.device))
    return [one for one in found if len(one.choices) > 1]


def powers_of_two(name: str, start: int, lowest: int, highest: int) -> SearchRange:
    """Return a parameter with values start * 2^lowest .. start * 2^highest, integers only."""
    small = [start // 2**power for power in range(-lowest, 0, -1) if start % 2**power == 0]
    return parameter(name, [*small, *(start * 2**power for power in range(highest + 1))], start)


def select_parameters(
    parameters: Sequence[SearchRange], only: Sequence[str], *, same_learning: bool
) -> list[SearchRange]:
    """Select parameters by name, or with values as name=value,value.

    same_learning: leave out parameters that change what is learned.
    """
    known = {one.name: one for one in parameters}
    found: dict[str, SearchRange] = {}
    for word in only:
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise ConfigError(f"only: nothing to try called {name!r}{suggestion(name, known)}")
        found[name] = with_values(known[name], text) if equals else known[name]
    found = found or known
    if same_learning:
        if altering := [name for name in found if only and name in CHANGES_LEARNING]:
            raise ConfigError(
                f"only {altering[0]}: it changes what is learned, and same_learning is set; "
                "leave one of them out"
            )
        found = {name: one for name, one in found.items() if name not in CHANGES_LEARNING}
    if not found:
        raise ConfigError("nothing to try: all settings that could be are left out")
    return list(found.values())


def with_values(one: SearchRange, text: str) -> SearchRange:
    """Return a parameter with the user's values and the preset's."""
    kind, counted = type(one.start), one.name == WORKERS  # a string, but only numbers are tried
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
    return parameter(one.name, values, one.start)
