"""The headline figures: five lines of the README and of docs/index.md, each with its source.

python benchmarks/headline.py                 measure on this CPU, write results/headline-*.json
python benchmarks/headline.py --quick         a smoke run into build/; its figures mean nothing
python benchmarks/headline.py --update-docs   ... and write the table, from all sources
python benchmarks/headline.py --stored --update-docs     only the table, from the sources there are
python benchmarks/headline.py --check         name the figures that are older than the code

The figures of a GPU are those of benchmarks/gpu.py (`make gpu`), those of a champion stand in its
file. A figure whose source is gone is an error; the newest record of a CPU counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import learning
import pool
from pages import README, RESULTS, ROOT, file_of, keep, stored, write_table
from sparring.machine import machine_info, warn_if_busy

KIND, MARK = "headline", "headline"
PAGES = {README: "", ROOT / "docs/index.md": "../"}
"""Where the table stands, and what leads from there to the root."""
GPU = "benchmarks/results/gpu-nvidia-h200.json"
CHAMPION = "src/sparring/zoo/skull_king.toml"
GAME, BOT = "skull_king", "captain"
GPU_PART = "train as sparring train does"
QUICK = ROOT / "build" / "benchmarks"


@dataclass(frozen=True)
class Figure:
    """A line of the table. source: the file that has the value."""

    what: str
    value: str
    machine: str
    commit: str
    date: str
    source: str


def main() -> None:
    """Measure unless told otherwise, then write the table or say what is old."""
    given = options()
    if given.check:
        print("\n".join(f"{figure.what}: {age(figure.commit)}" for figure in figures()))
        return
    if not given.stored:
        record = measure(given)
        path = keep(record, file_of(KIND, record["machine"], QUICK if given.quick else RESULTS))
        print(f"wrote {path.relative_to(ROOT)}")
        for name, part in record["parts"].items():
            print(f"{name}: {part}")
    if given.update_docs:
        for page in PAGES:
            write_table(page, MARK, table(page))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="trainings of five minutes")
    parser.add_argument("--quick", action="store_true", help="a smoke run of small sizes")
    parser.add_argument("--stored", action="store_true", help="do not measure")
    parser.add_argument("--update-docs", action="store_true", help="write the tables")
    parser.add_argument("--check", action="store_true", help="say which figures are old, and end")
    given = parser.parse_args()
    if given.quick and given.update_docs:
        parser.error("figures of a --quick run do not belong in the docs")
    if given.seeds < 1:
        parser.error("--seeds must be at least 1")
    return given


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure what a CPU has to say, the shortest first, and return one record."""
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    stepping = pool_part(pool.bench(GAME, 2.0 if given.quick else 20.0))
    beside = peers_part(contest(quick=given.quick))
    with_seeds = argparse.Namespace(seeds=given.seeds, minutes=0.1 if given.quick else None)
    few = ("--eval.final-games", "64") if given.quick else ()
    strength = strength_part(learning.train_all(with_seeds, *few))
    return {
        "machine": f"{facts['cpu']}, {facts['cores']} cores",
        **{name: facts[name] for name in ("python", "sparring", "commit", "load_average")},
        "date": facts["date"][:10],
        "quick": given.quick,
        "parts": {"pool": stepping, "peers": beside, "strength": strength},
    }


def pool_part(report: dict[str, Any]) -> dict[str, Any]:
    """Decisions per second of a pool on all threads, stepped from Python."""
    cells = [c for c in report["measured"] if c["observe"] and c["driver"] == "Python"]
    best = max(cells, key=lambda cell: int(cell["threads"]))
    named = {name: best[name] for name in ("decisions_per_s", "min", "max", "threads")}
    return {**named, "games": report["options"]["games"], "valid": report["valid"]}


def contest(*, quick: bool) -> dict[str, Any]:
    """Train beside MaskablePPO, in turn on the same machine."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--quick" if quick else "--short", "--out", folder]
        program = [sys.executable, str(ROOT / "benchmarks/train_vs_peers.py"), *words]
        print("train_vs_peers.py", *words[:1], flush=True)
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        (record,) = stored("train", Path(folder))
    return record


def peers_part(record: dict[str, Any]) -> dict[str, Any]:
    """Samples per second with the same networks, and the ratio to MaskablePPO's fastest."""
    sides = {one["name"]: one for one in record["contestants"]}
    theirs = sides[record["best"]["maskable"]]
    ours = max(
        (
            one
            for one in sides.values()
            if "of_ceiling" in one and one["parameters"] == theirs["parameters"]
        ),
        key=lambda one: float(one["samples_per_s"]["median"]),
    )
    return {
        "ours": ours["samples_per_s"],
        "maskable": theirs["samples_per_s"],
        "ratio": ours["to_maskable"],
        "net": ours["label"],
    }


