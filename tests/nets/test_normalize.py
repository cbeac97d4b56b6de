"""Observations are centered and scaled by all that was seen, wherever the network goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from make import played
from sparring.capabilities.refusals import unsupported_reason
from sparring.config import CollectConfig, DQNConfig, NetConfig, PPOConfig, ReplayConfig, SACConfig
from sparring.errors import ConfigError
from sparring.learn.dqn import DQN
from sparring.learn.ppo import PPO
from sparring.learn.pqn import PQN
from sparring.learn.sac import SAC
from sparring.nets.frozen.cpu import GroupedNet
from sparring.nets.layers import CLIP, Normalizer
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.schedule import Schedule
from sparring.store.policies import load_policy, save_policy

NET = NetConfig(hidden=(16, 8), normalize=True)
COLLECT = CollectConfig(games=8, steps=12)
REPLAY = ReplayConfig(capacity=4000, warmup=100, batch=32, ratio=2.0)
OPTIONS: dict[str, Any] = {"seed": 3, "threads": 1}
KINDS = ["ppo", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("pqn", "dqn")), "sac"]
"""One that learns from rollouts and one with a replay in the quick suite."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Networks this small take ten times as long with the threads that a run may have left."""
    torch.set_num_threads(1)


def pool_of(game: str = "leduc_poker", memory: int = 0) -> sparring.Pool:
    return sparring.Pool(game, 8, seed=3, threads=1, memory=memory)


def learner_of(kind: str, net: NetConfig = NET) -> Any:
    quick = Schedule.constant(1e-3)
    if kind == "ppo":
        config = PPOConfig(epochs=2, minibatch=32, lr=quick)
        return PPO(pool_of(), COLLECT, config, net, **OPTIONS)
    if kind == "pqn":
        config = DQNConfig(mode="rollouts", minibatch=32)
        return PQN(pool_of(), COLLECT, config, net, **OPTIONS)
    if kind == "dqn":
        return DQN(pool_of(), COLLECT, DQNConfig(), REPLAY, net, **OPTIONS)
    return SAC(pool_of(), COLLECT, SACConfig(), REPLAY, net, **OPTIONS)


def observed(rows: int = 64, memory: int = 0) -> tuple[sparring.Rules, torch.Tensor]:
    found = played("laser_hockey", rows, steps=30, memory=memory)
    return found.rules, found.tensor


def seen_by(normalizer: Normalizer) -> tuple[np.ndarray, np.ndarray, float]:
    return normalizer.mean.numpy(), normalizer.variance.numpy(), float(normalizer.count)


