"""Allowed values of settings, declared in annotations, shown in the help and checked when set.

    games: Annotated[int, at_least(1)] = 512
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(1.0)
    kind: Annotated[str, one_of("mlp", "residual")] = "mlp"

The members of a list and all points of a schedule must lie in the range. NaN and infinity never do.
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

from sparring.config.synonyms import VALUES
from sparring.errors import ConfigError, suggestion
from sparring.schedule import Schedule

Scheduled = Annotated[
    Schedule,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="NUMBER|SCHEDULE",
        instance_from_str=lambda words: words[0],  # `Checked` parses it
        is_instance=lambda given: isinstance(given, Schedule),
        str_from_instance=lambda schedule: [str(schedule)],
    ),
]
"""A number that may change during a run: 1e-3, 0:1e-3,2e6:1e-4 (decisions), 0%:1e-3,100%:1e-4."""


@dataclass(frozen=True)
class NumberRange:
    """Numbers that a setting may have. Called with a default, it returns the end of a help text."""

    low: float
    high: float
    open: bool = False
    """`low` itself is not allowed."""
    unbounded: bool = False
    """`high` only excludes absurd numbers; the help does not show it."""
    episodes_ok: bool = False
    """Schedules by finished games are allowed; most learners count decisions only."""

    def __contains__(self, number: float) -> bool:
        enough = number > self.low if self.open else number >= self.low
        return enough and number <= self.high

    def __str__(self) -> str:
        if self.open or self.unbounded:
            return f"{self.lower} and at most {shown(self.high)}"
        return f"from {shown(self.low)} to {shown(self.high)}"

    def requirement(self, number: float) -> str:
        """Say what a number outside of the range has to be."""
        if not self.unbounded:
            return str(self)
        return f"at most {shown(self.high)}" if number > self.high else self.lower

    @property
    def lower(self) -> str:
        return f"{'above' if self.open else 'at least'} {shown(self.low)}"

    def __call__(self, default: str) -> str:
        return hint(self.lower if self.unbounded else str(self), default)


@dataclass(frozen=True)
class WordChoice:
    """Words that a setting may have. Called with a default, it returns the end of a help text."""

    words: tuple[str, ...]
    pattern: str = ""
    """Other allowed values, as a regular expression."""
    placeholder: str = ""
    """What the pattern stands for in help texts and errors, such as module:Class."""
    any_case: bool = False
    """Whether words may be typed in any case, as names of algorithms are."""

    def read(self, word: str, where: str) -> str:
        """Return an allowed word; raise with the most similar one for others."""
        if self.any_case and word.lower() in self.words:
            return word.lower()
        if word in self.words or (self.pattern and re.fullmatch(self.pattern, word)):
            return word
        synonym = VALUES.get(word.lower(), "")
        words = (f"a {self.placeholder}", *self.words) if self.placeholder else self.words
        known = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        close = suggestion(word, self.words)
        if synonym in self.words:
            close = f"; did you mean {synonym!r}?"
        hint = close if "did you mean" in close else ""
        raise ConfigError(f"{where} {shortened(word)} is unknown; use {known}{hint}")

    def __call__(self, default: str) -> str:
        return hint("", default)


MAX_NUMBER = 10**12
"""Upper limit of settings without a limit."""
MAX_SEED = 2**63 - 1
"""The largest integer of a TOML file."""
MAX_THREADS = 1024
MAX_SHOWN = 60
"""Characters of a value in a message."""
MAX_EXPONENT = 30
"""Largest power of ten in an integer: above all limits, and short enough to print."""


def at_least(low: float, high: float = MAX_NUMBER) -> Any:
    """Annotate a setting with a lower limit; `high` only excludes absurd numbers."""
    return tyro.conf.arg(help_behavior_hint=NumberRange(low, high, unbounded=True))


def above(low: float, high: float = MAX_NUMBER) -> Any:
    """Annotate a setting whose numbers are greater than `low`; `high` as in `at_least`."""
    return tyro.conf.arg(help_behavior_hint=NumberRange(low, high, open=True, unbounded=True))


def between(low: float, high: float, *, episodes_ok: bool = False) -> Any:
    """Annotate a setting whose numbers are from `low` to `high`, both included."""
    return tyro.conf.arg(help_behavior_hint=NumberRange(low, high, episodes_ok=episodes_ok))


def one_of(*words: str, pattern: str = "", placeholder: str = "", any_case: bool = False) -> Any:
    """Annotate a setting that is one of some words. The rest: see `WordChoice`."""
    shown = (placeholder.upper(), *words) if placeholder else words
    choice = WordChoice(words, pattern, placeholder, any_case)
    return tyro.conf.arg(metavar="|".join(shown), help_behavior_hint=choice)


Seed = Annotated[int, tyro.conf.arg(help_behavior_hint=NumberRange(0, MAX_SEED, unbounded=True))]
Threads = Annotated[int, tyro.conf.arg(help_behavior_hint=NumberRange(0, MAX_THREADS))]
Count = Annotated[int, at_least(0)]
"""An integer that may be large."""


def read_count(text: str) -> int:
    """Parse an integer: 2000000, 2_000_000 or 2e6."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return parse_decimal_integer(text)
    except (ValueError, ArithmeticError):
        raise ValueError(f"{text!r} is not a whole number, such as 1000, 1_000 or 1e3") from None


