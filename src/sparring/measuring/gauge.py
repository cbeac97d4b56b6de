"""Times settings in a process of its own, which may run out of memory without harm.

Several can be open at once and be timed in turn, so that a busy moment of the machine meets them
all alike. Requests and answers are JSON objects, one per line.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import IO, Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.measuring.reading import Opened, Reading
from sparring.processes import end_group, last_words, start_python
from sparring.training.planning.settings import written


class UnfitError(SparringError):
    """Settings that cannot be timed here: they need more memory than there is, or they fail."""


class Gauge:
    """Opens settings and times them. Start one, ask it as often as you like, close it."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def __enter__(self) -> Gauge:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> Opened:
        """Make the learner of settings and let it play and learn a few rounds that do not count.

        Raises ConfigError if they are refused, UnfitError if they fail. Whatever else is open
        stays so, unless the process died with it.
        """
        request = {"name": name, "config": written(config), "warm_up": warm_up}
        return Opened(**self._ask("open", request))

    def time(self, name: str, seconds: float, *, least: int = 1) -> Reading:
        """Let it play and learn for so many seconds, `least` rounds at the least."""
        return Reading.read(self._ask("time", {"name": name, "seconds": seconds, "least": least}))

    def shut(self, name: str) -> None:
        """Let go of what was opened under a name."""
        self._ask("shut", {"name": name})

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout and self._stderr
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        end_group(process)
        process.stdout.close()
        self._stderr.close()

    def _ask(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._start()
        assert self._process and self._process.stdin and self._process.stdout
        try:
            self._send({"do": what, **request})
            answer = self._process.stdout.readline()
        except BaseException:
            self.close()  # its answer would be taken for that of the next request
            raise
        if not answer:
            raise UnfitError(self._bury())
        told: dict[str, Any] = json.loads(answer)
        if "over" in told:
            self.close()
        if "refused" in told:
            raise ConfigError(told["refused"])
        if "failed" in told:
            raise UnfitError(told["failed"])
        return told

    def _start(self) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = start_python(
            "sparring.measuring.process",
            [str(os.getpid())],
            threads=cores(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._send([place for place in sys.path if place])  # where factories are found

    def _send(self, message: Any) -> None:
        assert self._process and self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message, allow_nan=False).encode() + b"\n")
            self._process.stdin.flush()

    def _bury(self) -> str:
        """Say why the process died."""
        assert self._process and self._stderr
        why = last_words(self._process, self._stderr)
        self.close()
        return why
