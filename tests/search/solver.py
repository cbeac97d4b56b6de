"""Positions of Connect Four, drawn and solved by the native solver.

    PYTHONPATH=tests python -m search.solver [--early] [--threads N] [--keep FILE]

A position is what a game of so many plies has come to, between players who are careful by a share
of their moves, drawn by seeds of its own. The file has 1,000 of plies 0 to 30 that differ in more
than a reflection, and in which some move gives value away: the same number of each ply, but fewer
of the early ones, where solving takes longest (`EARLY`), and where most positions are openings of
the preset's training, of which none is in the file. With --early it has their share of them too, or
all that exist. On one core of 2.5 GHz a position with all of its moves takes 90 seconds at
ply 0, 5 at ply 4, 2 at ply 5 and 1 at ply 7. With --keep, what was solved is appended to a file and
not solved again.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from search.positions import FILE, Position, line_of, read_line, state_after, text_of
from sparring import Rules, new_state
from sparring.games.connect_four.preset import PRESET
from sparring.games.starts import read_starts, saved_position

RULES = Rules("connect_four")
CSRC = Path(__file__).parents[2] / "csrc"
COUNT, PLIES = 1000, range(31)
EARLY = {1: 0, 2: 0, 3: 0, 4: 18}
"""Positions of early plies in the file."""
CARE = (0.0, 0.5, 0.9)
"""Shares of careful moves; a game draws one of them."""
TABLE_BITS = 27
"""Enough for the early plies together: 2 GiB."""
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Fewer misses of the address cache in a large table: a third faster."""


class Solver:
    """The native solver, which answers line by line, and what it has found."""

    def __init__(self, process: subprocess.Popen[str], keep: Path | None = None) -> None:
        self.process, self.keep = process, keep
        lines = keep.read_text().splitlines() if keep and keep.exists() else []
        self.known = {position.moves: position for position in map(read_line, lines)}

    def solve(self, moves: tuple[int, ...]) -> Position:
        """Return the values of a position that is not over."""
        return self.solve_all([moves])[0]

    def solve_all(self, some: Sequence[tuple[int, ...]]) -> list[Position]:
        """Return the values of positions; threads solve several at once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        new = [moves for moves in some if moves not in self.known]
        self.process.stdin.writelines(f"{text_of(moves)}\n" for moves in new)
        self.process.stdin.flush()
        for _ in new:
            self.remember(read_line(self.process.stdout.readline()))
        return [self.known[moves] for moves in some]

    def remember(self, position: Position) -> None:
        self.known[position.moves] = position
        if self.keep:
            with self.keep.open("a") as file:
                file.write(f"{line_of(position)}\n")


def build(folder: Path) -> Path:
    """Compile the native solver."""
    program = folder / "solve"
    words = ("-std=c++20", "-O3", "-march=native", "-pthread", f"-I{CSRC}", "-o", program)
    source = CSRC / "tests" / "solve_connect_four.cpp"
    subprocess.run([os.environ.get("CXX", "c++"), *words, source], check=True)
    return program


@contextmanager
def start_solver(
    program: Path, table_bits: int, threads: int = 1, keep: Path | None = None
) -> Iterator[Solver]:
    """Start the native solver; its table has 2 to the power of so many buckets of 16 bytes."""
    with subprocess.Popen(
        [program, str(table_bits), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | HUGE_PAGES,
    ) as process:
        yield Solver(process, keep)


def played(plies: int, rng: random.Random) -> tuple[int, ...] | None:
    """Return the moves of a game of so many plies, None if it is over by then."""
    state, moves = new_state(RULES, seed=rng.getrandbits(32)), []
    care = rng.choice(CARE)
    for _ in range(plies):
        careful = rng.random() < care
        moves.append(int(state.ask("careful")) if careful else rng.choice(list(state.legal())))
        state.apply(moves[-1])
        if state.over:
            return None
    return tuple(moves)


def board_of(moves: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the stones by column; a position and its reflection have the same."""
    columns: list[list[int]] = [[] for _ in range(7)]
    for ply, column in enumerate(moves):
        columns[column].append(ply % 2)
    board = tuple(map(tuple, columns))
    return min(board, board[::-1])


@cache
def openings() -> frozenset[object]:
    """Return the positions where the preset's training begins; the empty board is None."""
    return frozenset(start.position for start in read_starts(RULES, PRESET["starts"]))


def is_opening(moves: tuple[int, ...]) -> bool:
    """Return whether a position or its reflection is where training begins."""
    reflected = tuple(6 - column for column in moves)
    states = (state_after(RULES.name, each) for each in (moves, reflected))
    return any(saved_position(state) in openings() for state in states)


def drawn(plies: int, tries: int = 2000) -> Iterator[tuple[int, ...]]:
    """Yield different positions of a ply, until so many games in a row bring nothing new."""
    rng, seen, failed = random.Random(plies), set(), 0
    while failed < tries:
        moves = played(plies, rng)
        failed += 1
        if moves is not None and board_of(moves) not in seen:
            failed = 0
            seen.add(board_of(moves))
            yield moves


def chosen(plies: int, count: int, solver: Solver) -> list[Position]:
    """Return the first positions of a ply that tell moves apart: the same for any threads."""
    source, found = itertools.filterfalse(is_opening, drawn(plies)), list[Position]()
    while some := list(itertools.islice(source, count - len(found))):
        found += [position for position in solver.solve_all(some) if position.tells]
        print(f"ply {plies}: {len(found)} of {count}", file=sys.stderr)
    return found


def generate(solver: Solver, early: Mapping[int, int]) -> list[Position]:
    """Return the positions of the file: what a ply lacks is spread evenly over the later ones."""
    found: list[Position] = []
    for ply in PLIES:
        share = (COUNT - len(found)) // (PLIES.stop - ply)
        found += chosen(ply, early.get(ply, share), solver)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--early", action="store_true", help="as many of early plies")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="positions solved so far, to go on from")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        start_solver(build(Path(folder)), TABLE_BITS, options.threads, options.keep) as solver,
    ):
        found = generate(solver, {} if options.early else EARLY)
    FILE.write_text("".join(f"{line_of(position)}\n" for position in found))


if __name__ == "__main__":
    main()
