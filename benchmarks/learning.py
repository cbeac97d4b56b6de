"""How strong an agent becomes: `sparring train` over several seeds, kept as JSON.

python benchmarks/learning.py                            train, write results/learning-*.json
python benchmarks/learning.py --update-docs            ... and write the table of the docs
python benchmarks/learning.py --update-docs --stored   only the table, from the results there are
python benchmarks/learning.py --reports a.json b.json    from what `sparring train --json` printed
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pages import BENCHMARKS, ROOT, file_of, keep, stored, write_table
from sparring.machine import machine_info

GAME = "skull_king"


def main() -> None:
    """Train or read reports, and write down what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs, with seeds 0, 1, ...")
    parser.add_argument(
        "--minutes", type=float, help="training time of each; default: the preset's"
    )
    parser.add_argument("--reports", nargs="+", type=Path, help="reports instead of training")
    parser.add_argument("--stored", action="store_true", help="do not train, use what is there")
    parser.add_argument("--update-docs", action="store_true", help="write the table of the docs")
    given = parser.parse_args()
    if not given.stored:
        paths = given.reports
        reports = [json.loads(p.read_text()) for p in paths] if paths else train_all(given)
        path = store(reports)
        print(f"wrote {path.relative_to(ROOT)}")
    if given.update_docs:
        tables = [strength_table(record) for record in stored("learning")]
        write_table(BENCHMARKS, "strength", "\n\n".join(tables))


def train_all(given: argparse.Namespace, *more: str) -> list[dict[str, Any]]:
    """Run the command as a user would, once per seed. more: further options of it."""
    reports = []
    for seed in range(given.seeds):
        command = ["-m", "sparring.cli", "train", GAME, "--seed", str(seed), "--json", *more]
        if given.minutes:
            command += ["--minutes", str(given.minutes)]
        print(f"sparring {' '.join(command[2:])}", flush=True)
        done = subprocess.run(
            [sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True
        )
        reports.append(json.loads(done.stdout))
    return reports


def store(reports: list[dict[str, Any]]) -> Path:
    """Write a machine's record, replacing its older one."""
    machine = machine_info()
    name = f"{machine['cpu']}, {machine['cores']} cores"
    record = {
        "game": GAME,
        "machine": name,
        "python": machine["python"],
        "sparring": machine["sparring"],
        "commit": machine["commit"],
        "date": machine["date"][:10],
        "runs": [{key: r[key] for key in ("ended", "seconds", "results")} for r in reports],
    }
    return keep(record, file_of("learning", name))


def strength_table(record: dict[str, Any]) -> str:
    """Return win shares by opponent and run, with the lowest 95 % bound."""
    runs = record["runs"]
    heads = " | ".join(f"run {number + 1}" for number in range(len(runs)))
    lines = [
        f"| win share against three | {heads} | lowest 95 % bound |",
        "|---|" + "---:|" * (len(runs) + 1),
    ]
    for bot in reversed(runs[0]["results"]):
        found = [run["results"][bot] for run in runs]
        shares = " | ".join(f"{f['win']:.3f}" for f in found)
        lines.append(f"| `{bot}` | {shares} | {min(f['low'] for f in found):.3f} |")
    seconds = ", ".join(f"{run['seconds']:.0f}" for run in runs)
    games = runs[0]["results"]["captain"]["games"]
    return "\n".join(
        [
            *lines,
            "",
            f"Skull King, 4 players, an equal would win 0.25; {seconds} s of training with seeds 0 "
            f"to {len(runs) - 1}, then {games:,} seat-fair games against each bot. "
            f"{record['machine']}, Python {record['python']}, sparring {record['sparring']} at "
            f"{record['commit']}, {record['date']}.",
        ]
    )


if __name__ == "__main__":
    main()