def test_statistics_are_those_of_all_data_at_once() -> None:
    """In float32, or as sums of squares, the small spread of the second column would be lost."""
    rng = np.random.default_rng(1)
    size = np.array([1.0, 1.0, 1e-3, 0.0])
    rows = (rng.normal(size=(5000, 4)) * size + [0, 1e5, 3, 7]).astype(np.float32)
    normalizer = Normalizer(4)
    for part in np.split(rows, [0, 1, 3, 700, 4999]):
        normalizer.update(torch.from_numpy(part))
    mean, variance, count = seen_by(normalizer)
    assert count == 5000
    np.testing.assert_allclose(mean, rows.mean(0, dtype=np.float64), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(variance, rows.var(0, dtype=np.float64), rtol=1e-9)
    seen = normalizer(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(seen[:, :3].std(0), 1, atol=2e-2)
    assert not seen[:, 3].any()
    far = normalizer(torch.tensor([[-1e9, 1e9, 3.0, 7.0]]))
    assert far.tolist()[0][:2] == [-CLIP, CLIP]


@pytest.mark.parametrize("memory", [0, 16])
def test_the_network_sees_normalized_observations_and_plain_memory(memory: int) -> None:
    rules, obs = observed(memory=memory)
    if memory:
        obs[:, rules.obs_bytes :] = torch.full((len(obs), 4), 1e3).view(torch.uint8)
    net = make_net(rules, NET, memory=memory)
    net.update_normalizer(obs[:50])
    net.update_normalizer(obs[50:])
    numbers = rules.widen(obs.numpy()[:, : rules.obs_bytes]).astype(np.float64)
    spread = np.sqrt(numbers.var(0) + 1e-8)
    seen = np.clip((numbers - numbers.mean(0)) / spread, -CLIP, CLIP)
    if memory:
        seen = np.concatenate([seen, np.full((len(obs), 4), 1e3)], 1)
    state = {name: value.double().numpy() for name, value in net.state_dict().items()}
    hidden = np.maximum(seen @ state["first.weight"] + state["first.bias"], 0)
    hidden = np.maximum(hidden @ state["towers.0.0.weight"].T + state["towers.0.0.bias"], 0)
    wanted = hidden @ state["policy_head.weight"].T + state["policy_head.bias"]
    with torch.no_grad():
        said = net(obs)["policy"].numpy()
    means = slice(rules.box)  # one spread is for all rows
    np.testing.assert_allclose(said[:, means], wanted[:, means], rtol=1e-4, atol=1e-4)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_counts_every_row_of_its_own_once(kind: str) -> None:
    learner, rows = learner_of(kind), []
    ask = learner.collector.actors[0]

    class Noting:
        def act(self, obs: Any, mask: Any, keys: Any) -> Any:
            rows.append(learner.rules.widen(obs[:, : learner.rules.obs_bytes]))
            return ask.act(obs, mask, keys)

    learner.collector.actors[0] = Noting()
    for _ in range(3):
        learner.iterate(0.0)
    numbers = np.concatenate(rows).astype(np.float64)
    _, order, _ = learner.net.inputs.byte_ranges()
    mean, variance, count = seen_by(learner.net.normalizer)
    assert count == learner.collector.decisions == len(numbers)
    np.testing.assert_allclose(mean, numbers.mean(0)[order], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, numbers.var(0)[order], rtol=1e-9, atol=1e-12)
    if isinstance(learner, DQN):
        assert learner.target.normalizer is learner.net.normalizer
    if isinstance(learner, SAC):
        obs = torch.from_numpy(learner.collector.rollout.obs[-5:])
        wanted = learner.net.normalizer(learner.net.first.widen(obs))
        assert torch.equal(learner.critics.widen(obs), wanted)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_learner_goes_on_bit_for_bit(kind: str) -> None:
    first, second = learner_of(kind), learner_of(kind)
    for _ in range(2):
        first.iterate(0.0)
    second.restore(first.snapshot())
    for learner in (first, second):
        learner.iterate(0.0)
    ours, theirs = first.net.state_dict(), second.net.state_dict()
    assert float(ours["first.normalizer.count"]) == first.collector.decisions
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    if isinstance(first, DQN | SAC):
        assert first.experience.steps == second.experience.steps > 0


def test_ratios_begin_at_one() -> None:
    """What was played is learned from as it was seen: the first minibatch has moved nothing."""
    config = PPOConfig(epochs=1, minibatch=10_000, lr=Schedule.constant(1e-3))
    learner = PPO(pool_of(), COLLECT, config, NET, **OPTIONS)
    torch.nn.init.normal_(learner.net.policy_head.weight)  # so that another view would matter
    (report,) = learner.iterate(0.0)
    assert abs(report.stats["losses/approx_kl"]) < 1e-6
    assert float(learner.net.normalizer.count) == report.decisions


def test_saved_policies_and_slots_answer_alike(tmp_path: Path) -> None:
    rules, obs = observed()
    net = make_net(rules, NET)
    net.update_normalizer(obs)
    policy = Policy(rules, net)
    again = load_policy(save_policy(policy, tmp_path / "policy"))
    with torch.no_grad():
        said = net(obs)["policy"]
    rows, nobody = obs.numpy(), np.ones((len(obs), 0), np.uint8)
    assert np.array_equal(
        again.act(rows, nobody, greedy=True), policy.act(rows, nobody, greedy=True)
    )
    slots = GroupedNet(rules, NET, 2)
    slots.load(2, net.state_dict())
    torch.testing.assert_close(slots.forward(obs, np.full(len(obs), 2))["policy"], said)
    assert float(net.cpu_copy().normalizer.count) == len(obs)


def test_what_cannot_do_it_says_so() -> None:
    with pytest.raises(ConfigError, match=r"net\.normalize needs a network that normalizes"):
        make_net(sparring.Rules("shogi"), NetConfig(kind="residual", normalize=True))
    assert unsupported_reason("captured", NET) == "net.normalize has no graphs"
    names = make_net(sparring.Rules("leduc_poker"), NetConfig()).state_dict()
    assert not [name for name in names if "normalizer" in name]
