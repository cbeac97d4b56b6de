"""No answer takes the others' time: texts are read in one pass, and what hangs is given up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient

from sparring.store.schema import parse_json
from sparring.web import security, workers
from sparring.web.guard import Guard
from sparring.web.responses import json_handler
from sparring.web.workers import MAX_THREADS, HungThreadsError, ThreadWorkers
from web.conftest import ADDRESS
from web.made_runs import make_run
from web.test_poisoned_runs import bounded

KIND = {"content-type": "application/json"}
WORST = {
    "an open quote before many escaped ones": '"' + '\\"' * 2**19,
    "nothing but quotes": '"' * 2**20,
    "nothing but backslashes": '"' + "\\" * (2**20 - 1),
    "quotes and backslashes in turn": '"\\' * 2**19,
}


@pytest.mark.parametrize("text", WORST)
def test_no_text_takes_long_to_refuse(text: str, client) -> None:
    raw = WORST[text].encode()
    answer = bounded(lambda: client.post("/api/replays", content=raw[: 2**20], headers=KIND))
    assert answer.status_code == 400
    assert "not JSON" in answer.json()["error"]


def test_a_stop_with_such_a_text_is_refused_too(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    raw = WORST["an open quote before many escaped ones"].encode()[:60_000]
    answer = bounded(lambda: client.post("/api/runs/one/stop", content=raw, headers=KIND))
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("[]", 1),
        ('{"a": [1, {"b": []}]}', 4),
        ('["[[", "\\"[[", "\\\\", [[1]]]', 3),
        ('["' + "[" * 99 + '"]', 1),
    ],
)
def test_brackets_in_strings_do_not_count(text: str, deep: int) -> None:
    assert parse_json(text, deep) == json.loads(text)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(text, deep - 1)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TestClient, threading.Event]]:
    """A server of which one answer never comes, until the event is set."""
    monkeypatch.setattr(security, "ANSWER_S", 0.5)
    ended = threading.Event()
    app = Starlette(
        routes=[
            Route("/api/hangs", json_handler(lambda request: {"ended": ended.wait()})),
            Route("/api/quick", json_handler(lambda request: {"quick": True})),
        ],
        middleware=[Middleware(security.Security, guard=Guard())],
    )
    yield TestClient(app, base_url=ADDRESS), ended
    ended.set()


def test_what_hangs_is_given_up_and_the_others_are_answered(hanging) -> None:
    client, ended = hanging
    for _ in range(MAX_THREADS + 3):  # more than there are threads
        answer = client.get("/api/hangs")
        assert answer.status_code == 504
        assert "given up" in answer.json()["error"]
        assert "content-security-policy" in answer.headers
    assert client.get("/api/quick").json() == {"quick": True}
    ended.set()
    assert client.get("/api/hangs").json() == {"ended": True}


def test_threads_that_hang_are_counted_until_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MAX_HUNG", 2)
    crew, ended = ThreadWorkers(max_threads=1), threading.Event()
    threads: list[threading.Thread] = []

    def hang() -> None:
        threads.append(threading.current_thread())
        ended.wait()

    async def tried() -> None:
        for count in (1, 2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await crew.do(hang)
            assert (crew.hung, crew.running) == (count, 0)
        with pytest.raises(HungThreadsError, match="2 requests hang"):
            await crew.do(lambda: 1)

    async def again() -> int:
        return await crew.do(lambda: 1)

    asyncio.run(tried())
    ended.set()
    for thread in threads:
        thread.join(60)
    assert crew.hung == 0
    assert asyncio.run(again()) == 1


def test_who_waits_in_the_queue_and_leaves_is_forgotten() -> None:
    crew, ended, done = ThreadWorkers(max_threads=1), threading.Event(), []

    async def tried() -> list[int]:
        first = asyncio.create_task(crew.do(ended.wait))
        while not crew.running:
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await crew.do(lambda: done.append("never"))
        last = [asyncio.create_task(crew.do(lambda at=at: at)) for at in range(3)]
        ended.set()
        assert await first
        return [await one for one in last]

    assert asyncio.run(tried()) == [0, 1, 2]
    assert done == []
    assert (crew.running, crew.hung) == (0, 0)


def test_what_is_raised_in_a_thread_is_raised_where_it_is_awaited() -> None:
    def wrong() -> None:
        raise KeyError("a")

    async def tried() -> None:
        with pytest.raises(KeyError):
            await ThreadWorkers().do(wrong)

    asyncio.run(tried())
