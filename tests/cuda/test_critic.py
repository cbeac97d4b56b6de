"""The critic that sees, inside the graphs of a GPU: by kernels, by autograd, for every member."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from learn.fused_helpers import COLLECT, NETS, PPO_, ROUNDED
from sparring.config import NetConfig, PPOConfig
from sparring.learn.critic import CRITIC, CRITIC_OPTIMIZER, fresh_critic
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.fused.critic import FusedCritic
from sparring.nets.heads import VALUE
from sparring.nets.run.captured import CapturedNet
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment
from sparring.store.policies import load_policy

KERNELS = replace(NETS["shared"], critic="full", critic_hidden=(48, 16))
AUTOGRAD = replace(KERNELS, activation="silu")
GAMES = (*("dark_hex", "goofspiel", "kuhhandel", "kuhn_poker", "kuhn_poker_3", "leduc_poker"),)
GAMES += ("liars_dice", "phantom_tic_tac_toe", "skull_king")


def learner(
    net: NetConfig = KERNELS,
    game: str = "skull_king",
    seeds: tuple[int, ...] = (0,),
    *,
    collect: Any = COLLECT,
    config: PPOConfig = PPO_,
    **options: Any,
) -> FusedPPO:
    config = config if game == "skull_king" else replace(config, gamma_into=())
    pool = CudaPool(game, collect.games * len(seeds), seeds=seeds)
    return FusedPPO(DeviceGames(pool), collect, config, net, **options)


def critic_of(ppo: FusedPPO) -> FusedCritic:
    assert ppo.update.critic
    return ppo.update.critic


def module_of(critic: FusedCritic, net: NetConfig, member: int) -> torch.nn.Module:
    module = fresh_critic(critic.rows, net, 0)
    module.load_state_dict(critic.net.state(member))
    return module


@pytest.mark.parametrize("net", [KERNELS, AUTOGRAD])
@pytest.mark.parametrize("game", GAMES)
def test_values_are_those_of_the_module(game: str, net: NetConfig) -> None:
    ppo = learner(net, game, graphs=False)
    for _ in range(2):
        ppo.iterate(0.0)
    critic = critic_of(ppo)
    assert isinstance(critic.net, CapturedNet) == (net is AUTOGRAD)
    critic.fill()
    with torch.no_grad():
        wanted = module_of(critic, net, 0)(critic.obs.cpu())[VALUE]
    found = ppo.rollout.value.cpu() / float(ppo.net.value_scale[0])
    torch.testing.assert_close(found, wanted, atol=2e-3, rtol=2e-3)
    front, rollout = slice(0, 256), ppo.rollout
    assert rollout.hidden is not None
    seat = critic.columns.seat[front].cpu()
    rows = critic.rows.build(rollout.obs[front].cpu(), rollout.hidden[front].cpu(), seat)
    assert torch.equal(critic.obs[front].cpu(), rows)


@pytest.mark.parametrize("net", [KERNELS, replace(KERNELS, activation="tanh"), AUTOGRAD])
@pytest.mark.parametrize("members", [1, 3])
def test_gradients_are_those_of_autograd(net: NetConfig, members: int) -> None:
    ppo = learner(net, seeds=tuple(range(members)), graphs=False)
    ppo.iterate(0.0)
    critic, update, rollout = critic_of(ppo), ppo.update, ppo.rollout
    update.set_hparams(ppo.updates, [Moment(0, 0.0)] * members)
    ppo.playing.play()
    ppo.estimate_advantages()
    update.fit()
    update.shuffle(0)
    critic.backward(update.picked[0], update.stopped)
    for member in range(members):
        picked = update.picked[0, member, : update.room]
        place = picked[picked >= 0].long()
        module = module_of(critic, net, member)
        returns = (rollout.advantage + rollout.value)[place] / ppo.net.value_scale[member]
        loss = ((module(critic.obs[place].cpu())[VALUE] - returns.cpu()) ** 2).mean()
        loss.backward()
        grads = critic.net.grad[member] * critic.net.scale
        for name, grad in critic.net.unpack(grads).items():
            wanted = module.get_parameter(name).grad
            torch.testing.assert_close(grad, wanted, atol=2e-3, rtol=2e-2)


@pytest.mark.parametrize("graphs", [False, True])
def test_the_policy_plays_as_without_it(graphs: bool) -> None:
    """Before the first update; what is hidden enters no pass that acts."""
    plain, full = (learner(net, graphs=graphs) for net in (KERNELS.played, KERNELS))
    for ppo in (plain, full):
        ppo.update.set_hparams(0, [Moment(0, 0.0)])
        ppo.playing.play()
    assert torch.equal(plain.net.weight, full.net.weight)
    assert torch.equal(plain.rollout.action, full.rollout.action)
    assert torch.equal(plain.rollout.log_prob, full.rollout.log_prob)
    assert full.policy().net.config == KERNELS.played


@pytest.mark.parametrize("net", [KERNELS, AUTOGRAD])
def test_a_restored_learner_goes_on_to_the_bit(net: NetConfig) -> None:
    one, other = (learner(net, graphs=True) for _ in range(2))
    for _ in range(4):
        one.iterate(0.0)
    saved = one.snapshot()
    assert {CRITIC, CRITIC_OPTIMIZER} <= saved.tensors.keys()
    other.restore(saved)
    for _ in range(3):
        stats = [each.iterate(0.0)[0].stats["losses/critic_loss"] for each in (one, other)]
        assert stats[0] == stats[1]
    assert torch.equal(critic_of(one).net.weight, critic_of(other).net.weight)
    assert torch.equal(one.net.weight, other.net.weight)


def test_members_are_runs_of_their_own() -> None:
    ppo = learner(seeds=(0, 1), graphs=True, collect=ROUNDED)
    alone = learner(seeds=(1,), graphs=True, collect=ROUNDED)
    assert torch.equal(critic_of(ppo).net.weight[1], critic_of(alone).net.weight[0])
    for _ in range(3):
        reports, (single,) = ppo.iterate(0.0), alone.iterate(0.0)
    assert reports[1].stats["losses/critic_loss"] == pytest.approx(
        single.stats["losses/critic_loss"], rel=0.05
    )


def test_who_sees_the_cards_knows_more_of_the_returns() -> None:
    ppo = learner(game="kuhn_poker", config=replace(PPO_, lr=1e-2), graphs=True)
    for _ in range(30):
        stats = ppo.iterate(0.0)[0].stats
    assert stats["losses/critic_loss"] < 0.8 * stats["losses/value_loss"]


def test_games_may_be_on_the_cpu() -> None:
    pool = Pool("leduc_poker", 64, seed=0, threads=2, slots=2)
    ppo = FusedPPO(HostGames(pool, "cuda"), COLLECT, replace(PPO_, gamma_into=()), KERNELS)
    for _ in range(3):
        assert ppo.iterate(0.0)[0].stats["losses/critic_loss"] > 0


def test_a_dry_run_leaves_no_trace() -> None:
    one, other = (learner(graphs=True) for _ in range(2))
    for each in (one, other):
        each.iterate(0.0)
    one.dry_run()
    for each in (one, other):
        each.iterate(0.0)
    assert torch.equal(critic_of(one).net.weight, critic_of(other).net.weight)


def test_a_run_is_resumed_to_the_bit(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "device": "cuda",
        "updates": 6,
        "keep": 6,
        "net": {"critic": "full", "hidden": (64,)},
        "collect": {"games": 64, "steps": 16},
        "ppo": {"minibatch": 512},
        "eval": {"off": True},
        "tensorboard": False,
        "checkpoint_every_s": 0.0,
        "quiet": True,
    }
    run = sparring.train("leduc_poker", runs=str(tmp_path), **settings).run
    again = sparring.resume(run, number=2, quiet=True).run
    one, other = (load_policy(where / "checkpoints" / "00000006") for where in (run, again))
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
