"""What games on a GPU count is what the same games on a CPU count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, NETS, PPO_, learner
from sparring.games.stats import PREFIX, stat_metrics
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool

CASES: dict[str, tuple[dict[str, Any], list[Lineup]]] = {
    "skull_king": ({}, [Lineup((0, "captain", 1, "rule_hard")), Lineup((0, 0, 0, 0))]),
    "kuhhandel": ({"max_decisions": 300}, [Lineup((0, "dealer", 1)), Lineup((0, 0, 0))]),
    "cage2": ({"green": 1}, [Lineup((0,)), Lineup(("vreact",))]),
    "laser_hockey": ({"mode": "MIXTURE"}, [Lineup((0, "strong")), Lineup((0, 0))]),
    "laser_hockey_discrete": ({"keep_mode": 0}, [Lineup((0, 1))]),
    "shogi": ({"max_plies": 90}, [Lineup((0, "greedy")), Lineup((0, 0))]),
}


@pytest.mark.parametrize("game", CASES)
def test_a_gpu_counts_what_a_cpu_counts(game: str) -> None:
    config, lineups = CASES[game]
    cpu = Pool(game, 256, seed=3, config=config, lineups=lineups, threads=4)
    gpu = CudaPool(game, 256, seed=3, config=config, lineups=lineups)
    cpu.reset()
    gpu.reset()
    for _ in range(300):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
    assert cpu.counts().any()
    assert gpu.counts().tolist() == cpu.counts().tolist()
    gpu.clear_counts()
    assert not gpu.counts().any()


def test_members_count_for_themselves() -> None:
    both = CudaPool("skull_king", 128, seeds=(3, 4))
    alone = [Pool("skull_king", 64, seed=seed, threads=2) for seed in (3, 4)]
    both.reset()
    for pool in alone:
        pool.reset()
    for _ in range(100):
        both.step(both.sample_actions())
        for pool in alone:
            pool.step(pool.sample_actions())
    for member, pool in enumerate(alone):
        assert both.counts(member).tolist() == pool.counts().tolist()
    assert both.counted().cpu().numpy().tolist() == [pool.counts().tolist() for pool in alone]


def test_a_pool_that_does_not_count_plays_the_same() -> None:
    pair = [CudaPool("skull_king", 64, seed=1, count=count) for count in (True, False)]
    for pool in pair:
        pool.reset()
        for _ in range(60):
            pool.step(pool.sample_actions())
    assert torch.equal(pair[0].tables, pair[1].tables)
    assert pair[0].counts().any()
    assert not pair[1].counts().any()


@pytest.mark.parametrize("graphs", [False, True])
def test_the_learner_reports_what_was_counted_in_its_rollout(graphs: bool) -> None:
    ppo = learner(graphs=graphs, seeds=(3, 4))
    for _ in range(3):
        reports = ppo.iterate(0.0)
        for member, report in enumerate(reports):
            told = {k: v for k, v in report.stats.items() if k.startswith(PREFIX)}
            assert told == stat_metrics(ppo.rules.stats, ppo.pool.counts(member).tolist())
            assert told


def test_games_on_the_cpu_report_the_same() -> None:
    lineups = [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))]
    host = Pool("skull_king", 64, seed=5, lineups=lineups, slots=2, threads=2)
    device = CudaPool("skull_king", 64, seed=5, lineups=lineups)
    both = [
        FusedPPO(games, COLLECT, PPO_, NETS["towers"])
        for games in (HostGames(host, "cuda"), DeviceGames(device))
    ]
    counts = []
    for ppo in both:
        ppo.iterate(0.0)
        counts.append(ppo.rollout.counts.cpu().numpy())
    assert counts[0].any()
    assert np.array_equal(*counts)
