"""All GPU measurements, through the project's commands, saved as one JSON file.

python benchmarks/gpu.py                     measure, write results/gpu-<name>.json
python benchmarks/gpu.py --out FILE          ... to another file
python benchmarks/gpu.py --only pool strength    only the parts whose names begin so
python benchmarks/gpu.py --headline          only what the README shows
python benchmarks/gpu.py --update-docs FILE...   only take parts of such files into results/, and
                                             write the table of docs/inside/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from pages import BENCHMARKS, file_of, keep, stored, write_table
from sparring.games import game_names
from sparring.machine import machine_info
from sparring.training.records.metrics import read

GAME = "skull_king"
HIDDEN = ("--hidden", "512", "--hidden", "512", "--hidden", "256")
LARGE = ("--games", "65536", "--steps", "16", "--minibatch", "65536", "--opponents", "self=1")
MEMBER = ("--games", "4096", "--steps", "16", "--minibatch", "4096", "--opponents", "self=1")
TOWERS = (*HIDDEN, "--shared", "False")
TRAINING: dict[str, tuple[str, ...]] = {
    "two towers, 1 epoch": (*LARGE, *TOWERS, "--epochs", "1"),
    "two towers, 4 epochs": (*LARGE, *TOWERS, "--epochs", "4"),
    "two towers, 15 epochs": (*LARGE, *TOWERS, "--epochs", "15", "--rounds", "3"),
    "one trunk, 1 epoch": (*LARGE, *HIDDEN, "--shared", "True", "--epochs", "1"),
    "one trunk 256-256, 4 epochs": (
        *(*LARGE, "--hidden", "256", "--hidden", "256"),
        *("--shared", "True", "--epochs", "4"),
    ),
    "as sparring train does": (),
    "kuhhandel as sparring train does": ("kuhhandel",),
    "kuhhandel, two towers, 1 epoch": ("kuhhandel", *LARGE, *TOWERS, "--epochs", "1"),
    "laser_hockey as sparring train does": ("laser_hockey",),
    "laser_hockey, two towers, 1 epoch": ("laser_hockey", *LARGE, *TOWERS, "--epochs", "1"),
    "cage2 as sparring train does": ("cage2",),
    "cage2, two towers, 1 epoch": ("cage2", *LARGE, *TOWERS, "--epochs", "1"),
    "shogi, self-play": ("shogi", "--opponents", "self=1"),
    "games on the CPU, 1 epoch": (*LARGE, *TOWERS, "--epochs", "1", "--pool", "cpu"),
    "a member alone": (*MEMBER, *TOWERS, "--epochs", "4"),
    "population of 8": (*MEMBER, *TOWERS, "--epochs", "4", "--population", "8"),
}
"""Options of `sparring bench train`, by what they measure; Skull King where no game is named."""
HEADLINE = ("pool skull_king", "train as sparring train does", "strength")
"""Parts that headline.py shows, and what explains them."""


def main() -> None:
    """Measure and save the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--only", nargs="+", default=[""], help="parts whose names begin so")
    parser.add_argument("--headline", action="store_true", help="only what the README shows")
    parser.add_argument("--minutes", type=float, default=1.0, help="training time for strength")
    parser.add_argument(
        "--update-docs", nargs="*", type=Path, help="take in files, write the table"
    )
    given = parser.parse_args()
    if given.update_docs is not None:
        records = [json.loads(path.read_text()) for path in given.update_docs]
        for path, record in zip(given.update_docs, records, strict=True):
            if None in (part["machine"]["commit"] for part in record["parts"].values()):
                raise SystemExit(f"{path} names no commit: it was measured outside a checkout")
        update_docs(records)
        return
    wanted = HEADLINE if given.headline else tuple(given.only)
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here; nothing to measure")
    gpu = torch.cuda.get_device_name()
    parts: dict[str, Any] = {}
    for name in game_names():
        parts[f"pool {name}"] = ["bench", "pool", name]
    for name, options in TRAINING.items():
        game, *rest = options if options and options[0] in game_names() else (GAME, *options)
        parts[f"train {name}"] = ["bench", "train", game, *rest]
    record: dict[str, Any] = {
        "machine": {**machine_info(), "gpu": gpu, "torch": torch.__version__},
        "parts": {},
    }
    for name, words in parts.items():
        if name.startswith(wanted):
            record["parts"][name] = command([*words, "--device", "cuda"])
    if "strength".startswith(wanted):
        record["parts"]["strength"] = strength(given.minutes)
    for part in record["parts"].values():
        part["machine"] = {**record["machine"], **part.get("machine", {})}
    path = given.out or file_of("gpu", gpu)
    keep(record if given.out else merged([*stored("gpu"), record], gpu), path)
    for line in summary(record):
        print(line)
    print(f"wrote {path}")


