"""Answers of the server: JSON in, JSON out, and work that takes time done in a thread."""

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
"""Lists in lists in lists: more than any request of ours has."""
Given = ParamSpec("Given")


class NotFoundError(SparringError):
    """Something that is not there."""


class ConflictError(SparringError):
    """Something that cannot be done now."""


class LenientJSONResponse(JSONResponse):
    """JSON of whatever files may have held: dates are text, half characters are question marks."""

    def render(self, content: Any) -> bytes:
        return to_json(content)


def to_json(value: Any) -> bytes:
    """Return JSON that every reader takes."""
    plain = json.dumps(
        finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
    )
    return plain.encode("utf-8", "replace")


def json_handler(
    work: Callable[[Request], Any],
) -> Callable[[Request], Awaitable[Response]]:
    """Turn a function that returns plain values into a handler; it runs in a thread."""

    def made(request: Request) -> Response:
        found = work(request)
        return found if isinstance(found, Response) else LenientJSONResponse(found)

    async def handle(request: Request) -> Response:
        answer: Response = await run_in_thread(made, request)
        return answer

    handle.__name__ = work.__name__
    return handle


async def run_in_thread(
    work: Callable[Given, Any], *given: Given.args, **named: Given.kwargs
) -> Any:
    """Run something in a thread, so that live streams go on; errors of ours become answers."""
    try:
        return await WORKERS.do(partial(work, *given, **named))
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
    """Refuse in one line whatever a run's files make us stumble over: they may hold anything."""
    try:
        yield
    except SparringError:
        raise
    except Exception as wrong:
        raise ConflictError(f"{what} cannot be read: {told(wrong)}") from None


async def read_json(request: Request) -> Any:
    """Return what was posted: JSON without NaN, not too deep, said to be JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the content type application/json")
    return await run_in_thread(parse_strict_json, await request.body())


def parse_strict_json(raw: bytes) -> Any:
    """Read JSON as it is meant: no NaN, no infinity, bounded depth."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    try:
        return parse_json(raw.decode("utf-8"), MAX_JSON_DEPTH, parse_constant=refuse)
    except ValueError as wrong:
        what = "not UTF-8" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise HTTPException(400, f"this is not JSON: {what}") from None
