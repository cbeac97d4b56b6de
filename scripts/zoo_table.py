"""Writes the table of champions into docs/guides/champions.md: scripts/zoo_table.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

from sparring.commands.zoo import measured
from sparring.games.rules import Rules
from sparring.machine import format_bytes
from sparring.store.champions import EXPLOITABILITY, champion_games, champion_of

PAGE = Path(__file__).resolve().parents[1] / "docs/guides/champions.md"
BEGIN, END = "<!-- champions: begin -->", "<!-- champions: end -->"


def table() -> str:
    """Return the champions as Markdown: their hardest match, how exploitable they are, the time."""
    lines = [
        "| champion of | strength | exploited | trained | size |",
        "|---|---|---|---|---:|",
    ]
    for game in champion_games():
        champion = champion_of(game)
        recipe, exploited = champion.recipe, champion.entry.get("exploited")
        exact = [one for one in champion.strength if one["of"] == EXPLOITABILITY]
        if exploited:
            equal = f"an equal player {1 / Rules(game).seats:.0%}"
            decisions = f"by {exploited['decisions']:,} decisions"
            told = f"{exploited['value']:.1%} of the wins ({equal}), {decisions}"
        else:
            told = f"{exact[0]['value']:.4f}, exact" if exact else "not measured"
        strength = "; ".join(measured(one) for one in champion.strength if one not in exact)
        machine = recipe["machine"].split(",")[0]
        trained = f"{recipe['minutes']:.1f} min, {machine}"
        size = format_bytes(champion.weights.stat().st_size)
        lines.append(f"| `{game}` | {strength} | {told} | {trained} | {size} |")
    return "\n".join(lines)


def main() -> int:
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    wanted = f"{head}{BEGIN}\n{table()}\n{END}{tail}"
    if "--check" in sys.argv[1:]:
        return int(wanted != page)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
