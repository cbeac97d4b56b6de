"""Worlds that a GPU draws are those of a CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring.games.rules import Rules
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool
from sparring.pools.cuda.worlds import CudaWorlds

FLAGS = {"skull_king": {"rounds": [3, 8]}, "goofspiel": {"order": "DRAWN"}}
GAMES = [
    "skull_king",
    "kuhhandel",
    "kuhn_poker",
    "kuhn_poker_3",
    "leduc_poker",
    "liars_dice",
    "goofspiel",
    "phantom_tic_tac_toe",
    "dark_hex",
    "cage2",
]


@pytest.mark.parametrize("game", GAMES)
def test_worlds_are_those_of_a_cpu(game: str) -> None:
    rules = Rules(game, FLAGS.get(game, {}))
    cpu, gpu = Pool(rules, 96, seed=3, threads=2), CudaPool(rules, 96, seed=3)
    cpu.reset()
    gpu.reset()
    draws, size = CudaWorlds(gpu), rules.native.belief_size
    rng = np.random.default_rng(0)
    for step in range(40):
        rows = np.flatnonzero(np.asarray(cpu.batch().seat) >= 0)
        belief = rng.normal(0, 1.5, (len(rows), size)).astype(np.float32)
        for weights in (None, belief) if size else (None,):
            ours = cpu.draw_worlds(rows, 4, seed=step, belief=weights)
            given = None if weights is None else torch.from_numpy(weights).cuda()
            theirs = draws.draw(torch.from_numpy(rows).cuda(), 4, seed=step, belief=given)
            assert (theirs.cpu().numpy() == ours).all(), (step, weights is None)
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
