"""Where numbers go besides our own file: TensorBoard, Weights & Biases, CSV.

A sink that fails is closed and said once; the numbers are in SQLite all the same. What a full disk
refuses of a table waits in memory, and is written once there is space.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import os
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sparring.errors import ConfigError, warn
from sparring.games.rules import Rules
from sparring.pools.lineups import LEARNER, player_id
from sparring.store.files import write_atomic

if TYPE_CHECKING:
    from sparring.learn.rollout import Episodes  # which comes with torch

CSV = "metrics.csv"
CSV_COLUMNS = ("update", "seconds", "name", "value")
MAX_BUFFERED = 500_000
"""How many lines of a table wait at most for a disk that has space again."""
EPISODES = "episodes.csv"


class WriteDeferredError(Exception):
    """A disk took nothing; what was to be written waits until it does."""


@dataclass(frozen=True)
class MetricsRow:
    """The values of one update."""

    update: int
    values: dict[str, float | None]
    """By name, None for what is not a finite number."""
    seconds: float
    wall_time: float
    texts: Mapping[str, str] = field(default_factory=dict)
    """Words by name, for sinks that show them."""

    def finite(self) -> dict[str, float]:
        return {name: value for name, value in self.values.items() if value is not None}


class Sink(Protocol):
    """Takes rows in batches."""

    def write(self, rows: Sequence[MetricsRow]) -> None:
        """Add some rows."""

    def truncate_after(self, update: int) -> None:
        """Forget what came after an update, where that can be done."""

    def close(self) -> None:
        """Finish writing."""


class TensorBoard:
    """Event files in the run's folder, made when there is something to write.

    Written here and not by torch's SummaryWriter: that one has a thread of its own, which prints a
    traceback when a disk is full.
    """

    def __init__(self, run_folder: Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise ConfigError(
                "tensorboard is not installed: pip install tensorboard, or turn it off"
            )
        self.folder = run_folder / "tensorboard"
        self._writer: Any = None
        self._purge: int | None = None

    def write(self, rows: Sequence[MetricsRow]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        if self._writer is None:
            self._open()
        for row in rows:
            values = [Summary.Value(tag=n, simple_value=v) for n, v in row.finite().items()]
            values += [text_value(name, text) for name, text in row.texts.items()]
            event = Event(step=row.update, wall_time=row.wall_time, summary=Summary(value=values))
            self._writer.write(event.SerializeToString())
        self._writer.flush()

    def _open(self) -> None:
        """Begin a file; readers take those of a folder in the order of their names."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.folder.mkdir(exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns():020d}.{os.getpid()}"
        self._writer = RecordWriter((self.folder / name).open("wb"))
        header = [Event(wall_time=time.time(), file_version="brain.Event:2")]
        if self._purge is not None:
            start = SessionLog(status=SessionLog.START)
            header.append(Event(wall_time=time.time(), step=self._purge, session_log=start))
        for event in header:
            self._writer.write(event.SerializeToString())

    def truncate_after(self, update: int) -> None:
        """Readers drop what was written before under these numbers."""
        self._purge = update + 1

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def text_value(name: str, text: str) -> Any:
    """Words as TensorBoard's text page shows them."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    words = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
    plugin = SummaryMetadata.PluginData(plugin_name="text")
    return Summary.Value(tag=name, tensor=words, metadata=SummaryMetadata(plugin_data=plugin))


class WeightsAndBiases:
    """This run on Weights & Biases; steps are the updates.

    It cannot take values back: those of a resumed run are added to the old ones.
    """

    def __init__(self, run_folder: Path) -> None:
        try:
            wandb: Any = importlib.import_module("wandb")
        except ImportError as missing:
            raise ConfigError(
                f"wandb is not there ({missing}): pip install 'sparring[track]'"
            ) from None
        config = run_folder / "config.toml"
        values = tomllib.loads(config.read_text()) if config.exists() else None
        name = run_folder.absolute().name
        try:
            self._run = wandb.init(
                project="sparring",
                name=name,
                id=name,
                resume="allow",
                dir=str(run_folder),
                config=values,
            )
            self._run.define_metric("*", step_metric="update")
        except Exception as error:  # somebody else's program, whatever is wrong with it
            raise ConfigError(f"wandb cannot begin: {error}; see `wandb login`") from None

    def write(self, rows: Sequence[MetricsRow]) -> None:
        for row in filter(MetricsRow.finite, rows):
            self._run.log({"update": row.update, "seconds": row.seconds, **row.finite()})

    def truncate_after(self, update: int) -> None:
        """Nothing can be taken back."""

    def close(self) -> None:
        self._run.finish()


class CsvFile:
    """Lines that are appended in batches; the first column is the update."""

    def __init__(self, file: Path, columns: Sequence[str]) -> None:
        self.file, self.columns = file, columns
        self._unwritten: list[Sequence[Any]] = []
        """Lines that the disk did not take yet."""

    def append(self, lines: Sequence[Sequence[Any]]) -> None:
        """Add some lines, below the names of the columns and behind those that wait."""
        self._unwritten += lines
        size = self.file.stat().st_size if self.file.exists() else 0
        try:
            with self.file.open("a", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows(
                    self._unwritten if size else [self.columns, *self._unwritten]
                )
        except OSError as error:
            with suppress(OSError):  # the last line may be torn
                os.truncate(self.file, size)
            del self._unwritten[:-MAX_BUFFERED]
            why = error.strerror or str(error)
            since = f" from update {self._unwritten[0][0]} on" if self._unwritten else ""
            raise WriteDeferredError(f"{self.file} lacks lines{since}: {why}") from error
        self._unwritten.clear()

    def close(self) -> None:
        """Write what has waited, if the disk takes it now."""
        if self._unwritten:
            self.append([])

    def truncate_after(self, update: int) -> None:
        """Drop the lines of later updates, and one that a full disk tore."""
        self._unwritten = [line for line in self._unwritten if line[0] <= update]
        if not self.file.exists():
            return
        with self.file.open(newline="", encoding="utf-8", errors="replace") as old:
            lines = [line for line in old if line.endswith("\n")]
        kept = [line for line in lines[1:] if is_up_to_update(line, update)]
        write_atomic(self.file, "".join([*lines[:1], *kept]).encode())


def is_up_to_update(line: str, update: int) -> bool:
    number = line.partition(",")[0]
    return number.isdecimal() and int(number) <= update


class MetricsTable(CsvFile):
    """The curves as CSV."""

    def __init__(self, run_folder: Path) -> None:
        super().__init__(run_folder / CSV, CSV_COLUMNS)

    def write(self, rows: Sequence[MetricsRow]) -> None:
        values = ((row, name, value) for row in rows for name, value in row.finite().items())
        self.append([(row.update, f"{row.seconds:.3f}", name, v) for row, name, v in values])


class EpisodesTable(CsvFile):
    """`episodes.csv`, written in batches of an update."""

    def __init__(self, run_folder: Path, rules: Rules) -> None:
        seats = range(rules.seats)
        players = [f"player_{seat}" for seat in seats]
        columns = [
            "update",
            "game",
            "length",
            "end",
            *players,
            *(f"score_{seat}" for seat in seats),
        ]
        super().__init__(run_folder / EPISODES, columns)
        self._end_reasons = rules.ends
        self._warned = False
        self._names = {player_id(rules, bot): bot for bot in rules.bots} | {LEARNER: "learner"}

    def add(self, update: int, episodes: Episodes) -> None:
        """Add the games of an update; a full disk does not stop training."""
        columns = (episodes.game, episodes.length, episodes.end, episodes.policy, episodes.score)
        lines = [
            [
                update,
                game,
                length,
                self._end_reasons[end],
                *map(self._player_name, players),
                *scores,
            ]
            for game, length, end, players, scores in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]
        try:
            self.append(lines)
            self._warned = False
        except WriteDeferredError as error:
            if not self._warned:
                warn(f"{error}; training continues, they are kept for now")
            self._warned = True

    def close(self) -> None:
        try:
            super().close()
        except WriteDeferredError as error:
            warn(str(error))

    def _player_name(self, policy: int) -> str:
        return self._names.get(policy, f"policy {policy}")
