"""A configuration becomes a plan once: below planning nobody sees the whole of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import sparring
from sparring.commands.train import run
from sparring.config import TrainConfig
from sparring.training.planning.settings import merged, with_preset

ROOT = Path(sparring.__file__).parent
MOST_FILES = 32
"""Files that a configuration may enter from `commands/train.py:run`."""
KNOW_IT = {
    *("training/anew.py", "training/budget.py", "training/courses.py", "training/league.py"),
    *("training/leagues.py", "training/loop.py", "training/member.py", "training/metering.py"),
    *("training/own.py", "training/records/results.py", "training/session.py"),
    *("training/several.py", "training/stop_rules.py", "training/teaching/teach.py"),
    "training/train.py",
}
"""Files of training outside of planning that name the whole configuration."""


def is_whole(value: Any) -> bool:
    """Whether a value is a complete configuration, or several."""
    if isinstance(value, list | tuple):
        return any(isinstance(one, TrainConfig) for one in value)
    return isinstance(value, TrainConfig)


def holds_whole(value: Any) -> bool:
    """Whether an object keeps one: what its methods do, they do with the configuration at hand."""
    return any(map(is_whole, getattr(value, "__dict__", {}).values()))


def arguments(frame: FrameType) -> Iterator[Any]:
    """What a function was called with."""
    code, found = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    for name in code.co_varnames[: count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]:
        value = found.get(name)
        yield from value.values() if isinstance(value, dict) else [value]


@contextmanager
def watched() -> Iterator[dict[str, set[str]]]:
    """Collect the functions of the package that get, keep or return a configuration, by file."""
    entered: dict[str, set[str]] = {}

    def look(frame: FrameType, event: str, value: Any) -> None:
        file = frame.f_code.co_filename
        if not file.startswith(str(ROOT)) or event not in ("call", "return"):
            return
        given = [value] if event == "return" else list(arguments(frame))
        held = event == "call" and "self" in frame.f_locals and holds_whole(frame.f_locals["self"])
        if held or any(map(is_whole, given)):
            where = str(Path(file).relative_to(ROOT))
            entered.setdefault(where, set()).add(frame.f_code.co_qualname)

    sys.setprofile(look)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def everything(folder: Path) -> TrainConfig:
    """A small run with most of what settings ask for: a league, phases, evaluations of its own."""
    changes = {
        **{"device": "cpu", "threads": 1, "updates": 2, "runs": str(folder), "csv": True},
        "collect": {"games": 8, "steps": 8},
        "net": {"hidden": (8,)},
        "eval": {"off": True, "final_games": 8},
        "opponents": ("self=1", "past=1"),
        "phases": ({"name": "alone", "decisions": 64, "opponents": ["self=1"]}, {"name": "all"}),
    }
    config: TrainConfig = merged(with_preset("tic_tac_toe"), changes, "test")
    return config


def test_a_configuration_enters_few_files_on_its_way_through_training(tmp_path: Path) -> None:
    """Whoever changes a setting finds what it does in planning, not in every room below."""
    with watched() as entered:
        assert run(everything(tmp_path)) == 0
    assert len(entered) <= MOST_FILES, sorted(entered)


def test_nobody_below_planning_knows_the_whole_configuration() -> None:
    """By name: what is not met in a run like the one above counts, too."""
    seen = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "training").rglob("*.py")
        if "TrainConfig" in file.read_text("utf-8") and file.parent.name != "planning"
    }
    assert seen == KNOW_IT
