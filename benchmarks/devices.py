"""Several GPUs, measured on one: what NCCL inside the graph costs, and whether two are as one.

    python benchmarks/devices.py                            # all parts, about two minutes
    python benchmarks/devices.py --parts equal --games skull_king

nccl: the learner of a preset, alone, with and without NCCL (a group of one) in its graph.
equal: two processes on one GPU (sums through the host) beside one with the same games in all: one
update in float32, then --updates in bfloat16.
reckoned: 2, 4 and 8 cards, from the bytes that a step sums, the measured times, and bandwidths of
data sheets; nothing of it is measured on such cards.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from sparring.cluster.learners import with_replicas
from sparring.cluster.replicas.process_group import TorchProcessGroup
from sparring.config import TrainConfig
from sparring.learn.algos import make_ppo
from sparring.schedule import Schedule
from sparring.training.planning.plan import resolve
from sparring.training.train import complete

LINKS = {"NVLink 4": 450e9, "PCIe 5 x16": 64e9}
"""Bytes per second and direction, of data sheets."""
REACHED = 0.7
"""Share of that which an all-reduce is reckoned to reach."""
STEP_S = 5e-6
"""Reckoned time of one hop of an all-reduce."""
CARDS = (2, 4, 8)
SHOWN = ("losses/entropy", "losses/value_loss", "losses/approx_kl", "charts/score")


def preset(game: str) -> TrainConfig:
    return complete(game, "", {"device": "cuda", "seed": 1})


def single(config: TrainConfig) -> Any:
    return make_ppo(resolve([config]))


def pair(config: TrainConfig) -> Any:
    shared = replace(config.distributed, shared_gpu=True)
    config = replace(config, devices="0,0", distributed=shared)
    return with_replicas(config, resolve([config]))


def seconds(learner: Any, updates: int) -> dict[str, float]:
    """Time updates; return medians of the phases and of the whole."""
    found: dict[str, list[float]] = {"rollout": [], "update": [], "whole": []}
    for _ in range(updates):
        started = time.perf_counter()
        learner.iterate(0.0)
        found["whole"].append(time.perf_counter() - started)
        for name in ("rollout", "update"):
            found[name].append(learner.phases.seconds[name])
    return {name: statistics.median(of) for name, of in found.items()}


def of_nccl(game: str, rounds: int = 4, updates: int = 15) -> dict[str, Any]:
    """Seconds with and without NCCL in the graph, in turns."""
    alone, grouped = single(preset(game)), single(preset(game))
    grouped.process_group = TorchProcessGroup(dist.HashStore(), 0, 1, device="cuda")
    found: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    for learner in (alone, grouped):
        seconds(learner, 4)  # captures the graphs
    for number in range(rounds):
        both = [("without", alone), ("with", grouped)]
        for name, learner in both[:: 1 if number % 2 else -1]:
            found[name].append(seconds(learner, updates))
    medians = {
        name: {part: statistics.median(one[part] for one in of) for part in of[0]}
        for name, of in found.items()
    }
    ratios = [b["whole"] / a["whole"] for a, b in zip(found["without"], found["with"], strict=True)]
    stats = grouped.iterate(0.0)[0].stats
    grouped.process_group.end_sums()
    return {
        "game": game,
        **medians,
        "ratio": statistics.median(ratios),
        "ratios": [round(ratio, 4) for ratio in ratios],
        "step_bytes": grouped.net.grad.nbytes,
        "steps": stats["learning/optimizer_steps"],
        "decisions": stats["learning/decisions"],
    }


def empty_memory() -> None:
    """Free the memory of learners that are gone; two processes share the GPU."""
    gc.collect()
    torch.cuda.empty_cache()


def of_equality(game: str, updates: int) -> dict[str, Any]:
    """Compare two processes with one."""
    config = preset(game)
    few = replace(config.collect, bf16=False, games=min(config.collect.games, 2048))
    rows = 2 * few.games * few.steps  # more than there are
    whole = replace(config.ppo, minibatch=rows, epochs=1, lr=Schedule.constant(3e-4))
    exact = replace(config, ppo=whole, collect=few)
    one, both = single(exact), pair(exact)
    try:
        before = one.net.weight.clone()
        for learner in (one, both):
            learner.iterate(0.0)
        apart = float((one.net.weight - both.net.weight).abs().max())
        moved = float((one.net.weight - before).abs().max())
        both.snapshot()  # raises if the two have other weights
    finally:
        both.close()
    del one, both, learner
    empty_memory()
    rounded = replace(config, collect=replace(config.collect, bf16=True))
    one, both, curve = single(rounded), pair(rounded), list[dict[str, Any]]()
    try:
        for number in range(updates):
            progress = number / updates
            reports = [learner.iterate(progress)[0].stats for learner in (one, both)]
            if number in (0, 1) or (number + 1) % max(updates // 10, 1) == 0:
                shown = {name: [stats.get(name) for stats in reports] for name in SHOWN}
                curve.append({"update": number + 1, **shown})
        both.snapshot()
        speed = {"one": seconds(one, 5), "two": seconds(both, 5)}
    finally:
        both.close()
    return {
        "game": game,
        "float32, one update": {"largest difference": apart, "largest change": moved},
        "bfloat16": curve,
        "equal to the bit": True,
        "seconds": speed,
    }


def reckoned(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Reckon weak scaling: every card has as many games as the one that was measured.

    A card needs the time measured with NCCL in the graph, and that of the sums over links.
    """
    alone, rows = measured["without"]["whole"], []
    for link, rate in LINKS.items():
        for cards in CARDS:
            hops = 2 * (cards - 1)
            share = hops / cards * measured["step_bytes"] / (rate * REACHED)
            sums = measured["steps"] * (share + hops * STEP_S)
            part = alone / (measured["with"]["whole"] + sums)
            rows.append(
                {
                    "link": link,
                    "cards": cards,
                    "sums_ms": 1000 * sums,
                    "efficiency": part,
                    "decisions_per_s": cards * part * measured["decisions"] / alone,
                }
            )
    return rows


