"""Main module of `ProfiledTraining`: trains, and profiles itself on request.

Requests: "sample" returns stacks, "kernels" what the GPU ran; each is answered after the seconds
and updates that it names.
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
from sparring.messages import Message, error_reply
from sparring.processes import Parent
from sparring.speed.sampling import StackSampler

PR_SET_PTRACER = 0x59616D61
ANY_PROCESS = ctypes.c_ulong(-1)
KERNELS_LIMIT_S = 60.0
"""A recording of kernels ends with the update that exceeds this."""


class SelfSampling:
    """Answers requests: samples in the listening thread, records kernels between updates."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._request: dict[str, Any] = {}
        self._recorder: Any = None
        self._began = 0.0
        self._updates = 0
        self._counted = 0
        self._awaited: list[tuple[int, threading.Event]] = []

    def handle(self, request: Message) -> None:
        """Sample at once; record kernels from the next update on."""
        if request.name == "kernels":
            self._requests.put(request)
            return
        over = self.event_after(request.payload["updates"])
        stacks = StackSampler(request.payload["rate"]).sample(request.payload["seconds"], over)
        self._parent.send(Message("stacks", stacks.plain()))

    def event_after(self, updates: int) -> threading.Event:
        """Return an event that is set after so many more updates; never for 0."""
        over = threading.Event()
        if updates:
            self._awaited.append((self._counted + updates, over))
        return over

    def after_update(self, _run: Any = None) -> None:
        """Start or end a recording of kernels."""
        self._counted += 1
        for due, event in self._awaited:
            if self._counted >= due:
                event.set()
        if self._recorder is None:
            with contextlib.suppress(queue.Empty):
                self._request = dict(self._requests.get_nowait().payload)
                self._begin()
            return
        self._updates += 1
        spent = time.perf_counter() - self._began
        enough = self._updates >= self._request["updates"] and spent >= self._request["seconds"]
        if enough or spent > KERNELS_LIMIT_S:
            self._end()

    def _begin(self) -> None:
        from sparring.speed.kernels import Recorder

        self._recorder, self._updates = Recorder(), 0
        self._recorder.start()
        self._began = time.perf_counter()

    def _end(self) -> None:
        from sparring.speed.kernels import summarize

        seconds = time.perf_counter() - self._began
        launches = self._recorder.stop()
        self._recorder = None
        self._parent.send(Message("kernels", summarize(launches, seconds).plain()))


def allow_ptrace() -> None:
    """Let processes of this user trace this one, where Linux (Yama) asks for consent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY_PROCESS, 0, 0, 0)


def main() -> int:
    parent = Parent()
    allow_ptrace()
    warnings.simplefilter("ignore")
    settings = next(parent).payload
    sampling = SelfSampling(parent)
    parent.listen(sampling.handle)
    try:
        train(settings, sampling)
        error = SparringError("the training ended before it was profiled")
    except ConfigError as raised:
        error = ConfigError(str(raised))
    except SparringError as raised:
        error = SparringError(f"the training failed: {raised}")
    except Exception as raised:
        error = SparringError(f"the training failed: {type(raised).__name__}: {raised}")
    parent.send(error_reply(error))
    return 1


def train(settings: Any, sampling: SelfSampling) -> None:
    from sparring.training.callbacks import Callbacks
    from sparring.training.planning.placement import uses_gpu
    from sparring.training.planning.settings import read_config
    from sparring.training.train import train_with

    config = read_config(settings, "settings")
    if uses_gpu(config.device):
        from sparring.speed.kernels import prepare

        prepare()
    train_with(config, quiet=True, callbacks=Callbacks(on_update=sampling.after_update))


if __name__ == "__main__":
    sys.exit(main())
