"""Training speed on one game: sparring, sb3-contrib's MaskablePPO and a plain torch loop.

python benchmarks/train_vs_peers.py                  measure, write results/train-<machine>.json
python benchmarks/train_vs_peers.py --original       ... and compare with the original environment
python benchmarks/train_vs_peers.py --update-docs    ... and write it into docs/inside/benchmarks.md
python benchmarks/train_vs_peers.py --stored         do not measure, show the results there are
python benchmarks/train_vs_peers.py --short          the largest sizes alone, not kept
python benchmarks/train_vs_peers.py --quick          a smoke run; its figures mean nothing

Every contestant lives in a process of its own and trains when it is its turn: Skull King with four
players, the learner in one seat and random bots in the others.
docs/inside/benchmarks.md says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pages import RESULTS, ROOT, file_of, keep, stored, write_table
from peers.contest import compare, contest
from peers.entries import BOT, GAME, QUICK, SEATS, Entry, Settings, entries
from peers.figures import docs_figures, original_lines, ratio_lines, text_table
from peers.serve import serve
from sides.words import read_side
from sparring.machine import machine_info, warn_if_busy

QUICK_RESULTS = ROOT / "build" / "benchmarks"
SHORT_RESULTS = QUICK_RESULTS / "short"
DOCS = ROOT / "docs/inside/benchmarks.md"


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="turns of every contestant; 9, of --short 5")
    parser.add_argument("--threads", type=int, default=2, help="for torch, OpenBLAS and games")
    parser.add_argument("--quick", action="store_true", help="a smoke run of small sizes")
    parser.add_argument("--short", action="store_true", help="only the largest sizes, and ours")
    parser.add_argument(
        "--with", dest="ours", default="", help="settings of ours: collect.cpu=torch"
    )
    parser.add_argument("--json", action="store_true", help="print the record instead of a table")
    parser.add_argument("--original", action="store_true", help="compare with the original env")
    parser.add_argument("--stored", action="store_true", help="do not measure")
    parser.add_argument("--update-docs", action="store_true", help="write the table of the docs")
    parser.add_argument("--out", type=Path, help="the folder for the results")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rounds is None:
        given.rounds = 5 if given.short else 9
    if (given.quick or given.short) and given.update_docs:
        parser.error("figures of a --quick or --short run do not belong in the docs")
    if given.rounds < 3:
        parser.error("--rounds must be at least 3, so that games come to their end")
    return given


def main() -> None:
    """Take part in a contest that is running, or hold one."""
    given = options()
    if not given.contestant:
        return report(given)
    entry, settings = json.loads(given.contestant)
    settings["hidden"] = tuple(settings["hidden"])
    return serve(Entry(**entry), Settings(**settings))


def report(given: argparse.Namespace) -> None:
    """Measure unless told otherwise, write it down and show it."""
    kept = {"quick": QUICK_RESULTS, "short": SHORT_RESULTS}
    folder = given.out or next((at for word, at in kept.items() if vars(given)[word]), RESULTS)
    if not given.stored:
        record = measure(given)
        for result in record["contestants"]:
            for problem in result["problems"]:
                print(f"{result['label']}: {problem}", file=sys.stderr)
        if not record["valid"]:
            sys.exit("not valid; nothing was written")
        print(f"wrote {keep(record, file_of('train', record['machine'], folder))}", file=sys.stderr)
    for record in stored("train", folder):
        if given.json:
            print(json.dumps(record, indent=1))
            continue
        print(text_table(record))
        print(ratio_lines(record))
        if given.original:
            print(original_lines(record))
    if given.update_docs:
        write_table(DOCS, "train figures", docs_figures(stored("train", folder)))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run the contest and return one record for this machine."""
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    settings = replace(
        QUICK if given.quick else Settings(),
        threads=given.threads,
        ours=read_side(given.ours)[0].get("collect", {}),
    )
    field = entries([16, 64, 256], [64, 256], 256)
    if given.quick:
        field = entries([16], [16], 16)
    elif given.short:
        field = entries([256], [256], 256)
    results = contest(field, settings, 2 if given.quick else given.rounds)
    system = facts["system"].split()
    libraries = ("torch", "numpy", "stable-baselines3", "sb3-contrib", "gymnasium")
    return {
        "machine": f"{facts['cpu']}, {facts['cores']} cores",
        "system": f"{system[0]} {system[-1]}",
        "python": facts["python"],
        **{name: version(name) for name in libraries},
        **{name: facts[name] for name in ("sparring", "commit", "load_average")},
        "date": facts["date"][:10],
        "quick": given.quick,
        "valid": not any(result["problems"] for result in results),
        "settings": {"game": GAME, "opponents": [BOT] * (SEATS - 1), **asdict(settings)},
        "best": compare(results),
        "contestants": results,
    }


if __name__ == "__main__":
    main()