def strength_part(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Win share against three captains after `make train`, one training per seed."""
    found = [report["results"][BOT] for report in reports]
    names = ("win", "low", "high", "games")
    runs = [{name: one[name] for name in names} for one in found]
    return {"seeds": len(runs), "seconds": [one["seconds"] for one in reports], "runs": runs}


def figures() -> list[Figure]:
    """Return all figures from their sources; one that is missing ends the program."""
    return [*cpu_figures(), gpu_figure(), champion_figure()]


def cpu_figures() -> list[Figure]:
    """Return what the newest record of a CPU says."""
    records = stored(KIND)
    if not records:
        sys.exit("benchmarks/results has no headline-*.json: run python benchmarks/headline.py")
    record = max(records, key=lambda one: str(one["date"]))
    source = str(file_of(KIND, record["machine"]).relative_to(ROOT))
    parts = record["parts"]
    stepping, beside, strength = (parts[name] for name in ("pool", "peers", "strength"))
    runs = sorted(strength["runs"], key=lambda run: float(run["win"]))
    shares = " and ".join(f"{run['win']:.1%}" for run in runs)
    bounds = f"{min(run['low'] for run in runs):.1%} .. {max(run['high'] for run in runs):.1%}"
    threads = stepping["threads"]
    rows = {
        "pool": (
            f"Skull King stepped from Python, observation and mask, {threads} "
            f"thread{'s' * (threads > 1)}",
            f"{pool.short(stepping['decisions_per_s'])} decisions/s "
            f"({pool.short(stepping['min'])} .. {pool.short(stepping['max'])})",
        ),
        "peers": (
            "PPO on Skull King beside MaskablePPO of sb3-contrib: the same networks, batch, epochs",
            f"{pool.short(beside['ours']['median'])} samples/s against "
            f"{pool.short(beside['maskable']['median'])}: {beside['ratio']['median']:.1f} times "
            f"({beside['ratio']['min']:.1f} .. {beside['ratio']['max']:.1f})",
        ),
        "strength": (
            "`make train`: wins against three `captain` after "
            f"{median(strength['seconds']) / 60:.0f} minutes; an equal has 25 %",
            f"{shares} ({bounds}), {len(runs)} seed{'s' * (len(runs) > 1)}",
        ),
    }
    found = []
    for name, (what, value) in rows.items():
        told = {**record, **parts[name]}
        found.append(Figure(what, value, record["machine"], told["commit"], told["date"], source))
    return found


def gpu_figure() -> Figure:
    """Return the speed of `sparring train` on a GPU."""
    record = json.loads((ROOT / GPU).read_text())
    part = record["parts"][GPU_PART]
    rate = part["measured"]["ours"]["decisions_per_s"]
    value = f"{pool.short(rate['median'])} decisions/s ({span(rate)})"
    machine = {**record["machine"], **part.get("machine", {})}
    what = "`sparring train skull_king` on a GPU, end to end"
    return Figure(what, value, machine["gpu"], machine["commit"], machine["date"][:10], GPU)


def span(rate: dict[str, Any]) -> str:
    """Return the range of a rate."""
    return f"{pool.short(rate['min'])} .. {pool.short(rate['max'])}"


def champion_figure() -> Figure:
    """Return the strength of the champion of Skull King, and how exploitable it is."""
    known = tomllib.loads((ROOT / CHAMPION).read_text())
    recipe, exploited = known["recipe"], known["exploited"]
    (match,) = [one for one in known["strength"] if one["against"] == BOT]
    value = (
        f"{match['value']:.1%} ({match['low']:.1%} .. {match['high']:.1%}); the best response "
        f"found in {exploited['decisions'] / 1e6:.0f} M decisions wins {exploited['value']:.1%} "
        "against it, where an equal has 25 %"
    )
    what = f"The champion against three `{BOT}`, trained in {recipe['minutes']:g} minutes"
    machine = recipe["machine"].partition(",")[0]
    return Figure(what, value, machine, recipe["commit"], recipe["date"], CHAMPION)


def table(page: Path) -> str:
    """Return the table of a page; every machine leads to the file that has the value."""
    lines = ["| | | measured on |", "|---|---|---|"]
    for one in figures():
        link = f"[{one.machine}]({PAGES[page]}{one.source})"
        lines.append(f"| {one.what} | {one.value} | {link}, {one.commit[:8]}, {one.date} |")
    return "\n".join(lines)


def age(commit: str) -> str:
    """Say how many commits have touched the code since a figure was measured."""
    words = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", "src", "csrc"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"measured at {commit[:8]}, which this clone does not have"
    count = int(done.stdout)
    if not count:
        return f"current: no commit has touched src or csrc since {commit[:8]}"
    return f"older than the code: {count} commits to src or csrc since {commit[:8]}"


if __name__ == "__main__":
    main()
