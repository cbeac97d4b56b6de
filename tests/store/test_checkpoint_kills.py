"""Checkpoints of a process that is killed while it saves, replaces and prunes them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.store import checkpoint
from sparring.store.segments import SEGMENTS, StoredSegment

CHILD = """
import os, signal, sys
from pathlib import Path
import torch
from sparring.store import checkpoint

def content(number):
    net = {"w": torch.full((100, 100), float(number)), "b": torch.arange(7) + number}
    blobs = {"games.bin": number.to_bytes(8, "little") * 2_000}
    segments = {str(n): lambda n=n: {"rows": torch.full((50,), n)} for n in parts_of(number)}
    tensors = {"net": net, "optimizer": {"m": net["w"]}}
    return dict(tensors=tensors, blobs=blobs, meta={"n": number}, segments=segments)

def parts_of(number):
    return range(max(number - 2, 0), number + 1)

def save(saver, number):
    saver.submit(number, **content(number))
    saver.wait()

def die_at(call):
    # Count what changes the disk; be gone right before one of these calls.
    left = [call]
    def counted(honest):
        def wrapper(*args, **named):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return honest(*args, **named)
        return wrapper
    for name in ("fsync", "rename", "replace", "mkdir", "write", "rmdir", "unlink"):
        setattr(os, name, counted(getattr(os, name)))

print("ready", flush=True)
for line in sys.stdin:
    folder, number, call = line.split()
    folder, number, call = Path(folder), int(number), int(call)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("gone", flush=True)
        continue
    print("child", os.getpid(), flush=True)
    if call >= 0:
        die_at(call)
    newest = checkpoint.latest(folder)
    known = checkpoint.load(newest).segments if newest else {}
    saver = checkpoint.BackgroundSaver(folder, known)
    while True:
        number += 1
        save(saver, number)
        print(f"saved {number}\\n", end="", flush=True)
        if number % 3 == 0:
            save(saver, number)  # in place of what was announced
        checkpoint.prune(folder, keep=3)
        if call >= 0 and number == 7:
            os._exit(0)
"""


@pytest.fixture(scope="module")
def forker() -> Iterator[tuple[subprocess.Popen[str], Callable[[], list[str]]]]:
    """A process that forks savers on demand: torch is imported once."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None

    def hear() -> list[str]:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line, "the saver ended by itself"
        return line

    assert hear() == ["ready"]
    yield process, hear
    process.stdin.close()
    process.wait(30)


def tell(process: subprocess.Popen[str], folder: Path, number: int, call: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{folder} {number} {call}\n")
    process.stdin.flush()


def segments_of(loaded: checkpoint.Checkpoint) -> list[tuple[str, StoredSegment]]:
    return [
        (name, read) for name, read in loaded.segments.items() if isinstance(read, StoredSegment)
    ]


def check_after_kill(folder: Path, said: int) -> int:
    """Everything that was announced is there, all that is there is whole, the rest is gone."""
    newest = checkpoint.latest(folder)
    checkpoint.remove_unused_segments(folder)
    found = checkpoint.checkpoint_numbers(folder)
    rest = {path.name for path in folder.iterdir() if not path.name.isdecimal()}
    assert rest <= {".lock", SEGMENTS}
    if newest is None:
        assert said == 0
        return 0
    needed: set[str] = set()
    for number in found:
        loaded = checkpoint.load(folder / f"{number:08d}")
        assert loaded.meta == {"n": number}
        assert loaded.tensors["net"]["w"].unique().tolist() == [number]
        assert loaded.blobs["games.bin"] == number.to_bytes(8, "little") * 2_000
        parts = {int(part): read()["rows"].unique().tolist() for part, read in segments_of(loaded)}
        assert parts == {part: [part] for part in range(max(number - 2, 0), number + 1)}
        needed |= {read.file_name for _, read in segments_of(loaded)}
    assert {path.name for path in (folder / SEGMENTS).iterdir()} == needed
    assert found == list(range(found[0], found[-1] + 1))
    assert found[-1] in (said, said + 1)
    assert len(found) >= min(3, said)
    return found[-1]


KILLS = 20


def test_kills_at_any_moment_lose_nothing_that_was_saved(forker: Any, tmp_path: Path) -> None:
    process, hear = forker
    folder = tmp_path / "checkpoints"
    lots = random.Random(1)
    newest = 0
    for _ in range(KILLS):
        tell(process, folder, newest, -1)
        word, pid = hear()
        assert word == "child"
        said = newest
        for _ in range(lots.randrange(1, 4)):
            said = int(hear()[1])
        time.sleep(lots.random() * 0.03)  # the moment of death is what is varied
        os.kill(int(pid), signal.SIGKILL)
        while (line := hear()) != ["gone"]:
            said = int(line[1])
        newest = check_after_kill(folder, said)
    assert newest >= KILLS


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_before_every_single_call_loses_nothing(
    forker: Any, tmp_path: Path, step: int
) -> None:
    """From the same three checkpoints on: save, replace, prune and save; die one call later."""
    process, hear = forker
    folder = tmp_path / "checkpoints"
    for number in (3, 4, 5):
        net = {"w": torch.full((100, 100), float(number))}
        blobs = {"games.bin": number.to_bytes(8, "little") * 2_000}
        parts = range(max(number - 2, 0), number + 1)
        checkpoint.save(
            folder,
            number,
            tensors={"net": net},
            blobs=blobs,
            meta={"n": number},
            segments={str(n): lambda n=n: {"rows": torch.full((50,), n)} for n in parts},
        )
    folder.rename(tmp_path / "start")
    call, said = 0, 0
    while said < 7:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "start", folder)
        tell(process, folder, 5, call)
        assert hear()[0] == "child"
        said = 5
        while (line := hear()) != ["gone"]:
            said = int(line[1])
        check_after_kill(folder, said)
        call += step
    assert call > 50
