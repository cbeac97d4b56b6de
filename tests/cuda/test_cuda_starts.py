"""Starts on the GPU are those of the CPU, bit for bit, and change under a captured graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.pools import Lineup, Pool, Start, read_starts
from sparring.pools.cuda import CudaPool

WORDS: dict[str, tuple[str, dict[str, Any], list[str], int]] = {
    "skull_king": ("skull_king", {}, ["usual=1", "rounds:7-10@10,20,30,40=3"], 400),
    "skull_king two": ("skull_king", {"num_players": 2, "history": 1}, ["round:9=1"], 120),
    "laser_hockey": ("laser_hockey", {}, ["usual", "shooting", "defense=2", "puck_behind"], 300),
    "cage2": ("cage2", {"orders": "DRAWN"}, ["hosts:User1=user,Enterprise0=root", "usual"], 220),
    "shogi": ("shogi", {"max_plies": 40}, ["usual=1", "sfen:4k4/9/9/9/9/9/9/9/R3K4 b 2G 1=2"], 120),
}


def played(rules: Rules, moves: int, seed: int) -> Start:
    """A game after some random moves: with bytes beside it, if it has any."""
    state = new_state(rules, seed=seed)
    for _ in range(moves):
        state.apply(state.ask("random"))
    return Start(state, 0.5, f"seed {seed}")


def starts_of(case: str) -> tuple[Rules, list[Start], int]:
    if case == "kuhhandel":
        rules = Rules("kuhhandel", {"history": 1, "max_decisions": 200})
        return rules, [Start(), *(played(rules, 30, seed) for seed in range(5))], 250
    game, config, words, steps = WORDS[case]
    rules = Rules(game, config)
    extra = [played(rules, 9, seed) for seed in range(4)] if game == "shogi" else []
    return rules, [*read_starts(rules, words), *extra], steps


@pytest.mark.parametrize("case", [*WORDS, "kuhhandel"])
def test_games_begin_as_on_the_cpu(case: str) -> None:
    rules, starts, steps = starts_of(case)
    cpu = Pool(rules, 256, seed=3, threads=4, starts=starts)
    gpu = CudaPool(rules, 256, seed=3, starts=starts)
    cpu.reset()
    gpu.reset()
    ends = 0
    for step in range(steps):
        assert np.array_equal(cpu.tables, gpu.tables.cpu().numpy()), f"step {step}: state differs"
        assert np.array_equal(cpu._native.extra, gpu.side.cpu().numpy()), f"step {step}: side"
        assert np.array_equal(cpu.batch().obs, gpu.batch().obs.cpu().numpy()), f"step {step}: rows"
        ends += len(cpu.step(cpu.sample_actions()).final_game)
        gpu.step(gpu.sample_actions())
    gpu.check()
    assert ends > 100


def test_a_captured_graph_sees_new_starts() -> None:
    rules = Rules("tic_tac_toe")
    pool = CudaPool(rules, 64, seed=1, lineups=[Lineup((0, "random"))])
    pool.reset()
    pool.step(pool.sample_actions())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        pool.step(pool.sample_actions())
    state = new_state(rules)
    for cell in (0, 1, 4, 2):
        state.apply(cell)
    for starts, expected in (([Start(state)], 5), ([], 9)):
        pool.set_starts(starts)
        for _ in range(20):
            graph.replay()
        pool.check()
        assert int(pool.batch().finals["length"].max()) <= expected
        assert bool((pool.batch().finals["length"] > 5).any()) == (expected == 9)


def test_members_have_starts_of_their_own() -> None:
    rules = Rules("skull_king")
    both = CudaPool(rules, 128, seeds=(5, 6))
    starts = read_starts(rules, ["round:10"])
    both.set_starts(starts, member=1)
    alone = [CudaPool(rules, 64, seed=5), CudaPool(rules, 64, seed=6, starts=starts)]
    for pool in (both, *alone):
        pool.reset()
        for _ in range(120):
            pool.step(pool.sample_actions())
    for member, pool in enumerate(alone):
        assert both.state(member) == pool.state()


def test_a_bad_start_changes_nothing() -> None:
    rules = Rules("skull_king")
    pool = CudaPool(rules, 64, starts=read_starts(rules, ["round:10"]))
    before = pool.settings.clone()
    with pytest.raises(ConfigError, match="tic_tac_toe"):
        pool.set_starts([Start(new_state("tic_tac_toe"))])
    assert torch.equal(pool.settings, before)
