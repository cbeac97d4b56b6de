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
from sparring.store.plain import parse_json
from sparring.training.records.overview import told
from sparring.training.records.run import finite
from sparring.web.workers import WORKERS, StuckError

DEEPEST = 32
"""Lists in lists in lists: more than any request of ours has."""
Given = ParamSpec("Given")


class MissingError(SparringError):
    """Something that is not there."""


class RefusedError(SparringError):
    """Something that cannot be done now."""


class Plain(JSONResponse):
    """JSON of whatever files may have held: dates are text, half characters are question marks."""

    def render(self, content: Any) -> bytes:
        return to_json(content)


def to_json(value: Any) -> bytes:
    """Return JSON that every reader takes."""
    plain = json.dumps(
        finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
    )
    return plain.encode("utf-8", "replace")


def answers(
    work: Callable[[Request], Any],
) -> Callable[[Request], Awaitable[Response]]:
    """Turn a function that returns plain values into a handler; it runs in a thread."""

    def made(request: Request) -> Response:
        found = work(request)
        return found if isinstance(found, Response) else Plain(found)

    async def handle(request: Request) -> Response:
        answer: Response = await beside(made, request)
        return answer

    handle.__name__ = work.__name__
    return handle


async def beside(work: Callable[Given, Any], *given: Given.args, **named: Given.kwargs) -> Any:
    """Run something in a thread, so that live streams go on; errors of ours become answers."""
    try:
        return await WORKERS.do(partial(work, *given, **named))
    except MissingError as wrong:
        raise HTTPException(404, str(wrong)) from None
    except RefusedError as wrong:
        raise HTTPException(409, str(wrong)) from None
    except StuckError as wrong:
        raise HTTPException(503, str(wrong)) from None
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Refuse in one line whatever a run's files make us stumble over: they may hold anything."""
    try:
        yield
    except SparringError:
        raise
    except Exception as wrong:
        raise RefusedError(f"{what} cannot be read: {told(wrong)}") from None


async def read_json(request: Request) -> Any:
    """Return what was posted: JSON without NaN, not too deep, said to be JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the content type application/json")
    return await beside(strict_json, await request.body())


def strict_json(raw: bytes) -> Any:
    """Read JSON as it is meant: no NaN, no infinity, bounded depth."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    try:
        return parse_json(raw.decode("utf-8"), DEEPEST, parse_constant=refuse)
    except ValueError as wrong:
        what = "not UTF-8" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise HTTPException(400, f"this is not JSON: {what}") from None
