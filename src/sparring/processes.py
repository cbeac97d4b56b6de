"""Processes that work for this one: what they say, the memory that they share, how they end.

A `Child` is the process as whoever started it sees it, a `Parent` is the other side. The memory has
no name, so that nothing is left behind however a process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import math
import mmap
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from sparring import trusted
from sparring.errors import SparringError
from sparring.messages import Channel, Message, checked, refusal

PR_SET_PDEATHSIG = 1
F_SETSIG = 10
LIFELINE = "SPARRING_LIFELINE"
"""Variable of a process of `start_python`: the end of a pipe that closes with its parent."""
LAST_WORDS = 4000
"""Bytes of what a process has printed that are kept for its end."""
MAX_WORDS = 1 << 20
"""Bytes that it may have printed before the file is emptied: a disk is not filled by words."""
CRASHED = "Fatal Python error"
FRAME = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)
"""What Python writes when a process crashes: the innermost call comes first."""
LOOK_S = 1.0
"""Seconds after which a wait looks whether a process has ended, where no file tells."""
CLOSE_S = 5.0
"""Seconds that a process may take to end that has nothing more to say."""
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


class GoneError(SparringError):
    """A process has ended that was to answer; the text tells its last words."""


class Child:
    """A process of Python that works for this one. Messages go to and fro; it ends with this one.

    It is `python -m module PARENT SOCKET [FILE ...]` and takes its side with `Parent`. What it
    prints is kept for its last words.
    """

    def __init__(self, module: str, *, fds: Sequence[int] = (), **options: Any) -> None:
        """Start it. fds: files that it inherits. options: of `start_python`, and of `Popen`."""
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        self._said = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        # It writes at the end wherever we read, and also after we have emptied the file.
        fcntl.fcntl(self._said, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
        try:
            self.process = start_python(
                module,
                [str(word) for word in (os.getpid(), theirs.fileno(), *fds)],
                fds=(theirs.fileno(), *fds),
                **{"stdin": subprocess.DEVNULL, "stdout": self._said, **options},
                stderr=self._said,
            )
        except BaseException:
            mine.close()
            self._said.close()
            raise
        finally:
            theirs.close()
        self.pid, self.channel = self.process.pid, Channel(mine)
        self.gone = False
        """Whether it has said everything that it ever will."""
        self.tail = b""
        """The end of what it has printed, as far as it was overheard."""
        self._at, self._rest = 0, b""
        self._heard: deque[Message] = deque()
        self._watched = watched(self.pid)
        files = (self.channel, self._said, self._watched)
        self._release = weakref.finalize(self, let_go, self.process, *files)
        self.tell(Message("path", {"path": [str(place) for place in sys.path]}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def tell(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Say something, without waiting. That it is gone is noticed when it is listened to."""
        if self._release.alive:
            self.channel.send(message, fds)

    def hear(self, wait_s: float = 0.0) -> list[Message]:
        """Return what it has said; wait so long for something."""
        if not self._release.alive:
            return []
        if wait_s > 0:
            ready([self], wait_s)
        self.channel.flush()
        ended = self.process.poll() is not None  # asked first, so that nothing is read too early
        while self.channel.read():
            pass
        self.gone = self.channel.closed or ended
        return self.channel.messages()

    def answer(self, timeout_s: float = math.inf) -> Message:
        """Wait for the next thing that it says, `TimeoutError` if it takes too long."""
        until = time.monotonic() + timeout_s
        while not self._heard:
            if self.gone:
                raise GoneError(self.last_words())
            if (left := until - time.monotonic()) <= 0:
                raise TimeoutError
            self._heard.extend(self.hear(min(left, LOOK_S)))
        return self._heard.popleft()

    def __iter__(self) -> Iterator[Message]:
        """Yield what it says until it ends."""
        while self._heard or not self.gone:
            self._heard.extend(self.hear(LOOK_S))
            while self._heard:
                yield self._heard.popleft()

    def ask(self, message: Message, timeout_s: float = math.inf) -> Message:
        """Say something and wait for the answer; what it refuses is raised here."""
        self.tell(message)
        try:
            said = self.answer(timeout_s)
        except BaseException:
            self.end()  # its answer would be taken for that of the next question
            raise
        return checked(said)

    def overhear(self) -> bytes:
        """Return what it has printed since the last time."""
        if not self._release.alive:
            raw, self._rest = self._rest, b""
            return raw
        file = self._said.fileno()
        raw = os.pread(file, os.fstat(file).st_size - self._at, self._at)
        self._at += len(raw)
        self.tail = (self.tail + raw)[-LAST_WORDS:]
        if self._at > MAX_WORDS:
            os.ftruncate(file, 0)
            self._at = 0
        return raw

    def end(self, patience_s: float = 0.0) -> None:
        """End it and all that it has started; so long it may take to end by itself."""
        if not self._release.alive:
            return
        self.channel.close()  # this alone ends one that listens
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        end_group(self.process)
        self._rest, self.gone = self.overhear(), True
        self._release()

    @property
    def ended(self) -> str:
        """How it has ended, in words."""
        code = self.process.returncode
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """End it if it lingers, and say why it has ended unasked."""
        self.end(CLOSE_S)
        if self.process.returncode == -signal.SIGKILL:
            return "its process was killed, as happens when memory runs out"
        at, last = self.last_line()
        return f"its process ended with {self.ended}: {f'in {at}' if at else last or 'no word'}"

    def last_line(self) -> tuple[str, str]:
        """Where in somebody's code it crashed, if it did, and the last line that it printed."""
        text = self.tail.decode(errors="replace").strip()
        _, crashed, frames = text.rpartition(CRASHED)
        place = FRAME.search(frames) if crashed else None
        at = f"{Path(place[1]).name}:{place[2]}" if place else ""
        return at, "" if crashed or not text else text.splitlines()[-1]


