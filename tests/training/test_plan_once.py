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
FOLDER = f"{ROOT}/"
MAX_FILES = 30
"""Files that a configuration may enter from `commands/train.py:run`."""
ABOVE = {"training/train.py", "training/several.py"}
"""Files of training that stand above planning: they settle configurations, and hand them down."""
PLANNING = ("commands/", "config/", "training/planning/", "curriculum/reading.py")
"""Where configurations are read, completed and turned into plans."""


def is_whole(value: Any) -> bool:
    """Whether a value is a complete configuration, or several."""
    if isinstance(value, list | tuple):
        return any(isinstance(one, TrainConfig) for one in value)
    return isinstance(value, TrainConfig)


def holds(frame: FrameType) -> bool:
    """Whether a method's object keeps one, so that the method has it at hand."""
    return any(map(is_whole, getattr(frame.f_locals["self"], "__dict__", {}).values()))


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
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(FOLDER):
            return
        given = [value] if event == "return" else arguments(frame)
        held = event == "call" and "self" in code.co_varnames[:1] and holds(frame)
        if held or any(map(is_whole, given)):
            where = code.co_filename.removeprefix(FOLDER)
            entered.setdefault(where, set()).add(code.co_qualname)

    sys.setprofile(look)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def small(folder: Path) -> TrainConfig:
    """A small run with a league and phases."""
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
        assert run(small(tmp_path)) == 0
    assert len(entered) <= MAX_FILES, sorted(entered)
    assert {file for file in entered if not file.startswith(PLANNING)} <= ABOVE


def test_nobody_below_planning_knows_the_whole_configuration() -> None:
    """By name: what is not met in a run like the one above counts, too."""
    seen = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "training").rglob("*.py")
        if "TrainConfig" in file.read_text("utf-8") and file.parent.name != "planning"
    }
    assert seen <= ABOVE
