"""Writes tables of champions into docs/guides/champions.md and docs/games: zoo_table.py [--check].

The guide has all of them, the page of a game its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparring.commands.zoo import measured
from sparring.games.rules import Rules
from sparring.machine import format_bytes
from sparring.store.champions import EXPLOITABILITY, Champion, champion_games, champion_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "guides/champions.md"


def table() -> str:
    """Return the champions as Markdown: their hardest match, how exploitable they are, the time."""
    lines = [
        "| champion of | strength | exploited | trained | size |",
        "|---|---|---|---|---:|",
    ]
    for game in champion_games():
        champion = champion_of(game)
        strength = "; ".join(measured(one) for one in matches(champion))
        size = format_bytes(champion.weights.stat().st_size)
        cells = (f"`{game}`", strength, exploited(champion), trained(champion), size)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_game(game: str) -> str:
    """Return the champion of a game as Markdown, a match per line."""
    champion = champion_of(game)
    rows = [name_and_value(measured(one)) for one in matches(champion)]
    rows += [("exploited", exploited(champion)), ("trained", trained(champion))]
    lines = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join(["| the champion against | |", "|---|---|", *lines])


def name_and_value(told: str) -> tuple[str, str]:
    """Split a measurement, such as ab6 95.7% (94.6% .. 96.6%), after the name."""
    found = re.match(r"(.+?) ([-+]?\d.*)", told)
    assert found, told
    return (found[1] if " " in found[1] else f"`{found[1]}`"), found[2]


def matches(champion: Champion) -> list[Mapping[str, Any]]:
    """Return what was measured, without exploitability."""
    return [one for one in champion.strength if one["of"] != EXPLOITABILITY]


def exploited(champion: Champion) -> str:
    """Return what a best response wins."""
    exact = [one for one in champion.strength if one["of"] == EXPLOITABILITY]
    found = champion.entry.get("exploited")
    if not found:
        return f"{exact[0]['value']:.4f}, exact" if exact else "not measured"
    equal = f"an equal player {1 / Rules(champion.game).seats:.0%}"
    return f"{found['value']:.1%} of the wins ({equal}), by {found['decisions']:,} decisions"


def trained(champion: Champion) -> str:
    recipe = champion.recipe
    return f"{recipe['minutes']:.1f} min, {recipe['machine'].split(',')[0]}"


def wanted(page: Path, name: str, shown: str) -> str:
    """Return a page with a table between its marks."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = page.read_text().partition(begin)
    return f"{head}{begin}\n{shown}\n{end}{rest.partition(end)[2]}"


def main() -> int:
    pages = {PAGE: wanted(PAGE, "champions", table())}
    for game in champion_games():
        page = DOCS / f"games/{game}.md"
        if page.exists():
            pages[page] = wanted(page, "champion", table_of_game(game))
    if "--check" in sys.argv[1:]:
        return int(any(page.read_text() != text for page, text in pages.items()))
    for page, text in pages.items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
