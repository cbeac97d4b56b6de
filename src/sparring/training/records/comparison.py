"""Runs side by side: which belong together, and what their numbers say. Needs no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sparring.config.options import flat
from sparring.draw.charts.axes import By, Curve, Floats, place_on_axis
from sparring.errors import ConfigError, suggestion
from sparring.factories import is_factory
from sparring.games.flags import initial_flags, read_rules
from sparring.games.rules import UNIVERSAL_FLAGS, Rules, game_names
from sparring.league.statistics import (
    Band,
    Estimate,
    band,
    estimate,
    improvement_estimate,
    interquartile_mean,
    value_at,
)
from sparring.pygames.registry import is_env
from sparring.training.planning.settings import read_config, written
from sparring.training.records.diff import names_of, shortened, spread, typed
from sparring.training.records.exploited import Exploited
from sparring.training.records.overview import (
    Overview,
    custom_rules,
    newest_meta,
)
from sparring.training.records.strength import MIN_HOURS, gained_per, measure_name, strength_in

BOOKKEEPING = frozenset(
    {"seed", "seeds", "name", "runs", "json", "tensorboard", "wandb", "csv", "keep", "config"}
    | {"checkpoint_every_s", "population", "vary", "game", "set", "curriculum", "roles"}
)
"""Settings that say nothing about how something is learned, or nothing that others do not say."""
EACH_RUN = "run"
"""The key that makes a group of every run."""
BUDGETS: tuple[By, ...] = ("decisions", "minutes")
SAME_LENGTH = 0.05
"""Runs whose lengths differ by no more than this share of them are called equally long."""


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs that are compared."""

    run: Overview
    settings: dict[str, Any]
    """Every setting by its dotted name."""
    opponents: tuple[str, ...]
    """Whom all of the runs met."""
    alone: bool
    """Whether the game has one seat: then the score is the strength."""

    @property
    def seed(self) -> int:
        return int(self.settings["seed"])

    @cached_property
    def last(self) -> float:
        """The strength in the last evaluation."""
        return float(self.strength_by("minutes")[1][-1])

    @property
    def final(self) -> float | None:
        """The strength that was measured after training, against the same opponents."""
        found = [strength_in(self.run.met, name) for name in self.opponents]
        values = [one.value for one in found if one is not None]
        return sum(values) / len(values) if len(values) == len(self.opponents) else None

    @property
    def has_curve(self) -> bool:
        return bool(len(self.strength_by("decisions")[0]))

    def strength_by(self, by: By) -> tuple[Floats, Floats]:
        """Where the evaluations lie and what they found."""
        return self.evaluations("score" if self.alone else "win", by)

    @property
    def score_per_hour(self) -> float | None:
        """Score gained between the first evaluation and the last, per hour of training."""
        minutes, score = self.evaluations("score", "minutes")
        return None if self.run.zero_sum else gained_per(minutes / 60, score, MIN_HOURS)

    def evaluations(self, what: str, by: By) -> tuple[Floats, Floats]:
        """Return the mean over the opponents, where all were met."""
        there = place_on_axis(self.run.curves, by)
        curves = [there.get(f"eval/{name}/{what}") for name in self.opponents]
        if not curves or None in curves:
            return np.empty(0), np.empty(0)
        return mean_curve([curve for curve in curves if curve is not None])


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in nothing that is compared."""

    name: str
    settings: dict[str, Any]
    """What makes the group."""
    label: str
    """The same, as it is typed, shortened where it is long."""
    entries: tuple[ComparedRun, ...]

    def over(self, by: By, *, seed: int = 0) -> Band:
        """The strength over the group's runs as a curve with its interval."""
        found = band([entry.strength_by(by) for entry in self.entries], seed=seed)
        return found if self.entries[0].alone else found.clipped()


