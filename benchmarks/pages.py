"""Records of benchmarks: one JSON file per machine, and tables of them between marks in a page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
BENCHMARKS = ROOT / "docs/inside/benchmarks.md"


def file_of(kind: str, machine: str, folder: Path = RESULTS) -> Path:
    """Return the file of what a machine measured."""
    return folder / f"{kind}-{re.sub(r'[^a-z0-9]+', '-', machine.lower()).strip('-')}.json"


def keep(record: dict[str, Any], path: Path) -> Path:
    """Write a record, replacing the older one, and return its file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def stored(kind: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the records of all machines."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}-*.json"))]


def with_table(page: Path, name: str, table: str) -> str:
    """Return a page with a table between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        sys.exit(f"{page.name} has no {begin} ... {end}")
    return f"{before}{begin}\n{table}\n{end}{after}"


def write_table(page: Path, name: str, table: str) -> None:
    """Write a table into a page."""
    page.write_text(with_table(page, name, table))
    print(f"wrote the {name} of {page.name}", file=sys.stderr)
