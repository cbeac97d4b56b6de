"""A flame graph as one self-contained HTML file, drawn on a canvas.

The outermost functions are on top. A click zooms; a search marks functions and shows their share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sparring.draw.charts.page import as_script, fill_template

KINDS = {
    "yours": "your code",
    "sparring": "sparring",
    "torch": "torch",
    "libraries": "other Python",
    "sparring native": "sparring, native",
    "torch native": "torch, native",
    "native": "other native code",
}
"""Kinds of code, with their labels."""


@dataclass
class FlameBlock:
    """A function as called by its parent."""

    name: str
    place: str
    kind: str
    total: int = 0
    """Samples, including those of its children."""
    lines: dict[int, int] = field(default_factory=dict)
    """Samples by line."""
    blocks: dict[tuple[str, str], FlameBlock] = field(default_factory=dict)
    """Children, by (name, place)."""

    def inner(self, name: str, place: str, kind: str) -> FlameBlock:
        """Return the child block of a function, made on first use."""
        if (name, place) not in self.blocks:
            self.blocks[name, place] = FlameBlock(name, place, kind)
        return self.blocks[name, place]


def draw_flame(root: FlameBlock, heading: str, facts: Sequence[str] = ()) -> str:
    """Return the whole file."""
    legend = "".join(
        f'<span><i style="background:var(--k{at})"></i>{escape(word)}</span>'
        for at, word in enumerate(KINDS.values())
    )
    return fill_template("flame.html", heading, facts, LEGEND=legend, DATA=as_script(flatten(root)))


def flatten(root: FlameBlock) -> dict[str, Any]:
    """Return the blocks as lists: unique functions; blocks with parents first."""
    functions: dict[tuple[str, str, str], int] = {}
    parents: list[int] = []
    which: list[int] = []
    totals: list[int] = []
    lines: list[int] = []
    waiting = [(-1, root)]
    while waiting:
        parent, block = waiting.pop()
        number = len(parents)
        parents.append(parent)
        key = (block.name, block.place, block.kind)
        which.append(functions.setdefault(key, len(functions)))
        totals.append(block.total)
        lines.append(max(block.lines, key=block.lines.__getitem__, default=0))
        below = list(reversed(block.blocks.values()))
        if parent >= 0:  # threads keep their order, the training thread first
            below.sort(key=lambda one: one.total)
        waiting += [(number, one) for one in below]  # the largest is taken first
    kinds = {kind: at for at, kind in enumerate(KINDS)}
    return {
        "functions": [[name, place, kinds.get(kind, -1)] for name, place, kind in functions],
        "parents": parents,
        "which": which,
        "totals": totals,
        "lines": lines,
    }
