"""The folder of a sweep, and the records of its trials: the truth, whatever a process remembers.

sweep.toml     the file as it was begun
options.json   what the command line said instead
trials.jsonl   a line whenever a trial begins or ends; the last line of a number counts
confirm.jsonl  the same of the runs that confirm the best setting
runs/          the runs themselves
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
from sparring.store.files import locked, remove_stale_files, write_atomic
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
from sparring.sweep.points import FOLDER
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
"""The shape of a line."""
A_SIDE = string_matching("|".join(SIDES), f"one of {', '.join(SIDES)}")
CONFIRMING = object_with(
    {"extra": object_with({"side": A_SIDE, "of": mapping_of(schema.any_value)})}
)
"""And of a line of confirm.jsonl: `side` is part of the name of a folder that may be removed."""


class Records:
    """The trials in one file, by number."""

    def __init__(self, path: Path, shape: schema.Validator = schema.any_value) -> None:
        """Read what there is. A line that a dying process left unfinished is none.

        shape: what lines have to be beside trials.
        """
        self.path = path
        self.trials: dict[int, Trial] = {}
        data = path.read_bytes() if path.exists() else b""
        self._whole = data.rfind(b"\n") + 1
        """Bytes of whole lines; what is behind them goes when the next one is written."""
        for at, line in enumerate(data[: self._whole].splitlines(), start=1):
            if not line:
                continue
            try:
                given = parse_json(line)
                trial = read_trial(given)
                shape(given, "")
            except ValueError as wrong:
                raise ConfigError(f"{path}: line {at} is damaged: {wrong}; remove it") from None
            self.trials[trial.number] = trial

    def put(self, trial: Trial) -> None:
        """Write a trial down, at once and whole."""
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
        """Trials that are over, by number."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.state != RUNNING]

    @property
    def lost(self) -> list[Trial]:
        """Trials that were under way when whoever ran them ended; to be asked at the beginning."""
        return [trial for _, trial in sorted(self.trials.items()) if trial.state == RUNNING]


def read_trial(given: Any) -> Trial:
    """A trial from its line; a ValueError says what is wrong with it."""
    A_TRIAL(given, "")
    curve = tuple((float(s), float(d), float(v)) for s, d, v in given.get("curve", ()))
    return Trial(**{**given, "curve": curve})


@dataclass(frozen=True)
class Folder:
    """The folder of a sweep."""

    path: Path

    @classmethod
    def make(cls, path: Path, text: bytes, options: Mapping[str, Any]) -> Folder:
        """Begin a sweep. What fails leaves nothing behind."""
        made = next((one for one in (*reversed(path.parents), path) if not one.exists()), path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            cls(path).keep(options)
            write_atomic(path / FILE, text)  # last: what has it is a sweep
        except BaseException as wrong:  # Ctrl-C, too
            shutil.rmtree(made, ignore_errors=True)
            if isinstance(wrong, OSError):
                why = wrong.strerror or wrong
                raise ConfigError(f"cannot make {path}: {why}; use --out") from None
            raise
        return cls(path)

    @property
    def is_sweep(self) -> bool:
        return (self.path / FILE).is_file()

    @property
    def options(self) -> dict[str, Any]:
        return self._noted(OPTIONS)

    @property
    def spent_s(self) -> float:
        found: Any = self._noted(SPENT).get("seconds")
        return max(0.0, float(found)) if is_number(found) else 0.0

    def _noted(self, name: str) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            found = parse_json((self.path / name).read_bytes())
            return found if isinstance(found, dict) else {}
        return {}

    def keep(self, options: Mapping[str, Any]) -> None:
        write_atomic(self.path / OPTIONS, (json.dumps(options, indent=2) + "\n").encode())

    def spend(self, seconds: float) -> None:
        write_atomic(self.path / SPENT, (json.dumps({"seconds": seconds}) + "\n").encode())

    @property
    def trials(self) -> Records:
        return Records(self.path / TRIALS)

    @property
    def confirming(self) -> Records:
        """The runs that confirm what was found, read anew."""
        return Records(self.path / CONFIRM, CONFIRMING)

    def run_path(self, name: str) -> Path:
        """Where a run lies; records of a folder that was moved name another place."""
        return self.path / FOLDER / name

    def clear_run(self, name: str) -> None:
        shutil.rmtree(self.run_path(name), ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from going on with the same sweep at the same time."""
        remove_stale_files(self.path)
        try:
            with locked(self.path / LOCK):
                yield
        except BlockingIOError:
            raise SparringError(f"{self.path} is being searched by another process") from None
