"""Two processes on one GPU learn as one with twice the games; sums then go through the host.

NCCL refuses two processes on one GPU: of its sums, one process alone is tested here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import sparring
from cluster.test_replicas import replica_pids
from sparring.cli import main
from sparring.cluster.learners import with_replicas
from sparring.cluster.replicas.devices import DeviceReplicas
from sparring.cluster.replicas.process_group import TorchProcessGroup
from sparring.config import (
    CollectConfig,
    DistributedConfig,
    EvaluationConfig,
    NetConfig,
    PPOConfig,
    TrainConfig,
)
from sparring.errors import ConfigError
from sparring.learn.algos import make_ppo
from sparring.learn.fused import FusedPPO
from sparring.learn.learner import LostError, Overrides, Snapshot
from sparring.pools import Lineup
from sparring.pools.cuda import CudaPool
from sparring.schedule import Schedule
from sparring.training.planning.plan import resolve

WHOLE = PPOConfig(minibatch=1 << 20, epochs=1, lr=Schedule.constant(3e-4))
"""Every update is one step with all samples."""
PARTS = PPOConfig(minibatch=512, epochs=2, lr=Schedule.constant(3e-4))


def config_of(ppo: PPOConfig, **changes: Any) -> TrainConfig:
    given: dict[str, Any] = {
        "game": "skull_king",
        "set": ("rounds=1,2",),
        "device": "cuda",
        "devices": "0,0",
        "seed": 5,
        "net": NetConfig(hidden=(64, 64)),
        "collect": CollectConfig(games=64, steps=24, bf16=False),
        "ppo": ppo,
        "eval": EvaluationConfig(off=True),
        "distributed": DistributedConfig(shared_gpu=True, timeout_s=120.0),
    }
    return TrainConfig(**{**given, **changes})


def single(config: TrainConfig) -> FusedPPO:
    """One process with all games."""
    alone = replace(config, devices="", distributed=DistributedConfig())
    made = make_ppo(resolve([alone]))
    assert isinstance(made, FusedPPO)
    return made


@contextmanager
def two(config: TrainConfig) -> Iterator[DeviceReplicas]:
    learner = with_replicas(config, resolve([config]))
    assert isinstance(learner, DeviceReplicas)
    try:
        yield learner
    finally:
        pids = [other.pid for other in learner.others]
        learner.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def weights_of(ppo: Any) -> torch.Tensor:
    return (ppo.net.weight * (ppo.net.scale != 0)).detach().clone()


SHOWN = ("losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl")
NETS = {
    "kernels": NetConfig(hidden=(64, 64)),
    "gru": NetConfig(hidden=(32,), memory="gru", memory_width=16, bptt_steps=4),
}


@pytest.mark.parametrize("net", NETS)
def test_an_update_is_that_of_one_process_with_twice_the_games(net: str) -> None:
    config = config_of(WHOLE, net=NETS[net])
    one = single(config)
    with two(config) as both:
        (mine,), (theirs,) = both.iterate(0.0), one.iterate(0.0)
        assert (weights_of(both) - weights_of(one)).abs().max() <= 1e-6
        for name in (*SHOWN, "losses/grad_norm", "losses/explained_variance"):
            assert mine.stats[name] == pytest.approx(theirs.stats[name], abs=1e-5), name
        counted = ("learning/samples", "learning/decisions", "learning/optimizer_steps")
        for name in (*counted, "charts/games", "charts/score", "charts/forced"):
            assert mine.stats[name] == pytest.approx(theirs.stats[name], rel=1e-6), name
        assert mine.stats["charts/games"] > 0
        assert (mine.decisions, mine.samples) == (theirs.decisions, theirs.samples)
        assert len(both.snapshot().blobs) == 2  # raises if weights differ by a bit


def test_two_processes_learn_save_and_end_as_one() -> None:
    """One pair of processes for all of it: starting them takes seconds."""
    config = config_of(PARTS)
    one = single(config)
    with two(config) as both:
        check_equal_to_the_bit(both, one)
        saved, first = check_repeated_exactly(both)
        left = check_death(both)
    one = single(config)
    one.restore(saved)
    again = one.snapshot()
    assert (again.blobs, again.meta) == (saved.blobs, saved.meta)
    assert [one.iterate(0.5)[0].decisions for _ in range(2)] == first
    one = single(config)
    one.restore(left)
    assert one.pool.seed != config.seed  # new games
    assert one.iterate(0.5)[0].decisions > left.meta["decisions"]


def check_equal_to_the_bit(both: DeviceReplicas, one: FusedPPO) -> None:
    """From the second update on they are graphs, split at the sums."""
    for _ in range(4):
        (mine,), (theirs,) = both.iterate(0.0), one.iterate(0.0)
        both.snapshot()  # raises if weights differ
        steps = int(theirs.stats["learning/optimizer_steps"])
        assert mine.stats["learning/optimizer_steps"] == steps
    entropy = theirs.stats["losses/entropy"]
    assert mine.stats["losses/entropy"] == pytest.approx(entropy, rel=0.02)
    captured = both.inner.playing.graphs._captured["update"]
    sums = 3 + 2 * PARTS.epochs + steps  # of moments, divergence, figures; of each epoch and step
    assert len(captured) == 2 * sums + 1


def check_repeated_exactly(both: DeviceReplicas) -> tuple[Snapshot, list[int]]:
    saved = both.snapshot()
    first = [both.iterate(0.5)[0].decisions for _ in range(2)]
    weights = weights_of(both)
    both.restore(saved)
    assert [both.iterate(0.5)[0].decisions for _ in range(2)] == first
    assert torch.equal(weights, weights_of(both))
    return saved, first


def check_death(both: DeviceReplicas) -> Snapshot:
    """The update that was under way is undone, and what was learned can be saved."""
    before, updates = weights_of(both), both.updates
    os.kill(both.others[0].pid, signal.SIGKILL)
    with pytest.raises(LostError, match=r"replica 1 has died: .*; the run has ended"):
        both.iterate(0.5)
    left = both.snapshot()
    assert not left.blobs
    assert left.meta["update"] == updates
    assert torch.equal(before, weights_of(both))
    return left


def test_opponents_and_settings_reach_both() -> None:
    config = config_of(PARTS, opponents=("self=1", "past=1"))
    with two(config) as both:
        both.iterate(0.0)
        state = both.policy().net.state_dict()
        both.put(1, state)
        both.set_mixes({name: {1: 1.0} for name in both.pool.mixes})
        settings = replace(PARTS, epochs=1)
        for _ in range(6):
            (report,) = both.iterate(0.1)
        assert report.met is not None
        assert report.met.sum() > 0
        assert both.seated()[1] > 0
        lineups = (Lineup((0, "random", "random", "random")),)
        both.apply_overrides(Overrides(settings=settings, lineups=lineups))
        (report,) = both.iterate(0.1)
        both.snapshot()


def test_nccl_in_the_graph_changes_nothing_for_a_process_alone() -> None:
    config = config_of(PARTS)
    one, other = single(config), single(config)
    group = TorchProcessGroup(dist.HashStore(), 0, 1, device="cuda")
    other.process_group = group
    for _ in range(4):
        (mine,), (theirs,) = other.iterate(0.0), one.iterate(0.0)
    assert len(other.playing.graphs._captured["update"]) == 1
    assert mine.stats["losses/entropy"] == pytest.approx(theirs.stats["losses/entropy"], rel=0.02)
    assert mine.stats["learning/samples"] == pytest.approx(
        theirs.stats["learning/samples"], rel=0.02
    )
    group.end_sums()
    with pytest.raises(LostError, match="another replica has ended"):
        group.check()


def test_a_pool_of_later_games_plays_them() -> None:
    whole = CudaPool("skull_king", 96, seed=2)
    later = CudaPool("skull_king", 32, seed=2, first_game=64)
    for pool in (whole, later):
        pool.reset()
    for _ in range(60):
        action = whole.sample_actions()
        rows = len(action) // 96
        assert torch.equal(action[64 * rows :], later.sample_actions())
        batch, mine = whole.step(action), later.step(action[64 * rows :])
        assert torch.equal(batch.obs[64 * rows :], mine.obs)
        assert torch.equal(batch.reward[64:], mine.reward)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--devices", "0,0"], "devices 0,0: GPU 0 is named twice; name every GPU once"),
        (["--devices", "0,99"], "devices 0,99: GPU 99 is not there; torch sees"),
        (["--device", "cuda:99"], "device 'cuda:99' is not there; torch sees"),
    ],
)
def test_devices_that_are_not_there_are_refused_in_a_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", *options, "--runs", str(tmp_path / "runs")]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "sparring:" in line]
    assert len(lines) == 1
    assert message in lines[0]
    assert not list(tmp_path.iterdir())


SMALL: dict[str, Any] = {
    "device": "cuda",
    "devices": "0,0",
    "distributed": {"shared_gpu": True},
    "net": {"hidden": [64]},
    "collect": {"games": 64, "steps": 16},
    "ppo": {"epochs": 2, "minibatch": 512},
    "opponents": ("self=1", "past=1"),
    "league": {"every_decisions": 4096},
    "eval": {"off": True, "final_games": 2},
    "quiet": True,
}


def test_a_run_with_past_selves_goes_on_with_another_number_of_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sparring.train("tic_tac_toe", **SMALL, updates=12, name="a", runs=str(tmp_path))
    assert list((tmp_path / "a").rglob("*league*"))
    run, killed = str(tmp_path / "a"), list[str]()
    assert sparring.resume(run, updates=16, devices="0").ended == "done"
    assert "devices 0 instead of 0,0: the same games go on" in capsys.readouterr().err

    def kill(watched: Any) -> None:
        if watched.status.update == 18 and not killed:
            killed.extend(replica_pids())
            os.kill(int(killed[0]), signal.SIGKILL)

    with pytest.raises(LostError, match=r"replica 1 has died.*is saved without its games"):
        sparring.resume(run, updates=40, devices="0,0", quiet=True, on_update=kill)
    assert not replica_pids()
    agent = sparring.resume(run, updates=20, devices="0")
    assert agent.ended == "done"
    assert "devices 0 instead of 0,0: new games begin" in capsys.readouterr().err


def test_what_does_not_learn_on_several_gpus_is_refused(tmp_path: Path) -> None:
    given = {k: v for k, v in SMALL.items() if k not in ("ppo", "league", "opponents")}
    for algo in ("dqn", "gumbel"):
        with pytest.raises(ConfigError, match=f"devices 0,0 needs .*algo {algo} is not one"):
            sparring.train("connect_four", **given, algo=algo, updates=1, runs=str(tmp_path))
    assert not list(tmp_path.iterdir())
