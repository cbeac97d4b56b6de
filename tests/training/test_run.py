"""A run's folder: what it holds, how it is found again, and that nothing in it is ever half."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sparring.errors import ConfigError, SparringError
from sparring.training.records.run import Run

CONFIG: dict[str, Any] = {
    "game": "skull_king",
    "minutes": 8.0,
    "seed": 2**63 + 5,
    "set": ["num_players=6"],
    "limit": math.inf,
    "net": {"hidden": [256, 256], "shared": True, "deep": {"empty": {}, "a key.with dots": 'q"\n'}},
    "lineups": [{"name": "self", "weight": 3}, {"name": "captain", "weight": 1}],
    "last": 1e-30,
}


def make(root: Path, game: str = "skull_king") -> Run:
    return Run.create(root, game, "ppo", {"game": game})


def test_a_new_run_has_everything_in_place(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "deep" / "runs", "skull_king", "ppo", CONFIG)
    assert re.fullmatch(r"skull_king-ppo-\d{8}-\d{6}-[a-z0-9]{4}", run.name)
    held = {path.name for path in run.path.iterdir()}
    assert held == {"config.toml", "machine.json", "checkpoints", "metrics.sqlite"}
    machine = json.loads((run.path / "machine.json").read_text())
    assert {"cpu", "cores", "python", "torch", "gpus", "commit", "date"} <= machine.keys()


def test_the_configuration_survives(tmp_path: Path) -> None:
    run = Run.create(tmp_path, "skull_king", "ppo", {**CONFIG, "pair": (1, (2.5, "x"))})
    expected = {**CONFIG, "pair": [1, [2.5, "x"]]}
    assert run.config == expected
    assert Run.open(run.path).config == expected
    assert tomllib.loads((run.path / "config.toml").read_text()) == expected


@pytest.mark.parametrize("value", [None, math.nan, object(), {1, 2}, [1, {"x": None}]])
def test_what_toml_cannot_hold_is_named(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"ppo\.lr.* cannot be kept in config\.toml"):
        Run.create(tmp_path, "skull_king", "ppo", {"ppo": {"lr": value}})
    assert list(tmp_path.iterdir()) == []


def test_runs_of_the_same_second_do_not_collide(tmp_path: Path) -> None:
    assert len({make(tmp_path).path for _ in range(5)}) == 5


def test_a_run_is_found_by_folder_prefix_and_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = make(Path("runs"), "skull_king"), make(Path("runs"), "tic_tac_toe")
    os.utime(first.path / "config.toml", ns=(1, time.time_ns() + 10**9))
    assert Run.open(first.path).path == first.path
    assert Run.open(str(second.path)).path == second.path
    assert Run.open("tic").path == second.path
    assert Run.open("runs/tic").path == second.path
    assert Run.open("latest").path == first.path
    assert Run.open("runs/latest").path == first.path
    assert Run.open("tic", root=tmp_path / "runs").name == second.name


def test_an_unknown_run_names_near_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no run, `sparring train` makes one"):
        Run.open("latest", root=tmp_path)
    run = make(tmp_path)
    with pytest.raises(ConfigError, match=f"did you mean '{run.name}'"):
        Run.open(run.name.replace("skull", "skul"), root=tmp_path)
    with pytest.raises(ConfigError, match=f": {run.name}"):
        Run.open("zzz", root=tmp_path)
    for _ in range(7):
        make(tmp_path)
    with pytest.raises(ConfigError, match=r"8 runs begin with 'skull': .* and 3 more"):
        Run.open("skull", root=tmp_path)


def test_a_folder_that_is_no_run_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not a run: config\.toml and checkpoints missing"):
        Run.open(tmp_path)
    run = make(tmp_path)
    (run.path / "config.toml").write_text("game = 1\nseed = x\n")
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read: .*line 2"):
        Run.open(run.path)
    (run.path / "config.toml").unlink()
    with pytest.raises(ConfigError, match=r"is not a run: config\.toml missing"):
        Run.open(run.path)
    with pytest.raises(ConfigError, match="cannot be part of a folder's name"):
        Run.create(tmp_path, "../outside", "ppo", {})


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SparringError, match=r"cannot make a run in .*; choose a folder"):
        make(tmp_path / "file" / "runs")


def test_json_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make(tmp_path)
    path = run.write_json("best.json", {"update": 3, "strength": -math.inf, "list": (1, math.nan)})
    before = {"update": 3, "strength": None, "list": [1, None]}
    assert json.loads(path.read_text()) == before
    for call in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:

            def full(*_args: Any) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, call, full)
            with pytest.raises(OSError, match="No space"):
                run.write_json("best.json", {"update": 4})
        assert json.loads(path.read_text()) == before
        assert not list(run.path.glob(".tmp*"))
    with pytest.raises(ConfigError, match="without folders"):
        run.write_json("../best.json", {})


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    run = make(tmp_path)
    writer = (
        "import sys; from pathlib import Path; from sparring.store.files import write_atomic\n"
        "path = Path(sys.argv[1]); n = 0\n"
        "while True:\n"
        "    write_atomic(path, b'[' + b'%d,' % n * 5000 + b'0]'); n += 1\n"
        "    print(n, flush=True)\n"
    )
    path = run.path / "best.json"
    command = [sys.executable, "-c", writer, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(30):
            process.stdout.readline()
            assert len(json.loads(path.read_text())) == 5001
        process.kill()
    assert len(json.loads(path.read_text())) == 5001


def test_what_a_killed_process_left_is_removed_later(tmp_path: Path) -> None:
    run = make(tmp_path)
    old, new = run.path / ".tmp-best.json-1", run.path / ".tmp-best.json-2"
    for path in (old, new):
        path.write_text("{")
    os.utime(old, (0, 0))
    Run.open(run.path)
    assert not old.exists()
    assert new.exists()


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path) -> None:
    run = make(tmp_path)
    with (
        run.lock(),
        pytest.raises(SparringError, match="being trained or measured by another process"),
        Run.open(run.path).lock(),
    ):
        pass
    with run.lock():
        pass
