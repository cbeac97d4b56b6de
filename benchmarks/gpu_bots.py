"""What bots at the tables cost a training on a GPU, with settings that never change.

python benchmarks/gpu_bots.py                    every file of benchmarks/settings
python benchmarks/gpu_bots.py --only kuhhandel   those whose name begins so
python benchmarks/gpu_bots.py --alone            plain self-play as well, with the same settings
python benchmarks/gpu_bots.py --before FOLDER    an older checkout as well, built, in turn
python benchmarks/gpu_bots.py --json             the figures alone

The ceiling is the same update on the same batch with games that cost nothing: the networks answer
the rows of the last rollout once more (`sparring bench train`). Its share is what this is about.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "benchmarks" / "settings"
NOW, BEFORE = "now", "before"


def main() -> None:
    """Measure and print a line for every setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="settings whose name begins so")
    parser.add_argument("--alone", action="store_true", help="plain self-play as well")
    parser.add_argument("--before", type=Path, help="an older checkout, with its extension built")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of every measurement")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    files = sorted(SETTINGS.glob(f"{given.only}*.toml"))
    if not files:
        names = ", ".join(sorted(file.stem for file in SETTINGS.glob("*.toml")))
        parser.error(f"--only {given.only}: there are {names}")
    trees = {NOW: ROOT} | ({BEFORE: given.before.resolve()} if given.before else {})
    found: dict[str, Any] = {}
    for file in files:
        of: dict[str, Any] = {}
        for when, tree in trees.items():
            more = ["--rounds", str(given.rounds), "--device", given.device]
            of[when] = summary(bench(tree, file, more))
            if given.alone:
                of[f"{when}, self-play"] = summary(bench(tree, file, [*more, *SELF_PLAY]))
        found[file.stem] = of
        if not given.json:
            print("\n".join(lines_of(file.stem, of)), flush=True)
    if given.json:
        print(json.dumps(found, indent=1))
    if not all(one for of in found.values() for one in of.values()):
        sys.exit(1)


SELF_PLAY = ("--opponents", "self=1")


def bench(tree: Path, file: Path, more: list[str]) -> dict[str, Any]:
    """Run `sparring bench train` of a checkout; {} where it fails."""
    words = ["bench", "train", file.stem, "--config", str(file), *more, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "sparring", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
    )
    found: dict[str, Any] = json.loads(done.stdout) if not done.returncode else {}
    return found


def summary(report: dict[str, Any]) -> dict[str, float]:
    """The figures that count; {} if there are none."""
    if not report.get("valid"):
        return {}
    ours, ceiling = report["measured"]["ours"], report["measured"]["ceiling"]
    return {
        "decisions_per_s": ours["decisions_per_s"]["median"],
        "ceiling_per_s": ceiling["decisions_per_s"]["median"],
        "share": report["fraction"]["median"],
        "rollout": ours["phases"]["rollout"],
        "gpu_busy": ours["gpu_busy"],
    }


def lines_of(name: str, found: dict[str, dict[str, float]]) -> list[str]:
    """A line for everything that was measured of a setting."""
    lines = []
    for what, one in found.items():
        if not one:
            lines.append(f"{name}, {what}: failed")
            continue
        lines.append(
            f"{name}, {what}: {one['decisions_per_s'] / 1e6:.2f} M decisions/s, "
            f"{one['share']:.1%} of the ceiling ({one['ceiling_per_s'] / 1e6:.2f} M/s), "
            f"rollout {one['rollout']:.1%} of the time"
        )
    return lines


if __name__ == "__main__":
    main()
