"""Leagues and comparisons as pages show them: what the commands tell, and their pictures."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.draw.charts.axes import By, Floats
from sparring.errors import ConfigError
from sparring.league.told import described as league_described
from sparring.league.told import payoff_of
from sparring.store.standings import standings_of, wanted
from sparring.training.records.compared import described, measure_of, notes
from sparring.training.records.comparison import Comparison, Group, compare
from sparring.web.answers import MissingError, RefusedError

MOST_IN_MATRIX = 12
"""Snapshots of a league's matrix, spread over the run."""


def told_league(run: Path) -> dict[str, Any]:
    """Return who is known in a run's league, what they are worth, and who beats whom."""
    try:
        standings = standings_of(run)
    except ConfigError:
        raise MissingError(
            f"{run.name} has no league; train one: sparring train GAME --opponents past"
        ) from None
    except sqlite3.Error:
        raise RefusedError(f"the league of {run.name} cannot be read") from None
    matrix = payoff_of(standings, wanted(standings, MOST_IN_MATRIX))
    return {
        "run": run.name,
        **league_described(standings),
        "payoff": {
            "names": list(matrix.names),
            "share": matrix.share.tolist(),
            "low": numbers(matrix.low),
            "high": numbers(matrix.high),
        },
    }


def told_comparison(runs: Sequence[Path], by: str) -> dict[str, Any]:
    """Return what the command says about runs side by side, with the curves of its picture."""
    found = compare(runs, by)
    plain = described(found, ())
    for group in plain["groups"]:
        for entry in group["runs"]:
            entry["run"] = Path(entry["run"]).name
    return {
        **plain,
        "measure": measure_of(found),
        "parity": 1 / found.rules.seats if found.rules.seats > 1 else None,
        "notes": notes(found),
        "curves": {
            by: [curve_of(found, group, by) for group in found.groups] for by in found.budgets
        },
    }


def curve_of(found: Comparison, group: Group, by: By) -> dict[str, Any]:
    """Return the strength of a group over what it cost, with its interval."""
    band = group.over(by, seed=found.seed)
    return {
        "group": group.name,
        "x": band.x.tolist(),
        "value": band.values.tolist(),
        "low": numbers(band.low),
        "high": numbers(band.high),
    }


def numbers(values: Floats | None) -> list[Any] | None:
    """Return an array as lists, if there is one."""
    return None if values is None else values.tolist()
