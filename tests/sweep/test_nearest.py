"""A warm start comes from the trial that is really the nearest, if its weights fit."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from sparring.sweep.space import distance, kendall_distance, nearest_trained, read_ranges
from sparring.sweep.trials import DONE, FAILED, PRUNED, RUNNING, Trial

RANGES = read_ranges(
    {
        "ppo.lr": {"low": 1e-4, "high": 1e-2, "log": True},
        "ppo.clip": {"low": 0.1, "high": 0.3},
        "ppo.epochs": {"low": 1, "high": 5},
        "ppo.minibatch": [512, 1024, 4096],
        "net.hidden": [[32], [64, 64]],
        "set.order": {"permutation": [0, 1, 2, 3, 4]},
    },
    "test",
)


def drawn(rng: random.Random) -> dict[str, Any]:
    order = [0, 1, 2, 3, 4]
    rng.shuffle(order)
    return {
        "ppo.lr": 10 ** rng.uniform(-4, -2),
        "ppo.clip": rng.uniform(0.1, 0.3),
        "ppo.epochs": rng.randint(1, 5),
        "ppo.minibatch": rng.choice([512, 1024, 4096]),
        "net.hidden": rng.choice([[32], [64, 64]]),
        "set.order": order,
    }


def tau(one: list[Any], two: list[Any]) -> float:
    """Kendall's, as it is defined: pairs in the same order less those in the other, of all."""
    signs = [
        np.sign(one.index(a) - one.index(b)) * np.sign(two.index(a) - two.index(b))
        for a in one
        for b in one
        if a != b
    ]
    return float(np.mean(signs))


def written_out(one: dict[str, Any], two: dict[str, Any]) -> float:
    """The distance, term by term; Kendall's tau is 1 for the same order and -1 for its reverse."""
    terms = [
        (math.log10(one["ppo.lr"]) - math.log10(two["ppo.lr"])) / 2,
        (one["ppo.clip"] - two["ppo.clip"]) / 0.2,
        (one["ppo.epochs"] - two["ppo.epochs"]) / 4,
        0.0 if one["ppo.minibatch"] == two["ppo.minibatch"] else 1.0,
        0.0 if one["net.hidden"] == two["net.hidden"] else 1.0,
        (1 - tau(one["set.order"], two["set.order"])) / 2,
    ]
    return float(np.sqrt(np.square(terms).sum()))


def test_the_nearest_is_that_of_brute_force() -> None:
    rng = random.Random(4)
    for _ in range(40):
        trials = [
            Trial(n, drawn(rng), rng.choice([DONE, DONE, PRUNED]), 0.5, run=f"r{n}")
            for n in range(25)
        ]
        wanted = drawn(rng)
        may = [
            t
            for t in trials
            if t.state == DONE and t.settings["net.hidden"] == wanted["net.hidden"]
        ]
        found = nearest_trained(wanted, trials, RANGES)
        expected = min(may, key=lambda t: written_out(wanted, dict(t.settings)), default=None)
        assert found is expected
        if found is not None:
            far = distance(wanted, found.settings, RANGES)
            assert math.isclose(far, written_out(wanted, dict(found.settings)), abs_tol=1e-9)


def test_orders_are_apart_by_exchanged_pairs() -> None:
    items = ["a", "b", "c", "d"]
    for order in permutations(items):
        assert math.isclose(kendall_distance(items, order), (1 - tau(items, list(order))) / 2)


def test_only_what_was_trained_with_weights_that_fit_is_taken() -> None:
    settings = drawn(random.Random(1))
    there = Trial(0, settings, DONE, 0.5, run="r0")
    other = {**settings, "net.hidden": [32] if settings["net.hidden"] != [32] else [64, 64]}
    unfit = [
        replace(there, state=PRUNED),
        replace(there, state=FAILED),
        replace(there, state=RUNNING),
        replace(there, run=""),
        replace(there, settings=other),
    ]
    assert nearest_trained(settings, unfit, RANGES) is None
    assert nearest_trained(settings, [], RANGES) is None
    assert nearest_trained(settings, [*unfit, there], RANGES) is there


def test_of_two_at_the_same_place_the_better_one_is_taken() -> None:
    settings = drawn(random.Random(1))
    trials = [Trial(n, settings, DONE, value, run="r") for n, value in enumerate((0.4, 0.6, 0.6))]
    found = nearest_trained(settings, [*trials, Trial(3, settings, DONE, None, run="r")], RANGES)
    assert found is trials[1]
