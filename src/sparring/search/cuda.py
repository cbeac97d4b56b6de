"""Searches on a GPU, one tree per row of a GPU pool: the trees that CPU threads would make.

A search is a list of launches without synchronization or allocation, so that a graph can hold it:
`begin`, `select`, then `advance` for the root and for every simulation, with what a network says of
the rows of `obs`, then `decide`. tests/cuda/test_search.py compares the trees with those
of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.kernels import CompileOptions, build, build_ahead
from sparring.machine import check_memory_budget
from sparring.pools.cuda.pool import CudaPool
from sparring.pools.cuda.sizes import WARP, sizes_of
from sparring.pools.cuda.sources import bundled_source
from sparring.pools.native import Pool
from sparring.search.budget import GUMBEL, RULES
from sparring.search.search import SearchConfig, check_open

UNITS = 2
"""Parts of the source that are compiled in parallel."""
BLOCK = 64
"""Threads per block, except for the selection of leaves, which has a warp."""
SOURCE = """
#include "games/{name}.hpp"
#define SPARRING_GAME ::sparring::{name}::Game
#include "cuda/search.cuh"
"""
SIZES = ("head", "node", "edge", "leaf", "setting", "game", "rows", "joint", "stores", "max_legal")
"""What the kernel `search_sizes` writes."""
Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Maps rows of bytes to outputs of the policy head [rows, width] and values [rows], in float32."""