@dataclass(frozen=True)
class Comparison:
    """Groups of runs of one game, and how their strength is measured."""

    rules: Rules
    opponents: tuple[str, ...]
    by: tuple[str, ...]
    groups: tuple[RunGroup, ...]
    measured_at_end: bool
    """Whether all runs have results of their own; otherwise the last evaluation counts."""
    seed: int = 0

    @property
    def entries(self) -> list[ComparedRun]:
        return [entry for group in self.groups for entry in group.entries]

    @property
    def measure(self) -> str:
        """What strength is called here."""
        return ", ".join(map(measure_name, self.opponents))

    @cached_property
    def budgets(self) -> tuple[By, ...]:
        """What curves go by; nothing where a run was measured at its end alone."""
        return BUDGETS if all(entry.has_curve for entry in self.entries) else ()

    @cached_property
    def uneven(self) -> tuple[By, ...]:
        """Budgets of which some runs have more than others.

        Runs of equally many decisions are equally long: their minutes are those of the machine.
        """
        if not self.budgets or not self.differs("decisions"):
            return ()
        return tuple(filter(self.differs, self.budgets))

    def strengths(self, group: RunGroup) -> list[float]:
        finals = [entry.final for entry in group.entries]
        if self.measured_at_end:
            return [final for final in finals if final is not None]
        return [entry.last for entry in group.entries]

    def strength(self, group: RunGroup) -> Estimate:
        """The interquartile mean over a group's runs."""
        return self._over_runs(self.strengths(group))

    def best(self, group: RunGroup) -> ComparedRun:
        return group.entries[int(np.argmax(self.strengths(group)))]

    @property
    def strongest(self) -> RunGroup:
        return max(self.groups, key=lambda group: self.strength(group).value)

    @cached_property
    def exploited_of(self) -> str:
        """What the measurements of most runs are of, "" without any."""
        found = Counter(one.of for entry in self.entries if (one := entry.run.exploited))
        return found.most_common(1)[0][0] if found else ""

    def exploited(self, group: RunGroup) -> list[Exploited]:
        """Return how much runs of a group lose to responses; not all may be measured."""
        found = (entry.run.exploited for entry in group.entries)
        return [one for one in found if one and one.of == self.exploited_of]

    def exploited_estimate(self, group: RunGroup) -> Estimate | None:
        """The mean over a group's runs; of one run the interval of its match."""
        return self._over_matches(self.exploited(group))

    def seeing(self, group: RunGroup) -> Estimate | None:
        """The mean that runs of a group lose to responses that see what is hidden."""
        return self._over_matches([one for entry in group.entries if (one := entry.run.seeing)])

    def _over_matches(self, found: Sequence[Exploited]) -> Estimate | None:
        if len(found) == 1:
            return Estimate(found[0].value, found[0].low, found[0].high)
        values = [one.value for one in found]
        return estimate(interquartile_mean, values, seed=self.seed) if values else None

    def pairs(self) -> Iterator[tuple[RunGroup, RunGroup, Estimate]]:
        """How probably a run of the one group is stronger than one of the other."""
        for one, two in combinations(self.groups, 2):
            values = self.strengths(one), self.strengths(two)
            yield one, two, improvement_estimate(*values)

    def common(self, by: By) -> float:
        """The budget that all runs have spent by their last evaluation."""
        return min(float(entry.strength_by(by)[0][-1]) for entry in self.entries)

    def differs(self, by: By) -> bool:
        """Whether some runs went on for longer than others."""
        ends = [float(entry.strength_by(by)[0][-1]) for entry in self.entries]
        return max(ends) - min(ends) > SAME_LENGTH * max(ends)

    def strength_at_common(self, group: RunGroup, by: By) -> Estimate | None:
        """The strength after the common budget; None if a run was first measured later."""
        place = self.common(by)
        curves = [entry.strength_by(by) for entry in group.entries]
        if any(x[0] > place for x, _ in curves):
            return None
        return self._over_runs([value_at(*curve, place) for curve in curves])

    def _over_runs(self, strengths: Sequence[float]) -> Estimate:
        """The interquartile mean of strengths; win shares stay between 0 and 1."""
        found = estimate(interquartile_mean, strengths, seed=self.seed)
        return found if self.rules.seats == 1 else found.clipped()

    def score_per_hour(self, group: RunGroup) -> Estimate | None:
        """The interquartile mean of what the runs gain per hour."""
        rates = [entry.score_per_hour for entry in group.entries]
        known = [rate for rate in rates if rate is not None]
        if len(known) < len(rates):
            return None
        return estimate(interquartile_mean, known, seed=self.seed)


def compare(paths: Sequence[Path], by: str = "", *, seed: int = 0) -> Comparison:
    """Read runs and put those together that belong together; refuses runs of different games."""
    rules, entries = read_entries(paths)
    keys = read_keys(by, entries) if by else differing(entries)
    return comparison(rules, entries, keys, make_groups(entries, keys), seed)


