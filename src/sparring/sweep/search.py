"""The search itself: ask for settings, have them trained, write down what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.sweep.file import NEAREST, SweepFile
from sparring.sweep.jobs import Ended, Executor, Job, Point
from sparring.sweep.points import config_at
from sparring.sweep.pruning import why_pruned
from sparring.sweep.record import Folder, Records
from sparring.sweep.sampling import propose
from sparring.sweep.trials import DONE, RUNNING, Trial
from sparring.training.planning.own import rules_of
from sparring.training.planning.settings import budget_of

START_S = 8.0
"""Seconds in which a process begins: libraries, games, graphs."""

ARRIVED = Callable[[Trial], None]


@dataclass
class Search:
    """A search that is under way."""

    file: SweepFile
    folder: Folder
    executor: Executor
    config: TrainConfig
    """The file's own settings."""
    reserve: Callable[[float], float] = lambda _usual_s: 0.0
    """Seconds to be left for what comes behind it, by those of a trial."""
    wanted: int = 0
    """About how many trials there will be, where the file does not say it."""
    arrived: ARRIVED = lambda _trial: None
    """Called with every trial that ends."""
    began: ARRIVED = lambda _trial: None
    """Called with every trial that begins."""

    def __post_init__(self) -> None:
        self.records: Records = self.folder.trials
        self.running: dict[int, Trial] = {}
        self._again = self.records.lost
        self._started, self._spent = time.perf_counter(), self.folder.spent_s
        kind, _ = budget_of(self.config)
        self._by = int(kind != "minutes")
        """Trials are held against each other at equal decisions where the clock has no say."""

    def run(self) -> list[Trial]:
        """Search until there are enough trials, or no time for another one."""
        while True:
            batch = self._next(self.executor.free) if self.executor.free else []
            if batch:
                for trial in batch:
                    self.running[trial.number] = trial
                    self.records.put(trial)
                    self.began(trial)
                self.executor.begin([self._job(trial) for trial in batch], self._judge)
            elif not self.running:
                return self.records.ended
            for ended in self.executor.wait():
                self._take_in(ended)

    @property
    def spent_s(self) -> float:
        """Seconds of this search, earlier times included."""
        return self._spent + time.perf_counter() - self._started

    def _next(self, room: int) -> list[Trial]:
        """The trials that begin together."""
        batch: list[Trial] = []
        wanted = self.file.search.trials
        while len(batch) < room:
            if self._again:
                lost = self._again.pop(0)
                self.folder.clear_run(run_name(lost.number))
                batch.append(lost)
                continue
            number = max([-1, *self.records.trials, *(trial.number for trial in batch)]) + 1
            if (wanted and number >= wanted) or not self._has_time():
                break
            batch.append(self._fresh(number, batch))
        return batch

    def _fresh(self, number: int, batch: Sequence[Trial]) -> Trial:
        """A trial that nobody has tried."""
        search, ranges = self.file.search, self.file.ranges
        under_way = [*self.running.values(), *batch]
        shared = self.executor.shared if batch else ()
        settings = propose(
            ranges,
            [*self.records.ended, *under_way],
            kind=search.sampler,
            seed=search.seed,
            number=number,
            wanted=search.trials or self.wanted,
            fixed={name: batch[0].settings[name] for name in shared},
        )
        seed = int(self.file.settings.get("seed", 0)) + number
        return Trial(number, settings, RUNNING, seed=seed, init=self._first_weights(settings))

    def _first_weights(self, settings: dict[str, Any]) -> str:
        """The run whose weights a trial begins with, "" for none."""
        if self.file.search.warm_start != NEAREST:
            return ""
        from sparring.sweep.nearest import nearest_trained

        mine = config_at(self.file, settings)
        fitting = [
            trial
            for trial in self.records.ended
            if trial.state == DONE and same_net(mine, config_at(self.file, trial.settings))
        ]
        found = nearest_trained(settings, fitting, self.file.ranges)
        return found.run if found else ""

    def _has_time(self) -> bool:
        """Whether another trial would end in time."""
        minutes = self.file.search.minutes
        if not minutes:
            return True
        usual_s = self.usual_s()
        needed = START_S + usual_s + self.reserve(usual_s)
        return self.spent_s + needed <= minutes * 60

    def usual_s(self) -> float:
        """How long a trial takes."""
        known = [trial.seconds for trial in self.records.ended if trial.state == DONE]
        if known:
            return median(known)
        kind, amount = budget_of(self.config)
        return amount * 60 if kind == "minutes" else 0.0

    def _job(self, trial: Trial) -> Job:
        config = config_at(
            self.file,
            trial.settings,
            seed=trial.seed,
            name=run_name(trial.number),
            folder=str(self.folder.path),
        )
        if trial.init:
            init = self.folder.run_path(Path(trial.init).name)
            config = replace(config, init=str(init))
        return Job(trial.number, config)

    def _judge(self, _number: int, curve: Sequence[Point]) -> str:
        warm_up = self.file.search.prune
        return why_pruned(curve, self.records.ended, warm_up=warm_up, by=self._by)

    def _take_in(self, ended: Ended) -> None:
        trial = with_result(self.running.pop(ended.number), ended)
        self.records.put(trial)
        self.folder.spend(self.spent_s)
        self.arrived(trial)


def with_result(trial: Trial, ended: Ended) -> Trial:
    """A trial and what came of it."""
    about = {
        name: getattr(ended, name)
        for name in ("state", "value", "low", "high", "curve", "seconds", "decisions", "run", "why")
    }
    extra = {**trial.extra, **({"hopeless": ended.noted} if ended.noted else {})}
    return replace(trial, **about, extra=extra)


def run_name(number: int) -> str:
    """The name of a trial's run."""
    return f"trial-{number:04d}"


def same_net(one: TrainConfig, two: TrainConfig) -> bool:
    """Whether the one can begin with the weights of the other."""
    nets = [(config.net, config.algo, config.hierarchy, config.roles) for config in (one, two)]
    if nets[0] != nets[1]:
        return False
    if one.set == two.set:
        return True
    mine, theirs = rules_of(one), rules_of(two)  # flags may decide what is seen and done
    sizes = [(rules.actions, rules.box, rules.features) for rules in (mine, theirs)]
    return sizes[0] == sizes[1]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The best trial that went to its end; of equals the earliest."""
    done = [trial for trial in trials if trial.state == DONE and trial.value is not None]
    return max(done, key=lambda trial: (trial.value, -trial.number), default=None)
