"""The scripted defenders of section 12.1, with the memory they are described with."""

from __future__ import annotations

from typing import Protocol

from reference.cage2.game import REMOTE, Cage2
from reference.cage2.network import HOSTS

SLEEP, MONITOR, REMOVE, RESTORE = 0, 1, 15, 132


class Bot(Protocol):
    def act(self, game: Cage2) -> int: ...


class Sleeper:
    def act(self, game: Cage2) -> int:
        return SLEEP


class Cycle:
    def __init__(self) -> None:
        self.at = 0

    def act(self, game: Cage2) -> int:
        others = [RESTORE + h for h, host in enumerate(HOSTS) if host != "User0"]
        action = [MONITOR, *others][self.at % 13]
        self.at += 1
        return action


class React:
    """A queue of hosts whose alert came while it was watching."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.queue: list[str] = []
        self.last: int | None = None

    def act(self, game: Cage2) -> int:
        if self.last == MONITOR:
            for host, events in game.events.items():
                alerted = any(event.remote == REMOTE for event in events)
                if alerted and host != "User0" and host not in self.queue:
                    self.queue.append(host)
        self.last = self.answer + HOSTS.index(self.queue.pop(0)) if self.queue else MONITOR
        return self.last


class VectorReact:
    """A set of hosts that looked compromised and are yet to be restored."""

    def __init__(self) -> None:
        self.pending: set[int] = set()

    def act(self, game: Cage2) -> int:
        bits = game.bits()
        self.pending |= {h for h, host in enumerate(HOSTS) if bits[4 * h + 3] and host != "User0"}
        if not self.pending:
            return SLEEP
        host = min(self.pending)
        self.pending.discard(host)
        return RESTORE + host


def make(name: str) -> Bot:
    if name == "sleep":
        return Sleeper()
    if name == "cycle":
        return Cycle()
    if name == "vreact":
        return VectorReact()
    return React(RESTORE if name == "react_restore" else REMOVE)
