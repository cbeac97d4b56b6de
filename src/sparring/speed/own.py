"""A training of our own, made to be looked at, in a folder that goes with it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.processes import end_group, last_words, start_python
from sparring.speed.evidence import processes_of
from sparring.speed.progress import Progress
from sparring.speed.rounds import steady
from sparring.store.folders import CONFIG
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.settings import members_of, written
from sparring.usage import running

NAME = "looked-at"
MINUTES = 24 * 60.0
"""A budget that nobody reaches; it is ended when enough was seen."""
WARM_UPDATES = 3
"""A training is not under way before so many."""
WARM_LIMIT_S = 30.0
"""Nobody waits longer for them: who is that slow has to be looked at all the more."""
POLL_S = 0.1
END_S = 5.0
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def to_look_at(config: TrainConfig, folder: Path) -> TrainConfig:
    """Return settings for a training that leaves nothing elsewhere and is soon under way."""
    config = members_of(config)[0]
    if "replay" in sections_of(config.algo, config.dqn.mode):
        config = steady(config)  # or it would be looked at while it fills its memory
    return replace(
        config,
        name=NAME,
        runs=str(folder),
        minutes=MINUTES,
        updates=0,
        decisions=0,
        episodes=0,
        wandb=False,
        eval=replace(config.eval, off=True),
        json=False,
        config="",
    )


class OwnTraining:
    """A process that trains with some settings until it is closed."""

    def __init__(self, config: TrainConfig) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(
            prefix="sparring-profile-", ignore_cleanup_errors=True
        )
        root = Path(self._folder.name)
        self.files = root / "files"
        self.files.mkdir()
        self.config = to_look_at(config, root)
        self.folder = root / NAME
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = start_python(
            "sparring.speed.child",
            [str(os.getpid())],
            threads=cores(),
            variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        self._say(written(self.config))

    def __enter__(self) -> OwnTraining:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def warm_up(self, progress: Progress, seconds: float, said: Callable[[str], None]) -> None:
        """Wait until it is under way, for so many seconds at least.

        One whose first update takes minutes is looked at all the same: its stacks say why.
        """
        while not (self.folder / CONFIG).is_file():
            said("starting: loading torch")
            self.check()
            time.sleep(POLL_S)
        began = time.monotonic()
        while (spent := time.monotonic() - began) < WARM_LIMIT_S:
            made = progress.look()
            if made >= WARM_UPDATES and spent >= seconds:
                return
            said(f"warming up: update {made}")
            self.check()
            time.sleep(POLL_S)

    def ask(self, what: str, name: str, limit_s: float, **request: Any) -> dict[str, Any]:
        """Let it look at itself, and return what it has seen."""
        file = self.files / name
        self._say({"do": what, "file": str(file), **request})
        until = time.monotonic() + limit_s
        while not file.is_file() or not self._answers.qsize():
            if time.monotonic() > until:
                raise SparringError(f"{what}: no answer within {limit_s:g} s")
            self.check()
            time.sleep(POLL_S)
        self._answers.get()
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def check(self) -> None:
        """Raise if it has ended: refused, failed or killed."""
        if self._process.poll() is None:
            return
        told: dict[str, str] = {}
        self._hearing.join(END_S)
        while self._answers.qsize():
            told |= json.loads(self._answers.get())
        if "refused" in told:
            raise ConfigError(told["refused"])
        if "failed" in told:
            raise SparringError(f"the training failed: {told['failed']}")
        raise SparringError(f"the training failed: {last_words(self._process, self._stderr)}")

    def close(self) -> None:
        """End it, whatever it does, and remove what it has written."""
        assert self._process.stdin
        family = processes_of(self.pid)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        end_group(self._process)
        until = time.monotonic() + END_S  # those that it has started end with it
        while any(map(running, family)) and time.monotonic() < until:
            time.sleep(POLL_S / 10)
        self._stderr.close()
        self._folder.cleanup()

    def _say(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _hear(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line.decode())
