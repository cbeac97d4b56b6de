"""Processes that work for this one: memory that they share, and how they end together.

The memory has no name, so that nothing is left behind however a process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import IO, Any, NoReturn

import numpy as np
import numpy.typing as npt

from sparring import trusted

PR_SET_PDEATHSIG = 1
F_SETSIG = 10
LIFELINE = "SPARRING_LIFELINE"
"""Variable of a process of `start_python`: the end of a pipe that closes with its parent."""
LAST_WORDS = 2000
"""Characters of a dead process that are looked at."""
ALIGNMENT = 64
"""Arrays begin at multiples of this many bytes: on cache lines of their own."""

Shapes = Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]
"""Kinds and shapes of arrays by name."""


class SharedArrays:
    """Named arrays in memory that several processes see. What is never written takes no room."""

    def __init__(self, shapes: Shapes, fd: int | None = None) -> None:
        """Make the memory, or map what another process made with the same shapes."""
        places, size = {}, 0
        for name, (kind, shape) in shapes.items():
            places[name] = size
            wide = np.dtype(kind).itemsize * int(np.prod(shape, dtype=np.int64))
            size += -(-wide // ALIGNMENT) * ALIGNMENT
        self.size = max(size, ALIGNMENT)
        self.fd = make_memory(self.size) if fd is None else fd
        """To be inherited by the process that is to share it."""
        self._memory = mmap.mmap(self.fd, self.size)
        self._arrays: dict[str, npt.NDArray[Any]] = {
            name: np.ndarray(shape, kind, self._memory, places[name])
            for name, (kind, shape) in shapes.items()
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def items(self) -> Mapping[str, npt.NDArray[Any]]:
        """All arrays by name."""
        return self._arrays

    def close(self) -> None:
        """Let go of it. The memory itself goes when nobody has any of its arrays any more."""
        self._arrays = {}
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def make_memory(size: int) -> int:
    """Return a file without a name, of so many bytes that are 0."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("sparring")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def start_python(
    module: str,
    words: Sequence[str],
    *,
    fds: Sequence[int] = (),
    threads: int = 1,
    variables: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start `python -m module` in a process group of its own: Ctrl-C is for this process alone.

    fds: files that it inherits, under the same numbers.
    variables: of its environment, beside those of this process.
    """
    room = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    room[LIFELINE] = str(lifeline())
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        pass_fds=(*fds, lifeline()),
        env={**os.environ, **trusted.variables(), **room, **(variables or {})},
        process_group=0,
        **options,
    )


@cache
def lifeline() -> int:
    """Return the end of a pipe whose other end stays open until this process ends."""
    theirs, _ = os.pipe()
    return theirs


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process of `start_python` and what it has started, also if it has ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    """Wait for a process of `start_python` that ends unasked, and say why. said: its stderr."""
    code = process.wait()
    said.seek(0)
    lines = said.read().decode(errors="replace")[-LAST_WORDS:].strip().splitlines()
    if code == -signal.SIGKILL:
        return "its process was killed, as happens when memory runs out"
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"its process ended with {how}: {lines[-1] if lines else 'no word'}"


def answering() -> Callable[[Mapping[str, Any]], None]:
    """Take standard output for answers alone, a JSON object per line; return what writes one.

    Whatever a library prints from now on goes to standard error, and looks like no answer.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(message: Mapping[str, Any]) -> None:
        answers.write(json.dumps(message, allow_nan=False) + "\n")
        answers.flush()

    return tell


def end_with_children() -> NoReturn:
    """End this process at once, and what it has started, such as the simulator of an env.

    That is the group which `start_python` has made; another one is left alone.
    """
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def follow_parent(parent: int) -> None:
    """End when the process that started this one does, also if it is killed."""

    def look(*_: object) -> None:
        # Linux also signals when only the thread that started us ended; then we stay.
        if os.getppid() != parent:
            end_with_children()

    if sys.platform == "linux":
        signal.signal(signal.SIGUSR1, look)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
        hold_lifeline()
    look()  # it may have died before we asked for the signal


def hold_lifeline() -> None:
    """Have the system kill this group when the parent ends, also while Python hears nothing.

    A handler of Python's waits for C code to come back; what the system sends needs nobody.
    """
    inherited = os.environ.pop(LIFELINE, "")
    if not inherited or os.getpgrp() != os.getpid():
        return
    # Opened anew: who is signalled belongs to the opened file, which others have inherited too.
    mine = os.open(f"/proc/self/fd/{inherited}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(int(inherited))
    fcntl.fcntl(mine, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(mine, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(mine, fcntl.F_SETFL, fcntl.fcntl(mine, fcntl.F_GETFL) | os.O_ASYNC)
