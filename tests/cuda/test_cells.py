"""What combines on a GPU: no cell that has worked is refused, and those that cover all pairs run.

After a change that is meant, write the state anew on a machine with a GPU:
    .venv/bin/python benchmarks/what_combines.py tests/combinations/now_cuda.txt --device cuda
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from combinations import record, walking
from combinations.cells import GPU, LEARNERS
from combinations.trying import ACCEPTED, updated

RECORDS = Path(__file__).parents[1] / "combinations"
PARTS = 16


@cache
def now() -> record.Record:
    """What comes of every cell at present."""
    return record.read(RECORDS / "now_cuda.txt")


@pytest.mark.parametrize("learner", [learner.name for learner in LEARNERS])
def test_planning_refuses_what_the_record_says(learner: str) -> None:
    cells = [cell for cell in walking.decisive(now(), GPU) if cell.learner.name == learner]
    assert cells
    assert not walking.changed(now(), cells)


@pytest.mark.parametrize("part", range(PARTS))
def test_updates_that_cover_all_pairs_run(part: int) -> None:
    chosen = walking.covering(now(), GPU)
    found = {str(cell): updated(cell) for cell in chosen[part::PARTS]}
    assert not {cell: one for cell, one in found.items() if one.state not in ACCEPTED}
