"""Values of actions, targets, losses and gradients against plain float64 programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sparring.learn.losses import (
    best_actions,
    dqn_loss,
    q_values,
    spread_epsilon,
    td_target,
)

ROWS, ACTIONS = 48, 7


def heads(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, ACTIONS)) * 2, rng.normal(size=ROWS)


def masks(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mask = (rng.random((ROWS, ACTIONS)) < 0.5).astype(np.uint8)
    mask[:, 2] = 1
    return mask


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    single = (a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays)
    return [torch.from_numpy(array) for array in single]


def plain_q(policy: np.ndarray, value: float, mask: np.ndarray, dueling: bool) -> np.ndarray:
    """One row, legal actions alone; the others are nan."""
    q = np.where(mask > 0, policy, np.nan)
    return q + value - np.nanmean(q) if dueling and mask.any() else q


@pytest.mark.parametrize("dueling", [True, False])
def test_values_of_actions(dueling: bool) -> None:
    (policy, value), mask = heads(1), masks(2)
    found = q_values(*tensors(policy, value, mask), dueling=dueling).numpy()
    for row in range(ROWS):
        wanted = plain_q(policy[row], value[row], mask[row], dueling)
        legal = mask[row] > 0
        np.testing.assert_allclose(found[row, legal], wanted[legal], atol=1e-5)
        assert np.isneginf(found[row, ~legal]).all()


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
def test_targets(double: bool, dueling: bool) -> None:
    """Paid and discount come from the replay: termination, n-step and other seats are in them."""
    (policy, value), (own, _), mask = heads(3), heads(4), masks(5)
    rng = np.random.default_rng(6)
    paid, discount = rng.normal(size=ROWS), rng.random(ROWS)
    discount[:10] = 0.0  # terminated
    mask[:5] = 0  # nothing is legal behind the end
    discount[10:20] *= -1  # cut while the other seat of a zero-sum game was to move
    named = tensors(policy, value, own if double else policy, mask, paid, discount)
    found = td_target(
        named[0],
        named[1],
        selection_head=named[2],
        mask=named[3],
        reward=named[4],
        discount=named[5],
        dueling=dueling,
    ).numpy()
    assert np.isfinite(found).all()
    for row in range(ROWS):
        follows = 0.0
        if discount[row]:
            q = plain_q(policy[row], value[row], mask[row], dueling)
            by = np.where(mask[row] > 0, own[row] if double else policy[row], -np.inf)
            follows = discount[row] * q[by.argmax()]
        assert found[row] == pytest.approx(paid[row] + follows, abs=1e-5)


def test_an_illegal_action_is_never_the_best() -> None:
    policy, mask = torch.full((3, 4), -5.0), torch.zeros(3, 4, dtype=torch.uint8)
    policy[:, 1] = 100.0
    mask[0, 3] = mask[1, 0] = mask[1, 2] = 1
    assert best_actions(policy, mask).tolist()[:2] == [3, 0]


def plain_loss(
    policy: np.ndarray, value: float, given: dict[str, Any], dueling: bool, huber: float
) -> tuple[float, float]:
    """What a row adds to the loss, and its error."""
    off = plain_q(policy, value, given["mask"], dueling)[given["action"]] - given["target"]
    small = not huber or abs(off) <= huber
    each = 0.5 * off**2 if small else huber * (abs(off) - 0.5 * huber)
    return each * given["weight"] / ROWS, abs(off)


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("huber", [0.0, 1.0, 0.4])
def test_losses_errors_and_gradients(dueling: bool, huber: float) -> None:
    (policy, value), mask = heads(7), masks(8)
    rng = np.random.default_rng(9)
    action = np.array([rng.choice(np.flatnonzero(legal)) for legal in mask], np.int32)
    data = {"mask": mask, "action": action, "target": rng.normal(size=ROWS)}
    data["weight"] = rng.random(ROWS)
    wanted, errors, step = 0.0, np.zeros(ROWS), 1e-6
    by_policy, by_value = np.zeros_like(policy), np.zeros_like(value)
    for row in range(ROWS):
        given = {name: array[row] for name, array in data.items()}
        here, errors[row] = plain_loss(policy[row], value[row], given, dueling, huber)
        wanted += here
        for at in range(ACTIONS):
            near = policy[row] + step * (np.arange(ACTIONS) == at)
            there, _ = plain_loss(near, value[row], given, dueling, huber)
            by_policy[row, at] = (there - here) / step
        there, _ = plain_loss(policy[row], value[row] + step, given, dueling, huber)
        by_value[row] = (there - here) / step
    named = dict(zip(data, tensors(*data.values()), strict=True))
    own = [tensor.requires_grad_() for tensor in tensors(policy, value)]
    loss, error = dqn_loss(*own, **named, dueling=dueling, huber=huber)
    loss.backward()
    found = [own[0].grad, own[1].grad if dueling else torch.zeros(ROWS)]
    assert float(loss.detach()) == pytest.approx(wanted, abs=1e-5)
    np.testing.assert_allclose(error, errors, atol=1e-5)
    np.testing.assert_allclose(found[0], by_policy, atol=1e-5)
    np.testing.assert_allclose(found[1], by_value, atol=1e-5)


def test_illegal_actions_have_no_gradient() -> None:
    (policy, value), mask = heads(7), masks(8)
    action = mask.argmax(1).astype(np.int32)
    head, value_head = tensors(policy, value)
    loss, _ = dqn_loss(
        head.requires_grad_(),
        value_head,
        mask=torch.from_numpy(mask),
        action=torch.from_numpy(action),
        target=torch.zeros(ROWS),
        dueling=True,
        huber=1.0,
    )
    (found,) = torch.autograd.grad(loss, head)
    assert not found[torch.from_numpy(mask) == 0].any()
    np.testing.assert_allclose(found.sum(1), np.zeros(ROWS), atol=1e-7)


def test_every_game_has_an_epsilon() -> None:
    np.testing.assert_allclose(spread_epsilon(0.4, 0.0, 4), [0.4] * 4)
    np.testing.assert_allclose(spread_epsilon(0.4, 7.0, 3), [0.4, 0.4**4.5, 0.4**8], rtol=1e-6)
    np.testing.assert_allclose(spread_epsilon(0.3, 5.0, 1), [0.3])
    assert (spread_epsilon(0.0, 5.0, 3) == 0).all()
    assert (spread_epsilon(1.0, 5.0, 3) == 1).all()
