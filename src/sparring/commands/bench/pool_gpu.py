"""`sparring bench pool --device cuda`: check that a GPU plays the CPU's games, then measure."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.text import Text

from sparring.commands.bench.shared import (
    BenchRecorder,
    details,
    finish,
    machine_line,
    proof_line,
    rate_summary,
    short,
)
from sparring.commands.shared.printing import ProgressBar, make_console, make_table, print_table
from sparring.config.commands import BenchPoolConfig
from sparring.games import Rules
from sparring.games.flags import changed_flags, read_rules
from sparring.machine import machine_info
from sparring.pools import Pool
from sparring.pools.cuda import CudaPool
from sparring.proof.validity import Proof, prove
from sparring.speed.bench_records import Figure

COMPARED_GAMES, COMPARED_STEPS = 512, 600
SIZES = (16_384, 65_536, 262_144)
"""Default numbers of games at once."""
COPIED_BYTES = 2 << 30
ARRAYS = ("obs", "mask", "seat", "role", "policy", "reward", "terminated", "truncated")


def run(config: BenchPoolConfig) -> int:
    """Check, compare, measure, report; 3 if the games are not valid."""
    rules = read_rules(config.game, config.set)
    sizes = SIZES if config.games == BenchPoolConfig.games else (config.games,)
    report: dict[str, Any] = {
        "command": "bench pool",
        "game": rules.name,
        "flags": changed_flags(rules),
        "options": {k: getattr(config, k) for k in ("games", "seconds", "rounds", "seed")},
        "machine": {**machine_info(), "gpu": torch.cuda.get_device_name()},
    }
    known = {"game": rules.name, "flags": report["flags"], "games": sizes, "seed": config.seed}
    recorder = BenchRecorder(config, "bench pool", known, config.device)
    with ProgressBar(f"bench {rules.name}", len(sizes) + 2) as steps:
        steps.next("checking the games")
        proof = prove(rules, config.seed)
        steps.next("comparing with the CPU")
        proof.problems += differences(rules, config.seed)
        report["measured"] = []
        for games in sizes if proof.valid else ():
            steps.next(f"{games:,} games")
            report["measured"] += [
                measure(rules, games, config, observe=observe, proof=proof)
                for observe in (True, False)
            ]
    report["valid"], report["proof"] = proof.valid, asdict(proof)
    report["copy_bytes_per_s"] = round(copy_rate())
    return finish(recorder, report, figures(report["measured"]), show)


def figures(cells: list[dict[str, Any]]) -> dict[str, Figure]:
    return {
        f"{cell['games']:,} games, {'with observation' if cell['observe'] else 'without'}": Figure(
            tuple(cell["rounds"]), "decisions/s"
        )
        for cell in cells
    }


def differences(rules: Rules, seed: int) -> list[str]:
    """Play the same games on both; return the first difference, [] if there is none."""
    cpu = Pool(rules, COMPARED_GAMES, seed=seed)
    gpu = CudaPool(rules, COMPARED_GAMES, seed=seed)
    cpu.reset()
    gpu.reset()
    for step in range(COMPARED_STEPS):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        ours, theirs = cpu.batch(), gpu.batch()
        for name in ARRAYS:
            mine = np.ascontiguousarray(getattr(ours, name)).view(np.uint8)
            other = getattr(theirs, name).cpu().numpy()
            if not np.array_equal(mine, np.ascontiguousarray(other).view(np.uint8)):
                return [f"step {step}: {name} differs between CPU and GPU"]
    if cpu.state() != gpu.state():
        return ["the states differ between CPU and GPU"]
    return []


def measure(
    rules: Rules, games: int, config: BenchPoolConfig, *, observe: bool, proof: Proof
) -> dict[str, Any]:
    """Replay captured steps with random legal actions; events time them on the device."""
    pool = CudaPool(rules, games, seed=config.seed, observe=observe)
    pool.reset()
    burst = max(round(proof.mean), 16)

    def play() -> None:
        for _ in range(burst):
            pool.step(pool.sample_actions())

    play()
    live = float((pool.batch().policy >= 0).sum())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        play()
    once = timed(graph.replay)
    repeats = max(1, int(config.seconds / config.rounds / len(SIZES) / 2 / once))
    rates = []

    def replay() -> None:
        for _ in range(repeats):
            graph.replay()

    for _ in range(config.rounds):
        seconds = timed(replay)
        live = (live + float((pool.batch().policy >= 0).sum())) / 2
        rates.append(burst * repeats * live / seconds)
    pool.check()
    batch = pool.batch()
    row_bytes = (batch.obs.shape[1] + batch.mask.shape[1]) if observe else 0
    moved = 2 * (pool.tables.shape[1] + pool.side.shape[1]) + row_bytes * rules.rows
    return {
        "games": games,
        "observe": observe,
        **rate_summary(rates),
        "bytes_written_per_row": row_bytes,
        "bytes_moved_per_game_step": moved,
        "bytes_per_s": round(median(rates) / max(live, 1) * games * moved),
    }


def timed(work: Any) -> float:
    start: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1000


def copy_rate() -> float:
    """Bytes per second, read and written, of a large copy: the memory bandwidth."""
    source = torch.randint(0, 255, (COPIED_BYTES,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds = median(timed(lambda: target.copy_(source)) for _ in range(5))
    return 2 * COPIED_BYTES / seconds


def show(report: dict[str, Any]) -> None:
    out = make_console()
    out.print(Text(f"{proof_line(report)}, the same on CPU and GPU", style="bold green"))
    out.print(details(report))
    out.print()
    heads = ("with observation", "share of bandwidth", "without")
    caption = "decisions/s, median; random actions and masks included; one captured graph"
    table = make_table(("games", *heads), numbers=heads, caption=caption)
    rows: dict[int, list[dict[str, Any]]] = {}
    for cell in report["measured"]:
        rows.setdefault(cell["games"], []).append(cell)
    for games, (seen, blind) in rows.items():
        share = seen["bytes_per_s"] / report["copy_bytes_per_s"]
        table.add_row(
            f"{games:,}",
            short(seen["decisions_per_s"]),
            f"{share:.1%}",
            short(blind["decisions_per_s"]),
        )
    print_table(table)
    seen = report["measured"][0]
    out.print(
        f"a step writes {seen['bytes_written_per_row']:,} B per row and moves "
        f"{seen['bytes_moved_per_game_step']:,} B per game in all (state both ways); "
        f"a plain copy moves {report['copy_bytes_per_s'] / 1e12:.2f} TB/s"
    )
    out.print(f"{machine_line(report['machine'])}, {report['machine']['gpu']}")
