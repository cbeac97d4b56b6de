"""JSON requests and responses of the server; slow work runs in a thread."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sparring.errors import SparringError
from sparring.store.schema import parse_json
from sparring.training.records.overview import told
from sparring.training.records.run import finite
from sparring.web.workers import WORKERS, HungThreadsError

MAX_JSON_DEPTH = 32
"""Levels of nested lists and objects in a request."""
Params = ParamSpec("Params")


class NotFoundError(SparringError):
    """The requested resource does not exist (404)."""


class ConflictError(SparringError):
    """The request cannot be done now (409)."""


class LenientJSONResponse(JSONResponse):
    """JSON of values read from files: dates become text, invalid characters question marks."""

    def render(self, content: Any) -> bytes:
        return to_json(content)


def to_json(value: Any) -> bytes:
    """Return strict JSON: without NaN, in valid UTF-8."""
    text = json.dumps(
        finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
    )
    return text.encode("utf-8", "replace")


def json_handler(
    work: Callable[[Request], Any],
) -> Callable[[Request], Awaitable[Response]]:
    """Turn a function that returns JSON values into a handler that runs it in a thread."""

    def respond(request: Request) -> Response:
        result = work(request)
        return result if isinstance(result, Response) else LenientJSONResponse(result)

    async def handle(request: Request) -> Response:
        response: Response = await run_in_thread(respond, request)
        return response

    handle.__name__ = work.__name__
    return handle


async def run_in_thread(
    work: Callable[Params, Any], *args: Params.args, **kwargs: Params.kwargs
) -> Any:
    """Run a function in a thread, so that it does not block; map its errors to HTTP errors."""
    try:
        return await WORKERS.do(partial(work, *args, **kwargs))
    except NotFoundError as wrong:
        raise HTTPException(404, str(wrong)) from None
    except ConflictError as wrong:
        raise HTTPException(409, str(wrong)) from None
    except HungThreadsError as wrong:
        raise HTTPException(503, str(wrong)) from None
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None


@contextmanager
def reading_files(what: str) -> Iterator[None]:
    """Turn any error while files of a run are read into a ConflictError of one line."""
    try:
        yield
    except SparringError:
        raise
    except Exception as wrong:
        raise ConflictError(f"{what} cannot be read: {told(wrong)}") from None


async def read_json(request: Request) -> Any:
    """Return the JSON body of a request; its content type has to be application/json."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the content type application/json")
    return await run_in_thread(parse_strict_json, await request.body())


def parse_strict_json(raw: bytes) -> Any:
    """Parse JSON without NaN and infinity, of bounded depth."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a number")

    try:
        return parse_json(raw.decode("utf-8"), MAX_JSON_DEPTH, parse_constant=refuse)
    except ValueError as wrong:
        reason = "not UTF-8" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise HTTPException(400, f"the body is not JSON: {reason}") from None
