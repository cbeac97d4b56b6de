"""Attention against the preset's perceptron: strength by minutes and by decisions, and passes.

python benchmarks/attention.py                          both games, 3 seeds of 90 s each, on a GPU
python benchmarks/attention.py --games skull_king --at-once 3 --with "ppo.lr=5e-4" --json
python benchmarks/attention.py --device cpu --seconds 300 --seeds 2
python benchmarks/attention.py --passes --rows 65536    what a pass forward and back takes on a GPU

Every run is one of `sparring train` with the game's preset; attention has the settings of
benchmarks/settings/attention besides, on a CPU the kind alone. Then `sparring compare` says which
is stronger, after as many minutes and after as many decisions. The same command goes on where it
was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from choices import Choice, Noting, compared, train_all
from sides.words import read_side
from sparring import Rules
from sparring.config import NetConfig, TrainConfig
from sparring.config.tables import joined
from sparring.errors import SparringError
from sparring.machine import machine_facts, warn_if_busy
from sparring.measuring.configs import Planned, complete_one
from sparring.nets.flat_kinds import make_flat
from sparring.pools import Pool

SETTINGS = Path(__file__).resolve().parent / "settings" / "attention"
PERCEPTRON, ATTENTION = "perceptron", "attention"
EVALUATION: dict[str, Any] = {"every_s": 15.0, "games": 512, "final_games": 2048}
"""Matches are played on the CPU, where attention takes its time: fewer games than usual."""
BEST = 2
"""Bots that are met, the strongest."""
WARM_UP, REPEATS = 3, 20
KERNELS = 14
"""Kernels that --passes names, those that take the most time."""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", nargs="+", default=["skull_king", "kuhhandel"])
    parser.add_argument("--seconds", type=float, default=90.0, help="training time of a run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--at-once", dest="parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--cores", type=int, default=4, help="cores and threads of a run")
    parser.add_argument("--pin", default="", help="the cores to run on, such as 2,3 or 2-15")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--with", dest="more", default="", help="more settings of attention")
    parser.add_argument("--matches", type=int, default=0, help="games between the best of each")
    parser.add_argument("--out", type=Path, default=Path("bench-attention"), help="for the runs")
    parser.add_argument("--passes", action="store_true", help="time passes instead of training")
    parser.add_argument("--rows", type=int, nargs="+", default=[8192, 65536], help="of a pass")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.minutes = given.seconds / 60
    if given.seconds <= 0 or not 1 <= given.seeds <= 64:
        parser.error("--seconds must be above 0, --seeds 1 to 64")
    return given


def main() -> None:
    """Train what is left, compare and print; or time passes."""
    given = options()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    try:
        found = passes(given) if given.passes else trainings(given)
    except SparringError as wrong:
        print(f"attention: {wrong}", file=sys.stderr)
        sys.exit(2)
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        print(json.dumps({"machine": facts, "options": settings, "found": found}, indent=1))


def trainings(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Train both kinds in every game and compare them."""
    choices = [
        Choice(
            game,
            "attention",
            {side: runs_of(game, side, given) for side in (PERCEPTRON, ATTENTION)},
        )
        for game in given.games
    ]
    progress = Noting.read(given.out)
    assert isinstance(progress, Noting)
    train_all(choices, progress, given)
    return [compared(choice, progress, given) for choice in choices]


def runs_of(game: str, side: str, given: argparse.Namespace) -> list[Planned]:
    """Return the runs of one side, a run for every seed."""
    table: dict[str, Any] = {"game": game, "threads": given.cores, "device": given.device}
    table["eval"] = {**EVALUATION, "against": list(Rules(game).bots[-BEST:])}
    if side == ATTENTION:
        table = joined(joined(table, settings_of(game, given.device)), read_side(given.more)[0])
    name = f"{game}-{side}"
    config: TrainConfig = complete_one(name, {}, table, (), given.minutes)
    return [
        Planned(
            name,
            replace(config, seed=seed, name=f"{name}-s{seed}", runs=str(given.out.absolute())),
        )
        for seed in range(given.first_seed, given.first_seed + given.seeds)
    ]


def settings_of(game: str, device: str) -> dict[str, Any]:
    """What attention is trained with beside the preset."""
    if device == "cpu":
        return {"net": {"kind": "attention"}}
    return tomllib.loads((SETTINGS / f"{game}.toml").read_text("utf-8"))


# Passes


def passes(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Time passes over batches on a GPU, as graphs, and name the kernels that take the time."""
    found = []
    for game in given.games:
        rules = Rules(game)
        table = joined(settings_of(game, given.device), read_side(given.more)[0])
        nets = {
            PERCEPTRON: NetConfig(hidden=(512, 512, 256)),
            ATTENTION: NetConfig(**table["net"]),
        }
        for rows in given.rows:
            for kind, net in nets.items():
                told = {"game": game, "net": kind, "rows": rows, **timed(rules, net, rows, given)}
                found.append(told)
                if not given.json:
                    show_passes(told)
    return found


def timed(rules: Rules, net: NetConfig, rows: int, given: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a pass forward without gradients, and of one forward and back."""
    device = torch.device(given.device)
    flat = make_flat(rules, net, 1, bf16=True, device=device)
    flat.weight.normal_(std=0.05)
    flat.compute.copy_(flat.weight)
    obs = rows_of(rules, rows).to(device)
    acting, learning = flat.passing(rows, learn=False), flat.passing(rows, learn=True)
    learning.logits_grad.normal_()
    learning.value_grad.normal_()

    def act() -> None:
        acting.read(obs)
        acting.forward()

    def learn() -> None:
        learning.read(obs)
        learning.forward()
        learning.backward()

    times = {"forward_ms": graphed(act), "both_ms": graphed(learn)}
    return {**times, "rows_per_s": 1e3 * rows / times["both_ms"], "kernels": kernels_of(learn)}


def graphed(work: Callable[[], None]) -> float:
    """Milliseconds of work that is replayed as a graph."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    first.record()
    for _ in range(REPEATS):
        graph.replay()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / REPEATS


def kernels_of(work: Callable[[], None]) -> dict[str, float]:
    """Milliseconds by kernel, the longest first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    told = {one.key: one.self_device_time_total / 1e3 for one in profile.key_averages()}
    return dict(sorted(told.items(), key=lambda one: -one[1])[:KERNELS])


def show_passes(told: dict[str, Any]) -> None:
    """Print a line, and where the time goes."""
    print(
        f"{told['game']}, {told['net']}, {told['rows']:,} rows: "
        f"forward {told['forward_ms']:.2f} ms, with backward {told['both_ms']:.2f} ms, "
        f"{told['rows_per_s'] / 1e6:.1f} M rows/s"
    )
    for name, ms in told["kernels"].items():
        print(f"    {ms:7.3f} ms  {name[:110]}")


def rows_of(rules: Rules, count: int) -> torch.Tensor:
    """Observations from games at many moments."""
    pool, found = Pool(rules, 512, seed=3), []
    pool.reset()
    while sum(map(len, found)) < count:
        pool.run_random(5)
        found.append(torch.from_numpy(pool.batch().obs.copy()))
    return torch.cat(found)[:count].contiguous()


if __name__ == "__main__":
    main()
