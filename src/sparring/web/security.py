"""Every request passes here first: what is not meant for us, or too much, ends here."""

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
"""What a page of ours may load: our own files, and nothing that stands in the page itself."""
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
"""Where more may be posted."""
BODY_S = 15.0
"""How long a body may take to arrive."""
ACT = "/api/act"
ANSWER_S = 90.0
"""How long it may take until an answer begins."""
NO_TOKEN = "this server wants its token: open the address that `sparring serve` printed"
NO_CHANGE = (
    "stopping, resuming and saving need the token: open the address that `sparring serve` printed, "
    "or send it as authorization: Bearer TOKEN"
)


class RejectedRequest(HTTPException):
    """A request that goes no further; handlers meet it too, while they read a body."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, text, named)


class Security:
    """Asks every request whether it may pass, and tells the browser what a page may do."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard
        self.buckets = RateLimiter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here is a socket
            return
        begun, cookie = False, ""

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                if not limit.expired():
                    limit.reschedule(None)  # a stream goes on as long as it likes
                add_headers(message, scope["path"], cookie)
            await send(message)

        try:
            async with asyncio.timeout(ANSWER_S) as limit:
                try:
                    cookie = self.check(scope)
                    await self.app(scope, limit_body(scope, receive), with_headers)
                except RejectedRequest as wrong:
                    if not begun:
                        await send_error(with_headers, wrong)
        except TimeoutError:
            if not begun:
                text = f"no answer within {ANSWER_S:g} s; it was given up, the server goes on"
                await send_error(with_headers, RejectedRequest(504, text))

    def check(self, scope: Scope) -> str:
        """Refuse what is too large, not for us, not from us, or too often.

        Returns the cookie that a browser is to keep, if it showed the token in the address.
        """
        headers = Headers(scope=scope)
        path, method = scope["path"], scope["method"]
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_ADDRESS:
            raise RejectedRequest(414, f"the address is longer than {MAX_ADDRESS} letters")
        if len(headers) > MAX_HEADERS:
            raise RejectedRequest(431, f"more than {MAX_HEADERS} headers")
        if method not in METHODS:
            raise RejectedRequest(405, f"{method[:10]} is not done here", allow=", ".join(METHODS))
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.guard.is_ours(hosts[0]):
            raise RejectedRequest(
                421, "this server is not called that; use the address that it printed"
            )
        check_origin(method, path, hosts[0], headers)
        if method == "POST" and content_length(headers) > max_body_bytes(path):
            raise RejectedRequest(413, too_large_message(path), connection="close")
        return self.admitted(scope, headers)

    def admitted(self, scope: Scope, headers: Headers) -> str:
        """Refuse who shows no token where one is needed, or asks too often; returns the cookie.

        Behind a proxy all have one address: who shows the token does not wait for those who guess.
        """
        path, word = scope["path"], token_from_query(scope)
        welcome = bool(word) and self.guard.welcomes(word)
        shows = self.guard.admits(headers.get("authorization", ""), headers.get("cookie", ""))
        client = rate_limit_key(scope["client"][0] if scope.get("client") else "")
        payer = f"{client} known" if welcome or shows else client
        if not self.buckets.take(payer, ACT_COST if path == ACT else 1.0):
            raise RejectedRequest(429, "too many requests; wait a moment", retry_after="1")
        if welcome:
            return f"{self.guard.cookie}={self.guard.token}; Path=/; HttpOnly; SameSite=Strict"
        changes = scope["method"] not in READ_METHODS and path != ACT
        if shows or (self.guard.reads_freely and not changes):
            return ""
        self.buckets.take(client, WRONG_TOKEN_COST)
        raise RejectedRequest(401, NO_CHANGE if changes else NO_TOKEN, www_authenticate="Bearer")


