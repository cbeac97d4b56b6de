"""Timing of several configurations in turn, so that load on the machine affects all alike.

`TimerProcess` is a child process that holds open sessions, one per configuration; it may run out
of memory or die without harm. `OpenSessions` opens a session when it is first timed, and as many
at once as memory allows:

    with TimerProcess() as timer:
        sessions = OpenSessions(timer)
        for _ in range(5):
            rates = [sessions.time(name, config, 1.0).rate() for name, config in configs.items()]
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.machine import cores
from sparring.messages import Message
from sparring.processes import Child, ProcessEndedError
from sparring.speed.rounds import Measurement, Round
from sparring.training.planning.settings import written

HEADROOM = 4
"""Other sessions stay open while free memory is at least this many times a new session's."""
MEMORY_WORDS = ("memory", "are free", "killed")
"""Words of errors that closing other sessions may cure."""


class UnfitError(SparringError):
    """A configuration cannot be timed on this machine: it fails, or lacks memory."""


@dataclass(frozen=True)
class SessionInfo:
    """What the plan decided for a configuration, and what its session takes."""

    device: str
    games_on: str
    fused: bool
    threads: int
    games: int
    steps: int
    slots: int
    parameters: int
    seconds: float
    """Time to open the session, warm-up rounds included."""
    workers: int = 0
    memory_bytes: int = 0
    """Growth of the process and its children."""
    gpu_bytes: int = 0
    free_bytes: int = 0
    """Free memory after opening."""
    gpu_free_bytes: int = 0

    @property
    def is_tight(self) -> bool:
        """Whether little memory is left for other sessions."""
        on_gpu = self.gpu_bytes and self.gpu_free_bytes < HEADROOM * self.gpu_bytes
        return bool(on_gpu) or self.free_bytes < HEADROOM * self.memory_bytes


class Timer(Protocol):
    """Opens sessions by name and times them; tests have one whose rates follow a formula."""

    @property
    def pid(self) -> int | None: ...
    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> SessionInfo: ...
    def time(self, name: str, seconds: float, *, min_rounds: int = 1) -> Measurement: ...
    def close(self, name: str) -> None: ...


class TimerProcess:
    """Child process that times configurations. It starts with the first request."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def __enter__(self) -> TimerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> SessionInfo:
        """Make the learner and run `warm_up` rounds that are not measured.

        Raises ConfigError if the configuration is refused, UnfitError if it fails. Other sessions
        stay open unless the process died.
        """
        return SessionInfo(
            **self._request("open", name=name, config=written(config), warm_up=warm_up)
        )

    def time(self, name: str, seconds: float, *, min_rounds: int = 1) -> Measurement:
        """Collect and update for so many seconds, and for `min_rounds` rounds at least."""
        facts = self._request("time", name=name, seconds=seconds, min_rounds=min_rounds)
        return Measurement(**{**facts, "rounds": tuple(Round(**one) for one in facts["rounds"])})

    def close(self, name: str) -> None:
        """Close a session and free its memory."""
        self._request("close", name=name)

    @property
    def pid(self) -> int | None:
        """Process id, None before the first request. A new process has no open sessions."""
        return self._child.pid if self._child else None

    def stop(self) -> None:
        child, self._child = self._child, None
        if child:
            child.end()

    def _request(self, what: str, **facts: Any) -> Mapping[str, Any]:
        self._child = self._child or Child("sparring.speed.timer_process", threads=cores())
        try:
            return self._child.request(Message(what, facts)).payload
        except ProcessEndedError as error:
            self.stop()
            raise UnfitError(str(error)) from None
        except SparringError as error:
            if "CUDA error" in str(error):  # the GPU context of this process is lost
                self.stop()
            raise
        except BaseException:
            self.stop()
            raise


class OpenSessions:
    """Times configurations by name: opens sessions on demand, closes others if memory is short."""

    def __init__(self, timer: Timer, *, memory_budget: int = 0, warm_up: int = 1) -> None:
        """Use a timer that has no open session.

        memory_budget: approximate bytes of all open sessions. 0: while free memory allows.
        warm_up: rounds after opening that are not measured.
        """
        self.timer, self.memory_budget, self.warm_up = timer, memory_budget, warm_up
        self.infos: dict[str, SessionInfo] = {}
        """By name, least recently timed first."""
        self._needs: dict[str, int] = {}
        self._pid = timer.pid

    def time(
        self, name: str, config: TrainConfig, seconds: float, *, min_rounds: int = 1, needs: int = 0
    ) -> Measurement:
        """Time a configuration for so many seconds, and for `min_rounds` rounds at least.

        needs: approximate bytes of its session. Raises ConfigError if it is refused, and
        UnfitError if it fails; for lack of memory only after all other sessions were closed.
        """
        self._needs[name] = needs
        try:
            return self._time(name, config, seconds, min_rounds)
        except (ConfigError, UnfitError) as error:
            if not is_memory(error) or not self.infos.keys() - {name}:
                raise
        self.keep_only()
        return self._time(name, config, seconds, min_rounds)

    def keep_only(self, *names: str) -> None:
        """Close all sessions but these."""
        for name in self.infos.keys() - set(names):
            self.close(name)

    def close(self, name: str) -> None:
        """Close a session if it is open."""
        self._forget_if_restarted()
        if self.infos.pop(name, None):
            with contextlib.suppress(UnfitError):
                self.timer.close(name)

    def _time(self, name: str, config: TrainConfig, seconds: float, min_rounds: int) -> Measurement:
        self._forget_if_restarted()
        if name not in self.infos:
            self._open(name, config)
        self.infos[name] = self.infos.pop(name)
        try:
            return self.timer.time(name, seconds, min_rounds=min_rounds)
        except UnfitError:
            self.close(name)
            raise

    def _open(self, name: str, config: TrainConfig) -> None:
        while self.memory_budget and self.infos and self._bytes_with(name) > self.memory_budget:
            self.close(next(iter(self.infos)))
        info = self.timer.open(name, config, warm_up=self.warm_up)
        self._forget_if_restarted()  # the process may have started or died during the request
        self.infos[name] = info
        if info.is_tight and not self.memory_budget:
            self.keep_only(name)

    def _bytes_with(self, name: str) -> int:
        return sum(self._needs[one] for one in {*self.infos, name})

    def _forget_if_restarted(self) -> None:
        if self.timer.pid != self._pid:
            self.infos.clear()
            self._pid = self.timer.pid


def is_memory(error: Exception) -> bool:
    return any(word in str(error) for word in MEMORY_WORDS)
