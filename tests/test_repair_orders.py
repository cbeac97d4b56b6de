"""Whether repair orders matter: what is tried, and the test that answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from sparring.sweep.nearest import exchanged

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "repair_orders.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("repair_orders", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_orders_are_different_and_far_apart(bench: ModuleType) -> None:
    orders = bench.far_apart(12)
    assert len(set(orders)) == 12
    assert orders[:2] == [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0)]
    apart = [exchanged(a, b) for at, a in enumerate(orders) for b in orders[:at]]
    assert min(apart) >= 0.2


def test_f_is_that_of_the_sums_of_squares(bench: ModuleType) -> None:
    scores = np.random.default_rng(3).normal(size=(5, 3))
    mean, rows, columns = scores.mean(), scores.mean(1), scores.mean(0)
    total = ((scores - mean) ** 2).sum()
    of_orders, of_seeds = 3 * ((rows - mean) ** 2).sum(), 5 * ((columns - mean) ** 2).sum()
    left = (total - of_orders - of_seeds) / 8
    f, within = bench.f_of(scores)
    assert within == pytest.approx(left)
    assert f == pytest.approx(of_orders / 4 / left)
    shifted, _ = bench.f_of(scores + np.array([10.0, -3.0, 5.0]))
    assert shifted == pytest.approx(f), "a good seed is no good order"


def test_orders_that_differ_are_told_from_orders_that_do_not(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "DEALINGS", 200)
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(24, 12, 3))
    effect = 2 * rng.normal(size=(24, 12, 1))
    nothing = [bench.hold_against(one) for one in noise]
    something = [bench.hold_against(one) for one in noise + effect]
    assert sum(one.chance < 0.05 for one in nothing) <= 5
    assert sum(one.chance < 0.05 for one in something) >= 22
    true = 4 / 5
    covered = [one.share[1] <= true <= one.share[2] for one in something]
    assert sum(covered) >= 20
    assert bench.verdict(something[0]).startswith("orders matter")
    assert bench.verdict(max(nothing, key=lambda one: one.chance)).startswith("no difference")


def test_every_order_is_a_member_and_the_control_is_paid_nothing(bench: ModuleType) -> None:
    given = bench.read_options(["--device", "cpu", "--orders", "3"])
    members = bench.members_of(bench.settings(given, bench.far_apart(3), "runs"))
    assert [member.rewards for member in members] == [("order=0.5",)] * 3 + [("order=0",)]
    assert len({member.set for member in members}) == 3
    assert {member.seed for member in members} == {0}