def let_go(process: subprocess.Popen[bytes], channel: Channel, said: IO[bytes], fd: int) -> None:
    """Leave nothing of a process."""
    channel.close()
    end_group(process)
    said.close()
    if fd >= 0:
        os.close(fd)


def watched(pid: int) -> int:
    """A file that can be read when a process has ended, -1 where there are none of these."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


AnyChild = TypeVar("AnyChild", bound=Child)


def ready(children: Iterable[AnyChild], wait_s: float) -> list[AnyChild]:
    """Wait until some of them have said something or ended, so long at most; return those."""
    poll, of_file = select.poll(), {}
    for child in children:
        if child._release.alive:
            sends = select.POLLOUT if child.channel.waits else 0
            poll.register(child.channel.socket, select.POLLIN | sends)
            of_file[child.channel.socket.fileno()] = child
            if child._watched >= 0:
                poll.register(child._watched, select.POLLIN)
                of_file[child._watched] = child
    found = poll.poll(min(max(wait_s, 0.0), LOOK_S) * 1000)
    return list({of_file[fd].pid: of_file[fd] for fd, _ in found}.values())


class Parent:
    """The process that has started this one as its `Child`."""

    def __init__(self) -> None:
        """Read the command line; from now on this process ends with the other one."""
        parent, fd, *self.fds = map(int, sys.argv[1:])
        follow_parent(parent)
        faulthandler.enable()
        for one in (fd, *self.fds):  # what is started here shall not hold them
            os.set_inheritable(one, False)
        self.channel = Channel(socket.socket(fileno=fd))
        self._heard: deque[Message] = deque()
        sys.path[:] = next(self).facts["path"]

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while not self._heard:
            if self.channel.closed:
                raise StopIteration
            self.channel.read()
            self._heard.extend(self.channel.messages())
        return self._heard.popleft()

    def tell(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Say something."""
        self.channel.send(message, fds)

    def listen(self, hear: Callable[[Message], Any]) -> None:
        """Hear messages in a thread; its end ends this process, whatever is done here."""

        def run() -> None:
            for message in self:
                hear(message)
            end_with_children()

        threading.Thread(target=run, name="parent", daemon=True).start()

    def serve(self, answer: Callable[[Message], Message]) -> None:
        """Answer one message after the other until nobody asks; what is refused is an answer."""
        for message in self:
            try:
                said = answer(message)
            except SparringError as wrong:
                said = refusal(wrong)
            self.tell(said)


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
    # Opened anew: who is signaled belongs to the opened file, which others have inherited too.
    mine = os.open(f"/proc/self/fd/{inherited}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(int(inherited))
    fcntl.fcntl(mine, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(mine, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(mine, fcntl.F_SETFL, fcntl.fcntl(mine, fcntl.F_GETFL) | os.O_ASYNC)
