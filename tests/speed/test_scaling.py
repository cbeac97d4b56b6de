from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.speed.rounds import Measurement, Round
from sparring.speed.scaling import ScalingPoint, ScalingRow, advise, measure_points, points, ratio
from sparring.speed.timer import OpenSessions, SessionInfo, TimerProcess
from speed.timer_helpers import small

USUAL = ScalingPoint(2, 0, 64)
OPENED = SessionInfo("cpu", "cpu", fused=False, threads=1, games=1, steps=1, slots=0, parameters=1, seconds=1.0)  # noqa: E501  # fmt: skip


def row(threads: int, games: int, *rates: float, workers: int = 0, why: str = "") -> ScalingRow:
    """What passes of a second each would have found."""
    rounds = [Round(1.0, int(rate), int(rate), 0, 0, 1, {}) for rate in rates]
    measurements = [Measurement((one,), 0) for one in rounds]
    return ScalingRow(ScalingPoint(threads, workers, games), OPENED, measurements, why)


def test_numbers_that_are_not_given_lie_around_the_preset() -> None:
    found = points(USUAL, cores=2)
    assert [(p.games, p.threads) for p in found] == [
        (games, threads) for games in (16, 32, 64, 128, 256) for threads in (1, 2)
    ]
    assert USUAL in points(USUAL, games=(8,), threads=(1,), cores=2)
    on_gpu = points(ScalingPoint(2, 0, 8192), cores=64, gpu=True)
    assert [point.games for point in on_gpu] == [4096, 8192, 16384, 65536, 262144]
    own = points(ScalingPoint(2, 0, 8), cores=4, custom=True)
    assert {point.workers for point in own} == {0, 1, 2, 4}
    assert {point.games for point in own} == {4, 8, 16}
    many = points(ScalingPoint(64, 0, 64), cores=64)
    assert len(many) == 5 + 6
    assert all(point.games == 64 or point.threads == 64 for point in many)


def test_points_are_measured_in_turn_and_one_that_has_no_room_says_so(timer: TimerProcess) -> None:
    rows = [ScalingRow(ScalingPoint(1, 0, games)) for games in (8, 16, 2**30)]
    told: list[str] = []
    measure_points(OpenSessions(timer), small(), rows, (0.0, 3), told.append)
    assert [len(one.measurements) for one in rows] == [3, 3, 0]
    assert "memory" in rows[2].why
    assert rows[0].session and rows[1].session
    assert [one.session.games for one in rows[:2] if one.session] == [8, 16]
    assert told[1:5] == [f"pass 1 of 3: {one.point}" for one in rows] + [f"pass 2 of 3: {rows[2].point}"]  # noqa: E501  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "free", "tight"), [(10, 1000, False), (10, 39, True), (0, 0, False)]
)
def test_others_are_shut_where_there_is_little_room(memory: int, free: int, *, tight: bool) -> None:
    from dataclasses import replace

    assert replace(OPENED, memory_bytes=memory, free_bytes=free).is_tight == tight
    gpu = replace(OPENED, free_bytes=10**9, gpu_bytes=memory, gpu_free_bytes=free)
    assert gpu.is_tight == tight


def test_points_are_held_against_each_other_within_passes() -> None:
    # A machine that is four times slower in the second pass, for both alike.
    found = ratio(row(1, 8, 1200, 300, 1200), row(1, 8, 1000, 250, 1000))
    assert found.value == pytest.approx(1.2)
    assert found.low == pytest.approx(1.2)
    assert ratio(row(1, 8, 100), row(1, 8, 100)).low is None


def test_the_fewest_cores_and_games_that_are_nearly_the_fastest_are_advised() -> None:
    rows = [
        row(1, 64, 500, 501, 502),
        row(2, 64, 800, 802, 801),
        row(2, 128, 990, 992, 991),
        row(2, 256, 1000, 1001, 1002),
        row(2, 512, why="memory ran out"),
    ]
    take, text = advise(rows, USUAL)
    assert take == ScalingPoint(2, 0, 128)
    assert text == (
        "take 128 games on 2 threads: 991 decisions/s, +24% (+24%..+24%) over the preset's 64 "
        "games on 2 threads; more games gain less than 3%"
    )


def test_nothing_is_advised_that_noise_may_have_made() -> None:
    rows = [row(2, 64, 1000, 600, 1400), row(2, 128, 1100, 1300, 500)]
    take, text = advise(rows, USUAL)
    assert take == USUAL
    assert text.startswith("keep 64 games on 2 threads")
    assert "within the noise" in text or "nothing that was measured is faster" in text
    assert "the passes differ a lot" in text


def test_as_fast_on_fewer_cores_is_worth_saying() -> None:
    rows = [row(1, 64, 995, 1000, 998), row(2, 64, 1000, 1001, 999)]
    take, text = advise(rows, USUAL)
    assert take == ScalingPoint(1, 0, 64)
    assert "on fewer cores" in text
    assert "more games were not measured" in text


def test_a_preset_that_was_not_measured_is_named_and_nothing_is_advised_from_nothing() -> None:
    take, text = advise([row(1, 8, 100, 101, 102)], USUAL)
    assert take == ScalingPoint(1, 0, 8)
    assert "(the preset's 64 games on 2 threads were not measured)" in text
    assert advise([row(1, 8, why="memory ran out")], USUAL)[0] is None


SMALL = (
    "threads = 1\n[collect]\ngames = 16\nsteps = 16\n[net]\nhidden = [8]\n[ppo]\nminibatch = 64\n"
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_the_table_the_advice_the_picture_and_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    words = ["bench", "scaling", "tic_tac_toe", "--config", str(tmp_path / "small.toml")]
    words += ["--games", "8", "16", "--threads", "1", "--seconds", "0.5", "--passes", "3"]
    out, kept = str(tmp_path / "out"), str(tmp_path / "kept.json")
    assert main([*words, "--out", out, "--save", kept, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(r["games"], r["threads"]) for r in told["rows"]] == [(8, 1), (16, 1)]
    for one in told["rows"]:
        assert one["decisions_per_s"]["median"] > 0
        assert len(one["decisions_per_s"]["rounds"]) == 3
    assert told["advice"]["take"] in [
        {name: one[name] for name in ("games", "threads", "workers")} for one in told["rows"]
    ]
    assert {path.name for path in Path(out).iterdir()} == {"scaling.png", "scaling.html"}
    assert main([*words, "--record", kept]) == 0
    shown = capsys.readouterr().out
    assert "8 games on 1 thread" in shown
    assert "decisions/s" in shown


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_bad_input_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in (
        ("tic_tac_toe --workers 2", "steps its games on threads"),
        ("tic_tac_too", "did you mean 'tic_tac_toe'"),
        ("tic_tac_toe --games 0", "at least 1"),
        ("tic_tac_toe --record no.json", "cannot read no.json"),
    ):
        assert main(["bench", "scaling", *words.split()]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert why in lines[-1]
        assert all("load average" in line for line in lines[:-1])
