"""Critics against NumPy in float64: one batched pass, members, norms, targets that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import sparring
from sparring import _native
from sparring.nets.critics import Critics, Widen
from sparring.nets.inputs import Inputs
from sparring.nets.make import make_net
from sparring.nets.run.native_critics import (
    NativeCritics,
    native_critics_unsupported_reason,
    widened_runs,
)

ROWS = 5
SEEN = ("hand", "trick", "seat")


def rows_of(game: str, count: int = ROWS) -> tuple[Inputs, torch.Tensor]:
    rules = sparring.Rules(game)
    pool = sparring.Pool(rules, count, seed=1, threads=1)
    pool.reset()
    return Inputs(rules), torch.from_numpy(pool.batch().obs[:count].copy())


def plain(critics: Critics, x: npt.NDArray[Any], member: int, which: int) -> npt.NDArray[Any]:
    """One critic of one member, a layer at a time, in float64."""
    pieces = {n: p[member, which].double().numpy() for n, p in critics.named_tensors().items()}
    layers = len(critics.widths) - 1
    for layer in range(layers):
        x = x @ pieces[f"{layer}.weight"] + pieces[f"{layer}.bias"]
        if layer == layers - 1:
            break
        if critics.norm:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
            x = x * pieces[f"{layer}.gain"] + pieces[f"{layer}.shift"]
        x = np.maximum(x, 0)
    return x


def stirred(critics: Critics) -> Critics:
    """Norms that differ from those that everything begins with."""
    with torch.no_grad():
        critics.flat += 0.1 * torch.randn_like(critics.flat)
    return critics


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("game", ["laser_hockey", "skull_king"])
def test_both_critics_in_one_pass_are_two_plain_networks(game: str, norm: bool) -> None:
    torch.manual_seed(0)
    inputs, rows = rows_of(game)
    critics = stirred(Critics(inputs, (12, 7), norm=norm))
    numbers = critics.widen(rows)
    box = inputs.rules.box
    action = torch.rand(ROWS, box) * 2 - 1 if box else None
    q = critics(numbers, action).detach()
    assert q.shape == ((2, ROWS) if box else (2, ROWS, inputs.rules.actions))
    x = numbers.double().numpy()
    if action is not None:
        x = np.concatenate([x, action.double().numpy()], 1)
    for which in range(2):
        expected = plain(critics, x, 0, which)
        np.testing.assert_allclose(q[which].numpy(), expected.reshape(q[which].shape), atol=1e-5)
    assert not torch.allclose(q[0], q[1])


@pytest.mark.parametrize("game", ["laser_hockey", "skull_king", "tic_tac_toe"])
def test_rows_are_widened_as_the_first_layer_does(game: str) -> None:
    inputs, rows = rows_of(game)
    first: Any = make_net(inputs.rules, sparring.config.NetConfig(hidden=(8,), sparse=False))
    numbers = Widen(inputs)(rows)
    torch.testing.assert_close(numbers, first.first.widen(rows), rtol=0, atol=0)
    together = Widen(inputs)(rows.unsqueeze(0).expand(3, -1, -1))
    torch.testing.assert_close(together, numbers.expand(3, -1, -1), rtol=0, atol=0)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_members_together_are_members_one_by_one(game: str, norm: bool) -> None:
    torch.manual_seed(1)
    inputs, _ = rows_of(game)
    box, members = inputs.rules.box, 3
    many = stirred(Critics(inputs, (16, 8), norm=norm, members=members))
    numbers = torch.randn(members, ROWS, many.widen.width)
    action = torch.rand(members, ROWS, box) * 2 - 1 if box else None
    q = many(numbers, action)
    q.square().sum().backward()
    assert many.flat.grad is not None
    for member in range(members):
        one = Critics(inputs, (16, 8), norm=norm)
        with torch.no_grad():
            one.flat.copy_(many.flat[member : member + 1])
        alone = one(numbers[member], None if action is None else action[member])
        alone.square().sum().backward()
        torch.testing.assert_close(q[member], alone, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(many.flat.grad[member], one.flat.grad[0], atol=1e-5, rtol=1e-4)


def test_targets_follow_by_a_share_and_learn_nothing_themselves() -> None:
    torch.manual_seed(2)
    inputs, rows = rows_of("laser_hockey_discrete")
    critics = Critics(inputs, (8,))
    numbers = critics.widen(rows)
    torch.testing.assert_close(critics(numbers, weights=critics.target), critics(numbers))
    before = critics.target.clone()
    stirred(critics)
    critics.update_targets(0.25)
    torch.testing.assert_close(critics.target, 0.75 * before + 0.25 * critics.flat.detach())
    critics.update_targets(torch.tensor(1.0))
    torch.testing.assert_close(critics.target, critics.flat.detach())
    assert not critics(numbers, weights=critics.target).requires_grad


def test_frozen_weights_still_tell_what_an_action_is_worth() -> None:
    torch.manual_seed(3)
    inputs, rows = rows_of("laser_hockey")
    critics = Critics(inputs, (8, 8))
    action = torch.zeros(ROWS, 4, requires_grad=True)
    critics(critics.widen(rows), action, weights=critics.flat.detach()).sum().backward()
    assert critics.flat.grad is None
    assert action.grad is not None
    assert action.grad.abs().sum() > 0


@pytest.mark.parametrize("hidden", [(9,), (16, 8), (12, 10, 8)])
@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_native_passes_are_those_of_autograd(game: str, hidden: tuple[int, ...]) -> None:
    expected, native = (
        passed(kind, game, hidden)
        for kind in (as_they_are, lambda made: NativeCritics(made, threads=2))
    )
    for name, tensor in expected.items():
        torch.testing.assert_close(native[name], tensor, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("activation", ["tanh", "silu"])
def test_native_passes_know_every_activation(activation: str) -> None:
    expected, native = (
        passed(kind, "laser_hockey", (40, 33), activation)
        for kind in (as_they_are, lambda made: NativeCritics(made, threads=1))
    )
    for name, tensor in expected.items():
        torch.testing.assert_close(native[name], tensor, atol=2e-5, rtol=1e-4)


@pytest.mark.skipif(not _native.has_amx(), reason="products in bfloat16 need AMX")
@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_native_passes_in_bfloat16_are_within_two_percent(game: str) -> None:
    expected, native = (
        passed(kind, game, (64, 48))
        for kind in (as_they_are, lambda made: NativeCritics(made, threads=2, bf16=True))
    )
    for name, tensor in expected.items():
        assert (native[name] - tensor).norm() <= 0.02 * tensor.norm(), name


def passed(
    kind: Any, game: str, hidden: tuple[int, ...], activation: str = "relu"
) -> dict[str, torch.Tensor]:
    """What passes of a kind say and find; always the same critics and rows."""
    torch.manual_seed(4)
    inputs, rows = rows_of(game)
    box = inputs.rules.box
    critics = Critics(inputs, hidden, activation=activation)
    action = torch.rand(ROWS, box) * 2 - 1 if box else None
    weight = torch.randn(2, ROWS) if box else torch.randn(2, ROWS, inputs.rules.actions)
    critics.target.add_(0.1)
    critics.flat.grad = torch.zeros_like(critics.flat)
    numbers = critics.widen(rows)
    passes = kind(critics)
    found = {"ahead": passes.target_q(numbers, action).clone()}
    said = passes(numbers, action)
    found["said"] = said.detach().clone()
    said.backward(weight)
    found["grad"] = critics.flat.grad.clone()
    if action is not None:
        action.requires_grad_()
        (found["action_grad"],) = torch.autograd.grad(
            passes.forward_frozen(numbers, action), action, weight
        )
    assert torch.equal(critics.flat.grad, found["grad"])
    return found


def as_they_are(critics: Critics) -> Critics:
    return critics


@pytest.mark.parametrize(
    ("game", "seen"), [("laser_hockey", ()), ("skull_king", ()), ("skull_king", SEEN)]
)
def test_rows_are_widened_natively_as_critics_read_them(game: str, seen: tuple[str, ...]) -> None:
    _, rows = rows_of(game)
    inputs = Inputs(sparring.Rules(game), block_names=seen)
    expected = Widen(inputs)(rows)
    out = np.zeros((ROWS, expected.shape[1] + 2), np.float32)
    out[:, -2:] = 7
    _native.widen(rows.numpy(), out, widened_runs(inputs))
    np.testing.assert_array_equal(out[:, :-2], expected.numpy())
    assert (out[:, -2:] == 7).all()


def test_critics_say_why_they_have_no_native_passes() -> None:
    inputs, _ = rows_of("laser_hockey")
    assert not native_critics_unsupported_reason(Critics(inputs, (8,), activation="silu"))
    assert "critic_norm" in native_critics_unsupported_reason(Critics(inputs, (8,), norm=True))
