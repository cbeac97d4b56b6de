"""Handle of a training process that is started to be profiled, in a temporary folder."""

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
from sparring.messages import Message, raise_if_error
from sparring.processes import Child
from sparring.speed.curves import CurveReader
from sparring.speed.evidence import processes_of
from sparring.speed.rounds import has_replay, steady
from sparring.store.folders import CONFIG
from sparring.training.planning.settings import members_of, written
from sparring.usage import is_running

NAME = "profiled"
MINUTES = 24 * 60.0
"""A budget that is never reached: the profiler ends the training."""
WARM_UPDATES = 3
"""Updates of the warm-up."""
WARM_LIMIT_S = 30.0
"""Longest warm-up; a training that is slower is profiled all the same."""
POLL_S = 0.1
END_S = 5.0
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def profiling_config(config: TrainConfig, folder: Path) -> TrainConfig:
    """Return settings that write nothing outside the folder and skip slow starts."""
    config = members_of(config)[0]
    if has_replay(config) or config.algo == "gumbel":
        config = steady(config)  # or the replay would still be filling, or searches be short
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


class ProfiledTraining:
    """Training process: start it, request samples, stop it."""

    def __init__(self, config: TrainConfig) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="sparring-profile-", ignore_cleanup_errors=True
        )
        root = Path(self._folder.name)
        self.config, self.folder = profiling_config(config, root), root / NAME
        variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        self._child = Child("sparring.speed.profiled_process", threads=cores(), variables=variables)
        self._child.send(Message("train", written(self.config)))
        self.pid = self._child.pid

    def __enter__(self) -> ProfiledTraining:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm_up(self, curves: CurveReader, seconds: float, echo: Callable[[str], None]) -> None:
        """Wait for the first updates, and for so many seconds at least.

        A training whose first update takes minutes is profiled all the same: its stacks tell why.
        """
        while not (self.folder / CONFIG).is_file():
            echo("starting: loading torch")
            self.check_running()
            time.sleep(POLL_S)
        began = time.monotonic()
        while (spent := time.monotonic() - began) < WARM_LIMIT_S:
            updates = curves.last_update()
            if updates >= WARM_UPDATES and spent >= seconds:
                return
            echo(f"warming up: update {updates}")
            self.check_running()
            time.sleep(POLL_S)

    def request(self, what: str, timeout_s: float, **facts: Any) -> Mapping[str, Any]:
        """Let the process sample itself or record kernels, and return the result."""
        try:
            return self._child.request(Message(what, facts), timeout_s).payload
        except TimeoutError:
            raise SparringError(f"{what}: no answer within {timeout_s:g} s") from None

    def check_running(self) -> None:
        """Raise an error if the process has ended: refused, failed or killed."""
        for message in self._child.receive():
            raise_if_error(message)
        if self._child.has_ended:
            raise SparringError(f"the training failed: {self._child.exit_reason()}")

    def close(self) -> None:
        """End the process and its children, and remove the folder."""
        pids = processes_of(self.pid)
        self._child.end()
        until = time.monotonic() + END_S  # its children end with it
        while any(map(is_running, pids)) and time.monotonic() < until:
            time.sleep(POLL_S / 10)
        self._folder.cleanup()
