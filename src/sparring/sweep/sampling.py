"""Proposes the settings of trials (optuna), and computes the importance of ranges.

A proposal is a function of the trials so far, the seed and the trial's number. Every trial makes a
new study from the log, so that a resumed sweep proposes the same as an uninterrupted one. Running
trials are part of the study, so that samplers avoid them. A failed trial counts as the worst one:
its neighborhood is avoided.
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
from sparring.sweep.parameters import TuneCandidate
from sparring.sweep.space import CHOICE, FLOAT, INT, SearchRange, same
from sparring.sweep.trials import FAILED, RUNNING, Trial, finished

Floats = npt.NDArray[np.float64]
FEW_ORDERS = 24
"""Maximum number of permutations that are choices; longer ones are sorted by keys."""
STARTUP = 10
"""Maximum number of random trials at the start."""
LEAST, MIN_EACH = 8, 2
"""Finished trials before importance is computed: in all, and per range."""
TRIES = 8
"""Attempts to propose settings that were not tried yet."""
SLOPE, BEND, BEND_SPREAD, CROSS, SWITCH = 0.12, -0.03, 0.05, 0.03, 0.25
"""Prior of the gain model per doubling: slope, mean and std of the curvature (returns diminish),
interaction of two parameters; and the effect of a two-valued parameter."""
MISFIT = 0.03
"""Standard deviation of the model error."""


def load_optuna() -> Any:
    """Import optuna, or raise with the command that installs it."""
    try:
        import optuna
    except ImportError:
        raise ConfigError("sparring sweep needs optuna: pip install 'sparring[tune]'") from None
    if importlib.util.find_spec("scipy") is None:  # the Gaussian process would say so late
        raise ConfigError("sparring sweep needs scipy: pip install 'sparring[tune]'")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def distributions_of(ranges: Mapping[str, SearchRange]) -> dict[str, Any]:
    """Return the ranges as optuna's distributions."""
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


def is_line(one: SearchRange) -> bool:
    """Whether choices are ordered: rising numbers, or schedules with rising first values."""
    if one.kind != CHOICE:
        return False
    try:
        firsts = [Schedule.read(choice).values[0] for choice in one.choices]
    except ConfigError:
        return False
    return all(before < after for before, after in pairwise(firsts))


def choices_of(one: SearchRange) -> Sequence[Any]:
    """Return all values of a choice or a short permutation; none of a long one."""
    if one.kind == CHOICE:
        return one.choices
    if math.factorial(len(one.choices)) > FEW_ORDERS:
        return ()
    return [list(order) for order in permutations(one.choices)]


def keys_of(one: SearchRange) -> list[str]:
    return [f"{one.name}#{item}" for item in range(len(one.choices))]


def as_params(ranges: Mapping[str, SearchRange], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings to optuna's parameters: choices by index, long permutations by keys."""
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


def as_settings(ranges: Mapping[str, SearchRange], params: Mapping[str, Any]) -> dict[str, Any]:
    """Invert `as_params`."""
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


def make_study(
    ranges: Mapping[str, SearchRange], trials: Iterable[Trial], sampler: Any = None
) -> Any:
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
    ranges: Mapping[str, SearchRange],
    trials: Sequence[Trial],
    *,
    kind: str,
    seed: int,
    number: int,
    wanted: int = 0,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Propose the settings of trial `number`. The same arguments give the same result.

    trials: finished and running ones. wanted: expected number of trials, 0 if unknown.
    fixed: values that are given.
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


def too_few(trials: Sequence[Trial], ranges: Mapping[str, SearchRange]) -> str:
    """Return why importance cannot be computed, "" if it can."""
    done, wanted = finished(trials), max(LEAST, MIN_EACH * len(ranges))
    if len(done) < wanted:
        return f"too few trials to tell what matters: {len(done)} of at least {wanted}"
    if len({trial.value for trial in done}) < 2:
        return "all trials came out alike, so that nothing tells what matters"
    return ""


def importance(trials: Sequence[Trial], ranges: Mapping[str, SearchRange]) -> dict[str, float]:
    """Return the importance of every range, largest first; {} with too few trials.

    PED-ANOVA (Watanabe et al., 2023). Shares add up to 1; the keys of a permutation count together.
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


class GainModel:
    """Model of the log gain over the preset, which chooses the next candidate to time.

    Bayesian linear regression in closed form, quadratic in the doublings of every parameter, with
    interactions of each two. Reported gains are timed, never predicted.
    """

    def __init__(self, parameters: Sequence[SearchRange]) -> None:
        self.parameters = parameters
        numeric = [len(parameter.choices) > 2 for parameter in parameters]
        self.bent = [at for at, many in enumerate(numeric) if many]
        pairs = math.comb(len(parameters), 2)
        self.mean = np.array([0.0] * len(parameters) + [BEND] * len(self.bent) + [0.0] * pairs)
        slopes = [SLOPE if many else SWITCH for many in numeric]
        spread = np.array(slopes + [BEND_SPREAD] * len(self.bent) + [CROSS] * pairs)
        self.precision: Floats = np.diag(1 / spread**2)
        self.weighted: Floats = self.precision @ self.mean
        self._solve()

    def learn(self, point: TuneCandidate, gain: float, variance: float) -> None:
        """Update with a log gain over the preset."""
        row, weight = self.features(point), 1 / (variance + MISFIT**2)
        self.precision = self.precision + weight * np.outer(row, row)
        self.weighted = self.weighted + weight * gain * row
        self._solve()

    def gain(self, point: TuneCandidate) -> tuple[float, float]:
        """Return mean and standard deviation of a candidate's log gain."""
        row = self.features(point)
        return float(row @ self.mean), math.sqrt(float(row @ self.spread @ row) + MISFIT**2)

    def improvement(self, point: TuneCandidate, best: float) -> float:
        """Return the expected improvement of a candidate over the best."""
        mean, spread = self.gain(point)
        usual, z = NormalDist(), (mean - best) / spread
        return (mean - best) * usual.cdf(z) + spread * usual.pdf(z)

    def features(self, point: TuneCandidate) -> Floats:
        """Return the features of a candidate: doublings, their squares, their products."""
        x = [steps_from_start(parameter, point) for parameter in self.parameters]
        squares = [x[at] * x[at] for at in self.bent]
        return np.array(x + squares + [a * b for a, b in combinations(x, 2)])

    def _solve(self) -> None:
        self.spread = np.linalg.inv(self.precision).astype(np.float64)
        self.mean = self.spread @ self.weighted


def steps_from_start(parameter: SearchRange, point: TuneCandidate) -> float:
    """Return the distance from the start: doublings of numbers, index steps of other values."""
    value, start = point[parameter.name], parameter.start
    if type(value) is int and type(start) is int and value > 0 and start > 0:
        return math.log2(value / start)
    return float(parameter.choices.index(value) - parameter.choices.index(start))
