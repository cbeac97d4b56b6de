"""The training loop: collect, learn, measure, save, until the planned number of updates."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import SparringWarning
from sparring.learn.learner import Learner, Snapshot
from sparring.store import checkpoint as checkpoints
from sparring.training.evaluate import EvalWorker
from sparring.training.member import Member, Status
from sparring.training.run import Run

PLAN_AFTER_S = 8.0
"""Seconds of training after which the minutes are turned into a number of updates."""
PLAN_AGAIN = (0.25, 0.5, 0.75)
"""Shares of the time or of that number after which it is corrected: machines get busy and idle."""
LAST_EVALUATION_S = 120.0
"""Longest wait for the evaluation of the last checkpoint."""
PLAN_MARGIN = 0.97
"""Share of the remaining time that is planned; the rest covers slower updates later on."""


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
    """One run, or a population of runs in one learner, from the first update to the last."""

    def __init__(
        self,
        learner: Learner,
        configs: Sequence[TrainConfig],
        runs: Sequence[Run],
        *,
        spare_threads: int = 1,
        resume: checkpoints.Checkpoint | None = None,
        watch: Callable[[Status], None] | None = None,
    ) -> None:
        """Prepare the runs of a learner, or one that is resumed.

        spare_threads: cores that training leaves to evaluations.
        """
        self.learner, self.config, self.watch = learner, configs[0], watch
        rules = learner.rules
        if not learner.exact:
            text = f"{rules.name} cannot be saved: a resumed run keeps its network, not its games"
            warnings.warn(SparringWarning(text), stacklevel=3)
        if resume is not None:
            learner.restore(Snapshot(resume.tensors, resume.blobs, resume.meta))
        self.members = [
            Member(config, run, rules, resume=resume)
            for config, run in zip(configs, runs, strict=True)
        ]
        # The very lowest priority would starve beside training that uses every core.
        wanted = rules.bots and not self.config.eval.off
        worker = EvalWorker(nice=10, idle=False, threads=spare_threads)
        self.worker = worker if wanted else None

    @property
    def status(self) -> Status:
        """The clock and the plan that all members share."""
        return self.members[0].status

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
                        self._want_evaluation()
                    elif now - last_save >= self.config.checkpoint_every_s:
                        last_save = now
                        self._save()
                    if stop.asked:
                        why = stop.asked
                        break
                    if self._ran_dry():
                        why = "early"
                        break
                self._save()
                for member in self.members:
                    member.saver.wait()
                if why in ("done", "early"):
                    self._judge_last()
            finally:
                self._close()
        return why

    def _finished(self) -> bool:
        if self.status.total_updates:
            return self.learner.updates >= self.status.total_updates
        return self.status.seconds >= self.status.limit_s

    def _one_update(self, started: float, before: float) -> None:
        """Collect and learn once, and write down how it went."""
        learner = self.learner
        at = time.perf_counter()
        reports = learner.iterate(self.status.progress)
        now = time.perf_counter()
        took = now - at
        phases = learner.phases.take()
        phases["other"] = max(took - sum(phases.values()), 0.0)
        share = cpu_share(took)
        for member, report in zip(self.members, reports, strict=True):
            report.stats["charts/cpu_share"] = share
            member.record(
                report,
                update=learner.updates,
                seconds=before + now - started,
                took=took,
                phases=phases,
            )
        if self.watch:
            for member in self.members:
                self.watch(member.status)

    def _plan(self) -> None:
        """Turn the minutes into a number of updates, by the pace since the last such plan."""
        status, limit = self.status, self.status.limit_s
        if self.config.updates:
            return
        plans = [e for e in self.members[0].events if e["event"] == "planned"]
        if plans:
            gone = max(status.seconds / limit, status.progress)
            due = len(plans) <= len(PLAN_AGAIN) and gone >= PLAN_AGAIN[len(plans) - 1]
        else:
            due = status.seconds >= min(PLAN_AFTER_S, limit / 8)
        if not due:
            return
        start = {"seconds": 0.0, "update": 0}
        last = plans[-1] if plans and "seconds" in plans[-1] else start
        updates = self.learner.updates
        if updates == last["update"]:
            return
        pace = (status.seconds - last["seconds"]) / (updates - last["update"])
        left = (limit - status.seconds) * PLAN_MARGIN
        total = updates + max(int(left / pace), 1)
        for member in self.members:
            member.status.total_updates = total
            member.note("planned", total_updates=total, seconds=status.seconds)

    def _ran_dry(self) -> bool:
        """Whether every member has gone long enough without progress."""
        patience = self.config.eval.patience
        if not patience or any(member.dry < patience for member in self.members):
            return False
        for member in self.members:
            member.note("stopped early: no progress", evaluations=member.dry)
        return True

    def _save(self) -> None:
        for index, member in enumerate(self.members):
            member.save(self.learner.snapshot(index))

    def _want_evaluation(self) -> None:
        for member in self.members:
            member.to_evaluate = self.learner.updates

    def _ask_for_evaluation(self) -> None:
        """Send the next waiting checkpoint to the worker once it is free."""
        if not self.worker or self.worker.busy:
            return
        for index, member in enumerate(self.members):
            number = member.to_evaluate
            request = member.request()
            if request is not None:
                self.worker.submit({"id": f"{index}/{number}", **request})
                return

    def _judge_last(self) -> None:
        """Wait for the evaluation of the last checkpoints, so that the best ones are known."""
        if not self.worker:
            return
        self._take_in(self.worker.drain(LAST_EVALUATION_S))
        self._want_evaluation()
        for _ in self.members:
            self._ask_for_evaluation()
            self._take_in(self.worker.drain(LAST_EVALUATION_S))

    def _hear_results(self) -> None:
        if self.worker:
            self._take_in(self.worker.poll())
            self._ask_for_evaluation()

    def _take_in(self, results: list[dict[str, Any]]) -> None:
        for result in results:
            index, number = map(int, result["id"].split("/"))
            self.members[index].take_in(number, result)
            if self.watch:
                self.watch(self.members[index].status)

    def _close(self) -> None:
        if self.worker:
            self.worker.close()
        for member in self.members:
            member.close()


_cpu_before = time.process_time()


def cpu_share(wall_s: float) -> float:
    """CPU time of this process per second of wall time since the last call, in cores."""
    global _cpu_before
    now = time.process_time()
    used, _cpu_before = now - _cpu_before, now
    return used / wall_s if wall_s > 0 else 0.0
