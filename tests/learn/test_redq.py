"""REDQ: SAC's page with many critics, held against a plain program in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sparring
from learn.test_sac_learner import ACTOR, FIRST, REPLAY, make, some_samples, weights_of
from sparring.config import REDQConfig, SACConfig
from sparring.learn.losses import drawn_critics
from sparring.learn.replay import ReplayBatch
from sparring.learn.sac import SAC

RATE = 1e-3
SMALL: dict[str, Any] = {"critics": 5, "policy_every": 3, "lr": RATE, "critic_lr": RATE}
HOCKEY = ("laser_hockey", "laser_hockey_discrete")


def perceptron(weights: list[Tensor], x: Tensor) -> Tensor:
    for layer in range(0, len(weights), 2):
        x = x @ weights[layer] + weights[layer + 1]
        x = torch.relu(x) if layer < len(weights) - 2 else x
    return x


class Plain:
    """REDQ as in the paper (Chen et al. 2021, algorithm 1), one critic after the other."""

    def __init__(self, sac: SAC) -> None:
        net: Any = sac.net
        layers = [net.first.weight, net.first.bias, net.towers[0][0].weight.t()]
        layers += [net.towers[0][0].bias, net.policy_head.weight.t(), net.policy_head.bias]
        self.actor = [self.leaf(one) for one in layers]
        pieces = sac.critics.named_tensors()
        self.critics = [
            [self.leaf(pieces[name][0, n]) for name in pieces] for n in range(sac.critics.count)
        ]
        self.targets = [[one.detach().clone() for one in critic] for critic in self.critics]
        self.log = self.leaf(sac.temperature.log)
        self.adams = [
            torch.optim.Adam(weights, RATE)
            for weights in (
                self.actor,
                [one for critic in self.critics for one in critic],
                [self.log],
            )
        ]
        self.sac, self.steps = sac, 0

    @staticmethod
    def leaf(tensor: Tensor) -> Tensor:
        return tensor.detach().double().clone().requires_grad_()

    def policy(self, rows: Tensor, mask: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and their log-density, or the log-probabilities of all actions."""
        head = perceptron(self.actor, rows)
        if not self.sac.net.box:
            return torch.log_softmax(head.masked_fill(mask == 0, -torch.inf), -1), torch.zeros(())
        mean, log_std = head.chunk(2, -1)
        action = torch.tanh(mean + log_std.exp() * noise)
        log_prob = torch.distributions.Normal(mean, log_std.exp()).log_prob(
            mean + log_std.exp() * noise
        )
        return action, (log_prob - torch.log(1 - action**2)).sum(-1)

    def value(self, weights: list[Tensor], rows: Tensor, action: Tensor) -> Tensor:
        if self.sac.net.box:
            return perceptron(weights, torch.cat((rows, action), -1))[:, 0]
        return perceptron(weights, rows)

    def step(self, samples: ReplayBatch, noise: Tensor, chosen: Tensor) -> None:
        box, alpha = self.sac.net.box, self.log.detach().exp()
        rows = self.sac.critics.widen(samples.obs).double()
        following = self.sac.critics.widen(samples.next_obs).double()
        reward, discount = samples.reward.double(), samples.discount.double()
        actor, critic, temperature = self.adams
        with torch.no_grad():
            action, log_prob = self.policy(following, samples.next_mask, noise[1].double())
            q = torch.stack([self.value(self.targets[n], following, action) for n in chosen])
            if box:
                future = q.min(0).values - alpha * log_prob
            else:
                finite = action.masked_fill(action.isneginf(), 0.0)
                future = (action.exp() * (q.min(0).values - alpha * finite)).sum(-1)
            target = reward + discount * future
        loss = torch.zeros((), dtype=torch.float64)
        for weights in self.critics:
            mine = self.value(weights, rows, samples.action.double())
            mine = mine if box else mine[torch.arange(len(mine)), samples.action.long()]
            loss = loss + 0.5 * ((mine - target) ** 2).mean()
        critic.zero_grad()
        loss.backward()
        critic.step()
        self.steps += 1
        if self.steps % self.sac.config.policy_every == 0:
            action, log_prob = self.policy(rows, samples.mask, noise[0].double())
            q = torch.stack([self.value(one, rows, action) for one in self.critics]).mean(0)
            if box:
                loss, entropy = (alpha * log_prob - q).mean(), -log_prob.detach()
                wanted: Any = -float(box)
            else:
                probs, finite = action.exp(), action.masked_fill(action.isneginf(), 0.0)
                entropy = -(probs * finite).sum(-1)
                loss = (-alpha * entropy - (probs * q).sum(-1)).mean()
                wanted = self.sac.target_entropy(samples.mask)
            actor.zero_grad()
            loss.backward()
            actor.step()
            temperature.zero_grad()
            (self.log * (entropy.detach() - wanted).mean()).backward()
            temperature.step()
        with torch.no_grad():
            for mine, theirs in zip(self.critics, self.targets, strict=True):
                for one, other in zip(mine, theirs, strict=True):
                    other.lerp_(one, 0.005)


