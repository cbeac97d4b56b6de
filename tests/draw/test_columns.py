"""Tables on narrow terminals: columns go, words stay whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sparring.draw.columns import Columns

WIDTHS = (20, 40, 80, 100, 120, 200)


def example() -> Columns:
    table = Columns(
        ("game", "title", "seats", "rate", "bots"),
        numbers=("seats", "rate"),
        least=("rate", "title"),
    )
    table.add_row("laser_hockey_discrete", "Laser hockey", "2", "1.2 M/s", "random idle strong")
    table.add_row("shogi", "Shogi on the 9x9 board", "2", "41 k/s", "random greedy ab2 ab3")
    return table


def drawn(table: Columns, width: int) -> tuple[list[str], list[str]]:
    out = Console(file=io.StringIO(), width=width)
    fitted, dropped = table.fit(width)
    with out.capture() as shown:
        out.print(fitted)
    return shown.get().splitlines(), dropped


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_fits_and_no_word_is_broken(width: int) -> None:
    table = example()
    known = {word for name in table.names for word in name.split()}
    for column in table.columns:
        known |= {word for cell in column.cells for word in str(cell).split()}
    lines, _ = drawn(table, width)
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split() if "─" not in word and "…" not in word}
    assert words <= known


def test_columns_go_in_the_order_that_was_asked_for_then_from_the_right() -> None:
    gone = [drawn(example(), width)[1] for width in range(100, 10, -1)]
    longest = max(gone, key=len)
    assert longest == ["title", "seats", "rate", "bots"]  # in the order of the table
    went: list[str] = []
    for dropped in gone:
        assert set(went) <= set(dropped)
        went += [name for name in dropped if name not in went]
    assert went == ["rate", "title", "bots", "seats"]


def test_a_wide_table_has_everything_in_one_line_per_row() -> None:
    lines, dropped = drawn(example(), 200)
    assert (len(lines), dropped) == (4, [])


def test_a_long_name_is_shortened_before_the_numbers_go() -> None:
    table = Columns(("run", "win share"), numbers=("win share",))
    table.add_row("runs/20260101-120000-skull_king-ppo-0123/checkpoints/00000400", "61.2%")
    lines, dropped = drawn(table, 40)
    assert not dropped
    assert "runs/2026" in lines[-1]
    assert "0400" in lines[-1]
    assert "…" in lines[-1]
    assert "61.2%" in lines[-1]
