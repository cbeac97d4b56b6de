"""Going on from checkpoints that were changed at random: a run that goes on, or one line."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from sparring.errors import SparringError
from sparring.store.manifest import MANIFEST
from sparring.training.train import resume
from store.fuzz_checkpoints import mutate, mutate_tensors
from store.poison_helpers import promise, write
from training.run_helpers import trained

UPDATES = 3
ALGOS = ("ppo", "dqn")


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that nobody has touched."""
    folder = tmp_path_factory.mktemp("whole")
    return {algo: trained(folder / algo, algo=algo, updates=UPDATES).run for algo in ALGOS}


def spoil(by: random.Random, run: Path) -> None:
    """Change what the newest checkpoint says or holds, games apart, and make its hashes again."""
    path = max((run / "checkpoints").glob("0*"))
    manifest = json.loads((path / MANIFEST).read_bytes())
    if by.random() < 0.4:
        name = by.choice([f"{group}.safetensors" for group in manifest["groups"]])
        data = mutate_tensors(by, (path / name).read_bytes())
        (path / name).write_bytes(data)
        manifest["files"][name] = promise(data)
    else:
        mutate(by, manifest["meta"] if by.random() < 0.8 else manifest)
    write(path, manifest)


def tried(algo: str, first: int, last: int, whole: Path, folder: Path) -> tuple[int, int]:
    """Return how many runs went on, and how many were refused in one line."""
    went_on = refused = 0
    for number in range(first, last):
        run = folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(whole, run)
        spoil(random.Random(f"{algo} {number}"), run)
        try:
            resume(run, updates=UPDATES + 1, quiet=True)
            went_on += 1
        except SparringError as wrong:
            assert "\n" not in str(wrong), (number, wrong)
            refused += 1
    return went_on, refused


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
@pytest.mark.parametrize("algo", ALGOS)
def test_changed_checkpoints_go_on_or_are_refused(
    algo: str, wholes: dict[str, Path], tmp_path: Path
) -> None:
    went_on, refused = tried(algo, 0, 12, wholes[algo], tmp_path)
    assert went_on and refused


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
@pytest.mark.parametrize("algo", ALGOS)
def test_three_hundred_changed_checkpoints(
    algo: str, wholes: dict[str, Path], tmp_path: Path
) -> None:
    print(algo, tried(algo, 0, 300, wholes[algo], tmp_path))
