"""SAC's mathematics against float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from sparring.config import SACConfig
from sparring.learn.losses import (
    actor_loss,
    critic_loss,
    critic_target,
    discrete_actor_loss,
    discrete_critic_target,
    entropy_target,
    gather_q,
    squashed_sample,
    temperature_loss,
)
from sparring.nets.distribution import masked_log_probs

Array = npt.NDArray[np.float64]
ROWS, ACTIONS = 6, 5
# A decision in play, one whose game ended, one that was cut, one that was cut on the other's turn.
DISCOUNT = np.array([0.9, 0.0, 0.9, -0.9, 0.5, 0.0])


def single(*arrays: Array) -> list[Tensor]:
    return [torch.tensor(array, dtype=torch.float32) for array in arrays]


def gradient(of: Any, at: Array, step: float = 1e-6) -> Array:
    """By differences, number for number."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[place] += sign * step
            ends.append(of(moved))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


def plain_sample(head: Array, noise: Array) -> tuple[Array, Array]:
    mean, log_std = np.split(head, 2, axis=-1)
    log_std = np.clip(log_std, -5, 1)
    drawn = mean + np.exp(log_std) * noise
    density = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    return np.tanh(drawn), (density - np.log(1 - np.tanh(drawn) ** 2)).sum(-1)


def plain_probs(logits: Array, mask: npt.NDArray[np.bool_]) -> Array:
    e = np.where(mask, np.exp(logits), 0.0)
    return e / e.sum(-1, keepdims=True)


def plain_log(probs: Array) -> Array:
    return np.log(np.where(probs > 0, probs, 1.0))


def test_actions_and_their_densities_behind_tanh() -> None:
    rng = np.random.default_rng(0)
    head, noise = rng.normal(size=(ROWS, 6)), rng.normal(size=(ROWS, 3))
    head[0, 3:] = (-9, 3, 0)  # spreads beyond their bounds
    given = torch.tensor(head, dtype=torch.float32, requires_grad=True)
    action, log_prob = squashed_sample(given, *single(noise))
    expected_action, expected = plain_sample(head, noise)
    np.testing.assert_allclose(action.detach().numpy(), expected_action, atol=1e-6)
    np.testing.assert_allclose(log_prob.detach().numpy(), expected, atol=1e-4)
    (log_prob.sum() + action.sum()).backward()
    both = gradient(lambda h: sum(part.sum() for part in plain_sample(h, noise)), head)
    np.testing.assert_allclose(given.grad, both, atol=1e-4)


def test_densities_stay_finite_where_tanh_is_one() -> None:
    head = torch.tensor([[30.0, -30.0, 0.0, 0.0]], requires_grad=True)
    action, log_prob = squashed_sample(head, torch.zeros(1, 2))
    assert action.tolist() == [[1.0, -1.0]]
    # log(1 - tanh(30)^2) = 2 log 2 - 60, up to e^-60; the density of the Gaussian's mean besides.
    expected = 2 * (60 - 2 * np.log(2)) - np.log(2 * np.pi)
    assert float(log_prob.detach()) == pytest.approx(expected, abs=1e-3)
    log_prob.sum().backward()
    assert head.grad is not None
    assert torch.isfinite(head.grad).all()


def test_targets_of_ends_cuts_and_other_seats() -> None:
    rng = np.random.default_rng(1)
    paid, log_prob, q = rng.normal(size=ROWS), rng.normal(size=ROWS), rng.normal(size=(2, ROWS))
    expected = np.zeros(ROWS)
    for i, d in enumerate(DISCOUNT):
        if d == 0:
            expected[i] = paid[i]
        elif d > 0:
            expected[i] = paid[i] + d * (q[:, i].min() - 0.3 * log_prob[i])
        else:
            expected[i] = paid[i] + d * q[:, i].max()
    q[0, 1] = np.nan  # behind the end nothing is read
    found = critic_target(*single(paid, DISCOUNT, q, log_prob), torch.tensor(0.3))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_losses_and_gradients_against_plain_float64() -> None:
    rng = np.random.default_rng(2)
    q, target, weight = rng.normal(size=(2, ROWS)), rng.normal(size=ROWS), rng.random(ROWS)

    def plain_critics(q: Array) -> float:
        errors = (weight * (q - target) ** 2).mean(-1)
        return float(0.5 * errors.sum())

    given = torch.tensor(q, dtype=torch.float32, requires_grad=True)
    loss, error = critic_loss(given, *single(target, weight))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(plain_critics(q), abs=1e-6)
    np.testing.assert_allclose(given.grad, gradient(plain_critics, q), atol=1e-5)
    np.testing.assert_allclose(error.numpy(), np.abs(q - target).mean(0), atol=1e-6)

    log_prob = rng.normal(size=ROWS)
    given, density = (t.requires_grad_() for t in single(q, log_prob))
    loss = actor_loss(given, density, torch.tensor(0.3))
    loss.backward()
    assert float(loss.detach()) == pytest.approx((0.3 * log_prob - q.min(0)).mean(), abs=1e-6)
    np.testing.assert_allclose(given.grad, -(q == q.min(0)).astype(float) / ROWS, atol=1e-6)
    np.testing.assert_allclose(density.grad, np.full(ROWS, 0.3 / ROWS), atol=1e-6)

    warmth = torch.tensor(-1.0, requires_grad=True)
    temperature_loss(warmth, -density, -2.0).backward()
    assert warmth.grad is not None
    assert float(warmth.grad) == pytest.approx((-log_prob + 2.0).mean(), abs=1e-6)


