"""When a trial is hopeless, held against a slow and obvious way to say it."""

from __future__ import annotations

import random

import numpy as np

from sparring.sweep.trials import DONE, FAILED, FIRST_SHARE, LEAST, PRUNED, Trial, prune_reason

Curve = tuple[tuple[float, float, float], ...]


def is_hopeless(curve: Curve, trials: list[Trial], warm_up: int, by: int) -> bool:
    """Do the same with arrays, step by step."""
    done = [np.array(trial.curve) for trial in trials if trial.state == DONE]
    if len(done) < warm_up or len(done) < 3:
        return False
    here = curve[-1][by]
    if here < FIRST_SHARE * np.median([one[-1, by] for one in done]):
        return False
    there = [np.interp(here, one[:, by], one[:, 2]) for one in done if one[0, by] <= here]
    best = max(point[2] for point in curve)
    return len(there) >= 3 and best < np.median(there)


def a_curve(chance: random.Random, points: int) -> Curve:
    at = sorted(chance.uniform(1, 100) for _ in range(points))
    return tuple((s, 1000 * s + chance.uniform(0, 900), chance.random()) for s in at)


def test_it_is_pruned_as_the_slow_way_says() -> None:
    chance, found = random.Random(3), 0
    for _ in range(600):
        trials = [
            Trial(n, {}, chance.choice([DONE, DONE, PRUNED, FAILED]), 0.5, curve=a_curve(chance, 4))
            for n in range(chance.randrange(9))
        ]
        curve, by = a_curve(chance, chance.randint(1, 4)), chance.randrange(2)
        why = prune_reason(curve, trials, warm_up=3, by=by)
        assert bool(why) == is_hopeless(curve, trials, 3, by)
        found += bool(why)
    assert 30 < found < 570


def test_nothing_is_pruned_before_three_have_ended_or_when_it_is_off() -> None:
    good: Curve = ((10.0, 100.0, 0.9), (20.0, 200.0, 1.0))
    bad: Curve = ((15.0, 150.0, 0.0),)
    trials = [Trial(n, {}, DONE, 1.0, curve=good) for n in range(LEAST)]
    assert prune_reason(bad, trials, warm_up=1)
    assert not prune_reason(bad, trials[:-1], warm_up=1)
    assert not prune_reason(bad, trials, warm_up=0)
    assert not prune_reason(bad, trials, warm_up=4)
    early: Curve = ((1.0, 10.0, 0.0),)
    assert not prune_reason(early, trials, warm_up=1)
