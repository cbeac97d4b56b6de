"""Our own convolutions compute what torch's do, for any number of threads."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from make import played
from sparring import Rules
from sparring.config import NetConfig
from sparring.nets import residual
from sparring.nets.net import Net
from sparring.nets.residual import ResidualNet

CASES = [
    ("tic_tac_toe", {}, 4, 1),
    ("tic_tac_toe", {}, 36, 2),
    ("connect_four", {}, 16, 2),
    ("shogi", {}, 8, 1),
    ("shogi", {}, 24, 2),
    ("shogi", {}, 44, 1),
    ("shogi", {"observation": "PLANES46"}, 16, 1),
]


@pytest.fixture(autouse=True)
def ours_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual, "NATIVE_IS_FASTER", True)


def observations(rules: Rules, games: int) -> torch.Tensor:
    return played(rules, games, steps=60 if rules.name == "shogi" else 3, seed=4).tensor


def make(rules: Rules, channels: int, blocks: int, *, native: bool, threads: int = 1) -> Net:
    config = NetConfig(kind="residual", channels=channels, blocks=blocks, sparse=native)
    net = ResidualNet(rules, config, threads=threads)
    assert (net.native is not None) == native
    generator = torch.Generator().manual_seed(channels)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(std=0.1, generator=generator)
    return net


def outcome(net: Net, obs: torch.Tensor) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """What a network says, and gradients of some function of it."""
    heads = net(obs)
    logits, value = heads["policy"], heads["value"]
    weights = torch.linspace(-1, 1, logits.numel()).view_as(logits)
    loss = (logits * weights).sum() + (value * torch.linspace(1, -2, len(value))).sum()
    loss.backward()
    grads = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    return [logits.detach(), value.detach()], grads


@pytest.mark.parametrize(("game", "flags", "channels", "blocks"), CASES)
def test_outputs_and_gradients_are_torchs(
    game: str, flags: dict[str, Any], channels: int, blocks: int
) -> None:
    rules = Rules(game, flags)
    obs = observations(rules, 70)  # more than one chunk, and not a whole number of them
    ours, grads = outcome(make(rules, channels, blocks, native=True), obs)
    theirs, wanted = outcome(make(rules, channels, blocks, native=False), obs)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))
    assert grads.keys() == wanted.keys()
    for name, grad in wanted.items():
        assert float((grads[name] - grad).norm()) <= 1e-4 * float(grad.norm()), name


def test_threads_change_nothing() -> None:
    rules = Rules("shogi")
    obs = observations(rules, 150)
    alone, grads = outcome(make(rules, 24, 2, native=True), obs)
    together, others = outcome(make(rules, 24, 2, native=True, threads=3), obs)
    for mine, other in zip(alone, together, strict=True):
        assert torch.equal(mine, other)
    for name, grad in grads.items():
        assert torch.equal(grad, others[name]), name


def test_rows_do_not_depend_on_the_batch() -> None:
    rules = Rules("shogi")
    obs = observations(rules, 40)
    net = make(rules, 24, 2, native=True)
    with torch.no_grad():
        tower = net.native_tower(obs)
        assert torch.equal(tower[17:18], net.native_tower(obs[17:18]))


def test_channels_that_do_not_come_in_fours_are_torchs() -> None:
    rules = Rules("tic_tac_toe")
    net = ResidualNet(rules, NetConfig(kind="residual", channels=6, blocks=1))
    assert net.native is None
    assert net(observations(rules, 3))["policy"].shape == (3, 9)
