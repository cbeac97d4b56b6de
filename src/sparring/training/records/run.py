"""A run's folder: its settings, its machine, who trains it, and where the rest lies."""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import re
import secrets
import shutil
import signal
import sqlite3
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from sparring import ids, trusted
from sparring.errors import ConfigError, SparringError
from sparring.machine import machine_info
from sparring.store.files import (
    NO_LOCKS,
    READ_FLAGS,
    check_no_outside_links,
    locked,
    read_regular,
    remove_stale_files,
    try_lock,
    write_atomic,
)
from sparring.store.folders import CHECKPOINTS, CONFIG, IMITATED_POLICY, LATEST, MADE_BY_FILE, RUNS
from sparring.store.lookup import find_run
from sparring.training.records import metrics

NAME_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that look alike."""
LOCK = ".lock"
"""Held by the process that trains or measures the run; it says which one that is, and where."""
LOCK_WAIT_S = 0.2
"""How long to wait for the lock: who only asks whether it is held has it for a moment."""
EVENTS = "events.json"
"""What came from beside, with the update at which it took effect."""
PHASE = "phase"
"""The event of a phase that begins."""
RESULTS = "results.json"
"""What the agent was worth in the end: every opponent, with intervals, parity and seats."""
NETWORK = "network.json"
"""How large its network is: layers, parameters, multiply-accumulates; how it is computed."""
ORIGIN = "origin.json"
"""Where a run begins that is not from scratch."""
EXTERNAL_FOLDERS = ("wandb",)
"""Folders of a run that other programs write, with links to their own logs."""
MAX_CONFIG = 4 * 2**20
"""Bytes of the largest file of settings that is read."""
HEADER = "# Every setting. With a budget in updates, decisions or episodes the run repeats.\n"
PROC = Path("/proc")
MAX_LOCK = 1024
"""Bytes of a lock: a number and the name of a machine."""


class Run:
    """A run's folder, by its whole path: an environment may go to another folder meanwhile."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.config = path.absolute(), config

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @classmethod
    def create(
        cls,
        root: Path,
        game: str,
        algo: str,
        config: Mapping[str, Any],
        *,
        name: str = "",
        made_by: str = "",
        comment: str = "",
        fill: Callable[[Path], None] | None = None,
    ) -> Run:
        """Make `root/<game>-<algo>-<date>-<time>-<4 chars>/`, or `root/name`, with its settings.

        made_by: the command that makes it for itself; such a run is never `latest`.
        told: how it is computed, for the head of its settings.
        fill: puts into the folder what else belongs there. Whatever fails leaves nothing behind.
        """
        for word in (game, algo):
            if not re.fullmatch(r"\w+", word):
                raise ConfigError(f"{word!r} cannot be part of a folder's name; use letters and _")
        check_name(root, name)
        text = to_toml(config, comment)
        path: Path | None = None
        try:
            root.mkdir(parents=True, exist_ok=True)
            path = fresh_folder(root, game, algo, name)
            (path / CHECKPOINTS).mkdir()
            metrics.connect(path).close()
            run = cls(path, tomllib.loads(text))
            run.write_json("machine.json", {**machine_info(), **learning_facts()})
            if made_by:
                run.write_json(MADE_BY_FILE, {"command": made_by})
            if fill:
                fill(path)
            # Last: a folder that has a configuration is a run with everything in place.
            write_atomic(path / CONFIG, text.encode())
            trusted.remember(path, trusted.strings_in(run.config))
        except (OSError, sqlite3.Error, SparringError) as error:
            if path:
                shutil.rmtree(path, ignore_errors=True)
            raise ConfigError(
                f"cannot make a run in {root}: {getattr(error, 'strerror', '') or error}; choose a "
                "folder that can be written, and check the space on its disk"
            ) from error
        return run

    def configure(self, config: Mapping[str, Any], comment: str = "") -> None:
        """Replace the settings; the file is the old one or the new one at any moment."""
        text = to_toml(config, comment)
        write_atomic(self.path / CONFIG, text.encode())
        self.config = tomllib.loads(text)

    def branch(
        self, number: int, config: Mapping[str, Any], *, best: int = -1, comment: str = ""
    ) -> Run:
        """Begin a new run at a checkpoint; this one stays as it is. best: comes along."""

        def fill(path: Path) -> None:
            # Here: reading a run needs no learning library.
            from sparring.store.segments import link_segments

            for kept in {number, best} - {-1}:
                source = self.checkpoints / f"{kept:08d}"
                if source.is_dir():
                    shutil.copytree(source, path / CHECKPOINTS / source.name)
            link_segments(self.checkpoints, path / CHECKPOINTS)
            if (self.path / IMITATED_POLICY).is_dir():
                shutil.copytree(self.path / IMITATED_POLICY, path / IMITATED_POLICY)
            metrics.copy(self.path, path)
            for table in self.path.glob("*.csv"):
                shutil.copy(table, path)
            origin = {"run": str(self.path), "checkpoint": number}
            Run(path, {}).write_json(ORIGIN, origin)

        words = (folder_word(config["game"]) or "env", folder_word(config["algo"]))
        root, name = self.path.parent, f"{self.name}-at-{number}"
        tries = itertools.chain([name], (f"{name}-{again}" for again in itertools.count(2)))
        name = next(one for one in tries if not (root / one).exists())
        settings = {**config, "name": name}
        return Run.create(root, *words, settings, name=name, comment=comment, fill=fill)

    @classmethod
    def open(cls, path: str | Path, *, root: Path = RUNS) -> Run:
        """Open a run by its folder, by the beginning of its name, or `latest`."""
        folder = find_run(path, root)
        missing = [name for name in (CONFIG, CHECKPOINTS) if not (folder / name).exists()]
        if missing:
            raise ConfigError(
                f"{folder} is not a run: {' and '.join(missing)} missing; "
                "give the folder that `sparring train` named in its last line"
            )
        try:
            config = tomllib.loads(read_regular(folder / CONFIG, MAX_CONFIG).decode())
        except OSError as error:
            raise ConfigError(f"{folder / CONFIG} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{folder / CONFIG} cannot be read: {error}") from error
        remove_stale_files(folder)
        trusted.allow_remembered(folder, config)
        return cls(folder, config)

    def write_json(self, name: str, obj: Any) -> Path:
        """Write a JSON file into the run's folder at once; NaN and infinity become null."""
        path = self.path / name
        if path.parent != self.path:
            raise ConfigError(f"{name!r} must be a file name without folders")
        write_atomic(path, (json.dumps(finite(obj), indent=2, allow_nan=False) + "\n").encode())
        return path

    def remove_results(self) -> None:
        """Remove what was measured at an end that is none any more."""
        with suppress(OSError):
            (self.path / RESULTS).unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the run; refuse what would have this one write elsewhere."""
        try:
            check_no_outside_links(self.path, besides=EXTERNAL_FOLDERS)
        except OSError as error:
            raise SparringError(
                f"{error.filename} is {error.strerror}; nothing was written: remove it if you do "
                "not know it"
            ) from None
        try:
            with locked(self.path / LOCK, wait_s=LOCK_WAIT_S):
                with suppress(OSError):  # a full disk keeps nobody from training
                    (self.path / LOCK).write_text(f"{os.getpid()} {platform.node()}\n")
                yield
        except BlockingIOError:
            raise SparringError(
                f"{self.path} is being trained or measured by another process; wait for it or "
                "stop it"
            ) from None


def check_name(root: Path, name: str) -> None:
    if not name:
        return
    if name == LATEST or not re.fullmatch(r"[A-Za-z0-9_][\w.+-]{0,99}", name):
        raise ConfigError(
            f"name {name!r} cannot be a run's; use up to 100 letters, digits and _ - + ."
        )
    if (root / name).exists():
        raise ConfigError(f"{root / name} is there already; choose another name, or resume it")


def folder_word(text: str) -> str:
    """Return text as a part of a folder's name; of a file with a factory, the file's own name."""
    text = ids.display_name(text)
    path, colon, factory = text.rpartition(":")
    if path.endswith(".py"):
        text = f"{Path(path).stem}{colon}{factory}"
    return re.sub(r"\W+", "_", text).strip("_")


def fresh_folder(root: Path, game: str, algo: str, name: str = "") -> Path:
    """Make a folder that was not there before; one without a name ends with four letters."""
    if name:
        (root / name).mkdir()
        return root / name
    while True:
        letters = "".join(secrets.choice(NAME_LETTERS) for _ in range(4))
        path = root / f"{game}-{algo}-{datetime.now():%Y%m%d-%H%M%S}-{letters}"
        with suppress(FileExistsError):
            path.mkdir()
            return path


@contextmanager
def lock_all(runs: Sequence[Run]) -> Iterator[None]:
    """Keep other processes from training these runs at the same time."""
    with ExitStack() as held:
        for run in runs:
            held.enter_context(run.lock())
        yield


def to_toml(config: Mapping[str, Any], comment: str = "") -> str:
    """Return a configuration as TOML that reads back equal. told: a comment for its head."""
    plain = {key: plain_value(value, str(key)) for key, value in config.items()}
    try:
        head = f"# {comment}\n" if comment else ""
        text = f"{HEADER}{head}\n{tomlkit.dumps(plain)}"
        same = tomllib.loads(text) == plain
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError) as error:
        raise ConfigError(f"the configuration cannot be written as TOML: {error}") from error
    if not same:
        raise ConfigError("the configuration does not survive TOML; use tables, lists and values")
    return text


def plain_value(value: Any, where: str) -> Any:
    """Return a value as TOML can hold it; tuples become lists."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner, f"{where}[{at}]") for at, inner in enumerate(value)]
    if type(value) not in (str, bool, int, float) or value != value:  # noqa: PLR0124  (NaN)
        raise ConfigError(
            f"{where} = {value!r} cannot be kept in {CONFIG}; "
            "use text, numbers, true or false, lists and tables"
        )
    return value


