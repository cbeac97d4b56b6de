"""Runs on the GPU: checkpoints, resuming, moving to a CPU, populations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparring.commands.bench import pool as bench
from sparring.commands.bench import train as bench_train
from sparring.config import (
    CollectConfig,
    EvaluationConfig,
    LeagueConfig,
    NetConfig,
    PPOConfig,
    TrainConfig,
)
from sparring.errors import ConfigError
from sparring.learn.memory import memory_uses
from sparring.store import checkpoint as checkpoints
from sparring.store.archive import Archive
from sparring.store.policies import load_policy
from sparring.training.records.metrics import read
from sparring.training.train import prepare_new, resume, train_population, train_with


def config(tmp_path: Path, **changes: Any) -> TrainConfig:
    return replace(
        TrainConfig(
            game="skull_king",
            set=("rounds=1,2,3",),
            opponents=("self=1", "captain=1"),
            device="cuda",
            runs=str(tmp_path),
            updates=4,
            net=NetConfig(hidden=(64, 32)),
            collect=CollectConfig(games=64, steps=20),
            ppo=PPOConfig(minibatch=512, lr=1e-3, entropy=0.01),
            eval=EvaluationConfig(off=True),
            tensorboard=False,
        ),
        **changes,
    )


def last(run: Path) -> checkpoints.Checkpoint:
    folder = checkpoints.newest_valid(run / "checkpoints")
    assert folder is not None
    return checkpoints.load(folder)


@pytest.mark.parametrize("hidden", [(64, 32), (512, 512)])
def test_the_room_of_a_run_is_what_it_takes(tmp_path: Path, hidden: tuple[int, ...]) -> None:
    """So that the number of games that is said to fit does, and hardly more would."""
    wanted = config(
        tmp_path,
        opponents=("self=1",),
        net=NetConfig(hidden=hidden),
        collect=CollectConfig(games=8192, steps=16),
    )
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    session, _ = prepare_new([wanted], quiet=True)
    for _ in range(2):
        session.learner.iterate(0.0)
    taken = torch.cuda.max_memory_allocated() - before
    room = memory_uses(session.plan)[1]
    assert 0.7 * 8192 * room.per_game < taken <= room.bytes_for(8192)


def test_more_games_than_fit_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    wanted = config(tmp_path, collect=CollectConfig(games=10**8, steps=20))
    with pytest.raises(ConfigError, match=r"collect\.games=100000000: .* at most \d+ games fit"):
        train_with(wanted, quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    whole = train_with(config(tmp_path, updates=8), quiet=True)
    begun = train_with(config(tmp_path), quiet=True)
    ended = resume(str(begun.run), updates=8, quiet=True)
    mine, other = last(whole.run), last(ended.run)
    assert mine.blobs == other.blobs
    for group in ("net", "optimizer", "carried"):
        for name, tensor in mine.tensors[group].items():
            assert torch.equal(tensor, other.tensors[group][name]), name
    curves = read(whole.run)
    assert {"charts/gpu_busy", "phases/rollout", "losses/approx_kl", "charts/score"} <= set(curves)


def test_a_run_moves_to_the_cpu_and_back(tmp_path: Path) -> None:
    begun = train_with(config(tmp_path), quiet=True)
    file = begun.run / "config.toml"
    text = file.read_text()
    file.write_text(text.replace('device = "cuda"', 'device = "cpu"'))
    resume(str(begun.run), updates=6, quiet=True)
    file.write_text(text)
    resume(str(begun.run), updates=8, quiet=True)
    assert last(begun.run).meta["update"] == 8
    decisions = read(begun.run)["charts/decisions"][2]
    assert (np.diff(decisions) > 0).all()
    assert len(decisions) == 8


def test_games_on_the_cpu_are_trained_on_the_gpu(tmp_path: Path) -> None:
    begun = train_with(config(tmp_path, pool="cpu"), quiet=True)
    ended = resume(str(begun.run), updates=8, quiet=True)
    whole = train_with(config(tmp_path, pool="cpu", updates=8), quiet=True)
    assert last(ended.run).blobs == last(whole.run).blobs


def test_a_population_is_as_many_runs(tmp_path: Path) -> None:
    agents = train_population(
        config(tmp_path, population=4, vary=("ppo.lr=1e-3,1e-5",)), quiet=True
    )
    assert len({agent.run for agent in agents}) == 4
    rates = [read(agent.run)["learning/lr"][2][0] for agent in agents]
    assert rates == pytest.approx([1e-3, 1e-5, 1e-3, 1e-5])
    seeds = [json.loads(json.dumps(last(agent.run).meta["config"]["seed"])) for agent in agents]
    assert seeds == [0, 0, 1, 1]
    assert last(agents[0].run).blobs["games.bin"] != last(agents[2].run).blobs["games.bin"]
    ended = resume(str(agents[3].run), updates=6, quiet=True)  # a member goes on alone
    assert last(ended.run).meta["update"] == 6
    assert load_policy(agents[1].run).rules.name == "skull_king"


def test_exploiters_of_a_population_are_judged_and_kept(tmp_path: Path) -> None:
    """As on a CPU, where members take turns: tests/training/test_league_members.py."""
    plan = config(
        tmp_path,
        game="rock_paper_scissors",
        set=(),
        opponents=("past=1",),
        updates=120,
        collect=CollectConfig(games=256, steps=8),
        ppo=PPOConfig(minibatch=512, epochs=2, lr=1e-2, entropy=0.0, target_kl=0.0),
        league=LeagueConfig(shared=True, every_decisions=3000, slots=8),
        vary=('league.role="main","exploiter","league-exploiter"',),
    )
    agents = train_population(plan, quiet=True)
    archive = Archive(agents[0].run, max_bytes=0)
    roles = {entry.hash: entry.role for entry in archive.entries()}
    assert set(roles.values()) == {"main", "exploiter", "league-exploiter"}
    met: dict[str, set[str]] = {}
    for one in archive.results():
        met.setdefault(one.member, set()).add(roles.get(one.opponent, ""))
    first, second, _ = (agent.run.name for agent in agents)
    assert {"main", "exploiter", "league-exploiter"} <= met[first]
    assert met[second] - {""} == {"main"}


def test_a_population_of_residual_nets_is_as_many_runs(tmp_path: Path) -> None:
    plan = config(
        tmp_path,
        game="shogi",
        set=("max_plies=60", "material=0.2"),
        opponents=("self=1", "random=1"),
        net=NetConfig(kind="residual", channels=8, blocks=1),
        population=2,
    )
    agents = train_population(plan, quiet=True)
    first, second = (last(agent.run).tensors["net"] for agent in agents)
    assert not torch.equal(first["stem.weight"], second["stem.weight"])
    ended = resume(str(agents[1].run), updates=6, quiet=True)  # a member goes on alone
    learned = last(ended.run).tensors["net"]
    assert not torch.equal(learned["blocks.0.second.weight"], second["blocks.0.second.weight"])
    assert load_policy(agents[0].run).net.config.kind == "residual"


def test_a_network_without_kernels_is_trained_on_the_gpu_too(tmp_path: Path) -> None:
    odd = NetConfig(hidden=(30,), activation="silu")
    plan = config(tmp_path, net=odd, pool="cuda", population=2)
    agents = train_population(plan, quiet=True)
    first, second = (last(agent.run).tensors["net"] for agent in agents)
    assert not torch.equal(first["first.weight"], second["first.weight"])
    ended = resume(str(agents[0].run), updates=6, quiet=True)  # a member goes on alone
    assert last(ended.run).meta["update"] == 6
    assert load_policy(agents[1].run).net.config.activation == "silu"


def test_members_share_their_shapes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"share ppo\.minibatch"):
        train_population(config(tmp_path, vary=("ppo.minibatch=256,512",)), quiet=True)


def test_a_policy_trained_on_the_gpu_wins(tmp_path: Path) -> None:
    collect = CollectConfig(games=1024, steps=32)
    ppo = PPOConfig(minibatch=4096, lr=2e-3, epochs=4)
    agent = train_with(
        config(
            tmp_path,
            game="tic_tac_toe",
            set=(),
            opponents=("self=1", "random=1"),
            collect=collect,
            ppo=ppo,
            updates=60,
        ),
        quiet=True,
    )
    result = agent.evaluate("random", games=1000)["random"]
    assert result.first.win_share > 0.9


@pytest.mark.filterwarnings("ignore:load average")
@pytest.mark.parametrize("population", [1, 2])
def test_bench_train_reports_the_ceiling(
    population: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from sparring.config.commands import BenchTrainConfig

    options = BenchTrainConfig(
        game="skull_king",
        device="cuda",
        population=population,
        games=256,
        steps=24,
        epochs=1,
        minibatch=2048,
        rounds=2,
        warm_up=1,
        hidden=(64,),
        set=("rounds=1,2",),
        json=True,
    )
    assert bench_train.run(options) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["training"]["population"] == population
    assert 0 < report["fraction"]["median"] <= 1.2
    assert report["measured"]["ours"]["samples_per_s"]["median"] > 0
    assert report["memory_bytes"] > 0
    bench_train.run(replace(options, json=False))
    assert "fraction of the ceiling" in capsys.readouterr().out


def test_bench_pool_compares_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    from sparring.config.commands import BenchPoolConfig

    options = BenchPoolConfig(
        game="tic_tac_toe", games=2048, seconds=0.5, rounds=2, device="cuda", json=True
    )
    assert bench.run(options) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"]
    assert all(cell["decisions_per_s"] > 0 for cell in report["measured"])
    bench.run(replace(options, json=False))
    assert "the same on CPU and GPU" in capsys.readouterr().out
