"""Answers of the server: JSON in, JSON out, and work that takes time done in a thread."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sparring.errors import SparringError
from sparring.training.records.run import finite

DEEPEST = 32
"""Lists in lists in lists: more than any request of ours has."""
STRING, BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL), re.compile(r"[][{}]")
Given = ParamSpec("Given")


class MissingError(SparringError):
    """Something that is not there."""


class RefusedError(SparringError):
    """Something that cannot be done now."""


def answers(
    work: Callable[[Request], Any],
) -> Callable[[Request], Awaitable[Response]]:
    """Turn a function that returns plain values into a handler; it runs in a thread."""

    async def handle(request: Request) -> Response:
        made = await beside(work, request)
        return made if isinstance(made, Response) else JSONResponse(finite(made))

    handle.__name__ = work.__name__
    return handle


async def beside(work: Callable[Given, Any], *given: Given.args, **named: Given.kwargs) -> Any:
    """Run something in a thread, so that live streams go on; errors of ours become answers."""
    try:
        return await asyncio.to_thread(work, *given, **named)
    except MissingError as wrong:
        raise HTTPException(404, str(wrong)) from None
    except RefusedError as wrong:
        raise HTTPException(409, str(wrong)) from None
    except SparringError as wrong:
        raise HTTPException(400, str(wrong)) from None


async def read_json(request: Request) -> Any:
    """Return what was posted: JSON without NaN, not too deep, said to be JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the content type application/json")
    return strict_json(await request.body())


def strict_json(raw: bytes) -> Any:
    """Read JSON as it is meant: no NaN, no infinity, bounded depth."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    try:
        text = raw.decode("utf-8")
        if depth(text) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} lists inside one another")
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as wrong:
        told = "not UTF-8" if isinstance(wrong, UnicodeDecodeError) else str(wrong)
        raise HTTPException(400, f"this is not JSON: {told}") from None


def depth(text: str) -> int:
    """Return how deep brackets lie inside one another, those in strings aside."""
    deepest = now = 0
    for mark in BRACKET.findall(STRING.sub("", text)):
        now += 1 if mark in "[{" else -1
        deepest = max(deepest, now)
    return deepest
