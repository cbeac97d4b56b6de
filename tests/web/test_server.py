"""What a page hears about runs, games and replays."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from http.client import HTTPResponse
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.run import LOCK, NotTrainingError, trainer_of
from sparring.web import description
from sparring.web.curves import MAX_POINTS, CurveFollower, read_curves
from web.made_runs import add, add_points, make_run


def test_runs_are_listed_with_what_is_known_about_them(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    (tmp_path / "no-run").mkdir()
    (found,) = client.get("/api/runs").json()["runs"]
    assert (found["name"], found["game"], found["state"]) == ("one", "tic_tac_toe", "done")
    assert (found["updates"], found["decisions"], found["progress"]) == (40, 4000, 1.0)
    assert found["strength"] == pytest.approx(0.704)
    assert found["parity"] == 0.5
    assert found["evaluations"]["update"] == [10, 20, 30, 40]
    assert str(tmp_path) not in json.dumps(found)
    add(tmp_path / "one", 50, {"charts/decisions": 5000.0})
    assert client.get("/api/runs").json()["runs"][0]["decisions"] == 5000


def test_a_run_tells_settings_with_help_and_its_checkpoints(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one", seed=7)
    told = client.get("/api/runs/one").json()
    settings = {entry["name"]: entry for entry in told["settings"]}
    assert settings["seed"]["value"] == 7
    assert settings["seed"]["changed"]
    assert "clip" in settings["ppo.clip"]["name"]
    assert settings["ppo.clip"]["help"].startswith("Largest change")
    assert [c["number"] for c in told["checkpoints"] if c["best"]] == [20]
    assert told["checkpoints"][0]["strength"] == pytest.approx(0.702)  # of its evaluation
    assert told["events"][-1]["why"] == "done"
    assert (told["profile"], told["league"]) == (None, False)
    missing = client.get("/api/runs/two")
    assert missing.status_code == 404
    assert "/api/runs lists them" in missing.json()["error"]


def test_phases_and_profiles_are_told(client, tmp_path: Path) -> None:
    run = make_run(tmp_path, "one", phases=('{"name": "early"}', '{"name": "late"}'))
    events = [{"event": "phase", "phase": 2, "name": "late", "update": 9, "seconds": 1.0}]
    (run / "events.json").write_text(json.dumps(events))
    (tmp_path / "profile-one").mkdir()
    verdicts = [{"cause": "games", "text": "play more games at once"}]
    profile = {"format": "sparring profile 1", "target": "one", "verdicts": verdicts}
    (tmp_path / "profile-one" / "profile.json").write_text(json.dumps(profile))
    told = client.get("/api/runs/one").json()
    assert [(phase["name"], phase["began"] is None) for phase in told["phases"]] == [
        ("early", True),
        ("late", False),
    ]
    assert told["profile"]["verdicts"] == verdicts


def test_curves_are_read_from_an_update_on_and_thinned(client, tmp_path: Path) -> None:
    run = make_run(tmp_path, "one")
    told = client.get("/api/runs/one/curves").json()
    assert told["last"] == 40
    assert told["curves"]["losses/entropy"]["update"] == list(range(1, 41))
    late = client.get("/api/runs/one/curves?since=38&only=losses/").json()["curves"]
    assert late["losses/entropy"]["update"] == [39, 40]
    assert list(late) == ["losses/entropy"]
    assert client.get("/api/runs/one/curves?since=x").status_code == 400
    with sqlite3.connect(run / "metrics.sqlite") as db:
        rows = [(u, "long", 1000.0 if u == 7777 else u % 7, u * 0.1) for u in range(20_000)]
        db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?)", rows)
    long = read_curves(run)["curves"]["long"]
    assert 900 <= len(long["update"]) <= MAX_POINTS
    assert (long["update"][0], long["update"][-1]) == (0, 19_999)
    assert long["value"][long["update"].index(7777)] == 1000.0
    assert min(long["value"]) == 0.0
    assert long["update"] == sorted(long["update"])


def test_numbers_that_are_none_are_null(client, tmp_path: Path) -> None:
    run = make_run(tmp_path, "one")
    add(run, 41, {"losses/entropy": None, "losses/value_loss": float("inf")})
    curves = client.get("/api/runs/one/curves?since=40").json()["curves"]
    assert curves["losses/entropy"]["value"] == [None]
    assert curves["losses/value_loss"]["value"] == [None]


def test_a_follower_hears_what_is_new_and_when_a_run_went_back(tmp_path: Path) -> None:
    run = make_run(tmp_path, "one")
    follower = CurveFollower(run)
    assert follower.read_new() == ({}, False)
    add_points(run, range(41, 43))
    fresh, cut = follower.read_new()
    assert (fresh["losses/entropy"]["update"], cut) == ([41, 42], False)
    # An evaluation ends later than the updates after it.
    add(run, 35, {"eval/late/win": 0.5})
    assert follower.read_new()[0]["eval/late/win"]["update"] == [35]
    with sqlite3.connect(run / "metrics.sqlite") as db:
        db.execute("DELETE FROM metrics WHERE update_number > 30")
    assert follower.read_new() == ({}, True)
    add_points(run, range(31, 32))
    assert follower.read_new()[0]["losses/entropy"]["update"] == [31]


def test_runs_are_compared_as_the_command_does(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one", seed=1)
    make_run(tmp_path, "two", seed=2)
    told = client.get("/api/compare?run=one&run=two").json()
    assert [entry["run"] for entry in told["groups"][0]["runs"]] == ["one", "two"]
    assert told["curves"]["decisions"][0]["x"]
    assert any("seed" in note for note in told["notes"])
    assert client.get("/api/compare?run=one").status_code == 400
    make_run(tmp_path, "three", game="kuhn_poker")
    wrong = client.get("/api/compare?run=one&run=three").json()["error"]
    assert "only runs of one game" in wrong
    assert str(tmp_path) not in wrong


def test_a_run_without_a_league_says_so(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    wrong = client.get("/api/runs/one/league")
    assert wrong.status_code == 404
    assert "--opponents past" in wrong.json()["error"]


def test_players_are_bots_and_runs_that_fit(client, tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    for name, version in (("fits", rules.rules_version), ("older", 0)):
        run = make_run(tmp_path, name)
        meta = {"game": rules.name, "game_config": rules.config, "rules_version": version}
        manifest = {"number": 20, "meta": {**meta, "decisions": 5}}
        (run / "checkpoints/00000020/manifest.json").write_text(json.dumps(manifest))
    told = client.get("/api/players?game=tic_tac_toe").json()
    assert told["bots"] == list(rules.bots)
    assert [agent["name"] for agent in told["agents"]] == ["tic_tac_toe:champion", "fits"]
    assert told["agents"][1]["checkpoints"] == [20]
    assert client.get("/api/network?player=tic_tac_toe:champion").status_code == 200
    assert client.get("/api/players?game=chess").status_code == 400


def test_replays_are_kept_and_shown(client, tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    state = State(rules, 3, rules.weights(None))
    played = []
    while state.end is None:
        played.append(int(state.legal()[0]) if callable(state.legal) else int(state.legal[0]))
        state.apply(played[-1])
    replay = Replay.of(state, played, ["you", "<b>random</b>"]).plain()
    kept = client.post("/api/replays", json=replay)
    assert kept.status_code == 201
    name = kept.json()["name"]
    assert client.get(f"/api/replays/{name}").json() == replay
    (listed,) = client.get("/api/replays").json()["replays"]
    assert (listed["name"], listed["steps"]) == (name, len(played))
    again = client.post("/api/replays?name=mine", json=replay)
    assert again.json() == {"name": "mine"}
    assert client.post("/api/replays?name=mine", json=replay).status_code == 409
    assert client.post("/api/replays?name=../mine", json=replay).status_code == 409
    assert client.get("/api/replays/nothing").status_code == 404
    assert sorted(path.name for path in tmp_path.iterdir()) == ["replays"]


def test_a_stop_goes_only_to_the_process_that_holds_the_lock(client, tmp_path: Path) -> None:
    run = make_run(tmp_path, "one")
    refused = client.post("/api/runs/one/stop", json={})
    assert refused.status_code == 409
    assert "not being trained" in refused.json()["error"]
    holder = f"""
