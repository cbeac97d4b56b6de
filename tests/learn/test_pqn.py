"""PQN: lambda-returns against a plain program, exploration, exact resume."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learn.q_helpers import RANDOM, links_of, make_pqn, score_against_random, tables, walks
from sparring.config import DQNConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.pqn import PQN
from sparring.schedule import Moment
from sparring.training.planning.plan import resolve


def play(pqn: PQN) -> None:
    """A rollout with values that are not all 0."""
    torch.manual_seed(5)
    torch.nn.init.normal_(pqn.net.policy_head.weight, std=0.5)
    torch.nn.init.normal_(pqn.net.value_head.weight, std=0.5)
    pqn.hparams_at(Moment(0, 0.0))
    pqn.collector.collect(0)


def best_of(pqn: PQN, obs: np.ndarray, mask: np.ndarray) -> float:
    """What the best legal action of one row is worth, in float64."""
    heads = pqn.net(torch.from_numpy(obs[None]))
    q = heads["policy"].detach().double().numpy()[0][mask > 0]
    value = float(heads["value"].detach()) - q.mean() if pqn.config.dueling else 0.0
    return float(q.max() + value)


@pytest.mark.parametrize("dueling", [True, False])
def test_lambda_returns_over_the_turns_of_the_other_seat(dueling: bool) -> None:
    pqn = make_pqn(tables(6), steps=24, gamma=0.9, q_lambda=0.7, epsilon=0.5, dueling=dueling)
    play(pqn)
    rollout = pqn.collector.rollout
    hparams = pqn.hparams_at(Moment(0, 0.0))
    samples, returns = pqn.lambda_returns(hparams)
    links, wanted = links_of(pqn.collector), {}
    for place in sorted(links, reverse=True):
        paid, after = links[place]
        wanted[place] = paid
        if after is not None:
            follows = best_of(pqn, rollout.obs[after], rollout.mask[after])
            if after in wanted:
                follows = 0.3 * follows + 0.7 * wanted[after]
            wanted[place] += 0.9 * follows
    assert len(samples) > 80
    assert sorted(samples) == sorted(wanted)
    expected = [wanted[place] for place in samples]
    np.testing.assert_allclose(returns, expected, atol=1e-5)


def test_a_cut_game_goes_on_in_the_return() -> None:
    pqn = make_pqn(walks(2, limit=4), steps=8, gamma=0.5, q_lambda=1.0)
    play(pqn)
    samples, returns = pqn.lambda_returns(pqn.hparams_at(Moment(0, 0.0)))
    obs = pqn.collector.rollout.obs[samples]
    made = obs[:, :4].copy().view(np.float32)[:, 0]
    last = obs[0].copy()
    last[:4] = np.array([4.0], np.float32).view(np.uint8)
    after = best_of(pqn, last, np.ones(3))
    left = 4 - made  # steps until the cut, each pays 1
    wanted = sum(0.5**k * (k < left) for k in range(4)) + 0.5**left * after
    np.testing.assert_allclose(returns, wanted, atol=1e-5)


def test_a_restored_learner_goes_on_to_the_bit() -> None:
    net = NetConfig(hidden=(16, 16), norm=True)
    pqn, other = (make_pqn(tables(8, RANDOM, seed=s), net=net, minibatch=32) for s in (1, 9))
    for progress in (0.0, 0.1):
        pqn.iterate(progress)
    other.restore(pqn.snapshot())
    for progress in (0.2, 0.3, 0.4):
        (mine,), (theirs,) = pqn.iterate(progress), other.iterate(progress)
        assert mine.stats == theirs.stats
    for name, tensor in pqn.net.state_dict().items():
        assert torch.equal(tensor, other.net.state_dict()[name])
    assert pqn.snapshot().meta["by_value"] is True


def test_rehearsing_changes_nothing() -> None:
    pqn, other = (make_pqn(tables(8, RANDOM)) for _ in range(2))
    for learner in (pqn, other):
        learner.iterate(0.0)
    other.dry_run()
    (mine,), (theirs,) = pqn.iterate(0.5), other.iterate(0.5)
    assert mine.stats == theirs.stats


def test_every_game_has_its_epsilon_and_policies_have_none() -> None:
    pqn = make_pqn(tables(16), steps=128, epsilon=0.5, epsilon_spread=6.0)
    pqn.iterate(0.0)
    pqn.hparams_at(Moment(0, 0.0))
    pqn.collector.collect(1)
    rollout, first = pqn.collector.rollout, pqn.collector.transitions.max_pending
    head = pqn.net(torch.from_numpy(rollout.obs[first:]))["policy"].detach().numpy()
    mask = rollout.mask[first:]
    best = np.where(mask > 0, head, -np.inf).argmax(1)
    others = (rollout.action[first:] != best).reshape(-1, 16)
    expected = ((1 - 1 / mask.sum(1)).reshape(-1, 16)) * 0.5 ** (1 + 6 * np.arange(16) / 15)
    for half in (slice(0, 8), slice(8, 16)):
        assert others[:, half].mean() == pytest.approx(expected[:, half].mean(), abs=0.03)
    policy, batch = pqn.policy(), pqn.pool.batch()
    drawn = [policy.act(batch.obs, batch.mask, greedy=False, step=step) for step in range(8)]
    assert all((actions == drawn[0]).all() for actions in drawn)


def test_continuous_actions_are_refused_in_one_line() -> None:
    config = TrainConfig(game="duel", algo="dqn", dqn=DQNConfig(mode="rollouts"))
    said = r"^duel needs a learner of continuous actions, and dqn\.mode rollouts is not one; use"
    with pytest.raises(ConfigError, match=said):
        resolve([config])


@pytest.mark.slow
def test_it_learns_to_beat_random_play() -> None:
    pqn = make_pqn(
        tables(64, RANDOM),
        lr=2e-3,
        gamma=1.0,
        epsilon="0%:1.0,60%:0.1",
        minibatch=128,
        net=NetConfig(hidden=(32, 32), norm=True),
    )
    before = score_against_random(pqn.policy())
    for update in range(30):
        pqn.iterate(update / 30)
    assert score_against_random(pqn.policy()) > max(0.85, before)
