"""What people see of a run: the panel at every width, and lines where there is no terminal."""

from __future__ import annotations

import contextlib
import io
import math
import os
import pty
import re
import select
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sparring.curriculum.phases import PhaseProgress
from sparring.draw.text_charts import AsciiRenderable
from sparring.training.display import Display, draw, line, live
from sparring.training.display.lines import clock, count, size
from sparring.training.display.live import LivePanel, later_status
from sparring.training.display.panel import Machine, short_names
from sparring.training.member import Status, in_order
from sparring.training.status import LIMIT, WAITING, Trail, shown_of
from sparring.training.utilization.advice import MinibatchAdvice
from sparring.training.utilization.share import Utilization

WIDTHS = (40, 60, 80, 100, 120, 200)
MACHINE = Machine(cores=16, memory=3 << 30, gpu_memory=(5 << 30, 80 << 30))
PHASE_NAMES = """
    sparring skull king runs run ppo update decisions samples score game length memory cores
    CPU GPU GiB of in an k M s gone left win share equal captain rule hard previous best and more
    where the time goes stepping inference other policy value loss explained variance
    next evaluation saved ago updates
"""
PHASES = {"stepping": 0.2, "inference": 0.05, "update": 0.7, "other": 0.05}


def found(win: float, *, parity: float = 0.25) -> dict[str, float]:
    more = {"score": 10 * win, "score_low": 9.0, "score_high": 11.0, "parity": parity}
    return {"win": win, "low": win - 0.02, "high": win + 0.02, **more}


def example(name: str = "skull_king-ppo-20260101-120000-ab12", **changes: Any) -> Status:
    status = Status(
        "skull_king",
        Path("runs") / name,
        update=1234,
        total_updates=2000,
        seconds=187.0,
        decisions=12_345_678,
        samples=12_000_000,
        decisions_per_s=123_456.0,
        samples_per_s=120_000.0,
        score=41.25,
        length=181.5,
        cpu_cores=15.2,
        gpu_share=0.88,
        losses={"policy_loss": -0.01, "value_loss": 0.2, "explained_variance": 0.61},
        phases=dict(PHASES),
        wins={"captain": found(0.27), "rule_hard": found(0.42), "previous best": found(0.2)},
        next_eval_s=23.4,
        evaluated=1200,
        best=1100,
        saved=1210,
        saved_s=180.0,
    )
    for at in range(200):
        status.remember("score", at**0.5)
        status.remember("length", 180 + at % 7)
        status.remember("eval/captain", at / 200)
    for key, value in changes.items():
        setattr(status, key, value)
    return status


def drawn(*statuses: Status, width: int, height: int = 50, over: bool = False) -> list[str]:
    out = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    out.print(draw(statuses, MACHINE, width=width, height=height, over=over))
    file = out.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("members", [1, 5])
def test_the_panel_fits_and_breaks_no_word(width: int, members: int) -> None:
    statuses = [example(f"skull_king-ppo-20260101-120000-ab{n:02d}") for n in range(members)]
    lines = drawn(*statuses, width=width)
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    for phrase in ("update", "1,234", "3:07 gone", "left", "next evaluation in 0:23", "skull_king"):
        assert phrase in text
    words = {word for line in lines for word in re.findall(r"[^\W\d_]+", line)}
    known = set(PHASE_NAMES.split())
    assert {word for word in words - known if not word.startswith("ab")} == set()


UTILIZATION = Utilization(0.312, bound="update", advice=MinibatchAdvice(1024, 4096, 0.12))
SPEED = "31 % of this machine; bound by the update; minibatch 1k -> 4k gives +12 %"


@pytest.mark.parametrize("width", [*WIDTHS[1:], 64, 79, 81])
@pytest.mark.parametrize("members", [1, 5])
def test_one_line_says_how_much_of_the_machine_is_used(width: int, members: int) -> None:
    statuses = [example(f"run-{number}", utilization=UTILIZATION) for number in range(members)]
    lines = drawn(*statuses, width=width)
    assert max(map(len, lines)) <= width
    told = [line for line in lines if "of this machine" in line or "minibatch 1k" in line]
    if len(SPEED) <= min(width, 140) - 4:
        assert len(told) == 1
        assert SPEED in told[0]
    else:  # broken between its parts, none of which is lost
        for part in SPEED.split("; "):
            assert part in " ".join(lines)
    without = drawn(*(example(f"run-{number}") for number in range(members)), width=width)
    assert "of this machine" not in " ".join(without)
    plain = line(statuses[0])
    assert f", {SPEED}, " in plain


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_line_takes_room_from_the_rest_and_not_from_the_terminal(width: int) -> None:
    for height in range(20, 40):
        assert len(drawn(example(utilization=UTILIZATION), width=width, height=height)) <= max(
            height, len(drawn(example(), width=width, height=height)) + 2
        )


