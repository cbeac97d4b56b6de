"""The fast first layer and sampler against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sparring
from make import Played, played
from sparring.config import NetConfig
from sparring.nets.distribution import entropy_of, log_prob_of, masked_log_probs
from sparring.nets.mlp import Perceptron
from sparring.nets.sampling import ActionSampler


def rows(game: str, count: int = 200) -> Played:
    flags = {"abilities": 1, "history": 1} if game == "skull_king" else None
    return played(game, count, steps=77, flags=flags)


@pytest.mark.parametrize("game", ["skull_king", "tic_tac_toe"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [64, 96, 50, 7])
def test_sparse_first_layer_equals_the_dense_one(game: str, threads: int, width: int) -> None:
    rules, obs, _ = rows(game)
    torch.manual_seed(1)
    sparse = Perceptron(rules, NetConfig(hidden=(width, 16)), threads=threads)
    dense = Perceptron(rules, NetConfig(hidden=(width, 16), sparse=False))
    dense.load_state_dict(sparse.state_dict())
    grads = []
    for net in (sparse, dense):
        heads = net(torch.from_numpy(obs))
        logits, value = heads["policy"], heads["value"]
        (logits.square().sum() + value.square().sum()).backward()
        grads.append((logits, value, net.first.weight.grad, net.first.bias.grad))
    for fast, slow in zip(*grads, strict=True):
        assert fast is not None
        assert slow is not None
        torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("game", ["skull_king", "tic_tac_toe"])
def test_first_layer_widens_like_the_rules(game: str) -> None:
    rules, obs, _ = rows(game)
    net = Perceptron(rules, NetConfig(hidden=(8,), sparse=False))
    wide = net.first.widen(torch.from_numpy(obs))
    order = torch.argsort(net.first._order)
    np.testing.assert_array_equal(wide[:, order].numpy(), rules.widen(obs))


def test_gradients_are_equal_for_any_number_of_threads() -> None:
    rules, obs, _ = rows("skull_king")
    found = []
    for threads in (1, 2, 4):
        torch.manual_seed(1)
        net = Perceptron(rules, NetConfig(hidden=(96, 16)), threads=threads)
        net(torch.from_numpy(obs))["policy"].square().sum().backward()
        assert net.first.weight.grad is not None
        found.append(net.first.weight.grad)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_native_tanh_equals_torchs() -> None:
    rules = sparring.Rules("tic_tac_toe")
    net = Perceptron(rules, NetConfig(hidden=(8,), activation="tanh"), threads=2)
    grid = torch.cat([torch.linspace(-12, 12, 70_003), torch.tensor([0.0, 1e-8, -1e-8, 50, -50])])
    fast, slow = grid.clone().requires_grad_(), grid.clone().requires_grad_()
    out, expected = net.activation(fast), torch.tanh(slow)
    torch.testing.assert_close(out, expected, atol=4e-7, rtol=1e-6)
    out.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(fast.grad, slow.grad, atol=2e-6, rtol=0)
    assert torch.isnan(net.activation(torch.tensor([torch.nan])))


def test_masked_distribution_against_float64() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(100, 20)) * 5
    mask = rng.random((100, 20)) < 0.4
    mask[:, 3] |= ~mask.any(1)
    log_probs = masked_log_probs(torch.tensor(logits), torch.tensor(mask))
    for row in range(100):
        legal = logits[row][mask[row]]
        expected = legal - legal.max() - np.log(np.exp(legal - legal.max()).sum())
        np.testing.assert_allclose(log_probs[row][mask[row]], expected, atol=1e-5)
        entropy = -(np.exp(expected) * expected).sum()
        np.testing.assert_allclose(entropy_of(log_probs[row]), entropy, atol=1e-5)
    assert (log_probs.exp()[~torch.tensor(mask)] == 0).all()


def test_illegal_actions_get_no_gradient() -> None:
    logits = torch.randn(5, 6, requires_grad=True)
    mask = torch.tensor([[1, 1, 0, 0, 1, 0]] * 5)
    log_probs = masked_log_probs(logits, mask)
    chosen = log_prob_of(log_probs, torch.tensor([0, 1, 4, 0, 1]))
    (chosen.sum() + entropy_of(log_probs).sum()).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, [2, 3, 5]] == 0).all()
    assert logits.grad[:, [0, 1, 4]].any()


def test_native_sampling_follows_the_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 10).repeat(20_000, 1)
    mask = np.tile(np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1], np.uint8), (20_000, 1))
    action, log_prob = ActionSampler(5).draw(logits, mask, rollout=0, step=0)
    log_probs = masked_log_probs(logits, torch.from_numpy(mask))
    expected = log_prob_of(log_probs, torch.from_numpy(action))
    np.testing.assert_allclose(log_prob, expected, atol=1e-5)
    share = np.bincount(action, minlength=10) / len(action)
    np.testing.assert_allclose(share, log_probs[0].exp(), atol=0.015)
    assert (share[mask[0] == 0] == 0).all()
    greedy, _ = ActionSampler(5).draw(logits, mask, rollout=0, step=0, greedy=True)
    assert (greedy == int(log_probs[0].argmax())).all()


def test_sampling_is_equal_for_any_batch_split() -> None:
    torch.manual_seed(0)
    logits, mask = torch.randn(64, 9), np.ones((64, 9), np.uint8)
    whole, _ = ActionSampler(7).draw(logits, mask, rollout=2, step=5)
    parts = [
        ActionSampler(7).draw(logits[at], mask[at], rollout=2, step=5, rows=np.arange(64)[at])[0]
        for at in (slice(a, a + 16) for a in range(0, 64, 16))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_a_new_value_unit_changes_no_value() -> None:
    rules, obs, _ = rows("tic_tac_toe")
    net = Perceptron(rules, NetConfig(hidden=(16, 16)))
    with torch.no_grad():
        before = net(torch.from_numpy(obs))["value"] * net.value_scale
        net.rescale_value_head(37.5)
        after = net(torch.from_numpy(obs))["value"] * net.value_scale
    torch.testing.assert_close(before, after)
    assert float(net.value_scale) == 37.5
