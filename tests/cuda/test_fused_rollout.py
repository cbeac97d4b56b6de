"""Rollouts on the GPU: actions, transitions and cuts are those of the CPU."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import (
    COLLECT,
    NETS,
    PPO_,
    arrays,
    bootstrap_truncated,
    learner,
    policy_bias,
    turn,
)
from sparring.errors import SparringWarning
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.fused.rollout import mask_of
from sparring.learn.transitions import Transitions
from sparring.nets.make import make_net
from sparring.nets.sampling import ActionSampler
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment


def test_actions_are_those_of_the_cpu_sampler() -> None:
    ppo = learner(collect=replace(COLLECT, games=2048))
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.update.clock.fill_(7)
    ppo.playing.play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    logits = ppo.playing.acting[""].passing.logits[0, :, :86] + policy_bias(ppo)
    mask = mask_of(rollout.legal[at].cpu(), ppo.rules).numpy()
    action, log_prob = ActionSampler(0).draw(logits.cpu(), mask, rollout=7, step=step)
    same = action == rollout.action[at].cpu().numpy()
    assert same.mean() > 0.999
    off = np.abs(log_prob - rollout.log_prob[at].cpu().numpy())[same]
    assert off.max() < 1e-4
    assert mask[np.arange(2048), rollout.action[at].cpu().numpy()].all()


@pytest.mark.parametrize("net", ["gaussian", "gaussian, predicted spread"])
def test_continuous_actions_are_those_of_the_cpu_sampler(net: str) -> None:
    ppo = learner(net=NETS[net], collect=replace(COLLECT, games=2048), game="duel")
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.update.clock.fill_(7)
    ppo.playing.play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    head = ppo.playing.acting[""].passing.logits[0, :, :4] + policy_bias(ppo)
    mask = np.zeros((4096, 0), np.uint8)
    action, log_prob = ActionSampler(0).draw(head.cpu(), mask, rollout=7, step=step)
    asked = rollout.policy[step].cpu().numpy() >= 0
    drawn = rollout.action[at].cpu().numpy()
    assert 0.5 < asked.mean() < 1
    assert np.abs(action - drawn)[asked].max() < 1e-3
    assert np.abs(log_prob - rollout.log_prob[at].cpu().numpy())[asked].max() < 1e-3
    assert (drawn[~asked] == 0).all()
    if ppo.net.squash:
        assert np.allclose(rollout.played.cpu().numpy(), np.tanh(drawn), atol=1e-6)


def test_advantages_are_those_of_the_cpu() -> None:
    ppo = learner()
    transitions = Transitions(ppo.rules, 64, 24)
    rollout = ppo.rollout
    for _ in range(3):
        turn(ppo)
        ppo.playing.play()
        played, value = arrays(ppo), rollout.value.cpu().numpy()
        ppo.learn_all()
        transitions.link(**played, gamma=1.0, gamma_into=(0, 1))
        advantage = transitions.advantages(value, 0.95)
        for name in ("end", "next"):
            mine = getattr(rollout, name).cpu().numpy()
            assert np.array_equal(getattr(transitions, name), mine), name
        samples = transitions.samples()
        for name in ("paid", "discount"):
            mine = getattr(rollout, name).cpu().numpy()
            assert np.allclose(getattr(transitions, name)[samples], mine[samples], atol=1e-5), name
        assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-5)
        places = np.sort(ppo.update.list[0, : int(ppo.update.sample_counts[0])].cpu().numpy())
        assert np.array_equal(places, samples)
        ppo.playing.updates += 1


def test_discounts_follow_their_schedules() -> None:
    config = replace(PPO_, gamma_into=(), gamma="0%:1.0,100%:0.5", gae_lambda="0%:0.9,100%:0.1")
    ppo = learner(config)
    transitions = Transitions(ppo.rules, 64, 24)
    for progress in (0.0, 0.6):
        ppo.update.set_hparams(0, [Moment(0, progress)])
        ppo.playing.play()
        played, value = arrays(ppo), ppo.rollout.value.cpu().numpy()
        ppo.learn_all()
        transitions.link(**played, gamma=1 - progress / 2)
        advantage = transitions.advantages(value, 0.9 - 0.8 * progress)
        assert np.allclose(advantage, ppo.rollout.advantage.cpu().numpy(), atol=1e-5)
        assert ppo.update.gamma_into[0].tolist() == pytest.approx([1 - progress / 2] * 2)


def test_games_that_are_cut_are_worth_what_the_network_says() -> None:
    pool = CudaPool("kuhhandel", 64, seed=2, config={"max_decisions": 50})
    collect, config = replace(COLLECT, steps=120), replace(PPO_, gamma_into=())
    ppo = FusedPPO(DeviceGames(pool), collect, config, NETS["shared"], graphs=False)
    for _ in range(3):  # so that values are not all 0
        ppo.iterate(0.0)
    turn(ppo)
    ppo.playing.play()
    rollout = ppo.rollout
    cuts = rollout.truncated.sum(0)
    assert int(cuts.min()) >= 2  # several of every game, all of them kept
    assert torch.equal(rollout.cut_count, cuts.int())
    bootstrap_truncated(ppo)
    module = make_net(pool.rules, NETS["shared"])
    module.load_state_dict(ppo.net.state(0))
    mine = rollout.final_value.flatten().cpu()
    for layer in range(rollout.cut_layers()):
        met = (cuts > layer).cpu()
        values = module.unscaled_values(module(rollout.cut_obs[layer].cpu()[met]))
        where = (rollout.cut_at[layer].cpu()[met] >> 1).long()
        assert torch.allclose(mine[where], values.detach(), atol=1e-4)
    assert int(mine.isfinite().sum()) == int(cuts.sum())
    assert not rollout.cuts_dropped().any()
    transitions = Transitions(pool.rules, 64, 120)
    transitions.load_pending(rollout.open.cpu().numpy().tobytes())
    played, value = arrays(ppo, "final_value"), rollout.value.cpu().numpy()
    ppo.estimate_advantages()
    transitions.link(**played, gamma=1.0)
    advantage = transitions.advantages(value, 0.95)
    assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-4)


def test_a_run_whose_games_are_cut_often_repeats_to_the_bit() -> None:
    runs = []
    for _ in range(2):
        pool = CudaPool("kuhhandel", 2048, seed=2, config={"max_decisions": 20})
        collect, config = replace(COLLECT, games=2048, steps=64), replace(PPO_, gamma_into=())
        ppo = FusedPPO(DeviceGames(pool), collect, config, NETS["shared"])
        for _ in range(4):
            (report,) = ppo.iterate(0.0)
            assert report.stats["learning/cuts_dropped"] == 0
        runs.append(ppo)
    assert int(runs[0].rollout.cut_count.min()) >= 3
    for name in ("cut_count", "cut_at", "cut_obs", "final_value", "advantage"):
        mine, other = (getattr(ppo.rollout, name) for ppo in runs)
        assert torch.equal(
            mine.nan_to_num(7) if mine.is_floating_point() else mine,
            other.nan_to_num(7) if other.is_floating_point() else other,
        ), name
    assert torch.equal(runs[0].net.weight, runs[1].net.weight)


def test_cuts_of_games_on_the_cpu_are_those_of_games_on_the_gpu() -> None:
    collect, config = replace(COLLECT, steps=60), replace(PPO_, gamma_into=())
    flags = {"max_decisions": 12}
    host = Pool("kuhhandel", 64, seed=5, slots=2, threads=2, config=flags)
    device = CudaPool("kuhhandel", 64, seed=5, config=flags)
    both = [
        FusedPPO(games, collect, config, NETS["shared"])
        for games in (HostGames(host, "cuda"), DeviceGames(device))
    ]
    for ppo in both:
        ppo.iterate(0.0)
    first, second = (ppo.rollout for ppo in both)
    assert first.cut_count.tolist() == second.cut_count.tolist() == [5] * 64
    assert torch.equal(first.cut_at[:5], second.cut_at[:5])
    assert torch.equal(first.cut_obs[:5], second.cut_obs[:5])
    assert torch.allclose(first.final_value, second.final_value, atol=1e-4, equal_nan=True)


def test_cuts_without_room_are_told_once_and_counted() -> None:
    pool = CudaPool("kuhhandel", 64, seed=2, config={"max_decisions": 10})
    collect, config = replace(COLLECT, steps=40), replace(PPO_, gamma_into=())
    ppo = FusedPPO(DeviceGames(pool), collect, config, NETS["shared"], graphs=False)
    rollout = ppo.rollout
    rollout.cut_obs, rollout.cut_at = rollout.cut_obs[:2], rollout.cut_at[:2]
    with pytest.warns(
        SparringWarning, match="truncated more than 2 times in a rollout of 40 steps"
    ):
        (report,) = ppo.iterate(0.0)
    assert report.stats["learning/cuts_dropped"] == 2 * 64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ppo.iterate(0.0)
