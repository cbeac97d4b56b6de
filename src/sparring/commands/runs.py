"""`sparring runs`: list runs, label them with notes and tags, remove some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sparring.commands.shared.printing import echo, make_table, print_json, print_table
from sparring.config.runs import RunsConfig
from sparring.draw.columns import Columns
from sparring.errors import ConfigError, SparringError, printable, suggestion
from sparring.games.flags import split_list
from sparring.games.rules import game_names
from sparring.machine import format_bytes
from sparring.store.files import remove_folder
from sparring.store.folders import CHECKPOINTS, CONFIG, RUNS, latest_run
from sparring.store.lookup import find_run, unknown_name_error
from sparring.training.records.labels import label, write_labels
from sparring.training.records.overview import (
    STATES,
    UNMEASURED,
    Overview,
    is_run,
    overviews,
    size_of,
)
from sparring.training.records.run import LOCK, Run, finite, is_locked
from sparring.training.records.strength import written

Told = dict[str, Any]
"""`Overview.plain` of a run."""

ORDERS: dict[str, Callable[[Told], Any]] = {
    "date": lambda run: -datetime.fromisoformat(run["date"]).timestamp(),
    "name": lambda run: run["name"],
    "game": lambda run: run["game"],
    "state": lambda run: STATES.index(run["state"]),
    "strength": lambda run: -run["strength"] if run["strength"] is not None else float("inf"),
    "minutes": lambda run: -run["minutes"],
    "decisions": lambda run: -run["decisions"],
    "size": lambda run: -run["size"],
    "parameters": lambda run: -(run["parameters"] or 0),
}
"""Sort keys of the list."""
COLUMNS: dict[str, Callable[[Told], str]] = {
    "name": lambda run: run["name"],
    "game": lambda run: run["game"],
    "algo": lambda run: run["algo"],
    "state": lambda run: run["state"],
    "minutes": lambda run: f"{run['minutes']:.1f}",
    "decisions": lambda run: short_count(run["decisions"]),
    "strength": lambda run: strength_text(run) or "–",
    "parameters": lambda run: "–" if run["parameters"] is None else short_count(run["parameters"]),
    "size": lambda run: format_bytes(run["size"]),
    "date": lambda run: f"{datetime.fromisoformat(run['date']):%Y-%m-%d %H:%M}",
    "tags": lambda run: ",".join(run["tags"]),
    "note": lambda run: one_line(run["note"]),
}
OPTIONAL = ("tags", "note")
"""Columns that are shown if any run has a value."""
LONGEST_NOTE = 40
NUMBERS = ("minutes", "decisions", "strength", "parameters", "size")
DISPENSABLE = (
    "note",
    "parameters",
    "algo",
    "game",
    "date",
    "size",
    "minutes",
    "decisions",
    "state",
)
"""Columns that a narrow terminal drops, in this order."""


def run(config: RunsConfig) -> int:
    if config.sort not in ORDERS:
        raise ConfigError(f"--sort {config.sort!r}{suggestion(config.sort, ORDERS)}")
    root = Path(config.runs)
    if not root.is_dir() and root != RUNS:
        raise ConfigError(f"--runs {root}: no such folder; give the one that holds the runs")
    if config.remove:
        return remove(config, root)
    if config.note is not None or config.tag or config.untag:
        return write_about(config, root)
    if config.yes:
        raise ConfigError("--yes goes with --remove and the names of runs")
    everything = [finite(one.plain()) for one in overviews(root)]
    found = sorted(chosen(everything, config), key=ORDERS[config.sort])
    if config.json:
        print_json({"folder": str(root), "runs": found})
        return 0
    if not everything:
        print(f"{root} contains no run; `sparring train` makes one")
        return 0
    print_table(table_of(found))
    for one in found:
        if one["trouble"]:
            echo(f"{printable(one['name'])} is damaged: {one['trouble']}")
        elif one["state"] == UNMEASURED:
            why = f" ({printable(one['not_measured'])})" if one["not_measured"] else ""
            echo(f"{printable(one['name'])} is not measured: sparring resume {one['run']}{why}")
    total = format_bytes(sum(one["size"] for one in found))
    of_all = "" if len(found) == len(everything) else f" of {len(everything)}"
    latest = latest_run(root)
    named = f"; latest: {latest.name}" if latest else ""
    count = f"{len(found)}{of_all} run{'s' * (len(everything) > 1)}"
    echo(f"{count} in {root}, {total}{named}")
    return 0


def chosen(everything: Sequence[Told], config: RunsConfig) -> list[Told]:
    found = list(everything)
    if config.game and found:
        games = {one["game"] for one in found}
        if config.game not in {*games, *game_names()}:
            raise ConfigError(f"--game {config.game!r}{suggestion(config.game, sorted(games))}")
        found = [one for one in found if one["game"] == config.game]
    if config.tagged and found:
        known = sorted({tag for one in everything for tag in one["tags"]})
        for tag in split_list(config.tagged):
            if tag not in known:
                raise ConfigError(f"--tagged {tag!r}{suggestion(tag, known)}")
            found = [one for one in found if tag in one["tags"]]
    for word in config.names if everything else ():
        if not any(matches(one, word) for one in everything):
            raise unknown_name_error(word, what="run", root=Path(config.runs))
    if config.names:
        found = [one for one in found if any(matches(one, word) for word in config.names)]
    return found


def matches(one: Told, word: str) -> bool:
    """Whether a run's name contains the word, or the word is its folder."""
    return word in one["name"] or Path(word).absolute() == Path(one["run"]).absolute()


