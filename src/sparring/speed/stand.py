"""The stand on which settings are timed in turn, so that a busy moment meets them all alike.

`Gauge` is a process in which settings are open, several at once; it may run out of memory or die
without harm. `Stand` opens them there when they are first asked for, as many as there is room for:

    with Gauge() as gauge:
        stand = Stand(gauge)
        for _ in range(5):
            rates = [stand.time(name, config, 1.0).rate() for name, config in settings.items()]
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
from sparring.processes import Child, GoneError
from sparring.speed.rounds import Reading, Round
from sparring.training.planning.settings import written

ROOM = 4
"""What was opened stays so while so many times as much memory is free."""
OF_MEMORY = ("memory", "are free", "killed")
"""Words of refusals and failures that another one's leaving may help."""


class UnfitError(SparringError):
    """Settings that cannot be timed here: they need more memory than there is, or they fail."""


@dataclass(frozen=True)
class Opened:
    """What became of settings: decided by the plan, before anything is timed."""

    device: str
    games_on: str
    fused: bool
    threads: int
    games: int
    steps: int
    slots: int
    parameters: int
    seconds: float
    """That making it all took, with the rounds that warmed it up."""
    workers: int = 0
    memory_bytes: int = 0
    """By which the process and those that work for it grew."""
    gpu_bytes: int = 0
    """The same on a GPU."""
    free_bytes: int = 0
    """Memory that is left for others."""
    gpu_free_bytes: int = 0
    """The same on a GPU."""

    @property
    def tight(self) -> bool:
        """Whether there is little room for others beside it."""
        on_gpu = self.gpu_bytes and self.gpu_free_bytes < ROOM * self.gpu_bytes
        return bool(on_gpu) or self.free_bytes < ROOM * self.memory_bytes


class Gauge:
    """A process that times settings. Start one, ask it as often as you like, close it."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._child: Child | None = None

    def __enter__(self) -> Gauge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> Opened:
        """Make the learner of settings and let it play and learn a few rounds that do not count.

        Raises ConfigError if they are refused, UnfitError if they fail. Whatever else is open
        stays so, unless the process died with it.
        """
        return Opened(**self._ask("open", name=name, config=written(config), warm_up=warm_up))

    def time(self, name: str, seconds: float, *, least: int = 1) -> Reading:
        """Let it play and learn for so many seconds, `least` rounds at the least."""
        found = self._ask("time", name=name, seconds=seconds, least=least)
        return Reading(**{**found, "rounds": tuple(Round(**one) for one in found["rounds"])})

    def shut(self, name: str) -> None:
        """Let go of what was opened under a name."""
        self._ask("shut", name=name)

    @property
    def pid(self) -> int | None:
        """The process, once there is one; another one has nothing open."""
        return self._child.pid if self._child else None

    def close(self) -> None:
        child, self._child = self._child, None
        if child:
            child.end()

    def _ask(self, what: str, **facts: Any) -> Mapping[str, Any]:
        self._child = self._child or Child("sparring.speed.process", threads=cores())
        try:
            return self._child.ask(Message(what, facts)).facts
        except GoneError as wrong:
            self.close()
            raise UnfitError(str(wrong)) from None
        except SparringError as wrong:
            if "CUDA error" in str(wrong):  # a GPU that failed answers this process no more
                self.close()
            raise
        except BaseException:
            self.close()
            raise


class Timer(Protocol):
    """What a stand times by: a gauge, or in tests a surface that is known."""

    @property
    def pid(self) -> int | None: ...
    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> Opened: ...
    def time(self, name: str, seconds: float, *, least: int = 1) -> Reading: ...
    def shut(self, name: str) -> None: ...


class Stand:
    """Times settings by name; opens them when they are asked for, and shuts others if need be."""

    def __init__(self, gauge: Timer, *, room: int = 0, warm_up: int = 1) -> None:
        """Take over a gauge in which nothing is open.

        room: bytes that all open settings together may take, about. 0: as many as go well.
        warm_up: rounds after opening that do not count.
        """
        self.gauge, self.room, self.warm_up = gauge, room, warm_up
        self.open: dict[str, Opened] = {}
        """The one that was timed longest ago first."""
        self._needs: dict[str, int] = {}
        self._pid = gauge.pid

    def time(
        self, name: str, config: TrainConfig, seconds: float, *, least: int = 1, needs: int = 0
    ) -> Reading:
        """Time settings for so many seconds, `least` rounds at the least.

        needs: bytes that they take, about. Raises ConfigError if they are refused and UnfitError
        if they fail, for want of memory only where they do so alone.
        """
        self._needs[name] = needs
        try:
            return self._time(name, config, seconds, least)
        except (ConfigError, UnfitError) as wrong:
            if not is_memory(wrong) or not self.open.keys() - {name}:
                raise
        self.keep()
        return self._time(name, config, seconds, least)

    def keep(self, *names: str) -> None:
        """Shut all but these."""
        for name in self.open.keys() - set(names):
            self.shut(name)

    def shut(self, name: str) -> None:
        """Let go of settings, if they are open."""
        self._notice_death()
        if self.open.pop(name, None):
            with contextlib.suppress(UnfitError):
                self.gauge.shut(name)

    def _time(self, name: str, config: TrainConfig, seconds: float, least: int) -> Reading:
        self._notice_death()
        if name not in self.open:
            self._open(name, config)
        self.open[name] = self.open.pop(name)
        try:
            return self.gauge.time(name, seconds, least=least)
        except UnfitError:
            self.shut(name)
            raise

    def _open(self, name: str, config: TrainConfig) -> None:
        while self.room and self.open and self._wanted(name) > self.room:
            self.shut(next(iter(self.open)))
        opened = self.gauge.open(name, config, warm_up=self.warm_up)
        self._notice_death()  # it may have died since, or was not there yet
        self.open[name] = opened
        if opened.tight and not self.room:
            self.keep(name)

    def _wanted(self, name: str) -> int:
        return sum(self._needs[one] for one in {*self.open, name})

    def _notice_death(self) -> None:
        if self.gauge.pid != self._pid:
            self.open.clear()
            self._pid = self.gauge.pid


def is_memory(wrong: Exception) -> bool:
    return any(word in str(wrong) for word in OF_MEMORY)
