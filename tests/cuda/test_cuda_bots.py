"""Bots on the GPU decide what they decide on the CPU, however games are spread over it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, NETS, PPO_
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.fused import DeviceGames, FusedPPO, groups_of
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool

FLAGS = {"shogi": {"max_plies": 60, "at_limit": "DRAW"}, "kuhhandel": {"skip_forced": 1}}
NAMES = ("obs", "mask", "seat", "role", "policy", "reward", "terminated", "truncated", "skipped")


def mixed(rules: Rules) -> list[Lineup]:
    """Every bot against the learner, some of them together, and nobody but bots."""
    others = rules.seats - 1
    alone = [Lineup((0, *[bot] * others)) for bot in rules.bots]
    together = tuple((rules.bots * rules.seats)[-others:])
    return [*alone, Lineup((0, *together)), Lineup((rules.bots[-1],) * rules.seats, weight=0.5)]


def assert_same(cpu: Pool, gpu: CudaPool, where: str) -> None:
    ours, theirs = cpu.batch(), gpu.batch()
    for name in NAMES:
        mine, other = np.asarray(getattr(ours, name)), getattr(theirs, name).cpu().numpy()
        assert mine.tobytes() == other.tobytes(), f"{where}: {name} differs"
    assert np.array_equal(cpu._native.tables, gpu.tables.cpu().numpy()), f"{where}: state differs"


@pytest.mark.parametrize("per_warp", [32, 8, 1])
@pytest.mark.parametrize(
    ("game", "steps"), [("skull_king", 150), ("kuhhandel", 300), ("laser_hockey", 200)]
)
def test_every_bot_at_mixed_tables(game: str, steps: int, per_warp: int) -> None:
    rules = Rules(game, FLAGS.get(game, {}))
    cpu = Pool(rules, 500, seed=4, threads=2, lineups=mixed(rules))
    gpu = CudaPool(rules, 500, seed=4, lineups=mixed(rules), per_warp=per_warp)
    cpu.reset()
    gpu.reset()
    for step in range(steps):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, f"{game}, {per_warp} games a warp, step {step}")
    gpu.check()


def test_searching_bots_of_shogi() -> None:
    rules = Rules("shogi", FLAGS["shogi"])
    cpu = Pool(rules, 96, seed=4, threads=2, lineups=mixed(rules))
    gpu = CudaPool(rules, 96, seed=4, lineups=mixed(rules))
    cpu.reset()
    gpu.reset()
    for step in range(40):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, f"step {step}")
    gpu.check()


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "laser_hockey"])
def test_groups_play_the_games_of_the_cpu(game: str, graphs: bool) -> None:
    """What groups played side by side, with the same actions, is what a CPU plays."""
    rules, games, steps = Rules(game, FLAGS.get(game, {})), 256, 24
    lineups = mixed(rules)[:-1]
    collect = replace(COLLECT, games=games, steps=steps)
    gpu = CudaPool(rules, games, seed=9, lineups=lineups)
    cpu = Pool(rules, games, seed=9, threads=2, lineups=lineups)
    config = replace(PPO_, gamma_into=())
    ppo = FusedPPO(DeviceGames(gpu, groups=4), collect, config, NETS["shared"], graphs=graphs)
    cpu.reset()
    for _ in range(4):  # the first one is no graph, the second is captured
        ppo.iterate(0.0)
        rollout = ppo.rollout
        for step in range(steps):
            rows, batch = rollout.rows_of(step), cpu.batch()
            # What open decisions carry lies elsewhere; the rows of all steps stay.
            assert np.array_equal(batch.obs, rows["obs"].cpu().numpy()), f"step {step}: rows"
            assert np.array_equal(batch.policy, rows["policy"].cpu().numpy()), f"step {step}"
            cpu.step(rollout.action[rollout.at(step)].cpu().numpy())
            outcome = rollout.outcome_of(step)
            assert np.array_equal(cpu.batch().reward, outcome["reward"].cpu().numpy())
            assert np.array_equal(cpu.batch().terminated, outcome["terminated"].cpu().numpy())
        assert_same(cpu, gpu, "after a rollout")


def test_groups_are_made_where_bots_sit_and_refused_where_they_cannot_be() -> None:
    rules = Rules("tic_tac_toe")
    bots, alone = [Lineup((0, "random"))], [Lineup((0, 0))]
    pool = CudaPool(rules, 8192, lineups=bots)
    assert groups_of(pool, bots) > 1
    assert groups_of(pool, alone) == 1
    assert groups_of(CudaPool(rules, 96, lineups=bots), bots) == 1
    with pytest.raises(ConfigError, match="groups=4: they share 100 games of 1 seeds"):
        DeviceGames(CudaPool(rules, 100, lineups=bots), groups=4)
    with pytest.raises(ConfigError, match="per_warp=5 must divide 32"):
        CudaPool(rules, 64, per_warp=5)


def test_groups_answer_as_all_games_together_do() -> None:
    """The same rows get the same actions, but for rounding at the edge of an interval."""
    drawn = []
    for groups in (1, 4):
        pool = CudaPool("skull_king", 512, seed=3)
        collect = replace(COLLECT, games=512, steps=8)
        ppo = FusedPPO(
            DeviceGames(pool, groups=groups), collect, PPO_, NETS["shared"], graphs=False
        )
        ppo._play()
        drawn.append(ppo.rollout.action[ppo.rollout.at(0)].clone())
    assert (drawn[0] == drawn[1]).float().mean() > 0.999
    assert isinstance(drawn[0], torch.Tensor)
