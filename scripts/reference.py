"""Writes the generated pages of the reference: `make docs`, or python scripts/reference.py."""

from __future__ import annotations

from pathlib import Path

from sparring.capabilities.page import page as what_combines
from sparring.capabilities.refusals import games_offering
from sparring.capabilities.table import ABILITIES, GAME

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[str, str]:
    """Return the generated files, by their path in the repository."""
    games = {name: games_offering(name) for name in ABILITIES[GAME]}
    return {"docs/reference/what-combines.md": what_combines(games)}


def main() -> None:
    """Write the pages that differ from what is there, and name them."""
    for name, text in pages().items():
        file = ROOT / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