def parse_decimal_integer(text: str) -> int:
    """Parse an integer with a decimal point or exponent exactly, which a float would not.

    A huge exponent raises ValueError before it becomes a number with as many digits.
    """
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > MAX_EXPONENT or number != int(number):
        raise ValueError(text)
    return int(number)


def read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number, such as 0.5 or 1e-3") from None


READERS: dict[Any, Callable[[str], float]] = {int: read_count, float: read_number}
NUMBERS = ConstructorRegistry()
"""Parsers of numbers on the command line, for all commands."""


@NUMBERS.primitive_rule
def number_rule(about: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Parse numbers with READERS, so that errors name the value and the allowed format."""
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
    """Base of configurations: converts values to their types and checks their ranges.

    Accepts numbers for schedules, integers for floats and lists for tuples, as TOML files and
    Python code have them.
    """

    _section: ClassVar[str] = ""

    def __init_subclass__(cls, section: str = "") -> None:
        """Set the section of the settings: `ppo` for ppo.lr and so on."""
        super().__init_subclass__()
        cls._section = f"{section}." if section else ""

    def __post_init__(self) -> None:
        for name, (kind, limit) in settings_of(self).items():
            where = self._section + name
            object.__setattr__(self, name, read(getattr(self, name), kind, limit, where))


def settings_of(config: Checked) -> dict[str, tuple[Any, NumberRange | WordChoice | None]]:
    """Return the type and the allowed values of every setting of a configuration."""
    cls: Any = type(config)
    return types_of(cls)


@cache
def types_of(config: Any) -> dict[str, tuple[Any, NumberRange | WordChoice | None]]:
    """Return the type and the allowed values of every setting of a configuration class."""
    hints = get_type_hints(config, include_extras=True)
    plain = get_type_hints(config)
    settings = {}
    for name, annotated in hints.items():
        if get_origin(plain[name]) is ClassVar or plain[name] is ClassVar:
            continue
        metadata = getattr(annotated, "__metadata__", ())
        limits = [getattr(one, "help_behavior_hint", None) for one in metadata]
        limit = next((one for one in limits if isinstance(one, NumberRange | WordChoice)), None)
        settings[name] = plain[name], limit
    return settings


def read(value: Any, kind: Any, limit: NumberRange | WordChoice | None, where: str) -> Any:
    """Convert a value to its type and check its limit. Raises ConfigError with what is allowed."""
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
        if not (isinstance(limit, NumberRange) and limit.episodes_ok):
            check_not_by_episodes(value, where)
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
    if isinstance(limit, WordChoice):
        value = limit.read(value, where)
    for number in numbers:
        check_number(number, limit, where, value, typed)
    return value


def check_not_by_episodes(schedule: Schedule, where: str) -> None:
    if schedule.by == "episodes":
        raise ConfigError(
            f"{where} {shortened(schedule)} is by finished games, which this setting does not "
            "support; give points in decisions or percent"
        )


def plain(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers; return anything else unchanged."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, Real) and type(value).__module__ == "numpy" else value


def is_number(value: Any) -> bool:
    """Whether a value of a file is a finite number; true and false are not."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # integers may be larger


def check_number(number: float, limit: Any, where: str, value: Any, typed: str = "") -> None:
    """Raise an error for a number that is not finite or out of range. typed: the user's text."""
    if isinstance(number, float) and not math.isfinite(number):
        wanted = f" {limit}" if isinstance(limit, NumberRange) else ""
        raise ConfigError(f"{where} {number} must be a finite number{wanted}")
    if isinstance(limit, NumberRange) and number not in limit:
        text = typed if 0 < len(typed) <= MAX_SHOWN else shortened(value)
        raise ConfigError(f"{where} {text} must be {limit.requirement(number)}")


def as_float(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{where} {shortened(value)} must be a finite number") from None


def shown(number: float) -> str:
    """Format a bound; smaller ones have no commas, because help texts break lines there."""
    if not float(number).is_integer():
        return f"{number:g}"
    return f"{int(number):,}" if abs(number) >= 10_000 else f"{int(number)}"


def named(kind: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return "a table of settings" if is_dataclass(kind) else words.get(kind, str(kind))


def shortened(value: Any) -> str:
    """Format a value for a message."""
    try:
        text = str(value) if isinstance(value, int | Schedule) else repr(value)
        text = text.replace("e+", "e") if isinstance(value, float) else text
    except ValueError:  # Python formats no integer of more than some thousand digits
        return "(too many digits)"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
