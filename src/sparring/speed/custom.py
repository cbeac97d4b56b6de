"""A training of our own, made to be looked at, in a folder that goes with it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.machine import cores
from sparring.messages import Message, checked
from sparring.processes import Child
from sparring.speed.evidence import processes_of
from sparring.speed.progress import Progress
from sparring.speed.rounds import has_replay, steady
from sparring.store.folders import CONFIG
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
    if has_replay(config):
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


class CustomTraining:
    """A process that trains with some settings until it is closed."""

    def __init__(self, config: TrainConfig) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="sparring-profile-", ignore_cleanup_errors=True
        )
        root = Path(self._folder.name)
        self.config, self.folder = to_look_at(config, root), root / NAME
        variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        self._child = Child("sparring.speed.child", threads=cores(), variables=variables)
        self._child.tell(Message("train", written(self.config)))
        self.pid = self._child.pid

    def __enter__(self) -> CustomTraining:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def ask(self, what: str, timeout_s: float, **request: Any) -> Mapping[str, Any]:
        """Let it look at itself, and return what it has seen."""
        try:
            return self._child.ask(Message(what, request), timeout_s).facts
        except TimeoutError:
            raise SparringError(f"{what}: no answer within {timeout_s:g} s") from None

    def check(self) -> None:
        """Raise if it has ended: refused, failed or killed."""
        for said in self._child.hear():
            checked(said)
        if self._child.gone:
            raise SparringError(f"the training failed: {self._child.last_words()}")

    def close(self) -> None:
        """End it, whatever it does, and remove what it has written."""
        family = processes_of(self.pid)
        self._child.end()
        until = time.monotonic() + END_S  # those that it has started end with it
        while any(map(running, family)) and time.monotonic() < until:
            time.sleep(POLL_S / 10)
        self._folder.cleanup()
