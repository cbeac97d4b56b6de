"""`sparring tune` as a user types it: what it measures, prints and leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparring.cli import main
from sparring.training.planning.settings import value_at, with_preset

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
FILES = ["tuned-tic_tac_toe.html", "tuned-tic_tac_toe.png", "tuned-tic_tac_toe.toml"]


def tuned(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["tune", *words.split(), "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def check(report: dict[str, Any], game: str) -> None:
    """Nothing unmeasured is recommended, and the file says what the report says."""
    timed = [trial["settings"] for trial in report["trials"] if "gain" in trial]
    assert report["settings"] in timed
    if report["better"]:
        assert report["confirmed"] and report["gain"]["low"] > 0 and report["turns"] >= 1
    else:
        assert report["settings"] == report["preset"]
    read = with_preset(game, report["file"])
    for name, value in report["settings"].items():
        assert value_at(read, name.split(".")) == value


def test_a_few_seconds_give_a_file_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "tic_tac_toe --minutes 0.03 --only ppo.minibatch --only collect.games --device cpu"
    report = tuned(words, capsys)
    check(report, "tic_tac_toe")
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert (tmp_path / FILES[1]).read_bytes().startswith(b"\x89PNG")
    assert "http" not in (tmp_path / FILES[0]).read_text(), "the page needs nothing from elsewhere"
    assert "tic_tac_toe: tuned for speed" in (tmp_path / FILES[0]).read_text()
    head = (tmp_path / FILES[2]).read_text().partition("\n\n")[0]
    assert "cores" in head and "decisions/s" in head


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "more"),
    [
        ("tic_tac_toe", "--algo dqn"),
        ("tic_tac_toe", "--same-learning --gigabytes 2"),
        (f"{Path(__file__).parents[1] / 'own_envs.py'}:make_quick", ""),
    ],
)
def test_other_algorithms_and_environments_are_tuned_too(
    game: str,
    more: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    report = tuned(f"{game} --minutes 0.2 {more}", capsys)
    check(report, game)
    if "same" in more:
        assert report["alters_learning"] == [] and "collect.games" not in report["preset"]


@pytest.mark.slow
def test_time_to_a_strength_is_measured_by_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    report = tuned("tic_tac_toe --for strength --minutes 0.6 --only ppo.minibatch", capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES, "no run is left behind"
    assert report["trials"] and report["trials"][0]["settings"] == report["preset"]
    assert report["better"] or report["settings"] == report["preset"]
    assert with_preset("tic_tac_toe", report["file"]).ppo.minibatch


@pytest.mark.slow
def test_ctrl_c_writes_what_was_found_so_far(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sparring", "tune", "tic_tac_toe", "--minutes", "3"]
    with subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        for line in process.stderr:  # the first one comes after some seconds
            if "trying" in line:
                break
        timer = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped: this is the result so far" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert timer and not any(Path(f"/proc/{pid}").exists() for pid in timer)


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in map(int, found) if Path(f"/proc/{child}").exists()]
