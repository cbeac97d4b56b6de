"""What is tried next: a function of what was tried so far, the seed and the trial's number.

Every trial has a study of its own, made from the records, so that a sweep that goes on asks as
one that was never interrupted. Trials that are under way count as such: the samplers keep away
from them. One that failed counts as the worst there was, so that it is not tried again nearby.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sparring.errors import ConfigError
from sparring.schedule import Schedule
from sparring.sweep.space import CHOICE, FLOAT, INT, PERMUTATION, Range, is_rising, same
from sparring.sweep.trials import DONE, FAILED, PRUNED, RUNNING, Trial

FEW_ORDERS = 24
"""Orders that are choices of their own; of more, items have keys and are sorted by them."""
STARTUP = 10
"""Random trials at the beginning, at most."""
TRIES = 8
"""How often another point is asked for instead of one that was tried already."""


def load_optuna() -> Any:
    """Return the library, or say how to get it."""
    try:
        import optuna
    except ImportError:
        raise ConfigError("sparring sweep needs optuna: pip install 'sparring[tune]'") from None
    if importlib.util.find_spec("scipy") is None:  # the Gaussian process would say so late
        raise ConfigError("sparring sweep needs scipy: pip install 'sparring[tune]'")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def distributions_of(ranges: Mapping[str, Range]) -> dict[str, Any]:
    """The same ranges as the library has them, by the names that it knows."""
    known = load_optuna().distributions
    found: dict[str, Any] = {}
    for name, one in ranges.items():
        if one.kind == FLOAT:
            found[name] = known.FloatDistribution(
                one.low, one.high, log=one.log, step=one.step or None
            )
        elif one.kind == INT:
            low, high, step = int(one.low), int(one.high), int(one.step)
            found[name] = known.IntDistribution(low, high, log=one.log, step=step)
        elif one.kind == PERMUTATION and not has_few_orders(one):
            for item in range(len(one.choices)):
                found[f"{name}#{item}"] = known.FloatDistribution(0.0, 1.0)
        elif is_line(one):
            found[name] = known.IntDistribution(0, len(one.choices) - 1)
        else:
            found[name] = known.CategoricalDistribution(tuple(range(count_of(one))))
    return found


def is_line(one: Range) -> bool:
    """Whether choices lie on a line: rising numbers, or schedules whose first values rise."""
    if one.kind != CHOICE:
        return False
    try:
        return is_rising([Schedule.read(choice).values[0] for choice in one.choices])
    except ConfigError:
        return False


def has_few_orders(one: Range) -> bool:
    """Whether every order is a choice."""
    return math.factorial(len(one.choices)) <= FEW_ORDERS


def count_of(one: Range) -> int:
    """How many choices there are."""
    return len(one.choices) if one.kind == CHOICE else math.factorial(len(one.choices))


def as_params(ranges: Mapping[str, Range], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the library has them: choices by number, orders by number or by keys."""
    found: dict[str, Any] = {}
    for name, one in ranges.items():
        value = settings[name]
        if one.is_number:
            found[name] = value
        elif one.kind == CHOICE:
            found[name] = place_in(one.choices, value)
        elif has_few_orders(one):
            found[name] = number_of([place_in(one.choices, item) for item in value])
        else:
            last = len(one.choices) - 1
            for item, choice in enumerate(one.choices):
                found[f"{name}#{item}"] = place_in(value, choice) / last
    return found


def as_settings(ranges: Mapping[str, Range], params: Mapping[str, Any]) -> dict[str, Any]:
    """The way back."""
    found: dict[str, Any] = {}
    for name, one in ranges.items():
        if one.is_number:
            found[name] = one.number(params[name])
        elif one.kind == CHOICE:
            found[name] = one.choices[params[name]]
        elif has_few_orders(one):
            found[name] = [one.choices[item] for item in order_of(params[name], len(one.choices))]
        else:
            keys = [params[f"{name}#{item}"] for item in range(len(one.choices))]
            found[name] = [one.choices[item] for item in np.argsort(keys, kind="stable")]
    return found


def place_in(values: Sequence[Any], value: Any) -> int:
    """Where a value is among others."""
    return next(at for at, one in enumerate(values) if same(one, value))


def number_of(order: Sequence[int]) -> int:
    """The number of an order, counted as in a dictionary."""
    left, number = sorted(order), 0
    for item in order:
        at = left.index(item)
        number += at * math.factorial(len(left) - 1)
        left.pop(at)
    return number


def order_of(number: int, count: int) -> list[int]:
    """The order of a number."""
    left, order = list(range(count)), []
    while left:
        at, number = divmod(number, math.factorial(len(left) - 1))
        order.append(left.pop(at))
    return order


def make_sampler(kind: str, seed: int, startup: int) -> Any:
    """One of the library's samplers."""
    samplers = load_optuna().samplers
    if kind == "random":
        return samplers.RandomSampler(seed=seed)
    if kind == "gp":
        return samplers.GPSampler(seed=seed, n_startup_trials=startup)
    return samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=startup)


def make_study(ranges: Mapping[str, Range], trials: Iterable[Trial], sampler: Any = None) -> Any:
    """A study that knows trials."""
    optuna = load_optuna()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    states, known = optuna.trial.TrialState, distributions_of(ranges)
    trials = sorted(trials, key=lambda trial: trial.number)
    ended = [
        trial.value for trial in trials if trial.state in (DONE, PRUNED) and trial.value is not None
    ]
    worst = min(ended, default=None)
    for trial in trials:
        value = worst if trial.state == FAILED else trial.value
        if trial.state != RUNNING and value is None:
            continue
        about: dict[str, Any] = {"state": states.RUNNING}
        if trial.state != RUNNING:
            about = {"state": states.COMPLETE, "value": value}
        params = as_params(ranges, trial.settings)
        study.add_trial(optuna.trial.create_trial(params=params, distributions=known, **about))
    return study


def propose(
    ranges: Mapping[str, Range],
    trials: Sequence[Trial],
    *,
    kind: str,
    seed: int,
    number: int,
    wanted: int = 0,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings of trial `number`. The same arguments give the same answer.

    trials: those that have ended, and those that are under way. wanted: how many there will be,
    0 if nobody knows. fixed: values that are given.
    """
    optuna, known = load_optuna(), distributions_of(ranges)
    startup = min(STARTUP, max(wanted // 4, 2)) if wanted else STARTUP
    whole = {name: ranges[name] for name in fixed or {}}
    tried = [trial.settings for trial in trials]
    settings: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that parts of the library are experimental
        for attempt in range(TRIES):
            own = int(np.random.SeedSequence([seed, number, attempt]).generate_state(1)[0])
            # Asked again, chance decides: a sampler that is sure would give the same answer.
            sampler = make_sampler(kind if attempt < TRIES // 2 else "random", own, startup)
            if fixed:
                given = as_params(whole, fixed)
                sampler = optuna.samplers.PartialFixedSampler(given, sampler)
            study = make_study(ranges, trials, sampler)
            settings = as_settings(ranges, study.ask(known).params)
            if settings not in tried:
                break
    return settings
