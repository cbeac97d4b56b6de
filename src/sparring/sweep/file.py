"""Reads the file of a sweep: settings of `sparring train`, the table [sweep], and the ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from sparring.config import TrainConfig
from sparring.config.options import paths_of
from sparring.config.ranges import Checked, at_least, between, one_of
from sparring.config.synonyms import like
from sparring.config.tools import SweepConfig
from sparring.errors import ConfigError, suggestion
from sparring.sweep.space import SearchRange, read_ranges
from sparring.sweep.trials import STRENGTH
from sparring.training.planning.settings import read_file, said_by

NEAREST = "nearest"
USUAL_TRIALS = 20
USUAL_WARM_UP = 5
"""Trials that end before one is pruned."""
MIN_WARM_UP = 3
MAX_TRIALS = 100_000
MAY_CHANGE = frozenset({"trials", "minutes", "at_once", "confirm"})
"""Keys of [sweep] that may change when a sweep is resumed."""
BARRED = {
    **dict.fromkeys(("name", "runs"), "the sweep names its runs itself"),
    **dict.fromkeys(("seeds", "population", "vary"), "trials are what differs; use [sweep.ranges]"),
    **dict.fromkeys(("config", "json", "dry_run"), "it is no setting of a training"),
    "cluster": "use sparring sweep --cluster",
}
"""Settings that the file of a sweep must not have, and why."""
FIXED = {
    **BARRED,
    **dict.fromkeys(("minutes", "updates", "decisions", "episodes"), "trials have one budget"),
    **dict.fromkeys(("game", "eval"), "trials could not be held against each other"),
    **dict.fromkeys(("device", "pool", "threads"), "the sweep shares the machine out itself"),
    "seed": "every trial has a seed of its own, from that of [sweep]",
    "init": 'use warm_start = "nearest" in [sweep]',
    "phases": "give files with phases: curriculum = [...]",
}
"""Settings without a range, and why."""


@dataclass(frozen=True)
class SearchConfig(Checked, section="sweep"):
    """The table [sweep]."""

    sampler: Annotated[str, one_of("random", "tpe", "gp")] = "tpe"
    trials: Annotated[int, between(0, MAX_TRIALS)] = 0
    """Maximum number of trials; 0: as many as the minutes allow."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Time for all trials and their confirmation; 0: no limit."""
    at_once: Annotated[int, between(0, 1024)] = 0
    """Trials that run at once; 0: chosen automatically."""
    seed: Annotated[int, between(0, 2**31 - 1)] = 0
    prune: int = USUAL_WARM_UP
    """Finished trials before pruning starts; 0: no pruning."""
    confirm: Annotated[int, between(0, 64)] = 3
    """Seeds of the confirmation, for best setting and preset; 0: no confirmation."""
    warm_start: Annotated[str, one_of("", NEAREST)] = ""
    """nearest: trials start with the weights of the nearest finished trial."""
    raised: str = STRENGTH


@dataclass(frozen=True)
class SweepFile:
    """Contents of the file of a sweep."""

    where: str
    """Its path, for messages."""
    settings: Mapping[str, Any]
    """Settings of `sparring train` that all trials share."""
    search: SearchConfig
    ranges: Mapping[str, SearchRange]
    table: Mapping[str, Any]
    """The whole file as TOML values."""


def read_sweep(path: str) -> SweepFile:
    """Read and validate the file of a sweep."""
    table = read_file(path)
    asked = table.get("sweep")
    if not isinstance(asked, Mapping):
        raise ConfigError(
            f"{path} has no table [sweep]; give it [sweep.ranges], or train it with sparring train "
            "--config"
        )
    settings = {key: value for key, value in table.items() if key != "sweep"}
    if not isinstance(settings.get("game"), str):
        raise ConfigError(f'{path} names no game; begin it with game = "skull_king"')
    for key, why in BARRED.items():
        if key in settings:
            raise ConfigError(f"{path}: {key} = {settings[key]!r}: {why}; leave it out")
    ranges = read_ranges(asked.get("ranges"), path)
    for name in ranges:
        check_setting(name, path)
        check_once(name, settings, ranges, path)
    search = read_search({key: asked[key] for key in asked if key != "ranges"}, path)
    return SweepFile(path, settings, search, ranges, table)


