"""What went wrong, as an answer: one line of JSON."""

from __future__ import annotations

import sys
import traceback

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sparring.web.security import HEADERS


async def explain(request: Request, wrong: Exception) -> Response:
    """Say what went wrong, but not where on this machine the runs lie."""
    assert isinstance(wrong, HTTPException)
    text = wrong.detail
    if folder := getattr(request.app.state, "folder", None):
        text = text.replace(f"{folder.root.absolute()}/", "").replace(f"{folder.root}/", "")
    text = text.encode("utf-8", "replace").decode()  # half a character is none
    return JSONResponse({"error": text}, wrong.status_code, headers=wrong.headers)


async def unexpected(request: Request, wrong: Exception) -> Response:
    """Say that the mistake is ours, and nothing about this machine."""
    traceback.print_exception(wrong, file=sys.stderr)
    text = f"{type(wrong).__name__} in the server, a mistake of ours; it is printed where it runs"
    return JSONResponse({"error": text}, 500, headers=HEADERS)
