"""Updates on the GPU: gradients, optimizer and graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from learn.fused_helpers import (
    COLLECT,
    NETS,
    PPO_,
    ROUNDED,
    check_gradients,
    game_of,
    learner,
    losses_of,
    play,
    turn,
)
from sparring.learn.role_learners import PPO_METRICS
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet


def test_every_epoch_meets_every_sample_once() -> None:
    ppo = learner(seeds=(1, 2, 3))
    play(ppo)
    update, orders = ppo.update, []
    for epoch in range(2):
        update.shuffle(epoch)
        met = update.picked.cpu().clone()
        for member in range(3):
            picked = met[:, member].flatten()
            picked = picked[picked >= 0]
            wanted = update.list[member, : int(update.sample_counts[member])].cpu()
            assert torch.equal(picked.sort().values, wanted.sort().values)
        orders.append(met[0, 0])
    assert not torch.equal(*orders)


@pytest.mark.parametrize(
    ("net", "bf16"),
    [
        *((net, False) for net in NETS),
        # A density is as steep as its spread is narrow: means rounded to bf16 change the ratios
        # of a Gaussian too much to compare them with a float32 network's.
        *((net, True) for net in NETS if "gaussian" not in net),
    ],
)
def test_gradients_are_those_of_autograd(net: str, bf16: bool) -> None:
    # Rounding in bf16 would push ratios and values over narrow edges.
    clip, value_clip = (0.2, 3.0) if bf16 else (0.02, 0.3)
    config = replace(PPO_, clip=clip, value_clip=value_clip)
    collect = ROUNDED if bf16 else COLLECT
    ppo = learner(config, NETS[net], (1, 2), collect=collect, game=game_of(net))
    for _ in range(3):  # away from the start, where ratios are 1 and gradients vanish
        ppo.iterate(0.0)
    update = ppo.update
    hparams = turn(ppo)
    play(ppo)
    update.shuffle(0)
    for number in range(update.minibatches - 1):
        update.step(number)
    before = [ppo.net.state(member) for member in range(2)]
    update.step(update.minibatches - 1)
    rollout = ppo.rollout
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(before[member])
        places = update.picked[-1, member]
        places = places[places >= 0].long()
        heads = module(rollout.obs[places].cpu())
        losses = losses_of(ppo, member, heads, places, hparams[member])
        check_gradients(ppo, member, module, losses, within=0.02 if bf16 else 1e-4)
        assert ppo.playing.kernels.names("Losses") == list(PPO_METRICS)
        found = update.loss.means[update.minibatches - 1, member].tolist()
        for name, figure in zip(PPO_METRICS, found, strict=True):
            assert figure == pytest.approx(
                float(getattr(losses, name).detach()), rel=0.05 if bf16 else 1e-3, abs=2e-3
            ), name


@pytest.mark.parametrize(
    "net", ["towers", "tanh", "gaussian, predicted spread", "residual", "residual, dense policy"]
)
def test_autograd_gives_the_gradients_of_the_passes(net: str) -> None:
    ppo = learner(net=NETS[net], seeds=(1, 2), game=game_of(net))
    for _ in range(2):
        ppo.iterate(0.0)
    play(ppo)
    update, own = ppo.update, ppo.net
    update.shuffle(0)
    other = CapturedNet(ppo.rules, NETS[net], 2, bf16=False, device=ppo.device)
    for member in range(2):
        other.load(member, own.state(member))
    at = other.make_pass(update.room, learn=True)
    at.read(ppo.rollout.obs, update.picked[0])
    at.forward()
    update.step(0)
    at.logits_grad.copy_(update.learning.logits_grad)
    at.value_grad.copy_(update.learning.value_grad)
    at.backward()
    for member in range(2):
        mine = own.unpack(own.grad[member] * own.scale)
        theirs = other.unpack(other.grad[member])
        length = torch.cat([grad.flatten() for grad in theirs.values()]).norm()
        for name, grad in theirs.items():
            off = float((mine[name] - grad).norm() / length)
            assert off < 1e-4, f"{name}: {off:.2e} of the gradient's length"


def test_the_optimizer_is_adam_behind_a_clipped_gradient() -> None:
    ppo = learner()
    (hparams,) = turn(ppo)
    play(ppo)
    weight = torch.nn.Parameter(ppo.net.weight[0].clone())
    optimizer = torch.optim.Adam([weight], lr=hparams.lr, eps=1e-5)
    ppo.update.shuffle(0)
    for number in range(3):
        ppo.update.step(number)
        weight.grad = ppo.net.grad[0] * ppo.net.scale
        torch.nn.utils.clip_grad_norm_([weight], hparams.max_grad_norm)
        optimizer.step()
        assert torch.allclose(weight, ppo.net.weight[0], atol=1e-6)


@pytest.mark.parametrize(
    "net",
    [
        *("towers", "gaussian, predicted spread", "residual", "residual, dense policy"),
        *("silu, odd widths", "gaussian, silu", "residual, odd channels"),
    ],
)
@pytest.mark.parametrize("bf16", [False, True])
def test_graphs_change_nothing(net: str, bf16: bool) -> None:
    collect, game = ROUNDED if bf16 else COLLECT, game_of(net)
    runs = [
        learner(net=NETS[net], collect=collect, graphs=graphs, game=game)
        for graphs in (False, True)
    ]
    for _ in range(4):
        reports = [ppo.iterate(0.3)[0] for ppo in runs]
        for key in ("learning/samples", "charts/games", "losses/policy_loss", "losses/value_loss"):
            first, second = (report.stats[key] for report in reports)
            assert first == pytest.approx(second, rel=1e-6), key
    assert runs[0].games.state(0) == runs[1].games.state(0)
    assert torch.equal(runs[0].net.weight, runs[1].net.weight)
