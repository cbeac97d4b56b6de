"""Stacks from within: a thread that looks at the others, where nobody may look from outside.

It sees Python alone, and what it sees it slows down a little, since it needs the interpreter.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sparring.speed.speedscope import SCHEMA

TASKS = Path("/proc/self/task")
WORKED = 0.2
"""A thread was at work if it had the processor for this share of the time between two looks."""
WAITS = ("threading.py", "selectors.py", "queue.py", "socket.py", "subprocess.py")
"""Where Python waits, for systems that do not say what a thread has used."""

Place = tuple[CodeType, int]


class Sampler:
    """Looks at all threads but its own, so many times a second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.seen: dict[str, Counter[tuple[Place, ...]]] = {}
        """Stacks by the name of their thread, the outermost function in front."""
        self._used: dict[int, int] = {}

    def sample(self, seconds: float, stop: threading.Event | None = None) -> None:
        """Look for so long, in this thread."""
        stop = stop or threading.Event()
        until = time.perf_counter() + seconds
        due = time.perf_counter()
        while (now := time.perf_counter()) < until and not stop.wait(max(due - now, 0.0)):
            self.look()
            due = max(due + 1 / self.rate, time.perf_counter())

    def look(self) -> None:
        """Note where the main thread is, and every other one that is at work."""
        frames = sys._current_frames()
        me = threading.get_ident()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is None or thread.ident == me:
                continue
            if thread is threading.main_thread() or self._works(thread, frame):
                self.seen.setdefault(thread.name, Counter())[stack_of(frame)] += 1

    def plain(self, process: int) -> dict[str, Any]:
        """Return what was seen, in the form that py-spy writes."""
        numbers: dict[Place, int] = {}
        profiles = []
        for name, stacks in self.seen.items():
            samples = []
            for stack, times in stacks.items():
                samples += [[numbers.setdefault(at, len(numbers)) for at in stack]] * times
            profiles.append(
                {
                    "type": "sampled",
                    "name": f'Process {process} Thread 0 "{name}"',
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": len(samples) / self.rate,
                    "samples": samples,
                    "weights": [1 / self.rate] * len(samples),
                }
            )
        frames = [
            {"name": code.co_qualname, "file": code.co_filename, "line": line}
            for code, line in numbers
        ]
        return {"$schema": SCHEMA, "shared": {"frames": frames}, "profiles": profiles}

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


def stack_of(frame: FrameType | None) -> tuple[Place, ...]:
    """Return the functions that a thread is in, the outermost in front."""
    places = []
    while frame is not None:
        places.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(reversed(places))
