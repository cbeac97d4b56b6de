"""What tests of several folders need."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparring import trusted

OWN = ("own_*.py", "*_envs.py", "reinforce.py", "rememberer.py")
"""Modules of tests that have environments, networks and learners of somebody's own."""


def share_cores() -> None:
    """Keep test processes that run side by side out of each other's way.

    Each has its share of the cores, two at least, and torch one thread unless a training asks for
    more. Threads that wait do not spin: on cores that are taken, spinning costs minutes.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if hasattr(os, "sched_setaffinity"):
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        cores = sorted(os.sched_getaffinity(0))
        first, share = number * len(cores) // count, max(2, len(cores) // count)
        os.sched_setaffinity(0, {cores[(first + i) % len(cores)] for i in range(share)})


if "PYTEST_XDIST_WORKER" in os.environ:  # before anything loads torch
    share_cores()


gc.disable()  # until all tests are collected: what they are made of stays


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `few`, that many sets of parameters are quick, spread over all; others slow.

    One that is named alone on the command line is the only one of its function, so it is quick.
    """
    functions: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and isinstance(item, pytest.Function):
            functions.setdefault((item.path, item.originalname), []).append(item)
    for found in functions.values():
        marker = found[0].get_closest_marker("few")
        assert marker is not None
        (count,) = marker.args
        quick = {at * (len(found) - 1) // max(1, count - 1) for at in range(count)}
        for at, item in enumerate(found):
            if at not in quick:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Take what was loaded for all tests out of what each collection of garbage looks at."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the end of the process free everything, as it does without tests."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Leave torch as a test found it: trainings set how many threads it has."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None and "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests run in a folder of their own: what was trained in the checkout is nothing to them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("folder"))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What is measured of this machine is kept for these tests alone, and for their processes."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARRING_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def own_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is named in tests is remembered for them alone; their own modules are named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trusted.STATE, str(tmp_path_factory.mktemp("state")))
        tests = Path(__file__).parent
        for file in (file for kind in OWN for file in tests.rglob(kind)):
            module = ".".join(file.relative_to(tests).with_suffix("").parts)
            for name in re.findall(r"^(?:class |def )?(\w+)", file.read_text(), re.MULTILINE):
                trusted.allow(f"{module}:{name}", f"{file}:{name}")
        for key, value in trusted.environment().items():
            patch.setenv(key, value)
        yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte, to be filled up or made read-only."""
    if not shutil.which("mount"):
        pytest.skip("there is no mount program")
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"needs root to mount a small disk: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
