"""One run while it trains: its folder, curves, checkpoints, and what evaluations found."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import SparringWarning
from sparring.games.rules import Rules
from sparring.league.arena import ALONE, least_share, strength_of, usual_opponents
from sparring.learn.learner import Report, Snapshot
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import foreign_meta
from sparring.training.metrics import MetricsWriter
from sparring.training.run import Run
from sparring.training.settings import as_plain, written
from sparring.training.trail import Trail

REST = "other"
"""The phase that is all time outside the others."""
PREVIOUS_BEST = "previous best"
"""What curves and tables call the best checkpoint before this one."""


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
    length: float = math.nan
    """Steps of a game, mean of those that ended in the last update."""
    cpu_cores: float = math.nan
    """Cores that were busy with this process."""
    gpu_share: float = math.nan
    """Share of the time in which the GPU was busy."""
    losses: dict[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    """Shares of the time, always in the same order."""
    wins: dict[str, dict[str, float]] = field(default_factory=dict)
    """What the last evaluation found, by opponent."""
    history: dict[str, Trail] = field(default_factory=dict)
    """Series from the beginning of the run: score, length, and eval/NAME for every opponent."""
    next_eval_s: float = math.nan
    """Seconds until the next evaluation is asked for; negative or NaN: none is planned."""
    evaluating: bool = False
    """Whether an evaluation is under way."""
    evaluated: int = -1
    """Update whose evaluation came last."""
    best: int = -1
    """Update of the best checkpoint."""
    saved: int = -1
    """Update of the last checkpoint."""
    saved_s: float = math.nan
    """Seconds of training at that checkpoint."""
    message: str = ""
    """What else there is to say."""

    def remember(self, name: str, value: float) -> None:
        """Go on with a series."""
        if math.isfinite(value):
            self.history.setdefault(name, Trail()).add(value)

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        if self.total_updates:
            return min(self.update / self.total_updates, 1.0)
        return min(self.seconds / self.limit_s, 1.0) if self.limit_s else 0.0


class Member:
    """A run of its own, or one of a population that is trained together."""

    def __init__(
        self,
        config: TrainConfig,
        run: Run,
        rules: Rules,
        *,
        resume: checkpoints.Checkpoint | None = None,
    ) -> None:
        self.config, self.run, self.rules = config, run, rules
        self.status = Status(rules.name, run.path, limit_s=config.minutes * 60)
        self.status.total_updates = config.updates
        self.events: list[dict[str, Any]] = []
        self.best: dict[str, float] = {"update": -1, "strength": -1.0}
        self.dry = 0
        self.to_evaluate = -1
        self.asked: set[int] = set()
        if resume is not None:
            meta = resume.meta
            self.status.update, self.status.seconds = meta["update"], meta["seconds"]
            self.status.decisions, self.status.samples = meta["decisions"], meta["samples"]
            self.status.total_updates = config.updates or meta["total_updates"]
            self.events, self.best = meta["events"], meta["best"]
            self.status.wins = meta["wins"]
            self.status.best = int(self.best["update"])
        self.metrics = MetricsWriter(run.path, tensorboard=config.tensorboard, wandb=config.wandb)
        if resume is not None:
            self.metrics.truncate_after(resume.meta["update"])
        self.saver = checkpoints.BackgroundSaver(run.checkpoints)
        self.opponents = list(config.eval.against or usual_opponents(rules, 2))

    def record(
        self,
        report: Report,
        *,
        update: int,
        seconds: float,
        took: float,
        phases: dict[str, float],
    ) -> None:
        """Write down how an update went."""
        status, stats = self.status, report.stats
        before = status.decisions, status.samples
        status.update, status.seconds = update, seconds
        status.decisions, status.samples = report.decisions, report.samples
        status.decisions_per_s = (report.decisions - before[0]) / took
        status.samples_per_s = (report.samples - before[1]) / took
        status.score = stats.get("charts/score", status.score)
        status.length = stats.get("charts/length", status.length)
        status.cpu_cores = stats.get("charts/cpu_share", status.cpu_cores)
        status.gpu_share = stats.get("charts/gpu_busy", status.gpu_share)
        status.remember("score", stats.get("charts/score", math.nan))
        status.remember("length", stats.get("charts/length", math.nan))
        status.losses = {k.split("/")[1]: v for k, v in stats.items() if k[:6] == "losses"}
        shares = {name: spent / took for name, spent in phases.items()}
        status.phases = in_order(status.phases, shares)
        values = {
            **stats,
            **{f"phases/{name}": share for name, share in shares.items()},
            "charts/SPS": status.decisions_per_s,
            "charts/samples_per_s": status.samples_per_s,
            "charts/decisions": float(report.decisions),
            "charts/opponent_rows": float(report.opponent_rows),
        }
        self.metrics.add(update, values, seconds=seconds)

    def note(self, what: str, **facts: Any) -> None:
        """Record something that came from beside, with the update at which it took effect."""
        self.events.append({"update": self.status.update, "event": what, **facts})
        self.run.write_json("events.json", self.events)

    def noted(self, what: str) -> bool:
        """Whether something was recorded before."""
        return any(event["event"] == what for event in self.events)

    def save(self, snapshot: Snapshot) -> None:
        """Hand a checkpoint to the background writer; a full disk does not stop training."""
        self.metrics.flush()  # a run that is resumed here has every curve up to here
        rules = self.rules
        meta = {
            "net": as_plain(asdict(self.config.net)),
            **snapshot.meta,
            "game": rules.name,
            "rules_version": rules.rules_version,
            "game_config": rules.config,
            **foreign_meta(rules),
            "config": written(self.config),
            "seconds": self.status.seconds,
            "total_updates": self.status.total_updates,
            "events": list(self.events),
            "best": dict(self.best),
            "wins": dict(self.status.wins),
        }
        try:
            self.saver.submit(
                snapshot.meta["update"], tensors=snapshot.tensors, blobs=snapshot.blobs, meta=meta
            )
        except checkpoints.CheckpointError as wrong:
            warnings.warn(SparringWarning(f"not saved, training goes on: {wrong}"), stacklevel=2)
            return
        self.status.saved, self.status.saved_s = snapshot.meta["update"], self.status.seconds
        always = {int(self.best["update"]), self.to_evaluate, *self.asked}
        checkpoints.prune(self.run.checkpoints, keep=self.config.keep, always=always)

    def request(self) -> dict[str, Any] | None:
        """The evaluation that is due, once its checkpoint is written."""
        number = self.to_evaluate
        folder = self.run.checkpoints / f"{number:08d}"
        if number < 0 or not folder.exists():
            return None
        best = int(self.best["update"])
        before = folder.with_name(f"{best:08d}")
        is_shared = self.rules.seats > 1
        rivals = [str(before)] if is_shared and best >= 0 and before.exists() else []
        self.asked, self.to_evaluate = {number, best}, -1
        return {
            "checkpoint": str(folder),
            "opponents": [*self.opponents, *rivals],
            "games": self.config.eval.games,
            "seed": 1_000_000 + number,
        }

    def take_in(self, number: int, result: dict[str, Any]) -> None:
        """Learn what an evaluation found: curves, the best checkpoint, early stopping."""
        if result.get("error"):
            text = f"evaluation of update {number} failed: {result['error']}"
            warnings.warn(SparringWarning(text), stacklevel=2)
            return
        values = {}
        alone = self.rules.seats == 1
        known = [ALONE] if alone else self.opponents
        for opponent, found in result["results"].items():
            name = opponent if opponent in known else PREVIOUS_BEST
            self.status.wins[name] = found
            self.status.remember(f"eval/{name}", found["score" if alone else "win"])
            for key in ("score",) if alone else ("win", "low", "high", "score"):
                values[f"eval/{name}/{key}"] = found[key]
        results = {name: result["results"][name] for name in known}
        strength = strength_of(self.rules, results)
        self.status.evaluated = number
        values["eval/strength"] = strength
        self.metrics.add(number, values, seconds=self.status.seconds)
        self.dry += 1
        target = self.config.eval.target
        least = least_share(self.rules, results)
        if target and least >= target and not self.noted("target reached"):
            self.note("target reached", strength=least, seconds=self.status.seconds)
        if self.best["update"] < 0 or strength > self.best["strength"]:
            self.dry = 0
            self.status.best = number
            self.best = {"update": number, "strength": strength}
            self.note("best", checkpoint=number, strength=strength)
            self.run.write_json("best.json", {"checkpoint": number})

    def close(self) -> None:
        """Finish writing."""
        self.saver.close()
        self.metrics.close()


def in_order(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    """Return shares of phases in the order in which they were first met; what is left comes last.

    A phase that took no part in an update keeps its place.
    """
    order = [name for name in {**before, **now} if name != REST]
    return {name: now.get(name, 0.0) for name in (*order, *[REST] * (REST in now))}
