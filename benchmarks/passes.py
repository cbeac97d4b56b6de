"""Forward and backward of a perceptron on a CPU: torch's, torch's in bfloat16, and ours, in turn.

python benchmarks/passes.py                            Skull King's network, 2048 rows, 2 threads
python benchmarks/passes.py --game laser_hockey --hidden 256 256 --rows 256 --json

Every way has the same weights and rows from games under way, and takes its turn in every round;
what is shown is the best of all rounds and, where somebody else uses the machine, the median. GMAC
are billions of products that a dense network of these sizes needs; ours skips features that are 0
in float32. `grad` is how far a gradient is from that of torch in float32.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from sparring import Pool, Rules, _native
from sparring.config import NetConfig
from sparring.machine import machine_facts, warn_if_busy
from sparring.nets.make import make_net
from sparring.nets.run.native import NativePasses
from sparring.nets.run.packed import Packed

Way = Callable[[], tuple[float, float]]
"""Passes once and says how many seconds forward and backward took."""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0, help="in all")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if min(given.rows, given.threads, given.seconds, *given.hidden) <= 0:
        parser.error("--rows, --hidden, --threads and --seconds must be above 0")
    return given


def rows_of(game: str, count: int) -> Tensor:
    """Observations from games at many moments."""
    pool, found = Pool(game, 512, seed=3), []
    pool.reset()
    while sum(map(len, found)) < count:
        pool.run_random(5)
        found.append(torch.from_numpy(pool.batch().obs.copy()))
    return torch.cat(found)[:count].contiguous()


def by_torch(packed: Packed, obs: Tensor, grad: Tensor, *, bf16: bool) -> tuple[float, float]:
    """Pass as autograd does; features are widened, as in any dense network."""
    packed.grad.zero_()
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        heads = [head.reshape(len(obs), -1).float() for head in packed.net(obs).values()]
    between = time.perf_counter()
    torch.autograd.backward(torch.cat(heads, dim=-1), grad)
    return between - start, time.perf_counter() - between


def by_us(passes: NativePasses, obs: Tensor, grad: Tensor) -> tuple[float, float]:
    """Pass natively, weights loaded anew as after an optimiser step."""
    start = time.perf_counter()
    passes.load()
    passes.said(obs, keep=True)
    between = time.perf_counter()
    passes.learn(grad)
    return between - start, time.perf_counter() - between


def main() -> None:
    """Measure and print."""
    given = options()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    torch.set_num_threads(given.threads)
    rules, obs = Rules(given.game), rows_of(given.game, given.rows)
    ways: dict[str, Way] = {}
    nets: dict[str, Packed] = {}

    def packed(name: str, *, sparse: bool) -> Packed:
        torch.manual_seed(1)
        nets[name] = Packed(make_net(rules, NetConfig(hidden=tuple(given.hidden), sparse=sparse)))
        return nets[name]

    width = sum(make_net(rules, NetConfig(hidden=tuple(given.hidden))).heads.values())
    grad = torch.randn(given.rows, width, generator=torch.Generator().manual_seed(2))
    for name, bf16 in (("torch float32", False), ("torch bf16", True)):
        ways[name] = partial(by_torch, packed(name, sparse=False), obs, grad, bf16=bf16)
    for name, bf16 in (("float32", False), ("bf16", True)):
        if not bf16 or _native.has_amx():
            passes = NativePasses(packed(name, sparse=True), threads=given.threads, bf16=bf16)
            ways[name] = partial(by_us, passes, obs, grad)

    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    end = time.perf_counter() + given.seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, way in ways.items():
            times[name].append(way())
    show(given, facts, times, nets)


def show(
    given: argparse.Namespace,
    facts: dict[str, object],
    times: dict[str, list[tuple[float, float]]],
    nets: dict[str, Packed],
) -> None:
    """Print what came out."""
    first = next(iter(nets.values()))
    sizes = [p.numel() for p in first.net.parameters() if p.ndim == 2]
    products = given.rows * (3 * sum(sizes) - sizes[0])  # no gradient of what goes in
    found = []
    for name, taken in times.items():
        whole = [sum(one) for one in taken]
        grads = nets[name].grad, first.grad
        found.append(
            {
                "way": name,
                "rows_per_s": given.rows / min(whole),
                "median_rows_per_s": given.rows / statistics.median(whole),
                "forward_ms": 1e3 * min(one for one, _ in taken),
                "backward_ms": 1e3 * min(one for _, one in taken),
                "gmac_per_s": products / min(whole) / 1e9,
                "grad": float((grads[0] - grads[1]).norm() / grads[1].norm()),
            }
        )
    if given.json:
        print(json.dumps({"machine": facts, "options": vars(given), "found": found}, indent=2))
        return
    head = "way", "rows/s", "median", "forward ms", "backward ms", "GMAC/s", "grad"
    print("{:<14}{:>11}{:>11}{:>12}{:>13}{:>9}{:>9}".format(*head))
    for one in found:
        print(
            "{way:<14}{rows_per_s:>11,.0f}{median_rows_per_s:>11,.0f}{forward_ms:>12.2f}"
            "{backward_ms:>13.2f}{gmac_per_s:>9.0f}{grad:>9.4f}".format(**one)
        )


if __name__ == "__main__":
    main()
