"""The HTTP server: its socket, shutdown, and limits of connections."""

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
"""Time for running responses after Ctrl-C."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except socket.gaierror:
        raise ConfigError(f"--host {host}: no such address; try 127.0.0.1") from None
    except OSError as wrong:
        raise ConfigError(port_error(host, port, wrong)) from None
    return listener


def port_error(host: str, port: int, wrong: OSError) -> str:
    """Return why a port cannot be used, and what to do."""
    if wrong.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65_535 else 8000
        return f"port {port} is in use; choose another: --port {other}, or --port 0 for a free one"
    if wrong.errno == errno.EACCES:
        return f"no permission for port {port}; choose one from 1024 on: --port 8000"
    return f"cannot listen at {host}:{port}: {wrong.strerror}"


def serve(app: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C. ready: called once the server accepts requests."""
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
    with contextlib.suppress(KeyboardInterrupt):  # the normal end
        WebServer(config, app, ready).run(sockets=[listener])


class WebServer(uvicorn.Server):
    """A uvicorn server that reports its start and closes live streams at its end."""

    def __init__(self, config: uvicorn.Config, app: Any, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.served, self.ready = app, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        await asyncio.to_thread(self.ready)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Close live streams, which would never end."""
        super().handle_exit(sig, frame)
        self.served.state.lazy_api.close()


HEADERS_TIMEOUT_S = 10.0
"""Time for the headers of a request to arrive."""
STALL_TIMEOUT_S = 30.0
"""Time that a response waits for a client that reads nothing."""
MAX_CONNECTIONS = 200
"""With more, the connection that has been idle longest is closed."""


class Connection(H11Protocol):
    """A connection that is closed if the client is too slow or there are too many."""

    waiting: ClassVar[dict[Connection, None]] = {}
    """Connections without a request, oldest first."""
    headers_timer: asyncio.TimerHandle | None = None
    stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self.start_waiting()
        if len(self.connections) > MAX_CONNECTIONS:
            oldest = next(iter(self.waiting), self)
            self.waiting.pop(oldest, None)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout as soon as a request is complete."""
        super().data_received(data)
        if self.busy:
            self.stop_waiting()
        elif self.headers_timer is None:
            self.start_waiting()

    def on_response_complete(self) -> None:
        """Count as idle again; uvicorn has a shorter keep-alive timeout."""
        super().on_response_complete()
        if not self.busy and not self.transport.is_closing():
            self.waiting[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_waiting()
        self.stop_stall_timer()
        super().connection_lost(exc)

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def start_waiting(self) -> None:
        self.waiting[self] = None
        self.headers_timer = self.loop.call_later(HEADERS_TIMEOUT_S, self.transport.abort)

    def stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self.headers_timer:
            self.headers_timer.cancel()
        self.headers_timer = None

    def pause_writing(self) -> None:
        """Start to check whether the client reads anything."""
        super().pause_writing()
        self.stop_stall_timer()
        self.check_progress(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        self.stop_stall_timer()
        super().resume_writing()

    def check_progress(self, before: int) -> None:
        """Close the connection if the client read nothing since the last check."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self.stall_timer = self.loop.call_later(STALL_TIMEOUT_S, self.check_progress, left)

    def stop_stall_timer(self) -> None:
        if self.stall_timer:
            self.stall_timer.cancel()
        self.stall_timer = None
