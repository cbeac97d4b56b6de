"""Verdicts read the phases that our code names: what they look for has to be named there."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from sparring.speed.code import HOME, LOOP, phase_of, phases_in
from sparring.speed.evidence import PROCESS_KINDS, Frame
from sparring.speed.verdicts import profiled_run as run
from sparring.training.utilization.share import PHASE_NAMES

READ = (
    *(run.STEPPING, run.GAMES, run.RESET, run.INFERENCE, run.OPPONENTS, run.PAST),
    *(run.CALLBACK, run.SAVING, run.RECORDING, run.SHOWING, run.LEAGUE, LOOP),
)
TIMED = tuple(name for name in PHASE_NAMES if name not in ("other", "rollout"))


def named_somewhere() -> set[str]:
    """All phases that files of ours name."""
    files = (path.relative_to(HOME).as_posix() for path in HOME.rglob("*.py"))
    return {name for file in files for _, _, name in phases_in(file)}


def test_every_phase_that_a_verdict_reads_is_named_in_the_code() -> None:
    """Otherwise code that moved would be nowhere, and a verdict would be missing."""
    assert {*READ, *TIMED} <= named_somewhere()


def test_the_innermost_phase_counts() -> None:
    first, last, _ = next(one for one in phases_in("learn/collect.py") if one[2] == "stepping")
    file = f"{HOME}/learn/collect.py"
    assert phase_of(Frame("f", file, first)) == phase_of(Frame("f", file, last)) == "stepping"
    assert phase_of(Frame("f", "sparring/learn/collect.py", last)) == "stepping"
    assert phase_of(Frame("f", file, 1)) == ""
    assert phase_of(Frame("f", "/home/me/my_env.py", last)) == ""


@pytest.mark.parametrize("module", PROCESS_KINDS)
def test_processes_of_a_training_are_modules_of_ours(module: str) -> None:
    assert find_spec(module) is not None