class CudaSearch:
    """Trees for all rows of a GPU pool."""

    def __init__(
        self,
        pool: CudaPool,
        simulations: int,
        *,
        rule: str = GUMBEL,
        noise: bool = False,
        squash: bool = False,
        config: SearchConfig | None = None,
        open_cards: bool = False,
    ) -> None:
        """Allocate trees for so many simulations; random numbers are those of the pool's seeds.

        rule, noise, squash, config, open_cards: see `search.Search`.
        """
        check_open(pool.rules, open_cards=open_cards)
        if pool.memory_bytes:
            raise ConfigError("search needs a policy without memory; leave out net.memory")
        self.pool, self.rules, self.simulations = pool, pool.rules, simulations
        rules = self.rules
        self.trees = pool.num_games * rules.rows
        self.row_count = rows_per_leaf(rules)
        self._kernels = build(
            *program_of(rules, pool._hosts[0]), **compile_options(rules, pool.device)
        )
        found = torch.zeros(len(SIZES), dtype=torch.int32, device=pool.device)
        self._kernels.search_sizes(1, 1, found)
        self._sizes = dict(zip(SIZES, found.tolist(), strict=True))
        self._options = self._complete(config or SearchConfig(), rule)
        self._options |= {"noise": int(noise), "squash": int(squash)}
        if rules.hides and not open_cards:  # what one player cannot see is drawn anew
            self._options |= {"resample": 1, "replay": 1}
        self.root_width, self.width = self._options["root_width"], self._options["width"]
        """Edges of roots and of other nodes."""
        self._allocate()
        self._kernels.advance_search.reserve(self._sizes["rows"])

    def _complete(self, config: SearchConfig, rule: str) -> dict[str, Any]:
        """Return the fields of `SearchOptions`, as `complete_options` in csrc/search does."""
        rules, sizes = self.rules, self._sizes
        root_width = config.samples if rules.box else sizes["max_legal"]
        rescale, scale = config.scaling(rules)
        return {
            "rule": RULES.index(rule),
            "nodes": self.simulations + 1,
            "considered": config.considered,
            "width": min(config.samples if rules.box else config.width, root_width),
            "samples": config.samples,
            "c_visit": config.c_visit,
            "c_scale": scale,
            "c_puct": config.c_puct,
            "gamma": config.gamma,
            "rescale": int(rescale),
            "prove": int(config.prove),
            "replay": int(rules.chance or not sizes["stores"]),
            "resample": 0,
            "row_count": self.row_count,
            "root_width": root_width,
        }

    def _allocate(self) -> None:
        pool, sizes, options = self.pool, self._sizes, self._options
        nodes, root_width = options["nodes"], options["root_width"]
        edges = root_width + (nodes - 1) * options["width"]
        table, side = pool.tables.shape[1], pool.side.shape[1]
        each = {
            "head": sizes["head"],
            "root": table,
            "extra": side,
            "node": nodes * sizes["node"],
            "edge": edges * sizes["edge"],
            "state": 0 if options["replay"] else nodes * sizes["game"],
            "joint": edges * sizes["joint"],
        }
        leaf = {"leaf": sizes["leaf"], "leaf_extra": side}
        row_bytes = self.row_count * pool.row_bytes
        self.bytes_each = sum(each.values()) + sum(leaf.values()) + 8 * root_width + row_bytes
        """Bytes of a tree, its leaf included."""
        check_memory_budget(
            "search trees",
            self.trees,
            self.bytes_each,
            f"trees of {self.simulations} simulations of {self.rules.name} on the GPU",
            free=torch.cuda.mem_get_info(pool.device)[0],
        )
        with torch.device(pool.device):
            arrays = {
                name: torch.zeros(max(self.trees * size, 16), dtype=torch.uint8)
                for name, size in (each | leaf).items()
            }
            self._logit = torch.zeros(self.trees, root_width)
            self._gumbel = torch.zeros(self.trees, root_width)
            self._settings = torch.zeros(len(pool.seeds) * sizes["setting"], dtype=torch.uint8)
            self.obs = torch.zeros(self.trees * self.row_count, pool.row_bytes, dtype=torch.uint8)
            """Rows of the leaves that a network evaluates; those of finished trees are old."""
        self.arrays = arrays
        """Bytes of the trees, by the names of `TreesView` in csrc/search/tree.hpp."""
        joint = arrays["joint"].view(torch.float32 if self.rules.box else torch.int32)
        view = self._kernels.view
        self._trees = view(
            "TreesView<G>",
            options=view("SearchOptions", **options),
            setting=self._settings,
            **{name: arrays[name] for name in ("head", "root", "extra", "node", "edge", "state")},
            joint=joint,
            logit=self._logit,
            gumbel=self._gumbel,
        )
        self._leaves = view(
            "LeavesView",
            leaf=arrays["leaf"],
            extra=arrays["leaf_extra"],
            obs=self.obs,
            settings=self._settings,
            trees=self.trees,
            each=self.trees // len(pool.seeds),
        )

    def begin(
        self,
        simulations: int | Tensor,
        *,
        policy: Tensor | None = None,
        learner: int = 0,
    ) -> None:
        """Begin searches in the current positions of the pool.

        simulations: of every tree, or by tree [trees].
        policy: the policy that moves in each row; rows of others than `learner` are not searched.
        """
        pool, by_tree = self.pool, isinstance(simulations, Tensor)
        roots = self._kernels.view(
            "RootsView",
            envs=pool.tables,
            extra=pool.side,
            settings=pool.settings,
            games=pool.num_games,
            each=pool.each,
            policy=policy,
            learner=learner,
            simulations=simulations if by_tree else None,
            most=self.simulations if by_tree else simulations,
        )
        self._kernels.begin_search(self._blocks(), BLOCK, self._trees, self._leaves, roots)

    def select(self) -> None:
        """Begin the next simulation of every tree and write the rows of leaves to `obs`."""
        self._advance(None, None, select=True)

    def settle(self, logits: Tensor, value: Tensor) -> None:
        """Take the outputs for `obs`: logits [rows, width], values in units of rewards [rows]."""
        self._advance(logits, value, select=False)

    def advance(self, logits: Tensor, value: Tensor) -> None:
        """Settle, then select, in one launch. After the last simulation nothing is selected."""
        self._advance(logits, value, select=True)

    def _advance(self, logits: Tensor | None, value: Tensor | None, *, select: bool) -> None:
        width = 0 if logits is None else logits.shape[-1]
        found = self._kernels.view("EvaluationView", policy=logits, value=value, width=width)
        blocks = -(-self.trees // WARP)
        self._kernels.advance_search(blocks, WARP, self._trees, self._leaves, found, int(select))

    def decide(
        self,
        action: Tensor,
        value: Tensor,
        policy: Tensor | None = None,
        visits: Tensor | None = None,
        q: Tensor | None = None,
    ) -> None:
        """Write the chosen actions and the values of roots [trees].

        policy, visits, q: improved policy, visits and mean returns [trees, actions].
        """
        found = self._kernels.view(
            "FoundView", action=action, policy=policy, value=value, visits=visits, q=q
        )
        self._kernels.decide_roots(self._blocks(), BLOCK, self._trees, self._leaves, found)

    def run(self, evaluate: Evaluate, simulations: int | Tensor) -> dict[str, Tensor]:
        """Search in all rows of the pool; return the arrays of `decide` by name."""
        self.begin(simulations)
        self.select()
        for _ in range(self.simulations + 1):
            logits, value = evaluate(self.obs)
            self.advance(logits.contiguous(), value.contiguous())
        shape = self.trees, max(self.rules.actions, 1)
        with torch.device(self.pool.device):
            found = {
                "action": self.pool._action_array(),
                "value": torch.zeros(self.trees),
                "policy": torch.zeros(shape),
                "visits": torch.zeros(shape, dtype=torch.int32),
                "q": torch.zeros(shape),
            }
        self.decide(**found)
        return found

    def _blocks(self) -> int:
        return -(-self.trees // BLOCK)


def program_of(rules: Rules, host: Pool) -> tuple[str, dict[str, int]]:
    """Return the source of the kernels and its constants."""
    return bundled_source(rules, SOURCE, "searches"), sizes_of(rules, host)


def compile_options(rules: Rules, device: torch.device) -> CompileOptions:
    return {"exact": True, "device": device, "units": UNITS, "what": f"searches of {rules.name}"}


def compile_ahead(rules: Rules, device: torch.device) -> None:
    """Start compiling the kernels, while games and networks are made."""
    host = Pool(rules, 1, threads=1, observe=False)
    build_ahead(*program_of(rules, host), **compile_options(rules, device))


def rows_per_leaf(rules: Rules) -> int:
    """Rows that a network evaluates for a leaf: the mover's, or one per seat."""
    alone = rules.seats == 1 or (rules.seats == 2 and rules.zero_sum and rules.rows == 1)
    return 1 if alone else rules.seats
