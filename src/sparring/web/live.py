"""Live updates of runs as server-sent events: one poller per run for all subscribers."""

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
"""Interval in which the files of a watched run are read. Shorter is more current and costs more."""
LIST_POLL_S = 1.0
"""The same for the list of all runs."""
HEARTBEAT_S = 10.0
"""Maximum time between messages, so that both ends notice a lost connection."""
MAX_SUBSCRIBERS = 64
MAX_QUEUED = 256
"""Messages queued for a slow subscriber; then its stream ends and it reconnects."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def sse_message(event: str, value: Any, number: int | None = None) -> bytes:
    which = f"id: {number}\n" if number is not None else ""
    return f"event: {event}\n{which}data: ".encode() + to_json(value) + b"\n\n"


class Subscriber:
    """A connected page with its queue of messages."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_QUEUED)

    def put(self, text: bytes | None) -> None:
        """Queue a message; if the queue is full, end the stream, so that the page reconnects."""
        try:
            self.queue.put_nowait(text)
        except asyncio.QueueFull:
            while not self.queue.empty():
                self.queue.get_nowait()
            self.queue.put_nowait(None)


@dataclass
class WatchedRun:
    """A run, or the list of all runs, with its subscribers."""

    subscribers: set[Subscriber] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class LiveUpdates:
    """Polls watched runs and sends their changes to subscribers."""

    def __init__(self, folder: RunsFolder, summaries: RunSummaries) -> None:
        self.folder, self.summaries = folder, summaries
        self.watched: dict[Path | None, WatchedRun] = {}
        self.closed = False

    @property
    def subscribers(self) -> int:
        return sum(len(one.subscribers) for one in self.watched.values())

    @contextlib.asynccontextmanager
    async def watching(self, run: Path | None) -> AsyncIterator[Subscriber]:
        """Subscribe to a run, or to all; the first subscriber starts polling, the last ends it."""
        subscriber = Subscriber()
        one = self.watched.setdefault(run, WatchedRun())
        one.subscribers.add(subscriber)
        if one.task is None:
            watch = self.watch_list(one) if run is None else self.watch_run(run, one)
            one.task = asyncio.create_task(watch)
        try:
            yield subscriber
        finally:
            one.subscribers.discard(subscriber)
            if not one.subscribers and one.task:
                one.task.cancel()
                self.watched.pop(run, None)

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for one in self.watched.values():
            for subscriber in one.subscribers:
                subscriber.put(None)

    async def watch_run(self, run: Path, one: WatchedRun) -> None:
        """Send what is new in a run."""
        follower, before, events, last_state = CurveFollower(run), (), None, None
        while True:
            try:
                now = await read_in_thread(signature, run)
                if now != before:
                    changes = await read_in_thread(self.changes, run, follower)
                    points, was_reset, state, new_events = changes
                    if was_reset:
                        broadcast(one, sse_message("reset", {}))
                    if points:
                        last = max(curve["update"][-1] for curve in points.values())
                        broadcast(
                            one, sse_message("points", {"last": last, "curves": points}, last)
                        )
                    if last_state is not None and state != last_state:
                        broadcast(one, sse_message("state", state))
                    if events is not None and new_events != events:
                        broadcast(one, sse_message("events", {"events": new_events}))
                    before, events, last_state = now, new_events, state
            except Exception:  # the run is being written, removed, or damaged
                before = ()
            await asyncio.sleep(POLL_S)

    def changes(
        self, run: Path, follower: CurveFollower
    ) -> tuple[dict[str, Any], bool, dict[str, Any], list[dict[str, Any]]]:
        points, was_reset = follower.read_new()
        return points, was_reset, self.summaries.one(run), events_of(run)

    async def watch_list(self, one: WatchedRun) -> None:
        """Send which runs were added, changed or removed."""
        before: dict[str, dict[str, Any]] | None = None
        while True:
            with contextlib.suppress(Exception):  # the next poll tries again
                summaries = await read_in_thread(self.summaries.all)
                now = {summary["name"]: summary for summary in summaries}
                if before is not None:
                    for name in before.keys() - now.keys():
                        broadcast(one, sse_message("gone", {"name": name}))
                    for name, summary in now.items():
                        if before.get(name) != summary:
                            broadcast(one, sse_message("run", summary))
                before = now
            await asyncio.sleep(LIST_POLL_S)


async def read_in_thread(work: Callable[..., Any], *args: Any) -> Any:
    """Read files in a thread, with a timeout."""
    async with asyncio.timeout(ANSWER_S):
        return await WORKERS.do(partial(work, *args))


def broadcast(one: WatchedRun, text: bytes) -> None:
    for subscriber in one.subscribers:
        subscriber.put(text)


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
    """Return the last update that a page has; a reconnecting browser sends it as a header."""
    header = request.headers.get("last-event-id", "")
    if header.isdecimal():
        return int(header[:18])
    try:
        return read_int(request, "since", -1)
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None


class EventStream(StreamingResponse):
    """A response of server-sent events; with too many subscribers an error."""

    def __init__(self, live: LiveUpdates, run: Path | None, first: bytes, since: int = -1) -> None:
        self.live, self.run, self.first, self.since = live, run, first, since
        super().__init__(empty_body(), media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, broadcast: Send) -> None:
        """Subscribe before the first byte is sent, so that the subscriber counts at once."""
        if self.live.closed or self.live.subscribers >= MAX_SUBSCRIBERS:
            text = f"{MAX_SUBSCRIBERS} pages are connected already; close one, then reload"
            await JSONResponse({"error": text}, 503)(scope, receive, broadcast)
            return
        async with self.live.watching(self.run) as subscriber:
            self.body_iterator = self.messages(subscriber)
            await super().__call__(scope, receive, broadcast)

    async def messages(self, subscriber: Subscriber) -> AsyncIterator[bytes]:
        """Yield the current state, the points that the page missed, then all changes."""
        yield self.first
        if self.run is not None and self.since >= 0:
            with contextlib.suppress(TimeoutError, SparringError):  # the state has the error
                missed = await read_in_thread(partial(read_curves, self.run, after=self.since))
                if missed["curves"]:
                    yield sse_message("points", missed, missed["last"])
        while not self.live.closed:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    text = await subscriber.queue.get()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            if text is None:
                return
            yield text


async def empty_body() -> AsyncIterator[bytes]:
    """Placeholder until `EventStream.messages` replaces it."""
    yield b""
