"""Learners on the GPU for tests: small networks of every kind, and how to play with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.plan import PPOHparams
from sparring.learn.ppo import Losses, ppo_loss
from sparring.nets.heads import head_width
from sparring.nets.net import HeadOutputs
from sparring.pools import Lineup
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment

COLLECT = CollectConfig(games=64, steps=24, bf16=False)
ROUNDED = replace(COLLECT, bf16=True)
PPO_ = PPOConfig(minibatch=512, epochs=2, gamma_into=(0, 1), target_kl=0.0)
NETS = {
    "shared": NetConfig(hidden=(64, 32)),
    "towers": NetConfig(hidden=(64, 64, 32), shared=False),
    "one layer": NetConfig(hidden=(64,)),
    "tanh": NetConfig(hidden=(64, 32), shared=False, activation="tanh"),
    # The test game with continuous actions.
    "gaussian": NetConfig(hidden=(64, 32)),
    "gaussian, predicted spread": NetConfig(hidden=(64, 32), std="predicted", squash=True),
    # Shogi.
    "residual": NetConfig(kind="residual", channels=16, blocks=2),
    # Connect Four.
    "residual, dense policy": NetConfig(kind="residual", channels=16, blocks=2),
    # Run by autograd.
    "silu, odd widths": NetConfig(hidden=(60, 30), activation="silu"),
    "gaussian, silu": NetConfig(hidden=(60,), activation="silu", std="predicted"),
    "residual, odd channels": NetConfig(kind="residual", channels=12, blocks=1),
}
NAMES = ("seat", "role", "policy", "reward", "terminated", "truncated", "skipped")


def learner(
    config: PPOConfig = PPO_,
    net: NetConfig = NETS["towers"],
    seeds: tuple[int, ...] = (0,),
    *,
    collect: CollectConfig = COLLECT,
    graphs: bool = False,
    game: str = "skull_king",
    memory: int = 0,
) -> FusedPPO:
    lineups = {
        "skull_king": [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))],
        "duel": [Lineup((0, 0)), Lineup((0, "pusher"))],
        "shogi": [Lineup((0, 0)), Lineup((0, "random"))],
        "connect_four": [Lineup((0, 0)), Lineup((0, "random"))],
    }
    flags = {"material": 0.3} if game == "shogi" else {}
    if game in ("shogi", "connect_four"):
        config = replace(config, gamma_into=())
    games = collect.games * len(seeds)
    pool = CudaPool(game, games, config=flags, seeds=seeds, lineups=lineups[game], memory=memory)
    return FusedPPO(DeviceGames(pool), collect, config, net, graphs=graphs)


def turn(ppo: FusedPPO) -> list[PPOHparams]:
    return ppo.update.set_hparams(ppo.updates, [Moment(0, 0.0)] * ppo.members)


def bootstrap_truncated(ppo: FusedPPO) -> None:
    for number in range(ppo.rollout.cut_layers()):
        ppo.update.bootstrap_truncated(number)


def play(ppo: FusedPPO) -> None:
    """A rollout, ready to be learned from."""
    turn(ppo)
    ppo.playing.play()
    bootstrap_truncated(ppo)
    ppo.estimate_advantages()


def game_of(net: str) -> str:
    if "gaussian" in net:
        return "duel"
    if "dense policy" in net:
        return "connect_four"
    return "shogi" if "residual" in net else "skull_king"


def policy_bias(ppo: FusedPPO, member: int = 0) -> torch.Tensor:
    """What the kernels add to the logits."""
    of_all = ppo.net.policy_bias
    return of_all[min(member, len(of_all) - 1)].flatten()[: head_width(ppo.rules)]


def arrays(ppo: FusedPPO, *names: str) -> dict[str, np.ndarray]:
    return {name: getattr(ppo.rollout, name).cpu().numpy() for name in (*NAMES, *names)}


def losses_of(
    ppo: FusedPPO,
    member: int,
    heads: HeadOutputs,
    places: torch.Tensor,
    hparams: PPOHparams,
    *,
    seen: dict[str, torch.Tensor] | None = None,
) -> Losses:
    """The losses at some places of a rollout, as the readable learner has them.

    seen: masks and actions as they are learned from, where they are not as they were played.
    """
    rollout, names = ppo.rollout, ppo.playing.kernels.names("Statistics")
    of = dict(zip(names, ppo.update.statistics[member].tolist(), strict=True))
    advantage, old = rollout.advantage[places].cpu(), rollout.value[places].cpu()
    return ppo_loss(
        heads["policy"],
        heads["value"],
        mask=seen["mask"] if seen else mask_of(rollout.legal[places].cpu(), ppo.rules),
        action=seen["action"] if seen else rollout.action[places].cpu(),
        old_log_prob=rollout.log_prob[places].cpu(),
        old_value=old / of["scale"],
        advantage=(advantage - of["mean"]) * of["inverse_std"],
        returns=(advantage + old) / of["scale"],
        hparams=hparams,
        mirrored=seen["mirrored"] if seen else None,
    )


def check_gradients(
    ppo: FusedPPO, member: int, module: torch.nn.Module, losses: Losses, *, within: float
) -> float:
    """Hold a member's gradient against autograd's of a module; returns the length of that."""
    losses.total.backward()
    mine = ppo.net.unpack(ppo.net.grad[member] * ppo.net.scale)
    reference = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert len(reference) == len(list(module.parameters()))
    length = float(torch.cat([grad.flatten() for grad in reference.values()]).norm())
    for name, grad in reference.items():
        off = float((mine[name] - grad).norm()) / length
        assert off < within, f"{name}: {off:.2e} of the gradient's length"
    return length
