"""The process of a training that is made to be looked at.

It trains as `sparring train` does, and looks at itself where it is asked to: "sample" for stacks,
"kernels" for what the GPU does. Either is answered when so many seconds and updates are over.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import sys
import threading
import time
import warnings
from typing import Any

from sparring.errors import ConfigError, SparringError
from sparring.messages import Message, refusal
from sparring.processes import Parent
from sparring.speed.sampler import Sampler

PR_SET_PTRACER = 0x59616D61
ANYBODY = ctypes.c_ulong(-1)
LONGEST_S = 60.0
"""A window of kernels ends after the update that exceeds this, however few they were."""


class Looks:
    """Looks of this process at itself, asked for by another thread than the one that trains."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._asked: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._request: dict[str, Any] = {}
        self._recorder: Any = None
        self._began = 0.0
        self._updates = 0
        self._counted = 0
        self._awaited: list[tuple[int, threading.Event]] = []

    def hear(self, asked: Message) -> None:
        """Sample at once; kernels are recorded from the next update on."""
        if asked.name == "kernels":
            self._asked.put(asked)
            return
        over = self.in_updates(asked.facts["updates"])
        stacks = Sampler(asked.facts["rate"]).sample(asked.facts["seconds"], over)
        self._parent.tell(Message("stacks", stacks.plain()))

    def in_updates(self, updates: int) -> threading.Event:
        """Return what is set once so many updates have ended from now on; never for 0."""
        over = threading.Event()
        if updates:
            self._awaited.append((self._counted + updates, over))
        return over

    def after_update(self, _run: Any = None) -> None:
        """Begin or end, between two updates."""
        self._counted += 1
        for due, event in self._awaited:
            if self._counted >= due:
                event.set()
        if self._recorder is None:
            with contextlib.suppress(queue.Empty):
                self._request = dict(self._asked.get_nowait().facts)
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
        self._parent.tell(Message("kernels", summed(launches, seconds).plain()))


def let_look() -> None:
    """Let other processes of this user look at this one, where the system asks for consent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)


def main() -> int:
    parent = Parent()
    let_look()
    warnings.simplefilter("ignore")
    settings = next(parent).facts
    looks = Looks(parent)
    parent.listen(looks.hear)
    try:
        train(settings, looks)
        why = SparringError("the training failed: it has ended before it was looked at")
    except ConfigError as wrong:
        why = ConfigError(str(wrong))
    except SparringError as wrong:
        why = SparringError(f"the training failed: {wrong}")
    except Exception as wrong:
        why = SparringError(f"the training failed: {type(wrong).__name__}: {wrong}")
    parent.tell(refusal(why))
    return 1


def train(settings: Any, looks: Looks) -> None:
    from sparring.training.callbacks import Callbacks
    from sparring.training.planning.place import uses_gpu
    from sparring.training.planning.settings import read_config
    from sparring.training.train import train_with

    config = read_config(settings, "settings")
    if uses_gpu(config.device):
        from sparring.speed.kernels import prepare

        prepare()
    train_with(config, quiet=True, callbacks=Callbacks(on_update=looks.after_update))


if __name__ == "__main__":
    sys.exit(main())
