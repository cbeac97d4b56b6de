"""Middleware that checks every request: host, origin, sizes, token and rate."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparring.web.guard import ACT_COST, WRONG_TOKEN_COST, Guard, RateLimiter, rate_limit_key

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "media-src 'self' blob:",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Pages may load files of this server alone, and no inline scripts or styles."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
READ_METHODS = ("GET", "HEAD")
METHODS = (*READ_METHODS, "POST")
MAX_ADDRESS, MAX_HEADERS = 4096, 64
MAX_BODY = 64 * 2**10
LARGER_BODIES = {"/api/replays": 2**20}
"""Paths with larger limits."""
BODY_S = 15.0
"""Time for a body to arrive."""
ACT = "/api/act"
ANSWER_S = 90.0
"""Time until a response begins."""
NO_TOKEN = "this server needs its token: open the address that `sparring serve` printed"
NO_CHANGE = (
    "stopping, resuming and saving need the token: open the address that `sparring serve` printed, "
    "or send it as authorization: Bearer TOKEN"
)


class RejectedRequest(HTTPException):
    """A request that is rejected; also raised while a handler reads the body."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        by_name = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, text, by_name)


class Security:
    """ASGI middleware: checks requests and adds security headers to responses."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard
        self.rate_limiter = RateLimiter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no WebSockets
            return
        started, cookie = False, ""

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if not limit.expired():
                    limit.reschedule(None)  # a stream has no time limit
                add_headers(message, scope["path"], cookie)
            await send(message)

        try:
            async with asyncio.timeout(ANSWER_S) as limit:
                try:
                    cookie = self.check(scope)
                    await self.app(scope, limit_body(scope, receive), with_headers)
                except RejectedRequest as wrong:
                    if not started:
                        await send_error(with_headers, wrong)
        except TimeoutError:
            if not started:
                text = f"no answer within {ANSWER_S:g} s; it was given up, the server goes on"
                await send_error(with_headers, RejectedRequest(504, text))

    def check(self, scope: Scope) -> str:
        """Refuse what is too large, not for us, not from us, or too often.

        Returns the cookie that a browser is to keep, if it showed the token in the address.
        """
        headers = Headers(scope=scope)
        path, method = scope["path"], scope["method"]
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_ADDRESS:
            raise RejectedRequest(414, f"the address is longer than {MAX_ADDRESS} characters")
        if len(headers) > MAX_HEADERS:
            raise RejectedRequest(431, f"more than {MAX_HEADERS} headers")
        if method not in METHODS:
            raise RejectedRequest(405, f"{method[:10]} is not supported", allow=", ".join(METHODS))
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.guard.allows_host(hosts[0]):
            raise RejectedRequest(
                421, "this server is not called that; use the address that it printed"
            )
        check_origin(method, path, hosts[0], headers)
        if method == "POST" and content_length(headers) > max_body_bytes(path):
            raise RejectedRequest(413, too_large_message(path), connection="close")
        return self.admitted(scope, headers)

    def admitted(self, scope: Scope, headers: Headers) -> str:
        """Check token and rate; return the cookie to set after a login, else "".

        Behind a proxy all clients have one address, so those with the token have their own limit.
        """
        path, word = scope["path"], token_from_query(scope)
        logs_in = bool(word) and self.guard.accepts_login(word)
        has_token = self.guard.authenticates(
            headers.get("authorization", ""), headers.get("cookie", "")
        )
        client = rate_limit_key(scope["client"][0] if scope.get("client") else "")
        key = f"{client} with token" if logs_in or has_token else client
        if not self.rate_limiter.take(key, ACT_COST if path == ACT else 1.0):
            raise RejectedRequest(429, "too many requests; wait a moment", retry_after="1")
        if logs_in:
            return f"{self.guard.cookie}={self.guard.token}; Path=/; HttpOnly; SameSite=Strict"
        changes = scope["method"] not in READ_METHODS and path != ACT
        if has_token or (self.guard.reads_freely and not changes):
            return ""
        self.rate_limiter.take(client, WRONG_TOKEN_COST)
        raise RejectedRequest(401, NO_CHANGE if changes else NO_TOKEN, www_authenticate="Bearer")


def check_origin(method: str, path: str, host: str, headers: Headers) -> None:
    """Reject requests that pages of other sites send."""
    site = headers.get("sec-fetch-site", "none")
    if method in READ_METHODS:
        if path.startswith("/api/") and site not in ("none", "same-origin"):
            raise RejectedRequest(
                403, "another site sent this request; only this server's pages may"
            )
        return
    origin = headers.get("origin")
    if site not in ("none", "same-origin") or (
        origin is not None and not is_same_origin(origin, host)
    ):
        raise RejectedRequest(403, "another site sent this request; only this server's pages may")


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header belongs to this host."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def content_length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    if not text.isdecimal() or len(text) > 18:
        raise RejectedRequest(400, "content-length is not a number")
    return int(text)


def max_body_bytes(path: str) -> int:
    return LARGER_BODIES.get(path, MAX_BODY)


def too_large_message(path: str) -> str:
    return f"the body is larger than {max_body_bytes(path) // 1024} KiB"


def limit_body(scope: Scope, receive: Receive) -> Receive:
    """Wrap `receive`: reject a body that is too large or too slow."""
    received, complete = 0, False
    limit = max_body_bytes(scope["path"])
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BODY_S

    async def receive_limited() -> Message:
        nonlocal received, complete
        if complete:  # the next message is the end of the connection, at any time
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise RejectedRequest(
                408, "the request took too long to arrive", connection="close"
            ) from None
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > limit:
                raise RejectedRequest(413, too_large_message(scope["path"]), connection="close")
        return message

    return receive_limited


def token_from_query(scope: Scope) -> str:
    """Return the token in the address of the start page; "" without one."""
    if (scope["method"], scope["path"]) != ("GET", "/"):
        return ""
    tokens: list[str] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return tokens[0] if tokens else ""


def add_headers(message: Message, path: str, cookie: str) -> None:
    headers = MutableHeaders(scope=message)
    if cookie:
        headers["set-cookie"], headers["cache-control"] = cookie, "no-store"
    for name, value in HEADERS.items():
        headers[name] = value
    # Browsers revalidate files by their tag, so that they load a new version at once.
    headers.setdefault("cache-control", "no-store" if path.startswith("/api/") else "no-cache")


async def send_error(send: Send, wrong: RejectedRequest) -> None:
    body = json.dumps({"error": wrong.detail}).encode()
    headers = {"content-type": "application/json", **(wrong.headers or {})}
    await send_response(send, wrong.status_code, headers, body)


async def send_response(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    headers = {**headers, "content-length": str(len(body))}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def http_error_response(request: Request, wrong: Exception) -> Response:
    """Return the error as JSON, without paths of this machine."""
    assert isinstance(wrong, HTTPException)
    text = wrong.detail
    if folder := getattr(request.app.state, "folder", None):
        text = text.replace(f"{folder.root.absolute()}/", "").replace(f"{folder.root}/", "")
    text = text.encode("utf-8", "replace").decode()  # replaces invalid characters
    return JSONResponse({"error": text}, wrong.status_code, headers=wrong.headers)


async def server_error_response(request: Request, wrong: Exception) -> Response:
    """Return a bug of the server as JSON without details; print the traceback."""
    traceback.print_exception(wrong, file=sys.stderr)
    text = f"{type(wrong).__name__} in the server, which is a bug; its output has the traceback"
    return JSONResponse({"error": text}, 500, headers=HEADERS)
