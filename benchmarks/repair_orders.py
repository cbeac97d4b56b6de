"""Whether the order in which CAGE-2's units are to be repaired matters.

python benchmarks/repair_orders.py --device cuda                    12 orders, 3 seeds, 45 s each
python benchmarks/repair_orders.py --device cpu --minutes 5 --json orders.json

Every run is told one order, and is paid a bonus for each repair that follows it and charged for one
that does not; that is all an order does. What is held against each other is the challenge's own
score, in which the bonus does not count: over the same episodes for all, most probable actions.
On a GPU all orders of a seed are one population, on CPUs they are trained in turn, each from
scratch. A control is told an order and paid nothing for it.

The test: runs of one seed are a block, as they begin with the same weights and games. F is the
variance between orders against what is left beside orders and seeds; its chance comes from dealing
orders anew within every seed, and the interval of the share of the variance that orders have from
the F distribution.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.config import TrainConfig
from sparring.games.cage2 import UNITS
from sparring.league.arena import play_match
from sparring.league.cage2_challenge import judge_orders
from sparring.league.intervals import student_95
from sparring.machine import machine_facts
from sparring.sweep.nearest import exchanged
from sparring.training.agent import Agent
from sparring.training.planning.settings import members_of
from sparring.training.train import complete, train_population, train_with

Order = tuple[int, ...]
EPISODE_SEED = 991
JUDGED = 512
"""Episodes in which repairs are counted."""
DEALINGS = 20_000
"""How often orders are dealt anew, and F is drawn."""
LIKELY = 0.05
CONTROL = "control"


@dataclass
class Trained:
    """The runs of one order, by seed."""

    order: str
    """Its units, first to last; or control."""
    scores: list[float] = field(default_factory=list)
    """The challenge's own score, the mean of many episodes."""
    errors: list[float] = field(default_factory=list)
    """Standard errors of these means."""
    kept: list[float] = field(default_factory=list)
    """The share of repairs that followed the order."""
    decisions: list[int] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Over seeds."""
        return float(np.mean(self.scores))

    @property
    def half(self) -> float:
        """Half the 95 % interval of the mean: over seeds, or of one over its episodes."""
        if len(self.scores) == 1:
            return 1.96 * self.errors[0]
        error = float(np.std(self.scores, ddof=1)) / math.sqrt(len(self.scores))
        return student_95(len(self.scores) - 1) * error


@dataclass(frozen=True)
class Tested:
    """What the runs say of orders."""

    f: float
    chance: float
    """How often orders that are dealt anew have such an F, or a larger one."""
    share: tuple[float, float, float]
    """Of the variance that orders have: an estimate and its 95 % interval."""
    points: tuple[float, float, float]
    """Standard deviation between orders, in points of the score, and its interval."""
    seeds_points: float
    """Standard deviation of a run that orders do not explain."""


def far_apart(count: int) -> list[Order]:
    """Orders that are as far from each other as they can be, one after the other."""
    chosen: list[Order] = [tuple(range(len(UNITS)))]
    others = [one for one in permutations(range(len(UNITS))) if one != chosen[0]]
    while len(chosen) < count:
        apart = [min(exchanged(one, there) for there in chosen) for one in others]
        chosen.append(others.pop(int(np.argmax(apart))))
    return chosen


def settings(given: argparse.Namespace, orders: Sequence[Order], runs: str) -> TrainConfig:
    """What all runs share, and how they vary."""
    paid = [[f"order={given.bonus:g}"]] * len(orders)
    flags = [list(order) for order in orders]
    if given.control:
        paid, flags = [*paid, ["order=0"]], [*flags, list(orders[0])]
    changes: dict[str, Any] = {
        "device": given.device,
        "minutes": given.minutes,
        "threads": given.threads,
        "runs": runs,
        "set": ("mask=1", "scan_history=ALL", "decoys_left=1", "orders=FIXED"),
        "net": {"hidden": tuple(given.hidden)},
        "eval": {"off": True},
        "tensorboard": False,
        "keep": 1,
        "vary": (f"set.order={json.dumps(flags)[1:-1]}", f"rewards={json.dumps(paid)[1:-1]}"),
    }
    if given.games:
        changes["collect"] = {"games": given.games}
    return complete("cage2", "", changes)


def train(config: TrainConfig, *, together: bool) -> list[Agent]:
    """Train a run for each order: as one population on a GPU, or in turn."""
    if together:
        return train_population(config, quiet=True)
    return [train_with(member, quiet=True) for member in members_of(config)]


def measure(agent: Agent, one: Trained, episodes: int, threads: int) -> None:
    """Play many episodes, the same for everybody, and count repairs in some."""
    policy = agent.policy
    result = play_match(policy.rules, [policy], games=episodes, seed=EPISODE_SEED, threads=threads)
    low, high = result.first.score_interval
    one.scores.append(float(result.first.score))
    one.errors.append((high - low) / (2 * student_95(result.distinct_deals - 1)))
    judged = judge_orders(policy, policy.rules, games=JUDGED, seed=EPISODE_SEED, threads=threads)
    repairs = sum(cell.repairs for cell in judged.values())
    kept = sum(cell.repairs * (cell.in_order or 0.0) for cell in judged.values())
    one.kept.append(kept / repairs if repairs else math.nan)
    one.decisions.append(agent.decisions)


def f_of(scores: npt.NDArray[np.float64]) -> tuple[float, float]:
    """F of orders [orders, seeds] with seeds as blocks, and the variance that is left."""
    orders, seeds = scores.shape
    rest = scores - scores.mean(0)
    effect = rest.mean(1, keepdims=True)
    between = seeds * float((effect**2).sum()) / (orders - 1)
    within = float(((rest - effect) ** 2).sum()) / ((orders - 1) * (seeds - 1))
    return (between / within if within else math.inf), within


def hold_against(scores: npt.NDArray[np.float64], seed: int = 0) -> Tested:
    """Say whether orders differ by more than their seeds do. scores: [orders, seeds]."""
    rng = np.random.default_rng(seed)
    orders, seeds = scores.shape
    f, within = f_of(scores)
    dealt = [f_of(rng.permuted(scores, axis=0))[0] for _ in range(DEALINGS)]
    chance = (1 + sum(one >= f for one in dealt)) / (1 + DEALINGS)
    drawn = rng.f(orders - 1, (orders - 1) * (seeds - 1), size=20 * DEALINGS)
    small, large = np.quantile(drawn, [0.025, 0.975])
    ratios = [max(one - 1, 0.0) / seeds for one in (f, f / large, f / small)]
    return Tested(
        f=f,
        chance=chance,
        share=tuple(one / (1 + one) for one in ratios),  # type: ignore[arg-type]
        points=tuple(math.sqrt(one * within) for one in ratios),  # type: ignore[arg-type]
        seeds_points=math.sqrt(within),
    )


def verdict(tested: Tested) -> str:
    """The answer in words."""
    share, low, high = (f"{100 * one:.0f} %" for one in tested.share)
    points = "{:.2f} ({:.2f} .. {:.2f})".format(*tested.points)
    if tested.chance < LIKELY:
        return (
            f"orders matter: they have {share} ({low} .. {high}) of the variance between runs, a "
            f"standard deviation of {points} points (chance {tested.chance:.2g})"
        )
    return (
        f"no difference between orders was found (chance {tested.chance:.2g}): their share of the "
        f"variance between runs is {share} ({low} .. {high}), a standard deviation of {points} "
        f"points beside {tested.seeds_points:.2f} from seed to seed"
    )


def show(found: Sequence[Trained]) -> None:
    """Print a line for each order, the best first."""
    print(f"{'order':44} {'score, 95 %':>20}  {'kept':>5}  seeds")
    for one in sorted(found, key=lambda row: -row.mean):
        singles = " ".join(f"{score:.2f}" for score in one.scores)
        mean = f"{one.mean:.2f} +- {one.half:.2f}"
        print(f"{one.order:44} {mean:>20}  {100 * np.nanmean(one.kept):4.0f}%  {singles}")


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=12, help="how many, of 120")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each order")
    parser.add_argument("--minutes", type=float, default=0.75, help="of training for each run")
    parser.add_argument("--bonus", type=float, default=0.5, help="for a repair in order")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--games", type=int, default=0, help="of each run at once; 0: as usual")
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--episodes", type=int, default=2048, help="that each run is measured by")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--no-control", dest="control", action="store_false")
    parser.add_argument("--runs", default="", help="where runs are kept; left out: nowhere")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(words)
    if not 2 <= given.orders <= math.factorial(len(UNITS)):
        parser.error(f"--orders {given.orders}: give 2 to {math.factorial(len(UNITS))}")
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: give at least 1")
    return given


def main(words: Sequence[str] | None = None) -> None:
    """Train, measure, and say whether orders matter."""
    from sparring.training.planning.place import uses_gpu

    given = read_options(words)
    orders, gpu = far_apart(given.orders), uses_gpu(given.device)
    if gpu and not given.games:
        given.games = 4096  # of each of a dozen members
    threads = given.threads or os.cpu_count() or 1
    found = [Trained(" ".join(UNITS[unit] for unit in order)) for order in orders]
    found += [Trained(CONTROL)] if given.control else []
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(given.seeds):
            config = settings(given, orders, given.runs or temporary)
            config = replace(config, seed=seed)
            print(f"seed {seed}: training {len(found)} runs", file=sys.stderr, flush=True)
            agents = train(config, together=gpu)
            for agent, one in zip(agents, found, strict=True):
                measure(agent, one, given.episodes, threads)
    show(found)
    tested = None
    if given.seeds > 1:
        paid = [one.scores for one in found if one.order != CONTROL]
        tested = hold_against(np.array(paid))
        print(verdict(tested))
    else:
        print("one seed of each order: nobody knows what is the order's and what is luck")
    if given.json:
        facts = {name: value for name, value in vars(given).items() if name != "json"}
        table = {
            "machine": machine_facts(),
            "asked": facts,
            "orders": [{**asdict(one), "mean": one.mean, "half": one.half} for one in found],
            "tested": asdict(tested) if tested else None,
            "verdict": verdict(tested) if tested else None,
        }
        given.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
