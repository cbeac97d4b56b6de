"""What a bench found, kept as JSON, and held against what another one found.

Figures are held against each other by Welch's interval over the rounds: of the ratio, which is
that of the logarithms, or of the difference, where numbers may be 0 or below. It knows how much
rounds of one bench differ, and nothing about what was otherwise on the machine that day.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from sparring.config.ranges import shortened
from sparring.errors import ConfigError, SparringError
from sparring.league.intervals import welch_95
from sparring.store.files import write_atomic
from sparring.store.schema import (
    any_value,
    boolean,
    integer,
    list_of,
    mapping_of,
    object_with,
    optional,
    parse_json,
    string,
)
from sparring.store.schema import finite_number as plain_number
from sparring.training.records.run import finite

FORMAT = "sparring bench 1"
MACHINE = ("cpu", "cores", "gpu", "device")
"""Facts that have to be the same."""
VERSIONS = ("system", "python", "numpy", "torch", "sparring", "commit")
"""Facts that may be the reason for a difference, and are told."""
SAME = 0.03
"""Ratios whose interval lies this close to 1 are called the same."""
BUSY = 0.5
"""Load beyond that of this share of the cores is told: rates of a busy machine mean little."""


def a_format(value: Any, where: str) -> None:
    """Demand a file of this version."""
    if value != FORMAT:
        raise ValueError(f"{where} is {shortened(value)}, not {FORMAT!r}")


def some_rounds(value: Any, where: str) -> None:
    list_of(plain_number)(value, where)
    if not value:
        raise ValueError(f"{where} is empty")


A_FIGURE = object_with(
    {"rounds": some_rounds}, {"unit": string, "higher": boolean, "ratio": boolean}, closed=True
)
LOADED = object_with({}, {"load_average": optional(plain_number), "cores": optional(integer(1))})
A_RECORD = object_with(
    {
        "format": a_format,
        "command": string,
        "settings": mapping_of(any_value),
        "machine": LOADED,
        "figures": mapping_of(A_FIGURE),
    }
)
"""The shape of a file."""


@dataclass(frozen=True)
class Figure:
    """A number that was measured several times."""

    rounds: tuple[float, ...]
    unit: str = ""
    higher: bool = True
    """Whether more is better."""
    ratio: bool = True
    """Whether it is held against others by its ratio; by its difference where it may be below 0."""


@dataclass(frozen=True)
class Record:
    """What a bench found, with all that it depends on."""

    command: str
    settings: dict[str, Any]
    """What was measured, by dotted name."""
    machine: dict[str, Any]
    figures: dict[str, Figure]

    def plain(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        text = json.dumps(finite(self.plain()), indent=2, allow_nan=False) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text.encode())
        except OSError as wrong:
            raise SparringError(f"cannot write {path}: {wrong.strerror or wrong}") from wrong

    @classmethod
    def read(cls, path: Path) -> Record:
        try:
            plain = parse_json(path.read_bytes())
            A_RECORD(plain, "")
        except OSError as wrong:
            raise ConfigError(f"--record: cannot read {path}: {wrong.strerror}") from None
        except ValueError as wrong:
            raise ConfigError(
                f"--record: {path} is no record of a bench: {wrong}; write one with --save"
            ) from None
        figures = {
            name: Figure(**{**one, "rounds": tuple(map(float, one["rounds"]))})
            for name, one in plain["figures"].items()
        }
        return cls(plain["command"], plain["settings"], plain["machine"], figures)


@dataclass(frozen=True)
class Change:
    """A figure of now against the same one of then."""

    name: str
    verdict: str
    """slower, faster, same, or cannot tell; worse or better of what is no speed."""
    value: float
    """The ratio of now to then, or the difference."""
    low: float | None
    high: float | None
    ratio: bool

    def __str__(self) -> str:
        form = ".2f" if self.ratio else "+.3g"
        told = f"{self.verdict}: {self.value:{form}}"
        if self.low is None or self.high is None:
            return told + " (one round is no interval)"
        return told + f" ({self.low:{form}}..{self.high:{form}})"

    @property
    def bad(self) -> bool:
        """Whether it got worse beyond its interval."""
        return self.verdict in ("slower", "worse")

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def changes(now: Record, then: Record) -> list[Change]:
    return [
        change(name, figure, then.figures[name])
        for name, figure in now.figures.items()
        if name in then.figures
    ]


def change(name: str, now: Figure, then: Figure) -> Change:
    """Hold a figure against its earlier self."""
    ratio = now.ratio and min(*now.rounds, *then.rounds) > 0
    mine, theirs = (
        [math.log(value) if ratio else value for value in figure.rounds] for figure in (now, then)
    )
    value = mean(mine) - mean(theirs)
    half = welch_95(mine, theirs)
    back = math.exp if ratio else float
    low, high = (None, None) if half is None else (back(value - half), back(value + half))
    word = verdict(low, high, higher=now.higher, ratio=ratio)
    return Change(name, word, back(value), low, high, ratio)


def verdict(low: float | None, high: float | None, *, higher: bool, ratio: bool) -> str:
    if low is None or high is None:
        return "cannot tell"
    if ratio and low > 1 - SAME and high < 1 + SAME:
        return "same"
    none = 1.0 if ratio else 0.0
    good, bad = ("faster", "slower") if ratio else ("better", "worse")
    if high < none:
        return bad if higher else good
    if low > none:
        return good if higher else bad
    return "cannot tell"


def differences(now: Record, then: Record) -> list[str]:
    """Say in what two benches differ that have to be alike; nothing if they may be compared."""
    found = []
    if now.command != then.command:
        found.append(f"that was {then.command!r}, this is {now.command!r}")
    found += differing("", {k: now.machine.get(k) for k in MACHINE}, then.machine, MACHINE)
    names = dict.fromkeys([*then.settings, *now.settings])
    return found + differing("", now.settings, then.settings, tuple(names))


def since(now: Record, then: Record) -> list[str]:
    """Say what else is otherwise, and may be why figures are."""
    told = differing("", now.machine, then.machine, VERSIONS)
    for word, record in (("then", then), ("now", now)):
        load, cores = record.machine.get("load_average"), record.machine.get("cores") or 1
        if load is not None and load > max(BUSY, BUSY * cores):
            told.append(f"the machine was busy {word} (load {load:g} on {cores} cores)")
    return told


def differing(
    where: str, now: Mapping[str, Any], then: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    plain_now, plain_then = (json.loads(json.dumps(dict(table))) for table in (now, then))
    return [
        f"{where}{name} was {plain_then.get(name)}, is {plain_now.get(name)}"
        for name in names
        if plain_now.get(name) != plain_then.get(name)
    ]
