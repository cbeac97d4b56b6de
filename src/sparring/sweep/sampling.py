"""What is tried next, and what has mattered so far.

What is next is a function of what was tried so far, the seed and the trial's number. Every trial
has a study of its own, made from the records, so that a sweep that goes on asks as one that was
never interrupted. Trials that are under way count as such: the samplers keep away from them. One
that failed counts as the worst there was, so that it is not tried again nearby.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise, permutations
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.schedule import Schedule
from sparring.sweep.knobs import Point
from sparring.sweep.space import CHOICE, FLOAT, INT, Range, same
from sparring.sweep.trials import FAILED, RUNNING, Trial, finished

Floats = npt.NDArray[np.float64]
FEW_ORDERS = 24
"""Orders that are choices of their own; of more, items have keys and are sorted by them."""
STARTUP = 10
"""Random trials at the beginning, at most."""
LEAST, MIN_EACH = 8, 2
"""Trials that have to have gone to their end before what matters is said: in all, and by range."""
TRIES = 8
"""How often another point is asked for instead of one that was tried already."""
SLOPE, BEND, BEND_SPREAD, CROSS, SWITCH = 0.12, -0.03, 0.05, 0.03, 0.25
"""What is thought before anything was seen, per doubling: how steep, how bent (more of anything
stops to pay some time), how much two depend on each other; and what a switch may bring."""
MISFIT = 0.03
"""How far a parabola is off."""


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
        elif is_line(one):
            found[name] = known.IntDistribution(0, len(one.choices) - 1)
        elif choices := choices_of(one):
            found[name] = known.CategoricalDistribution(tuple(range(len(choices))))
        else:
            found |= dict.fromkeys(keys_of(one), known.FloatDistribution(0.0, 1.0))
    return found


def is_line(one: Range) -> bool:
    """Whether choices lie on a line: rising numbers, or schedules whose first values rise."""
    if one.kind != CHOICE:
        return False
    try:
        firsts = [Schedule.read(choice).values[0] for choice in one.choices]
    except ConfigError:
        return False
    return all(before < after for before, after in pairwise(firsts))


def choices_of(one: Range) -> Sequence[Any]:
    """All values of a choice, or of an order that has few; none of what has too many."""
    if one.kind == CHOICE:
        return one.choices
    if math.factorial(len(one.choices)) > FEW_ORDERS:
        return ()
    return [list(order) for order in permutations(one.choices)]


def keys_of(one: Range) -> list[str]:
    return [f"{one.name}#{item}" for item in range(len(one.choices))]


def as_params(ranges: Mapping[str, Range], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the library has them: choices by number, orders by number or by keys."""
    found: dict[str, Any] = {}
    for name, one in ranges.items():
        value = settings[name]
        if one.is_number:
            found[name] = value
        elif choices := choices_of(one):
            found[name] = place_in(choices, value)
        else:
            last = len(one.choices) - 1
            places = [place_in(value, choice) / last for choice in one.choices]
            found |= zip(keys_of(one), places, strict=True)
    return found


def as_settings(ranges: Mapping[str, Range], params: Mapping[str, Any]) -> dict[str, Any]:
    """The way back."""
    found: dict[str, Any] = {}
    for name, one in ranges.items():
        if one.is_number:
            found[name] = one.number(params[name])
        elif choices := choices_of(one):
            found[name] = choices[params[name]]
        else:
            keys = [params[key] for key in keys_of(one)]
            found[name] = [one.choices[item] for item in np.argsort(keys, kind="stable")]
    return found


def place_in(values: Sequence[Any], value: Any) -> int:
    return next(at for at, one in enumerate(values) if same(one, value))


def make_sampler(kind: str, seed: int, startup: int) -> Any:
    samplers = load_optuna().samplers
    if kind == "random":
        return samplers.RandomSampler(seed=seed)
    if kind == "gp":
        return samplers.GPSampler(seed=seed, n_startup_trials=startup)
    return samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=startup)


