"""Whom we answer: under which names, with which token, how often."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

LOCAL = ("localhost", "127.0.0.1", "::1")
ANY_ADDRESS = ("0.0.0.0", "::")
HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?")
RATE, BURST = 200.0, 1000.0
"""Requests a second that a client may go on with, and how many at once: a page loads dozens."""
WRONG_TOKEN_COST = 20.0
"""What a wrong token costs, in requests: so that guessing is slow."""
ACT_COST = 0.05
"""What a question for an action costs; a program asks thousands of them."""
MAX_CLIENTS = 4096


@dataclass(frozen=True)
class Guard:
    """Where we listen, and what a visitor has to show."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = field(default="", repr=False)
    reads_freely: bool = False
    """Whether reading needs no token: where only this machine can reach us."""
    once: set[str] = field(default_factory=set, repr=False, compare=False)
    """Words that open in the token's stead, each of them once."""

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token; cookies of all ports of a machine are one heap."""
        return f"sparring-{self.port}"

    @cached_property
    def names(self) -> frozenset[str]:
        """Names under which we can be called, besides addresses."""
        own = socket.gethostname().lower()
        more = () if self.host in LOCAL else (own, f"{own}.local", own.partition(".")[0])
        return frozenset((*LOCAL, self.host.lower(), *more))

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names us.

        A page of somebody else's whose name was bent to our address has its own name there. An
        address cannot be bent, and the port may be another one: that of a tunnel.
        """
        found = HOST.fullmatch(host.lower())
        if not found:
            return False
        name = found["six"] or found["name"]
        return name in self.names or (self.host in ANY_ADDRESS and is_address(name))

    def knows(self, token: str) -> bool:
        """Whether this is the token, in a time that says nothing about it."""
        return equal_in_constant_time(token, self.token)

    def ticket(self) -> str:
        """Return a word that opens once: a browser's command line can be read by others."""
        self.once.add(word := secrets.token_urlsafe(24))
        return word

    def welcomes(self, word: str) -> bool:
        """Whether a word in an address opens: the token, or one that was not used before."""
        found = next((one for one in self.once if equal_in_constant_time(word, one)), None)
        self.once.discard(found or "")
        return found is not None or self.knows(word)

    def admits(self, authorization: str, cookies: str) -> bool | None:
        """Whether a request shows the token; None if it shows none at all."""
        if not self.token:
            return True
        kind, _, shown = authorization.partition(" ")
        if kind.lower() == "bearer":
            return self.knows(shown.strip())
        ours = [value for name, value in parse_cookies(cookies) if name == self.cookie]
        return any(map(self.knows, ours)) if ours else None


def equal_in_constant_time(one: str, two: str) -> bool:
    """Whether two words are the same, in a time that says nothing about where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), two.encode("utf-8", "replace"))


def parse_cookies(cookies: str) -> list[tuple[str, str]]:
    """Return names and values of cookies; odd ones are those of other programs, and skipped.

    Cookies of all ports of a machine come together, whatever is in them.
    """
    pairs = (cookie.partition("=") for cookie in cookies.split(";"))
    return [(name.strip(), value.strip().strip('"')) for name, _, value in pairs]


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class RateLimiter:
    """How much every client may still ask: a bucket that fills up again."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> bool:
        """Whether a client may ask; what it costs is taken either way."""
        now = time.monotonic()
        left, when = self._left.pop(client, (self.burst, now))
        left = min(left + (now - when) * self.rate, self.burst) - cost
        self._left[client] = (max(left, -self.burst), now)
        if len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return left >= 0


def rate_limit_key(address: str) -> str:
    """Return whom to count a request for: an address, of IPv6 the network that one customer has."""
    try:
        six = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(ipaddress.IPv6Network((six, 64), strict=False))
