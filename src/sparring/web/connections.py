"""One connection of the server, which nobody can hold open by doing nothing."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
"""How long a request may take until all of its headers are there."""
STALL_S = 30.0
"""How long an answer waits for somebody who takes nothing of it."""
MOST = 200
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
        if len(self.connections) > MOST:
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
        """End."""
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
        self.due = self.loop.call_later(HEAD_S, self.transport.abort)

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
            self.stalled = self.loop.call_later(STALL_S, self.look, left)

    def calm(self) -> None:
        """Look no longer."""
        if self.stalled:
            self.stalled.cancel()
        self.stalled = None
