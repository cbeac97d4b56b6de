"""Native passes of perceptrons say and learn what torch's do."""

from __future__ import annotations

import pytest
import torch

from make import nets, played
from sparring import Rules
from sparring.config import NetConfig
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.run.native import FLOAT32, NativeNet, native_unsupported_reason

ROWS = 150
KINDS = ("relu", "odd widths", "tanh, two trunks", "silu", "without our own first layer")
NETS = {kind: config for kind, (_, config) in nets(*KINDS, "one layer").items()}


def rows_of(game: str, count: int = ROWS) -> torch.Tensor:
    return played(game, count, steps=20).tensor


def native_of(net: Net, threads: int = 2) -> NativeNet:
    return NativeNet(net, threads=threads, arithmetic=FLOAT32)


@pytest.mark.parametrize("game", ["skull_king", "laser_hockey", "tic_tac_toe"])
@pytest.mark.parametrize("kind", NETS)
def test_heads_and_gradients_are_those_of_torch(game: str, kind: str) -> None:
    torch.manual_seed(1)
    net = make_net(Rules(game), NETS[kind])
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    obs = rows_of(game)
    index = torch.randperm(len(obs))[:101]
    passes = native_of(net)
    heads = net(obs[index])
    said = passes.split(passes.forward(obs, index=index, keep=True))
    for name in (POLICY, VALUE):
        torch.testing.assert_close(said[name], heads[name], rtol=1e-4, atol=1e-5)

    grads = {name: torch.randn_like(head) for name, head in heads.items()}
    torch.autograd.backward(list(heads.values()), list(grads.values()))
    expected = passes.packed.grad.clone()
    passes.packed.grad.zero_()
    passes.backward(torch.cat([grads[POLICY], grads[VALUE].unsqueeze(-1)], dim=-1))
    assert (expected - passes.packed.grad).norm() <= 1e-5 * expected.norm()


def test_any_number_of_threads_gives_the_same_bits() -> None:
    torch.manual_seed(1)
    net, obs = make_net(Rules("skull_king"), NetConfig(hidden=(64, 64))), rows_of("skull_king")
    found = []
    for threads in (1, 2, 3):
        passes = native_of(net, threads)
        said = passes.forward(obs, keep=True).clone()
        passes.backward(torch.ones_like(said))
        found.append((said, passes.packed.grad.clone()))
    for said, grad in found[1:]:
        assert torch.equal(said, found[0][0])
        assert torch.equal(grad, found[0][1])


def test_what_is_not_kept_leaves_what_was() -> None:
    net, obs = make_net(Rules("skull_king"), NetConfig(hidden=(64, 64))), rows_of("skull_king")
    passes = native_of(net)
    said = passes.forward(obs[:70], keep=True).clone()
    passes.backward(torch.ones_like(said))
    expected = passes.packed.grad.clone()
    passes.forward(obs[:70], keep=True)
    other = passes.forward(obs[70:], keep=False).clone()
    passes.backward(torch.ones_like(said))
    assert torch.equal(passes.packed.grad, expected)
    assert torch.equal(other, passes.forward(obs[70:], keep=True))


def test_adding_adds() -> None:
    net, obs = make_net(Rules("skull_king"), NetConfig(hidden=(64, 64))), rows_of("skull_king")
    passes = native_of(net)
    said = passes.forward(obs, keep=True).clone()
    passes.backward(torch.ones_like(said))
    once = passes.packed.grad.clone()
    passes.backward(torch.ones_like(said), add=True)
    assert torch.equal(passes.packed.grad, 2 * once)


def test_what_cannot_be_passed_is_named() -> None:
    cpu = torch.device("cpu")
    assert "net.norm" in native_unsupported_reason(
        make_net(Rules("tic_tac_toe"), NetConfig(norm=True)), cpu
    )
    assert not native_unsupported_reason(make_net(Rules("tic_tac_toe"), NetConfig()), cpu)
