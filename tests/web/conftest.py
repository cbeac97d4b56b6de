"""What all tests of the server need."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason='pip install "sparring[web]"')
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have another client
    from starlette.testclient import TestClient

from sparring.web.guard import Guard
from sparring.web.server import make_app

ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A page's view of a server over `tmp_path`."""
    yield TestClient(make_app(tmp_path), base_url=ADDRESS, raise_server_exceptions=False)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[TestClient]:
    """The same, of one that wants a token."""
    guard = Guard("0.0.0.0", 8000, "correct-horse")
    yield TestClient(
        make_app(tmp_path, guard=guard), base_url="http://192.0.2.1:8000", follow_redirects=False
    )