def compare_named(groups: Mapping[str, Sequence[Path]], *, seed: int = 0) -> Comparison:
    """Hold groups of runs against each other that have names already."""
    rules, entries = read_entries([path for paths in groups.values() for path in paths])
    keys = differing(entries)
    counts = [len(paths) for paths in groups.values()]
    starts = np.cumsum([0, *counts])
    inner = [tuple(entries[start : start + n]) for start, n in zip(starts, counts, strict=False)]
    known = [known_of(members[0], keys) for members in inner]
    named = tuple(
        RunGroup(name, settings, label(settings, known), members)
        for name, settings, members in zip(groups, known, inner, strict=True)
    )
    return comparison(rules, entries, keys, named, seed)


def read_entries(paths: Sequence[Path]) -> tuple[Rules, list[ComparedRun]]:
    """Read runs that can be compared; refuses runs of different games, or not measured yet."""
    runs = [Overview(path) for path in paths]
    rules = common_rules(runs)
    opponents = common_opponents(runs)
    settings = spread([flat(written(read_config(run.config, str(run.path)))) for run in runs])
    entries = [
        ComparedRun(run, known | asking(run), opponents, rules.seats == 1)
        for run, known in zip(runs, settings, strict=True)
    ]
    at_end = all(entry.final is not None for entry in entries)
    for entry in entries if not at_end else ():
        if not entry.has_curve:
            word = measure_name(opponents[0])
            later = f"measured at its end alone, and not every run is ({word})"
            why = "not measured yet" if entry.final is None else later
            raise ConfigError(f"{entry.run.path} is {why}; leave it out, or train it for longer")
    return rules, entries


def comparison(
    rules: Rules,
    entries: Sequence[ComparedRun],
    keys: tuple[str, ...],
    groups: tuple[RunGroup, ...],
    seed: int,
) -> Comparison:
    """Put groups together; what was measured at the end counts where all runs have it."""
    at_end = all(entry.final is not None for entry in entries)
    return Comparison(rules, entries[0].opponents, keys, groups, at_end, seed)


def common_rules(runs: Sequence[Overview]) -> Rules:
    """Return the game that all runs play; says what differs if it is not the same."""
    first, *others = runs
    if first.game not in game_names() and not is_factory(first.game):
        raise ConfigError(
            f"{first.path} learns {first.game!r}, which has no evaluations to compare; give runs "
            f"of {', '.join(game_names())}, or of a factory"
        )
    for run in others:
        if run.game != first.game:
            raise ConfigError(
                f"{first.name} plays {first.game}, {run.name} plays {run.game}; "
                "only runs of one game can be compared"
            )
    rules = rules_of(first)
    for run in others:
        mine = rules_of(run).config
        differ = [
            key
            for key, value in rules.config.items()
            if key not in UNIVERSAL_FLAGS and mine.get(key) != value
        ]
        if differ:
            told = ", ".join(f"{k} is {rules.config[k]} and {mine.get(k)}" for k in differ)
            raise ConfigError(
                f"{first.name} and {run.name} play {first.game} by different rules: {told}; "
                "only runs under the same rules can be compared"
            )
    versions = {run.name: version for run in runs if (version := version_of(run)) is not None}
    if len(set(versions.values())) > 1:
        told = ", ".join(f"{name} version {version}" for name, version in versions.items())
        raise ConfigError(f"the runs know different versions of the rules of {rules.name}: {told}")
    return rules


def rules_of(run: Overview) -> Rules:
    if is_env(run.game):
        return custom_rules(run.path)
    return read_rules(run.game, initial_flags(run.config.get("set", ())))


def asking(run: Overview) -> dict[str, Any]:
    """Return the flags that say when a policy is asked: a way of learning, not another game."""
    flags = rules_of(run).config
    return {f"set.{key}": flags[key] for key in UNIVERSAL_FLAGS if key in flags}


def version_of(run: Overview) -> int | None:
    version = newest_meta(run.path).get("rules_version")
    return int(version) if version is not None else None


