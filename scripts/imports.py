"""Draws which package imports which: python scripts/imports.py docs/images/imports.svg.

Packages stand in the layers of pyproject.toml, the command line on top. An arrow that runs back up
is red; the linter and tests/test_imports.py see to it that there is none.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
DOWN, UP, BOX = "#9db0c8", "#c8332b", "#eef2f7"


def layers() -> list[list[str]]:
    """Packages and root modules by layer, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (order,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"] == "imports run one way"
    )
    return [[name.strip().split(".")[1] for name in layer.split("|")] for layer in order]


def imports() -> Counter[tuple[str, str]]:
    """How many imports lead from one package to another."""
    found: Counter[tuple[str, str]] = Counter()
    for file in (SOURCE / "sparring").rglob("*.py"):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        if "template" in parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparring."):
                found[parts[1], str(node.module).split(".")[1]] += 1
    return found


def draw(path: Path) -> None:
    """Write the picture."""
    figure = Figure(figsize=(11, 13))
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    rows = layers()
    at = {
        name: ((i + 1) / (len(row) + 1) + 0.09 * (-1) ** depth * (len(row) == 1), -depth)
        for depth, row in enumerate(rows)
        for i, name in enumerate(row)
    }
    axes.set_xlim(0, 1)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    for (source, target), count in sorted(imports().items()):
        if source in at and target in at and source != target:
            is_down = at[source][1] >= at[target][1]
            arrow = FancyArrowPatch(
                at[source],
                at[target],
                arrowstyle="-|>",
                mutation_scale=9,
                shrinkA=14,
                shrinkB=14,
                color=DOWN if is_down else UP,
                linewidth=0.4 + 0.25 * count**0.5,
                connectionstyle="arc3,rad=0.12",
            )
            axes.add_patch(arrow)
    for name, (x, y) in at.items():
        box = {"boxstyle": "round,pad=0.5", "facecolor": BOX, "edgecolor": "#5b6b80"}
        axes.text(x, y, name, ha="center", va="center", fontsize=11, bbox=box, zorder=3)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
