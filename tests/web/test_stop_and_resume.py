"""A real training, stopped and let go on from a page."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def wait_for(happened: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait until something is so."""
    due = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < due
        time.sleep(0.2)


def test_a_training_is_stopped_and_goes_on(client, tmp_path: Path) -> None:
    words = ["train", "tic_tac_toe", "--minutes", "9", "--name", "one", "--runs", str(tmp_path)]
    small = ["--collect.games", "64", "--net.hidden", "16", "--eval.off"]

    def overview() -> dict[str, object]:
        runs = client.get("/api/runs").json()["runs"]
        return dict(runs[0]) if runs else {"state": "", "updates": 0}

    def state() -> object:
        return overview()["state"]

    with subprocess.Popen(
        [sys.executable, "-m", "sparring", *words, *small], stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: state() == "running" and overview()["updates"])
        assert client.post("/api/runs/one/stop", json={}).status_code == 200
        assert process.wait(60) == 130  # as after Ctrl-C
    assert state() == "stopped"
    before = overview()["updates"]
    told = client.post("/api/runs/one/resume", json={})
    assert told.status_code == 200, told.text
    assert client.post("/api/runs/one/resume", json={}).status_code == 409
    wait_for(lambda: state() == "running" and overview()["updates"] > before)
    assert client.post("/api/runs/one/stop", json={}).status_code == 200
    wait_for(lambda: state() == "stopped")
    assert "resume it with: sparring resume" in (tmp_path / "one" / "resume.log").read_text()
    (tmp_path / "one" / "config.toml").write_text('game = "tic_tac_toe"\nminuets = 1\n')
    refused = client.post("/api/runs/one/resume", json={})
    assert refused.status_code == 409
    assert "minuets" in refused.json()["error"]
