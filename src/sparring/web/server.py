"""The app that `sparring serve` shows in a browser.

The page itself needs nothing but files, so it is there before the rest has been imported.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from sparring.web.guard import Guard
from sparring.web.security import Security, http_error_response, server_error_response

if TYPE_CHECKING:
    from sparring.web.api import MakeService

APP = Path(__file__).parent / "app"


def make_app(
    runs: Path, *, guard: Guard | None = None, api: MakeService | None = None
) -> Starlette:
    """Return the app over a folder with runs.

    api: what makes the service that programs may ask for actions; left out, they may not.
    """
    rest = LazyApi(runs, api)
    if api:
        rest.load()  # what is wrong with an agent is said before anybody listens
    app = Starlette(
        routes=[
            Route("/", index),
            Mount("/app", StaticFiles(directory=APP)),
            Mount("/", rest),
        ],
        middleware=[Middleware(Security, guard=guard or Guard())],
        exception_handlers={HTTPException: http_error_response, Exception: server_error_response},
        lifespan=rest.loading,
    )
    app.state.rest = rest
    return app


async def index(request: Request) -> Response:
    """Send the page."""
    return FileResponse(APP / "index.html")


class LazyApi:
    """Everything but the page; imported in a thread while the page is sent."""

    def __init__(self, runs: Path, service: MakeService | None) -> None:
        self.runs, self.service = runs, service
        self.made: Starlette | None = None
        self._lock = threading.Lock()

    def load(self) -> Starlette:
        """Return the app, made once."""
        with self._lock:
            if self.made is None:
                from sparring.web.api import make_api

                self.made = make_api(self.runs, self.service)
            return self.made

    @asynccontextmanager
    async def loading(self, app: Starlette) -> AsyncIterator[None]:
        """Begin to import as soon as somebody listens."""
        begun = asyncio.create_task(asyncio.to_thread(self.load))
        yield
        await begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, the first ones once everything is there."""
        if self.made is None:
            await asyncio.to_thread(self.load)
        assert self.made
        await self.made(scope, receive, send)

    def close(self) -> None:
        """Let those go who watch."""
        if self.made:
            self.made.state.live.close()
