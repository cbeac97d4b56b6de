"""Attention on a GPU: fused kernels inside graphs say what the network on a CPU says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from learn.fused_helpers import COLLECT, PPO_, ROUNDED, learner
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.nets import attention
from sparring.nets.attention import AttentionNet
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool

NET = NetConfig(kind="attention", token_width=32, token_heads=2)


def stirred(rules: Rules) -> AttentionNet:
    torch.manual_seed(3)
    net = make_net(rules, NET)
    assert isinstance(net, AttentionNet)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return net


def rows_of(rules: Rules, count: int) -> torch.Tensor:
    pool = Pool(rules, 256, seed=1)
    pool.reset()
    found = []
    while sum(map(len, found)) < count:
        pool.run_random(5)
        found.append(torch.from_numpy(pool.batch().obs.copy()))
    return torch.cat(found)[:count]


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
@pytest.mark.parametrize("bf16", [False, True])
def test_passes_are_those_on_a_cpu(game: str, bf16: bool) -> None:
    rules, rows = Rules(game), 96
    obs, net = rows_of(rules, rows), stirred(rules)
    flat = CapturedNet(rules, NET, 2, bf16=bf16, device=torch.device("cuda"))
    flat.load(1, net.state_dict())
    at = flat.make_pass(rows, learn=True)
    at.read(torch.stack([obs, obs]).cuda())
    at.forward()
    at.logits_grad.normal_()
    at.value_grad.normal_()
    at.backward()
    heads = net(obs)
    near = {"atol": 0.1, "rtol": 0.05} if bf16 else {"atol": 1e-4, "rtol": 1e-4}
    assert torch.allclose(at.logits[1, :, : rules.actions].cpu(), heads["policy"], **near)
    assert torch.allclose(at.value[1, :, 0].cpu(), heads["value"], **near)
    policy_grad = at.logits_grad[1, :, : rules.actions].float().cpu()
    value_grad = at.value_grad[1, :, 0].float().cpu()
    total = (heads["policy"] * policy_grad).sum() + (heads["value"] * value_grad).sum()
    total.backward()
    mine, theirs = flat.unpack(flat.grad[1]), {n: p.grad for n, p in net.named_parameters()}
    far = {name: mine[name] - grad for name, grad in theirs.items()}
    if not bf16:
        for name, off in far.items():
            assert off.norm() < 1e-3 * theirs[name].norm().clamp(min=1e-3), name
    # As far as perceptrons are in bf16: single tensors of small gradients are farther.
    assert length(far) < (0.06 if bf16 else 1e-3) * length(theirs)


def length(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()]).norm()


@pytest.mark.parametrize(
    ("game", "kernel"),
    [
        ("skull_king", SDPBackend.EFFICIENT_ATTENTION),  # hands have empty places
        ("kuhhandel", SDPBackend.FLASH_ATTENTION),  # everything is always there
    ],
)
def test_attention_has_a_fused_kernel(game: str, kernel: SDPBackend) -> None:
    """Nothing falls back to products that write out who looks at whom."""
    rules = Rules(game)
    flat = CapturedNet(rules, NET, 1, bf16=True, device=torch.device("cuda"))
    flat.load(0, stirred(rules).state_dict())
    at = flat.make_pass(64, learn=True)
    at.read(rows_of(rules, 64).cuda())
    with sdpa_kernel([kernel]):
        at.forward()
        at.backward()
    assert torch.isfinite(flat.grad).all()


def test_more_rows_than_a_kernel_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a kernel are numbered up to 65,535; batches beyond that are cut."""
    rules, rows = Rules("skull_king"), 66_000
    obs = rows_of(rules, rows).cuda()
    flat = CapturedNet(rules, NET, 1, bf16=True, device=torch.device("cuda"))
    flat.load(0, stirred(rules).state_dict())
    said = []
    for most in (attention.MAX_ROWS, 9_000):
        monkeypatch.setattr(attention, "MAX_ROWS", most)
        at = flat.make_pass(rows, learn=True)
        at.read(obs)
        at.forward()
        at.logits_grad.fill_(1.0)
        at.backward()
        said.append((at.logits.clone(), flat.grad.clone()))
    assert torch.equal(said[0][0], said[1][0])
    assert torch.allclose(said[0][1], said[1][1], rtol=0.02, atol=0.02 * float(said[0][1].std()))


@pytest.mark.parametrize("collect", [COLLECT, ROUNDED], ids=["float32", "bf16"])
def test_graphs_learn_what_is_learned_without(collect: object) -> None:
    both = [learner(PPO_, NET, (3, 4), collect=collect, graphs=graphs) for graphs in (False, True)]
    for _ in range(3):
        reports = [ppo.iterate(0.0) for ppo in both]
    for mine, theirs in zip(*reports, strict=True):
        for key in ("losses/entropy", "losses/value_loss"):
            assert mine.stats[key] == pytest.approx(theirs.stats[key], rel=0.05), key


def test_members_learn_what_they_would_alone() -> None:
    both = learner(net=NET, seeds=(3, 4), graphs=True)
    alone = [learner(net=NET, seeds=(seed,), graphs=True) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, ppo in enumerate(alone):
            (other,) = ppo.iterate(0.0)
            mine, theirs = reports[member].stats, other.stats
            assert mine["learning/samples"] == theirs["learning/samples"]
            assert mine["losses/entropy"] == pytest.approx(theirs["losses/entropy"], rel=1e-3)


def test_kuhhandel_is_learned_too() -> None:
    pool = CudaPool("kuhhandel", 64, config={"skip_forced": 1}, lineups=[Lineup((0, 0, "dealer"))])
    config = replace(PPO_, gamma_into=())
    ppo = FusedPPO(DeviceGames(pool), ROUNDED, config, NET, graphs=True)
    before = ppo.net.weight.clone()
    for _ in range(2):
        (report,) = ppo.iterate(0.0)
    assert not report.diverged
    assert not torch.equal(before, ppo.net.weight)
