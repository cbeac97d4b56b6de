"""Healthy files that runs leave behind, and the commands that show runs."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from commands.run_helpers import make_run
from fuzz.mutations import Raw, spoil_bytes, spoil_value
from sparring.commands import compare, league, plot, runs
from sparring.commands import ladder as ladder_command
from sparring.commands.shared import printing
from sparring.config.commands import LadderConfig, LeagueShowConfig
from sparring.config.runs import PlotConfig, RunsConfig
from sparring.games.rules import Rules
from sparring.league import ladder_file
from sparring.league.round_robin import pairs_of
from sparring.store import archive_index
from sparring.training.records import comparison, comparison_report, metrics

Rows = Mapping[str, Sequence[Sequence[Any]]]
"""Of a database: rows by table."""
SCHEMAS = {"metrics": metrics.SCHEMA, "league": archive_index.SCHEMA}


def make_runs(folder: Path) -> None:
    """Two runs that have ended, one of which is damaged then."""
    for name, seed in (("mine", 0), ("other", 1)):
        run = make_run(folder / "runs", name, {5: 0.5, 10: 0.6}, seed=seed)
        (run / "league.sqlite").write_bytes(as_database(league_rows(random.Random(0))))


def results(_: random.Random) -> Any:
    """What was measured at the end of a run."""
    share = {"win": 0.6, "low": 0.5, "high": 0.7, "score": 0.2, "games": 64}
    found = {"random": share, "careful": {**share, "win": 0.4}}
    told = {"policy": "mine/10", "checkpoint": 10, "decisions": 1000, "minutes": 1.5}
    return {**told, "ended": "done", "results": found, "progress": {"score gained per hour": 3.0}}


def events(_: random.Random) -> Any:
    """What came from beside while a run went on."""
    return [
        {"update": 5, "event": "best", "checkpoint": 5, "strength": 0.5},
        {"update": 7, "event": "phase", "phase": "second", "seconds": 12.0},
        {"update": 10, "event": "ended", "why": "done", "seconds": 60.0},
    ]


def machine(_: random.Random) -> Any:
    """Where a run was trained."""
    return {"cpu": "a", "cores": 2, "gpus": ["b"], "commit": "c0ffee", "sparring": "1.0"}


def network(_: random.Random) -> Any:
    """How large a network is."""
    layers = [{"name": "a", "kind": "linear", "shape": [8, 8], "parameters": 72, "macs": 64}]
    return {"parameters": 1234, "macs": 1200, "layers": layers}


def metric_rows(_: random.Random) -> Any:
    """The curves of a run."""
    rows = []
    for update in range(1, 11):
        names = {"charts/decisions": 1000.0 * update, "losses/value_loss": 1 / update}
        if update % 5 == 0:
            names |= {"eval/random/win": 0.5, "eval/random/score": 5.0, "eval/strength": 0.5}
            names |= {"eval/careful/win": 0.4, "eval/careful/score": 4.0}
        rows += [[update, name, value, 60.0 * update] for name, value in names.items()]
    return {"metrics": rows}


def league_rows(_: random.Random) -> Any:
    """The past selves of a run, their results and ratings."""
    hashes = ["a" * 64, "b" * 64]
    return {
        "snapshots": [
            [n, key, "main", "mine", n, 1000 * n, 60.0 * n, 100, None]
            for n, key in enumerate(hashes)
        ],
        "players": [[0, hashes[0]], [1, hashes[1]], [2, "random"], [3, "self"]],
        "results": [
            [kind, "mine", player, 5, 5000, 6, 2, 2]
            for kind in ("training", "match")
            for player in range(3)
        ],
        "ratings": [[player, 5, 5000, 100.0 * player, 50.0, 350.0] for player in range(4)],
    }


def as_database(rows: Rows) -> bytes:
    """Write rows into a database; SQLite lets every column hold anything."""
    schema = SCHEMAS["metrics" if "metrics" in rows else "league"]
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(loose(schema))
        for table, lines in rows.items():
            for line in lines:
                marks = ", ".join("?" * len(line))
                db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", line)
        db.commit()
        return db.serialize()


def loose(schema: str) -> str:
    """The same tables with columns that take anything."""
    for word in ("NOT NULL", "WITHOUT ROWID", "INTEGER PRIMARY KEY"):
        schema = schema.replace(word, "")
    return schema


def spoil_database(healthy: Rows, by: random.Random) -> bytes:
    """Damage some fields of some rows, or the bytes of the file."""
    if by.random() < 0.2:
        return spoil_bytes(as_database(healthy), by)
    rows = {table: [list(line) for line in lines] for table, lines in healthy.items()}
    for _ in range(by.choice((1, 1, 2, 5))):
        line = by.choice(by.choice(list(rows.values())))
        at = by.randrange(len(line))
        line[at] = in_a_field(spoil_value(line[at], by))
    return as_database(rows)


def in_a_field(value: Any) -> Any:
    """A value as SQLite can hold it."""
    if isinstance(value, Raw):
        return value.text[:1000].encode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**300 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, int | float) else repr(value)


def show_runs(path: Path) -> None:
    """`sparring runs` and the numbers of `sparring compare`."""
    root = path.parents[1]
    for sort in ("date", "strength", "size"):
        runs.run(RunsConfig(runs=str(root), sort=sort))
    runs.run(RunsConfig(runs=str(root), json=True))
    found = comparison.compare(compare.runs_meant([str(path.parent), str(root / "other")]))
    printing.print_json(comparison_report.described(found, []))


def draw_run(path: Path) -> None:
    """`sparring plot`, with all numbers as a table."""
    out = path.parents[1] / "out"
    plot.run(PlotConfig((str(path.parent),), out=str(out), csv=str(out / "all.csv")))


def ladder(by: random.Random) -> Any:
    """The ladder of a game."""
    rules = Rules(by.choice(("tic_tac_toe", "kuhhandel")))
    new = ladder_file.new_ladder(rules)
    names = [*rules.bots[:2], "mine/40"]
    deal = [rules.seats * at % (rules.seats + 1) for at in range(rules.seats)]
    return {
        **{"version": 1, "game": rules.name, "rules_version": rules.rules_version},
        **{"signature": new.signature, "game_config": rules.config, "left_out": ["champion"]},
        "players": [
            *({"name": name, "kind": "bot"} for name in names[:2]),
            {"name": names[2], "kind": "policy", "path": "runs/mine", "hash": "a" * 64},
        ],
        "pairings": [
            {"one": one, "two": two, "seed": 0, "distinct_deals": 9, "deals": [[deal, 40]]}
            for one, two in pairs_of(rules, names)
        ],
    }


def show_ladder(path: Path) -> None:
    """`sparring ladder` where nothing is missing."""
    found = ladder_file.read_ladder(path)
    for as_json in (False, True):
        settings = LadderConfig(found.rules.name, file=str(path), json=as_json)
        ladder_command.report(found, [], path, settings, None)


def show_league(path: Path) -> None:
    """`sparring league`."""
    out = str(path.parents[1] / "out")
    league.run(LeagueShowConfig(str(path.parent), out=out))
