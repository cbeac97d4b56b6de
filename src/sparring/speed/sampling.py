"""Stack sampling of a training: by py-spy from outside, or by a thread within the process.

py-spy writes speedscope's format (https://github.com/jlfwong/speedscope/wiki). A thread within sees
Python code alone and slows it down a little, since it needs the interpreter.
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
from sparring.speed.evidence import CallStacks, Frame, processes_of
from sparring.usage import thread_seconds

NAME = "py-spy"
INSTALL = "py-spy is not installed: pip install 'sparring[profile]'"
EXTRA_S = 60.0
"""Time that py-spy may take in addition: reading the symbols of torch takes seconds."""
FORBIDDEN = ("permission denied", "operation not permitted", "ptrace", "requires root")
UNWINDING = ("native", "unwind")

THREAD = re.compile(r'(?:Process (\d+) )?Thread (0x[0-9a-f]+|\d+)(?: "(.*)")?$')
"""Name of a profile in py-spy's output."""
NO_FUNCTION = re.compile(r"(?:process|thread) .*")
"""Frames that are no functions: py-spy starts stacks with processes and threads."""
UNKNOWN = re.compile(r"0x[0-9a-f]+$")
NO_SYMBOL = "(no symbol)"
NAME_PARTS = re.compile(r"\(anonymous namespace\)|operator(?:\(\)|<=>|<<=?|>>=?|<=?|>=?|->\*?)")
"""Parts of names that look like types."""
PLACEHOLDER = 0xE000
"""First code point of the private use area, for placeholders of name parts."""
TYPES = re.compile(r"<[^<>()]*>|\([^<>()]*\)")

TASKS = Path("/proc/self/task")
BUSY_SHARE = 0.2
"""A thread is busy if it had the processor for this share of the time between two samples."""
WAITS = ("threading.py", "selectors.py", "queue.py", "socket.py", "subprocess.py")
"""Files in which Python waits, for systems without CPU times of threads."""


class SamplerError(SparringError):
    """The process cannot be sampled; the message gives the reason and the remedy."""


class NoNativeStacksError(SamplerError):
    """Native stacks cannot be sampled on this machine."""


def find_py_spy() -> str | None:
    """Return the path of py-spy: next to this Python, or in the PATH."""
    return shutil.which(NAME, path=str(Path(sys.executable).parent)) or shutil.which(NAME)


