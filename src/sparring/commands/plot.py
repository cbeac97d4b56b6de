"""`sparring plot`: a run's curves as a picture and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparring.commands.plotting import minutes_of, plot_run, updates_of
from sparring.commands.printing import make_table, print_json, print_table
from sparring.config import PlotConfig
from sparring.draw.charts.curves import make_charts
from sparring.training import metrics
from sparring.training.run import Run


def run(config: PlotConfig) -> int:
    """Draw a run and say where the pictures are."""
    found = Run.open(config.run)
    out = Path(config.out) if config.out else None
    png, html = plot_run(found.path, out)
    curves = metrics.read(found.path)
    last = last_wins(curves)
    if config.json:
        print_json(
            {
                "run": str(found.path),
                "png": str(png),
                "html": str(html),
                "updates": updates_of(curves),
                "minutes": minutes_of(curves),
                "charts": [chart.title for chart in make_charts(curves)],
                "wins": last,
            }
        )
        return 0
    if last:
        table = make_table(("opponent", "win share", "low", "high"), numbers=("win share",))
        for name, shares in last.items():
            shown = (f"{v:.1%}" if v is not None else "–" for v in shares.values())
            table.add_row(name, *shown)
        print_table(table)
    if not curves:
        print("nothing has been measured yet")
    print(f"curves: {png}, {html}")
    print(f"run: {found.path}; next: sparring play {found.path}")
    return 0


def last_wins(curves: Mapping[str, metrics.Curve]) -> dict[str, dict[str, float | None]]:
    """Return the last evaluation against every opponent."""
    found: dict[str, dict[str, float | None]] = {}
    for name, (_, _, values) in curves.items():
        group, _, rest = name.partition("/")
        opponent, _, what = rest.rpartition("/")
        if group == "eval" and what in ("win", "low", "high"):
            value = float(values[-1])
            entry = found.setdefault(opponent, {"win": None, "low": None, "high": None})
            entry[what] = value if value == value else None  # noqa: PLR0124  (NaN)
    return found
