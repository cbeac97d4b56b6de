"""The unit of values: rollouts that pay nothing leave it alone, rare rewards do not break it."""

from __future__ import annotations

import pytest
import torch

import sparring
from sparring import Pool
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.learner import DivergedError
from sparring.learn.ppo import PPO
from sparring.nets.net import MAX_SCALED_RETURN, next_scale

LONG = CollectConfig(games=4, steps=64)
"""Far shorter than a game of Kuhhandel, which pays at its end alone."""


def make(seed: int = 1) -> PPO:
    pool = Pool(sparring.Rules("kuhhandel"), LONG.games, seed=seed, threads=1)
    return PPO(pool, LONG, PPOConfig(epochs=1, minibatch=512), NetConfig(hidden=(16,)), seed=seed)


def paid(ppo: PPO) -> bool:
    transitions = ppo.collector.transitions
    return bool(transitions.paid[transitions.samples()].any())


def test_the_first_reward_of_a_long_game_is_one_unit_and_not_a_hundred() -> None:
    ppo = make()
    losses, units, pays = [], [], []
    while sum(pays) < 3:
        (report,) = ppo.iterate(0.0)
        losses.append(report.stats["losses/value_loss"])
        units.append(report.stats["learning/value_scale"])
        pays.append(paid(ppo))
    first = pays.index(True)
    assert first > 5
    assert units[:first] == [1.0] * first
    # It is the size of the returns at once: values begin near 0, so their error is about 1.
    assert losses[first] == pytest.approx(1.0, abs=0.1)
    assert max(losses) < MAX_SCALED_RETURN**2 * 1.2
    for before, after, paying in zip(units, units[1:], pays[1:], strict=False):
        assert paying or after == before


def test_a_run_knows_after_its_resumption_whether_it_was_paid() -> None:
    one = make()
    for _ in range(2):
        one.iterate(0.0)
    again = make()
    again.restore(one.snapshot())
    assert not again.learners[""].has_value_scale
    for _ in range(16):
        reports = [ppo.iterate(0.0)[0] for ppo in (one, again)]
    assert one.learners[""].has_value_scale
    assert reports[0].stats == reports[1].stats
    third = make()
    third.restore(one.snapshot())
    assert third.learners[""].has_value_scale


def test_the_unit_follows_slowly_downwards_and_at_once_upwards() -> None:
    assert next_scale(1.0, 0.5) == pytest.approx(0.95)
    assert next_scale(1.0, 2.0) == pytest.approx(1.1)
    assert next_scale(1.0, 100.0) == pytest.approx(100.0 / MAX_SCALED_RETURN)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_values_that_are_not_finite_leave_the_unit_alone() -> None:
    pool = Pool(sparring.Rules("tic_tac_toe"), 8, seed=1, threads=1)
    collect = CollectConfig(games=8, steps=16)
    ppo = PPO(pool, collect, PPOConfig(minibatch=512), NetConfig(hidden=(16,)), seed=1)
    ppo.iterate(0.0)
    unit = float(ppo.net.value_scale)
    with torch.no_grad():
        ppo.net.value_head.bias.fill_(torch.inf)
    with pytest.raises(DivergedError, match="with a learning rate of"):
        ppo.iterate(0.0)
    assert float(ppo.net.value_scale) == unit
    assert bool(ppo.net.value_head.weight.isfinite().all())
