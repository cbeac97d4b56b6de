"""Stacks of a training: py-spy looks from outside, and where it may not, a thread from within.

py-spy writes speedscope's format (https://github.com/jlfwong/speedscope/wiki). A thread within sees
Python alone, and what it sees it slows down a little, since it needs the interpreter.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from sparring.errors import SparringError
from sparring.speed.evidence import Frame, Stacks, processes_of
from sparring.usage import thread_seconds

NAME = "py-spy"
INSTALL = "py-spy is not installed: pip install 'sparring[profile]'"
EXTRA_S = 60.0
"""How much longer than asked it may take: reading the symbols of torch takes seconds."""
FORBIDDEN = ("permission denied", "operation not permitted", "ptrace", "requires root")
UNWINDING = ("native", "unwind")

THREAD = re.compile(r'(?:Process (\d+) )?Thread (0x[0-9a-f]+|\d+)(?: "(.*)")?$')
"""What py-spy calls a profile."""
ABOVE = re.compile(r"(?:process|thread) .*")
"""Frames that are no functions: py-spy puts processes and threads in front of the stacks."""
UNKNOWN = re.compile(r"0x[0-9a-f]+$")
NO_SYMBOL = "(no symbol)"
KEPT = re.compile(r"\(anonymous namespace\)|operator(?:\(\)|<=>|<<=?|>>=?|<=?|>=?|->\*?)")
"""What looks like types and is part of a name."""
STANDS_FOR = 0xE000
"""Letters from here on belong to nobody, and stand for what is kept."""
TYPES = re.compile(r"<[^<>()]*>|\([^<>()]*\)")

TASKS = Path("/proc/self/task")
WORKED = 0.2
"""A thread was at work if it had the processor for this share of the time between two looks."""
WAITS = ("threading.py", "selectors.py", "queue.py", "socket.py", "subprocess.py")
"""Where Python waits, for systems that do not say what a thread has used."""


class CannotLookError(SparringError):
    """It cannot look at the process; the text says why and what to do."""


class NoNativeError(CannotLookError):
    """It cannot look into native code here."""


def find_spy() -> str | None:
    """Return where py-spy is: beside this Python, or in the PATH."""
    return shutil.which(NAME, path=str(Path(sys.executable).parent)) or shutil.which(NAME)


class Spy:
    """py-spy at work. Start it, do something else, ask for what it has seen."""

    def __init__(
        self, pid: int, seconds: float, rate: int, *, native: bool, pausing: bool = True
    ) -> None:
        """Begin to look at a process and at those that it has started.

        pausing: stop it for the moment of every look; otherwise some stacks are torn and left out.
        """
        program = find_spy()
        if program is None:
            raise CannotLookError(INSTALL)
        self.pid, self.rate = pid, rate
        self._said = b""
        self._folder = tempfile.TemporaryDirectory(prefix="sparring-spy-")
        self._file = Path(self._folder.name) / "stacks.json"
        words = [program, "record", "--pid", str(pid), "--subprocesses", "--threads"]
        words += ["--format", "speedscope", "--output", str(self._file)]
        # It counts whole seconds, so it is told to end by us.
        self._before = thread_seconds(processes_of(pid))
        words += ["--idle"] * bool(self._before)  # whoever waits is left out by us
        words += ["--rate", str(rate), "--duration", str(int(seconds + EXTRA_S) + 1)]
        self._process = subprocess.Popen(
            [*words, *["--native"] * native, *["--nonblocking"] * (not native and not pausing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def __enter__(self) -> Spy:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            # Asked first: one that is killed could leave the process that it reads stopped.
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        self._folder.cleanup()

    def wait_begun(self) -> None:
        """Wait until it looks: it says so, or it ends."""
        assert self._process.stdout
        while line := self._process.stdout.readline():
            self._said += line
            if b"Sampling" in line:
                return

    @property
    def ended(self) -> bool:
        """Whether it has given up, or the process has ended."""
        return self._process.poll() is not None

    def stacks(self) -> Stacks:
        """End looking and return what was seen."""
        after = thread_seconds(processes_of(self.pid))
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        try:
            self._said += self._process.communicate(timeout=EXTRA_S)[0]
        except subprocess.TimeoutExpired:
            raise CannotLookError("py-spy did not end; try again with --native off") from None
        try:
            plain: Mapping[str, Any] = json.loads(self._file.read_text())
        except (OSError, ValueError):
            raise why_not(self._said.decode(errors="replace")) from None
        used = {key: spent - self._before.get(key, 0.0) for key, spent in after.items()}
        return read_stacks(plain, self.rate, self.pid, used if self._before else None)


def why_not(said: str) -> CannotLookError:
    low = said.lower()
    last = " ".join((said.strip().splitlines() or ["it said nothing"])[-1].split())
    if any(word in low for word in FORBIDDEN):
        return CannotLookError(f"py-spy may not look at the process ({last}); {permission()}")
    if any(word in low for word in UNWINDING):
        return NoNativeError(f"py-spy cannot look into native code here: {last}")
    return CannotLookError(f"py-spy has seen nothing: {last}")


def permission(scope: Path = Path("/proc/sys/kernel/yama/ptrace_scope")) -> str:
    if sys.platform == "darwin":
        return "on macOS it needs root: run it with sudo"
    if Path("/.dockerenv").exists() or os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "a container needs it allowed: docker run --cap-add SYS_PTRACE"
    try:
        strict = int(scope.read_text()) > 0
    except (OSError, ValueError):
        strict = False
    if strict:
        return "allow it with sudo sysctl kernel.yama.ptrace_scope=0, or run this with sudo"
    return "run this as the user who trains, or with sudo"


def read_stacks(
    plain: Mapping[str, Any],
    rate: int,
    pid: int = 0,
    used: Mapping[tuple[int, int], float] | None = None,
) -> Stacks:
    """Return the stacks of a file, equal ones together.

    pid: of profiles that do not name theirs. used: CPU seconds by process and thread; a thread has
    no more samples than these allow, but for the main thread of process `pid`.
    """
    try:
        frames = [frame_of(one) for one in plain["shared"]["frames"]]
        found: Counter[tuple[tuple[Frame, ...], str, int]] = Counter()
        for profile in plain["profiles"]:
            named = THREAD.match(profile["name"])
            thread = (named[3] or "") if named else profile["name"]
            process = int(named[1] or pid) if named else pid
            whose = process, int(named[2], 0) if named else pid
            counted = Counter(map(tuple, profile["samples"]))
            if used is not None and whose != (pid, pid):
                leave_out_waits(counted, math.ceil(used.get(whose, 0.0) * rate))
            for numbers, samples in counted.items():
                stack = tuple(one for one in (frames[at] for at in numbers) if one is not None)
                if stack and samples:
                    found[stack, thread, process] += samples
    except (KeyError, IndexError, TypeError, ValueError) as wrong:
        raise SparringError(f"the sampled stacks cannot be read: {wrong!r}") from wrong
    return Stacks.of(found, rate)


def leave_out_waits(counted: Counter[tuple[int, ...]], allowed: int) -> None:
    """Keep no more samples than allowed: a thread waits where it is met most often."""
    over = max(counted.total() - allowed, 0)
    for stack, times in counted.most_common():
        counted[stack] -= min(times, over)
        over -= min(times, over)


def frame_of(plain: Mapping[str, Any]) -> Frame | None:
    name, file = str(plain["name"]), str(plain.get("file") or "")
    if not file and ABOVE.fullmatch(name):
        return None
    if not file.endswith(".py") and not file.startswith("<"):
        file = file.rpartition("/")[2]
        name = NO_SYMBOL if UNKNOWN.match(name) else short_name(name)
    return Frame(name, file, int(plain.get("line") or 0))


def short_name(name: str) -> str:
    """A native function's name without the types that it was made for: they fill pages."""
    kept: list[str] = []

    def keep(part: re.Match[str]) -> str:
        kept.append(part[0])
        return chr(STANDS_FOR + len(kept) - 1)

    short, before = KEPT.sub(keep, name), ""
    while short != before:
        before, short = short, TYPES.sub("", short)
    for number, part in enumerate(kept):
        short = short.replace(chr(STANDS_FOR + number), part)
    return short.strip() or name