def check_origin(method: str, path: str, host: str, headers: Headers) -> None:
    """Refuse what a page of somebody else's asks for, and every change that ours did not."""
    site = headers.get("sec-fetch-site", "none")
    if method in READ_METHODS:
        if path.startswith("/api/") and site not in ("none", "same-origin"):
            raise RejectedRequest(403, "another site asks for this; only pages of this server may")
        return
    origin = headers.get("origin")
    if site not in ("none", "same-origin") or (
        origin is not None and not is_same_origin(origin, host)
    ):
        raise RejectedRequest(403, "another site asks for this; only pages of this server may")


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header is that of the server called so."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc.lower() == host.lower()


def content_length(headers: Headers) -> int:
    """Return the length that a body is said to have."""
    told = headers.get("content-length", "0")
    if not told.isdecimal() or len(told) > 18:
        raise RejectedRequest(400, "content-length is no number")
    return int(told)


def max_body_bytes(path: str) -> int:
    """Return how many bytes may be posted to an address."""
    return LARGER_BODIES.get(path, MAX_BODY)


def too_large_message(path: str) -> str:
    """Say how much may be posted."""
    return f"more than {max_body_bytes(path) // 1024} KiB; nothing here needs that"


def limit_body(scope: Scope, receive: Receive) -> Receive:
    """Return a way to hear a body that ends where it is too large or too slow."""
    heard, whole = 0, False
    limit = max_body_bytes(scope["path"])
    loop = asyncio.get_running_loop()
    due = loop.time() + BODY_S

    async def hear() -> Message:
        nonlocal heard, whole
        if whole:  # what comes now is the end of the connection, whenever that is
            return await receive()
        try:
            async with asyncio.timeout_at(due):
                message = await receive()
        except TimeoutError:
            raise RejectedRequest(
                408, "the request took too long to arrive", connection="close"
            ) from None
        if message["type"] == "http.request":
            heard += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if heard > limit:
                raise RejectedRequest(413, too_large_message(scope["path"]), connection="close")
        return message

    return hear


def token_from_query(scope: Scope) -> str:
    """Return the token that an address shows, which only that of the page can; "" without one."""
    if (scope["method"], scope["path"]) != ("GET", "/"):
        return ""
    shown: list[str] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return shown[0] if shown else ""


def add_headers(message: Message, path: str, cookie: str) -> None:
    """Tell the browser what a page may do, and what it may keep."""
    headers = MutableHeaders(scope=message)
    if cookie:
        headers["set-cookie"], headers["cache-control"] = cookie, "no-store"
    for name, value in HEADERS.items():
        headers[name] = value
    # Files are asked for again by their tag, so that a new version is seen at once.
    headers.setdefault("cache-control", "no-store" if path.startswith("/api/") else "no-cache")


async def send_error(send: Send, wrong: RejectedRequest) -> None:
    """Say why a request went no further."""
    body = json.dumps({"error": wrong.detail}).encode()
    headers = {"content-type": "application/json", **(wrong.headers or {})}
    await send_response(send, wrong.status_code, headers, body)


async def send_response(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    """Send a whole answer."""
    listed = {**headers, "content-length": str(len(body))}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in listed.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def http_error_response(request: Request, wrong: Exception) -> Response:
    """Say what went wrong, but not where on this machine the runs lie."""
    assert isinstance(wrong, HTTPException)
    text = wrong.detail
    if folder := getattr(request.app.state, "folder", None):
        text = text.replace(f"{folder.root.absolute()}/", "").replace(f"{folder.root}/", "")
    text = text.encode("utf-8", "replace").decode()  # half a character is none
    return JSONResponse({"error": text}, wrong.status_code, headers=wrong.headers)


async def server_error_response(request: Request, wrong: Exception) -> Response:
    """Say that the mistake is ours, and nothing about this machine."""
    traceback.print_exception(wrong, file=sys.stderr)
    text = f"{type(wrong).__name__} in the server, a mistake of ours; it is printed where it runs"
    return JSONResponse({"error": text}, 500, headers=HEADERS)
