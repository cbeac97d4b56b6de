"""Charts and CSV files of the metrics of runs."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sparring.config.ranges import is_number
from sparring.draw.charts.axes import CLOCK, AxisMark, By, Curve, at_updates, axis_of, place_on_axis
from sparring.draw.charts.curves import make_charts, make_common_charts, short_names
from sparring.draw.charts.page import SUFFIXES, ChartPage, check_matplotlib, render
from sparring.errors import ConfigError, SparringError, printable
from sparring.games.flags import initial_flags, read_rules
from sparring.output_files import check_file, check_folder, writing
from sparring.pygames.registry import is_env
from sparring.store.files import write_atomic
from sparring.store.schema import integer, list_of, object_with, optional, parse_json, string
from sparring.training.records import metrics
from sparring.training.records.overview import custom_rules, events_of
from sparring.training.records.run import PHASE, Run

A_MACHINE = object_with(
    {"cpu": string, "cores": integer(), "commit": optional(string), "sparring": string},
    {"gpus": list_of(string)},
)
"""Schema of the fields of machine.json that are shown."""


def plot_run(
    run_folder: str | Path, out: Path | None = None, *, by: By = "minutes"
) -> tuple[Path, Path]:
    """Write plot.png and plot.html into the run's folder, or another one; return both."""
    found = Run.open(run_folder)
    png, html = write_page(run_page(found, by), files_in(out or found.path, "plot"))
    return png, html


def drawn(write: Callable[[], Sequence[Path]]) -> list[Path]:
    """Draw pictures and return their files; if that fails, print why and return []."""
    try:
        return list(write())
    except (OSError, SparringError) as error:
        print(f"sparring: no pictures were drawn: {error}", file=sys.stderr)
        return []


def run_page(found: Run, by: By) -> ChartPage:
    curves = metrics.read(found.path)
    there = place_on_axis(curves, by)
    charts = make_charts(there, fair_share=fair_share(found))
    name = found.path.absolute().name
    marks = marks_of(found, by)
    return ChartPage(name, facts(found, curves), tuple(charts), axis_of(there, by), marks)


def marks_of(found: Run, by: By) -> tuple[AxisMark, ...]:
    """Return where the phases of a run began."""
    units = {"minutes": ("seconds", 60.0), "decisions": ("decisions", 1.0)}
    key, each = units.get(by, ("update", 1.0))
    begun = [event for event in events_of(found.path) if event.get("event") == PHASE]
    return tuple(
        AxisMark(event.get(key, 0) / each, f"{event.get('phase', '')} {event.get('name', '')}")
        for event in begun
        if is_number(event.get(key, 0))
    )


def common_page(runs: Sequence[Run], by: By) -> ChartPage:
    """Return the charts of several runs, one line per run."""
    names = [run.path.absolute().name for run in runs]
    there = {
        short: place_on_axis(metrics.read(run.path), by)
        for short, run in zip(short_names(names), runs, strict=True)
    }
    parity = {fair_share(run) for run in runs}
    shared = parity.pop() if len(parity) == 1 else None
    games = dict.fromkeys(str(run.config.get("game", "?")) for run in runs)
    everything = {f"{at}/{name}": c for at, g in enumerate(there.values()) for name, c in g.items()}
    return ChartPage(
        f"{', '.join(games)}: {len(runs)} runs",
        (f"by {by}", "keys: the last value of each run"),
        tuple(make_common_charts(there, fair_share=shared)),
        axis_of(everything, by),
    )


def files_in(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.png", folder / f"{name}.html"


def files_asked(out: str, name: str) -> tuple[Path, ...]:
    """Return the files of --out: the named file, or both kinds in a folder; () without --out.

    Paths that cannot be written are refused.
    """
    if not out:
        return ()
    check_matplotlib()
    path = Path(out)
    if out.endswith("/") or path.is_dir() or not path.suffix:
        return files_in(check_folder(path, "--out"), name)
    if path.suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES[:-1])
        raise ConfigError(
            f"--out {out} has to end in {known} or {SUFFIXES[-1]}; a folder of that name ends in /"
        )
    return (check_file(path, "--out", parents=True),)