class PySpy:
    """A running py-spy: start it, wait, get the stacks."""

    def __init__(
        self, pid: int, seconds: float, rate: int, *, native: bool, pausing: bool = True
    ) -> None:
        """Start sampling a process and its descendants.

        pausing: pause the process for every sample; otherwise some stacks are torn and left out.
        """
        program = find_py_spy()
        if program is None:
            raise SamplerError(INSTALL)
        self.pid, self.rate = pid, rate
        self._output = b""
        self._folder = tempfile.TemporaryDirectory(prefix="sparring-spy-")
        self._file = Path(self._folder.name) / "stacks.json"
        words = [program, "record", "--pid", str(pid), "--subprocesses", "--threads"]
        words += ["--format", "speedscope", "--output", str(self._file)]
        # py-spy counts whole seconds, so we end it by a signal.
        self._before = thread_seconds(processes_of(pid))
        words += ["--idle"] * bool(self._before)  # we leave waiting threads out ourselves
        words += ["--rate", str(rate), "--duration", str(int(seconds + EXTRA_S) + 1)]
        self._process = subprocess.Popen(
            [*words, *["--native"] * native, *["--nonblocking"] * (not native and not pausing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def __enter__(self) -> PySpy:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            # Interrupt first: a killed py-spy could leave the sampled process paused.
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
        """Wait until sampling has begun, or py-spy has ended."""
        assert self._process.stdout
        while line := self._process.stdout.readline():
            self._output += line
            if b"Sampling" in line:
                return

    @property
    def ended(self) -> bool:
        """Whether py-spy has ended, by a failure or with the process."""
        return self._process.poll() is not None

    def stacks(self) -> CallStacks:
        """End sampling and return the stacks."""
        after = thread_seconds(processes_of(self.pid))
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        try:
            self._output += self._process.communicate(timeout=EXTRA_S)[0]
        except subprocess.TimeoutExpired:
            raise SamplerError("py-spy did not end; try again with --native off") from None
        try:
            plain: Mapping[str, Any] = json.loads(self._file.read_text())
        except (OSError, ValueError):
            raise error_of(self._output.decode(errors="replace")) from None
        used = {key: spent - self._before.get(key, 0.0) for key, spent in after.items()}
        return read_stacks(plain, self.rate, self.pid, used if self._before else None)


def error_of(output: str) -> SamplerError:
    low = output.lower()
    last = " ".join((output.strip().splitlines() or ["no output"])[-1].split())
    if any(word in low for word in FORBIDDEN):
        return SamplerError(f"py-spy may not read the process ({last}); {permission_advice()}")
    if any(word in low for word in UNWINDING):
        return NoNativeStacksError(f"py-spy cannot sample native code on this machine: {last}")
    return SamplerError(f"py-spy returned no samples: {last}")


def permission_advice(scope: Path = Path("/proc/sys/kernel/yama/ptrace_scope")) -> str:
    if sys.platform == "darwin":
        return "macOS requires root: run it with sudo"
    if Path("/.dockerenv").exists() or os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "allow it in the container: docker run --cap-add SYS_PTRACE"
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
) -> CallStacks:
    """Return the stacks of a speedscope file, equal ones counted together.

    pid: process of profiles that name none. used: CPU seconds by process and thread; a thread keeps
    no more samples than these allow, except the main thread of process `pid`.
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
                drop_waits(counted, math.ceil(used.get(whose, 0.0) * rate))
            for numbers, samples in counted.items():
                stack = tuple(one for one in (frames[at] for at in numbers) if one is not None)
                if stack and samples:
                    found[stack, thread, process] += samples
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SparringError(f"the output of py-spy cannot be read: {error!r}") from error
    return CallStacks.of(found, rate)


def drop_waits(counted: Counter[tuple[int, ...]], allowed: int) -> None:
    """Keep no more samples than allowed: a thread waits where it is sampled most often."""
    over = max(counted.total() - allowed, 0)
    for stack, times in counted.most_common():
        counted[stack] -= min(times, over)
        over -= min(times, over)


def frame_of(plain: Mapping[str, Any]) -> Frame | None:
    name, file = str(plain["name"]), str(plain.get("file") or "")
    if not file and NO_FUNCTION.fullmatch(name):
        return None
    if not file.endswith(".py") and not file.startswith("<"):
        file = file.rpartition("/")[2]
        name = NO_SYMBOL if UNKNOWN.match(name) else short_name(name)
    return Frame(name, file, int(plain.get("line") or 0))


def short_name(name: str) -> str:
    """Return the name of a native function without its template and argument types."""
    parts: list[str] = []

    def hide(part: re.Match[str]) -> str:
        parts.append(part[0])
        return chr(PLACEHOLDER + len(parts) - 1)

    short, before = NAME_PARTS.sub(hide, name), ""
    while short != before:
        before, short = short, TYPES.sub("", short)
    for number, part in enumerate(parts):
        short = short.replace(chr(PLACEHOLDER + number), part)
    return short.strip() or name


class StackSampler:
    """Samples all threads of this process but its own, `rate` times a second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._counts: Counter[tuple[tuple[Frame, ...], str, int]] = Counter()
        self._used: dict[int, int] = {}

    def sample(self, seconds: float, stop: threading.Event | None = None) -> CallStacks:
        """Sample for so many seconds, in the calling thread, and return the stacks."""
        stop = stop or threading.Event()
        until = time.perf_counter() + seconds
        due = time.perf_counter()
        while (now := time.perf_counter()) < until and not stop.wait(max(due - now, 0.0)):
            self.sample_once()
            due = max(due + 1 / self.rate, time.perf_counter())
        return CallStacks.of(self._counts, self.rate)

    def sample_once(self) -> None:
        """Count the stacks of the main thread and of every other thread that is busy."""
        frames = sys._current_frames()
        me = threading.get_ident()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is None or thread.ident == me:
                continue
            if thread is threading.main_thread() or self._is_busy(thread, frame):
                self._counts[stack_of(frame), thread.name, os.getpid()] += 1

    def _is_busy(self, thread: threading.Thread, frame: FrameType) -> bool:
        """Whether a thread had the processor since the last sample."""
        number = thread.native_id or 0
        try:
            used = int((TASKS / str(number) / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return not frame.f_code.co_filename.endswith(WAITS)
        before = self._used.get(number, used)
        self._used[number] = used
        return used - before > BUSY_SHARE * 1e9 / self.rate


def stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append(Frame(code.co_qualname, code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(reversed(frames))
