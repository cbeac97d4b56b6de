"""Stacks of a running process by py-spy, which looks at it from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.speed.evidence import Stack, Stacks, processes_of
from sparring.speed.speedscope import at_work, read_stacks
from sparring.usage import thread_seconds

NAME = "py-spy"
INSTALL = "py-spy is not installed: pip install 'sparring[profile]'"
EXTRA_S = 60.0
"""How much longer than asked it may take: reading the symbols of torch takes seconds."""
FORBIDDEN = ("permission denied", "operation not permitted", "ptrace", "requires root")
UNWINDING = ("native", "unwind")


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

    def __exit__(self, *wrong: object) -> None:
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
        if self._before:
            used = {key: spent - self._before.get(key, 0.0) for key, spent in after.items()}
            plain = at_work(plain, used, self.pid, self.rate)
        return read_stacks(plain, self.rate, process=self.pid)


def why_not(said: str) -> CannotLookError:
    """Say why py-spy has seen nothing, and what to do."""
    low = said.lower()
    last = " ".join((said.strip().splitlines() or ["it said nothing"])[-1].split())
    if any(word in low for word in FORBIDDEN):
        return CannotLookError(f"py-spy may not look at the process ({last}); {permission()}")
    if any(word in low for word in UNWINDING):
        return NoNativeError(f"py-spy cannot look into native code here: {last}")
    return CannotLookError(f"py-spy has seen nothing: {last}")


def permission(scope: Path = Path("/proc/sys/kernel/yama/ptrace_scope")) -> str:
    """Say how looking is allowed on this system."""
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


def split(stacks: Stacks, pid: int) -> tuple[Stacks, Stacks]:
    """Return the stacks of a process, and those of the others."""

    def only(mine: bool) -> Stacks:
        kept: tuple[Stack, ...] = tuple(
            stack for stack in stacks.stacks if (stack.process == pid) == mine
        )
        return Stacks(kept, stacks.rate)

    return only(mine=True), only(mine=False)
