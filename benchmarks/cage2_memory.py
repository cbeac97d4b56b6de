"""What memory brings in CAGE-2: trainings of several settings and seeds, by the challenge's totals.

python benchmarks/cage2_memory.py --minutes 7                     all settings, seeds 0 to 2
python benchmarks/cage2_memory.py --only gru stack4 --parallel 6  some of them, six at once
python benchmarks/cage2_memory.py --device cuda --minutes 2       on a GPU, one after the other

Runs that go on side by side have cores of their own. A run that is there already is not trained
again: what was interrupted goes on where it was. Totals are kept in RUNS/totals.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from sides.cores import core_groups, side_by_side, threads_for
from sparring.errors import SparringError

PAST = ("--set", "scan_history=ALL", "--set", "decoys_left=1")
"""What the preset appends of the past."""
BARE = ("--set", "scan_history=NONE", "--set", "decoys_left=0")
STACK, GRU = ("--net.memory", "stack"), ("--net.memory", "gru")
SETTINGS: dict[str, tuple[str, ...]] = {
    "none": PAST,
    "stack4": (*PAST, *STACK, "--net.frames", "4"),
    "stack8": (*PAST, *STACK, "--net.frames", "8"),
    "gru": (*PAST, *GRU, "--net.segment", "16"),
    "gru32": (*PAST, *GRU, "--net.segment", "32"),
    "gru-entropy": (*PAST, *GRU, "--net.segment", "16", "--ppo.entropy", "0%:0.02,100%:0.001"),
    "bare": BARE,
    "bare-stack8": (*BARE, *STACK, "--net.frames", "8"),
    "bare-gru": (*BARE, *GRU, "--net.segment", "16"),
}
"""Networks, and what they see of the past besides."""


@dataclass(frozen=True)
class Training:
    """A setting with a seed."""

    setting: str
    seed: int

    @property
    def name(self) -> str:
        """Of its run."""
        return f"{self.setting}-{self.seed}"


def main() -> None:
    """Train what is asked for and print a line for each."""
    given = read_words()
    names = given.only or list(SETTINGS)
    jobs = [Training(name, seed) for seed in given.seeds for name in names]
    folder = Path(given.runs)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "totals.json"
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}

    def done(job: Training, told: dict[str, Any]) -> None:
        found[job.name] = told
        kept.write_text(json.dumps(found, indent=2) + "\n")
        print(
            f"{job.name}: {told['total']['mean']:.2f} +- {told['total']['error']:.2f}", flush=True
        )

    missing = [job for job in jobs if job.name not in found]
    groups = core_groups(given.pin, given.cores, given.parallel)
    side_by_side(missing, groups, lambda job, cores: train(job, given, len(cores)), done)
    print_table(names, given.seeds, found)


def read_words() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SETTINGS, help="settings; default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=7.0, help="of each training")
    parser.add_argument("--cores", type=int, default=1, help="of each run")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--pin", default="", help="cores to use, as 2,3,8-11; default: all")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--preset", default="CHALLENGE", help="of the simulator: CHALLENGE, FINAL")
    parser.add_argument("--runs", default="runs/cage2-memory", help="folder of the runs")
    return parser.parse_args()


def train(job: Training, given: argparse.Namespace, threads: int) -> dict[str, Any]:
    """Train one run and let it take the challenge, on the cores of this thread."""
    run = Path(given.runs) / job.name
    words = ["--seed", str(job.seed), "--minutes", f"{given.minutes:g}", "--set", "mask=1"]
    words += ["--set", f"preset={given.preset}", *SETTINGS[job.setting], "--device", given.device]
    words += ["--threads", str(threads), "--runs", given.runs, "--name", job.name]
    if run.exists():
        call("resume", str(run), threads=threads)
    else:
        call("train", "cage2", *words, threads=threads)
    judged = call("eval", str(run), "--protocol", "cage2", "--json", threads=threads)
    report: dict[str, Any] = json.loads(judged)
    return {name: report[name] for name in ("total", "results")}


def call(*words: str, threads: int) -> str:
    """Run a command as a user would; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "sparring.cli", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **threads_for(threads)},
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise SparringError(f"sparring {' '.join(words)}: {' '.join(last)}")
    return done.stdout


def print_table(names: list[str], seeds: list[int], found: dict[str, Any]) -> None:
    """Totals by setting: every seed, the mean, the best."""
    print(f"\n| setting | {' | '.join(f'seed {seed}' for seed in seeds)} | mean | best |")
    print("|---|" + "---:|" * (len(seeds) + 2))
    for name in names:
        totals = [found[f"{name}-{seed}"]["total"]["mean"] for seed in seeds]
        cells = " | ".join(f"{total:.2f}" for total in totals)
        print(f"| {name} | {cells} | {fmean(totals):.2f} | {max(totals):.2f} |")


if __name__ == "__main__":
    try:
        main()
    except SparringError as wrong:
        sys.exit(f"error: {wrong}")