def show_nccl(one: dict[str, Any]) -> None:
    a, b = one["without"], one["with"]
    times = ", ".join(
        f"{name} {1000 * a[name]:.2f} and {1000 * b[name]:.2f} ms" for name in ("whole", "update")
    )
    print(f"{one['game']}, without and with NCCL in the graph: {times}")
    print(f"  ratio {one['ratio']:.4f}, by round {one['ratios']}")
    print(
        f"  {one['steps']:.0f} steps of {one['step_bytes']:,} bytes, "
        f"{one['decisions']:,.0f} decisions an update"
    )


def show_equality(one: dict[str, Any]) -> None:
    exact = one["float32, one update"]
    print(
        f"{one['game']}, two processes and one, float32, one update: weights apart by at most "
        f"{exact['largest difference']:.2e}, moved by {exact['largest change']:.2e}"
    )
    print("  the two processes are equal to the bit; bfloat16, one / two:")
    print("  update  " + "  ".join(SHOWN))
    for row in one["bfloat16"]:
        cells = (" / ".join("-" if x is None else f"{x:.4g}" for x in row[k]) for k in SHOWN)
        print(f"  {row['update']:>6}  " + "  ".join(cells))
    print(f"  seconds: {one['seconds']}")


def show_reckoned(game: str, rows: list[dict[str, Any]]) -> None:
    print(f"{game}, reckoned: {REACHED:.0%} of a link, {STEP_S * 1e6:.0f} us a hop")
    for row in rows:
        print(
            f"  {row['link']:<11} {row['cards']} cards: sums {row['sums_ms']:.2f} ms an update, "
            f"efficiency {row['efficiency']:.1%}, "
            f"{row['decisions_per_s'] / 1e6:.1f} M decisions/s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["nccl", "equal", "reckoned"])
    parser.add_argument("--games", nargs="+", default=["skull_king", "connect_four"])
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("devices.py: needs a GPU, torch sees none here")
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    if {"nccl", "reckoned"} & set(given.parts):
        found["nccl"] = []
        for game in given.games:
            found["nccl"].append(of_nccl(game))
            empty_memory()
            show_nccl(found["nccl"][-1])
    if "reckoned" in given.parts:
        found["reckoned"] = {one["game"]: reckoned(one) for one in found["nccl"]}
        for game, rows in found["reckoned"].items():
            show_reckoned(game, rows)
    if "equal" in given.parts:
        found["equal"] = []
        for game in given.games:
            found["equal"].append(of_equality(game, given.updates))
            empty_memory()
            show_equality(found["equal"][-1])
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
