"""Records of benchmarks as JSON files, and comparison of two records.

Figures are compared by Welch's interval over the rounds: of the ratio (of logarithms), or of the
difference where numbers may be 0 or negative. The interval covers the spread of rounds within a
benchmark, not a different state of the machine on another day.
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
"""Facts that must be equal in both records."""
VERSIONS = ("system", "python", "numpy", "torch", "sparring", "commit")
"""Facts that may explain a difference; they are printed."""
SAME = 0.03
"""A ratio whose interval lies this close to 1 is "same"."""
BUSY = 0.5
"""Load above this share of the cores is reported: rates of a busy machine mean little."""


def check_format(value: Any, where: str) -> None:
    if value != FORMAT:
        raise ValueError(f"{where} is {shortened(value)}, not {FORMAT!r}")


def check_rounds(value: Any, where: str) -> None:
    list_of(plain_number)(value, where)
    if not value:
        raise ValueError(f"{where} is empty")


FIGURE_SCHEMA = object_with(
    {"rounds": check_rounds}, {"unit": string, "higher": boolean, "ratio": boolean}, closed=True
)
MACHINE_SCHEMA = object_with(
    {}, {"load_average": optional(plain_number), "cores": optional(integer(1))}
)
RECORD_SCHEMA = object_with(
    {
        "format": check_format,
        "command": string,
        "settings": mapping_of(any_value),
        "machine": MACHINE_SCHEMA,
        "figures": mapping_of(FIGURE_SCHEMA),
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
    """Whether to compare by ratio; by difference where it may be negative."""


@dataclass(frozen=True)
class BenchRecord:
    """Figures of a benchmark, with everything that they depend on."""

    command: str
    settings: dict[str, Any]
    """Measured settings, by dotted name."""
    machine: dict[str, Any]
    figures: dict[str, Figure]

    def plain(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        text = json.dumps(finite(self.plain()), indent=2, allow_nan=False) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text.encode())
        except OSError as error:
            raise SparringError(f"cannot write {path}: {error.strerror or error}") from error

    @classmethod
    def read(cls, path: Path) -> BenchRecord:
        try:
            plain = parse_json(path.read_bytes())
            RECORD_SCHEMA(plain, "")
        except OSError as error:
            raise ConfigError(f"--record: cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise ConfigError(
                f"--record: {path} is no record of a bench: {error}; write one with --save"
            ) from None
        figures = {
            name: Figure(**{**one, "rounds": tuple(map(float, one["rounds"]))})
            for name, one in plain["figures"].items()
        }
        return cls(plain["command"], plain["settings"], plain["machine"], figures)


@dataclass(frozen=True)
class Change:
    """A figure of this benchmark compared with the earlier record."""

    name: str
    verdict: str
    """slower, faster, same or cannot tell; worse or better for figures that are no speed."""
    value: float
    """Ratio of now to then, or the difference."""
    low: float | None
    high: float | None
    ratio: bool

    def __str__(self) -> str:
        form = ".2f" if self.ratio else "+.3g"
        text = f"{self.verdict}: {self.value:{form}}"
        if self.low is None or self.high is None:
            return text + " (one round gives no interval)"
        return text + f" ({self.low:{form}}..{self.high:{form}})"

    @property
    def bad(self) -> bool:
        """Whether it got slower or worse, beyond its interval."""
        return self.verdict in ("slower", "worse")

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def changes(now: BenchRecord, then: BenchRecord) -> list[Change]:
    return [
        change(name, figure, then.figures[name])
        for name, figure in now.figures.items()
        if name in then.figures
    ]


def change(name: str, now: Figure, then: Figure) -> Change:
    ratio = now.ratio and min(*now.rounds, *then.rounds) > 0
    mine, theirs = (
        [math.log(value) if ratio else value for value in figure.rounds] for figure in (now, then)
    )
    value = mean(mine) - mean(theirs)
    half = welch_95(mine, theirs)
    back = math.exp if ratio else float
    low, high = (None, None) if half is None else (back(value - half), back(value + half))
    text = verdict(low, high, higher=now.higher, ratio=ratio)
    return Change(name, text, back(value), low, high, ratio)


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


def differences(now: BenchRecord, then: BenchRecord) -> list[str]:
    """Return the differences that forbid a comparison; none if the records can be compared."""
    found = []
    if now.command != then.command:
        found.append(f"the record is of {then.command!r}, this is {now.command!r}")
    found += differing(now.machine, then.machine, MACHINE)
    names = dict.fromkeys([*then.settings, *now.settings])
    return found + differing(now.settings, then.settings, tuple(names))


def explanations(now: BenchRecord, then: BenchRecord) -> list[str]:
    """Return differences that may explain changed figures: versions, load."""
    found = differing(now.machine, then.machine, VERSIONS)
    for word, record in (("then", then), ("now", now)):
        load, cores = record.machine.get("load_average"), record.machine.get("cores") or 1
        if load is not None and load > max(BUSY, BUSY * cores):
            found.append(f"the machine was busy {word} (load {load:g} on {cores} cores)")
    return found


def differing(now: Mapping[str, Any], then: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    plain_now, plain_then = (json.loads(json.dumps(dict(table))) for table in (now, then))
    return [
        f"{name} was {plain_then.get(name)}, is {plain_now.get(name)}"
        for name in names
        if plain_now.get(name) != plain_then.get(name)
    ]
