"""What a setting may be: said once, in its annotation, shown in the help, checked when it is set.

    games: Annotated[int, at_least(1)] = 512
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(1.0)
    kind: Annotated[str, one_of("mlp", "residual")] = "mlp"

A list's members and all points of a schedule lie in the range. No number may be NaN or infinite.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from decimal import Decimal
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from sparring.config.habits import VALUES
from sparring.errors import ConfigError, nearest
from sparring.schedule import Schedule


def as_typed(words: list[str]) -> Any:
    """Leave a schedule as it was written: the configuration reads it, whoever made it."""
    return words[0]


Scheduled = Annotated[
    Schedule,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="NUMBER|SCHEDULE",
        instance_from_str=as_typed,
        is_instance=lambda given: isinstance(given, Schedule),
        str_from_instance=lambda schedule: [str(schedule)],
    ),
]
"""A number that may change on the way: 1e-3, 0:1e-3,2e6:1e-4 (decisions), 0%:1e-3,100%:1e-4."""


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may have. Called with a default, it is the end of a help text."""

    least: float
    most: float
    open: bool = False
    """The least number is itself too small."""
    endless: bool = False
    """The largest number only keeps absurd ones out; the help does not speak of it."""
    by_games: bool = False
    """A schedule may go by finished games; most learners count their own decisions alone."""

    def __contains__(self, number: float) -> bool:
        enough = number > self.least if self.open else number >= self.least
        return enough and number <= self.most

    def __str__(self) -> str:
        if self.open or self.endless:
            return f"{self.lower} and at most {shown(self.most)}"
        return f"from {shown(self.least)} to {shown(self.most)}"

    def broken_by(self, number: float) -> str:
        """What a number had to be that is out of the range; the end that it is beyond."""
        if not self.endless:
            return str(self)
        return f"at most {shown(self.most)}" if number > self.most else self.lower

    @property
    def lower(self) -> str:
        return f"{'above' if self.open else 'at least'} {shown(self.least)}"

    def __call__(self, default: str) -> str:
        return hint(self.lower if self.endless else str(self), default)


@dataclass(frozen=True)
class Choice:
    """The words that a setting may have. Called with a default, it is the end of a help text."""

    words: tuple[str, ...]
    pattern: str = ""
    """What else may be written, as a regular expression."""
    besides: str = ""
    """The same in a word, for help and for who wrote something else."""

    def demand(self, word: str, where: str) -> None:
        """Refuse other words with the nearest of those that there are."""
        if word in self.words or (self.pattern and re.fullmatch(self.pattern, word)):
            return
        meant = VALUES.get(word.lower(), "")
        words = (f"a {self.besides}", *self.words) if self.besides else self.words
        known = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        close = f"; did you mean {meant!r}?" if meant in self.words else nearest(word, self.words)
        hint = close if "did you mean" in close else ""
        raise ConfigError(f"{where} {shortened(word)} is unknown; use {known}{hint}")

    def __call__(self, default: str) -> str:
        return hint("", default)


MOST = 10**12
"""Of anything without an upper end of its own: nobody counts, waits for or stores more."""
MAX_SEED = 2**63 - 1
"""The largest integer of a TOML file."""
MAX_THREADS = 1024
MAX_SHOWN = 60
"""Letters of a value in a message."""
LONGEST_POWER = 30
"""Of ten, in a whole number: beyond all that may be set, and short enough to be shown."""


def at_least(least: float, most: float = MOST) -> Any:
    """The annotation of numbers from this one on; `most` only keeps absurd ones out."""
    return tyro.conf.arg(help_behavior_hint=Range(least, most, endless=True))


def above(least: float, most: float = MOST) -> Any:
    """The annotation of numbers that are larger than this one; `most` as in `at_least`."""
    return tyro.conf.arg(help_behavior_hint=Range(least, most, open=True, endless=True))


def between(least: float, most: float, *, by_games: bool = False) -> Any:
    """The annotation of numbers from one to another, both included."""
    return tyro.conf.arg(help_behavior_hint=Range(least, most, by_games=by_games))


def one_of(*words: str, pattern: str = "", besides: str = "") -> Any:
    """The annotation of a choice of words."""
    shown = (besides.upper(), *words) if besides else words
    return tyro.conf.arg(
        metavar="|".join(shown), help_behavior_hint=Choice(words, pattern, besides)
    )


Seed = Annotated[int, tyro.conf.arg(help_behavior_hint=Range(0, MAX_SEED, endless=True))]
Threads = Annotated[int, tyro.conf.arg(help_behavior_hint=Range(0, MAX_THREADS))]
Count = Annotated[int, at_least(0)]
"""A whole number that may be large."""


def read_count(text: str) -> int:
    """Read a whole number as people write large ones: 2000000, 2_000_000 or 2e6."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return whole(text)
    except (ValueError, ArithmeticError):
        raise ValueError(f"{text!r} is no whole number, such as 1000, 1_000 or 1e3") from None


def whole(text: str) -> int:
    """Read digits with a point or a power of ten; all digits count, as they would not in a float.

    A power that nobody means is refused before it becomes a number of so many digits.
    """
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > LONGEST_POWER or number != int(number):
        raise ValueError(text)
    return int(number)


def read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number, such as 0.5 or 1e-3") from None


READERS: dict[Any, Callable[[str], float]] = {int: read_count, float: read_number}
NUMBERS = ConstructorRegistry()
"""How the command line reads numbers, in every command."""


@NUMBERS.primitive_rule
def number_rule(about: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Read whole numbers and others in our way; a wrong one is said in our words."""
    union = get_origin(about.type) in (Union, UnionType)
    kinds: set[Any] = set(get_args(about.type)) if union else {about.type}
    none = NoneType in kinds
    kind, *others = (kinds - {NoneType}) or kinds
    if others or kind not in READERS:
        return None
    reader, known = READERS[kind], {"None": None} if none else {}
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{'{None}|' if none else ''}{kind.__name__.upper()}",
        instance_from_str=lambda words: known[words[0]] if words[0] in known else reader(words[0]),
        is_instance=lambda given: type(given) in (int, kind) or (none and given is None),
        str_from_instance=lambda number: [str(number)],
    )


