"""Child processes: messages to and from them, shared memory, and how they end.

A parent process holds a `Child`, and the child process a `Parent`. Shared memory has no name, so
that nothing is left behind however a process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
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
from sparring.messages import Channel, Message, error_reply, raise_if_error

if sys.platform != "win32":  # where no child processes are started yet
    import fcntl

PR_SET_PDEATHSIG = 1
F_SETSIG = 10
LIFELINE = "SPARRING_LIFELINE"
"""Environment variable of a child: the read end of a pipe that closes when its parent ends."""
OUTPUT_TAIL_BYTES = 4000
"""Last bytes of a process's output that are kept, to report how it ended."""
MAX_OUTPUT_BYTES = 1 << 20
"""Size from which the file with a process's output is emptied, so that it never fills the disk."""
CRASHED = "Fatal Python error"
FRAME = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)
"""A stack frame as faulthandler prints it when a process crashes: the innermost call is first."""
LOOK_S = 1.0
"""Longest single wait in seconds, after which a wait checks whether a process has ended."""
CLOSE_S = 5.0
"""Seconds that a process may take to end after its socket is closed."""
ALIGNMENT = 64
"""Arrays begin at multiples of this many bytes, so that no two share a cache line."""

Shapes = Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]
"""Dtypes and shapes of arrays by name."""


