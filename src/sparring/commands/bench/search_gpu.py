"""`sparring bench search --device cuda`: searches on a GPU, as training and play launch them.

The search, the network alone on the same rows, and the trees alone are CUDA graphs, timed in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from sparring.errors import ConfigError
from sparring.games import Rules
from sparring.learn.fused.graphs import Graphs
from sparring.learn.fused.gumbel import evaluate_leaves
from sparring.nets.heads import default_heads
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.policy import Policy
from sparring.nets.run.flat import FlatNet
from sparring.nets.run.make_flat import make_flat
from sparring.pools.cuda import CudaPool
from sparring.search.cuda import CudaSearch


def make_network(policy: Policy, rules: Rules) -> FlatNet:
    """Return a policy's network on the GPU, in bfloat16."""
    if rules.box:
        raise ConfigError(
            f"--device cuda: {rules.name} has continuous actions, which are searched on a CPU; use "
            "--device cpu"
        )
    if isinstance(policy.net, HierarchyNet):
        raise ConfigError(f"--device cuda: {policy.name} has a network per role; use --device cpu")
    net, heads = policy.net, policy.net.heads
    extra = heads if heads != default_heads(rules) else None
    flat = make_flat(rules, net.config, 1, heads=extra, bf16=True, device=torch.device("cuda"))
    flat.load(0, net.state_dict())
    return flat


def make_pool(rules: Rules, decisions: int, seed: int) -> CudaPool:
    """Return games with so many rows, all of which are searched."""
    return CudaPool(rules, max(decisions // rules.rows, 1), seed=seed)


class GpuSearchBench:
    """One measured number of simulations on a GPU."""

    def __init__(self, net: FlatNet, pool: CudaPool, simulations: int, rule: str) -> None:
        """Allocate trees for every row of the pool, and a pass of the network over their leaves."""
        self.net, self.simulations = net, simulations
        self.search = CudaSearch(pool, simulations, rule=rule)
        self.waves = simulations + 1
        """Evaluations of a search; the root has one."""
        rows = self.search.trees * self.search.row_count
        self.leaves = net.make_pass(rows, learn=False)
        self.values = torch.zeros(1, rows, device=net.device)
        self.found = pool._action_array(), torch.zeros(self.search.trees, device=net.device)
        self.graphs = Graphs(net.device, net.config.kind, on=True, eager=net.eager_reason)
        self.batches = [rows] * self.waves
        self.made = self.search.trees * simulations
        self.bytes_per_node = self.search.bytes_each / self.waves
        self.search_s: list[float] = []
        self.network_s: list[float] = []
        self.trees_s: list[float] = []

    def warm_up(self) -> None:
        """Launch everything once, then as graphs."""
        for _ in range(2):
            for work in (self.whole, self.network, self.trees):
                self.graphs.run(work.__name__, work)

    def measure(self) -> None:
        """Time a search, its network alone and its trees alone."""
        parts = (self.whole, self.search_s), (self.network, self.network_s)
        for work, seconds in (*parts, (self.trees, self.trees_s)):
            seconds.append(self.seconds_of(work))

    def seconds_of(self, work: Callable[[], None]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        self.graphs.run(work.__name__, work)
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1000

    def whole(self) -> None:
        self._launch(lambda: evaluate_leaves(self.net, self.leaves, self.search.obs, self.values))

    def trees(self) -> None:
        """Search with the outputs of the last evaluation."""
        self._launch(lambda: (self.leaves.logits, self.values))

    def _launch(self, evaluate: Callable[[], tuple[Any, Any]]) -> None:
        self.search.begin(self.simulations)
        self.search.select()
        for _ in range(self.waves):
            self.search.advance(*evaluate())
        self.search.decide(*self.found)

    def network(self) -> None:
        for _ in range(self.waves):
            self.leaves.read(self.search.obs)
            self.leaves.forward()

    def stages(self) -> dict[str, float]:
        """Return seconds by stage: those of trees shared out as stages launched one by one take."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * self.waves + 1)]  # type: ignore[no-untyped-call]
        self.search.begin(self.simulations)
        events[0].record()
        for wave in range(self.waves):
            self.search.select()
            events[2 * wave + 1].record()
            self.search.settle(self.leaves.logits, self.values)
            events[2 * wave + 2].record()
        torch.cuda.synchronize()
        spans = [first.elapsed_time(second) for first, second in pairwise(events)]
        select, settle, trees = median(spans[::2]), median(spans[1::2]), median(self.trees_s)
        part = select / max(select + settle, 1e-9)
        network = median(self.network_s)
        return {"select": trees * part, "evaluate": network, "settle": trees * (1 - part)}
