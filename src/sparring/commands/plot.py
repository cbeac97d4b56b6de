"""`sparring plot`: charts of the metrics of runs, as a picture and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sparring.commands.shared.curves import (
    common_page,
    files_asked,
    files_by_kind,
    files_in,
    minutes_of,
    run_page,
    updates_of,
    write_csv,
    write_page,
)
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.config.runs import PlotConfig
from sparring.draw.charts.axes import CLOCK, By
from sparring.draw.charts.page import check_matplotlib
from sparring.errors import ConfigError
from sparring.output_files import check_file
from sparring.store.folders import display_path
from sparring.training.records import metrics
from sparring.training.records.run import Run


def run(config: PlotConfig) -> int:
    """Draw charts and print their files."""
    by: By = cast(By, config.by)
    check_matplotlib()
    files = files_asked(config.out, "plot")
    if config.csv:
        check_file(config.csv, "--csv", parents=True)
    runs = open_runs(config.run)
    curves = {found.path: metrics.read(found.path) for found in runs}
    if by == "decisions":
        for path, there in curves.items():
            if there and CLOCK not in there:
                raise ConfigError(f"{path} did not count its decisions; use --by minutes")
    told: dict[str, Any] = {"by": by}
    if config.csv:
        told |= {"csv": config.csv, "csv_lines": write_csv(runs, Path(config.csv))}
    page = run_page(runs[0], by) if len(runs) == 1 else common_page(runs, by)
    first = display_path(runs[0].path)
    usual = files_in(first if len(runs) == 1 else first.parent, "plot")
    files = write_page(page, files or usual)
    told |= {**files_by_kind(files), "charts": [c.title for c in page.charts]}
    each = [described(found, curves[found.path]) for found in runs]
    if config.json:
        print_json({**each[0], **told} if len(runs) == 1 else {"runs": each, **told})
        return 0
    print_wins({one["run"]: one["wins"] for one in each})
    if not any(curves.values()):
        print("no metrics yet")
    if config.csv:
        print(f"numbers: {config.csv}, {told['csv_lines']:,} lines")
    print(f"curves: {', '.join(map(str, files))}")
    if len(runs) == 1:
        print(f"run: {first}; next: sparring play {first}")
    else:
        print(f"runs: {', '.join(one['run'] for one in each)}")
        print(f"next: sparring compare {' '.join(config.run)}")
    return 0


def open_runs(words: Sequence[str]) -> list[Run]:
    """Open the named runs; refuse a run that is named twice."""
    runs = [Run.open(word) for word in words]
    twice = [run for at, run in enumerate(runs) if run.path in [r.path for r in runs[:at]]]
    if twice:
        raise ConfigError(f"{display_path(twice[0].path)} was given twice; give each run once")
    return runs


def described(found: Run, curves: Mapping[str, metrics.Curve]) -> dict[str, Any]:
    """Return facts about a run as JSON."""
    return {
        "run": str(display_path(found.path)),
        "updates": updates_of(curves),
        "minutes": minutes_of(curves),
        "wins": last_wins(curves),
    }


def print_wins(wins: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> None:
    """Print the last evaluation of every run."""
    several = len(wins) > 1
    heads = ("opponent", "win share", "low", "high")
    table = make_table(("run", *heads) if several else heads, numbers=("win share", "low", "high"))
    for run, opponents in wins.items():
        for name, shares in opponents.items():
            shown = (f"{v:.1%}" if v is not None else "–" for v in shares.values())
            table.add_row(*([run, name] if several else [name]), *shown)
    if table.row_count:
        print_table(table)


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
