"""The training loop: collect, learn, measure, save, until the budget is used up."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from sparring.curriculum.state import CurriculumState
from sparring.errors import EnvError, warn
from sparring.games.rules import Rules
from sparring.learn.learner import DivergedError, Learner, LostError, Report, Snapshot
from sparring.phases import phase
from sparring.pools.custom.rules import CustomRules
from sparring.store import checkpoint as checkpoints
from sparring.training.budget import MET, Interval, is_met, meets, met_conditions, planned_updates
from sparring.training.callbacks import CallbackRun, Callbacks
from sparring.training.curriculum import advance_phase, check_overridable, restore_phase
from sparring.training.evaluate import EvalWorker, evaluator
from sparring.training.evaluations import unmeasured
from sparring.training.leagues import leagues_of
from sparring.training.member import Member
from sparring.training.planning.training import RunPlan, TrainingPlan
from sparring.training.records.run import Run
from sparring.training.resuming import check_weights, going_on
from sparring.training.status import DONE, STOPPED, WAITING, Status
from sparring.training.utilization.monitor import UtilizationMonitor

EVALUATIONS = 8
"""Minimum number of evaluations of a run with a budget in minutes."""
LAST_EVALUATION_S = 120.0
"""Longest wait for the evaluation of the last checkpoint."""
WAIT_S = 0.2
"""How often a wait for an evaluation checks for Ctrl-C."""


STOPPING_LINE = b"\nstopping after this update, which is saved; once more ends at once\n"


class Stop:
    """Ctrl-C or SIGTERM: the first finishes the update and saves, the second ends at once."""

    def __init__(self) -> None:
        self.requested = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
        os.write(2, STOPPING_LINE)


class Trainer:
    """One run, or a population of runs in one learner, from the first update to the last."""

    def __init__(
        self,
        learner: Learner,
        plan: TrainingPlan,
        runs: Sequence[Run],
        *,
        worker: EvalWorker | None = None,
        resume: checkpoints.Checkpoint | None = None,
        courses: Sequence[CurriculumState] = (),
        watch: Callable[[Status], None] | None = None,
        callbacks: Callbacks | None = None,
        monitor: UtilizationMonitor | None = None,
    ) -> None:
        """Prepare the runs of a learner, or one that is resumed.

        worker: plays evaluations, if it has been started already.
        courses: curriculum states of the members; none without a curriculum.
        monitor: measures which share of the machine the run uses.
        """
        self.monitor = monitor
        self.learner, self.watch = learner, watch
        self.callbacks = callbacks or Callbacks()
        rules, learning, first = learner.rules, plan.learning, plan.first
        member_rules = learning.custom_rules or (rules,) * len(runs)
        self.worker = worker or evaluator_for(rules, first, learning.spare_threads)
        if not learner.exact:
            text = (
                f"{rules.name} cannot be saved: a resumed run restores its network, not its games"
            )
            if first.actors_keep_playing:
                text = "a resumed run restores its network, not the games that actors play"
            warn(text + unmeasured(rules))
        if first.in_process_only and not first.evaluation.off:
            text = (
                f"net.kind {learning.net.kind} is an object of this process, so it is not "
                "evaluated during training: give a class of a module, such as my_module:MyNet"
            )
            warn(text)
        self._adjusted = check_overridable(learner) if courses else None
        with going_on(resume, runs[0].path):
            if resume is not None:
                check_weights(learner, resume)
            league_settings = [one.league for one in plan.runs]
            leagues = leagues_of(learner, learning, league_settings, runs, resume=resume)
            if resume is not None:  # opponents are in their slots before the games are restored
                if courses:
                    restore_phase(learner, courses, resume)
                learner.restore(
                    Snapshot(resume.tensors, resume.blobs, resume.meta, resume.segments)
                )
            self.members = [
                Member(
                    one,
                    run,
                    member_rules[index],
                    resume=resume,
                    lr_factor=learning.lr_factor,
                    league=league,
                    course=courses[index] if courses else None,
                )
                for index, (one, run, league) in enumerate(
                    zip(plan.runs, runs, leagues, strict=True)
                )
            ]
        self.watched = [
            CallbackRun(member, partial(learner.policy, index))
            for index, member in enumerate(self.members)
        ]
        self._next_member = 0
        now = time.perf_counter()
        every = first.file["checkpoint_every_s"], first.file["checkpoint_every_decisions"]
        self._saves = Interval(*every, self.status, now)
        self.wanted = wanted = first.evaluation
        timeout_s = self.status.timeout_s
        every_s = min(wanted.every_s, timeout_s / EVALUATIONS) if timeout_s else wanted.every_s
        self._evaluations = Interval(every_s, wanted.every_decisions, self.status, now)
        self._by_clock = not wanted.every_decisions
        self._first_due = self._by_clock
        """The first evaluation is requested as soon as the worker has loaded."""

    @property
    def status(self) -> Status:
        """Status of the first member that still trains; all members share clock and budget."""
        return next((m for m in self.members if m.active), self.members[0]).status

    def train(self) -> str:
        """Train to the end; return why it ended: done, early, reached, stopped or the signal."""
        with Stop() as stop:
            try:
                if self.worker:
                    self.worker.start()
                reason = self._learn(stop)
                self._show_end(STOPPED if stop.requested else WAITING if self.worker else DONE)
                if not stop.requested:
                    self._request_evaluation()
                self._save_last()
                if not stop.requested:
                    self._await_last_evaluation(stop)
                self._show_end(STOPPED if stop.requested else DONE)
                reason = stop.requested or reason
                for _, member in self._active():
                    member.record_event("ended", why=reason, seconds=self.status.seconds)
            except DivergedError as error:
                for _, member in self._active():
                    member.record_event("diverged", why=str(error), seconds=self.status.seconds)
                raise
            except (LostError, EnvError) as error:
                self._save_last()
                for _, member in self._active():
                    member.record_event("lost", why=str(error), seconds=self.status.seconds)
                raise
            finally:
                self._close()
        return stop.requested or reason

    @phase("training")
    def _learn(self, stop: Stop) -> str:
        started, before = time.perf_counter(), self.status.seconds
        reason = self._stop_reason()  # a run that stopped early is only evaluated again
        if not reason and not self._finished():
            for member in self.members:
                member.run.remove_results()
        while not reason and not self._finished():
            self._update(started, before)
            self._plan_updates()
            self._evaluate_and_save(stop)
            reason = stop.requested or self._stop_reason()
        return reason or "done"

    def _show_end(self, after: str) -> None:
        """Show that training is over; a wait for the last evaluation is shown at once."""
        for member in self.members:
            member.status.after = after
            if self.watch and after == WAITING:
                self.watch(member.status)

    def _finished(self) -> bool:
        return all(m.status.progress >= 1 for m in self.members if m.active)

    def _update(self, started: float, before: float) -> None:
        learner, progress = self.learner, self.status.progress
        if self._adjusted is not None:
            for index, member in self._active():
                advance_phase(self._adjusted, index, member, progress)
        update_started = time.perf_counter()
        reports = learner.iterate(progress)
        now = time.perf_counter()
        took = now - update_started
        phases = learner.phases.take()
        phases["other"] = max(took - sum(phases.values()), 0.0)
        share = cpu_share(took)
        utilization = self.monitor.add_update(reports, took, phases) if self.monitor else None
        self._deactivate_diverged(reports)
        for member, report in zip(self.members, reports, strict=True):
            if not member.active:
                continue
            report.stats["charts/cpu_share"] = share
            if utilization and not utilization.unknown_reason:
                report.stats["charts/machine_share"] = utilization.share
            member.status.utilization = utilization
            seconds = before + now - started
            member.record(report, phases, update=learner.updates, seconds=seconds, took=took)
        self._call_back(reports)
        if self.watch:
            for member in self.members:
                self.watch(member.status)

    def _deactivate_diverged(self, reports: Sequence[Report]) -> None:
        """Stop members of a population that have diverged; the others continue."""
        for index, (member, report) in enumerate(zip(self.members, reports, strict=True)):
            if report.diverged and member.active:
                member.active = False
                member.record_event("diverged", why=report.diverged, seconds=self.status.seconds)
                member.save_last(self.learner.snapshot(index))
                warn(f"{member.run.name} is stopped, the others continue: {report.diverged}")
        if not any(member.active for member in self.members):
            raise DivergedError(f"every member has diverged; the last: {reports[-1].diverged}")

    def _call_back(self, reports: Sequence[Report]) -> None:
        callbacks = self.callbacks
        for watched, report in zip(self.watched, reports, strict=True):
            if not watched.member.active:
                continue
            if callbacks.on_episode and report.episodes is not None:
                self._call(callbacks.on_episode, watched, report.episodes)
            if callbacks.on_update:
                self._call(callbacks.on_update, watched)

    @phase("callback")
    def _call(self, callback: Callable[..., Any], *args: Any) -> None:
        """Call a user's callback; if it raises, the run is saved and ends."""
        try:
            callback(*args)
        except Exception:
            self._save_last()
            raise

    def _plan_updates(self) -> None:
        """Turn the minutes into a planned number of updates from time to time."""
        members = [member for _, member in self._active()]
        total = planned_updates(self.status, members[0].events)
        for member in members if total else ():
            member.status.total_updates = total
            member.record_event("planned", total_updates=total, seconds=self.status.seconds)

    def _stop_reason(self) -> str:
        """Return why the run ends before its budget is used up, "" if it continues."""
        patience = self.wanted.patience
        if patience and all(
            member.evaluations_since_best >= patience for _, member in self._active()
        ):
            for _, member in self._active():
                member.record_event(
                    "stopped early: no progress", evaluations=member.evaluations_since_best
                )
            return "early"
        goal = self.wanted.stop
        if goal and all(is_met(goal, member.events) for _, member in self._active()):
            return "reached"
        reasons = [run.stop_reason for run in self.watched if run.stop_reason]
        for member in self.members if reasons else ():
            member.record_event("stopped by a callback", why=reasons[0])
        return "stopped" if reasons else ""

    # Saving

    @phase("saving")
    def save(self) -> None:
        """Hand a checkpoint of every member to the background writers."""
        for index, member in self._active():
            member.save(self.learner.snapshot(index))

    @phase("saving")
    def _save_last(self) -> None:
        for index, member in self._active():
            member.save_last(self.learner.snapshot(index))

    def _active(self) -> list[tuple[int, Member]]:
        return [(index, member) for index, member in enumerate(self.members) if member.active]

    # Evaluation

    def _evaluate_and_save(self, stop: Stop) -> None:
        """Process finished evaluations, request the next ones, save checkpoints.

        With intervals in seconds, a result takes effect when it arrives. With intervals in
        decisions, it takes effect when the next evaluation is due, which waits for it: so a run
        repeats on any machine.
        """
        now, status = time.perf_counter(), self.status
        if self.worker and self._by_clock:
            self._add_results(self.worker.poll())
        due = self._evaluation_due(now)
        at_once = not self._by_clock or (due and self._first_due)
        if due:
            self._first_due = False
            if not self._by_clock:
                self._await_answers(stop, math.inf)
            self._request_evaluation()
            self._evaluations.done(status, now)
        if due or self._saves.due(status, now):
            self._saves.done(status, now)
            self.save()
            for _, member in self._active() if at_once else ():
                member.wait_for_save()  # the disk's speed must not decide what is evaluated
        self._submit_evaluation(soon=True)
        for member in self.members if self.worker and not self._first_due else ():
            member.status.next_eval_s = self._evaluations.left_s(now)
            member.status.evaluating = member.playing >= 0

    def _evaluation_due(self, now: float) -> bool:
        """Whether to evaluate. The first time is when the worker has loaded."""
        if self.worker is None:
            return False
        if self._first_due:
            return not self.worker.loading
        return self._evaluations.due(self.status, now)

    def _await_answers(self, stop: Stop, each_s: float) -> None:
        """Wait for all requested evaluations, at most `each_s` seconds for each."""
        assert self.worker
        while not stop.requested:
            self._submit_evaluation()
            until = time.monotonic() + each_s
            while self.worker.busy and not stop.requested and time.monotonic() < until:
                self._add_results(self.worker.drain(WAIT_S))
            if self.worker.busy or not any(member.waiting for member in self.members):
                return
            if not any(member.has_request for member in self.members):
                return  # their checkpoints were never written

    def _request_evaluation(self) -> None:
        for _, member in self._active() if self.worker else ():
            member.want_evaluation()

    def _submit_evaluation(self, *, soon: bool = False) -> None:
        """Send the next waiting checkpoint to the worker if it is free. soon: see `request`."""
        if not self.worker or self.worker.busy:
            return
        for step in range(len(self.members)):
            index = (self._next_member + step) % len(self.members)
            member = self.members[index]
            request = member.request(soon=soon)
            if request is not None:
                self._next_member = index + 1
                self.worker.submit({"id": f"{index}/{member.playing}", **request})
                return

    def _await_last_evaluation(self, stop: Stop) -> None:
        """Wait for the evaluation of the last checkpoints, which may be the best."""
        if self.worker:
            self._await_answers(stop, LAST_EVALUATION_S if self._by_clock else math.inf)
            for _, member in self._active():
                member.amend_last()

    def _add_results(self, answers: list[dict[str, Any]]) -> None:
        for answer in answers:
            index, number = map(int, answer["id"].split("/"))
            member = self.members[index]
            results = member.add_evaluation(number, answer)
            stop = member.plan.evaluation.stop
            if results and meets(stop, member.rules, results):
                values = met_conditions(stop, member.rules, results)
                member.record_event(MET, rules=list(stop), checkpoint=number, found=values)
            if results and self.callbacks.on_evaluation:
                self._call(self.callbacks.on_evaluation, self.watched[index], results)
            if self.watch:
                self.watch(self.members[index].status)

    def _close(self) -> None:
        if self.worker:
            self.worker.close()
        for member in self.members:
            member.close()


def evaluator_for(rules: Rules, run: RunPlan, threads: int) -> EvalWorker | None:
    """Return the worker that evaluates a run during training; None if it is not evaluated."""
    playable = bool(rules.bots)
    if isinstance(rules, CustomRules):
        rules.factory = run.factory or rules.factory  # saved with checkpoints for other processes
        playable = bool(rules.factory)
    if run.evaluation.off or run.in_process_only or not playable:
        return None
    return evaluator(threads)


_cpu_before = time.process_time()


def cpu_share(wall_s: float) -> float:
    """CPU time of this process per second of wall time since the last call, in cores."""
    global _cpu_before
    now = time.process_time()
    used, _cpu_before = now - _cpu_before, now
    return used / wall_s if wall_s > 0 else 0.0
