"""A USI engine as a child process: start it, request moves, end it."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO, Literal

from sparring.errors import ConfigError, SparringError, suggestion

START_S = 60.0
"""Engines may read large files before they are ready."""
QUIT_S = 2.0
"""Seconds that an engine has to exit before it is killed."""
UNDECLARED_OPTIONS = ("USI_Hash", "USI_Ponder")
"""Options that every engine accepts without declaring them."""

FaultKind = Literal["crash", "timeout", "illegal move"]


class EngineError(SparringError):
    """A fault by which an engine loses a game."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Engine:
    """A running engine. Use it as a context manager, which ends the process."""

    def __init__(
        self,
        command: str,
        options: Mapping[str, str] | None = None,
        *,
        start_s: float = START_S,
    ) -> None:
        """Parse the command; entering the context starts it.

        command: a command line, without a shell.
        start_s: timeout of `usiok` and of `readyok`.
        """
        try:
            self.command = shlex.split(command)
        except ValueError as wrong:
            raise ConfigError(f"--engine {command!r} cannot be read: {wrong}") from None
        if not self.command:
            raise ConfigError("--engine is empty; give a command such as 'fairy-stockfish'")
        self.options, self.start_s = dict(options or {}), start_s
        self.name = self.command[0]
        self.process: subprocess.Popen[str] | None = None
        self.readers: list[tuple[threading.Thread, IO[str]]] = []
        self.lines: queue.SimpleQueue[tuple[float, str | None]] = queue.SimpleQueue()
        self.stderr: collections.deque[str] = collections.deque(maxlen=1)

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the program, set its options and wait for `readyok`."""
        self.launch()
        try:
            self.send("usi")
            declared = self.read_options()
            for name, value in self.options.items():
                if name not in (*declared, *UNDECLARED_OPTIONS):
                    hint = suggestion(name, declared)
                    raise ConfigError(f"{self.name} has no option {name!r}{hint}")
                self.send(f"setoption name {name} value {value}")
            self.wait_ready()
        except BaseException as wrong:
            self.close()
            if isinstance(wrong, EngineError) and wrong.kind == "timeout":
                hint = f"it had {self.start_s:g} s to start, --engine-timeout-s gives it more"
                raise EngineError("timeout", f"{wrong}; {hint}") from None
            raise

    def launch(self) -> None:
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                self.command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that its child processes end with it
            )
        except (OSError, ValueError) as wrong:
            reason = getattr(wrong, "strerror", None) or wrong
            raise ConfigError(f"cannot start {self.command[0]}: {reason}; check --engine") from None
        self.lines, self.stderr = queue.SimpleQueue(), collections.deque(maxlen=1)
        assert self.process.stdout and self.process.stderr
        streams = (
            (self.read_stdout, self.process.stdout),
            (self.read_stderr, self.process.stderr),
        )
        self.readers = [
            (threading.Thread(target=read, args=(stream,), daemon=True), stream)
            for read, stream in streams
        ]
        for reader, _ in self.readers:
            reader.start()

    def read_stdout(self, stream: IO[str]) -> None:
        """Queue the engine's lines with their times, and None at the end."""
        lines = self.lines
        with contextlib.suppress(ValueError, OSError):  # closed while it is read
            for line in stream:
                lines.put((time.monotonic(), line.strip()))
        lines.put((time.monotonic(), None))

    def read_stderr(self, stream: IO[str]) -> None:
        last_line = self.stderr
        with contextlib.suppress(ValueError, OSError):
            for line in stream:
                if line.strip():
                    last_line.append(line.strip())

    def read_options(self) -> list[str]:
        """Read up to `usiok`; return the names of the options."""
        declared = []
        deadline = time.monotonic() + self.start_s
        for words in iter(lambda: self.read_line(deadline, "usi"), ["usiok"]):
            if words[:2] == ["id", "name"]:
                self.name = " ".join(words[2:])
            elif words[:2] == ["option", "name"] and "type" in words:
                declared.append(" ".join(words[2 : words.index("type")]))
        return declared

    def wait_ready(self) -> None:
        self.send("isready")
        deadline = time.monotonic() + self.start_s
        while self.read_line(deadline, "isready") != ["readyok"]:
            pass

    def new_game(self) -> None:
        self.wait_ready()
        self.send("usinewgame")

    def game_over(self, score: float) -> None:
        """Send the result of the engine's game: 1 if it won, -1 if it lost, 0 for a draw."""
        with contextlib.suppress(EngineError):  # the game is over, so a fault does not matter
            self.send(f"gameover {'win' if score > 0 else 'lose' if score < 0 else 'draw'}")

    def move(self, position: str, go: str, timeout_s: float) -> str:
        """Return the engine's answer to a position: a move, `resign` or `win`.

        Its time runs from `go` until the answer arrives, not until it is read.
        """
        self.send(position)
        started = time.monotonic()
        self.send(go)
        while True:
            words = self.read_line(started + timeout_s, go, since=started)
            if words[:1] == ["bestmove"]:
                if len(words) < 2:
                    raise EngineError("illegal move", f"{self.name} sent bestmove without a move")
                return words[1]

    def send(self, line: str) -> None:
        assert self.process and self.process.stdin
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except OSError:
            raise self.crash_error(line) from None

    def read_line(self, deadline: float, command: str, *, since: float = 0.0) -> list[str]:
        """Return the words of the next line; lines that arrived before `since` are dropped."""
        while True:
            try:
                arrived, line = self.lines.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                arrived, line = math.inf, ""
            if arrived > deadline:
                raise EngineError("timeout", f"{self.name} did not answer {command!r} in time")
            if line is None:
                raise self.crash_error(command)
            if arrived >= since:
                return line.split()

    def crash_error(self, command: str) -> EngineError:
        assert self.process
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(QUIT_S)
        stderr = f" ({self.stderr[-1]})" if self.stderr else ""
        code = self.process.returncode
        return EngineError("crash", f"{self.name} ended with {code} after {command!r}{stderr}")

    def close(self) -> None:
        """Send `quit`; kill the engine and its child processes if it does not exit."""
        if self.process is None:
            return
        process, self.process = self.process, None
        assert process.stdin
        try:
            with contextlib.suppress(OSError):
                process.stdin.write("quit\n")
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(QUIT_S)
        finally:  # also after an interrupt
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for reader, stream in self.readers:
            reader.join(QUIT_S)
            if not reader.is_alive():
                stream.close()

    def restart(self) -> None:
        self.close()
        self.start()
