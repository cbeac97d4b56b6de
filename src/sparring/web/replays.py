"""Replays saved by the web app: small files in a folder next to the runs."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sparring.errors import SparringError
from sparring.games.recorded import Replay
from sparring.store.files import read_regular
from sparring.store.folders import is_file, is_folder
from sparring.training.records.overview import told
from sparring.web.responses import (
    ConflictError,
    NotFoundError,
    json_handler,
    read_json,
    reading_files,
    run_in_thread,
)
from sparring.web.runs_folder import RunsFolder, quoted

FOLDER = "replays"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
MAX_REPLAYS = 1000
MAX_BYTES = 2**20
"""Of one file; larger ones are for `sparring replay`."""


def replay_routes(folder: RunsFolder) -> list[Route]:
    """Return the routes that list, read and add replays."""
    path = folder.root / FOLDER

    def list_replays(request: Request) -> Any:
        with reading_files(FOLDER):
            files = list_files(path, folder)
            files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
            return {"replays": [summary(file) for file in files[:MAX_REPLAYS]]}

    def show_replay(request: Request) -> Any:
        name = request.path_params["name"]
        with reading_files(f"replay {quoted(name)}"):
            return Replay.from_json(read_replay(name, path, folder)).plain()

    async def add_replay(request: Request) -> Response:
        await read_json(request)
        raw = await request.body()
        name = await run_in_thread(
            save_replay, raw, request.query_params.get("name", ""), path, folder
        )
        return JSONResponse({"name": name}, 201)

    return [
        Route("/api/replays", json_handler(list_replays)),
        Route("/api/replays", add_replay, methods=["POST"]),
        Route("/api/replays/{name}", json_handler(show_replay)),
    ]


def list_files(path: Path, folder: RunsFolder) -> list[Path]:
    if not is_folder(path) or not folder.contains(path):
        return []
    files = [file for file in path.glob("*.json") if NAME.fullmatch(file.stem)]
    return [file for file in files if folder.contains(file) and is_file(file)]


def summary(file: Path) -> dict[str, Any]:
    """Return the list entry of a replay; it has an error if the file cannot be read."""
    stat = file.stat()
    entry: dict[str, Any] = {"name": file.stem, "date": stat.st_mtime, "size": stat.st_size}
    try:
        replay = Replay.from_json(read_regular(file, MAX_BYTES))
    except Exception as wrong:  # the file may contain anything
        return {**entry, "error": told(wrong)}
    return {
        **entry,
        "game": replay.rules.name,
        "title": replay.rules.title,
        "players": list(replay.players),
        "steps": len(replay.actions),
        "scores": list(replay.scores),
        "end": replay.end,
    }


def read_replay(name: str, path: Path, folder: RunsFolder) -> bytes:
    file = path / f"{name}.json"
    if not NAME.fullmatch(name) or not is_file(file) or not folder.contains(file):
        raise NotFoundError(f"no replay {quoted(name)}; /api/replays lists them")
    if file.stat().st_size > MAX_BYTES:
        raise ConflictError(f"{name} is larger than {MAX_BYTES // 2**20} MiB; use sparring replay")
    return read_regular(file, MAX_BYTES)


def save_replay(raw: bytes, name: str, path: Path, folder: RunsFolder) -> str:
    """Check a replay by playing it, write it under a new name and return the name."""
    replay = Replay.from_json(raw)
    if differences := replay.differences():
        raise ConflictError(f"not saved: played again, {differences[0]}")
    if name and not NAME.fullmatch(name):
        raise ConflictError("name: use up to 100 letters, digits and _ - + .")
    if not folder.contains(path):
        raise ConflictError(f"{FOLDER} is a link out of the folder of runs")
    if is_folder(path) and len(list_files(path, folder)) >= MAX_REPLAYS:
        raise ConflictError(f"{MAX_REPLAYS} replays exist already; remove some from {FOLDER}")
    name = name or f"{replay.rules.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        replay.write(path / f"{name}.json")
    except OSError as wrong:
        raise ConflictError(f"not saved: {wrong.strerror or wrong}") from None
    except SparringError:
        raise ConflictError(f"a replay {name} exists already; give another name") from None
    return name
