"""The unit of values on the GPU is the one that the readable learner would choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, NETS, PPO_, learner, play
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.learn.fused.rollout import keep_pending
from sparring.nets.net import MAX_SCALED_RETURN, next_scale
from sparring.pools.cuda import CudaPool


def long_game(seeds: tuple[int, ...] = (1,)) -> FusedPPO:
    """Kuhhandel pays at its end alone, after many rollouts."""
    pool = CudaPool("kuhhandel", 64 * len(seeds), seeds=seeds)
    config = replace(PPO_, gamma_into=())
    return FusedPPO(DeviceGames(pool), COLLECT, config, NETS["shared"], graphs=False)


def returns_of(ppo: FusedPPO, member: int) -> tuple[np.ndarray, bool]:
    """What the samples of a rollout brought, and whether any was paid."""
    update, rollout = ppo.update, ppo.rollout
    places = update.list[member, : int(update.sample_counts[member])].long()
    returns = (rollout.advantage + rollout.value)[places].double().cpu().numpy()
    return returns, bool((rollout.paid[places] != 0).any())


@pytest.mark.parametrize("game", ["kuhhandel", "skull_king"])
def test_units_are_those_of_the_cpu(game: str) -> None:
    seeds = (1, 2)
    ppo = long_game(seeds) if game == "kuhhandel" else learner(seeds=seeds)
    known, met = [False, False], 0
    for _ in range(40):
        before = ppo.net.value_scale.tolist()
        play(ppo)
        for member in range(2):
            returns, paid = returns_of(ppo, member)
            size, wanted = float(np.sqrt(np.mean(returns**2))), before[member]
            if paid:
                wanted = next_scale(wanted, size) if known[member] else size
                known[member], met = True, met + 1
            assert float(ppo.net.value_scale[member]) == pytest.approx(wanted, rel=1e-5)
        assert ppo.update.has_value_scale.tolist() == known
        keep_pending(ppo.playing.kernels, ppo.rollout)
        ppo.playing.updates += 1
    assert met > 4


def test_the_first_reward_of_a_long_game_is_one_unit_and_not_a_hundred() -> None:
    ppo, losses = long_game(), []
    while not ppo.snapshot().meta["has_value_scale"]:
        (report,) = ppo.iterate(0.0)
        losses.append(report.stats["losses/value_loss"])
        assert len(losses) < 200
    assert len(losses) > 5
    assert losses[-1] == pytest.approx(1.0, abs=0.2)
    for _ in range(10):
        (report,) = ppo.iterate(0.0)
        assert report.stats["losses/value_loss"] < 1.2 * MAX_SCALED_RETURN**2


def test_a_snapshot_says_whether_values_have_a_unit() -> None:
    ppo, again = long_game(), long_game()
    ppo.iterate(0.0)
    again.restore(ppo.snapshot())
    assert again.update.has_value_scale.tolist() == [0]
    assert torch.equal(again.net.value_scale, torch.ones_like(again.net.value_scale))
