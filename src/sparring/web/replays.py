"""Games that were kept from a page: small files in a folder beside the runs."""

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
"""Of one file that is shown; larger ones are for `sparring replay`."""


def replay_routes(folder: RunsFolder) -> list[Route]:
    """Return the list of replays, one of them, and how to add one."""
    place = folder.root / FOLDER

    def list_replays(request: Request) -> Any:
        with reading_files(FOLDER):
            files = list_files(place, folder)
            files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
            return {"replays": [summary(file) for file in files[:MAX_REPLAYS]]}

    def show_replay(request: Request) -> Any:
        name = request.path_params["name"]
        with reading_files(f"replay {quoted(name)}"):
            return Replay.from_json(read_replay(name, place, folder)).plain()

    async def keep_replay(request: Request) -> Response:
        await read_json(request)
        raw = await request.body()
        name = await run_in_thread(
            save_replay, raw, request.query_params.get("name", ""), place, folder
        )
        return JSONResponse({"name": name}, 201)

    return [
        Route("/api/replays", json_handler(list_replays)),
        Route("/api/replays", keep_replay, methods=["POST"]),
        Route("/api/replays/{name}", json_handler(show_replay)),
    ]


def list_files(place: Path, folder: RunsFolder) -> list[Path]:
    """Return the files that may be shown."""
    if not is_folder(place) or not folder.holds(place):
        return []
    files = [file for file in place.glob("*.json") if NAME.fullmatch(file.stem)]
    return [file for file in files if folder.holds(file) and is_file(file)]


def summary(file: Path) -> dict[str, Any]:
    """Return what a list says about a replay; one that cannot be read says why."""
    facts = file.stat()
    known: dict[str, Any] = {"name": file.stem, "date": facts.st_mtime, "size": facts.st_size}
    try:
        replay = Replay.from_json(read_regular(file, MAX_BYTES))
    except Exception as wrong:  # of others' files
        return {**known, "error": told(wrong)}
    return {
        **known,
        "game": replay.rules.name,
        "title": replay.rules.title,
        "players": list(replay.players),
        "steps": len(replay.actions),
        "scores": list(replay.scores),
        "end": replay.end,
    }


def read_replay(name: str, place: Path, folder: RunsFolder) -> bytes:
    file = place / f"{name}.json"
    if not NAME.fullmatch(name) or not is_file(file) or not folder.holds(file):
        raise NotFoundError(f"no replay {quoted(name)} here; /api/replays lists them")
    if file.stat().st_size > MAX_BYTES:
        raise ConflictError(f"{name} is larger than {MAX_BYTES // 2**20} MiB; see sparring replay")
    return read_regular(file, MAX_BYTES)


def save_replay(raw: bytes, wished: str, place: Path, folder: RunsFolder) -> str:
    """Check a replay by playing it, and write it under a name that nobody has yet."""
    replay = Replay.from_json(raw)
    if wrong := replay.differences():
        raise ConflictError(f"not kept: played again, {wrong[0]}")
    if wished and not NAME.fullmatch(wished):
        raise ConflictError("name: use up to 100 letters, digits and _ - + .")
    if not folder.holds(place):
        raise ConflictError(f"{FOLDER} is a link that leads out of the folder with the runs")
    if is_folder(place) and len(list_files(place, folder)) >= MAX_REPLAYS:
        raise ConflictError(f"{MAX_REPLAYS} replays are kept already; remove some from {FOLDER}")
    name = wished or f"{replay.rules.name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        replay.write(place / f"{name}.json")
    except OSError as wrong_disk:
        raise ConflictError(f"not kept: {wrong_disk.strerror or wrong_disk}") from None
    except SparringError:
        raise ConflictError(f"there is a replay {name} already; give another name") from None
    return name
