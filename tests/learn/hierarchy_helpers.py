"""A hierarchy on the GPU for tests: two roles of Skull King, and what autograd says of them."""

from __future__ import annotations

from dataclasses import replace

import torch

from learn.fused_helpers import PPO_
from sparring.config import NetConfig
from sparring.learn.fused.ppo import FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.plan import PPOHparams, RolePlan
from sparring.learn.ppo import ppo_loss
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.net import Net
from sparring.pools import Lineup
from sparring.schedule import Moment

MANAGER = replace(PPO_, gamma_into=(), gamma=0.9, gae_lambda=0.8, minibatch=128, epochs=3)
WORKER = replace(PPO_, gamma_into=(), gamma=0.97, gae_lambda=0.95)
REWARDS = {"manager": (1.0, 0.0), "worker": (0.0, 1.0)}
TABLES = [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))]


def roles(members: int = 1) -> tuple[RolePlan, ...]:
    seen = NetConfig(hidden=(32,), inputs=("hand", "round", "progress", "seat"))
    return (
        RolePlan("manager", seen, (MANAGER,) * members),
        RolePlan("worker", NetConfig(hidden=(64, 32)), (WORKER,) * members, ("manager",)),
    )


def network(fused: FusedPPO, member: int = 0) -> HierarchyNet:
    net = fused.playing.fresh_net()
    assert isinstance(net, HierarchyNet)
    net.load_state_dict(fused.net.state(member))
    return net


def ready(fused: FusedPPO) -> list[dict[str, PPOHparams]]:
    """Play a rollout, link it and list the samples of every role."""
    moments = [Moment(0, 0.0)] * fused.members
    fused.set_hparams(moments)
    fused.playing.play()
    for number in range(fused.rollout.cut_layers()):
        fused.bootstrap_truncated(number)
    configs = fused.configs
    return [
        {role: PPOHparams.at(configs[role][member], moments[0]) for role in fused.learners}
        for member in range(fused.members)
    ]


def loss_of(
    fused: FusedPPO,
    role: str,
    member: int,
    net: Net,
    hparams: PPOHparams,
    places: torch.Tensor,
) -> torch.Tensor:
    """PPO's loss of the decisions at some places, by autograd."""
    part, rollout = fused.learners[role], fused.rollout
    names = fused.playing.kernels.names("Statistics")
    of = dict(zip(names, part.statistics[member].tolist(), strict=True))
    advantage, old = rollout.advantage[places].cpu(), rollout.value[places].cpu()
    heads = net(rollout.obs[places].cpu())
    return ppo_loss(
        heads["policy"],
        heads["value"],
        mask=mask_of(rollout.legal[places].cpu(), fused.rules),
        action=rollout.action[places].cpu(),
        old_log_prob=rollout.log_prob[places].cpu(),
        old_value=old / of["scale"],
        advantage=(advantage - of["mean"]) * of["inverse_std"],
        returns=(advantage + old) / of["scale"],
        hparams=hparams,
    ).total


def check_gradients(fused: FusedPPO, role: str, member: int, net: Net) -> None:
    """Hold the gradients on the device against those of a network behind `backward`."""
    own = fused.learners[role].net
    mine = own.unpack(own.grad[member] * own.scale)
    reference = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    length = torch.cat([grad.flatten() for grad in reference.values()]).norm()
    for name, grad in reference.items():
        off = float((mine[name] - grad).norm() / length)
        assert off < 1e-4, f"{role} {name}: {off:.2e} of the gradient's length"
