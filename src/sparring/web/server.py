"""The app of `sparring serve`.

The page consists of static files, so it is served before the API has been imported.
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
    runs: Path, *, guard: Guard | None = None, make_service: MakeService | None = None
) -> Starlette:
    """Return the app over a folder of runs.

    make_service: makes the service of `POST /api/act`; None: there is none.
    """
    lazy_api = LazyApi(runs, make_service)
    if make_service:
        lazy_api.load()  # so that an agent that cannot be loaded fails before the server listens
    app = Starlette(
        routes=[
            Route("/", index),
            Mount("/app", StaticFiles(directory=APP)),
            Mount("/", lazy_api),
        ],
        middleware=[Middleware(Security, guard=guard or Guard())],
        exception_handlers={HTTPException: http_error_response, Exception: server_error_response},
        lifespan=lazy_api.loading,
    )
    app.state.lazy_api = lazy_api
    return app


async def index(request: Request) -> Response:
    """Send the page."""
    return FileResponse(APP / "index.html")


class LazyApi:
    """The API, imported in a thread while the page is sent."""

    def __init__(self, runs: Path, make_service: MakeService | None) -> None:
        self.runs, self.make_service = runs, make_service
        self.app: Starlette | None = None
        self._lock = threading.Lock()

    def load(self) -> Starlette:
        """Return the API; the first call imports it."""
        with self._lock:
            if self.app is None:
                from sparring.web.api import make_api

                self.app = make_api(self.runs, self.make_service)
            return self.app

    @asynccontextmanager
    async def loading(self, app: Starlette) -> AsyncIterator[None]:
        """Start the import when the server starts."""
        task = asyncio.create_task(asyncio.to_thread(self.load))
        yield
        await task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; the first ones wait for the import."""
        if self.app is None:
            await asyncio.to_thread(self.load)
        assert self.app
        await self.app(scope, receive, send)

    def close(self) -> None:
        """End live streams."""
        if self.app:
            self.app.state.live.close()
