"""Who may read and who may change something: tokens by address, cookie, header, file, variable."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from sparring.cli import main
from sparring.commands.serve import token_for
from sparring.config.tools import ServeConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.web.guard import Guard
from sparring.web.server import make_app
from web.conftest import ADDRESS
from web.made_runs import make_run
from web.test_server import start

TOKEN = "correct-horse"
BEARER = {"authorization": f"Bearer {TOKEN}"}
STOP = "/api/runs/one/stop"


@pytest.fixture
def guard() -> Guard:
    """What `sparring serve` has on this machine alone."""
    return Guard("127.0.0.1", 8000, TOKEN, reads_freely=True)


@pytest.fixture
def local(tmp_path: Path, guard: Guard) -> TestClient:
    make_run(tmp_path, "one")
    return TestClient(make_app(tmp_path, guard=guard), base_url=ADDRESS)


def test_on_this_machine_reading_is_free_and_changes_need_the_token(local: TestClient) -> None:
    assert local.get("/api/runs").status_code == 200
    assert local.get("/").status_code == 200
    for address in (STOP, "/api/runs/one/resume", "/api/runs/one/labels", "/api/replays"):
        refused = local.post(address, json={})
        assert refused.status_code == 401
        assert "sparring serve" in refused.json()["error"]
        assert local.post(address, json={}, headers=BEARER).status_code in (400, 409)


def test_the_printed_address_makes_the_page_able_to_change(local: TestClient) -> None:
    page = local.get(f"/?token={TOKEN}")
    assert page.status_code == 200
    assert "<main" in page.text
    assert TOKEN not in page.text
    assert page.headers["cache-control"] == "no-store"
    cookie = page.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert local.post(STOP, json={}).status_code == 409  # it came through: nobody trains


def test_an_old_address_still_shows_the_page(local: TestClient) -> None:
    page = local.get("/?token=that-of-yesterday")
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    assert local.post(STOP, json={}).status_code == 401


def test_a_cookie_of_yesterday_keeps_nobody_from_reading(local: TestClient) -> None:
    old = {"cookie": "sparring-8000=that-of-yesterday"}
    assert {local.get("/api/games", headers=old).status_code for _ in range(100)} == {200}


def test_a_ticket_opens_once(local: TestClient, guard: Guard) -> None:
    word = guard.issue_ticket()
    assert word != TOKEN
    assert "set-cookie" in local.get(f"/?token={word}").headers
    local.cookies.clear()
    assert "set-cookie" not in local.get(f"/?token={word}").headers


@pytest.mark.parametrize(
    "before",
    ['prefs={"a":"b"}', "a=b c; d", "\u00e9=1", "=", ";;", 'x="', "sparring-8000=old", "a" * 3000],
)
def test_cookies_of_other_programs_lock_nobody_out(before: str, locked) -> None:
    cookies = f"{before}; sparring-8000={TOKEN}".encode("latin-1")
    assert locked.get("/api/games", headers={"cookie": cookies}).status_code == 200
    after = f"sparring-8000={TOKEN}; {before}".encode("latin-1")
    assert locked.get("/api/games", headers={"cookie": after}).status_code == 200


def test_who_guesses_keeps_out_nobody_who_knows(locked, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_still = SimpleNamespace(monotonic=lambda: 100.0)  # guesses are forgiven with time
    monkeypatch.setattr("sparring.web.guard.time", stands_still)

    def guessed(at: int) -> int:
        wrong = {"authorization": f"Bearer {at:08}"}
        return int(locked.get("/api/games", headers=wrong).status_code)

    found = [guessed(at) for at in range(80)]
    assert (found[0], found[-1]) == (401, 429)
    assert locked.get("/api/games", headers=BEARER).status_code == 200
    assert guessed(99) == 429
    assert locked.get(f"/?token={TOKEN}").status_code == 200


def test_a_chosen_token_guards_everything_also_here(tmp_path: Path) -> None:
    app = make_app(tmp_path, guard=Guard("127.0.0.1", 8000, TOKEN))
    visitor = TestClient(app, base_url=ADDRESS)
    assert visitor.get("/api/games").status_code == 401
    assert visitor.get("/api/games", headers=BEARER).status_code == 200


def test_a_token_comes_from_a_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("in-a-file-1\n")
    file.chmod(0o600)
    monkeypatch.setenv("SPARRING_TOKEN", "in-a-variable")
    assert token_for(ServeConfig(token_file=str(file))) == ("in-a-file-1", True)
    assert "SPARRING_TOKEN" not in os.environ  # nor has it a run that is resumed
    monkeypatch.setenv("SPARRING_TOKEN", "in-a-variable")
    assert token_for(ServeConfig()) == ("in-a-variable", True)
    made, own = token_for(ServeConfig())
    assert (len(made) >= 32, own) == (True, False)
    file.chmod(0o644)
    with pytest.warns(SparringWarning, match="chmod 600"):
        token_for(ServeConfig(token_file=str(file)))
    with pytest.raises(ConfigError, match="give one of them"):
        token_for(ServeConfig(token="long-enough", token_file=str(file)))


@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "pipe", "large"])
def test_a_file_without_a_token_is_one_line(kind: str, capsys, tmp_path: Path) -> None:
    file = tmp_path / "token"
    {
        "missing": lambda: None,
        "empty": file.touch,
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "large": lambda: file.write_bytes(b"a" * 5000),
    }[kind]()
    if file.exists():
        file.chmod(0o700)
    assert main(["serve", str(tmp_path), "--token-file", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--token-file" in line


def test_a_served_page_gets_its_token_from_the_address_alone(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    process, facts = start(tmp_path)
    try:
        host = facts["address"].removeprefix("http://")

        def asked(method: str, path: str, **headers: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPConnection(host, timeout=30)
            body = json.dumps({}) if method == "POST" else None
            connection.request(method, path, body, {"content-type": "application/json", **headers})
            return connection.getresponse()

        assert asked("GET", "/api/runs").status == 200
        assert asked("POST", STOP).status == 401
        parts = urlsplit(facts["page"])
        page = asked("GET", f"{parts.path}?{parts.query}")
        cookie = str(page.getheader("set-cookie")).partition(";")[0]
        assert asked("POST", STOP, cookie=cookie).status == 409
        assert asked("POST", STOP, authorization=f"Bearer {facts['token']}").status == 409
    finally:
        process.kill()
        process.wait()