def read_search(given: Mapping[str, Any], where: str) -> SearchConfig:
    """Read the table [sweep] without its ranges."""
    words = {field.name: field.name for field in fields(SearchConfig)}
    words["raise"] = words.pop("raised")  # a keyword of Python
    for key in given:
        if key not in words:
            raise ConfigError(
                f"{where}: [sweep] has no key {key!r}{suggestion(key, [*words, 'ranges'])}"
            )
    found = {words[key]: value for key, value in given.items()}
    if "prune" in found:
        found["prune"] = read_prune(found["prune"], where)
    if not isinstance(found.get("raised", ""), str):
        raise ConfigError(
            f"{where}: sweep.raise {found['raised']!r}: give a word, such as strength"
        )
    with said_by(where):
        return SearchConfig(**found)


def read_prune(value: Any, where: str) -> int:
    """Read sweep.prune: a switch, or the number of finished trials before pruning starts."""
    if isinstance(value, bool):
        return USUAL_WARM_UP if value else 0
    if isinstance(value, int) and MIN_WARM_UP <= value <= MAX_TRIALS:
        return value
    raise ConfigError(
        f"{where}: sweep.prune {value!r} must be true, false, or the number of trials that end "
        f"before one is pruned, at least {MIN_WARM_UP}"
    )


def check_setting(name: str, where: str) -> None:
    """Raise for a range of an unknown setting, or of one that all trials share."""
    first, _, rest = name.partition(".")
    prefix = f"{where}: range {name!r}"
    if first in FIXED:
        raise ConfigError(f"{prefix}: {FIXED[first]}; leave it out")
    if first == "set" and not rest:
        raise ConfigError(f'{prefix} names no flag of the game; for example "set.num_players"')
    if first in ("set", "roles"):
        return  # the game validates them
    known = paths_of(TrainConfig)
    if name not in known:
        raise ConfigError(f"{prefix}: no such setting{like(name, known)}")


def check_once(
    name: str, settings: Mapping[str, Any], ranges: Mapping[str, SearchRange], where: str
) -> None:
    """Raise for two ranges of one setting."""
    for other in ranges:
        if other != name and other.startswith(f"{name}."):
            raise ConfigError(f"{where}: ranges {name!r} and {other!r} are about one setting")
    if name.startswith("roles.") and isinstance(settings.get("roles"), list):
        raise ConfigError(f"{where}: range {name!r}: write roles as tables, [roles.NAME.ppo]")


def with_options(file: SweepFile, options: SweepConfig) -> SweepFile:
    """Return the file with the command line's options."""
    overrides = {
        name: getattr(options, name) for name in ("minutes", "trials", "sampler", "at_once")
    }
    search = replace(file.search, **{name: value for name, value in overrides.items() if value})
    if not search.trials and not search.minutes:
        search = replace(search, trials=USUAL_TRIALS)
    settings = dict(file.settings)
    if options.device != SweepConfig.device:
        settings["device"] = options.device
    return replace(file, search=search, settings=settings)


def differences(before: SweepFile, now: SweepFile) -> list[str]:
    """Return the differences of two files that matter to finished trials, one line each."""
    found = []
    for key in dict.fromkeys((*before.settings, *now.settings)):
        one, two = before.settings.get(key), now.settings.get(key)
        if one != two:
            found.append(f"{key} was {one!r}, is {two!r}")
    for field in fields(SearchConfig):
        one, two = getattr(before.search, field.name), getattr(now.search, field.name)
        if one != two and field.name not in MAY_CHANGE:
            found.append(f"sweep.{field.name} was {one!r}, is {two!r}")
    for name in dict.fromkeys((*before.ranges, *now.ranges)):
        had, has = before.ranges.get(name), now.ranges.get(name)
        if had != has:
            found.append(f"range {name} was {had or 'not there'}, is {has or 'not there'}")
    return found