def discrete() -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Logits, what critics say, and which actions are legal: in one row a single one."""
    rng = np.random.default_rng(3)
    mask = rng.random((ROWS, ACTIONS)) < 0.6
    mask[:, 0] = True
    mask[4] = np.arange(ACTIONS) == 2
    return rng.normal(size=(ROWS, ACTIONS)), rng.normal(size=(2, ROWS, ACTIONS)), mask


def test_discrete_targets_are_expectations_over_legal_actions() -> None:
    logits, q, mask = discrete()
    paid = np.arange(ROWS) / 3
    probs = plain_probs(logits, mask)
    expected = paid.copy()
    for i, d in enumerate(DISCOUNT):
        cautious = q[:, i].min(0) if d > 0 else q[:, i].max(0)
        entropy = -(probs[i] * plain_log(probs[i])).sum() if d > 0 else 0.0
        expected[i] += d * ((probs[i] * cautious).sum() + 0.3 * entropy)
    mask[1] = False  # behind the end nothing is legal
    log_probs = masked_log_probs(torch.tensor(logits), torch.tensor(mask))
    given = single(paid, DISCOUNT, q)
    found = discrete_critic_target(*given, log_probs, torch.tensor(0.3))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_illegal_actions_add_nothing_to_value_entropy_and_gradient() -> None:
    logits, q, mask = discrete()

    def plain(logits: Array) -> float:
        probs = plain_probs(logits, mask)
        return float((probs * (0.3 * plain_log(probs) - q.min(0))).sum(-1).mean())

    given = torch.tensor(logits, dtype=torch.float32, requires_grad=True)
    log_probs = masked_log_probs(given, torch.tensor(mask))
    loss, entropy = discrete_actor_loss(*single(q), log_probs, torch.tensor(0.3))
    loss.backward()
    assert given.grad is not None
    assert float(loss.detach()) == pytest.approx(plain(logits), abs=1e-6)
    np.testing.assert_allclose(given.grad, gradient(plain, logits), atol=1e-6)
    assert (log_probs.detach().exp().numpy()[~mask] == 0).all()
    assert (given.grad.numpy()[~mask] == 0).all()
    # What critics say of illegal actions changes nothing, to the bit.
    wild = np.where(mask, q, 1e30)
    again, _ = discrete_actor_loss(*single(wild), log_probs, torch.tensor(0.3))
    assert again == loss
    assert float(entropy[4].detach()) == 0.0


def test_only_what_was_taken_moves_the_critics() -> None:
    _, q, _ = discrete()
    given = torch.tensor(q, dtype=torch.float32, requires_grad=True)
    action = torch.tensor([0, 1, 2, 3, 2, 4], dtype=torch.int32)
    taken = gather_q(given, action)
    np.testing.assert_allclose(taken.detach(), q[:, np.arange(ROWS), action], atol=1e-6)
    taken.sum().backward()
    assert given.grad is not None
    assert given.grad.sum(-1).eq(1).all()
    taken_alone = torch.nn.functional.one_hot(action.long(), ACTIONS).float()
    assert torch.equal(given.grad, taken_alone.expand(2, -1, -1))
    both = torch.stack([given, given + 1])  # members in front
    many = gather_q(both, torch.stack([action, action]))
    torch.testing.assert_close(many, torch.stack([taken, taken + 1]))


def test_entropy_aims_at_a_share_of_what_legal_actions_allow() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    found = entropy_target(mask, SACConfig(target_entropy_share=0.5))
    np.testing.assert_allclose(found, [0.5 * np.log(4), 0.5 * np.log(2), 0, 0], atol=1e-6)
    fixed = entropy_target(mask, SACConfig(target_entropy=1.0))
    np.testing.assert_allclose(fixed, [1.0, np.log(2), 0, 0], atol=1e-6)


def test_members_together_are_members_one_by_one() -> None:
    rng = np.random.default_rng(4)
    q, paid = rng.normal(size=(3, 2, ROWS)), rng.normal(size=(3, ROWS))
    discount, log_prob = np.stack([DISCOUNT] * 3), rng.normal(size=(3, ROWS))
    warmth = torch.tensor([[0.1], [0.2], [0.3]])
    together = single(paid, discount, q, log_prob)
    target = critic_target(*together, warmth)
    loss, error = critic_loss(together[2], target, torch.ones(3, ROWS))
    policy = actor_loss(together[2], together[3], warmth)
    for member in range(3):
        alone = [t[member] for t in together]
        torch.testing.assert_close(critic_target(*alone, warmth[member, 0]), target[member])
        one, errors = critic_loss(alone[2], target[member], torch.ones(ROWS))
        torch.testing.assert_close(one, loss[member])
        torch.testing.assert_close(errors, error[member])
        torch.testing.assert_close(
            actor_loss(alone[2], alone[3], warmth[member, 0]), policy[member]
        )