def hint(allowed: str, default: str) -> str:
    shown = f"default: {default}" if default else "default: none"
    return f"({allowed}; {shown})" if allowed else f"({shown})"


class Checked:
    """A configuration that brings its values into their types and refuses those out of range.

    Numbers may stand for schedules, integers for floats and lists for tuples, as files and Python
    code give them.
    """

    _section: ClassVar[str] = ""

    def __init_subclass__(cls, section: str = "") -> None:
        """Note where its settings stand: `ppo` for those called ppo.lr and so on."""
        super().__init_subclass__()
        cls._section = f"{section}." if section else ""

    def __post_init__(self) -> None:
        for name, (kind, limit) in settings_of(self).items():
            where = self._section + name
            object.__setattr__(self, name, read(getattr(self, name), kind, limit, where))


def settings_of(config: Checked) -> dict[str, tuple[Any, Range | Choice | None]]:
    """The type of every setting of a configuration, and what it may be."""
    kind: Any = type(config)
    return kinds_of(kind)


@cache
def kinds_of(config: Any) -> dict[str, tuple[Any, Range | Choice | None]]:
    """The type of every setting of a kind of configuration, and what it may be."""
    hints = get_type_hints(config, include_extras=True)
    plain = get_type_hints(config)
    found = {}
    for name, annotated in hints.items():
        if get_origin(plain[name]) is ClassVar or plain[name] is ClassVar:
            continue
        metadata = getattr(annotated, "__metadata__", ())
        limits = [getattr(one, "help_behavior_hint", None) for one in metadata]
        limit = next((one for one in limits if isinstance(one, Range | Choice)), None)
        found[name] = plain[name], limit
    return found


def read(value: Any, kind: Any, limit: Range | Choice | None, where: str) -> Any:
    """Return a value as its type and its limit want it, or say what they want."""
    if isinstance(kind, UnionType):
        if value is None:
            return None
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"{where} needs a list, not {shortened(value)}")
        inner = get_args(kind)[0]
        return tuple(read(one, inner, limit, where) for one in value)
    numbers: Sequence[float] = ()
    typed = value if isinstance(value, str) else ""
    if kind is Schedule:
        value = Schedule.read(plain(value), where)
        if not (isinstance(limit, Range) and limit.by_games):
            check_of_learners(value, where)
        numbers = value.values
    elif kind in (int, float):
        value = plain(value)
        if kind is float and type(value) is int:
            value = as_float(value, where)
        elif kind is int and type(value) is float and value.is_integer():
            value = int(value)  # 1e6 in a file
        numbers = (value,)
    if type(value) is not kind:
        raise ConfigError(f"{where} needs {named(kind)}, not {shortened(value)}")
    if isinstance(limit, Choice):
        limit.demand(value, where)
    for number in numbers:
        check_number(number, limit, where, value, typed)
    return value


def check_of_learners(schedule: Schedule, where: str) -> None:
    """Refuse a schedule by finished games: learners count their own decisions alone."""
    if schedule.by == "episodes":
        raise ConfigError(
            f"{where} {shortened(schedule)} is by finished games, which learners do not count; "
            "give points in decisions or shares (%)"
        )


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's; anything else as it is."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, Real) and type(value).__module__ == "numpy" else value


def is_number(value: Any) -> bool:
    """Whether a value of a file is a finite number; true and false are none."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) <= sys.float_info.max  # whole numbers may be larger


def check_number(number: float, limit: Any, where: str, value: Any, typed: str = "") -> None:
    """Refuse a number that is none, or that is out of range. typed: as somebody wrote the value."""
    if isinstance(number, float) and not math.isfinite(number):
        wanted = f" {limit}" if isinstance(limit, Range) else ""
        raise ConfigError(f"{where} {number} must be a finite number{wanted}")
    if isinstance(limit, Range) and number not in limit:
        said = typed if 0 < len(typed) <= MAX_SHOWN else shortened(value)
        raise ConfigError(f"{where} {said} must be {limit.broken_by(number)}")


def as_float(value: int, where: str) -> float:
    """The same number as a float; one that is too large is none."""
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{where} {shortened(value)} must be a finite number") from None


def shown(number: float) -> str:
    """A bound in words; help texts break lines at commas, so that smaller ones have none."""
    if not float(number).is_integer():
        return f"{number:g}"
    return f"{int(number):,}" if abs(number) >= 10_000 else f"{int(number)}"


def named(kind: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return "a table of settings" if is_dataclass(kind) else words.get(kind, str(kind))


def shortened(value: Any) -> str:
    """A value as a message shows it."""
    try:
        text = str(value) if isinstance(value, int | Schedule) else repr(value)
        text = text.replace("e+", "e") if isinstance(value, float) else text
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "so many digits"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