@pytest.mark.parametrize("cpu", ["torch", "float32"])
@pytest.mark.parametrize("game", HOCKEY)
def test_steps_are_those_of_a_plain_program(game: str, cpu: str) -> None:
    sac = make(game, REDQConfig(**SMALL, temperature_lr=RATE), cpu=cpu)
    assert (sac.q_nets is sac.critics) == (cpu == "torch")
    sac.set_hparams(FIRST)
    plain, samples, drawn = Plain(sac), some_samples(sac), set[tuple[int, ...]]()
    for step in range(6):
        chosen = drawn_critics(5, 2, sac.seed, step)
        assert chosen is not None
        drawn.add(tuple(sorted(chosen.tolist())))
        plain.step(samples, sac._noise(), chosen)
        losses, _ = sac.step(samples)
        sac.experience.steps += 1
        assert ("policy_loss" in losses) == (step % 3 == 2)
        pieces = sac.critics.named_tensors()
        targets = sac.critics.named_tensors(sac.critics.target)
        for n in range(5):
            for at, name in enumerate(pieces):
                for ours, theirs in ((pieces, plain.critics), (targets, plain.targets)):
                    near(ours[name][0, n], theirs[n][at])
        net: Any = sac.net
        near(net.first.weight, plain.actor[0])
        near(net.towers[0][0].bias, plain.actor[3])
        near(net.policy_head.weight, plain.actor[4].t())
        near(sac.temperature.log, plain.log)
    assert len(drawn) > 2
    assert float(sac.temperature.log.detach())


def near(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.detach(), theirs.detach().float(), atol=1e-5, rtol=0)


def test_critics_are_drawn_evenly_without_replacement() -> None:
    drawn = [drawn_critics(5, 2, seed, step) for seed in range(2) for step in range(500)]
    counts = np.bincount(torch.stack([one for one in drawn if one is not None]).view(-1))
    assert all(one is not None and len(set(one.tolist())) == 2 for one in drawn)
    np.testing.assert_allclose(counts / 1000, 0.4, atol=0.06)
    assert drawn_critics(5, 5, 1, 1) is None


def test_with_the_settings_of_sac_it_is_sac_to_the_bit() -> None:
    given = {"lr": RATE, "critic_lr": RATE}
    plain = {"critics": 2, "actor_q": "min", "policy_every": 1}
    learners = make(config=SACConfig(**given)), make(config=REDQConfig(**given, **plain))
    for learner in learners:
        learner.iterate(0.0)
        learner.iterate(0.0)
    found = [weights_of(learner) for learner in learners]
    assert all(torch.equal(tensor, found[1][name]) for name, tensor in found[0].items())


@pytest.mark.parametrize("game", HOCKEY)
def test_a_restored_learner_goes_on_bit_for_bit(game: str) -> None:
    replay = replace(REPLAY, ratio=7.0, prioritized=True, n_step=2)
    straight, stopped, resumed = (make(game, REDQConfig(**SMALL), replay) for _ in range(3))
    for _ in range(2):
        straight.iterate(0.0)
        stopped.iterate(0.0)
    assert straight.experience.steps % 3  # between two steps of the policy
    resumed.restore(stopped.snapshot())
    for learner in (straight, resumed):
        (report,) = learner.iterate(0.5)
    assert np.isfinite(report.stats["losses/policy_loss"])
    found = [weights_of(learner) for learner in (straight, resumed)]
    assert all(torch.equal(tensor, found[1][name]) for name, tensor in found[0].items())


def test_more_drawn_critics_than_there_are_is_refused() -> None:
    with pytest.raises(
        sparring.ConfigError, match=r"redq.target_critics 4 is above redq.critics 3"
    ):
        REDQConfig(critics=3, target_critics=4)
    with pytest.raises(sparring.ConfigError, match=r"sac.target_critics 3 is above sac.critics 2"):
        SACConfig(target_critics=3)


def test_checkpoints_with_other_critics_are_refused() -> None:
    two, five = make(config=SACConfig()), make(config=REDQConfig(**SMALL))
    with pytest.raises(sparring.SparringError, match="other critics"):
        five.restore(two.snapshot())
    assert ACTOR.squash
