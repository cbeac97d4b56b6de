"""Positions of Connect Four, drawn and solved by the native solver.

    PYTHONPATH=tests python -m search.solver [--early] [--jobs N]     writes connect_four.txt anew

A position is what a game of so many plies has come to, between players who are careful by a share
of their moves. The file has 1,000 of plies 0 to 30 that differ in more than a reflection, and in
which some move gives value away. Earlier ones take longer: with all of its moves a position took 2
seconds at ply 8, 3 at ply 6, 8 at ply 5 and 4 minutes at ply 0, on one core of 2.5 GHz. So the file
has 32 positions of each ply from 17 on, 53 of each from 7 to 16, 16 of ply 6, five of ply 5, none
of plies 1 to 4, and the empty board: about ten minutes. With --early it has 32 of the early plies
too, or as many as exist, and fewer of plies 7 to 16: an hour or two, by estimate.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from search.positions import FILE, Position, line_of, read_line, text_of
from sparring import Rules, new_state

RULES = Rules("connect_four")
CSRC = Path(__file__).parents[2] / "csrc"
COUNT, PLIES, PER_PLY = 1000, range(31), 32
EARLY = {0: 1, 1: 0, 2: 0, 3: 0, 4: 0, 5: 5, 6: 16}
"""Positions of plies that take long to solve."""
STAND_INS = range(7, 17)
"""Plies with more positions, for those that others lack."""
CARE = (0.0, 0.5, 0.9)
"""Shares of careful moves; a game draws one of them."""
TABLE_BITS = 25
"""Enough for the empty board: half a GiB."""


class Solver:
    """The native solver, which answers line by line and keeps what it has found."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def solve(self, moves: tuple[int, ...]) -> Position:
        """Return the values of a position that is not over."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text_of(moves) + "\n")
        self.process.stdin.flush()
        return read_line(self.process.stdout.readline())


@contextmanager
def start_solver(table_bits: int) -> Iterator[Solver]:
    """Compile and start the native solver; its table has 2 to the power of so many buckets."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "solve"
        words = ("-std=c++20", "-O3", "-march=native", f"-I{CSRC}", "-o", program)
        source = CSRC / "tests" / "solve_connect_four.cpp"
        subprocess.run([os.environ.get("CXX", "c++"), *words, source], check=True)
        with subprocess.Popen(
            [program, str(table_bits)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield Solver(process)


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


def chosen(plies: int, count: int, solvers: Sequence[Solver]) -> list[Position]:
    """Return the first positions of a ply that tell moves apart: the same for any solvers."""
    source, found = drawn(plies), []
    with ThreadPoolExecutor(len(solvers)) as threads:
        while len(found) < count and (some := list(itertools.islice(source, len(solvers)))):
            found += [p for p in threads.map(Solver.solve, solvers, some) if p.tells]
            print(f"ply {plies}: {len(found)} of {count}", file=sys.stderr)
    return found[:count]


def generate(solvers: Sequence[Solver], early: Mapping[int, int]) -> list[Position]:
    """Return the positions of the file."""
    found = []
    for ply in PLIES:
        if ply not in STAND_INS:
            found += chosen(ply, early.get(ply, PER_PLY), solvers)
    for nth, ply in enumerate(STAND_INS):
        found += chosen(ply, (COUNT - len(found)) // (len(STAND_INS) - nth), solvers)
    return sorted(found, key=lambda position: len(position.moves))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--early", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        solvers = [stack.enter_context(start_solver(TABLE_BITS)) for _ in range(options.jobs)]
        found = generate(solvers, {} if options.early else EARLY)
    FILE.write_text("".join(f"{line_of(position)}\n" for position in found))


if __name__ == "__main__":
    main()
