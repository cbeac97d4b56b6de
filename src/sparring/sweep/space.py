"""Search space of a sweep: a range of values for each setting, and distances between settings.

[sweep.ranges]
"ppo.lr" = { low = 1e-4, high = 3e-3, log = true }
"ppo.epochs" = { low = 1, high = 4 }                     # whole numbers, step 1
"net.hidden" = [[256, 256], [512, 512, 256]]             # choices
"set.order" = { permutation = [0, 1, 2, 3, 4] }          # every order of them
opponents = [["self=1"], ["self=0.5", "captain=0.5"]]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.config.ranges import is_number
from sparring.errors import ConfigError, suggestion
from sparring.sweep.trials import DONE, Trial

FLOAT, INT, CHOICE, PERMUTATION = "float", "int", "choice", "permutation"
KEYS = {"low", "high", "step", "log", "permutation"}
HOW = "give { low = 1e-4, high = 1e-2, log = true }, choices in a list, or { permutation = [...] }"
MAX_ITEMS = 32
"""Maximum length of a permutation."""
MAX_CHOICES = 1000
SHAPING = (
    *("net", "hierarchy", "hierarchy.on", "algo", "dqn.dueling", "qrdqn.quantiles"),
    *(
        "sac.critic_hidden",
        "redq.critic_hidden",
        "td3.critic_hidden",
        "sac.critics",
        "redq.critics",
    ),
)
"""Settings that change the shape of networks; so does everything under net."""


@dataclass(frozen=True)
class SearchRange:
    """Search range of one setting."""

    name: str
    """Name of the setting, such as "ppo.lr" or "net.hidden"; "set.KEY" is a flag of the game."""
    kind: str
    """float, int, choice or permutation."""
    low: float = 0.0
    high: float = 0.0
    """Inclusive bounds of numbers."""
    step: float = 0.0
    """Step between numbers; 0: continuous. Integers have at least 1."""
    log: bool = False
    """Sample on a log scale."""
    choices: tuple[Any, ...] = ()
    """Values of a choice, or items of a permutation."""
    start: Any = None
    """Start value of a search from a preset."""

    @property
    def is_number(self) -> bool:
        return self.kind in (FLOAT, INT)

    def __contains__(self, value: Any) -> bool:
        if self.kind == CHOICE:
            return any(same(value, choice) for choice in self.choices)
        if self.kind == PERMUTATION:
            return isinstance(value, list) and is_order(value, self.choices)
        return is_number(value) and self.low <= value <= self.high

    def place(self, value: Any) -> float:
        """Return the position of a value between 0 and 1; choices have equal distances.

        Of a permutation: the share of exchanged pairs.
        """
        if self.kind == CHOICE:
            return self.choices.index(value) / max(len(self.choices) - 1, 1)
        if self.kind == PERMUTATION:
            return kendall_distance(value, self.choices)
        ends = [self.low, self.high, float(value)]
        low, high, at = map(math.log, ends) if self.log else ends
        return (at - low) / (high - low) if high > low else 0.0

    def distance_between(self, one: Any, two: Any) -> float:
        """Return the distance of two values between 0 and 1.

        Choices are equal or not; permutations by the share of exchanged pairs (Kendall's tau).
        """
        if self.kind == CHOICE:
            return float(one != two)
        if self.kind == PERMUTATION:
            return kendall_distance(one, two)
        return abs(self.place(one) - self.place(two))

    def corners(self) -> list[Any]:
        """Return the values to validate before a sweep starts: both ends, or every choice."""
        if self.kind == CHOICE:
            return list(self.choices)
        if self.kind == PERMUTATION:
            return [list(self.choices), list(reversed(self.choices))]
        return [self.number(self.low), self.number(self.high)]

    def number(self, value: float) -> float | int:
        return int(value) if self.kind == INT else float(value)

    def __str__(self) -> str:
        if self.kind == CHOICE:
            return " | ".join(map(show_setting, self.choices))
        if self.kind == PERMUTATION:
            return f"orders of {show_setting(self.choices)}"
        usual = self.step in (0, int(self.kind == INT))
        by = "" if usual else f", step {show_setting(self.step)}"
        ends = f"{show_setting(self.low)} .. {show_setting(self.high)}"
        return f"{ends}{by}{', log' if self.log else ''}"


def show_setting(value: Any) -> str:
    """Format a value for tables and charts."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " ".join(map(show_setting, value))
    return str(value)


def kendall_distance(one: Sequence[Any], two: Sequence[Any]) -> float:
    """Return the share of pairs in different order (Kendall's tau distance)."""
    places = [list(two).index(item) for item in one]
    pairs = list(itertools.combinations(places, 2))
    return sum(first > second for first, second in pairs) / max(len(pairs), 1)


def is_order(value: Sequence[Any], items: Sequence[Any]) -> bool:
    """Whether a list is a permutation of the items."""
    return len(value) == len(items) and all(any(same(v, i) for v in value) for i in items)


def same(one: Any, two: Any) -> bool:
    """Whether two values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(two, bool) and bool(one == two)


def distance(
    one: Mapping[str, Any], two: Mapping[str, Any], ranges: Mapping[str, SearchRange]
) -> float:
    return math.hypot(
        *(range_.distance_between(one[name], two[name]) for name, range_ in ranges.items())
    )


def nearest_trained(
    settings: Mapping[str, Any], trials: Sequence[Trial], ranges: Mapping[str, SearchRange]
) -> Trial | None:
    """Return the nearest finished trial whose weights fit, None if there is none.

    Of several at the same distance the best one, and of those the first.
    """
    shaping = [name for name in ranges if shapes_net(name)]

    def fits(trial: Trial) -> bool:
        alike = all(settings[name] == trial.settings[name] for name in shaping)
        return trial.state == DONE and bool(trial.run) and alike

    def order(trial: Trial) -> tuple[float, float, int]:
        value = -math.inf if trial.value is None or math.isnan(trial.value) else trial.value
        return distance(settings, trial.settings, ranges), -value, trial.number

    return min(filter(fits, trials), key=order, default=None)


def shapes_net(name: str) -> bool:
    """Whether a setting changes the shape of networks."""
    return name in SHAPING or name.startswith("net.") or ".net." in name


def read_ranges(given: Any, where: str) -> dict[str, SearchRange]:
    """Read the ranges of a file by setting. where: name of the file in messages."""
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(
            f"{where}: [sweep.ranges] names no setting to search over; for example "
            '"ppo.lr" = { low = 1e-4, high = 3e-3, log = true }'
        )
    return {name: read_range(name, value, where) for name, value in named(given).items()}


def named(given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return ranges by dotted names, written as "ppo.lr" = or in tables."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = f"{prefix}{key}"
        inner = isinstance(value, Mapping) and value and not KEYS & set(value)
        if inner and all(isinstance(one, Mapping | list) for one in value.values()):
            found |= named(value, f"{name}.")
        else:
            found[name] = value
    return found


def read_range(name: str, given: Any, where: str) -> SearchRange:
    prefix = f"{where}: range {name!r}"
    if isinstance(given, list):
        return SearchRange(name, CHOICE, choices=read_choices(given, prefix))
    if not isinstance(given, Mapping):
        raise ConfigError(f"{prefix} is {show_setting(given)!r}, one value; {HOW}")
    for key in given:
        if key not in KEYS:
            raise ConfigError(f"{prefix}: no key {key!r}{suggestion(key, sorted(KEYS))}")
    if "permutation" in given:
        return SearchRange(name, PERMUTATION, choices=read_items(given, prefix))
    return read_numbers(name, given, prefix)


def read_choices(given: Sequence[Any], prefix: str) -> tuple[Any, ...]:
    """Read choices: at least two different ones."""
    if not 2 <= len(given) <= MAX_CHOICES:
        raise ConfigError(f"{prefix} has {len(given)} choices; give 2 to {MAX_CHOICES}")
    for at, value in enumerate(given):
        if any(same(value, before) for before in given[:at]):
            raise ConfigError(
                f"{prefix}: {show_setting(value)} is there twice; give each choice once"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{prefix}: {value} is no finite number")
    return tuple(given)


def read_items(given: Mapping[str, Any], prefix: str) -> tuple[Any, ...]:
    """Read the items of a permutation."""
    items = given["permutation"]
    if len(given) > 1:
        other = next(key for key in given if key != "permutation")
        raise ConfigError(f"{prefix}: a permutation has no {other!r}; leave it out")
    if not isinstance(items, list) or not 2 <= len(items) <= MAX_ITEMS:
        raise ConfigError(f"{prefix}: permutation needs a list of 2 to {MAX_ITEMS} values")
    if any(same(one, two) for one, two in itertools.combinations(items, 2)):
        raise ConfigError(
            f"{prefix}: permutation {show_setting(items)} has a value twice; give each once"
        )
    return tuple(items)


def read_numbers(name: str, given: Mapping[str, Any], prefix: str) -> SearchRange:
    """Read a numeric range; integers if both ends and the step are."""
    for key in ("low", "high"):
        if key not in given:
            raise ConfigError(f"{prefix} has no {key}; {HOW}")
    for key in ("low", "high", "step"):
        if key in given and not is_number(given[key]):
            raise ConfigError(f"{prefix}: {key} {given[key]!r} is no finite number")
    low, high = given["low"], given["high"]
    step, log = given.get("step", 0), given.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError(f"{prefix}: log {log!r} must be true or false")
    if not low < high:
        raise ConfigError(
            f"{prefix}: low {show_setting(low)} must be below high {show_setting(high)}"
        )
    if log and low <= 0:
        raise ConfigError(f"{prefix}: low {show_setting(low)} with log must be above 0")
    if "step" in given and (step <= 0 or step > high - low):
        most = show_setting(high - low)
        raise ConfigError(f"{prefix}: step {show_setting(step)} must be above 0 and at most {most}")
    if log and step:
        raise ConfigError(f"{prefix}: log and step exclude each other; leave one out")
    whole = all(isinstance(number, int) for number in (low, high, step))
    if whole:
        high = low + (high - low) // (step or 1) * (step or 1)
        return SearchRange(name, INT, low, high, step or 1, log)
    return SearchRange(name, FLOAT, low, high, step, log)