def table_of(found: Sequence[Told]) -> Columns:
    shown = [name for name in COLUMNS if name not in OPTIONAL or any(one[name] for one in found)]
    least = [name for name in DISPENSABLE if name in shown]
    table = make_table(shown, numbers=NUMBERS, least=least)
    for one in found:
        table.add_row(*(COLUMNS[name](one) for name in shown))
    return table


def one_line(note: str) -> str:
    text = printable(" ".join(note.split()))
    return text if len(text) <= LONGEST_NOTE else f"{text[: LONGEST_NOTE - 3]}..."


def write_about(config: RunsConfig, root: Path) -> int:
    """Write a note and tags to all named runs, or to none."""
    if not config.names:
        raise ConfigError(
            "--note, --tag and --untag need the names of runs: sparring runs NAME --tag good; "
            "--tagged good lists those that have a tag"
        )
    if config.game or config.tagged:
        raise ConfigError("--game and --tagged are for listing; name the runs to write about")
    add, drop = split_list(config.tag), split_list(config.untag)
    if config.note and is_run(root / config.note) and not is_run(root / config.names[0]):
        raise ConfigError(
            f'the run comes before its note: sparring runs {config.note} --note "{config.names[0]}"'
        )
    runs = dict.fromkeys(labeled(word, root) for word in config.names)
    written = {run: label(run, config.note, add, drop) for run in runs}
    for run, labels in written.items():
        write_labels(run, labels)
    if config.json:
        labels_written = [
            {"run": str(run), "note": labels.note, "tags": list(labels.tags)}
            for run, labels in written.items()
        ]
        print_json({"runs": labels_written})
        return 0
    for run, labels in written.items():
        tags = f"tags {', '.join(labels.tags)}" if labels.tags else "no tags"
        note = f"note: {one_line(labels.note)}" if labels.note else "no note"
        print(printable(f"{run.name}: {tags}; {note}"))
    return 0


def labeled(word: str, root: Path) -> Path:
    path = find_run(word, root).resolve()
    if not is_run(path):
        raise ConfigError(f"{path} is not a run; a run has {CONFIG} and {CHECKPOINTS}")
    return path


def strength_text(run: Told) -> str:
    """Return the strength of a run and its measure: captain 0.031, or return -14.02."""
    if run["strength"] is None:
        return ""
    return f"{run['measure']} {written(run['strength'], run['measure'])}"


def short_count(count: int) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)


def remove(config: RunsConfig, root: Path) -> int:
    if not config.names:
        raise ConfigError("--remove needs the names of runs: sparring runs --remove NAME")
    if config.game:
        raise ConfigError("--game is for listing; name the runs that are to be removed")
    doomed = list(
        {path: Overview(path) for path in (meant(w, root) for w in config.names)}.values()
    )
    if not config.yes and not confirmed(doomed):
        return 0
    gone = [remove_run(one) for one in doomed]
    freed = sum(one["freed"] for one in gone)
    if config.json:
        print_json({"removed": gone, "freed": freed})
        return 0
    for one in gone:
        print(printable(f"removed {one['run']}: {format_bytes(one['freed'])}"))
    if len(gone) > 1:
        print(f"{len(gone)} runs, {format_bytes(freed)} freed")
    return 0


def meant(word: str, root: Path) -> Path:
    path = find_run(word, root)
    if path.is_symlink():
        raise ConfigError(f"{path} is a link; remove what it leads to: {path.resolve()}")
    path = path.resolve()
    if not is_run(path):
        raise ConfigError(
            f"{path} is not a run, it is left as it is; a run has {CONFIG} and {CHECKPOINTS}"
        )
    inner = next(path.glob(f"*/{CONFIG}"), None)
    if inner is not None:
        raise ConfigError(f"{path} holds another run, {inner.parent.name}; it is left as it is")
    if is_locked(path / LOCK):
        raise ConfigError(
            f"{path} is being trained or measured; stop it first, or wait for its end"
        )
    return path


def confirmed(doomed: Sequence[Overview]) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("--remove asks before it removes; without a terminal, add --yes")
    for one in map(Overview.plain, doomed):
        strength = strength_text(one) or "not measured"
        facts = (
            f"{one['game']}, {one['minutes']:.1f} minutes, {strength}, {format_bytes(one['size'])}"
        )
        print(printable(f"{one['run']}: {facts}"))
    try:
        answer = input(f"remove {'it' if len(doomed) == 1 else 'them'} for good? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("nothing was removed")
    return False


def remove_run(one: Overview) -> dict[str, Any]:
    """Remove one run, unless a process began to train it in the meantime."""
    size = one.size
    try:
        with Run(one.path, {}).lock():
            remove_folder(one.path)
    except OSError as error:
        raise SparringError(
            f"cannot remove {one.path}: {error.strerror or error}; check who may write there"
        ) from error
    # Files that could not be deleted remain in a temporary folder next to it.
    left = sum(size_of(rest) for rest in one.path.parent.glob(f".tmp-{one.name}-*"))
    return {"run": str(one.path), "freed": size - left}