def make_study(ranges: Mapping[str, Range], trials: Iterable[Trial], sampler: Any = None) -> Any:
    optuna = load_optuna()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    states, known = optuna.trial.TrialState, distributions_of(ranges)
    trials = sorted(trials, key=lambda trial: trial.number)
    worst = min((trial.value for trial in trials if trial.value is not None), default=None)
    for trial in trials:
        value = worst if trial.state == FAILED else trial.value
        if trial.state != RUNNING and value is None:
            continue
        running = trial.state == RUNNING
        about = {"state": states.RUNNING if running else states.COMPLETE, "value": value}
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


def too_few(trials: Sequence[Trial], ranges: Mapping[str, Range]) -> str:
    """Say that there are too few trials to tell what matters, "" if there are enough."""
    done, wanted = finished(trials), max(LEAST, MIN_EACH * len(ranges))
    if len(done) < wanted:
        return f"too few trials to tell what matters: {len(done)} of at least {wanted}"
    if len({trial.value for trial in done}) < 2:
        return "all trials came out alike, so that nothing tells what matters"
    return ""


def importance(trials: Sequence[Trial], ranges: Mapping[str, Range]) -> dict[str, float]:
    """The share of every range in what tells good trials from others, the largest first.

    PED-ANOVA (Watanabe et al., 2023); {} where there are too few trials. Shares add up to 1. The
    keys of an order count together.
    """
    if too_few(trials, ranges):
        return {}
    optuna = load_optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = optuna.importance.get_param_importances(make_study(ranges, finished(trials)))
    shares = dict.fromkeys(ranges, 0.0)
    for name, share in found.items():
        shares[name.partition("#")[0]] += float(share)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


class Guess:
    """What is thought of all points of a grid: which is worth a try, from all that were seen.

    The logarithm of the gain over the preset as a parabola over doublings of every knob, with a
    term for each two that hold each other back: Bayes's linear regression, in closed form, where
    the library has no say. It only says what is looked at next; what is claimed was timed.
    """

    def __init__(self, knobs: Sequence[Range]) -> None:
        self.knobs = knobs
        numeric = [len(knob.choices) > 2 for knob in knobs]
        self.bent = [at for at, many in enumerate(numeric) if many]
        pairs = math.comb(len(knobs), 2)
        self.mean = np.array([0.0] * len(knobs) + [BEND] * len(self.bent) + [0.0] * pairs)
        slopes = [SLOPE if many else SWITCH for many in numeric]
        spread = np.array(slopes + [BEND_SPREAD] * len(self.bent) + [CROSS] * pairs)
        self.precision: Floats = np.diag(1 / spread**2)
        self.weighted: Floats = self.precision @ self.mean
        self._solve()

    def learn(self, point: Point, gain: float, variance: float) -> None:
        """Take in the logarithm of a gain over the preset."""
        row, weight = self.features(point), 1 / (variance + MISFIT**2)
        self.precision = self.precision + weight * np.outer(row, row)
        self.weighted = self.weighted + weight * gain * row
        self._solve()

    def gain(self, point: Point) -> tuple[float, float]:
        """What is expected of a point, and how far that may be off."""
        row = self.features(point)
        return float(row @ self.mean), math.sqrt(float(row @ self.spread @ row) + MISFIT**2)

    def improvement(self, point: Point, best: float) -> float:
        """By how much a point is expected to be better than the best, where it is."""
        mean, spread = self.gain(point)
        usual, z = NormalDist(), (mean - best) / spread
        return (mean - best) * usual.cdf(z) + spread * usual.pdf(z)

    def features(self, point: Point) -> Floats:
        """A point in numbers: doublings, their squares, their products."""
        x = [turned(knob, point) for knob in self.knobs]
        squares = [x[at] * x[at] for at in self.bent]
        return np.array(x + squares + [a * b for a, b in combinations(x, 2)])

    def _solve(self) -> None:
        self.spread = np.linalg.inv(self.precision).astype(np.float64)
        self.mean = self.spread @ self.weighted


def turned(knob: Range, point: Point) -> float:
    """How far a knob is from where it began: doublings of numbers, places of other values."""
    value, start = point[knob.name], knob.start
    if type(value) is int and type(start) is int and value > 0 and start > 0:
        return math.log2(value / start)
    return float(knob.choices.index(value) - knob.choices.index(start))