class Sampler:
    """Looks at all threads of this process but its own, so many times a second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._seen: Counter[tuple[tuple[Frame, ...], str, int]] = Counter()
        self._used: dict[int, int] = {}

    def sample(self, seconds: float, stop: threading.Event | None = None) -> Stacks:
        """Look for so long, in this thread, and return what was seen."""
        stop = stop or threading.Event()
        until = time.perf_counter() + seconds
        due = time.perf_counter()
        while (now := time.perf_counter()) < until and not stop.wait(max(due - now, 0.0)):
            self.look()
            due = max(due + 1 / self.rate, time.perf_counter())
        return Stacks.of(self._seen, self.rate)

    def look(self) -> None:
        """Note where the main thread is, and every other one that is at work."""
        frames = sys._current_frames()
        me = threading.get_ident()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is None or thread.ident == me:
                continue
            if thread is threading.main_thread() or self._works(thread, frame):
                self._seen[stack_of(frame), thread.name, os.getpid()] += 1

    def _works(self, thread: threading.Thread, frame: FrameType) -> bool:
        """Whether a thread had the processor since the last look."""
        number = thread.native_id or 0
        try:
            used = int((TASKS / str(number) / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return not frame.f_code.co_filename.endswith(WAITS)
        before = self._used.get(number, used)
        self._used[number] = used
        return used - before > WORKED * 1e9 / self.rate


def stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append(Frame(code.co_qualname, code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(reversed(frames))
