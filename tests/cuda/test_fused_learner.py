"""The learner on the GPU does what the readable one does, alone and in a population."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import (
    COLLECT,
    NETS,
    PPO_,
    game_of,
    learner,
)
from sparring.errors import ConfigError
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.learner import DivergedError
from sparring.learn.ppo import PPO
from sparring.learn.role_learners import PPO_METRICS
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Schedule


@pytest.mark.parametrize("net", ["towers", "silu, odd widths"])
def test_games_on_the_cpu_give_the_same_rollout(net: str) -> None:
    lineups = [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))]
    host = Pool("skull_king", 64, seed=5, lineups=lineups, slots=2, threads=2)
    device = CudaPool("skull_king", 64, seed=5, lineups=lineups)
    both = [
        FusedPPO(games, COLLECT, PPO_, NETS[net])
        for games in (HostGames(host, "cuda"), DeviceGames(device))
    ]
    for round_ in range(3):
        reports = [ppo.iterate(0.0)[0] for ppo in both]
        if round_ == 0:  # before rounding in other batch sizes can change an action
            for name in ("obs", "legal", "action", "seat", "role", "policy", "reward", "skipped"):
                mine, other = (getattr(ppo.rollout, name) for ppo in both)
                assert torch.equal(mine, other), name
        for key in ("learning/samples", "charts/games"):
            first, second = (report.stats[key] for report in reports)
            assert first == pytest.approx(second, rel=0.02), key
        assert reports[0].decisions == pytest.approx(reports[1].decisions, rel=0.02)
    first, second = (report.stats["losses/value_loss"] for report in reports)
    assert first == pytest.approx(second, rel=0.2)


@pytest.mark.parametrize("net", ["towers", "silu, odd widths"])
def test_members_learn_what_they_would_alone(net: str) -> None:
    both = learner(net=NETS[net], seeds=(3, 4))
    alone = [learner(net=NETS[net], seeds=(seed,)) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, ppo in enumerate(alone):
            (other,) = ppo.iterate(0.0)
            mine, theirs = reports[member].stats, other.stats
            assert mine["learning/samples"] == theirs["learning/samples"]
            assert mine["losses/entropy"] == pytest.approx(theirs["losses/entropy"], rel=1e-3)


def test_members_may_differ_in_their_knobs() -> None:
    pool = CudaPool("skull_king", 128, seeds=(1, 1))
    configs = [PPO_, replace(PPO_, lr=0.0)]
    ppo = FusedPPO(DeviceGames(pool), COLLECT, configs, NETS["shared"])
    before = ppo.net.weight.clone()
    ppo.iterate(0.0)
    head = ppo.net.layout["value_head.weight"].offset  # which takes on a new unit anyway
    assert not torch.equal(before[0, :head], ppo.net.weight[0, :head])
    assert torch.equal(before[1, :head], ppo.net.weight[1, :head])


def test_an_update_stops_once_the_policy_moved_far_enough() -> None:
    key = "learning/optimizer_steps"
    eager = learner(replace(PPO_, epochs=4, target_kl=1e-9))
    assert eager.iterate(0.0)[0].stats[key] == eager.update.minibatches
    patient = learner(replace(PPO_, epochs=4))
    assert patient.iterate(0.0)[0].stats[key] == 4 * patient.update.minibatches


def test_a_loss_that_is_not_finite_is_never_stepped_on() -> None:
    ppo = learner()
    ppo.iterate(0.0)
    ppo.net.weight[0, 3] = torch.inf
    ppo.net.compute[0, 3] = torch.inf
    before = ppo.net.weight.clone()
    with pytest.raises(DivergedError, match="is not finite with a learning rate"):
        ppo.iterate(0.0)
    head = ppo.net.layout["value_head.weight"].offset
    assert torch.equal(before[:, :head], ppo.net.weight[:, :head])


def test_a_member_that_diverges_is_stopped_alone() -> None:
    alone = learner(seeds=(3, 5), graphs=True)
    ppo = learner(seeds=(3, 4, 5), graphs=True)
    for one in (alone, ppo):
        one.iterate(0.0)
    ppo.net.weight[1, 3] = ppo.net.compute[1, 3] = torch.inf
    before = ppo.snapshot(1)
    for number in range(4):
        reports, others = ppo.iterate(0.0), alone.iterate(0.0)
        assert [bool(report.diverged) for report in reports] == [False, True, False]
        assert reports[1].stats == {}
        assert "update 1: a loss, gradient or weight of member 1 (seed 4)" in reports[1].diverged
        for mine, theirs in zip((reports[0], reports[2]), others, strict=True):
            key = "learning/samples"
            assert mine.stats[key] == pytest.approx(theirs.stats[key], rel=0.02)
            assert mine.diverged == ""
            assert all(np.isfinite(figure) for figure in mine.stats.values()), number
    after = ppo.snapshot(1)
    for group in ("net", "optimizer"):
        for name, tensor in before.tensors[group].items():
            assert torch.equal(tensor, after.tensors[group][name]), (group, name)
    assert after.meta["decisions"] == before.meta["decisions"]
    assert after.blobs == {}
    for member in (0, 2):  # whose games are not held back by those of the broken one
        assert set(ppo.snapshot(member).blobs) == {"games.bin", "open.bin"}
        assert np.isfinite(ppo.policy(member).value(ppo.rollout.obs[:32].cpu().numpy())).all()


def test_a_step_that_breaks_the_weights_is_taken_back() -> None:
    """The loss and its gradient are finite until the rate makes the weights infinite."""
    pool = CudaPool("skull_king", 128, seeds=(1, 2))
    broken = replace(PPO_, max_grad_norm=1e12)
    object.__setattr__(broken, "lr", Schedule.constant(1e38))  # far beyond what may be set
    configs = [PPO_, broken]
    ppo = FusedPPO(DeviceGames(pool), COLLECT, configs, NETS["shared"])
    before = ppo.net.state(1)
    reports = ppo.iterate(0.0)
    while not reports[1].diverged:
        before = ppo.net.state(1)
        reports = ppo.iterate(0.0)
    assert all(bool(tensor.isfinite().all()) for tensor in before.values())
    for name, tensor in before.items():
        assert torch.equal(tensor, ppo.net.state(1)[name]), name
    assert reports[0].diverged == ""


def test_a_restored_member_learns_again() -> None:
    ppo = learner(seeds=(3, 4))
    ppo.iterate(0.0)
    good = ppo.snapshot(1)
    ppo.net.weight[1, 3] = ppo.net.compute[1, 3] = torch.inf
    assert ppo.iterate(0.0)[1].diverged
    ppo.restore(good, 1)
    assert ppo.iterate(0.0)[1].diverged == ""


def test_reports_count_the_learners_own_decisions() -> None:
    ppo = learner()
    before = ppo.iterate(0.0)[0]
    after = ppo.iterate(0.0)[0]
    own = int((ppo.rollout.policy == 0).sum())
    assert after.decisions - before.decisions == own
    assert after.samples - before.samples == after.stats["learning/samples"]
    assert after.opponent_rows == 0
    wanted = {f"losses/{name}" for name in (*PPO_METRICS, "explained_variance", "grad_norm")}
    wanted |= {f"learning/{name}" for name in ("lr", "entropy_weight", "value_scale")}
    assert wanted | {"charts/games", "charts/gpu_busy"} <= after.stats.keys()
    assert all(np.isfinite(figure) for figure in after.stats.values())


def test_a_policy_that_nobody_answers_is_refused() -> None:
    seats = [Lineup((0, 0, 0, 3))]
    pool = CudaPool("skull_king", 64, lineups=seats)
    with pytest.raises(ConfigError, match="policy 3 is in the line-ups but has no player"):
        FusedPPO(DeviceGames(pool), COLLECT, PPO_, NETS["shared"])
    ppo = learner()
    ppo.iterate(0.0)
    ppo.pool.set_lineups(seats)
    with pytest.raises(ConfigError, match="policy 3 is in the line-ups but has no player"):
        ppo.iterate(0.0)


@pytest.mark.parametrize("net", ["towers", "gaussian", "silu, odd widths"])
def test_a_snapshot_is_that_of_the_readable_learner(net: str) -> None:
    game, config = game_of(net), replace(PPO_, gamma_into=())
    fused = learner(config, NETS[net], game=game)
    for _ in range(2):
        fused.iterate(0.0)
    taken = fused.snapshot()
    pool = Pool(fused.rules, 64, seed=0, threads=2)
    readable = PPO(pool, COLLECT, config, NETS[net], seed=0)
    readable.restore(taken)
    again = readable.snapshot()
    assert again.blobs == taken.blobs
    assert again.meta == taken.meta
    for group, tensors in taken.tensors.items():
        assert tensors.keys() == again.tensors[group].keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, again.tensors[group][name]), (group, name)
    readable.iterate(0.0)
    other = learner(config, NETS[net], game=game)
    other.restore(readable.snapshot())
    assert other.updates == 3
    for name, tensor in readable.snapshot().tensors["net"].items():
        assert torch.equal(tensor, other.snapshot().tensors["net"][name]), name
    other.iterate(0.0)
    obs = fused.rollout.obs[:32].cpu().numpy()
    assert np.isfinite(other.policy().value(obs)).all()


def test_a_restored_member_goes_on_bit_for_bit() -> None:
    first = learner(seeds=(1, 2), graphs=True)
    for _ in range(2):
        first.iterate(0.0)
    second = learner(seeds=(1, 2), graphs=True)
    for member in range(2):
        second.restore(first.snapshot(member), member)
    for _ in range(2):
        reports = [ppo.iterate(0.0) for ppo in (first, second)]
    for mine, other in zip(*reports, strict=True):
        assert (mine.decisions, mine.samples) == (other.decisions, other.samples)
    assert torch.equal(first.net.weight, second.net.weight)
    assert first.games.state(1) == second.games.state(1)


def test_a_rehearsal_leaves_everything_as_it_was() -> None:
    ppo = learner(graphs=True)
    for _ in range(3):
        ppo.iterate(0.0)
    before = ppo.snapshot()
    for _ in range(3):
        (report,) = ppo.dry_run()
    after = ppo.snapshot()
    assert report.samples > before.meta["samples"]
    assert after.blobs == before.blobs
    assert after.meta == before.meta
    for group, tensors in before.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, after.tensors[group][name]), (group, name)


@pytest.mark.parametrize("net", ["shared", "silu, odd widths"])
def test_a_learner_with_memory_trains(net: str) -> None:
    ppo = learner(net=NETS[net], memory=32, graphs=True)
    assert ppo.rollout.obs.shape[1] == ppo.rules.obs_bytes + 32
    for _ in range(3):
        (report,) = ppo.iterate(0.0)
    assert np.isfinite(report.stats["losses/policy_loss"])
    again = learner(net=NETS[net], memory=32, graphs=True)
    again.restore(ppo.snapshot())
    for each in (ppo, again):
        each.iterate(0.0)
    assert torch.equal(again.net.weight, ppo.net.weight)
