"""Runs without a training: the files that a server reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.training.planning.settings import written
from sparring.training.records import metrics
from sparring.training.records.run import to_toml


def make_run(
    root: Path, name: str, *, updates: int = 40, game: str = "tic_tac_toe", **settings: Any
) -> Path:
    """Write a run that has been trained for some updates."""
    run = root / name
    (run / "checkpoints" / "00000020").mkdir(parents=True)
    config = TrainConfig(game=game, updates=updates, **settings)
    (run / "config.toml").write_text(to_toml(written(config)))
    manifest = {"number": 20, "meta": {"update": 20, "decisions": 2000, "game": game}}
    (run / "checkpoints" / "00000020" / "manifest.json").write_text(json.dumps(manifest))
    (run / "best.json").write_text(json.dumps({"checkpoint": 20, "strength": 0.7}))
    events = [
        {"update": 20, "event": "best", "checkpoint": 20, "strength": 0.7},
        {"update": updates, "event": "ended", "why": "done", "seconds": 0.1 * updates},
    ]
    (run / "events.json").write_text(json.dumps(events))
    (run / "machine.json").write_text(json.dumps({"cpu": "a", "cores": 2}))
    add_points(run, range(1, updates + 1))
    evaluated = {"eval/careful/win": 0.7, "eval/careful/score": 0.2, "eval/strength": 0.8}
    add_all(
        run,
        {
            update: {key: value + update / 1e4 for key, value in evaluated.items()}
            for update in range(10, updates + 1, 10)
        },
    )
    return run


def add_points(run: Path, updates: range) -> None:
    """Write what an update writes."""
    add_all(run, {u: {"charts/decisions": 100.0 * u, "losses/entropy": 1 / u} for u in updates})


def add(run: Path, update: int, values: Mapping[str, float | None]) -> None:
    """Write some numbers of one update."""
    add_all(run, {update: values})


def add_all(run: Path, values: Mapping[int, Mapping[str, float | None]]) -> None:
    """Write numbers by update as a training does."""
    rows = [(u, name, value, u * 0.1) for u in values for name, value in values[u].items()]
    with closing(sqlite3.connect(run / metrics.FILE)) as db, db:
        db.execute("PRAGMA synchronous = OFF")  # no test pulls the plug
        db.execute(metrics.SCHEMA)
        db.executemany("INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)", rows)