def common_opponents(runs: Sequence[Overview]) -> tuple[str, ...]:
    """Whom strength is measured against: the best bot if all runs met it, else everybody shared."""
    met = [dict.fromkeys((*run.opponents, *run.met)) for run in runs]
    for run, names in zip(runs, met, strict=True):
        if not names:
            raise ConfigError(
                f"{run.path} has no evaluation yet; leave it out, or train it for longer "
                "(eval.every-s says how often a run is measured)"
            )
    if all(runs[0].against in names for names in met):
        return (runs[0].against,)
    shared = [name for name in met[0] if all(name in names for names in met)]
    if not shared:
        pairs = zip(runs, met, strict=True)
        told = "; ".join(f"{run.name} met {', '.join(names)}" for run, names in pairs)
        raise ConfigError(f"no opponent is common to all runs: {told}")
    return tuple(shared)


def differing(entries: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Return the settings of learning in which some runs differ, of those that have them.

    Runs of another algorithm have other settings; that is said by `algo`. Phases differ here by
    their names; what is otherwise in phases of one name has names of its own.
    """
    keys = dict.fromkeys(key for entry in entries for key in entry.settings)
    there = {key: [e.settings[key] for e in entries if key in e.settings] for key in keys}
    there["phases"] = [names_of(value) for value in there.get("phases", ())]
    return tuple(
        key
        for key, values in there.items()
        if key not in BOOKKEEPING
        and not key.startswith("eval.")
        and any(value != values[0] for value in values)
    )


def read_keys(by: str, entries: Sequence[ComparedRun]) -> tuple[str, ...]:
    keys = []
    there = dict.fromkeys(key for entry in entries for key in entry.settings)
    for word in filter(None, (part.strip() for part in by.split(","))):
        key = word.removeprefix("--").replace("-", "_")
        if key != EACH_RUN and key not in there:
            known = [EACH_RUN, *there]
            inner = [name for name in known if name.rpartition(".")[2] == key]
            hint = f"; did you mean {inner[0]!r}?" if inner else suggestion(key, known)
            raise ConfigError(f"--by: no setting {word!r}{hint}")
        keys.append(key)
    if not keys:
        raise ConfigError(f"--by {by!r} names no setting; for example --by ppo.lr")
    return tuple(dict.fromkeys(keys))


def make_groups(entries: Sequence[ComparedRun], keys: Sequence[str]) -> tuple[RunGroup, ...]:
    found: dict[str, list[ComparedRun]] = {}
    for entry in entries:
        found.setdefault(repr([value_of(entry, key) for key in keys]), []).append(entry)
    known = [known_of(inner[0], keys) for inner in found.values()]
    return tuple(
        RunGroup(letter(at), known[at], label(known[at], known), tuple(inner))
        for at, inner in enumerate(found.values())
    )


def label(settings: Mapping[str, Any], all_groups: Sequence[Mapping[str, Any]]) -> str:
    """Say what makes a group, as it is typed; where that is long, what tells it from others."""
    parts = []
    for key, value in settings.items():
        others = [typed(known[key]) for known in all_groups if key in known]
        parts.append(str(value) if key == EACH_RUN else f"{key}={shortened(typed(value), others)}")
    return ", ".join(parts) or "all runs"


def known_of(entry: ComparedRun, keys: Sequence[str]) -> dict[str, Any]:
    """Return what a run has for those keys that its algorithm has; without one, the algorithm."""
    there = [key for key in keys if key == EACH_RUN or key in entry.settings]
    if keys and not there:
        there = ["algo"]
    return {key: value_of(entry, key) for key in there}


def value_of(entry: ComparedRun, key: str) -> Any:
    return entry.run.name if key == EACH_RUN else entry.settings.get(key)


def letter(at: int) -> str:
    """Name a group: A to Z, then A2 and so on."""
    return chr(ord("A") + at % 26) + (str(at // 26 + 1) if at >= 26 else "")


def mean_curve(curves: Sequence[Curve]) -> tuple[Floats, Floats]:
    """Return the mean of curves at the updates that all of them have, and where those lie."""
    shared = curves[0][0]
    for updates, _, _ in curves[1:]:
        shared = np.intersect1d(shared, updates)
    picked = [np.searchsorted(updates, shared) for updates, _, _ in curves]
    values = np.mean([c[2][at] for c, at in zip(curves, picked, strict=True)], axis=0)
    x = curves[0][1][picked[0]]
    there = np.isfinite(values) & np.isfinite(x)
    return x[there], values[there]
