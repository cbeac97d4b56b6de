"""Worlds of a GPU pool: its games with everything that a seat cannot know drawn anew."""

from __future__ import annotations

import torch
from torch import Tensor

from sparring.games.belief import check_worlds
from sparring.games.seeds import seed_bits
from sparring.kernels import build
from sparring.pools.cuda.pool import CudaPool
from sparring.pools.cuda.sources import bundled_source

BLOCK = 64
SOURCE = """
#include "games/{name}.hpp"
#define SPARRING_GAME ::sparring::{name}::Game
#include "cuda/worlds.cuh"
"""


class CudaWorlds:
    """Draws the worlds of a GPU pool: bit for bit those of `Pool.draw_worlds`."""

    def __init__(self, pool: CudaPool) -> None:
        what = f"worlds of {pool.rules.name}"
        self.pool = pool
        source = bundled_source(pool.rules, SOURCE, "worlds")
        self._kernels = build(source, {}, exact=True, device=pool.device, what=what)

    def draw(
        self, rows: Tensor, worlds: int, *, seed: int = 0, belief: Tensor | None = None
    ) -> Tensor:
        """Return positions as seats to act may imagine them [rows, worlds, bytes]; never waits.

        rows: of the pool, int64. belief: log-weights [rows, numbers] in float32.
        """
        pool, native = self.pool, self.pool.rules.native
        count, size = len(rows), native.belief_size
        assert belief is None or (size and belief.shape == (count, size))
        shape = (count, check_worlds(worlds), native.game_bytes)
        out = torch.empty(shape, dtype=torch.uint8, device=pool.device)
        view = self._kernels.view(
            "WorldsView",
            envs=pool.tables,
            settings=pool.settings,
            each=pool.each,
            row=rows,
            rows=count,
            worlds=worlds,
            seed=seed_bits(seed),
            belief=belief,
            out=out,
        )
        self._kernels.draw_worlds(-(-count * worlds // BLOCK), BLOCK, view)
        return out
