"""The HTTP API of the web app: games, runs, players, replays, WebAssembly modules."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from sparring import games
from sparring.errors import SparringError
from sparring.games.flags import read_rules
from sparring.games.rules import game_names
from sparring.web.agent_service import AgentService
from sparring.web.control import control_routes
from sparring.web.description import describe_rules, unplayable_reason, wasm_file
from sparring.web.live import LiveUpdates, live_routes
from sparring.web.players import player_routes
from sparring.web.replays import replay_routes
from sparring.web.run_summaries import RunSummaries
from sparring.web.runs import run_routes
from sparring.web.runs_folder import RunsFolder, quoted
from sparring.web.security import http_error_response, server_error_response

GAMES = Path(games.__file__).parent
MakeService = Callable[[RunsFolder], AgentService]
PAGE_FILE = re.compile(r"[a-z0-9_]+\.(js|css)")
"""Files of a game's folder that are served: its page, and the modules and styles it imports."""


def make_api(runs: Path, service: MakeService | None = None) -> Starlette:
    """Return the API over a folder of runs."""
    folder = RunsFolder(runs)
    summaries = RunSummaries(folder)
    live = LiveUpdates(folder, summaries)
    app = Starlette(
        routes=[
            Route("/api/games", list_games),
            Route("/api/games/{name}", show_game),
            *live_routes(live),
            *run_routes(folder, summaries),
            *control_routes(folder),
            *player_routes(folder, summaries),
            *replay_routes(folder),
            *(service(folder).routes() if service else ()),
            Route("/games/{name}/{file}", game_file),
            Route("/wasm/{name}.wasm", wasm),
        ],
        exception_handlers={HTTPException: http_error_response, Exception: server_error_response},
    )
    app.state.folder, app.state.live = folder, live
    return app


async def list_games(request: Request) -> Response:
    return JSONResponse({"games": game_names()})


async def show_game(request: Request) -> Response:
    """Describe a game with flags: ?set=num_players=3&set=..."""
    name = request.path_params["name"]
    if name not in game_names():
        raise HTTPException(404, f"no game {quoted(name)}; /api/games lists them")
    try:
        rules = read_rules(name, request.query_params.getlist("set"))
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None
    return JSONResponse({**describe_rules(rules), "unplayable": unplayable_reason(name)})


async def game_file(request: Request) -> Response:
    """Send a file of a game's page."""
    name, file = request.path_params["name"], request.path_params["file"]
    if name not in game_names() or not PAGE_FILE.fullmatch(file):
        raise HTTPException(404)
    path = GAMES / name / file
    if not path.is_file():
        raise HTTPException(404)
    return FileResponse(path)


async def wasm(request: Request) -> Response:
    """Send a game's WebAssembly module."""
    if request.path_params["name"] not in game_names():
        raise HTTPException(404)
    try:
        return FileResponse(wasm_file(request.path_params["name"]), media_type="application/wasm")
    except SparringError as wrong:
        raise HTTPException(503, str(wrong)) from None
