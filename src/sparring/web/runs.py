"""Routes about runs: list, facts, curves, league, comparison. Slow imports happen on first use."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from sparring.errors import ConfigError
from sparring.web.curves import read_curves
from sparring.web.responses import json_handler, reading_files
from sparring.web.run_summaries import RunSummaries
from sparring.web.runs_folder import RunsFolder

MAX_COMPARED = 64


def run_routes(folder: RunsFolder, summaries: RunSummaries) -> list[Route]:
    def list_runs(request: Request) -> Any:
        return {"folder": folder.root.absolute().name, "runs": summaries.all()}

    def show_run(request: Request) -> Any:
        from sparring.web.run_facts import facts_of

        run = folder.run(request.path_params["run"])
        return {"overview": summaries.one(run), **facts_of(run)}

    def show_curves(request: Request) -> Any:
        run = folder.run(request.path_params["run"])
        since = read_int(request, "since", -1)
        only = request.query_params.getlist("only")
        with reading_files(run.name):
            return {"run": run.name, **read_curves(run, after=since, only=only)}

    def show_league(request: Request) -> Any:
        run = folder.run(request.path_params["run"])
        from sparring.web.run_facts import league_facts

        with reading_files(f"the league of {run.name}"):
            return league_facts(run)

    def compare_runs(request: Request) -> Any:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(names) <= MAX_COMPARED:
            raise ConfigError(
                f"compare takes 2 to {MAX_COMPARED} runs, not {len(names)}: ?run=A&run=B"
            )
        paths = [folder.run(name) for name in names]
        from sparring.web.run_facts import comparison_facts

        with reading_files("one of these runs"):
            return comparison_facts(paths, request.query_params.get("by", ""))

    handlers = {
        "/api/runs": list_runs,
        "/api/runs/{run}": show_run,
        "/api/runs/{run}/curves": show_curves,
        "/api/runs/{run}/league": show_league,
        "/api/compare": compare_runs,
    }
    return [Route(path, json_handler(handler)) for path, handler in handlers.items()]


def read_int(request: Request, name: str, default: int) -> int:
    """Return an integer of the query."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        return min(max(int(text[:20]), -1), 2**62)
    except ValueError:
        raise ConfigError(f"{name} has to be an integer") from None
