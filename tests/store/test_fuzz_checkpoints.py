"""Whatever somebody has put into a run's files: a policy, or one line. Nothing crashes or hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from store.fuzz_checkpoints import ACCEPTED, CLEAN, KINDS, LIMIT_S

FOLDER = Path(__file__).parent
MANY = 2000
FEW = 80


def tried(kinds: Sequence[str], count: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Return how often each outcome came, and the cases that must not be.

    A case that ends its process is counted, and the next one goes on in another.
    """
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    done = 0
    while done < count:
        words = [sys.executable, str(FOLDER / "fuzz_checkpoints.py"), str(folder), ",".join(kinds)]
        words += [str(done), str(count)]
        path = os.pathsep.join((str(FOLDER.parent), os.environ.get("PYTHONPATH", "")))
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as child:
            assert child.stdout
            for line in child.stdout:
                number, kind, outcome, said = json.loads(line)
                outcomes[f"{kind}: {outcome}"] += 1
                done = number + 1
                if outcome not in (CLEAN, ACCEPTED):
                    wrong.append(f"{kind} {number}: {outcome}: {said}")
        if child.returncode:
            assert child.returncode < 0, "the harness itself has failed"
            kind = kinds[done % len(kinds)]
            wrong.append(f"{kind} {done}: ended by signal {-child.returncode} (14: {LIMIT_S} s)")
            done += 1
    return outcomes, wrong


def test_changed_files_of_a_run_are_one_line_or_a_policy(tmp_path: Path) -> None:
    """One process for all kinds: to start it takes as long as a hundred cases."""
    outcomes, wrong = tried(list(KINDS), FEW, tmp_path)
    assert not wrong, wrong[:5]
    for kind in KINDS:
        assert outcomes[f"{kind}: {CLEAN}"] and outcomes[f"{kind}: {ACCEPTED}"]


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_changes_of_each_kind(kind: str, tmp_path: Path) -> None:
    outcomes, wrong = tried([kind], MANY, tmp_path)
    print(kind, dict(outcomes))
    assert not wrong, wrong[:5]
    assert outcomes.total() == MANY
