"""What combines: no cell that has worked is refused, and what is said to run makes updates.

After a change that is meant, write the state anew:
    .venv/bin/python benchmarks/what_combines.py tests/combinations/now_cpu.txt --jobs 2
`today_cpu.txt` stays as it is: a cell may begin to run, and none may stop. A few cells are looked
at that say what is refused (see `walking.telling`); the slow tests walk the whole product.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from combinations import record, walking
from combinations.cells import CPU, LEARNERS, Cell
from combinations.trying import ACCEPTED, updated

HERE = Path(__file__).parent
NAMES = [learner.name for learner in LEARNERS]
DEVICES = sorted(file.stem.removeprefix("today_") for file in HERE.glob("today_*.txt"))
PARTS = 8


@cache
def now() -> record.Record:
    """What comes of every cell at present."""
    return record.read(HERE / "now_cpu.txt")


@cache
def telling() -> list[Cell]:
    """The cells that say what is refused."""
    return walking.telling(now(), CPU)


def test_a_record_that_is_read_and_written_is_the_same(tmp_path: Path) -> None:
    now().write(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == (HERE / "now_cpu.txt").read_text()


@pytest.mark.parametrize("device", DEVICES)
def test_no_cell_that_worked_when_it_was_written_down_is_recorded_as_refused(device: str) -> None:
    before, after = (record.read(HERE / f"{name}_{device}.txt") for name in ("today", "now"))
    gone = [
        str(cell)
        for cell in walking.product(device)
        if before.of(cell).state in ACCEPTED and after.of(cell).state not in ACCEPTED
    ]
    assert not gone


@pytest.mark.parametrize("learner", NAMES)
def test_planning_refuses_what_the_record_says_in_a_line_that_names_a_setting(learner: str) -> None:
    cells = [cell for cell in telling() if cell.learner.name == learner]
    assert cells
    assert not walking.changed(now(), cells)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_learner_makes_updates_with_everything_that_it_runs_with(part: int) -> None:
    chosen = walking.covering_learners(now(), CPU)
    found = {str(cell): updated(cell) for cell in chosen[part::PARTS]}
    assert not {cell: one for cell, one in found.items() if one.state not in ACCEPTED}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_updates_that_cover_all_pairs_run(part: int) -> None:
    chosen = walking.covering(now(), CPU)
    found = {str(cell): updated(cell) for cell in chosen[part::PARTS]}
    assert not {cell: one for cell, one in found.items() if one.state not in ACCEPTED}


@pytest.mark.slow
@pytest.mark.parametrize("learner", NAMES)
def test_the_whole_product_is_as_recorded(learner: str) -> None:
    cells = [cell for cell in walking.product(CPU) if cell.learner.name == learner]
    assert not walking.changed(now(), cells)


@pytest.mark.slow
@pytest.mark.parametrize("learner", NAMES)
def test_every_cell_that_is_accepted_makes_updates(learner: str) -> None:
    cells = [cell for cell in walking.product(CPU) if cell.learner.name == learner]
    accepted = [cell for cell in cells if now().of(cell).state in ACCEPTED]
    found = {str(cell): updated(cell) for cell in accepted}
    assert not {cell: one for cell, one in found.items() if one.state not in ACCEPTED}
