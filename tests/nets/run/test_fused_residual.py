"""Hand-written passes of residual nets for a GPU are those of autograd, here without a GPU.

Only what needs one is replaced: the kernel that converts rows, and the library's convolutions.
tests/cuda holds the same passes with them.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from make import played
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.run import flat, fused_residual
from sparring.nets.run.fused_residual import BoardPass, FusedResidual

CONFIG = NetConfig(kind="residual", channels=16, blocks=2)
MEMBERS, ROWS = 2, 12


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    return functional.conv2d(x, weight, padding=1).contiguous(memory_format=torch.channels_last)


def convolve_relu(x: Tensor, weight: Tensor, bias: Tensor, onto: Tensor | None = None) -> Tensor:
    out = convolve(x, weight) + bias[:, None, None]
    return functional.relu(out if onto is None else out + onto)


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "build", lambda *_, **__: None)
    monkeypatch.setattr(fused_residual, "convolve", convolve)
    monkeypatch.setattr(fused_residual, "convolve_relu", convolve_relu)


def read(at: BoardPass, obs: Tensor) -> None:
    """Convert the bytes of features, which are all of a board's row."""
    features = len(at.flat.rules.features)
    at.x[:, :, :features] = obs.view(MEMBERS, ROWS, -1)[:, :, :features].float()


def stirred(net: Net) -> Net:
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return net


@pytest.mark.parametrize("game", ["shogi", "tic_tac_toe", "connect_four"])
def test_passes_are_those_of_autograd(game: str) -> None:
    torch.manual_seed(1)
    found = played(game, MEMBERS * ROWS, steps=9)
    rules, obs = found.rules, found.tensor
    fused = FusedResidual(rules, CONFIG, MEMBERS, bf16=False, device=torch.device("cpu"))
    nets = [stirred(make_net(rules, CONFIG)) for _ in range(MEMBERS)]
    for member, net in enumerate(nets):
        fused.load(member, net.state_dict())
    at = fused.make_pass(ROWS, learn=True)
    read(at, obs)
    at.forward()
    at.logits_grad[:, :, : rules.actions].normal_()
    at.value_grad[:, :, 0].normal_()
    at.backward()
    for member, net in enumerate(nets):
        heads = net(obs.view(MEMBERS, ROWS, -1)[member])
        logits = (at.logits[member] + fused.policy_bias[member])[:, : rules.actions]
        value = at.value[member, :, 0] + fused.value_bias[member, 0]
        torch.testing.assert_close(logits, heads["policy"], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(value, heads["value"], atol=1e-4, rtol=1e-4)
        grads = at.logits_grad[member, :, : rules.actions], at.value_grad[member, :, 0]
        torch.autograd.backward([heads["policy"], heads["value"]], list(grads))
        mine = fused.unpack(fused.grad[member] * fused.scale)
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            off = float((mine[name] - parameter.grad).norm() / parameter.grad.norm())
            assert off < 1e-5, name


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four"])
def test_weights_survive_the_way_there_and_back(game: str) -> None:
    rules = played(game, 1, steps=1).rules
    fused = FusedResidual(rules, CONFIG, 1, bf16=False, device=torch.device("cpu"))
    state = stirred(make_net(rules, CONFIG)).state_dict()
    fused.load(0, state)
    assert fused.state(0).keys() == state.keys()
    for name, tensor in fused.state(0).items():
        assert torch.equal(tensor, state[name]), name