class SharedArrays:
    """Named arrays in memory that several processes share. Unwritten pages take no memory."""

    def __init__(self, shapes: Shapes, fd: int | None = None) -> None:
        """Allocate the memory, or map what another process allocated with the same shapes."""
        offsets, size = {}, 0
        for name, (dtype, shape) in shapes.items():
            offsets[name] = size
            num_bytes = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
            size += -(-num_bytes // ALIGNMENT) * ALIGNMENT
        self.size = max(size, ALIGNMENT)
        self.fd = make_memory(self.size) if fd is None else fd
        """File descriptor that a process inherits to map the same memory."""
        self._memory = mmap.mmap(self.fd, self.size)
        self._arrays: dict[str, npt.NDArray[Any]] = {
            name: np.ndarray(shape, dtype, self._memory, offsets[name])
            for name, (dtype, shape) in shapes.items()
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def items(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._arrays

    def close(self) -> None:
        """Close the descriptor. The memory is freed with the last of its arrays."""
        self._arrays = {}
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def make_memory(size: int) -> int:
    """Return a nameless file of this many zero bytes."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("sparring")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def start_python(
    module: str,
    args: Sequence[str],
    *,
    fds: Sequence[int] = (),
    threads: int = 1,
    variables: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start `python -m module` in its own process group: Ctrl-C reaches only this process.

    fds: files that it inherits, under the same numbers.
    variables: environment variables to add to those of this process.
    """
    added = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    added[LIFELINE] = str(lifeline())
    return subprocess.Popen(
        [sys.executable, "-m", module, *args],
        pass_fds=(*fds, lifeline()),
        env={**os.environ, **trusted.environment(), **added, **(variables or {})},
        process_group=0,
        **options,
    )


@cache
def lifeline() -> int:
    """Return the read end of a pipe whose write end stays open until this process ends."""
    read_end, _ = os.pipe()
    return read_end


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of `start_python` and its children, even if it has ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class ProcessEndedError(SparringError):
    """A process ended before it answered; the text says how."""


class Child:
    """A Python process that works for this one. They exchange messages; it ends with this one.

    The command is `python -m module PARENT_PID SOCKET_FD [FD ...]`; the module creates a `Parent`.
    The end of its output is kept, to report a crash.
    """

    def __init__(self, module: str, *, fds: Sequence[int] = (), **options: Any) -> None:
        """Start it. fds: files that it inherits. options: of `start_python` and `Popen`."""
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        # The child always appends, wherever this process reads, and also after truncation.
        fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
        try:
            self.process = start_python(
                module,
                [str(arg) for arg in (os.getpid(), theirs.fileno(), *fds)],
                fds=(theirs.fileno(), *fds),
                **{"stdin": subprocess.DEVNULL, "stdout": self._output, **options},
                stderr=self._output,
            )
        except BaseException:
            mine.close()
            self._output.close()
            raise
        finally:
            theirs.close()
        self.pid, self.channel = self.process.pid, Channel(mine)
        self.has_ended = False
        """Whether no further message will come."""
        self.output_tail = b""
        """The end of its output, as far as `read_output` has read it."""
        self._offset, self._unread = 0, b""
        self._received: deque[Message] = deque()
        self._pidfd = open_pidfd(self.pid)
        files = (self.channel, self._output, self._pidfd)
        self._release = weakref.finalize(self, release, self.process, *files)
        self.send(Message("path", {"path": [str(folder) for folder in sys.path]}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Send a message without waiting. Whether the process has ended shows at `receive`."""
        if self._release.alive:
            self.channel.send(message, fds)

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """Return the messages received so far; wait up to `wait_s` seconds for one."""
        if not self._release.alive:
            return []
        if wait_s > 0:
            wait_any([self], wait_s)
        self.channel.flush()
        ended = self.process.poll() is not None  # polled first, so that no last message is missed
        while self.channel.read():
            pass
        self.has_ended = self.channel.closed or ended
        return self.channel.messages()

    def next_message(self, timeout_s: float = math.inf) -> Message:
        """Wait for the next message; raises `TimeoutError` or `ProcessEndedError`."""
        until = time.monotonic() + timeout_s
        while not self._received:
            if self.has_ended:
                raise ProcessEndedError(self.exit_reason())
            if (left := until - time.monotonic()) <= 0:
                raise TimeoutError
            self._received.extend(self.receive(min(left, LOOK_S)))
        return self._received.popleft()

    def __iter__(self) -> Iterator[Message]:
        """Yield messages until the process ends."""
        while self._received or not self.has_ended:
            self._received.extend(self.receive(LOOK_S))
            while self._received:
                yield self._received.popleft()

    def request(self, message: Message, timeout_s: float = math.inf) -> Message:
        """Send a message and wait for the reply; an error reply is raised here."""
        self.send(message)
        try:
            reply = self.next_message(timeout_s)
        except BaseException:
            self.end()  # a late reply would be taken for that of the next request
            raise
        return raise_if_error(reply)

    def read_output(self) -> bytes:
        """Return what the process has printed since the last call."""
        if not self._release.alive:
            raw, self._unread = self._unread, b""
            return raw
        file = self._output.fileno()
        raw = os.pread(file, os.fstat(file).st_size - self._offset, self._offset)
        self._offset += len(raw)
        self.output_tail = (self.output_tail + raw)[-OUTPUT_TAIL_BYTES:]
        if self._offset > MAX_OUTPUT_BYTES:
            os.ftruncate(file, 0)
            self._offset = 0
        return raw

    def end(self, patience_s: float = 0.0) -> None:
        """End it and its children; it may take `patience_s` seconds to end by itself."""
        if not self._release.alive:
            return
        self.channel.close()  # a process that reads messages ends by itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        kill_group(self.process)
        self._unread, self.has_ended = self.read_output(), True
        self._release()

    @property
    def exit_status(self) -> str:
        """How it ended: "signal SIGKILL", or "exit code 1"."""
        code = self.process.returncode
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def exit_reason(self) -> str:
        """End it if it still runs, and say why it ended early."""
        self.end(CLOSE_S)
        if self.process.returncode == -signal.SIGKILL:
            return "its process was killed, as happens when memory runs out"
        location, last = self.crash_location()
        why = f"in {location}" if location else last or "it printed nothing"
        return f"its process ended with {self.exit_status}: {why}"

    def crash_location(self) -> tuple[str, str]:
        """File and line of user code that crashed, or else the last line of the output."""
        text = self.output_tail.decode(errors="replace").strip()
        _, crashed, frames = text.rpartition(CRASHED)
        frame = FRAME.search(frames) if crashed else None
        location = f"{Path(frame[1]).name}:{frame[2]}" if frame else ""
        return location, "" if crashed or not text else text.splitlines()[-1]


def release(process: subprocess.Popen[bytes], channel: Channel, output: IO[bytes], fd: int) -> None:
    channel.close()
    kill_group(process)
    output.close()
    if fd >= 0:
        os.close(fd)


def open_pidfd(pid: int) -> int:
    """File descriptor that is readable once a process has ended; -1 where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


AnyChild = TypeVar("AnyChild", bound=Child)


def wait_any(children: Iterable[AnyChild], wait_s: float) -> list[AnyChild]:
    """Wait until some children have sent a message or ended; return those."""
    poll, by_fd = select.poll(), {}
    for child in children:
        if child._release.alive:
            sends = select.POLLOUT if child.channel.has_unsent else 0
            poll.register(child.channel.socket, select.POLLIN | sends)
            by_fd[child.channel.socket.fileno()] = child
            if child._pidfd >= 0:
                poll.register(child._pidfd, select.POLLIN)
                by_fd[child._pidfd] = child
    found = poll.poll(min(max(wait_s, 0.0), LOOK_S) * 1000)
    return list({by_fd[fd].pid: by_fd[fd] for fd, _ in found}.values())


class Parent:
    """The process that started this one as its `Child`."""

    def __init__(self) -> None:
        """Read the command line; from now on this process ends with its parent."""
        parent, fd, *self.fds = map(int, sys.argv[1:])
        exit_with_parent(parent)
        faulthandler.enable()
        for one in (fd, *self.fds):  # children of this process must not inherit them
            os.set_inheritable(one, False)
        self.channel = Channel(socket.socket(fileno=fd))
        self._received: deque[Message] = deque()
        sys.path[:] = next(self).payload["path"]

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while not self._received:
            if self.channel.closed:
                raise StopIteration
            self.channel.read()
            self._received.extend(self.channel.messages())
        return self._received.popleft()
        return self._heard.popleft()

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        self.channel.send(message, fds)

    def listen(self, handle: Callable[[Message], Any]) -> None:
        """Handle messages in a thread; this process ends when the parent closes the socket."""

        def run() -> None:
            for message in self:
                handle(message)
            exit_with_children()

        threading.Thread(target=run, name="parent", daemon=True).start()

    def serve(self, respond: Callable[[Message], Message]) -> None:
        """Reply to messages one by one until the parent closes the socket; errors are replies."""
        for message in self:
            try:
                reply = respond(message)
            except SparringError as wrong:
                reply = error_reply(wrong)
            self.send(reply)


def exit_with_children() -> NoReturn:
    """End this process at once, and its children, such as the simulator of an environment.

    Kills the process group that `start_python` made; any other group is left alone.
    """
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def exit_with_parent(parent: int) -> None:
    """End this process when its parent ends, also if the parent is killed."""

    def look(*_: object) -> None:
        # Linux also signals when only the thread that started this process ended.
        if os.getppid() != parent:
            exit_with_children()

    if sys.platform == "linux":
        signal.signal(signal.SIGUSR1, look)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
        kill_with_lifeline()
    look()  # the parent may have died before the signal was requested


def kill_with_lifeline() -> None:
    """Have the kernel kill this group when the parent ends, also while C code runs.

    A Python signal handler runs only after C code returns; SIGKILL needs no handler.
    """
    inherited = os.environ.pop(LIFELINE, "")
    if not inherited or os.getpgrp() != os.getpid():
        return
    # Opened again: the signal's target belongs to the open file, which other processes inherited.
    mine = os.open(f"/proc/self/fd/{inherited}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(int(inherited))
    fcntl.fcntl(mine, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(mine, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(mine, fcntl.F_SETFL, fcntl.fcntl(mine, fcntl.F_GETFL) | os.O_ASYNC)