def test_a_share_that_is_not_known_says_why_in_one_line() -> None:
    unknown = Utilization(math.nan, unknown_reason="the work of a custom learner cannot be counted")
    for width in WIDTHS[1:]:
        lines = drawn(example(utilization=unknown), width=width)
        assert max(map(len, lines)) <= width
        assert len([one for one in lines if "share of this machine" in one]) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_tick_marks_what_an_equal_would_win(width: int) -> None:
    lines = drawn(example(), width=width)
    ahead = next(line for line in lines if "rule_hard" in line)
    behind = next(line for line in lines if "previous best" in line)
    assert "╋" in ahead
    assert "┼" in behind
    assert ahead.index("╋") == behind.index("┼")


@pytest.mark.parametrize("width", WIDTHS[2:])
def test_phases_keep_their_order_whatever_they_take(width: int) -> None:
    phases = dict(PHASES)
    for share in ({"stepping": 0.1}, {"stepping": 0.9}, {"inference": 0.5, "update": 0.1}):
        phases = in_order(phases, share | {"other": 0.0})
        text = " ".join(drawn(example(phases=phases), width=width))
        text = text.partition("where the time goes")[2] or text
        places = [text.index(f"{name} ") for name in ("stepping", "inference", "other")]
        assert places == sorted(places)


def test_a_phase_that_was_skipped_keeps_its_place_and_the_rest_comes_last() -> None:
    assert in_order({"a": 0.5, "b": 0.3, "other": 0.2}, {"c": 0.6, "a": 0.1, "other": 0.3}) == {
        "a": 0.1,
        "b": 0.0,
        "c": 0.6,
        "other": 0.3,
    }
    assert list(in_order({"a": 0.5, "other": 0.2}, {"c": 0.6, "other": 0.3})) == ["a", "c", "other"]


@pytest.mark.parametrize("width", WIDTHS)
def test_ascii_terminals_get_ascii(width: int) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    out = Console(file=stream, width=width)
    for statuses in ([example()], [example("a-1"), example("a-2")]):
        out.print(AsciiRenderable(draw(statuses, MACHINE, width=width)))
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    lines = stream.buffer.getvalue().decode("ascii").splitlines()
    assert max(map(len, lines)) <= width
    assert not any("?" in line for line in lines)


@pytest.mark.few(6)
@pytest.mark.parametrize("height", [10, 16, 20, 24, 30])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_panel_fits_low_terminals(width: int, height: int) -> None:
    bots = {f"bot_{n}": found(0.3) for n in range(12)}
    assert len(drawn(example(wins=bots), width=width, height=height)) <= height
    many = [example(f"run-{n}") for n in range(32)]
    assert len(drawn(*many, width=width, height=height)) <= height


@pytest.mark.parametrize("width", WIDTHS)
def test_evaluations_are_announced_before_the_first_comes_in(width: int) -> None:
    fresh = example(wins={}, evaluated=-1, best=-1)
    text = " ".join(drawn(fresh, width=width))
    assert "no evaluation yet" in text
    assert "next evaluation in 0:23" in text
    busy = " ".join(drawn(example(evaluating=True), width=width))
    assert "an evaluation is under way" in busy
    off = " ".join(drawn(example(next_eval_s=float("nan")), width=width))
    assert "next evaluation" not in off
    over = " ".join(drawn(example(), width=width, over=True))
    assert "next evaluation" not in over
    assert "saved update 1,210" in over


def test_the_clocks_go_on_between_updates() -> None:
    later = later_status(example(), 2.0)
    assert (later.seconds, later.next_eval_s) == (189.0, pytest.approx(21.4))
    assert later_status(example(), 60.0).next_eval_s == 0.0  # due, but the update is not finished
    assert later_status(example(next_eval_s=-1.0), 60.0).next_eval_s == -1.0


def test_a_seat_alone_is_shown_by_its_score() -> None:
    for width in WIDTHS:
        text = " ".join(drawn(example(wins={"alone": found(1.0, parity=1.0)}), width=width))
        assert "10.0" in text
        assert "equal" not in text


REPLAY = {"replay_ratio": 8.0, "steps_per_decision": 0.03125, "replay_fill": 0.4}
REPLAY |= {"replay_age": 123_456.0, "epsilon": 0.05}