def place_asked(out: str) -> Path:
    """Return the path of --out for several pictures: a folder, or a file whose suffix they get."""
    check_matplotlib()
    if Path(out).suffix in SUFFIXES[:-1]:
        return check_file(out, "--out", parents=True)
    return check_folder(out, "--out")


def file_at(place: Path, name: str, begin: str = "") -> Path:
    """Return the file of one of several pictures: cup.pdf becomes cup-ladder.pdf and so on."""
    if place.suffix in SUFFIXES[:-1] and not place.is_dir():
        return place.with_name(f"{place.stem}-{name}{place.suffix}")
    return place / f"{begin}{name}.png"


def write_page(page: ChartPage, files: Sequence[Path]) -> tuple[Path, ...]:
    """Write a page as pictures and as HTML, as the names of the files say; return these."""
    return tuple(write_pages(dict.fromkeys(files, page)))


def write_pages(pages: Mapping[Path, ChartPage]) -> list[Path]:
    """Write every page into its file; return the files."""
    for file, data in {file: render(page, file.suffix) for file, page in pages.items()}.items():
        write_file(file, data, "--out")
    return list(pages)


def write_file(file: Path, data: bytes, option: str) -> None:
    """Write the file of an option, and the folders above it."""
    with writing(file, option):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, data)


def files_by_kind(files: Sequence[Path]) -> dict[str, str]:
    """Return the files of a page by suffix, as JSON."""
    return {file.suffix[1:]: str(file) for file in files}


def write_csv(runs: Sequence[Run], path: Path) -> int:
    """Write all metrics of runs, one value per line; several runs get a first column `run`."""
    head = ("update", "seconds", "decisions", "name", "value")
    several = len(runs) > 1
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(("run", *head) if several else head)
    count = 0
    for run in runs:
        for line in csv_lines(metrics.read(run.path)):
            out.writerow((run.path.absolute().name, *line) if several else line)
            count += 1
    write_file(path, text.getvalue().encode(), "--csv")
    return count


def csv_lines(curves: Mapping[str, Curve]) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield update, seconds, decisions, name and value; empty where a number is missing."""
    clock = curves.get(CLOCK)
    for name, (updates, seconds, values) in curves.items():
        decisions = at_updates(clock, updates, 2) if clock else [math.nan] * len(updates)
        for at, when, done, value in zip(updates, seconds, decisions, values, strict=True):
            made = f"{done:.0f}" if math.isfinite(done) else ""
            yield int(at), repr(float(when)), made, name, number_text(float(value))


def number_text(value: float) -> str:
    """Return a number with all its digits, "" if it is not finite."""
    return repr(value) if math.isfinite(value) else ""


def fair_share(run: Run) -> float | None:
    """Return the win share of an equal player, None if the game is unknown or has one seat."""
    with suppress(SparringError):
        game = str(run.config.get("game", ""))
        if is_env(game):
            seats = custom_rules(run.path).seats
        else:
            seats = read_rules(game, initial_flags(run.config.get("set", ()))).seats
        return 1 / seats if seats > 1 else None
    return None


def facts(found: Run, curves: Mapping[str, metrics.Curve]) -> tuple[str, ...]:
    """Return facts about a run: training time, updates, machine."""
    lines = []
    if curves:
        lines.append(f"{minutes_of(curves):.1f} minutes of training")
        lines.append(f"{updates_of(curves):,} updates")
    with suppress(OSError, ValueError):
        machine = parse_json((found.path / "machine.json").read_bytes())
        A_MACHINE(machine, "")
        lines.append(f"{machine['cpu']}, {machine['cores']} cores")
        lines += machine.get("gpus", [])
        commit = f" at {machine['commit']}" if machine["commit"] else ""
        lines.append(f"sparring {machine['sparring']}{commit}")
    return tuple(map(printable, lines))


def minutes_of(curves: Mapping[str, metrics.Curve]) -> float:
    return max((float(seconds.max()) / 60 for _, seconds, _ in curves.values()), default=0.0)


def updates_of(curves: Mapping[str, metrics.Curve]) -> int:
    return max((int(updates.max()) for updates, _, _ in curves.values()), default=0)
