"""How fast games are stepped: `sparring bench pool` on every bundled game, kept as JSON.

python benchmarks/pool.py                            measure, write results/pool-<machine>.json
python benchmarks/pool.py --update-docs            ... and write the table of the docs
python benchmarks/pool.py --update-docs --stored   only the table, from the results there are
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from pages import BENCHMARKS, ROOT, file_of, keep, stored, write_table

GAMES = {"skull_king": "Skull King, 4 players", "tic_tac_toe": "Tic-tac-toe"}
WAYS = (
    ("observation and mask, stepped from Python", True, "Python"),
    ("observation and mask, random play in C++", True, "C++"),
    ("rules alone, random play in C++", False, "C++"),
)


def main() -> None:
    """Measure what was asked for and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update-docs", action="store_true", help="write the table of the docs")
    parser.add_argument("--stored", action="store_true", help="do not measure, use what is there")
    parser.add_argument("--seconds", type=float, default=20.0, help="time per game")
    given = parser.parse_args()
    if not given.stored:
        record = measure(given.seconds)
        path = keep(record, file_of("pool", record["machine"]))
        print(f"wrote {path.relative_to(ROOT)}")
    if given.update_docs:
        write_table(BENCHMARKS, "figures", figures(stored("pool")))


def measure(seconds: float) -> dict[str, Any]:
    """Run the command on every game and return one record for this machine."""
    reports = {game: bench(game, seconds) for game in GAMES}
    facts = next(iter(reports.values()))["machine"]
    system = facts["system"].split()
    return {
        "machine": f"{facts['cpu']}, {facts['cores']} cores",
        "cores": facts["cores"],
        "system": f"{system[0]} {system[-1]}",
        "python": facts["python"],
        "numpy": facts["numpy"],
        "sparring": facts["sparring"],
        "commit": facts["commit"],
        "date": facts["date"][:10],
        "games": {
            game: {
                "load_average": report["machine"]["load_average"],
                **{k: v for k, v in report.items() if k not in ("command", "game", "machine")},
            }
            for game, report in reports.items()
        },
    }


def bench(game: str, seconds: float) -> dict[str, Any]:
    """Run `sparring bench pool` as a user would; it refuses to measure games that are not valid."""
    command = ("-m", "sparring.cli", "bench", "pool", game, "--json", "--seconds", str(seconds))
    print(f"sparring {' '.join(command[2:])}", flush=True)
    done = subprocess.run(
        [sys.executable, *command], check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"sparring bench pool {game} failed; nothing was written\n{done.stdout}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def figures(records: Sequence[dict[str, Any]]) -> str:
    """Return the part of the docs: one table per machine."""
    return "\n\n".join(machine_table(record) for record in records)


def machine_table(record: dict[str, Any]) -> str:
    """Return a machine's decisions per second, a column per number of threads."""
    threads = sorted({c["threads"] for g in record["games"].values() for c in g["measured"]})
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    lines = [f"| decisions per second | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for game, report in record["games"].items():
        cells = {(c["observe"], c["driver"], c["threads"]): c for c in report["measured"]}
        for what, observe, driver in WAYS:
            shown = [short(cells[observe, driver, n]["decisions_per_s"]) for n in threads]
            lines.append(f"| {GAMES[game]}: {what} | {' | '.join(shown)} |")
    options = next(iter(record["games"].values()))["options"]
    return "\n".join(
        [
            *lines,
            "",
            f"{record['machine']}, {record['system']}, Python {record['python']}, "
            f"sparring {record['sparring']} at {record['commit']}, {record['date']}; "
            f"{options['games']} games in the pool, median of {options['rounds']} rounds.",
        ]
    )


def short(rate: int) -> str:
    """Return a rate with three digits."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            digits = 2 if rate < 10 * size else 1 if rate < 100 * size else 0
            return f"{rate / size:.{digits}f} {unit}"
    return str(rate)


if __name__ == "__main__":
    main()