@pytest.mark.parametrize("width", WIDTHS[2:])
def test_learning_from_replay_is_shown_where_there_is_any(width: int) -> None:
    told = " ".join(" ".join(drawn(example(learning=REPLAY), width=width)).split())
    for words in ("replay ratio 8 (0.0312 steps)", "replay 40% full, 123 k decisions old"):
        assert words in told
    assert "epsilon 0.05" in told
    assert "temperature" not in told
    assert "replay" not in " ".join(drawn(example(), width=width))
    assert "replay ratio 8 (0.0312 steps), replay 40% full" in line(example(learning=REPLAY))


def test_searches_are_shown_with_their_rate() -> None:
    searching = {"simulations": 64.0, "charts/simulations_per_s": 123_456.0}
    assert "64 simulations, 123 k/s" in line(example(learning=searching))
    assert "64 simulations, 123 k/s" in " ".join(
        drawn(example(learning=searching), width=WIDTHS[-1])
    )


@pytest.mark.parametrize("height", [20, 24, 30])
def test_the_panel_of_a_replay_fits_low_terminals(height: int) -> None:
    assert len(drawn(example(learning=REPLAY), width=100, height=height)) <= height


STANDING = PhaseProgress(
    "strong bots", 2, 3, 0.4, "win share 0.5 or 2,000,000 decisions", "everybody"
)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_phase_is_shown_with_how_far_it_is_and_what_comes_next(width: int) -> None:
    shown = drawn(example(phase_progress=STANDING), width=width)
    assert all(len(one.rstrip()) <= width for one in shown)
    text = " ".join(" ".join(shown).split())
    assert "phase 2/3 strong bots, 40%" in text
    assert ("then everybody" in text) == (width >= 60)
    assert "phase 2/3 strong bots, 40%" in line(example(phase_progress=STANDING))
    assert "phase" not in line(example())


@pytest.mark.parametrize("height", [11, 16, 20, 24, 30])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_panel_of_a_phase_fits_low_terminals(width: int, height: int) -> None:
    bots = {f"bot_{n}": found(0.3) for n in range(12)}
    status = example(wins=bots, phase_progress=STANDING)
    assert len(drawn(status, width=width, height=height)) <= height


def test_members_say_which_phase_they_are_in() -> None:
    other = PhaseProgress("everybody", 3, 3, None, "", "")
    shown = drawn(
        example("a-1", phase_progress=STANDING), example("a-2", phase_progress=other), width=120
    )
    assert any("strong bots" in one for one in shown)
    assert any("everybody" in one for one in shown)


def test_only_what_a_learner_says_is_shown() -> None:
    stats = {"learning/replay_fill": 0.5, "learning/temperature": math.nan, "learning/lr": 1e-3}
    assert shown_of(stats) == {"replay_fill": 0.5}


def test_numbers_are_short_and_names_differ() -> None:
    assert [clock(s) for s in (-1, 61, 3600, 36_000)] == ["0:00", "1:01", "1:00:00", "10:00:00"]
    shown = [count(n) for n in (0, 99_999, 100_000, 1_234_567, 45_678_901, 123e9, 5e18)]
    assert shown == ["0", "99,999", "100 k", "1.23 M", "45.7 M", "123 G", "5000000 T"]
    assert (size(5 << 20), size(3 << 30)) == ("5 MiB", "3.0 GiB")
    assert short_names(["g-ppo-1-a", "g-ppo-2-b"]) == ["1-a", "2-b"]
    assert short_names(["same"]) == ["same"]


def test_a_trail_holds_a_long_series_in_few_numbers() -> None:
    trail = Trail()
    for value in range(10_000):
        trail.add(float(value))
    values = trail.values()
    assert len(values) <= LIMIT
    assert values == sorted(values)
    assert values[0] < 500
    assert values[-1] > 9_500


def test_a_pipe_gets_lines_and_every_evaluation_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as show:
        for evaluated in (-1, 100, 100, 200):
            show(example(evaluated=evaluated, best=200))
    lines = capsys.readouterr().err.splitlines()
    assert sum("decisions/s" in line for line in lines) == 1
    first, second = (line for line in lines if "evaluated update" in line)
    assert first == (
        "3:07 evaluated update 100 (1,134 updates ago): captain 0.270 (0.25..0.29), "
        "rule_hard 0.420 (0.40..0.44), previous best 0.200 (0.18..0.22)"
    )
    assert "evaluated update 200 (1,034 updates ago), the best so far: captain" in second


