"""Native passes with products in bfloat16 say what float32 says, and learn nearly the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nets.run.test_native_passes import NETS, rows_of
from sparring import Rules, _native
from sparring.config import CollectConfig, NetConfig
from sparring.errors import ConfigError
from sparring.learn.forward import Forward
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.run.native import (
    AUTO,
    BF16,
    FLOAT32,
    KERNELS,
    TORCH,
    NativeNet,
    resolve_cpu,
    resolve_cpu_or_auto,
)

NEAR = 0.01
"""How far gradients may be from those of torch, as a share of their length."""
with_amx = pytest.mark.skipif(not _native.has_amx(), reason="this CPU has no AMX")


def passes_of(game: str, config: NetConfig, *, threads: int = 2) -> NativeNet:
    torch.manual_seed(1)
    net = make_net(Rules(game), config)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return NativeNet(net, threads=threads, arithmetic=BF16)


def apart(found: Tensor, expected: Tensor) -> float:
    """How far one is from the other, as a share of its length."""
    found, expected = found.detach(), expected.detach()
    return float((found - expected).norm() / expected.norm().clamp(min=1e-30))


def check_passes(passes: NativeNet, obs: Tensor, index: Tensor) -> None:
    net = passes.packed.net
    heads = net(obs[index])
    said = passes.split(passes.forward(obs, index=index, keep=True))
    for name, head in heads.items():
        assert apart(said[name], head) < 1e-4
    grads = {name: torch.randn_like(head) for name, head in heads.items()}
    passes.packed.grad.zero_()
    torch.autograd.backward(list(heads.values()), list(grads.values()))
    expected = passes.packed.grad.clone()
    joined = [grad.reshape(len(index), -1) for grad in grads.values()]
    passes.backward(torch.cat(joined, dim=-1))
    assert apart(passes.packed.grad, expected) < NEAR
    by_layer = passes.packed.views(expected)
    for name, grad in passes.packed.views(passes.packed.grad).items():
        assert apart(grad, by_layer[name]) < 2 * NEAR, name


@with_amx
@pytest.mark.parametrize("game", ["skull_king", "laser_hockey", "tic_tac_toe"])
@pytest.mark.parametrize("kind", NETS)
def test_heads_are_those_of_torch_and_gradients_nearly(game: str, kind: str) -> None:
    obs = rows_of(game)
    check_passes(passes_of(game, NETS[kind]), obs, torch.randperm(len(obs))[:101])


@with_amx
@pytest.mark.parametrize("rows", [1, 16, 17, 64, 2048])
def test_batches_of_any_size(rows: int) -> None:
    obs = rows_of("skull_king")
    index = torch.randint(len(obs), (rows,))
    check_passes(passes_of("skull_king", NetConfig(hidden=(40, 33))), obs, index)


def rounded(x: Tensor) -> Tensor:
    """To the nearest bfloat16."""
    return x.bfloat16().float()


def emulated(net: Perceptron, obs: Tensor, head_grad: Tensor) -> dict[str, Tensor]:
    """Gradients by layer, of a net with relu and one trunk. Bytes need no rounding."""
    layers = [layer for layer in net.towers[0] if isinstance(layer, torch.nn.Linear)]
    first = net.first(obs)
    below = [torch.relu(first)]
    for layer in layers:
        below.append(torch.relu(layer(below[-1])))
    found, delta = {}, head_grad
    heads = torch.cat([getattr(net, f"{name}_head").weight for name in net.heads])
    names = [*(f"towers.0.{2 * at}" for at in range(len(layers))), "heads"]
    weights = [*(layer.weight for layer in layers), heads]
    for name, weight, x in reversed(list(zip(names, weights, below, strict=True))):
        found[f"{name}.weight"] = rounded(delta).t() @ rounded(x)
        found[f"{name}.bias"] = delta.sum(0)
        delta = (rounded(delta) @ rounded(weight)) * (x > 0)
    (found["first.weight"],) = torch.autograd.grad(first, net.first.weight, rounded(delta))
    found["first.bias"] = delta.sum(0)
    return found


@with_amx
def test_only_the_factors_of_products_are_rounded() -> None:
    passes = passes_of("skull_king", NetConfig(hidden=(64, 40)))
    net, obs = passes.packed.net, rows_of("skull_king")
    assert isinstance(net, Perceptron)
    head_grad = torch.randn_like(passes.forward(obs, keep=True))
    passes.backward(head_grad)
    grads = passes.packed.views(passes.packed.grad)
    for part in ("weight", "bias"):
        grads[f"heads.{part}"] = torch.cat([grads[f"{name}_head.{part}"] for name in net.heads])
    for name, expected in emulated(net, obs, head_grad).items():
        assert apart(grads[name], expected) < 1e-3, name


@with_amx
def test_any_number_of_threads_gives_the_same_bits() -> None:
    obs, found = rows_of("skull_king"), []
    for threads in (1, 2, 3):
        passes = passes_of("skull_king", NetConfig(hidden=(64, 64)), threads=threads)
        said = passes.forward(obs, keep=True).clone()
        passes.backward(torch.ones_like(said))
        found.append((said, passes.packed.grad.clone()))
    for said, grad in found[1:]:
        assert torch.equal(said, found[0][0])
        assert torch.equal(grad, found[0][1])


@with_amx
def test_what_is_not_kept_leaves_what_was_and_adding_adds() -> None:
    passes, obs = passes_of("skull_king", NetConfig(hidden=(64, 64))), rows_of("skull_king")
    said = passes.forward(obs[:70], keep=True).clone()
    passes.backward(torch.ones_like(said))
    once = passes.packed.grad.clone()
    other = passes.forward(obs[70:], keep=False).clone()
    passes.backward(torch.ones_like(said), add=True)
    assert torch.equal(passes.packed.grad, 2 * once)
    assert torch.equal(other, passes.forward(obs[70:], keep=True))


def test_a_cpu_without_amx_refuses_bf16_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNELS, "avx2")
    assert resolve_cpu(AUTO) == FLOAT32
    assert resolve_cpu(TORCH) == TORCH
    with pytest.raises(ConfigError, match=r"^collect\.cpu bf16 needs .* --collect\.cpu float32"):
        resolve_cpu(BF16)
    assert [resolve_cpu_or_auto(BF16), resolve_cpu_or_auto(TORCH)] == [AUTO, TORCH]


@with_amx
def test_with_amx_a_perceptron_is_in_bf16_unless_it_is_told_otherwise() -> None:
    assert resolve_cpu(AUTO) == BF16
    assert resolve_cpu(AUTO, perceptron=False) == FLOAT32
    assert resolve_cpu(FLOAT32) == FLOAT32


@with_amx
def test_a_fresh_residual_net_learns_nearly_the_same_in_bf16() -> None:
    torch.manual_seed(1)
    config = NetConfig(kind="residual", channels=24, blocks=2)
    net, obs = make_net(Rules("shogi"), config), rows_of("shogi")
    found = []
    for cpu in (FLOAT32, BF16):
        run = Forward(net, torch.device("cpu"), CollectConfig(cpu=cpu))
        heads = run(obs)
        torch.manual_seed(2)
        grads = [torch.randn(head.shape) for head in heads.values()]
        learned = torch.autograd.grad([h.float() for h in heads.values()], net.parameters(), grads)
        found.append((heads, torch.cat([grad.flatten() for grad in learned])))
    (heads, grad), (nearly, other) = found
    assert not torch.equal(nearly[POLICY], heads[POLICY])
    for name in (POLICY, VALUE):
        assert apart(nearly[name].float(), heads[name]) < 0.02
    assert apart(other, grad) < 0.02
