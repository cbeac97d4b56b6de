"""Averaged weights of GPU learners: the formula of every member, what plays, exact resumption."""

from __future__ import annotations

import pytest
import torch

from learn.fused_helpers import COLLECT, NETS, PPO_
from sparring.learn.averaging import TRAINED, average_step
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.pools.cuda import CudaPool

SHARE = 0.5


def learner(net: str, seeds: tuple[int, ...] = (0, 1), average: float = SHARE) -> FusedPPO:
    pool = CudaPool("skull_king", COLLECT.games * len(seeds), seeds=seeds)
    return FusedPPO(DeviceGames(pool), COLLECT, PPO_, NETS[net], average=average)


@pytest.mark.parametrize("net", ["shared", "silu, odd widths"])
def test_it_is_the_average_of_the_weights_of_every_update(net: str) -> None:
    averaged, plain = learner(net), learner(net, average=0)
    slow = [averaged.snapshot(member).tensors["net"] for member in range(2)]
    before = [0, 0]
    for _ in range(5):
        made = [report.decisions for report in averaged.iterate(0.0)]
        plain.iterate(0.0)
        for member in range(2):
            newest = plain.snapshot(member).tensors["net"]
            step = average_step(SHARE, before[member], made[member])
            for name, value in slow[member].items():
                slow[member][name] = value + step * (newest[name] - value)
        before = made
    for member in range(2):
        saved = averaged.snapshot(member).tensors
        newest = plain.snapshot(member).tensors["net"]
        plays = averaged.policy(member).net.state_dict()
        for name, value in slow[member].items():
            assert torch.equal(saved[TRAINED][name], newest[name])
            torch.testing.assert_close(saved["net"][name], value, rtol=1e-5, atol=1e-6)
            assert torch.equal(plays[name], saved["net"][name])


def test_a_restored_learner_goes_on_to_the_bit() -> None:
    one, other = learner("shared"), learner("shared")
    for _ in range(3):
        one.iterate(0.0)
    for member in range(2):
        other.restore(one.snapshot(member), member)
    for _ in range(2):
        one.iterate(0.0)
        other.iterate(0.0)
    for member in range(2):
        mine, theirs = one.snapshot(member).tensors, other.snapshot(member).tensors
        for group in ("net", TRAINED):
            assert all(torch.equal(mine[group][name], theirs[group][name]) for name in mine[group])
