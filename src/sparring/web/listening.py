"""The process that answers: its socket, its connections, its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from sparring.errors import ConfigError
from sparring.web.connections import Connection

MOST_HEADER_BYTES = 16_384
KEEP_ALIVE_S = 5
LAST_WORDS_S = 1
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
        raise ConfigError(refused(host, port, wrong)) from None
    return taken


def refused(host: str, port: int, wrong: OSError) -> str:
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
        timeout_graceful_shutdown=LAST_WORDS_S,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )
    with contextlib.suppress(KeyboardInterrupt):  # the way in which it is to end
        Server(config, app, ready).run(sockets=[taken])


class Server(uvicorn.Server):
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
        self.served.state.rest.close()
