"""The training loop: collect, learn, measure, save, until the planned number of updates."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.games.rules import Rules
from sparring.learn.ppo import PPO
from sparring.pools.native import Pool
from sparring.pools.protocol import GamePool
from sparring.training import checkpoint as checkpoints
from sparring.training.evaluate import EvalWorker
from sparring.training.metrics import MetricsWriter
from sparring.training.policies import foreign_meta
from sparring.training.run import Run
from sparring.training.settings import as_table, read_opponents
from sparring.training.snapshot import EXACT, Snapshot, restore, take

PLAN_AFTER_S = 8.0
"""Seconds of training after which the minutes are turned into a number of updates."""
LAST_EVALUATION_S = 120.0
"""Longest wait for the evaluation of the last checkpoint."""
PREVIOUS_BEST = "previous best"
"""What curves and tables call the best checkpoint before this one."""
PLAN_MARGIN = 0.97
"""Share of the remaining time that is planned; the rest covers slower updates later on."""


@dataclass
class Status:
    """What there is to show about a run at some moment."""

    game: str
    run: Path
    update: int = 0
    total_updates: int = 0
    seconds: float = 0.0
    limit_s: float = 0.0
    decisions: int = 0
    samples: int = 0
    decisions_per_s: float = 0.0
    samples_per_s: float = 0.0
    score: float = math.nan
    losses: dict[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    wins: dict[str, dict[str, float]] = field(default_factory=dict)
    message: str = ""

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.total_updates:
            return min(self.update / self.total_updates, 1.0)
        return min(self.seconds / self.limit_s, 1.0) if self.limit_s else 0.0


class Stop:
    """Ctrl-C or SIGTERM: the first finishes the update and saves, the second ends at once."""

    def __init__(self) -> None:
        self.asked = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number).name


class Trainer:
    """One run from its first update to its last."""

    def __init__(
        self,
        config: TrainConfig,
        run: Run,
        *,
        resume: checkpoints.Checkpoint | None = None,
        watch: Callable[[Status], None] | None = None,
        pool: GamePool | None = None,
    ) -> None:
        """Prepare a run, new or resumed. `pool` brings a foreign environment."""
        self.config, self.run_folder, self.watch = config, run, watch
        self.threads = config.threads or os.cpu_count() or 1
        torch.set_num_threads(self.threads)
        self.pool: GamePool = pool or make_pool(config, self.threads)
        rules = self.pool.rules
        if EXACT not in self.pool.can:
            text = f"{rules.name} cannot be saved: a resumed run keeps its network, not its games"
            warnings.warn(SparringWarning(text), stacklevel=3)
        self.ppo = PPO(
            self.pool,
            config.ppo,
            config.net,
            seed=config.seed,
            threads=self.threads,
            device=choose_device(config.device),
        )
        self.status = Status(rules.name, run.path, limit_s=config.minutes * 60)
        self.status.total_updates = config.updates
        self.events: list[dict[str, Any]] = []
        self.best: dict[str, float] = {"update": -1, "strength": -1.0}
        self.dry = 0
        self.to_evaluate = -1
        self.asked: set[int] = set()
        if resume is not None:
            restore(self.ppo, Snapshot(resume.tensors, resume.blobs, resume.meta))
            self.status.update, self.status.seconds = self.ppo.updates, resume.meta["seconds"]
            self.status.total_updates = config.updates or resume.meta["total_updates"]
            self.events, self.best = resume.meta["events"], resume.meta["best"]
            self.status.wins = resume.meta["wins"]
        self.metrics = MetricsWriter(run.path, tensorboard=config.tensorboard, wandb=config.wandb)
        if resume is not None:
            self.metrics.truncate_after(self.ppo.updates)
        self.saver = checkpoints.BackgroundSaver(run.path / "checkpoints")
        # The very lowest priority would starve beside training that uses every core.
        wanted = rules.bots and not config.eval.off
        self.worker = EvalWorker(nice=10, idle=False) if wanted else None
        self.opponents = list(config.eval.against or rules.bots[-2:])

    def train(self) -> str:
        """Train to the end; returns why it ended: done, early or the signal that stopped it."""
        why = "done"
        started, before = time.perf_counter(), self.status.seconds
        last_save = last_eval = started
        with Stop() as stop:
            try:
                while not self._finished():
                    self._one_update(started, before)
                    now = time.perf_counter()
                    self._plan()
                    self._hear_results()
                    if self.worker and now - last_eval >= self.config.eval.every_s:
                        last_eval = last_save = now
                        self._save()
                        self.to_evaluate = self.ppo.updates
                    elif now - last_save >= self.config.checkpoint_every_s:
                        last_save = now
                        self._save()
                    if stop.asked:
                        why = stop.asked
                        break
                    patience = self.config.eval.patience
                    if patience and self.dry >= patience:
                        why = "early"
                        self._note("stopped early: no progress", evaluations=self.dry)
                        break
                self._save()
                self.saver.wait()
                if why in ("done", "early"):
                    self._judge_last()
            finally:
                self._close()
        return why

    def _finished(self) -> bool:
        if self.status.total_updates:
            return self.ppo.updates >= self.status.total_updates
        return self.status.seconds >= self.status.limit_s

    def _one_update(self, started: float, before: float) -> None:
        """Collect and learn once, and write down how it went."""
        status, ppo = self.status, self.ppo
        at, decisions, samples = time.perf_counter(), ppo.decisions, ppo.samples
        earned = ppo.collect()
        learned = ppo.update(status.progress)
        now = time.perf_counter()
        took = now - at
        phases = ppo.phases.take()
        phases["other"] = max(took - sum(phases.values()), 0.0)
        status.update, status.seconds = ppo.updates, before + now - started
        status.decisions, status.samples = ppo.decisions, ppo.samples
        status.decisions_per_s = (ppo.decisions - decisions) / took
        status.samples_per_s = (ppo.samples - samples) / took
        status.score = earned.get("score", status.score)
        status.losses = {k.split("/")[1]: v for k, v in learned.items() if k[:6] == "losses"}
        status.phases = {name: seconds / took for name, seconds in phases.items()}
        values = {
            **learned,
            **{f"phases/{name}": share for name, share in status.phases.items()},
            **{f"charts/{name}": value for name, value in earned.items()},
            "charts/SPS": status.decisions_per_s,
            "charts/samples_per_s": status.samples_per_s,
            "charts/decisions": float(ppo.decisions),
            "charts/cpu_share": cpu_share(took),
        }
        self.metrics.add(ppo.updates, values, seconds=status.seconds)
        if self.watch:
            self.watch(status)

    def _plan(self) -> None:
        """Turn the minutes into a number of updates, once there is something to go by."""
        status = self.status
        if status.total_updates or status.seconds < min(PLAN_AFTER_S, status.limit_s / 4):
            return
        pace = status.seconds / self.ppo.updates
        left = (status.limit_s - status.seconds) * PLAN_MARGIN
        status.total_updates = self.ppo.updates + max(int(left / pace), 1)
        self._note("planned", total_updates=status.total_updates)

    def _note(self, what: str, **facts: Any) -> None:
        """Record something that came from beside, with the update at which it took effect."""
        self.events.append({"update": self.ppo.updates, "event": what, **facts})
        self.run_folder.write_json("events.json", self.events)

    def _noted(self, what: str) -> bool:
        return any(event["event"] == what for event in self.events)

    def _save(self) -> None:
        """Hand a checkpoint to the background writer; a full disk does not stop training."""
        snapshot = take(self.ppo)
        self.metrics.flush()  # a run that is resumed here has every curve up to here
        rules = self.pool.rules
        meta = {
            **snapshot.meta,
            "game": rules.name,
            "rules_version": rules.rules_version,
            "game_config": rules.config,
            "net": as_plain(asdict(self.config.net)),
            **foreign_meta(rules),
            "config": as_table(self.config),
            "seconds": self.status.seconds,
            "total_updates": self.status.total_updates,
            "events": list(self.events),
            "best": dict(self.best),
            "wins": dict(self.status.wins),
        }
        try:
            self.saver.submit(
                self.ppo.updates, tensors=snapshot.tensors, blobs=snapshot.blobs, meta=meta
            )
        except checkpoints.CheckpointError as wrong:
            warnings.warn(SparringWarning(f"not saved, training goes on: {wrong}"), stacklevel=2)
            return
        folder = self.run_folder.path / "checkpoints"
        always = {int(self.best["update"]), self.to_evaluate, *self.asked}
        checkpoints.prune(folder, keep=self.config.keep, always=always)

    def _ask_for_evaluation(self) -> None:
        """Send the waiting checkpoint to the worker once it is written and the worker is free."""
        number = self.to_evaluate
        folder = self.run_folder.path / "checkpoints" / f"{number:08d}"
        if number < 0 or not self.worker or self.worker.busy or not folder.exists():
            return
        best = int(self.best["update"])
        before = folder.with_name(f"{best:08d}")
        rivals = [str(before)] if best >= 0 and before.exists() else []
        self.asked, self.to_evaluate = {number, best}, -1
        self.worker.submit(
            {
                "id": number,
                "checkpoint": str(folder),
                "opponents": [*self.opponents, *rivals],
                "games": self.config.eval.games,
                "seed": 1_000_000 + number,
            }
        )

    def _judge_last(self) -> None:
        """Wait for the evaluation of the last checkpoint, so that the best one is known."""
        if not self.worker:
            return
        self._take_in(self.worker.drain(LAST_EVALUATION_S))
        self.to_evaluate = self.ppo.updates
        self._ask_for_evaluation()
        self._take_in(self.worker.drain(LAST_EVALUATION_S))

    def _hear_results(self) -> None:
        if self.worker:
            self._take_in(self.worker.poll())
            self._ask_for_evaluation()

    def _take_in(self, results: list[dict[str, Any]]) -> None:
        """Learn what evaluations found: curves, the best checkpoint, early stopping."""
        for result in results:
            if result.get("error"):
                text = f"evaluation of update {result['id']} failed: {result['error']}"
                warnings.warn(SparringWarning(text), stacklevel=2)
                continue
            values = {}
            for opponent, found in result["results"].items():
                name = opponent if opponent in self.opponents else PREVIOUS_BEST
                self.status.wins[name] = found
                for key in ("win", "low", "high", "score"):
                    values[f"eval/{name}/{key}"] = found[key]
            strength = min(result["results"][name]["win"] for name in self.opponents)
            values["eval/strength"] = strength
            self.metrics.add(int(result["id"]), values, seconds=self.status.seconds)
            self.dry += 1
            target = self.config.eval.target
            if target and strength >= target and not self._noted("target reached"):
                self._note("target reached", strength=strength, seconds=self.status.seconds)
            if strength > self.best["strength"]:
                self.dry = 0
                self.best = {"update": int(result["id"]), "strength": strength}
                self._note("best", checkpoint=int(result["id"]), strength=strength)
                self.run_folder.write_json("best.json", {"checkpoint": int(result["id"])})
            if self.watch:
                self.watch(self.status)

    def _close(self) -> None:
        if self.worker:
            self.worker.close()
        self.saver.close()
        self.metrics.close()


def make_pool(config: TrainConfig, threads: int) -> Pool:
    """The games, with the flags and line-ups of the configuration."""
    flags: dict[str, Any] = {}
    for word in config.set:
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"set: {word!r} is not key=value")
        flags[key] = value.split(",") if "," in value else value
    rules = Rules(config.game, flags)
    lineups = read_opponents(rules, config.opponents)
    return Pool(
        rules,
        config.ppo.games,
        seed=config.seed,
        threads=threads,
        lineups=lineups,
        slots=config.ppo.slots,
    )


def choose_device(name: str) -> str:
    """Return cpu or cuda; a GPU that is asked for and missing is an error."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"device {name!r}: torch sees no GPU here; use --device cpu, or install a CUDA build "
            "of torch and check `nvidia-smi`"
        )
    if name not in ("cpu",) and not name.startswith("cuda"):
        raise ConfigError(f"device {name!r} is unknown; use cpu, cuda or auto")
    return name


def as_plain(value: Any) -> Any:
    """Tuples as lists, as JSON would have them."""
    if isinstance(value, dict):
        return {key: as_plain(inner) for key, inner in value.items()}
    return [as_plain(inner) for inner in value] if isinstance(value, tuple | list) else value


_cpu_before = time.process_time()


def cpu_share(wall_s: float) -> float:
    """CPU time of this process per second of wall time since the last call, in cores."""
    global _cpu_before
    now = time.process_time()
    used, _cpu_before = now - _cpu_before, now
    return used / wall_s if wall_s > 0 else 0.0
