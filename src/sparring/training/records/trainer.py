"""The process that trains a run: who it is, and the same clean stop as Ctrl-C."""

from __future__ import annotations

import os
import platform
import signal
from pathlib import Path

from sparring.errors import SparringError
from sparring.store.files import read_regular
from sparring.training.records.overview import is_held
from sparring.training.records.run import LOCK

PROC = Path("/proc")
MOST_LOCK = 1024
"""Bytes of a lock: a number and the name of a machine."""


class NotTrainingError(SparringError):
    """A run that nobody trains, or nobody whom we can reach."""


def trainer_of(run: Path) -> int:
    """Return the process that holds a run's lock; an error says why there is none to be found."""
    lock = run / LOCK
    if not is_held(lock):
        raise NotTrainingError(f"{run.name} is not being trained")
    try:
        number, _, host = read_regular(lock, MOST_LOCK).decode().strip().partition(" ")
        pid = int(number)
    except (OSError, ValueError):
        raise NotTrainingError(
            f"{run.name} is about to begin, or its lock does not say who trains it; try again"
        ) from None
    if host and host != platform.node():
        raise NotTrainingError(f"{run.name} is being trained on {host}; stop it there")
    if pid == os.getpid() or not holds(pid, lock):
        raise NotTrainingError(
            f"{run.name} is being trained by a process that cannot be reached from here, as in a "
            "container; stop it there"
        )
    return pid


def holds(pid: int, lock: Path) -> bool:
    """Whether a process has this very file open, as far as the system tells."""
    handles = PROC / str(pid) / "fd"
    if not PROC.is_dir():  # a system that does not say; the lock is held and names this process
        return True
    try:
        wanted = lock.stat()
        for handle in handles.iterdir():
            try:
                facts = handle.stat()
            except OSError:
                continue
            if (facts.st_dev, facts.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    except OSError:
        return False
    return False


def stop_training(run: Path) -> int:
    """Tell whoever trains a run to finish its update, save and end; return the process."""
    pid = trainer_of(run)
    try:
        if hasattr(os, "pidfd_open"):  # so that nobody else gets the signal who has the number next
            handle = os.pidfd_open(pid)
            try:
                if trainer_of(run) == pid:
                    signal.pidfd_send_signal(handle, signal.SIGINT)
            finally:
                os.close(handle)
        else:
            os.kill(pid, signal.SIGINT)
    except ProcessLookupError:
        raise NotTrainingError(f"{run.name} has just ended") from None
    except PermissionError:
        raise NotTrainingError(f"{run.name} is trained by somebody else's process") from None
    return pid
