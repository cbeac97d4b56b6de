"""What a page asks about runs."""

from __future__ import annotations

import sqlite3
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from sparring.draw.charts.axes import By, Floats
from sparring.errors import ConfigError
from sparring.league.told import described as league_described
from sparring.league.told import payoff_of
from sparring.store.standings import standings_of, wanted
from sparring.training.records.compared import BUDGETS, described, measure_of, notes
from sparring.training.records.comparison import Comparison, Group, compare
from sparring.web.answers import MissingError, RefusedError, answers
from sparring.web.curves import read_curves
from sparring.web.folder import Folder
from sparring.web.glance import Glances
from sparring.web.run_facts import facts_of

MOST_COMPARED = 64
MOST_IN_MATRIX = 12
"""Snapshots of a league's matrix, spread over the run."""


def run_routes(folder: Folder, glances: Glances) -> list[Route]:
    """Return what can be asked about the runs of a folder."""

    def list_runs(request: Request) -> Any:
        return {"folder": folder.root.absolute().name, "runs": glances.all()}

    def show_run(request: Request) -> Any:
        run = folder.run(request.path_params["run"])
        return {"overview": glances.one(run), **facts_of(run)}

    def show_curves(request: Request) -> Any:
        run = folder.run(request.path_params["run"])
        since = whole(request, "since", -1)
        only = request.query_params.getlist("only")
        return {"run": run.name, **read_curves(run, after=since, only=only)}

    def show_league(request: Request) -> Any:
        run = folder.run(request.path_params["run"])
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

    def compare_runs(request: Request) -> Any:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(names) <= MOST_COMPARED:
            raise ConfigError(
                f"compare needs 2 to {MOST_COMPARED} runs, these are {len(names)}: ?run=A&run=B"
            )
        paths = [folder.run(name) for name in names]
        return compared(compare(paths, request.query_params.get("by", "")))

    work = {
        "/api/runs": list_runs,
        "/api/runs/{run}": show_run,
        "/api/runs/{run}/curves": show_curves,
        "/api/runs/{run}/league": show_league,
        "/api/compare": compare_runs,
    }
    return [Route(path, answers(one)) for path, one in work.items()]


def compared(found: Comparison) -> dict[str, Any]:
    """Return a comparison as the command tells it, with the curves of its picture."""
    plain = described(found, ())
    for group in plain["groups"]:
        for entry in group["runs"]:
            entry["run"] = entry["run"].rpartition("/")[2]
    return {
        **plain,
        "measure": measure_of(found),
        "parity": 1 / found.rules.seats if found.rules.seats > 1 else None,
        "notes": notes(found),
        "curves": {by: [curve_of(found, group, by) for group in found.groups] for by in BUDGETS},
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


def whole(request: Request, name: str, usual: int) -> int:
    """Return a whole number of the query."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return usual
    try:
        return min(max(int(text[:20]), -1), 2**62)
    except ValueError:
        raise ConfigError(f"{name} has to be a whole number") from None
