"""The records of contests: kept as JSON, shown as a table here and in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ORIGINAL_STEPS_PER_S = 938
ORIGINAL = (
    "MaskablePPO on the original Skull King environment: "
    f"{ORIGINAL_STEPS_PER_S} agent steps/s on this kind of machine (quoted, see docs)"
)


def cells(record: dict[str, Any]) -> list[list[str]]:
    """Return the table: names above, then a row per contestant."""
    rows = [["contestant", "samples/s", "range", "decisions/s", "x MaskablePPO", "x plain loop"]]
    rows[0].append("of its ceiling")
    for result in record["contestants"]:
        rate, of = result["samples_per_s"], result.get("of_ceiling")
        best = " (its best)" if result["name"] in record["best"].values() else ""
        rows.append(
            [
                result["label"] + best,
                f"{rate['median']:,}",
                f"{rate['min']:,}..{rate['max']:,}",
                f"{result['decisions_per_s']['median']:,}",
                f"{result['to_maskable']['median']:.2f}",
                f"{result['to_plain']['median']:.2f}",
                f"{of['median']:.2f} ({of['min']:.2f}..{of['max']:.2f})" if of else "",
            ]
        )
    return rows


def text_table(record: dict[str, Any]) -> str:
    """Return the table for a terminal."""
    rows = cells(record)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        numbers = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return "\n".join(lines)


def ratio_lines(record: dict[str, Any]) -> str:
    """Say how much faster ours is than the best of each peer, with the range of single rounds."""
    peers = {"maskable": "MaskablePPO", "plain": "the plain torch loop"}
    lines = []
    for result in record["contestants"]:
        if result["kind"] not in peers:
            told = [
                f"{ratio['median']:.2f}x {peer} ({ratio['min']:.2f}..{ratio['max']:.2f})"
                for kind, peer in peers.items()
                for ratio in [result[f"to_{kind}"]]
            ]
            lines.append(f"{result['label']}: {', '.join(told)}")
    return "\n".join(lines)


def docs_table(record: dict[str, Any]) -> str:
    """Return the table for the docs, and where it was measured."""
    head, *rows = [f"| {' | '.join(row)} |" for row in cells(record)]
    rule = "|---|" + "---:|" * (head.count("|") - 2)
    rounds = len(record["contestants"][0]["samples_per_s"]["rounds"])
    where = (
        f"{record['machine']}, {record['system']}, Python {record['python']}, torch "
        f"{record['torch']}, sb3-contrib {record['sb3-contrib']}, sparring {record['sparring']} at "
        f"{record['commit']}, {record['date']}; {record['settings']['threads']} threads, "
        f"medians of {rounds} rounds."
    )
    return "\n".join([head, rule, *rows, "", where, "", original_lines(record)])


def docs_figures(records: Sequence[dict[str, Any]]) -> str:
    """Return the tables of all machines for the docs."""
    return "\n\n".join(map(docs_table, records)) or "No results are stored yet."


def original_lines(record: dict[str, Any]) -> str:
    """Compare with what was measured on the environment that our game replaces."""
    lines = [f"{ORIGINAL}."]
    if record["quick"]:
        return f"{lines[0]}\nA quick run has smaller networks and rollouts; it cannot be compared."
    for result in record["contestants"]:
        if result["kind"] in ("dense", "sparse"):
            rate = result["samples_per_s"]["median"]
            times = rate / ORIGINAL_STEPS_PER_S
            lines.append(f"{result['label']}: {rate:,} samples/s, {times:.1f} times as many.")
    return "\n".join(lines)
