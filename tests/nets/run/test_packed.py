"""Training with few calls gives what torch gives: passes, clipping, Adam and its memory."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import sparring
from make import nets, played
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.run.native import PackedAdam, PackedParameters

NETS = nets(
    *("relu", "one layer", "odd widths", "layer norm", "tanh, two trunks", "silu", "residual"),
    "residual, dense policy",
)


def rows(game: str, count: int, seed: int) -> torch.Tensor:
    return played(game, count, steps=12, seed=seed).tensor


def pair(kind: str) -> tuple[Net, PackedParameters]:
    """A network, and the same one packed."""
    game, config = NETS[kind]
    torch.manual_seed(4)
    net = make_net(sparring.Rules(game), config)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return net, PackedParameters(net.cpu_copy())


@pytest.mark.parametrize("kind", NETS)
def test_steps_are_those_of_torch(kind: str) -> None:
    game = NETS[kind][0]
    net, packed = pair(kind)
    theirs = torch.optim.Adam(net.parameters(), lr=3e-3)
    ours = PackedAdam(packed)
    ours.lr = 3e-3
    for step in range(4):
        obs = rows(game, 20 + step, step)
        heads, said = net(obs), packed.net(obs)
        torch.testing.assert_close(said["policy"], heads["policy"], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(said["value"], heads["value"], atol=1e-5, rtol=1e-4)
        grads = torch.randn_like(heads["policy"]), torch.randn_like(heads["value"])
        theirs.zero_grad()
        torch.autograd.backward([heads["policy"], heads["value"]], list(grads))
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.7)
        packed.grad.zero_()
        torch.autograd.backward([said["policy"], said["value"]], list(grads))
        assert float(ours.clip(0.7)) == pytest.approx(float(norm), rel=1e-4)
        theirs.step()
        ours.step()
        for name, tensor in net.state_dict().items():
            mine = packed.net.state_dict()[name]
            torch.testing.assert_close(mine, tensor, atol=2e-5, rtol=1e-4, msg=name)
    state = {
        f"{index}.{name}": value
        for index, kept in theirs.state_dict()["state"].items()
        for name, value in kept.items()
    }
    kept = ours.tensors()
    assert list(kept) == list(state)
    for name, value in state.items():
        torch.testing.assert_close(kept[name], value, atol=1e-5, rtol=1e-3)


def test_memory_of_adam_goes_on_to_the_bit() -> None:
    obs = rows("skull_king", 16, 1)
    _, packed = pair("odd widths")
    other = PackedParameters(packed.net.cpu_copy())
    first, second = PackedAdam(packed), PackedAdam(other)
    assert first.tensors() == {}

    def descend(adam: PackedAdam, number: int) -> None:
        torch.manual_seed(number)
        heads = adam.packed.net(obs)
        adam.packed.grad.zero_()
        grads = [torch.randn_like(heads["policy"]), torch.randn_like(heads["value"])]
        torch.autograd.backward([heads["policy"], heads["value"]], grads)
        adam.lr = 1e-2
        adam.step()

    for number in range(3):
        descend(first, number)
    other.net.load_state_dict(packed.net.state_dict())
    second.load(first.tensors())
    descend(first, 9)
    descend(second, 9)
    assert torch.equal(packed.weight, other.weight)
    assert np.array_equal(first.exp_avg_sq, second.exp_avg_sq)
    second.load({})
    assert second.tensors() == {}
    assert not second.exp_avg.any()


def test_a_packed_network_is_still_a_network() -> None:
    net, packed = pair("relu")
    obs = rows("skull_king", 8, 2)
    torch.testing.assert_close(packed.net(obs)["policy"], net(obs)["policy"])
    loaded = {name: torch.randn_like(value) for name, value in net.state_dict().items()}
    packed.net.load_state_dict(loaded)
    for name, view in packed.views(packed.weight).items():
        assert torch.equal(view, loaded[name])
    assert torch.equal(copy.deepcopy(packed.net.state_dict())["first.bias"], loaded["first.bias"])


def test_weights_without_a_gradient_do_not_slow_adam_down() -> None:
    """Numbers below 1e-38 cost a CPU tenfold; moments would become that small and stay so."""
    packed = PackedParameters(torch.nn.Linear(4, 4))
    adam = PackedAdam(packed)
    adam.lr = 1e-3
    packed.grad.fill_(1e-3)
    adam.step()
    packed.grad.zero_()
    for _ in range(1200):
        adam.step()
    for moment in (adam.exp_avg, adam.exp_avg_sq):
        least = torch.finfo(torch.float32).tiny
        assert not ((moment != 0) & (moment.abs() < least)).any()
    assert (adam.exp_avg_sq > 0).any()
