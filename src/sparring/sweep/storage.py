"""The folder of a sweep and the log of its trials.

sweep.toml     the file of the sweep
options.json   options of the command line
trials.jsonl   a line whenever a trial starts or ends; the last line of a number counts
confirm.jsonl  the same for confirmation runs
runs/          the runs
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparring.config.ranges import is_number
from sparring.errors import ConfigError, SparringError
from sparring.store import schema
from sparring.store.files import locked as lock_file
from sparring.store.files import remove_stale_files, write_atomic
from sparring.store.schema import (
    integer,
    list_of,
    mapping_of,
    object_with,
    optional,
    parse_json,
    string,
    string_matching,
)
from sparring.sweep.settings import FOLDER
from sparring.sweep.trials import DONE, FAILED, PRUNED, RUNNING, SIDES, Trial
from sparring.training.records.run import finite

FILE, OPTIONS, TRIALS, CONFIRM = "sweep.toml", "options.json", "trials.jsonl", "confirm.jsonl"
SPENT = "seconds.json"
LOCK = ".lock"
A_TRIAL = object_with(
    {"number": integer(), "settings": mapping_of(schema.any_value)},
    {
        "state": string_matching("|".join((RUNNING, DONE, PRUNED, FAILED)), "a state of a trial"),
        **dict.fromkeys(("value", "low", "high"), optional(schema.finite_number)),
        "curve": list_of(list_of(schema.finite_number)),
        "seconds": schema.finite_number,
        **{"decisions": integer(), "seed": integer(-schema.MAX_INT)},
        **dict.fromkeys(("run", "init", "why"), string),
        "extra": mapping_of(schema.any_value),
    },
    closed=True,
)
"""Schema of a line in trials.jsonl."""
A_SIDE = string_matching("|".join(SIDES), f"one of {', '.join(SIDES)}")
CONFIRMING = object_with(
    {"extra": object_with({"side": A_SIDE, "of": mapping_of(schema.any_value)})}
)
"""Schema of a line in confirm.jsonl: `side` is part of a folder name that may be removed."""


class TrialLog:
    """Trials of one file by number."""

    def __init__(self, path: Path, shape: schema.Validator = schema.any_value) -> None:
        """Read the file; an unfinished last line is ignored.

        shape: additional schema of a line.
        """
        self.path = path
        self.trials: dict[int, Trial] = {}
        data = path.read_bytes() if path.exists() else b""
        self._whole = data.rfind(b"\n") + 1
        """Bytes of complete lines; the rest is cut off by the next write."""
        for at, line in enumerate(data[: self._whole].splitlines(), start=1):
            if not line:
                continue
            try:
                given = parse_json(line)
                trial = read_trial(given)
                shape(given, "")
            except ValueError as error:
                raise ConfigError(f"{path}: line {at} is damaged: {error}; remove it") from None
            self.trials[trial.number] = trial

    def put(self, trial: Trial) -> None:
        """Append a trial, with fsync."""
        line = json.dumps(finite(asdict(trial)), allow_nan=False)
        data = f"{line}\n".encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.ftruncate(handle, self._whole)
            if os.write(handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(handle)
        finally:
            os.close(handle)
        self._whole += len(data)
        self.trials[trial.number] = trial

    @property
    def ended(self) -> list[Trial]:
        """Finished trials in order."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.state != RUNNING]

    @property
    def lost(self) -> list[Trial]:
        """Trials that were running when an earlier session ended."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.state == RUNNING]


def read_trial(given: Any) -> Trial:
    """Read a trial from a line; ValueError if it is invalid."""
    A_TRIAL(given, "")
    curve = tuple((float(s), float(d), float(v)) for s, d, v in given.get("curve", ()))
    return Trial(**{**given, "curve": curve})


@dataclass(frozen=True)
class SweepFolder:
    """The folder of a sweep."""

    path: Path

    @classmethod
    def make(cls, path: Path, text: bytes, options: Mapping[str, Any]) -> SweepFolder:
        """Create the folder; remove it if that fails."""
        made = next((one for one in (*reversed(path.parents), path) if not one.exists()), path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            cls(path).save_options(options)
            write_atomic(path / FILE, text)  # last: it marks a complete folder
        except BaseException as error:  # Ctrl-C, too
            shutil.rmtree(made, ignore_errors=True)
            if isinstance(error, OSError):
                why = error.strerror or error
                raise ConfigError(f"cannot make {path}: {why}; use --out") from None
            raise
        return cls(path)

    @property
    def is_sweep(self) -> bool:
        return (self.path / FILE).is_file()

    @property
    def options(self) -> dict[str, Any]:
        return self._read_json(OPTIONS)

    @property
    def spent_s(self) -> float:
        found: Any = self._read_json(SPENT).get("seconds")
        return max(0.0, float(found)) if is_number(found) else 0.0

    def _read_json(self, name: str) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            found = parse_json((self.path / name).read_bytes())
            return found if isinstance(found, dict) else {}
        return {}

    def save_options(self, options: Mapping[str, Any]) -> None:
        write_atomic(self.path / OPTIONS, (json.dumps(options, indent=2) + "\n").encode())

    def save_seconds(self, seconds: float) -> None:
        write_atomic(self.path / SPENT, (json.dumps({"seconds": seconds}) + "\n").encode())

    @property
    def trials(self) -> TrialLog:
        return TrialLog(self.path / TRIALS)

    @property
    def confirming(self) -> TrialLog:
        """Confirmation runs, read again from the file."""
        return TrialLog(self.path / CONFIRM, CONFIRMING)

    def run_path(self, name: str) -> Path:
        """Return the path of a run; the folder may have been moved."""
        return self.path / FOLDER / name

    def clear_run(self, name: str) -> None:
        shutil.rmtree(self.run_path(name), ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the sweep against other processes."""
        remove_stale_files(self.path)
        try:
            with lock_file(self.path / LOCK):
                yield
        except BlockingIOError:
            raise SparringError(f"{self.path} is being searched by another process") from None
