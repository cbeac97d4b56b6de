"""Learning from replay on the GPU: the rings, samples and gradients of the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig, SACConfig
from sparring.learn.dqn import DQN
from sparring.learn.fused import DeviceGames
from sparring.learn.fused.dqn import FusedDQN
from sparring.learn.fused.sac import FusedSAC
from sparring.learn.replay import ReplayBatch
from sparring.learn.sac import SAC
from sparring.learn.transforms import mirrors_of, random_bits
from sparring.learn.transitions import TRUNCATED
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(cpu="float32", games=32, steps=5, bf16=False)
REPLAY = ReplayConfig(capacity=3000, batch=64, warmup=1200, ratio=4.0, n_step=3)
NET = NetConfig(hidden=(64, 32))
BOX = replace(NET, std="predicted", squash=True)
DQN_ = DQNConfig(epsilon=0.3, lr=1e-3)
SAC_ = SACConfig(lr=1e-3, critic_lr=1e-3)
FusedReplay = FusedDQN | FusedSAC
GAMES: dict[str, dict[str, Any]] = {
    "skull_king": {"lineups": [Lineup((0,) * 4), Lineup((0, "captain", "random", "random"))]},
    "laser_hockey_discrete": {
        "lineups": [Lineup((0, 0)), Lineup((0, "weak"))],
        "config": {"mode": "TRAIN_SHOOTING"},
    },
    "laser_hockey": {
        "lineups": [Lineup((0, 0)), Lineup((0, "weak"))],
        "config": {"mode": "TRAIN_SHOOTING"},
    },
    "shogi": {"lineups": [Lineup((0, 0))], "config": {"max_plies": 12}},
    "duel": {"lineups": [Lineup((0, 0)), Lineup((0, "pusher"))]},
    "tic_tac_toe": {"lineups": [Lineup((0, 0)), Lineup((0, "random"))]},
}
"""Cut soon, so that last rows are in the ring."""


def is_box(game: str) -> bool:
    return game in ("laser_hockey", "duel")


def on_gpu(
    game: str,
    *,
    seeds: tuple[int, ...] = (3,),
    replay: ReplayConfig = REPLAY,
    algo: str = "",
    graphs: bool = False,
    collect: CollectConfig = COLLECT,
) -> FusedReplay:
    pool = CudaPool(game, collect.games * len(seeds), seeds=seeds, **GAMES[game])
    games, net = DeviceGames(pool), BOX if is_box(game) else NET
    if (algo or ("sac" if is_box(game) else "dqn")) == "sac":
        return FusedSAC(games, collect, [SAC_] * len(seeds), replay, net, graphs=graphs)
    return FusedDQN(games, collect, [DQN_] * len(seeds), replay, net, graphs=graphs)


def on_cpu(
    game: str,
    *,
    seed: int = 3,
    replay: ReplayConfig = REPLAY,
    algo: str = "",
    collect: CollectConfig = COLLECT,
) -> DQN | SAC:
    pool, net = Pool(game, collect.games, seed=seed, **GAMES[game]), BOX if is_box(game) else NET
    if (algo or ("sac" if is_box(game) else "dqn")) == "sac":
        return SAC(pool, collect, SAC_, replay, net, seed=seed)
    return DQN(pool, collect, DQN_, replay, net, seed=seed)


def assert_same_ring(gpu: FusedReplay, member: int, cpu: DQN | SAC) -> None:
    mine, theirs = gpu.replay, cpu.experience.replay
    assert int(mine.heads[member]) == theirs.head
    assert int(mine.firsts[member]) == theirs.first
    kept = np.arange(theirs.first, theirs.head) % theirs.config.capacity
    ring = mine._ring_of(member)
    for name, column in theirs.ring.columns.items():
        fit = kept if name in ("obs", "mask", "end") else kept[theirs.ring["end"][kept] != 0]
        found, wanted = ring[name][fit], column[fit]
        if gpu.rules.box and name in ("obs", "action", "paid"):  # tanh is rounded differently
            found, wanted = found.view(np.float32), wanted.view(np.float32)
            assert np.allclose(found, wanted, atol=1e-4), name
        else:
            assert np.array_equal(found, wanted), name


@pytest.mark.parametrize("game", [game for game in GAMES if game != "laser_hockey"])
def test_a_random_warm_up_fills_the_same_ring(game: str) -> None:
    gpu, cpu = on_gpu(game), on_cpu(game)
    replay = replace(REPLAY, warmup=10**9)
    gpu.experience.config = cpu.experience.config = replay
    for _ in range(20):
        gpu.iterate(0.0)
    cpu.experience.rounds = 1
    for _ in range(gpu.experience.rollouts):
        cpu.iterate(0.0)
    assert gpu.playing.decisions == [cpu.playing.collector.decisions]
    assert_same_ring(gpu, 0, cpu)
    assert int(gpu.experience.figures.of(0)["sampleable"]) == len(cpu.experience.replay)
    if game in ("shogi", "duel", "laser_hockey_discrete"):
        assert (cpu.experience.replay.ring["end"] == TRUNCATED).any()
    mine = gpu.replay
    for number in (0, 7):
        samples = cpu.experience.replay.sample(number)
        mine.number.fill_(number)
        mine.draw()
        assert np.array_equal(mine.picked[0].cpu().numpy(), samples.places)
        assert torch.allclose(mine.batch_paid[0].cpu(), samples.reward, atol=1e-4, rtol=1e-5)
        assert torch.allclose(mine.batch_discount[0].cpu(), samples.discount, rtol=1e-5)
        assert torch.equal(mine.masks(mine.after)[0].cpu(), samples.next_mask)
        assert torch.equal(mine.masks(mine.picked)[0].cpu(), samples.mask)
        if not gpu.rules.box:
            assert torch.equal(mine.rows(mine.after)[0].cpu(), samples.next_obs)
            assert torch.equal(mine.actions()[0].cpu(), samples.action)


def test_priorities_are_those_of_the_host() -> None:
    replay = replace(REPLAY, prioritized=True, warmup=10**9)
    gpu, cpu = on_gpu("tic_tac_toe", replay=replay), on_cpu("tic_tac_toe", replay=replay)
    for _ in range(6):
        gpu.iterate(0.0)
    cpu.experience.rounds = 1
    for _ in range(gpu.experience.rollouts):
        cpu.iterate(0.0)
    rng = np.random.default_rng(0)
    for number in range(20):
        samples = cpu.experience.replay.sample(number, 0.7)
        gpu.replay.number.fill_(number)
        gpu.replay.correction.fill_(0.7)
        gpu.replay.draw()
        assert np.array_equal(gpu.replay.picked[0].cpu().numpy(), samples.places)
        assert torch.allclose(gpu.replay.weight[0].cpu(), samples.weight, rtol=1e-6)
        error = rng.exponential(size=replay.batch).astype(np.float32)
        assert isinstance(samples.places, np.ndarray)
        cpu.experience.replay.reprioritize(samples.places, error)
        gpu.replay.reprioritize(torch.from_numpy(error)[None].cuda())
        assert cpu.experience.replay.weight is not None
        assert np.array_equal(
            gpu.replay.leaf[0].cpu().numpy().view(np.uint32), cpu.experience.replay.weight
        )


def test_every_member_takes_back_as_much_as_its_own_decisions_say() -> None:
    correction = Schedule.read("0:0.4,1000:1.0")
    replay = replace(REPLAY, prioritized=True, priority_correction=correction)
    gpu = on_gpu("tic_tac_toe", seeds=(3, 5), replay=replay)
    gpu.set_hparams([Moment(500, 0.0), Moment(1000, 0.0)])
    assert gpu.replay.correction.tolist() == pytest.approx([0.7, 1.0])


def drawn_from(gpu: FusedReplay) -> ReplayBatch:
    """The batch that the GPU drew, for the host."""
    replay = gpu.replay
    return ReplayBatch(
        obs=replay.rows(replay.picked)[0].cpu(),
        mask=replay.masks(replay.picked)[0].cpu(),
        action=replay.actions()[0].cpu(),
        reward=replay.batch_paid[0].cpu(),
        discount=replay.batch_discount[0].cpu(),
        next_obs=replay.rows(replay.after)[0].cpu(),
        next_mask=replay.masks(replay.after)[0].cpu(),
        weight=replay.weight[0].cpu(),
        places=replay.picked[0].cpu(),
    )


@pytest.mark.parametrize(
    ("game", "algo"),
    [
        ("tic_tac_toe", "dqn"),
        ("skull_king", "dqn"),
        ("laser_hockey", "sac"),
        ("laser_hockey_discrete", "sac"),
    ],
)
def test_gradients_are_those_of_the_host(game: str, algo: str) -> None:
    gpu, cpu = on_gpu(game, algo=algo), on_cpu(game, algo=algo)
    for _ in range(30):
        gpu.iterate(0.0)
    assert gpu.experience.steps[0] > 20
    cpu.restore(gpu.snapshot())
    if not gpu.rules.box:
        assert_same_ring(gpu, 0, cpu)
    cpu.set_hparams(Moment(gpu.playing.decisions[0], 0.0))
    gpu.replay.draw()
    samples = drawn_from(gpu)
    if isinstance(cpu, SAC) and isinstance(gpu, FusedSAC) and gpu.rules.box:
        gpu.replay.noise(2 * gpu.rules.box, gpu._noise)
        noise = torch.stack(gpu._noise[0].cpu().chunk(2, -1))
        cpu._noise = lambda: noise  # type: ignore[method-assign]
    gpu.experience.quota.fill_(1)
    gpu.experience.draw_and(gpu.step)
    cpu.step(samples)
    mine, theirs = gpu.learner_state(0), cpu.learner_state()
    moments = [group for group in theirs if group.endswith("optimizer")]
    assert moments
    for group in moments:
        for name, tensor in theirs[group].items():
            if name.endswith("exp_avg"):  # a tenth of the gradient, and what was there before
                far = (mine[group][name] - tensor).abs().max()
                assert far <= 1e-5 * max(1.0, float(tensor.abs().max())), (group, name, far)


@pytest.mark.parametrize(("game", "algo"), [("tic_tac_toe", "dqn"), ("laser_hockey", "sac")])
def test_graphs_change_nothing(game: str, algo: str) -> None:
    plain, graphs = on_gpu(game, algo=algo), on_gpu(game, algo=algo, graphs=True)
    for _ in range(14):
        one, other = plain.iterate(0.0)[0], graphs.iterate(0.0)[0]
        timed = {"charts/gpu_busy"}
        assert {k: v for k, v in one.stats.items() if k not in timed} == pytest.approx(
            {k: v for k, v in other.stats.items() if k not in timed}, rel=1e-3, abs=1e-4
        )
    assert plain.experience.steps == graphs.experience.steps
    assert plain.experience.steps[0] > 0


@pytest.mark.parametrize(("game", "algo"), [("tic_tac_toe", "dqn"), ("laser_hockey", "sac")])
def test_members_learn_as_if_alone(game: str, algo: str) -> None:
    seldom = replace(REPLAY, ratio=0.3)  # products of several members are rounded differently
    both = on_gpu(game, algo=algo, seeds=(3, 5), replay=seldom)
    for _ in range(4):
        both.iterate(0.0)
    for member, seed in enumerate((3, 5)):
        alone = on_gpu(game, algo=algo, seeds=(seed,), replay=seldom)
        while alone.playing.decisions[0] < both.playing.decisions[member]:
            alone.iterate(0.0)
        assert alone.playing.decisions[0] == both.playing.decisions[member]
        assert alone.experience.steps[0] == both.experience.steps[member] > 5
        for name, tensor in alone.net.state(0).items():
            found = both.net.state(member)[name]
            assert torch.allclose(found, tensor, rtol=1e-2, atol=2e-3), name


@pytest.mark.parametrize(("game", "algo"), [("tic_tac_toe", "dqn"), ("laser_hockey", "sac")])
def test_a_snapshot_goes_on_where_it_was_taken(game: str, algo: str) -> None:
    first = on_gpu(game, algo=algo)
    for _ in range(12):
        first.iterate(0.0)
    second = on_gpu(game, algo=algo)
    second.restore(first.snapshot())
    assert first.experience.steps[0] > 0
    for _ in range(4):
        one, other = first.iterate(0.0)[0], second.iterate(0.0)[0]
        assert (one.decisions, one.samples) == (other.decisions, other.samples)
    for name, tensor in first.net.state(0).items():
        assert torch.equal(second.net.state(0)[name], tensor), name
    assert torch.equal(first.replay.end, second.replay.end)


@pytest.mark.parametrize(("game", "algo"), [("tic_tac_toe", "dqn"), ("laser_hockey", "sac")])
def test_a_rehearsal_changes_nothing(game: str, algo: str) -> None:
    learner = on_gpu(game, algo=algo, graphs=True)
    for _ in range(12):
        learner.iterate(0.0)
    before, steps = learner.snapshot(), list(learner.experience.steps)
    (report,) = learner.dry_run()
    assert report.stats["learning/samples"] > 0
    after = learner.snapshot()
    assert learner.experience.steps == steps
    for group in ("net", *learner.learner_state(0)):
        for name, tensor in before.tensors[group].items():
            assert torch.equal(after.tensors[group][name], tensor), (group, name)


def test_large_batches_in_bf16_learn() -> None:
    collect = CollectConfig(games=1024, steps=8)
    replay = ReplayConfig(capacity=200_000, batch=32_768, warmup=20_000, ratio=8.0)
    learner = on_gpu("laser_hockey", collect=collect, replay=replay, graphs=True)
    for _ in range(8):
        (report,) = learner.iterate(0.0)
    assert np.isfinite(list(report.stats.values())).all()
    assert report.stats["learning/replay_ratio"] == pytest.approx(8.0, rel=0.3)


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_mirror_images_are_those_of_the_host(game: str) -> None:
    collect = replace(COLLECT, mirror=True)
    gpu, cpu = on_gpu(game, collect=collect), on_cpu(game, collect=collect)
    for _ in range(4):
        gpu.iterate(0.0)
    plain = on_gpu(game)
    plain.replay.load_state(0, *saved(gpu))
    gpu.replay.number.fill_(5)
    plain.replay.number.fill_(5)
    gpu.replay.draw()
    plain.replay.draw()
    coin = random_bits(3, 5, REPLAY.batch)
    assert torch.equal(gpu.replay.coin[0].cpu().bool(), coin)
    (mirror,) = mirrors_of(cpu.rules, collect, "cpu")
    samples = mirror.mirror_batch(drawn_from(plain), coin)
    assert torch.equal(gpu.replay.rows(gpu.replay.picked)[0].cpu(), samples.obs)
    assert torch.equal(gpu.replay.actions()[0].cpu(), samples.action)
    assert torch.equal(gpu.replay.masks(gpu.replay.after)[0].cpu(), samples.next_mask)


def saved(gpu: FusedReplay) -> tuple[Any, Any, Any]:
    tensors, segments, counts = gpu.replay.state(0)
    return tensors, {name: read() for name, read in segments.items()}, counts
