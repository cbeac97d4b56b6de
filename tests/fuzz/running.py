"""Runs cases of the fuzz in a process of its own, which a crash, a hang or a full memory ends.

    python tests/fuzz/running.py KIND SEED          repeats one case, with its traceback
    python tests/fuzz/running.py KIND FIRST LAST    counts the outcomes of many

The process tells a line after every case, so that the one that it died in is known.
"""

from __future__ import annotations

import collections
import faulthandler
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

TESTS = Path(__file__).parent.parent
LIMIT_S = 60.0
"""A case takes milliseconds; whatever takes so long by the clock hangs."""
MAX_BYTES = 2 * 2**30
"""Of memory that a case may take beside what was there before it."""
LONGEST = 700
"""Characters of an error."""
CLEAN, ACCEPTED, TRACEBACK, CRASH, HANG = "clean", "accepted", "traceback", "crash", "hang"
OUTCOMES = (CLEAN, ACCEPTED, TRACEBACK, CRASH, HANG)


TELL = "--tell"
Case = tuple[str, int]
"""A kind, and the seed of the lots that damage it."""


@dataclass(frozen=True)
class Outcome:
    """What came of one case."""

    kind: str
    seed: int
    outcome: str
    told: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it is neither refused in a line nor read."""
        return self.outcome not in (CLEAN, ACCEPTED)

    @property
    def again(self) -> str:
        """The command that repeats it."""
        return f"python tests/fuzz/running.py {self.kind} {self.seed}"

    def __str__(self) -> str:
        return f"{self.outcome}: {self.told}\n    {self.again}"


def run_cases(cases: Sequence[Case]) -> list[Outcome]:
    """Run cases; after one that ends the process, another process goes on."""
    found: list[Outcome] = []
    while len(found) < len(cases):
        found += run_until_death(cases[len(found) :])
    return found


def run_until_death(cases: Sequence[Case]) -> list[Outcome]:
    """Run cases in one process; the last one may be what it died of."""
    places = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)}
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(cases).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, __file__, TELL],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=said,
            env=variables,
        )
        assert process.stdout is not None
        with process.stdout as lines:
            found = [Outcome(**json.loads(line)) for line in lines]
        code = process.wait()
        said.seek(0)
        left = said.read().decode(errors="replace").strip()
    if len(found) == len(cases):
        return found
    kind, seed = cases[len(found)]
    if "Timeout (" in left:
        return [*found, Outcome(kind, seed, HANG, left[-1500:])]
    if code >= 0:
        raise AssertionError(f"{kind} {seed}: the fuzz itself fails:\n{left}")
    return [*found, Outcome(kind, seed, CRASH, f"signal {-code}: {left[-1500:]}")]


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder to work in, so deep that ../.. stays among what goes afterwards."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer, "a", "b", "c", "d")
        folder.mkdir(parents=True)
        os.chdir(folder)
        yield folder
        os.chdir("/")


def each_case(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Run cases in this process, those of a kind in a folder of their own."""
    from fuzz.targets import KINDS

    for name, group in itertools.groupby(cases, key=lambda case: case[0]):
        with workplace() as folder:
            kind = KINDS[name]
            kind.read(kind.place(folder, kind.healthy(random.Random(0))))  # loads what it needs
            bound_memory()
            for _, seed in group:
                faulthandler.dump_traceback_later(LIMIT_S, exit=True)
                yield judged(name, seed, folder)
                faulthandler.cancel_dump_traceback_later()


def judged(kind_name: str, seed: int, folder: Path) -> Outcome:
    """Run one case and say what came of it."""
    from fuzz.targets import KINDS
    from sparring.errors import SparringError

    kind = KINDS[kind_name]
    place = kind.place(folder, kind.spoiled(random.Random(f"{kind_name} {seed}")))
    try:
        kind.read(place)
    except SparringError as refused:
        why = fault_of(str(refused))
        return Outcome(kind_name, seed, TRACEBACK if why else CLEAN, why or str(refused))
    except (Exception, SystemExit) as wrong:
        frames = traceback.extract_tb(wrong.__traceback__)
        ours = [frame for frame in frames if "/sparring/" in frame.filename] or frames
        at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return Outcome(kind_name, seed, TRACEBACK, f"{type(wrong).__name__} at {at}: {wrong}"[:400])
    return Outcome(kind_name, seed, ACCEPTED)


def fault_of(message: str) -> str:
    """Say what is wrong with an error's text, "" if nothing is."""
    if not message.strip():
        return "an error without a word"
    if len(message) > LONGEST:
        return f"an error of {len(message)} characters: {message[:200]!r}"
    if not message.isprintable() and not message.replace("\u3000", " ").isprintable():
        return f"an error that is no line of text: {message[:300]!r}"
    return ""


def bound_memory() -> None:
    """Have what takes far more memory than is needed fail."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MAX_BYTES, hard))


def main(words: Sequence[str]) -> int:
    """Repeat a case, count many, or tell a parent about each."""
    warnings.simplefilter("ignore")
    if words == [TELL]:
        return tell_each()
    kind, first = words[0], int(words[1])
    if len(words) == 2:
        return repeat(kind, first)
    found = run_cases([(kind, seed) for seed in range(first, int(words[2]))])
    print(*(outcome for outcome in found if outcome.is_fault), sep="\n")
    counts = collections.Counter(outcome.outcome for outcome in found)
    print(kind, len(found), *(f"{name} {counts[name]}" for name in OUTCOMES))
    return 0


def tell_each() -> int:
    """Run the cases that stdin names, and tell what came of each."""
    cases = json.load(sys.stdin)
    tell = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # what commands print is nobody's
    os.dup2(nowhere, 0)
    faulthandler.enable()
    for outcome in each_case(cases):
        print(json.dumps(asdict(outcome)), file=tell, flush=True)
    return 0


def repeat(kind_name: str, seed: int) -> int:
    """Show the file of a case, and what reading it comes to."""
    from fuzz.targets import KINDS

    kind = KINDS[kind_name]
    with workplace() as folder:
        content = kind.spoiled(random.Random(f"{kind_name} {seed}"))
        print(repr(content)[:5000])
        kind.read(kind.place(folder, content))
    print("accepted")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.path.remove(str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
