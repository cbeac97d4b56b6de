"""Writes what combines: every cell of learner x place x network x feature, planned and updated.

    python benchmarks/what_combines.py tests/combinations/today_cpu.txt --jobs 2
    python benchmarks/what_combines.py today_cuda.txt --device cuda --jobs 14 --minutes 4
    python benchmarks/what_combines.py now_cuda.txt --device cuda --learners gumbel  # alone

Cells that planning accepts make two updates each. On a GPU, where each costs seconds, these are
the cells without a feature, those of a perceptron and those of a learner of somebody's own, which
alone says what it takes; the others are planned alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from combinations.cells import Cell
    from combinations.trying import Outcome

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
OWN = ("own_nets.py", "own_envs.py", "learn/reinforce.py")
"""Modules with networks, environments and learners of somebody's own."""
MARK = "cell\t"
"""Before what a part says about a cell."""


def begin() -> None:
    """Find the code of the tests, and name what may run of it."""
    sys.path.insert(0, str(TESTS))
    from sparring import trusted

    for own in OWN:
        module = ".".join(Path(own).with_suffix("").parts)
        for name in re.findall(r"^(?:class |def )(\w+)", (TESTS / own).read_text(), re.MULTILINE):
            trusted.allow(f"{module}:{name}")


def cells_of(device: str) -> list[Cell]:
    """All cells of a device."""
    from combinations.cells import pairs, singles

    return [*singles(device), *pairs(device)]


def numbers_of(
    cells: Sequence[Cell], part: int, jobs: int, learners: Sequence[str] = ()
) -> list[int]:
    """The cells of a part, without a feature first, then with one, then with two.

    learners: left out, all of them.

    Those of a learner, a place and a network stay together: what is compiled for them serves all.
    """
    starts = ["|".join(cell.key[:3]).encode() for cell in cells]
    mine = [
        number
        for number, start in enumerate(starts)
        if crc32(start) % jobs == part and (not learners or cells[number].learner.name in learners)
    ]
    return sorted(mine, key=lambda number: len(cells[number].features))


def is_updated(cell: Cell) -> bool:
    """Whether a cell makes updates."""
    if cell.place.device == "cpu" or not cell.features or cell.learner.name == "own":
        return True
    return cell.network.name == "mlp" and len(cell.features) == 1


def try_cells(given: argparse.Namespace) -> None:
    """Try the cells of a part after one of them, and print the result of each.

    Nothing is updated any more after the time `until`.
    """
    from combinations.trying import RUNS, UNTRIED, planned, tried

    cells, after = cells_of(given.device), given.after
    numbers = numbers_of(cells, given.part, given.jobs, given.learners)
    for number in numbers[numbers.index(after) + 1 if after >= 0 else 0 :]:
        cell = cells[number]
        updates = is_updated(cell) and time.time() < given.until
        outcome = tried(cell) if updates else planned(cell)
        state = UNTRIED if outcome.state == RUNS and not updates else outcome.state
        print(f"{MARK}{number}\t{state}\t{outcome.line}", flush=True)


def heard(given: argparse.Namespace, until: float, part: int) -> Iterator[tuple[int, Outcome]]:
    """Yield results of the cells of a part; a cell that ends its process is broken, others go on.

    until: as above.
    """
    from combinations.trying import BROKEN, Outcome

    numbers, last = numbers_of(cells_of(given.device), part, given.jobs, given.learners), -1
    while numbers and last != numbers[-1]:
        words = ["--device", given.device, "--jobs", str(given.jobs), "--part", str(part)]
        command = [sys.executable, __file__, str(given.out), *words]
        command += ["--after", str(last), "--until", str(until), "--learners", *given.learners]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(MARK):
                    number, state, text = line.rstrip("\n").removeprefix(MARK).split("\t", 2)
                    last = int(number)
                    yield last, Outcome(state, text)
        if last != numbers[-1]:
            last = numbers[numbers.index(last) + 1 if last >= 0 else 0]
            yield last, Outcome(BROKEN, f"the process ended with {process.returncode}")


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=600.0, help="for updates")
    parser.add_argument(
        "--learners", nargs="*", default=[], help="write their cells alone anew in an old record"
    )
    for name, kind in (("--part", int), ("--after", int), ("--until", float)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    begin()
    if given.part is not None:
        try_cells(given)
        return
    from combinations.record import Record, read
    from combinations.trying import RUNS

    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    record = Record(f"at commit {commit or '?'} on {given.device}", given.device)
    cells, until = cells_of(given.device), time.time() + 60 * given.minutes
    with ThreadPoolExecutor(given.jobs) as threads:
        ask = partial(hear_all, given, until)
        for found in threads.map(ask, range(given.jobs)):
            record.cells |= {cells[number].key: outcome for number, outcome in found}
    if given.learners:
        record.cells = read(given.out).cells | record.cells
        record.made += f", {' and '.join(given.learners)} alone"
    tried = sum(outcome.state == RUNS for key, outcome in record.cells.items() if "+" in key[-1])
    record.made += f"; {tried} pairs made updates"
    record.write(given.out)
    print(record.counts())


def hear_all(given: argparse.Namespace, until: float, part: int) -> list[tuple[int, Outcome]]:
    """Return the results of all cells of a part; prints progress."""
    found = []
    for found_now in heard(given, until, part):
        found.append(found_now)
        if len(found) % 250 == 0:
            print(f"part {part}: {len(found)}", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
