"""Stop a run as Ctrl-C does, let it go on, and write about it."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sparring.errors import ConfigError
from sparring.store.files import read_regular
from sparring.training.records.labels import Labels, write_labels
from sparring.training.records.overview import Overview
from sparring.training.records.run import LOCK, NotTrainingError, is_held, stop_training
from sparring.web.responses import ConflictError, read_json, run_in_thread
from sparring.web.runs_folder import RunsFolder

LOG = "resume.log"
"""What a run that was let go on from a page prints, in its folder."""
BEGIN_S = 60.0
"""How long a run may take until it trains; afterwards its state tells."""
ENDING_S = 5.0
LOOK_S = 0.1


def control_routes(folder: RunsFolder) -> list[Route]:
    """Return what can be done to the runs of a folder."""
    begun: dict[Path, subprocess.Popen[bytes]] = {}

    async def stop(request: Request) -> Response:
        await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        return JSONResponse(await run_in_thread(stop_run, run))

    async def resume(request: Request) -> Response:
        await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        process = await run_in_thread(start_resume, run, begun)
        return JSONResponse(await wait_until_training(run, process))

    async def label(request: Request) -> Response:
        given = await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        return JSONResponse(await run_in_thread(set_labels, run, given))

    return [
        Route("/api/runs/{run}/labels", label, methods=["POST"]),
        Route("/api/runs/{run}/stop", stop, methods=["POST"]),
        Route("/api/runs/{run}/resume", resume, methods=["POST"]),
    ]


def set_labels(run: Path, given: Any) -> dict[str, Any]:
    """Replace the note and the tags of a run."""
    try:
        labels = Labels.of(given)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None
    write_labels(run, labels)
    return {"run": run.name, "note": labels.note, "tags": list(labels.tags)}


def stop_run(run: Path) -> dict[str, Any]:
    """Ask whoever trains a run to save and end."""
    try:
        stop_training(run)
    except NotTrainingError as wrong:
        raise ConflictError(str(wrong)) from None
    return {"run": run.name, "told": "it finishes its update, saves and ends"}


def start_resume(run: Path, begun: dict[Path, subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start `sparring resume` in a session of its own, which outlives this server."""
    if is_held(run / LOCK):
        raise ConflictError(f"{run.name} is being trained already")
    if run in begun:
        with suppress(subprocess.TimeoutExpired):  # it has saved and is about to end
            begun[run].wait(ENDING_S)
    for known, process in list(begun.items()):
        if process.poll() is not None:  # or it would stay a zombie
            del begun[known]
    if run in begun:
        raise ConflictError(f"{run.name} is about to begin already")
    if Overview(run).state == "done":
        raise ConflictError(
            f"{run.name} has reached its end; give it more: sparring resume {run.name} --minutes 10"
        )
    log = open_log(run)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "sparring", "resume", str(run.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    begun[run] = process
    return process


def open_log(run: Path) -> int:
    """Open the file that a run prints into: a new one, or the regular file that is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        log = os.open(run / LOG, flags, 0o644)
    except OSError as wrong:
        raise ConflictError(f"{LOG} of {run.name} cannot be written: {wrong.strerror}") from None
    if not stat.S_ISREG(os.fstat(log).st_mode):
        os.close(log)
        raise ConflictError(f"{LOG} of {run.name} is no regular file; remove it")
    os.set_blocking(log, True)
    os.ftruncate(log, 0)
    return log


async def wait_until_training(run: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait until a run trains; what keeps it from that is told in its own words."""
    due = time.monotonic() + BEGIN_S
    while time.monotonic() < due:
        code = process.poll()
        if code not in (None, 0):
            raise_start_error(run, code)
        if code == 0 or await run_in_thread(is_held, run / LOCK):
            break
        await asyncio.sleep(LOOK_S)
    return {"run": run.name, "told": "it goes on where it was", "log": LOG}


def raise_start_error(run: Path, code: int | None) -> None:
    """Say why a run did not go on: the last line that it printed."""
    try:
        lines = read_regular(run / LOG).decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    last = lines[-1].removeprefix("sparring: ") if lines else f"it ended with code {code}"
    raise HTTPException(409, f"{run.name} does not go on: {last[:300]}; see {LOG} in its folder")
