"""Roles that are paid differently are linked on the GPU as on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, NETS, PPO_, arrays, turn
from sparring.config import TrainConfig
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.learn.ppo import PPO
from sparring.learn.transitions import Transitions
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged

REWARDS = {"score_delta": (2.0, 1.0), "worker": (0.0, 0.5)}


def make(rewards: dict[str, tuple[float, float]], *, graphs: bool = False) -> FusedPPO:
    pool = CudaPool("skull_king", 64, seed=3, rewards=rewards)
    return FusedPPO(DeviceGames(pool), COLLECT, PPO_, NETS["towers"], by_role=True, graphs=graphs)


def test_transitions_of_roles_are_those_of_the_cpu() -> None:
    ppo = make(REWARDS)
    transitions, rollout = Transitions(ppo.rules, 64, 24, by_role=True), ppo.rollout
    for _ in range(4):
        turn(ppo)
        ppo.playing.play()
        played, value = arrays(ppo), rollout.value.cpu().numpy()
        ppo.learn_all()
        transitions.link(**played, gamma=1.0, gamma_into=(0, 1))
        advantage = transitions.advantages(value, 0.95)
        for name in ("end", "next"):
            assert np.array_equal(getattr(transitions, name), getattr(rollout, name).cpu().numpy())
        samples = transitions.samples()
        for name in ("paid", "discount"):
            mine = getattr(rollout, name).cpu().numpy()
            assert np.allclose(getattr(transitions, name)[samples], mine[samples], atol=1e-5), name
        assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-5)
        ppo.playing.updates += 1


def test_a_weight_of_a_role_changes_what_that_role_is_paid_and_nothing_else() -> None:
    paid = []
    for worker in (1.0, 1000.0):
        ppo = make({"score_delta": (2.0, worker)})
        turn(ppo)
        ppo.playing.play()
        ppo.estimate_advantages()
        places = ppo.update.list[0, : int(ppo.update.sample_counts[0])].long()
        role = ppo.rollout.role.flatten()[places - ppo.rollout.max_pending]
        mine = ppo.rollout.paid[places]
        paid.append([mine[role == one] for one in (0, 1)])
    (manager, worker_paid), (same, more) = paid
    assert manager.any()
    assert worker_paid.any()
    assert torch.equal(manager, same)
    assert torch.allclose(more, 1000 * worker_paid)


def test_a_run_of_roles_goes_on_with_the_other_learner() -> None:
    fused = make(REWARDS, graphs=True)
    for _ in range(3):
        fused.iterate(0.0)
    taken = fused.snapshot()
    pool = Pool("skull_king", 64, seed=3, threads=2, rewards=REWARDS)
    readable = PPO(pool, replace(COLLECT), PPO_, NETS["towers"], seed=3, by_role=True)
    readable.restore(taken)
    again = readable.snapshot()
    assert (again.blobs, again.meta) == (taken.blobs, taken.meta)
    (report,) = readable.iterate(0.0)
    assert np.isfinite(report.stats["losses/value_loss"])


def test_a_plan_pays_roles_on_the_gpu() -> None:
    changes = {
        "device": "cuda:0",
        "rewards": ("worker.score_delta=3",),
        "collect": {"games": 64, "steps": 16},
        "net": {"hidden": (64,)},
        "ppo": {"minibatch": 512},
    }
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    ppo = make_learner(config, resolve([config]))
    assert isinstance(ppo, FusedPPO)
    assert ppo.rollout.chains == 2
    (report,) = ppo.iterate(0.0)
    assert report.stats["learning/value_scale"] == pytest.approx(
        float(ppo.net.value_scale[0]), rel=1e-6
    )
    ratio = ppo.rollout.reward[..., 1].sum() / ppo.rollout.reward[..., 0].sum()
    assert float(ratio) == pytest.approx(3.0, rel=1e-3)