import fcntl, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
handle = os.open({str(run / LOCK)!r}, os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, str(os.getpid()).encode())
try:
    print("held", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    sys.exit(7)
"""
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert trainer_of(run) == process.pid
        assert client.post("/api/runs/one/resume", json={}).status_code == 409
        text = (run / LOCK).read_text()
        (run / LOCK).write_text(str(os.getppid()))  # somebody who does not hold it
        with pytest.raises(NotTrainingError, match="cannot be reached"):
            trainer_of(run)
        (run / LOCK).write_text(text)
        assert client.post("/api/runs/one/stop", json={}).status_code == 200
        assert process.wait(10) == 7


def test_a_run_that_cannot_go_on_says_why(client, tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    done = client.post("/api/runs/one/resume", json={})
    assert done.status_code == 409
    assert "has finished" in done.json()["error"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nowhere"], "no such folder"),
        (["--token", "short"], "8 to 200"),
        (["--port", "70000"], "65,535"),
        (["--host", "no.such.host.invalid"], "no such address"),
    ],
)
def test_what_cannot_be_served_is_one_line(words, hint, capsys, tmp_path: Path) -> None:
    given = words if words[0][0] != "-" else [str(tmp_path), *words]
    assert main(["serve", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line


def start(runs: Path, *words: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """Start `sparring serve`; returns the process and what it says: address, page, token."""
    command = [sys.executable, "-m", "sparring", "serve", str(runs), "--port", "0", "--json"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    text = ""
    while not text.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.wait()
        text += line
    return process, dict(json.loads(text))


def next_points(stream: HTTPResponse) -> list[int]:
    """Read a stream up to the next points; return their updates."""
    while stream.readline() != b"event: points\n":
        pass
    stream.readline()  # its number
    updates = json.loads(stream.readline()[5:])["curves"]["losses/entropy"]["update"]
    return [int(update) for update in updates]


@pytest.mark.slow
def test_a_page_hears_of_new_points_within_a_second_and_ctrl_c_ends_at_once(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, "one")
    process, facts = start(tmp_path)
    host = facts["address"].removeprefix("http://")
    try:
        taken = subprocess.run(
            [sys.executable, "-m", "sparring", "serve", str(tmp_path), "--port", host[10:]],
            capture_output=True,
            text=True,
            check=False,
        )
        assert taken.returncode == 2
        assert "is in use" in taken.stderr
        viewer = http.client.HTTPConnection(host, timeout=10)
        viewer.request("GET", "/api/runs/one/live")
        stream = viewer.getresponse()
        assert stream.readline() == b"event: state\n"
        time.sleep(1)  # the watch has begun
        add_points(run, range(41, 42))
        before = time.monotonic()
        assert next_points(stream) == [41]
        assert time.monotonic() - before < 1.0
        with MetricsWriter(run, tensorboard=False) as writer:
            before = time.monotonic()
            writer.add(42, {"losses/entropy": 1.0}, seconds=4.2)
            assert next_points(stream) == [42]
            assert time.monotonic() - before < 2.0
        process.send_signal(signal.SIGINT)
        before = time.monotonic()
        assert process.wait(10) == 0
        assert time.monotonic() - before < 2.0
    finally:
        process.kill()
        process.wait()


def test_pages_hear_what_keeps_them_from_playing(client, tmp_path, monkeypatch):
    monkeypatch.setattr(description, "MODULES", tmp_path)
    make_run(tmp_path, "own", game="tic_tac_toe")
    for game in ("/api/games/tic_tac_toe", "/api/runs/own"):
        assert "make web" in client.get(game).json()["unplayable"]
    (tmp_path / "tic_tac_toe.wasm").touch()
    for game in ("/api/games/tic_tac_toe", "/api/runs/own"):
        assert client.get(game).json()["unplayable"] == ""
