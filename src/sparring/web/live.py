"""Runs as they go on: one watcher looks at the files, any number of viewers hear of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sparring.errors import SparringError
from sparring.training.records.overview import events_of
from sparring.web.curves import CurveFollower, read_curves
from sparring.web.responses import run_in_thread, to_json
from sparring.web.run_summaries import RunSummaries, signature
from sparring.web.runs import read_int
from sparring.web.runs_folder import RunsFolder
from sparring.web.security import ANSWER_S
from sparring.web.workers import WORKERS

POLL_S = 0.3
"""How often files are looked at while somebody watches. Shorter shows sooner and costs more."""
LIST_POLL_S = 1.0
"""The same for the list of all runs."""
HEARTBEAT_S = 10.0
"""How often a viewer hears something at least, so that both ends notice when the other is gone."""
MAX_SUBSCRIBERS = 64
MAX_QUEUED = 256
"""Messages that a slow viewer may be behind; then it has to begin anew."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def sse_message(event: str, value: Any, number: int | None = None) -> bytes:
    which = f"id: {number}\n" if number is not None else ""
    return f"event: {event}\n{which}data: ".encode() + to_json(value) + b"\n\n"


class Subscriber:
    """Somebody who watches: messages wait here until they are sent."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_QUEUED)

    def put(self, text: bytes | None) -> None:
        """Leave a message; for one who is too far behind the stream ends, and it comes again."""
        try:
            self.waiting.put_nowait(text)
        except asyncio.QueueFull:
            while not self.waiting.empty():
                self.waiting.get_nowait()
            self.waiting.put_nowait(None)


@dataclass
class WatchedRun:
    """A run with viewers, or the list of all runs."""

    viewers: set[Subscriber] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class LiveUpdates:
    """Looks at runs that somebody watches, once for all who do."""

    def __init__(self, folder: RunsFolder, summaries: RunSummaries) -> None:
        self.folder, self.summaries = folder, summaries
        self.watched: dict[Path | None, WatchedRun] = {}
        self.closed = False

    @property
    def viewers(self) -> int:
        return sum(len(one.viewers) for one in self.watched.values())

    @contextlib.asynccontextmanager
    async def watching(self, run: Path | None) -> AsyncIterator[Subscriber]:
        """Hear of a run, or of all of them; the first viewer starts the watch, the last ends it."""
        viewer = Subscriber()
        one = self.watched.setdefault(run, WatchedRun())
        one.viewers.add(viewer)
        if one.task is None:
            watch = self.look_at_all(one) if run is None else self.look_at(run, one)
            one.task = asyncio.create_task(watch)
        try:
            yield viewer
        finally:
            one.viewers.discard(viewer)
            if not one.viewers and one.task:
                one.task.cancel()
                self.watched.pop(run, None)

    def close(self) -> None:
        """Let all viewers go."""
        self.closed = True
        for one in self.watched.values():
            for viewer in one.viewers:
                viewer.put(None)

    async def look_at(self, run: Path, one: WatchedRun) -> None:
        """Tell what is new in a run, as long as somebody listens."""
        follower, before, events, told = CurveFollower(run), (), None, None
        while True:
            try:
                now = await read_in_thread(signature, run)
                if now != before:
                    found = await read_in_thread(self.changes, run, follower)
                    fresh, cut, state, happened = found
                    if cut:
                        broadcast(one, sse_message("reset", {}))
                    if fresh:
                        last = max(curve["update"][-1] for curve in fresh.values())
                        broadcast(one, sse_message("points", {"last": last, "curves": fresh}, last))
                    if told is not None and state != told:
                        broadcast(one, sse_message("state", state))
                    if events is not None and happened != events:
                        broadcast(one, sse_message("events", {"events": happened}))
                    before, events, told = now, happened, state
            except Exception:  # being written, removed, or damaged, as the list tells
                before = ()
            await asyncio.sleep(POLL_S)

    def changes(
        self, run: Path, follower: CurveFollower
    ) -> tuple[dict[str, Any], bool, dict[str, Any], list[dict[str, Any]]]:
        """Read what may be new."""
        fresh, cut = follower.news()
        return fresh, cut, self.summaries.one(run), events_of(run)

    async def look_at_all(self, one: WatchedRun) -> None:
        """Tell which runs came, changed or went, as long as somebody listens."""
        before: dict[str, dict[str, Any]] | None = None
        while True:
            with contextlib.suppress(Exception):  # the next look will tell
                found = await read_in_thread(self.summaries.all)
                now = {told["name"]: told for told in found}
                if before is not None:
                    for name in before.keys() - now.keys():
                        broadcast(one, sse_message("gone", {"name": name}))
                    for name, told in now.items():
                        if before.get(name) != told:
                            broadcast(one, sse_message("run", told))
                before = now
            await asyncio.sleep(LIST_POLL_S)


async def read_in_thread(work: Callable[..., Any], *given: Any) -> Any:
    """Look at files in a thread, and not for ever."""
    async with asyncio.timeout(ANSWER_S):
        return await WORKERS.do(partial(work, *given))


def broadcast(one: WatchedRun, text: bytes) -> None:
    """Leave a message for all viewers."""
    for viewer in one.viewers:
        viewer.put(text)


def live_routes(live: LiveUpdates) -> list[Route]:
    async def follow_all(request: Request) -> Response:
        found = await run_in_thread(live.summaries.all)
        return EventStream(live, None, sse_message("runs", {"runs": found}))

    async def follow_run(request: Request) -> Response:
        run = await run_in_thread(live.folder.run, request.path_params["run"])
        first = sse_message("state", await run_in_thread(live.summaries.one, run))
        return EventStream(live, run, first, last_update_seen(request))

    return [
        Route("/api/live", follow_all),
        Route("/api/runs/{run}/live", follow_run),
    ]


def last_update_seen(request: Request) -> int:
    """Return the last update that a viewer has; a browser that comes again says it by itself."""
    again = request.headers.get("last-event-id", "")
    if again.isdecimal():
        return int(again[:18])
    try:
        return read_int(request, "since", -1)
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None


class EventStream(StreamingResponse):
    """An answer that goes on as long as somebody watches; too many are told so."""

    def __init__(self, live: LiveUpdates, run: Path | None, first: bytes, since: int = -1) -> None:
        self.live, self.run, self.first, self.since = live, run, first, since
        super().__init__(empty_body(), media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, broadcast: Send) -> None:
        """Begin to watch before the first byte is sent, so that nobody is counted too late."""
        if self.live.closed or self.live.viewers >= MAX_SUBSCRIBERS:
            text = f"{MAX_SUBSCRIBERS} pages watch already; close one, then reload"
            await JSONResponse({"error": text}, 503)(scope, receive, broadcast)
            return
        async with self.live.watching(self.run) as viewer:
            self.body_iterator = self.told(viewer)
            await super().__call__(scope, receive, broadcast)

    async def told(self, viewer: Subscriber) -> AsyncIterator[bytes]:
        """Say how things stand, what was missed, and then whatever happens."""
        yield self.first
        if self.run is not None and self.since >= 0:
            with contextlib.suppress(TimeoutError, SparringError):  # damaged, as the state tells
                late = await read_in_thread(partial(read_curves, self.run, after=self.since))
                if late["curves"]:
                    yield sse_message("points", late, late["last"])
        while not self.live.closed:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    heard = await viewer.waiting.get()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            if heard is None:
                return
            yield heard


async def empty_body() -> AsyncIterator[bytes]:
    """Stand in for what is told before somebody watches."""
    yield b""