def finite(obj: Any) -> Any:
    """Return the same values with None for numbers that JSON does not have."""
    if isinstance(obj, Mapping):
        return {key: finite(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [finite(value) for value in obj]
    return None if isinstance(obj, float) and not math.isfinite(obj) else obj


def learning_facts() -> dict[str, Any]:
    """Return what training depends on besides the processor."""
    import torch  # here: reading a run needs no learning library

    seen = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpus": [torch.cuda.get_device_name(index) for index in seen],
    }


@contextmanager
def remove_on_refusal(folder: str | Path) -> Iterator[list[Run]]:
    """Take away the new runs in this list if their settings do not work at the first update."""
    runs: list[Run] = []
    root = Path(folder).absolute()
    was_there = root.exists()
    try:
        yield runs
    except ConfigError:
        for run in runs:
            if not any(run.checkpoints.iterdir()):
                shutil.rmtree(run.path)
        if not was_there:
            with suppress(OSError):  # another run is in it by now
                root.rmdir()
        raise


def is_locked(lock: Path) -> bool:
    """Whether a process trains the run; nothing is made or changed to find out."""
    try:
        handle = os.open(lock, READ_FLAGS)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        try_lock(handle, shared=True)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    finally:
        os.close(handle)
    return False


class NotTrainingError(SparringError):
    """A run that nobody trains, or nobody whom we can reach."""


def trainer_of(run: Path) -> int:
    """Return the process that holds a run's lock; an error says why there is none to be found."""
    lock = run / LOCK
    if not is_locked(lock):
        raise NotTrainingError(f"{run.name} is not being trained")
    try:
        number, _, host = read_regular(lock, MAX_LOCK).decode().strip().partition(" ")
        pid = int(number)
    except (OSError, ValueError):
        raise NotTrainingError(
            f"{run.name} is about to begin, or its lock does not say who trains it; try again"
        ) from None
    if host and host != platform.node():
        raise NotTrainingError(f"{run.name} is being trained on {host}; stop it there")
    if pid == os.getpid() or not has_open(pid, lock):
        raise NotTrainingError(
            f"{run.name} is being trained by a process that cannot be reached from here, as in a "
            "container; stop it there"
        )
    return pid


def has_open(pid: int, lock: Path) -> bool:
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
        raise NotTrainingError(f"{run.name} is trained by another user's process") from None
    return pid
