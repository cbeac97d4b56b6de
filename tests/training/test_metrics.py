"""Metrics: nothing is waited for, nothing written is lost, and readers see whole updates."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import types
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparring.errors import ConfigError, SparringWarning
from sparring.training.records import metrics
from sparring.training.records.metrics import MetricsError, MetricsWriter, read
from sparring.training.records.sinks import TensorBoard


def writer(folder: Path, **options: Any) -> MetricsWriter:
    return MetricsWriter(folder, **{"tensorboard": False, **options})


def test_what_is_read_is_what_was_added(tmp_path: Path) -> None:
    with writer(tmp_path) as out:
        out.add(2, {"losses/value_loss": 0.1 + 0.2, "charts/score": -5}, seconds=1.5)
        out.add(1, {"losses/value_loss": 7.0}, seconds=0.5)
        out.add(3, {"losses/value_loss": 1e300}, seconds=2.5)
        out.add(1, {"eval/captain/win": 0.25}, seconds=9.0)  # an evaluation that came late
    found = read(tmp_path)
    assert sorted(found) == ["charts/score", "eval/captain/win", "losses/value_loss"]
    updates, seconds, values = found["losses/value_loss"]
    np.testing.assert_array_equal(updates, [1, 2, 3])
    np.testing.assert_array_equal(seconds, [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(values, [7.0, 0.1 + 0.2, 1e300])
    assert (updates.dtype, values.dtype) == (np.int64, np.float64)
    np.testing.assert_array_equal(found["eval/captain/win"][1], [9.0])


def test_nothing_yet_is_no_error(tmp_path: Path) -> None:
    assert read(tmp_path) == {}
    writer(tmp_path).close()
    assert read(tmp_path) == {}


def test_numbers_that_are_none_are_null_and_counted(tmp_path: Path) -> None:
    with writer(tmp_path) as out:
        out.add(1, {"a": math.nan, "b": 1.0}, seconds=0)
        out.add(2, {"a": math.inf, "b": -math.inf}, seconds=1)
        assert out.nonfinite == {"a": 2, "b": 1}
    np.testing.assert_array_equal(read(tmp_path)["b"][2], [1.0, np.nan])
    with sqlite3.connect(tmp_path / "metrics.sqlite") as db:
        rows = db.execute("SELECT count(*) FROM metrics WHERE value IS NULL").fetchone()
    assert rows == (3,)


def test_a_value_given_again_replaces_the_first(tmp_path: Path) -> None:
    with writer(tmp_path) as out:
        out.add(1, {"a": 1.0}, seconds=0)
        out.flush()
        out.add(1, {"a": 2.0}, seconds=0)
    np.testing.assert_array_equal(read(tmp_path)["a"][2], [2.0])


def test_add_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, honest = threading.Event(), MetricsWriter._write

    def slow(*args: Any) -> None:
        assert answer.wait(30)
        honest(*args)

    monkeypatch.setattr(MetricsWriter, "_write", slow)
    monkeypatch.setattr(metrics, "BATCH_S", 0.0)
    out = writer(tmp_path)
    for update in range(1000):
        out.add(update, {"a": float(update)}, seconds=update)
    assert len(read(tmp_path)) == 0
    answer.set()
    out.close()
    np.testing.assert_array_equal(read(tmp_path)["a"][0], np.arange(1000))


def test_a_resumed_run_equals_one_that_was_never_stopped(tmp_path: Path) -> None:
    def part(folder: Path, first: int, last: int, until: int | None = None) -> None:
        with writer(folder) as out:
            if until is not None:
                out.truncate_after(until)
            for update in range(first, last + 1):
                out.add(update, {"a": update * 0.5, "b": -update}, seconds=update)

    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    part(tmp_path / "whole", 1, 20)
    part(tmp_path / "stopped", 1, 14)
    part(tmp_path / "stopped", 11, 20, until=10)
    one, two = read(tmp_path / "whole"), read(tmp_path / "stopped")
    assert one.keys() == two.keys()
    for name in one:
        for mine, theirs in zip(one[name], two[name], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with writer(tmp_path / "whole") as out:
        out.add(21, {"a": 0.0}, seconds=21)
        out.truncate_after(5)  # what is still on its way goes as well
    assert read(tmp_path / "whole")["a"][0].tolist() == [1, 2, 3, 4, 5]


def test_a_reader_sees_whole_updates_while_another_process_writes(tmp_path: Path) -> None:
    text = (
        "import sys, time; from pathlib import Path\n"
        "from sparring.training.records import metrics\n"
        "out = metrics.MetricsWriter(Path(sys.argv[1]), tensorboard=False)\n"
        "for update in range(10**9):\n"
        "    out.add(update, {f'm{n}': float(update) for n in range(20)}, seconds=update)\n"
        "    out.flush()\n"
        "    print(update, flush=True)\n"
        "    time.sleep(0.003)\n"  # or the reader never catches up
    )
    command = [sys.executable, "-c", text, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = 0
        for _ in range(40):
            said = int(process.stdout.readline())
            found = read(tmp_path)
            lengths = {len(curve[0]) for curve in found.values()}
            assert len(found) == 20
            assert len(lengths) == 1
            assert lengths.pop() >= max(said + 1, seen)
            seen = said
        process.send_signal(signal.SIGKILL)
        said = max([said, *(int(line) for line in process.stdout if line.endswith("\n"))])
    found = read(tmp_path)
    assert {len(curve[0]) for curve in found.values()} in ({said + 1}, {said + 2})
    with writer(tmp_path) as out:  # and the run goes on
        out.truncate_after(said)
    assert len(read(tmp_path)["m0"][0]) == said + 1


def test_what_a_full_disk_refused_is_written_once_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, full = MetricsWriter._write, True

    def write(self: MetricsWriter, rows: list[Any]) -> None:
        if full and rows:
            raise sqlite3.OperationalError("database or disk is full")
        honest(self, rows)

    monkeypatch.setattr(MetricsWriter, "_write", write)
    out = writer(tmp_path)
    out.add(1, {"a": 1.0}, seconds=0)
    with pytest.warns(SparringWarning, match=r"disk is full; free some space on this disk; train"):
        out.flush()
    out.add(2, {"a": 2.0}, seconds=0)
    out.flush()  # once is enough
    full = False
    out.add(3, {"a": 3.0}, seconds=0)
    out.close()
    assert read(tmp_path)["a"][2].tolist() == [1.0, 2.0, 3.0]
    full = True
    last = writer(tmp_path)
    last.add(4, {"a": 1.0}, seconds=0)
    with pytest.warns(SparringWarning) as told:
        last.close()
    assert "updates 4 to 4 could not be written" in str(told[-1].message)


def test_a_sink_that_fails_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TensorBoard, "write", full)
    out = writer(tmp_path, tensorboard=True)
    out.add(1, {"a": 1.0}, seconds=0)
    with pytest.warns(SparringWarning, match="TensorBoard gets no more values, training continues"):
        out.flush()
    out.add(2, {"a": 2.0}, seconds=0)
    out.close()
    assert read(tmp_path)["a"][2].tolist() == [1.0, 2.0]


def test_a_table_comes_back_after_a_full_disk(small_disk: Path) -> None:
    """No line is missing, torn or doubled once there is space; until then it is said once."""
    filler = small_disk / "filler"
    out = writer(small_disk, csv=True)
    out.add(1, {"a": 0.5}, seconds=1)
    out.flush()
    with filler.open("wb") as file, suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(512))
    names = [f"a/{number}" for number in range(300)]  # more than what is left of a page
    with pytest.warns(SparringWarning) as told:
        for update in (2, 3):
            out.add(update, dict.fromkeys(names, 0.25), seconds=update)
            out.flush()
    lacks = [one for one in told if "metrics.csv lacks lines from update 2" in str(one.message)]
    assert len(lacks) == 1
    filler.unlink()
    out.add(4, {"a": 2.0}, seconds=4)
    out.close()
    lines = (small_disk / "metrics.csv").read_text().splitlines()
    assert lines[:2] == ["update,seconds,name,value", "1,1.000,a,0.5"]
    filled = [f"{update},{update}.000,{name},0.25" for update in (2, 3) for name in names]
    assert lines[2:] == [*filled, "4,4.000,a,2.0"]


def test_a_table_on_a_disk_that_stays_full_says_what_it_lacks(small_disk: Path) -> None:
    out = writer(small_disk, csv=True)
    with (small_disk / "filler").open("wb") as file, suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(512))
    out.add(7, {"a": 0.5}, seconds=1)
    with pytest.warns(SparringWarning) as told:
        out.close()
    assert any("metrics.csv lacks lines from update 7 on" in str(one.message) for one in told)


def test_a_clean_end_leaves_one_file(tmp_path: Path) -> None:
    with writer(tmp_path) as out:
        out.add(1, {"a": 1.0}, seconds=0)
    assert read(tmp_path)["a"][2].tolist() == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.sqlite"]


def test_curves_as_csv_follow_a_run_back(tmp_path: Path) -> None:
    with writer(tmp_path, csv=True) as out:
        for update in (1, 2, 3):
            out.add(update, {"a": update / 2, "bad": math.nan}, seconds=update)
    with writer(tmp_path, csv=True) as out:
        out.truncate_after(2)
        out.add(3, {"a": 8.0}, seconds=3.5)
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert lines == [
        "update,seconds,name,value",
        "1,1.000,a,0.5",
        "2,2.000,a,1.0",
        "3,3.500,a,8.0",
    ]


def test_a_torn_csv_is_mended_when_the_run_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    for torn in (b"", b"update,seco", b"update,seconds,name,value\r\n1,1.000,a,0.5\r\n2,2.0"):
        file.write_bytes(torn)
        with writer(tmp_path, csv=True) as out:
            out.truncate_after(1)
            out.add(2, {"a": 8.0}, seconds=3.5)
        lines = file.read_bytes().split(b"\r\n")
        assert lines[0] == b"update,seconds,name,value"
        assert lines[-2:] == [b"2,3.500,a,8.0", b""]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(MetricsError, match=r"move metrics\.sqlite away"):
        read(tmp_path)
    with pytest.raises(MetricsError, match=r"move metrics\.sqlite away"):
        writer(tmp_path)
    with pytest.raises(MetricsError, match="check that the folder is there"):
        writer(tmp_path / "gone")


def test_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    with writer(small_disk) as out:
        out.add(1, {"a": 1.0}, seconds=0)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert read(small_disk)["a"][2].tolist() == [1.0]


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_tensorboard_shows_words_and_the_curves_stay_without_them(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with writer(tmp_path, tensorboard=True, csv=True) as out:
        out.add(1, {"charts/phase": 1.0}, seconds=1.0)
        out.add_text(2, "charts/phase_name", "phase 2, strong bots (threshold)", seconds=2.0)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    (said,) = events.Tensors("charts/phase_name")
    assert said.step == 2
    assert said.tensor_proto.string_val == [b"phase 2, strong bots (threshold)"]
    assert list(read(tmp_path)) == ["charts/phase"]


def test_tensorboard_shows_the_same_numbers(tmp_path: Path) -> None:
    with writer(tmp_path, tensorboard=True) as out:
        for update in (1, 2, 3):
            out.add(update, {"losses/value_loss": update * 0.5, "bad": math.nan}, seconds=update)
    with writer(tmp_path, tensorboard=True) as out:
        out.truncate_after(2)
        out.add(3, {"losses/value_loss": 8.0}, seconds=3)
    assert scalars(tmp_path) == {"losses/value_loss": [(1, 0.5), (2, 1.0), (3, 8.0)]}


def test_without_wandb_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"pip install 'sparring\[track\]'"):
        writer(tmp_path, wandb=True)


def test_wandb_gets_what_is_finite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    run = types.SimpleNamespace(
        log=told.append,
        define_metric=lambda *args, **named: told.append((args, named)),
        finish=lambda: told.append("finished"),
    )
    module = types.ModuleType("wandb")
    module.init = lambda **named: told.append(named) or run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    (tmp_path / "config.toml").write_text("seed = 3\n")
    with writer(tmp_path, wandb=True) as out:
        out.add(4, {"a": 1.0, "b": math.nan}, seconds=2.0)
    assert told[0]["id"] == tmp_path.name
    assert told[0]["config"] == {"seed": 3}
    assert told[2:] == [{"update": 4, "seconds": 2.0, "a": 1.0}, "finished"]


def test_a_file_that_was_only_begun_has_no_curves_yet(tmp_path: Path) -> None:
    (tmp_path / metrics.FILE).touch()
    assert metrics.read(tmp_path) == {}
    with closing(sqlite3.connect(tmp_path / metrics.FILE)) as db:
        db.execute("PRAGMA journal_mode = WAL")  # what a writer does before it makes the table
        assert metrics.read(tmp_path) == {}
        assert metrics.last(tmp_path, "charts/decisions") is None


def test_curves_in_something_else_than_a_table_are_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / metrics.FILE)) as db:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"
        db.execute(f"CREATE VIEW metrics AS {endless}")
    with pytest.raises(metrics.MetricsError, match="no table metrics"):
        metrics.read(tmp_path)


def test_reading_ends_after_its_processor_time(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / metrics.FILE)) as db, db:
        db.execute(metrics.SCHEMA)
        db.execute(
            "INSERT INTO metrics WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "LIMIT 100000) SELECT i, 'a', 1.0, 1.0 FROM n"
        )
    with pytest.raises(metrics.MetricsError, match="takes more than"):
        metrics.read(tmp_path, timeout_s=1e-6)
    assert len(metrics.read(tmp_path)["a"][0]) == 100_000
