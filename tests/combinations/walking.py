"""Which cells are looked at, and how they are held against the record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from combinations.cells import Cell, pairs, settings_words, singles
from combinations.record import Record
from combinations.trying import ABSENT, ACCEPTED, LATE, REFUSED, RUNS, Outcome, planned

Value = tuple[int, str]
"""An axis and one of its values."""


def product(device: str) -> Iterator[Cell]:
    """All cells."""
    yield from singles(device)
    yield from pairs(device)


def parts_of(cell: Cell) -> list[Cell]:
    """The same with a feature less."""
    return [
        Cell(cell.learner, cell.place, cell.network, kept)
        for kept in combinations(cell.features, len(cell.features) - 1)
        if cell.features
    ]


def decisive(record: Record, device: str) -> list[Cell]:
    """The cells that say what is refused: all that are accepted, and those whose parts all are.

    What is refused stays so with one feature more.
    """
    return [
        cell
        for cell in product(device)
        if record.of(cell).state != ABSENT
        and all(record.of(one).state in ACCEPTED for one in parts_of(cell))
    ]


def changed(record: Record, cells: Iterable[Cell]) -> list[str]:
    """The cells of which planning says another thing than the record."""
    found = []
    for cell in cells:
        was, now = record.of(cell), planned(cell)
        if plain(was) != now.state:
            found.append(f"{cell}: {was.state} in the record, now {now.state} {now.line}".rstrip())
    return found


def plain(outcome: Outcome) -> str:
    """What planning alone says of what came of a cell."""
    return {LATE: RUNS}.get(outcome.state, RUNS if outcome.state in ACCEPTED else outcome.state)


def badly_refused(cells: Iterable[Cell]) -> list[str]:
    """The refusals that are no line, or do not name a setting that was asked for."""
    found = []
    for cell in cells:
        now = planned(cell)
        if now.state == REFUSED:
            named = any(word in now.line for word in settings_words(cell))
            if not named or "\n" in now.line:
                found.append(f"{cell}: {now.line}")
    return found


def values_of(cell: Cell) -> list[Value]:
    """What a cell has on each of the axes."""
    return list(enumerate((cell.learner.name, cell.place.name, cell.network.name, cell.feature)))


def covering(record: Record, device: str) -> list[Cell]:
    """Few cells that run and have every pair of values that any such cell with one feature has."""
    cells = [cell for cell in singles(device) if record.of(cell).state in ACCEPTED]
    wanted = {cell.key: set(combinations(values_of(cell), 2)) for cell in cells}
    left = set().union(*wanted.values()) if wanted else set()
    chosen = []
    while left:
        best = max(cells, key=lambda cell: len(wanted[cell.key] & left))
        chosen.append(best)
        left -= wanted[best.key]
    return chosen