def test_a_reader_who_leaves_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", stream)
    with Display() as show:
        show(example())
        show(example(evaluated=1300))
    assert show.quiet
    monkeypatch.undo()
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def on_terminal(monkeypatch: pytest.MonkeyPatch, *, term: str, fails: bool = False) -> str:
    """Show a run on a terminal of our own; returns what arrived there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 100))
    monkeypatch.setenv("TERM", term)
    for name in ("NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    got = b""
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        try:
            with Display() as show:
                show(example())
                show(example(update=1999, evaluated=1990))
                if fails:
                    raise RuntimeError("stopped")
        except RuntimeError:
            pass
        stream.flush()
        while select.select([ours], [], [], 0.05)[0]:
            got += os.read(ours, 1 << 16)
    monkeypatch.undo()
    os.close(ours)
    return got.decode()


@pytest.mark.parametrize("fails", [False, True])
def test_the_last_state_stays_whole_and_the_cursor_comes_back(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = on_terminal(monkeypatch, term="xterm-256color", fails=fails)
    last = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown[shown.rindex("╭") :])
    assert "1,999" in last
    assert last.count("╰") == last.count("╯") == 1
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert shown.rindex("\x1b[?25h") > shown.rindex("╯")


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_terminal(monkeypatch, term="dumb")
    assert "\x1b" not in shown
    assert "decisions/s" in shown
    assert "evaluated update 1,990" in shown


INTERRUPTED = """
import signal, sys, termios
from pathlib import Path
from sparring.training.display import Display
from sparring.training.status import Status

try:
    with Display() as show:
        show(Status("tic_tac_toe", Path("runs/a"), update=1))
        signal.pause()
except KeyboardInterrupt:
    echo = termios.tcgetattr(sys.stdin)[3] & termios.ECHO
    print("echo is", "on" if echo else "off", file=sys.stderr)
"""


@pytest.mark.slow
def test_ctrl_c_leaves_a_clean_terminal() -> None:
    pid, ours = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="80", LINES="40")
        os.execv(sys.executable, [sys.executable, "-c", INTERRUPTED])
    got, sent = b"", False
    while select.select([ours], [], [], 60)[0]:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # how Linux says that nobody is there any more
            break
        got += more
        if not more:
            break
        if not sent and "╯".encode() in got:
            sent = True
            os.write(ours, b"typed\n\x03")
    os.waitpid(pid, 0)
    os.close(ours)
    shown = got.decode()
    assert "^C" not in shown
    assert "typed" not in shown
    assert "echo is on" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("╯")


def test_the_time_left_is_not_that_of_a_warm_up() -> None:
    """Decisions by lot, which fill a replay, are many times as fast as those that learn."""
    status = Status("tic_tac_toe", Path("runs/a"), total_decisions=10_000)

    def told(update: int, seconds: float, decisions: int, samples: int) -> str:
        status.update, status.seconds = update, seconds
        status.count(decisions, samples)
        return line(status).rpartition(", ")[2]

    assert told(1, 1.0, 500, 0) == "warming up"
    assert told(2, 2.0, 1000, 0) == "warming up"
    assert told(3, 32.0, 2000, 256) == "4:00 left"
    assert told(4, 62.0, 3000, 512) == "3:30 left"
    by_clock = Status("tic_tac_toe", Path("runs/a"), timeout_s=60.0, update=1, seconds=2.0)
    by_clock.count(500, 0)
    assert line(by_clock).endswith("0:58 left")
    by_clock.total_updates = 6000  # planned by the pace of the warm-up
    by_clock.update, by_clock.seconds = 20, 12.0
    assert line(by_clock).endswith("0:48 left")
    by_clock.total_updates = 22  # what learns is slower: the minutes stay the same
    assert line(by_clock).endswith("0:48 left")
    assert any(" 20%   0:12 gone, 0:48 left" in one for one in drawn(by_clock, width=80))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_clock_stands_while_the_last_evaluation_is_awaited(width: int) -> None:
    status = example(update=2000, evaluating=True, after=WAITING)
    assert later_status(status, 20.0).seconds == status.seconds
    lines = drawn(status, width=width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "3:07 gone, waiting for the last evaluation" in text
    assert "100%" in text
    assert " left" not in text
    assert "under way" not in text


def test_the_panel_hears_at_once_that_training_is_over() -> None:
    panel = LivePanel(Console(file=io.StringIO()))
    status = example()
    panel.look([status])
    status.after = WAITING  # a moment later
    panel.look([status])
    assert panel.statuses[0].after == WAITING


def test_a_pipe_hears_once_that_the_last_evaluation_is_awaited(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LINE_EVERY_S", 0.0)
    with Display() as show:
        show(example())
        for evaluated in (1900, 1950, 2000):
            show(example(update=2000, evaluated=evaluated, after=WAITING))
    lines = capsys.readouterr().err.splitlines()
    assert [one.rpartition(", ")[2] for one in lines if "decisions/s" in one] == [
        "1:56 left",
        "waiting for the last evaluation",
    ]
    assert sum(" evaluated update " in one for one in lines) == 4
