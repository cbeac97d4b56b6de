"""sparring's searches on a CPU and on a GPU, for search_peers.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from searches.cases import FREE, NETWORK, OPENING_MOVES, SEARCH, Case, serve
from sparring import Pool, Rules, __version__, _native
from sparring.config import NetConfig
from sparring.nets.heads import POLICY
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.policy import Policy
from sparring.nets.run.native import BF16, FLOAT32, NativeNet, native_unsupported_reason
from sparring.search.budget import Budget
from sparring.search.search import Evaluate, Search, SearchConfig


class OnCPU:
    """Searches of native trees by threads."""

    def __init__(self, case: Case) -> None:
        torch.set_num_threads(case.threads)
        self.rules = rules = Rules(case.game)
        self.pool = opened(Pool(rules, case.batch, seed=case.seed, threads=1))
        self.rows = np.arange(case.batch, dtype=np.intp)
        net = network_of(case, rules)
        self.evaluate = evaluator(net, rules, case)
        self.free = zeros(rules, case.batch * case.considered)
        config = SearchConfig(considered=case.considered, prove=False)
        options = {"trees": case.batch, "threads": case.threads, "noise": True, "config": config}
        self.search = Search(rules, self._noting, Budget(case.simulations), **options)
        free = Search(rules, self.free, Budget(case.simulations), **options)
        self.batches: list[int] = []
        self.search.from_pool(self.pool, self.rows)
        self.search.evaluate = self.evaluate
        self.works: dict[str, Callable[[], Any]] = {
            SEARCH: partial(self.search.from_pool, self.pool, self.rows),
            NETWORK: self._network_alone,
            FREE: partial(free.from_pool, self.pool, self.rows),
        }
        nodes = case.simulations + 1
        each = _native.search_bytes(rules.native, nodes, config.width, config.samples) / nodes
        self.facts = facts_of(net, sum(self.batches), each)

    def _noting(self, obs: npt.NDArray[np.uint8]) -> Any:
        """Evaluate, and note how many rows a search evaluates together."""
        self.batches.append(len(obs))
        return self.evaluate(obs)

    def _network_alone(self) -> None:
        for size in self.batches:
            self.evaluate(self.search.native.obs[:size])


class OnGPU:
    """Searches of trees in GPU memory, each as one CUDA graph."""

    def __init__(self, case: Case) -> None:
        from sparring.pools.cuda import CudaPool
        from sparring.search.cuda import CudaSearch

        self.case, self.rules = case, Rules(case.game)
        self.pool = opened(CudaPool(case.game, case.batch, seed=case.seed))
        config = SearchConfig(considered=case.considered, prove=False)
        self.search = CudaSearch(self.pool, case.simulations, noise=True, config=config)
        net = network_of(case, self.rules)
        self._make_network(net)
        self.works = {
            SEARCH: graph(partial(self._search, self._evaluate)),
            NETWORK: graph(self._network_alone),
            FREE: graph(partial(self._search, self._zeros)),
        }
        nodes = case.simulations + 1
        self.facts = facts_of(net, case.batch * nodes, self.search.bytes_each / nodes)
        self.facts["device"] = torch.cuda.get_device_name()

    def _make_network(self, net: Net) -> None:
        from sparring.nets.run.make_flat import make_flat

        device = self.pool.device
        self.net = make_flat(self.rules, net.config, 1, bf16=self.case.bf16, device=device)
        self.net.load(0, net.state_dict())
        self.leaves = self.net.make_pass(self.search.trees, learn=False)
        with torch.device(device):
            self.values = torch.zeros(self.leaves.rows)
            self.no_logits = torch.zeros(self.leaves.rows, self.rules.actions)
            self.no_values = torch.zeros(self.leaves.rows)
            self.chosen = self.pool._action_array(), torch.zeros(self.search.trees)
            self.improved = torch.zeros(self.search.trees, self.rules.actions)

    def _forward(self) -> None:
        self.leaves.read(self.search.obs)
        self.leaves.forward()

    def _evaluate(self) -> Any:
        net, leaves = self.net, self.leaves
        self._forward()
        leaves.logits.add_(net.policy_bias.reshape(1, 1, -1))
        torch.add(leaves.value[0, :, 0], net.value_bias.reshape(-1)[:1], out=self.values)
        self.values.mul_(net.value_scale)
        return leaves.logits, self.values

    def _zeros(self) -> Any:
        return self.no_logits, self.no_values

    def _search(self, evaluate: Callable[[], Any]) -> None:
        self.search.begin(self.case.simulations)
        self.search.select()
        for _ in range(self.case.simulations + 1):  # the root comes first
            self.search.advance(*evaluate())
        self.search.decide(*self.chosen, self.improved)

    def _network_alone(self) -> None:
        for _ in range(self.case.simulations + 1):
            self._forward()


def opened(pool: Any) -> Any:
    """Play some random moves."""
    pool.reset()
    for _ in range(OPENING_MOVES):
        pool.step(pool.sample_actions())
    return pool


def network_of(case: Case, rules: Rules) -> Net:
    torch.manual_seed(case.seed)
    config = NetConfig(hidden=case.hidden)
    if case.channels:
        config = NetConfig(kind="residual", channels=case.channels, blocks=case.blocks)
    return make_net(rules, config, threads=case.threads)


def evaluator(net: Net, rules: Rules, case: Case) -> Evaluate:
    """Return the evaluator that a policy has, in the precision of the case."""
    frozen = Policy(rules, net).net
    forward: Any = lambda rows: frozen(torch.from_numpy(rows))  # noqa: E731
    if not native_unsupported_reason(net, torch.device("cpu")):
        arithmetic = BF16 if case.bf16 else FLOAT32
        native = NativeNet(net, threads=case.threads, arithmetic=arithmetic)
        forward = lambda rows: native.forward_heads(torch.from_numpy(rows))[0]  # noqa: E731

    @torch.no_grad()
    def evaluate(rows: npt.NDArray[np.uint8]) -> tuple[Any, Any]:
        outputs = forward(rows)
        return outputs[POLICY].float().numpy(), net.unscaled_values(outputs).float().numpy()

    return evaluate


def zeros(rules: Rules, most: int) -> Evaluate:
    """An evaluator that costs nothing."""
    logits, values = np.zeros((most, rules.actions), np.float32), np.zeros(most, np.float32)
    return lambda rows: (logits[: len(rows)], values[: len(rows)])


def facts_of(net: Net, rows: int, bytes_per_node: float) -> dict[str, Any]:
    return {
        "versions": {"sparring": __version__, "torch": torch.__version__},
        "device": "cpu",
        "parameters": sum(p.numel() for p in net.parameters()),
        "rows": rows,
        "bytes_per_node": round(bytes_per_node),
    }


def graph(work: Callable[[], Any]) -> Callable[[], None]:
    """Capture launches; the result replays them and waits."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        work()
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        work()

    def replay() -> None:
        made.replay()
        torch.cuda.synchronize()

    return replay


if __name__ == "__main__":
    serve(lambda case: OnGPU(case) if case.device == "cuda" else OnCPU(case))
