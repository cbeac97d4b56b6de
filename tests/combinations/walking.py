"""Which cells are looked at, and how they are held against the record."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from combinations.cells import LIKE_ANOTHER, Cell, pairs, settings_words, singles
from combinations.record import Record
from combinations.trying import (
    ABSENT,
    ACCEPTED,
    LATE,
    REFUSED,
    RUNS,
    UNTRIED,
    Outcome,
    planned,
)

Value = tuple[int, str]
"""An axis and one of its values."""


def product(device: str) -> Iterator[Cell]:
    """All cells."""
    yield from singles(device)
    yield from pairs(device)


def parts_of(cell: Cell) -> list[Cell]:
    """The same with a feature less."""
    rest = [tuple(one for one in cell.features if one != left) for left in cell.features]
    return [Cell(cell.learner, cell.place, cell.network, kept) for kept in rest]


def decisive(record: Record, device: str) -> list[Cell]:
    """The cells that say what is refused: all that are accepted, and those whose parts all are.

    What is refused stays so with one feature more. Places that are planned as another one is are
    looked at without features.
    """
    return [
        cell
        for cell in product(device)
        if record.of(cell).state != ABSENT
        and not (cell.features and cell.place.name in LIKE_ANOTHER)
        and all(record.of(one).state in ACCEPTED for one in parts_of(cell))
    ]


def changed(record: Record, cells: Iterable[Cell]) -> list[str]:
    """The cells of which planning says another thing than the record, or says it badly."""
    found = []
    for cell in cells:
        was, now = record.of(cell), planned(cell)
        if plain(was) != now.state:
            found.append(f"{cell}: {was.state} in the record, now {now.state} {now.line}".rstrip())
        elif now.state == REFUSED and not is_well_said(cell, now.line):
            found.append(f"{cell}: a refusal is a line that names a setting, not {now.line!r}")
    return found


def plain(outcome: Outcome) -> str:
    """What planning alone says of what came of a cell."""
    if outcome.state in (LATE, UNTRIED):
        return RUNS
    return outcome.state


def is_well_said(cell: Cell, line: str) -> bool:
    """Whether a refusal is one line and names a setting that the cell asks for."""
    return "\n" not in line and any(word in line for word in settings_words(cell))


def values_of(cell: Cell) -> list[Value]:
    """What a cell has on each of the axes."""
    return list(enumerate((cell.learner.name, cell.place.name, cell.network.name, cell.feature)))


def covering(record: Record, device: str) -> list[Cell]:
    """Few cells that run and have every pair of values that any such cell with one feature has."""
    cells = [cell for cell in singles(device) if record.of(cell).state in ACCEPTED]
    return few(cells, [set(combinations(values_of(cell), 2)) for cell in cells])


def covering_learners(record: Record, device: str) -> list[Cell]:
    """Few cells that run: every learner with every place, network and feature that it runs with."""
    cells = [cell for cell in singles(device) if record.of(cell).state in ACCEPTED]
    pairs = ((cell, values_of(cell)) for cell in cells)
    return few(cells, [{(first, one) for one in rest} for _, (first, *rest) in pairs])


def telling(record: Record, device: str) -> list[Cell]:
    """Few of those that are decisive, with every pair of values that is accepted, or refused.

    They have one feature or none.
    """
    cells = [cell for cell in decisive(record, device) if len(cell.features) < 2]
    values = ((len(values_of(cell)), str(record.of(cell).state in ACCEPTED)) for cell in cells)
    axes = [[*values_of(cell), accepted] for cell, accepted in zip(cells, values, strict=True)]
    return few(cells, [set(combinations(one, 2)) for one in axes])


def few(cells: Sequence[Cell], wanted: Sequence[set[tuple[Value, Value]]]) -> list[Cell]:
    """Few cells that together have what all have. wanted: of each."""
    left = set().union(*wanted)
    chosen = []
    waiting = [(-len(own), at) for at, own in enumerate(wanted)]
    while left:  # whoever has most that is left; what a cell has of it only ever shrinks
        _, at = heapq.heappop(waiting)
        gain = -len(wanted[at] & left)
        if waiting and (gain, at) > waiting[0]:
            heapq.heappush(waiting, (gain, at))
            continue
        chosen.append(cells[at])
        left -= wanted[at]
    return chosen
