"""What somebody can try against the server, and what comes of it (docs/guides/browser.md)."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sparring.web.guard import Guard, RateLimiter
from sparring.web.security import HEADERS
from web.made_runs import make_run
from web.test_server import start

MARKUP = "<img src=x onerror=alert(1)>"


def error(answer) -> str:
    """Every refusal is one line of JSON."""
    assert answer.headers["content-type"].startswith("application/json")
    assert "Traceback" not in answer.text
    text = answer.json()["error"]
    assert "\n" not in text
    return str(text)


@pytest.mark.parametrize("path", ["/", "/app/main.js", "/api/runs", "/nowhere", "/api/runs/no"])
def test_every_answer_tells_the_browser_what_a_page_may_do(client, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "[::1", ""]
)
def test_another_name_is_refused(client, host: str) -> None:
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 421
    assert "not called that" in error(answer)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:9999", "[::1]:8000", "LOCALHOST"])
def test_our_names_and_the_port_of_a_tunnel_are_taken(client, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8000.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(client, headers: dict[str, str], tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    answer = client.post("/api/runs/one/stop", json={}, headers=headers)
    assert answer.status_code == 403
    assert "another site" in error(answer)
    if "sec-fetch-site" in headers:
        assert client.get("/api/runs", headers=headers).status_code == 403
        assert client.get("/", headers=headers).status_code == 200  # a link to us


def test_changes_are_posts_of_json(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    address = "/api/runs/one/stop"
    assert client.get(address).status_code == 405
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
        assert client.request(method, address).status_code == 405
    form = client.post(address, data={"a": "b"})
    assert form.status_code == 415
    plain = client.post(address, content="{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415
    ours = client.post(address, json={}, headers={"origin": "http://127.0.0.1:8000"})
    assert ours.status_code == 409  # it came through: nobody trains


def test_without_the_token_nothing_is_shown(locked, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    tries = [{}, {"authorization": "Bearer wrong-horse"}, {"authorization": "Basic eDp5"}]
    tries += [{"cookie": "sparring-8000=wrong"}, {"cookie": "sparring-1=correct-horse"}]
    for path in ("/", "/api/runs", "/app/main.js", "/api/live", "/wasm/tic_tac_toe.wasm"):
        for headers in tries:
            answer = locked.get(path, headers=headers)
            assert answer.status_code == 401
            assert "token" in error(answer)
    assert locked.get("/?token=wrong-horse").status_code == 401
    assert locked.get("/api/runs?token=correct-horse").status_code == 401


def test_the_token_opens_by_header_or_becomes_a_cookie(locked, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    bearer = {"authorization": "Bearer correct-horse"}
    assert locked.get("/api/runs", headers=bearer).status_code == 200
    welcome = locked.get("/?token=correct-horse")
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "correct-horse" not in welcome.text
    assert locked.get("/api/runs").status_code == 200  # the cookie was kept
    assert locked.post("/api/runs/one/stop", json={}).status_code == 409


def test_a_guard_by_address() -> None:
    everywhere = Guard("0.0.0.0", 8000, "correct-horse")
    assert everywhere.allows_host("192.0.2.7:8000")
    assert everywhere.allows_host(socket.gethostname())
    assert not everywhere.allows_host("evil.example")
    assert not Guard().allows_host("192.0.2.7:8000")
    assert "correct-horse" not in repr(everywhere)


OUTWARDS = (
    "/api/runs/..",
    "/api/runs/%2e%2e",
    "/api/runs/..%2f..%2fetc",
    "/api/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd/curves",
    "/api/runs/one%00/curves",
    "/api/runs/..%5c..%5cetc",
    "/api/runs/.hidden",
    "/app/../server.py",
    "/app/%2e%2e/server.py",
    "/app/..%2fserver.py",
    "/games/tic_tac_toe/..%2f__init__.py",
    "/games/tic_tac_toe/__init__.py",
    "/games/..%2f..%2fsecret/page.js",
    "/wasm/..%2f..%2fx.wasm",
    "/api/replays/..%2f..%2fsecret",
    "/api/replays/%2fetc%2fpasswd",
    "/api/network?player=../secret",
    "/api/network?player=/etc",
    "/api/network?player=one/../../secret",
    "/api/runs/link",
    "/api/runs/link/curves",
    "/api/runs/linked",
)


def test_no_name_leads_out_of_the_folder(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    outside = make_run(tmp_path.parent / f"{tmp_path.name}-outside", "secret")
    (tmp_path / "link").symlink_to(outside)
    linked = make_run(tmp_path, "linked")
    (linked / "results.json").symlink_to("/etc/passwd")
    for path in OUTWARDS:
        answer = client.get(path)
        assert answer.status_code in (400, 404, 409), (path, answer.text)
        assert error(answer)
        assert "root:" not in answer.text
        assert str(tmp_path) not in answer.text
    assert "secret" not in [run["name"] for run in client.get("/api/runs").json()["runs"]]


LONG = "a" * 300


@pytest.mark.parametrize(
    "path",
    [
        f"/api/runs/{LONG}",
        f"/api/runs/{LONG}/curves",
        f"/api/runs/{'%C3%A9' * 200}",
        f"/api/games/{LONG}",
        "/api/games/os:system",
        f"/api/network?player={LONG}",
        f"/api/network?player={LONG}/20",
        f"/api/replays/{LONG}",
        f"/games/{LONG}/page.js",
        f"/wasm/{LONG}.wasm",
    ],
)
def test_names_that_no_disk_has_are_missing(client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404, answer.text
    assert error(answer)


def test_a_checkpoint_that_lies_elsewhere_is_refused(client, tmp_path: Path) -> None:
    run = make_run(tmp_path, "one")
    outside = make_run(tmp_path.parent / f"{tmp_path.name}-outside", "secret")
    (run / "checkpoints" / "00000030").symlink_to(outside / "checkpoints" / "00000020")
    (run / "best.json").write_text('{"checkpoint": 30}')
    for player in ("one", "one/30"):
        answer = client.get(f"/api/network?player={player}")
        assert answer.status_code == 409, answer.text
        assert "link" in error(answer)


@pytest.mark.parametrize("role", [False, True])
def test_a_network_of_somebodys_own_is_refused_before_its_code_is_run(
    client, role: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, "one")
    (tmp_path / "evil_code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    for kind in ("evil_code:Net", f"{tmp_path}/evil_code.py:Net", "pydoc:pipepager"):
        own = {"kind": kind, "set": ["cmd=id"]}
        nets = {"net": {"kind": "mlp"}, "roles": {"worker": own}} if role else {"net": own}
        manifest = {"number": 20, "meta": {"game": "tic_tac_toe", **nets}}
        (run / "checkpoints/00000020/manifest.json").write_text(json.dumps(manifest))
        answer = client.get("/api/network?player=one")
        assert answer.status_code == 400
        assert "a custom network" in error(answer)
        assert not (tmp_path / "ran").exists()


MALFORMED = (b"", b"{", b"[1,", b"nul", b"\xff\xfe", b'{"a": NaN}', b"[Infinity]", b"1 2", b"'a'")


def test_malformed_json_is_one_line(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    kind = {"content-type": "application/json"}
    for raw in MALFORMED:
        for address in ("/api/runs/one/stop", "/api/replays"):
            answer = client.post(address, content=raw, headers=kind)
            assert answer.status_code == 400
            assert "not JSON" in error(answer)


def test_deep_json_is_refused(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    kind = {"content-type": "application/json"}
    for raw in (b"[" * 30_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000):
        answer = client.post("/api/runs/one/stop", content=raw, headers=kind)
        assert answer.status_code == 400
        assert "nested too deeply" in error(answer)
    fine = client.post("/api/runs/one/stop", content=b'"' + b"[" * 100 + b'"', headers=kind)
    assert fine.status_code == 409  # brackets in a string are letters


def test_large_requests_are_refused(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    kind = {"content-type": "application/json"}
    ten = b" " * 10_000_000
    for address in ("/api/runs/one/stop", "/api/replays"):
        assert client.post(address, content=ten, headers=kind).status_code == 413

        def drops():
            for _ in range(100):
                yield b" " * 100_000  # no length is said before

        assert client.post(address, content=drops(), headers=kind).status_code == 413
    assert client.get("/api/runs?" + "a" * 5000).status_code == 414
    many = {f"x-{at}": "1" for at in range(100)}
    assert client.get("/api/runs", headers=many).status_code == 431


def test_replays_that_nobody_played_are_refused(client, tmp_path: Path) -> None:
    good = {
        "format": "sparring-replay",
        "version": 1,
        "game": "tic_tac_toe",
        "rules_version": 1,
        "flags": {},
        "seed": 1,
        "players": ["a", "b"],
        "actions": [0, 3, 1, 4, 2],
        "scores": [1, -1],
        "end": None,
    }
    wrong = [
        {"actions": [0, 0]},
        {"actions": [99]},
        {"actions": ["0"]},
        {"actions": [0, 3, 1, 4, 2, 5, 6, 7, 8]},
        {"scores": [9, 9]},
        {"game": "../../etc"},
        {"players": ["a"]},
        {"flags": {"nothing": 1}},
        {"version": 2},
        {"seed": 1e300},
    ]
    for change in wrong:
        answer = client.post("/api/replays", json={**good, **change})
        assert answer.status_code in (400, 409), (change, answer.text)
        assert error(answer)
    assert not (tmp_path / "replays").exists()


def test_markup_in_a_name_stays_a_name(client, tmp_path: Path) -> None:
    make_run(tmp_path, MARKUP)
    answer = client.get("/api/runs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["runs"][0]["name"] == MARKUP
    assert client.get("/api/runs/%3Cimg%20src=x%20onerror=alert(1)%3E").status_code == 200
    missing = client.get("/api/runs/%3Cscript%3E")
    assert missing.headers["content-type"] == "application/json"


def test_a_client_that_asks_too_often_waits() -> None:
    buckets = RateLimiter(rate=10.0, burst=5.0)
    assert [buckets.take("a") for _ in range(7)] == [True] * 5 + [False] * 2
    assert buckets.take("b")


def test_guessing_tokens_soon_meets_the_limit(locked) -> None:
    answers = [
        locked.get("/api/runs", headers={"authorization": f"Bearer {at:08}"}).status_code
        for at in range(60)
    ]
    assert answers[0] == 401
    assert answers[-1] == 429


@pytest.mark.slow
def test_a_thousand_sockets_and_slow_ones_keep_nobody_out(tmp_path: Path) -> None:
    import http.client

    make_run(tmp_path, "one")
    process, facts = start(tmp_path)
    name, port = facts["address"].removeprefix("http://").split(":")
    try:
        with ExitStack() as opened:
            sockets = [
                opened.enter_context(socket.create_connection((name, int(port)), timeout=5))
                for _ in range(1000)
            ]
            for one in sockets[::2]:
                with suppress(OSError):  # it had to make room
                    one.sendall(b"GET / HTTP/1.1\r\nHost: ")  # and never the rest
            before = time.monotonic()
            asked = http.client.HTTPConnection(name, int(port), timeout=10)
            asked.request("GET", "/api/runs")
            assert asked.getresponse().status == 200
            assert time.monotonic() - before < 2.0
        with socket.create_connection((name, int(port)), timeout=30) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\n")
            before = time.monotonic()
            assert slow.recv(10) == b""
            assert time.monotonic() - before < 15
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.slow
def test_no_more_than_so_many_pages_watch(tmp_path: Path) -> None:
    import http.client

    from sparring.web.live import MAX_SUBSCRIBERS

    make_run(tmp_path, "one")
    process, facts = start(tmp_path)
    host = facts["address"].removeprefix("http://")
    viewers = []
    try:
        for _ in range(MAX_SUBSCRIBERS + 3):
            viewers.append(http.client.HTTPConnection(host, timeout=10))
            viewers[-1].request("GET", "/api/live")
        found = [viewer.getresponse().status for viewer in viewers]
        assert sorted(set(found)) == [200, 503]
        assert found.count(503) >= 3
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_who_takes_nothing_of_an_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    import uvicorn

    from sparring.web import web_server

    monkeypatch.setattr(web_server, "STALL_TIMEOUT_S", 0.5)

    async def large(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b" " * 50_000_000})

    async def tried() -> float:
        config = uvicorn.Config(
            large, port=0, http=web_server.Connection, lifespan="off", log_level="critical"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.05)
        place = server.servers[0].sockets[0].getsockname()
        _, writer = await asyncio.open_connection(*place, limit=1024)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        while not server.server_state.connections:
            await asyncio.sleep(0.05)
        before = time.monotonic()
        while server.server_state.connections:
            await asyncio.sleep(0.05)
            assert time.monotonic() - before < 10
        server.should_exit = True
        writer.close()
        await serving
        return time.monotonic() - before

    assert asyncio.run(tried()) > 0.5
