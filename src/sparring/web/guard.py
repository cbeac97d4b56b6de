"""Access control of the server: allowed host names, the token, rate limits."""

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
HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?")
RATE, BURST = 200.0, 1000.0
"""Requests per second of a client, and how many at once: a page loads dozens."""
WRONG_TOKEN_COST = 20.0
"""Cost of a wrong token, in requests, which makes guessing slow."""
ACT_COST = 0.05
"""Cost of a request to /api/act, of which programs send thousands."""
MAX_CLIENTS = 4096


@dataclass(frozen=True)
class Guard:
    """Address of the server, and its token."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = field(default="", repr=False)
    reads_freely: bool = False
    """Whether reading needs no token: if only this machine can reach the server."""
    tickets: set[str] = field(default_factory=set, repr=False, compare=False)
    """One-time substitutes for the token."""

    @property
    def cookie(self) -> str:
        """Name of the cookie with the token; it has the port, as ports share cookies."""
        return f"sparring-{self.port}"

    @cached_property
    def names(self) -> frozenset[str]:
        """Host names of this server, besides addresses."""
        name = socket.gethostname().lower()
        more = () if self.host in LOCAL else (name, f"{name}.local", name.partition(".")[0])
        return frozenset((*LOCAL, self.host.lower(), *more))

    def allows_host(self, host: str) -> bool:
        """Whether a Host header names this server, which prevents DNS rebinding.

        The port may differ, as behind a tunnel.
        """
        match = HOST.fullmatch(host.lower())
        if not match:
            return False
        name = match["ipv6"] or match["name"]
        return name in self.names or (self.host in ANY_ADDRESS and is_address(name))

    def is_token(self, token: str) -> bool:
        return equal_in_constant_time(token, self.token)

    def issue_ticket(self) -> str:
        """Return a one-time ticket for the browser, whose command line other users can read."""
        self.tickets.add(ticket := secrets.token_urlsafe(24))
        return ticket

    def accepts_login(self, word: str) -> bool:
        """Whether the token of an address is valid: the token itself, or an unused ticket."""
        ticket = next((one for one in self.tickets if equal_in_constant_time(word, one)), None)
        self.tickets.discard(ticket or "")
        return ticket is not None or self.is_token(word)

    def authenticates(self, authorization: str, cookies: str) -> bool | None:
        """Whether a request has the right token; None if it has none."""
        if not self.token:
            return True
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(token.strip())
        tokens = [value for name, value in parse_cookies(cookies) if name == self.cookie]
        return any(map(self.is_token, tokens)) if tokens else None


def equal_in_constant_time(one: str, two: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), two.encode("utf-8", "replace"))


def parse_cookies(cookies: str) -> list[tuple[str, str]]:
    """Return (name, value) of cookies; other programs' cookies may be malformed."""
    pairs = (cookie.partition("=") for cookie in cookies.split(";"))
    return [(name.strip(), value.strip().strip('"')) for name, _, value in pairs]


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class RateLimiter:
    """Token bucket per client."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> bool:
        """Whether a client may send a request; its cost is deducted in any case."""
        now = time.monotonic()
        left, when = self._left.pop(client, (self.burst, now))
        left = min(left + (now - when) * self.rate, self.burst) - cost
        self._left[client] = (max(left, -self.burst), now)
        if len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return left >= 0


def rate_limit_key(address: str) -> str:
    """Return the client of a request: an address; for IPv6 the /64 network of a customer."""
    try:
        ipv6 = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(ipaddress.IPv6Network((ipv6, 64), strict=False))
