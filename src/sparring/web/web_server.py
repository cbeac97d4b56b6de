"""The process that answers: its socket, its end, and connections that nobody can hold open."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparring.errors import ConfigError

MAX_HEADER_BYTES = 16_384
KEEP_ALIVE_S = 5
SHUTDOWN_S = 1
"""How long answers that are under way may take after Ctrl-C."""


def listen(host: str, port: int) -> socket.socket:
    """Take a port; an error says what to do if that cannot be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(128)
    except socket.gaierror:
        raise ConfigError(f"--host {host}: no such address; try 127.0.0.1") from None
    except OSError as wrong:
        raise ConfigError(port_error(host, port, wrong)) from None
    return taken


def port_error(host: str, port: int, wrong: OSError) -> str:
    """Say why a port cannot be taken."""
    if wrong.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65_535 else 8000
        return f"port {port} is taken; choose another: --port {other}, or --port 0 for a free one"
    if wrong.errno == errno.EACCES:
        return f"port {port} may not be used by you; choose one from 1024 on: --port 8000"
    return f"cannot listen at {host}:{port}: {wrong.strerror}"


def serve(app: Any, taken: socket.socket, ready: Callable[[], None]) -> None:
    """Answer until Ctrl-C; `ready` is called once it does."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    with contextlib.suppress(KeyboardInterrupt):  # the way in which it is to end
        WebServer(config, app, ready).run(sockets=[taken])


class WebServer(uvicorn.Server):
    """Says when it is there, and tells live streams when it goes."""

    def __init__(self, config: uvicorn.Config, app: Any, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.served, self.ready = app, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets=sockets)
        await asyncio.to_thread(self.ready)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End: streams that never end by themselves are told so."""
        super().handle_exit(sig, frame)
        self.served.state.lazy_api.close()


HEADERS_TIMEOUT_S = 10.0
"""How long a request may take until all of its headers are there."""
STALL_TIMEOUT_S = 30.0
"""How long an answer waits for somebody who takes nothing of it."""
MAX_CONNECTIONS = 200
"""Connections at once. Beyond that, the one that has waited longest without a request goes."""


class Connection(H11Protocol):
    """A connection that ends when the other side is too slow, and makes room for others."""

    waiting: ClassVar[dict[Connection, None]] = {}
    """Those without a request, the oldest first."""
    due: asyncio.TimerHandle | None = None
    stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin: a request has to come soon."""
        super().connection_made(transport)
        self.wait()
        if len(self.connections) > MAX_CONNECTIONS:
            oldest = next(iter(self.waiting), self)
            self.waiting.pop(oldest, None)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read: as soon as a request is there, nobody is in a hurry."""
        super().data_received(data)
        if self.busy:
            self.rest()
        elif self.due is None:
            self.wait()

    def on_response_complete(self) -> None:
        """Go back to those that wait; here the server has a shorter patience of its own."""
        super().on_response_complete()
        if not self.busy and not self.transport.is_closing():
            self.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.rest()
        self.calm()
        super().connection_lost(exc)

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def wait(self) -> None:
        """Wait for a request, but not for long."""
        self.waiting[self] = None
        self.due = self.loop.call_later(HEADERS_TIMEOUT_S, self.transport.abort)

    def rest(self) -> None:
        """Wait no longer."""
        self.waiting.pop(self, None)
        if self.due:
            self.due.cancel()
        self.due = None

    def pause_writing(self) -> None:
        """The other side takes less than we have: look again whether it takes anything."""
        super().pause_writing()
        self.calm()
        self.look(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        """It took enough."""
        self.calm()
        super().resume_writing()

    def look(self, before: int) -> None:
        """End if nothing was taken since the last look."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self.stalled = self.loop.call_later(STALL_TIMEOUT_S, self.look, left)

    def calm(self) -> None:
        """Look no longer."""
        if self.stalled:
            self.stalled.cancel()
        self.stalled = None
