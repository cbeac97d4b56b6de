"""The records of search_peers.py: shown as a table here and in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searches.contest import OURS, PEER
from sparring.commands.bench.shared import short

GAMES = {"tic_tac_toe": "tic-tac-toe", "connect_four": "Connect Four", "shogi": "Shogi"}
HEADS = (
    "game, evaluator, trees",
    *("sparring, simulations/s", "of its network"),
    *("mctx + Pgx", "of its network", "ratio"),
    *("sparring, nodes per GB", "mctx + Pgx"),
)
CLOCKS = {"wall": "by the clock", "cpu": "per second of CPU time, as others used the machine"}


def cells(record: dict[str, Any]) -> list[list[str]]:
    """Return the table: names above, then two rows per game, the second without a network."""
    rows = [list(HEADS)]
    for case in record["cases"]:
        trees = f"{case['case']['batch']:,}"
        name = GAMES[case["case"]["game"]]
        sides = [case.get(side, {}) for side in (OURS, PEER)]
        for evaluator, key in ((case["network"], "simulations_per_s"), ("free", "free_per_s")):
            row = [f"{name}, {evaluator}, {trees}"]
            for side in sides:
                has_share = evaluator != "free" and "share" in side
                row.append(short(side[key]["median"]) if key in side else "")
                row.append(f"{side['share']['median']:.0%}" if has_share else "")
            row.append(times(case["ratio"][key]) if "ratio" in case else "")
            row += [
                short(1e9 / s["bytes_per_node"]) if "bytes_per_node" in s else "" for s in sides
            ]
            rows.append(row)
    return rows


def times(ratio: dict[str, Any]) -> str:
    """Return a ratio with the range of single rounds."""
    middle, low, high = (
        f"{ratio[key]:.{int(ratio[key] < 100)}f}" for key in ("median", "min", "max")
    )
    return f"{middle} ({low} to {high})"


def text_table(record: dict[str, Any]) -> str:
    """Return the table for a terminal."""
    rows = cells(record)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def docs_figures(records: Sequence[dict[str, Any]]) -> str:
    """Return the tables of all machines for the docs."""
    return "\n\n".join(map(docs_table, records)) or "No results are stored yet."


def docs_table(record: dict[str, Any]) -> str:
    """Return the table for the docs, and where it was measured."""
    head, *rows = [f"| {' | '.join(row)} |" for row in cells(record)]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}, "
    where = (
        f"{record['machine']}, {'' if record['device'] == 'cuda' else threads}"
        f"{record['precision']}; {record['simulations']} simulations per decision; medians of "
        f"{record['rounds']} turns, {CLOCKS[record['clock']]} (load {record['load_average']}); "
        f"{versions}, sparring at {record['commit']}, {record['date']}."
    )
    return "\n".join([head, "|---|" + "---|" * (len(HEADS) - 1), *rows, "", where])
