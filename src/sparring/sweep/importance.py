"""How much each range has to do with what came out: PED-ANOVA (Watanabe et al., 2023)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from sparring.sweep.sampling import load_optuna, make_study
from sparring.sweep.space import Range
from sparring.sweep.trials import DONE, Trial

LEAST, LEAST_EACH = 8, 2
"""Trials that have to have gone to their end before anything is said: in all, and by range."""


def too_few(trials: Sequence[Trial], ranges: Mapping[str, Range]) -> str:
    """Say that there are too few trials to tell what matters, "" if there are enough."""
    done, wanted = finished(trials), max(LEAST, LEAST_EACH * len(ranges))
    if len(done) < wanted:
        return f"too few trials to tell what matters: {len(done)} of at least {wanted}"
    if len({trial.value for trial in done}) < 2:
        return "all trials came out alike, so that nothing tells what matters"
    return ""


def finished(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that went to their end."""
    return [trial for trial in trials if trial.state == DONE and trial.value is not None]


def importance(trials: Sequence[Trial], ranges: Mapping[str, Range]) -> dict[str, float]:
    """The share of every range in what tells good trials from others, the largest first.

    {} where there are too few trials. Shares add up to 1. The keys of an order count together.
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
