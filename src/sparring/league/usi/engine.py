"""A USI engine as a child process: started, asked for moves, and always ended."""

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
"""How long an engine may take to leave before it is killed."""
UNDECLARED_OPTIONS = ("USI_Hash", "USI_Ponder")
"""The protocol lets every engine take these without naming them."""

FaultKind = Literal["crash", "timeout", "illegal move"]


class EngineError(SparringError):
    """What an engine loses a game by."""

    def __init__(self, kind: FaultKind, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Engine:
    """A running engine. Use it as a context: the process does not outlive it."""

    def __init__(
        self,
        command: str,
        options: Mapping[str, str] | None = None,
        *,
        start_s: float = START_S,
    ) -> None:
        """Name the program; it is started on entering the context.

        command: a command line, without a shell.
        start_s: how long it may take to say that it is there, and to get ready for a game.
        """
        try:
            self.words = shlex.split(command)
        except ValueError as wrong:
            raise ConfigError(f"--engine {command!r} cannot be read: {wrong}") from None
        if not self.words:
            raise ConfigError("--engine is empty; give a command such as 'fairy-stockfish'")
        self.options, self.start_s = dict(options or {}), start_s
        self.name = self.words[0]
        self.process: subprocess.Popen[str] | None = None
        self.readers: list[tuple[threading.Thread, IO[str]]] = []
        self.lines: queue.SimpleQueue[tuple[float, str | None]] = queue.SimpleQueue()
        self.complaints: collections.deque[str] = collections.deque(maxlen=1)

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the program and bring it to `readyok`."""
        self.launch()
        try:
            self.send("usi")
            declared = self.introduction()
            for name, value in self.options.items():
                if name not in (*declared, *UNDECLARED_OPTIONS):
                    known = suggestion(name, declared)
                    raise ConfigError(f"{self.name} has no option {name!r}{known}")
                self.send(f"setoption name {name} value {value}")
            self.get_ready()
        except BaseException as wrong:
            self.close()
            if isinstance(wrong, EngineError) and wrong.kind == "timeout":
                had = f"it had {self.start_s:g} s to start, --engine-timeout-s gives it more"
                raise EngineError("timeout", f"{wrong}; {had}") from None
            raise

    def launch(self) -> None:
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                self.words,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # what it starts can be ended with it
            )
        except (OSError, ValueError) as wrong:
            why = getattr(wrong, "strerror", None) or wrong
            raise ConfigError(f"cannot start {self.words[0]}: {why}; check --engine") from None
        self.lines, self.complaints = queue.SimpleQueue(), collections.deque(maxlen=1)
        assert self.process.stdout and self.process.stderr
        streams = ((self.listen, self.process.stdout), (self.note, self.process.stderr))
        self.readers = [
            (threading.Thread(target=read, args=(stream,), daemon=True), stream)
            for read, stream in streams
        ]
        for reader, _ in self.readers:
            reader.start()

    def listen(self, stream: IO[str]) -> None:
        """Queue what the engine says and when, and None when it has gone."""
        lines = self.lines
        with contextlib.suppress(ValueError, OSError):  # closed while we read
            for line in stream:
                lines.put((time.monotonic(), line.strip()))
        lines.put((time.monotonic(), None))

    def note(self, stream: IO[str]) -> None:
        complaints = self.complaints
        with contextlib.suppress(ValueError, OSError):
            for line in stream:
                if line.strip():
                    complaints.append(line.strip())

    def introduction(self) -> list[str]:
        """Read up to `usiok`; return the names of the options."""
        declared = []
        due = time.monotonic() + self.start_s
        for words in iter(lambda: self.hear(due, "usi"), ["usiok"]):
            if words[:2] == ["id", "name"]:
                self.name = " ".join(words[2:])
            elif words[:2] == ["option", "name"] and "type" in words:
                declared.append(" ".join(words[2 : words.index("type")]))
        return declared

    def get_ready(self) -> None:
        self.send("isready")
        due = time.monotonic() + self.start_s
        while self.hear(due, "isready") != ["readyok"]:
            pass

    def new_game(self) -> None:
        self.get_ready()
        self.send("usinewgame")

    def game_over(self, score: float) -> None:
        """Tell the engine how its game ended: 1 if it won, -1 if it lost, 0 for a draw."""
        with contextlib.suppress(EngineError):  # the game is over, whatever it does now
            self.send(f"gameover {'win' if score > 0 else 'lose' if score < 0 else 'draw'}")

    def move(self, position: str, go: str, timeout_s: float) -> str:
        """Return the engine's answer to a position: a move, `resign` or `win`.

        Its time runs from `go` until the answer arrives, whenever that is read.
        """
        self.send(position)
        asked = time.monotonic()
        self.send(go)
        while True:
            words = self.hear(asked + timeout_s, go, since=asked)
            if words[:1] == ["bestmove"]:
                if len(words) < 2:
                    raise EngineError("illegal move", f"{self.name} said bestmove without a move")
                return words[1]

    def send(self, line: str) -> None:
        assert self.process and self.process.stdin
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except OSError:
            raise self.crash(line) from None

    def hear(self, due: float, asked: str, *, since: float = 0.0) -> list[str]:
        """Return the words of the next line. What was said before `since` answers nothing."""
        while True:
            try:
                said, line = self.lines.get(timeout=max(due - time.monotonic(), 0.0))
            except queue.Empty:
                said, line = math.inf, ""
            if said > due:
                raise EngineError("timeout", f"{self.name} did not answer {asked!r} in time")
            if line is None:
                raise self.crash(asked)
            if said >= since:
                return line.split()

    def crash(self, asked: str) -> EngineError:
        assert self.process
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(QUIT_S)
        said = f" ({self.complaints[-1]})" if self.complaints else ""
        code = self.process.returncode
        return EngineError("crash", f"{self.name} ended with {code} after {asked!r}{said}")

    def close(self) -> None:
        """Ask the engine to leave, and end it with all it started if it does not."""
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
        finally:  # also if whoever waits here is interrupted
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
