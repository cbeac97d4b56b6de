"""Runs with numbers that are known, without training."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.training.planning.settings import merged, written
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.run import Run

NOW_S = 1_700_000_000
Evaluations = Mapping[int, float | Mapping[str, float]]


def make_run(
    root: Path,
    name: str,
    wins: Evaluations,
    *,
    updates: int = 10,
    age_s: int = 0,
    game: str = "tic_tac_toe",
    seconds_per_update: float = 60.0,
    **settings: Any,
) -> Path:
    """Make a run of so many updates, each a minute long and of 1,000 decisions.

    wins: by update, the win share against both bots or against each by name.
    """
    base = TrainConfig(game=game, updates=updates)
    config = merged(base, settings, "test")
    made = Run.create(root, "made", "ppo", written(config))
    path = made.path.rename(root / name)
    with MetricsWriter(path, tensorboard=False) as out:
        for update in range(1, updates + 1):
            values = {"charts/decisions": 1000.0 * update, "charts/score": float(update)}
            values |= {"losses/value_loss": 1 / update, "charts/SPS": 1e5}
            out.add(update, values, seconds=update * seconds_per_update)
        for update, found in wins.items():
            # As beside training: the answer comes when all is over.
            out.add(update, evaluation(game, found), seconds=updates * seconds_per_update)
    os.utime(path / "config.toml", (NOW_S - age_s, NOW_S - age_s))
    return path


def evaluation(game: str, found: float | Mapping[str, float]) -> dict[str, float]:
    """What an evaluation writes; the score is ten times the win share."""
    if game == "cage2":
        assert isinstance(found, float)
        return {"eval/alone/score": found, "eval/strength": found}
    each = found if isinstance(found, Mapping) else dict.fromkeys(("careful", "random"), found)
    values = {f"eval/{name}/win": win for name, win in each.items()}
    values |= {f"eval/{name}/score": 10 * win for name, win in each.items()}
    values["eval/previous best/win"] = 0.9
    return {**values, "eval/strength": sum(each.values()) / len(each)}


def write_results(path: Path, ended: str = "done", **wins: float) -> None:
    """Write what a run measures at its end."""
    results = {name: {"win": win, "score": 0.0} for name, win in wins.items()}
    text = {"checkpoint": 10, "ended": ended, "seconds": 1.0, "results": results}
    (path / "results.json").write_text(json.dumps(text))


def write_events(path: Path, events: Sequence[str]) -> None:
    """Write what came from beside."""
    noted = [{"update": at, "event": event} for at, event in enumerate(events)]
    (path / "events.json").write_text(json.dumps(noted))