def command(words: list[str]) -> dict[str, Any]:
    """Run a command as a user would and return its report."""
    started = time.perf_counter()
    program = [sys.executable, "-m", "sparring", *words, "--json"]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - started
    print(f"sparring {' '.join(words)}: {seconds:.0f} s", file=sys.stderr, flush=True)
    if done.returncode:
        return {"failed": done.returncode}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def strength(minutes: float) -> dict[str, Any]:
    """Train from scratch; keep the evaluations on the way."""
    words = ["train", GAME, "--minutes", str(minutes), "--device", "cuda", "--threads", "8"]
    words += ["--eval.every-s", "5", "--eval.against", "captain", "rule_hard"]
    report = command(words)
    if "run" in report:
        curves = read(Path(report["run"]))
        for bot in ("captain", "rule_hard"):
            _, seconds, low = curves[f"eval/{bot}/low"]
            win = curves[f"eval/{bot}/win"][2]
            report[f"curve against {bot}"] = [
                {"seconds": round(float(s), 1), "win": float(w), "low": float(x)}
                for s, w, x in zip(seconds, win, low, strict=True)
            ]
        busy = curves["charts/gpu_busy"][2]
        report["gpu_busy"] = float(sorted(busy)[len(busy) // 2])
        rates = curves["charts/SPS"][2]
        report["decisions_per_s"] = float(sorted(rates)[len(rates) // 2])
    return report


def summary(record: dict[str, Any]) -> list[str]:
    """One line per part."""
    lines = []
    for name, part in record["parts"].items():
        if "failed" in part:
            lines.append(f"{name}: FAILED with exit code {part['failed']}")
        elif name.startswith("pool"):
            cells = [
                f"{c['games']:,} games {'with' if c['observe'] else 'without'} observation "
                f"{c['decisions_per_s'] / 1e6:.0f}M/s"
                for c in part["measured"]
            ]
            lines.append(f"{name}: {', '.join(cells)}")
        elif name.startswith("train"):
            ours = part["measured"]["ours"]
            rate = ours["decisions_per_s"]["median"]
            rollout = rate / ours["phases"]["rollout"]
            lines.append(
                f"{name}: {rate / 1e6:.2f}M decisions/s, rollout alone {rollout / 1e6:.1f}M/s, "
                f"{part['fraction']['median']:.1%} of the ceiling, GPU busy {ours['gpu_busy']:.1%}"
            )
        else:
            found = {bot: round(r["win"], 3) for bot, r in part.get("results", {}).items()}
            lines.append(f"{name}: {found}, curve {part.get('curve against captain')}")
    return lines


def merged(records: list[dict[str, Any]], gpu: str) -> dict[str, Any]:
    """Return one record of a GPU; of a part that several records have, the last counts."""
    mine = [record for record in records if record["machine"]["gpu"] == gpu]
    parts = {}
    for record in mine:
        for name, part in record["parts"].items():
            if "failed" not in part:
                parts[name] = {**part, "machine": part.get("machine", record["machine"])}
    return {"machine": mine[-1]["machine"], "parts": parts}


def update_docs(records: list[dict[str, Any]]) -> None:
    """Take the parts of records into the kept one of their GPU, and write its table."""
    everything = [*stored("gpu"), *records]
    gpu = everything[-1]["machine"]["gpu"]
    record = merged(everything, gpu)
    keep(record, file_of("gpu", gpu))
    write_table(BENCHMARKS, "gpu", table(record))


def table(record: dict[str, Any]) -> str:
    """Return a table with a line per part, speeds first."""
    parts, machine = record["parts"], record["machine"]
    rows = ["| | |", "|---|---:|"]
    for name, part in parts.items():
        if name.startswith("pool"):
            best = max((c for c in part["measured"] if c["observe"]), key=rate_of)
            share = best["bytes_per_s"] / part["copy_bytes_per_s"]
            rows.append(
                f"| {part['game']}, stepping with observation and mask, {best['games']:,} games | "
                f"{rate_of(best) / 1e6:,.0f} M decisions/s ({share:.0%} of memory bandwidth) |"
            )
    for name, part in parts.items():
        if name.startswith("train"):
            ours = part["measured"]["ours"]
            rate = ours["decisions_per_s"]["median"]
            rollout = rate / ours["phases"]["rollout"]
            rows.append(
                f"| {part['game']}, training end to end: {name.removeprefix('train ')} | "
                f"{rate / 1e6:.1f} M decisions/s ({part['fraction']['median']:.0%} of the ceiling; "
                f"rollout alone {rollout / 1e6:.0f} M) |"
            )
    curve = parts.get("strength", {}).get("curve against captain", [])
    for point in curve[:1] + curve[-1:]:
        rows.append(
            f"| win share against three `captain` after {point['seconds']:.0f} s of training | "
            f"{point['win']:.2f} |"
        )
    commits = ", ".join(dict.fromkeys(part["machine"]["commit"][:7] for part in parts.values()))
    rows += [
        "",
        f"{machine['gpu']}, torch {machine['torch']}, sparring {machine['sparring']} at {commits} "
        f"(each part of the file names its own), {machine['date'][:10]}. Networks are 512-512-256 "
        "in bf16 and there are 65,536 games where not said otherwise; `sparring train` has 16,384, "
        "a population of 8 has 4,096 each. Shogi has a residual net of 128 channels and 6 blocks "
        "and 4,096 games.",
    ]
    return "\n".join(rows)


def rate_of(cell: dict[str, Any]) -> float:
    """Decisions per second of a measured pool."""
    return float(cell["decisions_per_s"])


if __name__ == "__main__":
    main()
