"""Searches on the GPU make the trees of the CPU, bit for bit, if the evaluator is exact."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from sparring.cli import main
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.cuda import CudaPool
from sparring.pools.native import Pool
from sparring.search.budget import Budget
from sparring.search.cuda import CudaSearch
from sparring.search.search import Found, Search
from sparring.store.policies import save_policy

EDGE = np.dtype([("prior", "f4"), ("mean", "f4"), ("visits", "u4"), ("link", "u4")])
ACTION_BITS = 12
GAMES = ("tic_tac_toe", "connect_four", "shogi", "cage2", "skull_king", "laser_hockey_discrete")
PRIME = 1000003


def evaluator(width: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Logits in eighths and values in 64ths, from a hash of a row: exact on every device."""

    def evaluate(obs: Tensor) -> tuple[Tensor, Tensor]:
        place = torch.arange(obs.shape[1], device=obs.device)
        hashed = (obs.long() * (place * 40503 % PRIME + 7)).sum(1) % PRIME
        action = torch.arange(width, device=obs.device)
        mixed = hashed[:, None] * (action * 7919 + 104729) % PRIME
        return (mixed % 61 - 30).float() / 8, (hashed * 31337 % PRIME % 129 - 64).float() / 64

    return evaluate


def on_host(width: int) -> Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    evaluate = evaluator(width)

    def of_bytes(
        obs: npt.NDArray[np.uint8],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        logits, value = evaluate(torch.from_numpy(obs.copy()))
        return logits.numpy(), value.numpy()

    return of_bytes


def pools(game: str, games: int, plies: int, seed: int = 3) -> tuple[Pool, CudaPool]:
    """The same games on both devices, after some random moves."""
    host, device = Pool(game, games, seed=seed), CudaPool(game, games, seed=seed)
    host.reset()
    device.reset()
    for _ in range(plies):
        action = host.sample_actions()
        host.step(action)
        device.step(torch.from_numpy(np.array(action)))
    return host, device


def by_cpu(pool: Pool, simulations: int, rows: npt.NDArray[np.intp], **options: object) -> Search:
    rules, rule = pool.rules, str(options.pop("rule", "gumbel"))
    width = rules.actions or 2 * rules.box
    search = Search(
        rules,
        on_host(width),
        Budget(simulations, rule=rule),
        trees=len(rows),
        seed=pool.seed,
        **{"open_cards": True, **options},  # type: ignore[arg-type]
    )
    search.found = search.from_pool(pool, rows)  # type: ignore[attr-defined]
    return search


def movers(pool: Pool) -> npt.NDArray[np.intp]:
    return np.flatnonzero(pool.batch().policy >= 0)


def gpu_edges(search: CudaSearch, tree: int) -> list[list[tuple[int, float, int, float, int]]]:
    """All edges of a tree by node, as `Search.edges` returns them."""
    edges = search.arrays["edge"].cpu().numpy().view(EDGE).reshape(search.trees, -1)[tree]
    root, width = search.root_width, search.width
    found = []
    for node in range(search.simulations + 1):
        first = 0 if node == 0 else root + (node - 1) * width
        mine = edges[first : first + (root if node == 0 else width)]
        found.append(
            [
                (
                    int(e["link"] & ((1 << ACTION_BITS) - 1)),
                    float(e["prior"]),
                    int(e["visits"]),
                    float(e["mean"]) if e["visits"] else 0.0,
                    int(e["link"] >> ACTION_BITS),
                )
                for e in mine
            ]
        )
    return found


def check_equal(cpu: Search, gpu: CudaSearch, found: dict[str, Tensor], rows: np.ndarray) -> None:
    theirs: Found = cpu.found  # type: ignore[attr-defined]
    for name in ("action", "value", "policy", "visits", "q"):
        mine = found[name].cpu().numpy()[rows]
        assert np.array_equal(mine, getattr(theirs, name)), name
    for tree in range(0, len(rows), max(len(rows) // 8, 1)):
        mine = gpu_edges(gpu, int(rows[tree]))
        for node in range(cpu.native.nodes(tree)):
            edges = cpu.edges(tree, node)
            assert mine[node][: len(edges)] == edges, (tree, node)


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("game", GAMES)
def test_trees_are_those_of_the_cpu(game: str, noise: bool) -> None:
    for plies in (0, 7):
        host, device = pools(game, 40, plies)
        rows = movers(host)
        cpu = by_cpu(host, 48, rows, noise=noise)
        gpu = CudaSearch(device, 48, noise=noise, open_cards=True)
        found = gpu.run(evaluator(host.rules.actions), 48)
        check_equal(cpu, gpu, found, rows)


@pytest.mark.parametrize("game", ["connect_four", "cage2"])
def test_puct_grows_the_trees_of_the_cpu(game: str) -> None:
    host, device = pools(game, 33, 3)
    rows = movers(host)
    cpu = by_cpu(host, 40, rows, rule="puct")
    gpu = CudaSearch(device, 40, rule="puct", open_cards=True)
    check_equal(cpu, gpu, gpu.run(evaluator(host.rules.actions), 40), rows)


def test_what_one_player_cannot_see_is_drawn_as_on_the_cpu() -> None:
    host, device = pools("cage2", 33, 3)
    rows = movers(host)
    seen, unseen = (by_cpu(host, 24, rows, open_cards=on) for on in (True, False))
    gpu = CudaSearch(device, 24)
    check_equal(unseen, gpu, gpu.run(evaluator(host.rules.actions), 24), rows)
    assert not np.array_equal(seen.found.q, unseen.found.q)  # type: ignore[attr-defined]


def test_trees_may_have_different_numbers_of_simulations() -> None:
    host, device = pools("connect_four", 40, 2)
    rows = movers(host)
    given = (np.arange(40) % 17).astype(np.int32)
    cpu = Search(host.rules, on_host(7), Budget(16), trees=40, seed=3)
    theirs = cpu.from_pool(host, rows, given)
    gpu = CudaSearch(device, 16)
    found = gpu.run(evaluator(7), torch.from_numpy(given).to(device.device))
    assert np.array_equal(found["visits"].cpu().numpy(), theirs.visits)
    assert np.array_equal(found["action"].cpu().numpy(), theirs.action)
    assert found["visits"].sum(1).tolist() == given.tolist()


def test_a_search_is_repeated_from_the_same_positions() -> None:
    _, device = pools("connect_four", 40, 2)
    gpu = CudaSearch(device, 16, noise=True)
    first, again = (gpu.run(evaluator(7), 16) for _ in range(2))
    for name, mine in first.items():
        assert torch.equal(mine, again[name]), name


def test_pools_of_several_seeds_search_what_each_would() -> None:
    both = CudaPool("connect_four", 64, seeds=(5, 6))
    alone = [CudaPool("connect_four", 32, seed=seed) for seed in (5, 6)]
    for pool in (both, *alone):
        pool.reset()
    found = CudaSearch(both, 24, noise=True).run(evaluator(7), 24)
    for member, pool in enumerate(alone):
        theirs = CudaSearch(pool, 24, noise=True).run(evaluator(7), 24)
        for name in found:
            assert torch.equal(found[name][32 * member : 32 * (member + 1)], theirs[name]), name


def test_rows_of_others_are_not_searched() -> None:
    _, device = pools("tic_tac_toe", 40, 1)
    gpu = CudaSearch(device, 8)
    policy = torch.zeros(40, dtype=torch.int16, device=device.device)
    policy[::3] = 1
    evaluate = evaluator(9)
    gpu.begin(8, policy=policy, learner=0)
    for _ in range(9):
        gpu.select()
        gpu.settle(*evaluate(gpu.obs))
    visits = torch.zeros(40, 9, dtype=torch.int32, device=device.device)
    action, value = device._action_array(), torch.zeros(40, device=device.device)
    gpu.decide(action, value, visits=visits)
    assert visits.sum(1).tolist() == [0 if i % 3 == 0 else 8 for i in range(40)]


def test_continuous_actions_are_sampled_as_on_the_cpu() -> None:
    host, device = pools("duel", 24, 2)
    rows = movers(host)
    rules = Rules("duel")
    cpu = by_cpu(host, 20, rows)
    gpu = CudaSearch(device, 20)
    found = gpu.run(evaluator(2 * rules.box), 20)
    theirs: Found = cpu.found  # type: ignore[attr-defined]
    assert np.array_equal(found["action"].cpu().numpy()[rows], theirs.action)
    assert np.array_equal(found["value"].cpu().numpy()[rows], theirs.value)


@pytest.mark.filterwarnings("ignore:load average")
def test_searches_are_measured_beside_their_network(capsys: pytest.CaptureFixture[str]) -> None:
    words = "bench search connect_four --device cuda --games 256 --simulations 4 8 --rounds 2"
    assert main([*words.split(), "--json"]) == 0
    for one in json.loads(capsys.readouterr().out)["measured"]:
        assert one["batch"] == 256
        assert len(one["simulations_per_s"]) == 2
        assert all(0 < share < 1.5 for share in one["share_of_network"])
        assert min(one["stages"].values()) > 0


def test_leaves_of_a_match_are_evaluated_on_the_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(3)
    rules, net = Rules("connect_four"), NetConfig(kind="residual", channels=8, blocks=1)
    save_policy(Policy(rules, make_net(rules, net)), tmp_path / "one")
    words = ["eval", str(tmp_path / "one"), "--against", "random", "--search", "8", "--games", "32"]
    for device in ("cpu", "cuda"):
        assert main([*words, "--device", device, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["results"]["random"]["games"] == 32
