"""Routes that stop, resume and label runs."""

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
from sparring.training.records.run import LOCK, NotTrainingError, is_locked, stop_training
from sparring.web.responses import ConflictError, read_json, run_in_thread
from sparring.web.runs_folder import RunsFolder

LOG = "resume.log"
"""Output of a run that the web app resumed, in the run's folder."""
START_TIMEOUT_S = 60.0
"""Time to wait until a resumed run trains."""
EXIT_TIMEOUT_S = 5.0
POLL_S = 0.1


def control_routes(folder: RunsFolder) -> list[Route]:
    processes: dict[Path, subprocess.Popen[bytes]] = {}

    async def stop(request: Request) -> Response:
        await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        return JSONResponse(await run_in_thread(stop_run, run))

    async def resume(request: Request) -> Response:
        await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        process = await run_in_thread(start_resume, run, processes)
        return JSONResponse(await wait_until_training(run, process))

    async def label(request: Request) -> Response:
        labels_json = await read_json(request)
        run = await run_in_thread(folder.run, request.path_params["run"])
        return JSONResponse(await run_in_thread(set_labels, run, labels_json))

    return [
        Route("/api/runs/{run}/labels", label, methods=["POST"]),
        Route("/api/runs/{run}/stop", stop, methods=["POST"]),
        Route("/api/runs/{run}/resume", resume, methods=["POST"]),
    ]


def set_labels(run: Path, labels_json: Any) -> dict[str, Any]:
    """Replace the note and the tags of a run."""
    try:
        labels = Labels.of(labels_json)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None
    write_labels(run, labels)
    return {"run": run.name, "note": labels.note, "tags": list(labels.tags)}


def stop_run(run: Path) -> dict[str, Any]:
    """Tell the process that trains a run to save and exit."""
    try:
        stop_training(run)
    except NotTrainingError as wrong:
        raise ConflictError(str(wrong)) from None
    return {"run": run.name, "message": "it finishes its update, saves and ends"}


def start_resume(
    run: Path, processes: dict[Path, subprocess.Popen[bytes]]
) -> subprocess.Popen[bytes]:
    """Start `sparring resume` in its own session, so that it outlives this server."""
    if is_locked(run / LOCK):
        raise ConflictError(f"{run.name} is being trained already")
    if run in processes:
        with suppress(subprocess.TimeoutExpired):  # it has saved and is about to exit
            processes[run].wait(EXIT_TIMEOUT_S)
    for path, process in list(processes.items()):
        if process.poll() is not None:  # or it would stay a zombie
            del processes[path]
    if run in processes:
        raise ConflictError(f"{run.name} is starting already")
    if Overview(run).state == "done":
        raise ConflictError(
            f"{run.name} has finished; train longer: sparring resume {run.name} --minutes 10"
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
    processes[run] = process
    return process


def open_log(run: Path) -> int:
    """Open the log file for writing; reject links, pipes and devices."""
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
    """Wait until a run trains; raise its last line of output if it fails."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        code = process.poll()
        if code not in (None, 0):
            raise_start_error(run, code)
        if code == 0 or await run_in_thread(is_locked, run / LOCK):
            break
        await asyncio.sleep(POLL_S)
    return {"run": run.name, "message": "it continues where it stopped", "log": LOG}


def raise_start_error(run: Path, code: int | None) -> None:
    """Raise an error with the last line that a run printed."""
    try:
        lines = read_regular(run / LOG).decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    last = lines[-1].removeprefix("sparring: ") if lines else f"it ended with code {code}"
    raise HTTPException(409, f"{run.name} did not resume: {last[:300]}; see {LOG} in its folder")
