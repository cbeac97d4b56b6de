"""Bots on the GPU decide what they decide on the CPU, however games are spread over it."""

from __future__ import annotations

import numpy as np
import pytest

from sparring.errors import ConfigError
from sparring.games.rules import Rules
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
    assert np.array_equal(cpu._native.envs, gpu.tables.cpu().numpy()), f"{where}: state differs"


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


def test_warps_of_other_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="per_warp=33 must be 1"):
        CudaPool("tic_tac_toe", 64, per_warp=33)
