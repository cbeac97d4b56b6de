"""The process of a training that is made to be looked at: `python -m sparring.speed.child`.

It trains as `sparring train` does, and ends when its stdin does. The first line of stdin holds the
settings; the others ask it to look at itself: {"do": "sample", "seconds", "updates", "rate",
"file"} for stacks, {"do": "kernels", "seconds", "updates", "file"} for what the GPU does. Each is
answered by a line once the file is there; what is refused, or fails, is told in a line as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.processes import answering, end_with_children, follow_parent
from sparring.speed.inside import Sampler

PR_SET_PTRACER = 0x59616D61
ANYBODY = ctypes.c_ulong(-1)
LONGEST_S = 60.0
"""A window of kernels ends after the update that exceeds this, however few they were."""

Tell = Callable[[Mapping[str, Any]], None]


class Window:
    """A few updates in which the GPU's kernels are recorded, asked for by another thread."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._asked: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._request: Mapping[str, Any] = {}
        self._recorder: Any = None
        self._began = 0.0
        self._updates = 0
        self._counted = 0
        self._awaited: list[tuple[int, threading.Event]] = []

    def in_updates(self, updates: int) -> threading.Event:
        """Return what is set once so many updates have ended from now on; never for 0."""
        event = threading.Event()
        if updates:
            self._awaited.append((self._counted + updates, event))
        return event

    def ask(self, request: Mapping[str, Any]) -> None:
        """Record soon."""
        self._asked.put(request)

    def after_update(self, _run: Any = None) -> None:
        """Begin or end, between two updates."""
        self._counted += 1
        for due, event in self._awaited:
            if self._counted >= due:
                event.set()
        if self._recorder is None:
            with contextlib.suppress(queue.Empty):
                self._request = self._asked.get_nowait()
                self._begin()
            return
        self._updates += 1
        spent = time.perf_counter() - self._began
        least = self._updates >= self._request["updates"] and spent >= self._request["seconds"]
        if least or spent > LONGEST_S:
            self._end()

    def _begin(self) -> None:
        from sparring.speed.kernels import Recorder

        self._recorder, self._updates = Recorder(), 0
        self._recorder.start()
        self._began = time.perf_counter()

    def _end(self) -> None:
        from sparring.speed.kernels import summed

        seconds = time.perf_counter() - self._began
        launches = self._recorder.stop()
        self._recorder = None
        found = {**summed(launches, seconds).plain(), "seconds": seconds, "updates": self._updates}
        Path(self._request["file"]).write_text(json.dumps(found))
        self._tell({"done": "kernels"})


def listen(window: Window, tell: Tell) -> None:
    """Do what is asked for; the end of stdin ends the process."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "kernels":
            window.ask(request)
            continue
        sampler = Sampler(request["rate"])
        sampler.sample(request["seconds"], window.in_updates(request["updates"]))
        Path(request["file"]).write_text(json.dumps(sampler.plain(os.getpid())))
        tell({"done": "sample"})
    end_with_children()


def let_look() -> None:
    """Let other processes of this user look at this one, where the system asks for consent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)


def main(parent: int) -> int:
    """Train until told to end."""
    follow_parent(parent)
    let_look()
    tell = answering()
    warnings.simplefilter("ignore")

    plain = json.loads(sys.stdin.readline())
    window = Window(tell)
    threading.Thread(target=listen, args=(window, tell), name="asked", daemon=True).start()
    try:
        train(plain, window)
    except ConfigError as wrong:
        tell({"refused": str(wrong)})
    except SparringError as wrong:
        tell({"failed": str(wrong)})
    except Exception as wrong:
        tell({"failed": f"{type(wrong).__name__}: {wrong}"})
    else:
        tell({"failed": "the training has ended before it was looked at"})
    return 1


def train(plain: Mapping[str, Any], window: Window) -> None:
    """Train with these settings, as any run."""
    from sparring.training.callbacks import Callbacks
    from sparring.training.planning.place import uses_gpu
    from sparring.training.planning.settings import read_config
    from sparring.training.train import train_with

    config = read_config(plain, "settings")
    if uses_gpu(config.device):
        from sparring.speed.kernels import prepare

        prepare()
    train_with(config, quiet=True, callbacks=Callbacks(on_update=window.after_update))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
