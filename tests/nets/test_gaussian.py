"""Continuous actions: their distribution, its native sampler, and policies that use them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import Normal

import sparring
from sparring import Lineup, Pool
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.ppo import PPO
from sparring.nets.distribution import (
    INITIAL_LOG_STD,
    SQUASHED_BOUND,
    bounded_log_prob,
    gaussian_entropy,
    gaussian_log_prob,
)
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.nets.sampling import LOG_STD, ActionSampler, squash_actions
from sparring.schedule import Schedule
from sparring.store.policies import load_policy, save_policy

NETS = {
    "shared": NetConfig(hidden=(32,)),
    "predicted": NetConfig(hidden=(32,), std="predicted"),
    "squashed": NetConfig(hidden=(32,), squash=True),
}


def random_head(rows: int = 1000, numbers: int = 3) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(rows, 2 * numbers)


def test_density_and_entropy_are_those_of_torchs_normal() -> None:
    head = random_head()
    mean, log_std = head.double().chunk(2, dim=1)
    normal = Normal(mean, log_std.clamp(*LOG_STD).exp())
    action = normal.sample()
    mine = gaussian_log_prob(head, action.float()).double()
    torch.testing.assert_close(mine, normal.log_prob(action).sum(1), rtol=1e-4, atol=1e-4)
    mine = gaussian_entropy(head).double()
    torch.testing.assert_close(mine, normal.entropy().sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("squash", [False, True])
def test_bounded_likelihood_is_that_of_what_the_game_gets(squash: bool) -> None:
    """Density between the bounds, and at a bound the share of samples that end there."""
    mean, std, edge = 0.7, 0.6, math.atanh(SQUASHED_BOUND) if squash else 1.0
    head = torch.tensor([[mean, math.log(std)]], requires_grad=True)
    normal = Normal(torch.tensor(mean, dtype=torch.float64), std)
    for action in (-1.0, -0.3, 0.0, 0.8, 1.0):
        found = bounded_log_prob(head, torch.tensor([[action]]), squash=squash)
        if abs(action) == 1:
            slow = float(normal.cdf(torch.tensor(-edge if action < 0 else 2 * mean - edge)).log())
        else:
            sample = math.atanh(action) if squash else action
            slow = float(normal.log_prob(torch.tensor(sample)))
            slow -= math.log(1 - action**2) if squash else 0.0
        assert float(found.detach()) == pytest.approx(slow, rel=1e-5, abs=1e-5)
    inside = torch.linspace(-1, 1, 20_001)[1:-1, None]
    inside = inside[inside.abs() < (SQUASHED_BOUND if squash else 1.0)][:, None]
    ends = torch.tensor([[-1.0], [1.0]])
    mass = bounded_log_prob(head, inside, squash=squash).exp().sum() * 1e-4
    mass += bounded_log_prob(head, ends, squash=squash).exp().sum()
    assert float(mass.detach()) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("squash", [False, True])
def test_bounded_likelihood_has_the_gradient_of_finite_differences(squash: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    head = torch.randn(6, 4, generator=generator)
    head[5] = torch.tensor([40.0, -40.0, -3.0, -3.0])  # far beyond the bounds
    action = torch.rand(6, 2, generator=generator) * 2 - 1
    action[1], action[2, 0], action[5] = torch.tensor([1.0, -1.0]), 1.0, torch.tensor([-1.0, 1.0])
    leaf = head.clone().requires_grad_()
    bounded_log_prob(leaf, action, squash=squash).sum().backward()
    assert leaf.grad is not None
    step = 1e-2
    for at in range(head.shape[1]):
        moved = torch.zeros(4)
        moved[at] = step
        ahead, behind = (
            bounded_log_prob(head + sign * moved, action, squash=squash) for sign in (1, -1)
        )
        slope = (ahead - behind) / (2 * step)
        torch.testing.assert_close(leaf.grad[:, at], slope, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("numbers", [1, 3, 4])
def test_native_draws_are_normal(numbers: int) -> None:
    head = random_head(1, numbers).repeat(40_000, 1)
    mask = np.zeros((40_000, 0), np.uint8)
    action, log_prob = ActionSampler(5).draw(head, mask, rollout=2, step=3)
    assert action.shape == (40_000, numbers)
    mean, log_std = head[0].numpy()[:numbers], head[0].numpy()[numbers:].clip(*LOG_STD)
    units = (action - mean) / np.exp(log_std)
    assert np.abs(units.mean(0)).max() < 0.03
    assert np.abs(units.var(0) - 1).max() < 0.05
    assert np.abs((units**4).mean(0) - 3).max() < 0.3
    correlation = np.corrcoef(units.T) if numbers > 1 else np.eye(1)
    assert np.abs(correlation - np.eye(numbers)).max() < 0.03
    density = gaussian_log_prob(head, torch.from_numpy(action)).numpy()
    np.testing.assert_allclose(log_prob, density, atol=1e-4)
    greedy, _ = ActionSampler(5).draw(head, mask, rollout=2, step=3, greedy=True)
    np.testing.assert_array_equal(greedy, np.tile(mean, (40_000, 1)))


def test_draws_are_equal_for_any_batch_split_and_new_for_every_step() -> None:
    head, mask = random_head(64), np.zeros((64, 0), np.uint8)
    whole, _ = ActionSampler(7).draw(head, mask, rollout=2, step=5)
    parts = [
        ActionSampler(7).draw(head[at], mask[at], rollout=2, step=5, rows=np.arange(64)[at])[0]
        for at in (slice(a, a + 16) for a in range(0, 64, 16))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    steps = [ActionSampler(7).draw(head * 0, mask, rollout=2, step=step)[0] for step in range(6)]
    assert len(np.unique(np.concatenate(steps).round(5))) > 1100  # nothing is drawn twice


def test_a_shared_spread_is_the_same_everywhere_and_learned_by_its_bias_alone() -> None:
    rules = sparring.Rules("duel")
    for name, net in NETS.items():
        module = Perceptron(rules, net)
        torch.nn.init.normal_(module.policy_head.weight)
        obs = Pool(rules, 64, seed=1).reset().obs
        obs[:] = np.random.default_rng(0).integers(0, 60, obs.shape)
        head = module(torch.from_numpy(obs))["policy"]
        head.square().sum().backward()
        assert module.policy_head.weight.grad is not None
        alike = name != "predicted"
        assert bool((head[:, 2:] == head[0, 2:]).all()) == alike
        assert bool((module.policy_head.weight.grad[2:] == 0).all()) == alike
        if alike:
            assert torch.allclose(head[:, 2:], torch.tensor(INITIAL_LOG_STD))


def test_squashed_actions_are_tanh_of_what_was_drawn() -> None:
    drawn = np.array([[-3.0, 0.2]], np.float32)
    np.testing.assert_array_equal(squash_actions(drawn, squash=True), np.tanh(drawn))
    assert squash_actions(drawn, squash=False) is drawn  # the game cuts it off


@pytest.mark.parametrize("net", NETS)
def test_a_policy_acts_within_the_bounds_and_survives_its_folder(net: str, tmp_path: Path) -> None:
    rules = sparring.Rules("duel")
    module = Perceptron(rules, NETS[net])
    torch.nn.init.normal_(module.policy_head.bias, std=2)
    policy = Policy(rules, module)
    batch = Pool(rules, 32, seed=1).reset()
    action = policy.act(batch.obs, batch.mask, seed=4)
    assert action.shape == (64, 2)
    assert action.dtype == np.float32
    assert np.abs(action).max() <= 1
    mean, spread = policy.gaussian(batch.obs)
    greedy = policy.act(batch.obs, batch.mask, greedy=True)
    wanted = np.tanh(mean) if net == "squashed" else mean.clip(-1, 1)
    np.testing.assert_allclose(greedy, wanted, atol=1e-6)
    assert (spread > 0).all()
    with pytest.raises(ConfigError, match="continuous"):
        policy.probabilities(batch.obs, batch.mask)
    save_policy(policy, tmp_path / "saved")
    again = load_policy(tmp_path / "saved")
    np.testing.assert_array_equal(again.act(batch.obs, batch.mask, greedy=True), greedy)
    state = sparring.new_state("duel", seed=1)
    assert policy.action(state, row=1).shape == (2,)


def test_stored_log_probs_are_those_of_the_network() -> None:
    pool = Pool("duel", 16, seed=1, threads=1)
    ppo = PPO(pool, CollectConfig(games=16, steps=24), PPOConfig(), NETS["predicted"], seed=1)
    ppo.collector.collect(0)
    rollout, rows = ppo.collector.rollout, slice(ppo.collector.transitions.max_pending, None)
    heads = ppo.net(torch.from_numpy(rollout.obs[rows]))
    action = torch.from_numpy(rollout.action[rows])
    mine = gaussian_log_prob(heads["policy"], action).detach().numpy()
    np.testing.assert_allclose(rollout.columns["log_prob"][rows], mine, atol=1e-4)
    value = heads["value"].detach().numpy()
    np.testing.assert_allclose(rollout.columns["value"][rows], value, atol=1e-5)


def test_a_cut_game_is_worth_what_the_network_says_to_both_seats() -> None:
    pool = Pool(sparring.Rules("duel", {"limit": 5, "reach": 100}), 8, seed=1, threads=1)
    ppo = PPO(pool, CollectConfig(games=8, steps=10), PPOConfig(), NETS["shared"], seed=1)
    torch.nn.init.normal_(ppo.net.value_head.weight)
    ppo.iterate(0.0)
    cut, value = ppo.collector.rollout.truncated, ppo.collector.rollout.final_value
    assert cut.sum() == 16
    assert np.isfinite(value[cut]).all()
    assert np.isnan(value[~cut]).all()
    assert (value[cut][:, 0] != -value[cut][:, 1]).any()


@pytest.mark.few(2)
@pytest.mark.timeout(120)
@pytest.mark.parametrize("net", NETS)
def test_pushing_is_learned(net: str) -> None:
    """Who pushes harder wins, and guessing the other's push pays besides."""
    pool = Pool("duel", 64, seed=1, threads=1, lineups=[Lineup((0, "pusher"))])
    lr, gamma = Schedule.line(3e-3, 3e-4), Schedule.constant(0.95)
    config = PPOConfig(epochs=4, minibatch=512, lr=lr, gamma=gamma)
    ppo = PPO(pool, CollectConfig(games=64, steps=32), config, NETS[net], seed=1)
    scores = [ppo.iterate(update / 40)[0].stats["charts/score"] for update in range(40)]
    assert np.mean(scores[-5:]) > np.mean(scores[:3]) + 0.3
