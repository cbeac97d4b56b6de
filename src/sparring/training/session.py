"""A training session: builds the learner, runs the loop, recovers once from a divergence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sparring.curriculum.state import CurriculumState
from sparring.errors import ConfigError, EnvError, warn
from sparring.learn.algos import LEARNERS
from sparring.learn.learner import DivergedError, Learner, closing_learner
from sparring.learn.plan import PathSummary, Plan
from sparring.learn.searching import belief_hint
from sparring.nets.net import Net
from sparring.nets.sizes import NetCounts, count
from sparring.nets.transfer import Transfer
from sparring.pools.custom.base import CustomPool
from sparring.store import checkpoint as checkpoints
from sparring.store.folders import CONFIG
from sparring.store.policies import load_policy
from sparring.training.agent import Agent, measure_in_process
from sparring.training.callbacks import Callbacks
from sparring.training.curriculum import check_overridable
from sparring.training.display import Display
from sparring.training.imitation.imitate import begin_imitated, check_sources, record_imitation
from sparring.training.loop import Trainer, evaluator_for
from sparring.training.member import Member
from sparring.training.planning.checks import within_memory
from sparring.training.planning.participants import check_leagues
from sparring.training.planning.paths import paths_taken
from sparring.training.planning.training import TrainingPlan
from sparring.training.records.run import NETWORK, Run
from sparring.training.starting import start_from
from sparring.training.utilization.monitor import monitor_run

LR_FACTOR = 0.1
"""Factor of the learning rate after the first divergence of a run."""
LOWERED = "diverged: learning rate lowered"
"""Event of the lowered learning rate."""
INIT = "init"
"""Event of a start with trained weights: which of them were transferred."""


@dataclass
class TrainingSession:
    """A plan and its learner, ready to train one run or a population."""

    training: TrainingPlan
    learner: Learner
    callbacks: Callbacks
    quiet: bool
    courses: Sequence[CurriculumState] = ()
    """Curriculum states of all members; empty without a curriculum."""
    transfers: dict[int, Transfer] = field(default_factory=dict)
    """By member: which weights of `init` were transferred."""

    @classmethod
    def prepare(
        cls, training: TrainingPlan, *, callbacks: Callbacks | None = None, quiet: bool = False
    ) -> TrainingSession:
        """Build everything; nothing is written yet."""
        callbacks = callbacks or Callbacks()
        wants_episodes = callbacks.on_episode or any(
            run.file["episodes_csv"] for run in training.runs
        )
        if training.learning.fused and wants_episodes:
            raise ConfigError(
                "episodes_csv and on_episode: games on a GPU are not reported one by one; "
                "use --device cpu, or leave them out"
            )
        with closing_games(training.learning, brought=training.brought):
            courses = training.courses()
            learner = training.make_learner()
            if courses:
                check_overridable(learner)
        return cls(training, learner, callbacks, quiet, courses)

    @property
    def plan(self) -> Plan:
        return self.training.learning

    def begin(self) -> None:
        """Check what only new runs need, and load the weights of `init`."""
        training, plan = self.training, self.plan
        with closing_games(plan, brought=training.brought):
            check_sources(plan, training.first)
            check_leagues(plan.participants, [run.league for run in training.runs])
            self.start_from_init()

    @property
    def announced(self) -> PathSummary:
        """The backend that computes the networks."""
        return PathSummary(self.training.first.algo, paths_taken(self.plan, self.learner))

    def start_from_init(self) -> None:
        """Load the weights of `init` into new learners."""
        for member, run in enumerate(self.training.runs):
            if run.init:
                self.transfers[member] = start_from(self.learner, run.init, member)

    def finish(
        self, runs: Sequence[Run], *, resume: checkpoints.Checkpoint | None = None, note: str = ""
    ) -> list[Agent]:
        """Train to the end and load the resulting agents. The caller has locked the runs.

        After a divergence, continues once from the last checkpoint with a lower learning rate.
        note: an event to record.
        """
        try:
            with within_memory(self.plan):
                return self._finish(runs, resume, note)
        finally:
            close_games(self.plan, brought=self.training.brought)

    def _finish(
        self, runs: Sequence[Run], resume: checkpoints.Checkpoint | None, note: str
    ) -> list[Agent]:
        try:
            return self._train(runs, resume, {note: {}} if note else {})
        except DivergedError as error:
            reason = str(error)
        session, saved, facts = self._with_lower_lr(runs[0], reason, resume)
        events: dict[str, dict[str, Any]] = {LOWERED: facts}
        if note and saved is resume:
            events = {note: {}, **events}
        try:
            return session._train([runs[0]], saved, events)
        except DivergedError:
            raise DivergedError(
                f"{reason}, and again at a tenth; {self._advice(runs[0])}"
            ) from None

    def _train(
        self,
        runs: Sequence[Run],
        resume: checkpoints.Checkpoint | None,
        events: Mapping[str, Mapping[str, Any]],
    ) -> list[Agent]:
        with closing_learner(self.learner):
            trainer, ended = self._loop(runs, resume, events)
            agents = [
                Agent(
                    self.learner.policy(index)
                    if member.unsaved
                    else load_policy(member.run.path, seeing=True),
                    member.run.path,
                    ended if member.active else "diverged",
                    elsewhere=member.fallback_path,
                    unsaved=member.unsaved,
                )
                for index, member in enumerate(trainer.members)
            ]
        pool, wanted = self.plan.custom, self.training.first.evaluation
        if self.training.brought and isinstance(pool, CustomPool) and not wanted.off:
            for agent in agents if not ended.startswith("SIG") else ():
                measure_in_process(agent, wanted, pool)
        return agents

    def _loop(
        self,
        runs: Sequence[Run],
        resume: checkpoints.Checkpoint | None,
        events: Mapping[str, Mapping[str, Any]],
    ) -> tuple[Trainer, str]:
        first = self.training.first
        imitated = begin_imitated(
            self.plan,
            first,
            self.learner,
            runs,
            resumed=resume is not None,
            quiet=self.quiet,
        )
        with ExitStack() as stack:
            worker = evaluator_for(self.learner.rules, first, self.plan.spare_threads)
            if worker:  # it takes seconds to load, while this machine is measured
                stack.enter_context(worker).start()
            monitor = monitor_run(first, self.plan, self.learner, quiet=self.quiet)
            display = stack.enter_context(Display(quiet=self.quiet))
            trainer = Trainer(
                self.learner,
                self.training,
                runs,
                worker=worker,
                resume=resume,
                courses=self.courses,
                watch=display,
                callbacks=self.callbacks,
                monitor=monitor,
            )
            self._record_network(trainer.members)
            if LOWERED in events and resume is None:
                trainer.members[0].forget_after(-1)
            for member, transfer in self.transfers.items() if resume is None else ():
                trainer.members[member].record_event(INIT, **transfer.record())
                trainer.members[member].status.notes += (f"{INIT}: {transfer.line()}",)
            for what, facts in events.items():
                trainer.members[0].record_event(what, **facts)
            if imitated:
                record_imitation(imitated, trainer.members)
            return trainer, trainer.train()

    def _record_network(self, members: Sequence[Member]) -> None:
        """Write the network's size and backend to the runs and to the status."""
        network, path = count_network(self.learner), self.announced
        hint = belief_hint(self.plan.rules, self.plan.heads) if path.algo == "gumbel" else ""
        for member in members:
            if network:
                member.write_json(NETWORK, {**network.plain(), **path.plain()})
            line = f"{path.line}; {network.line()}" if network else path.line
            member.status.notes = (line, hint) if hint else (line,)

    def _with_lower_lr(
        self, run: Run, reason: str, resume: checkpoints.Checkpoint | None
    ) -> tuple[TrainingSession, checkpoints.Checkpoint | None, dict[str, Any]]:
        """Prepare to continue from the last checkpoint with a lower rate, once per run."""
        is_builtin = self.training.first.algo in LEARNERS
        if len(self.training.runs) > 1 or not is_builtin or self.plan.lr_factor != 1:
            raise DivergedError(f"{reason}; {self._advice(run)}")
        newest = checkpoints.newest_valid(run.checkpoints)
        saved = checkpoints.load(newest) if newest else None
        if saved and resume and saved.number == resume.number:
            saved = resume  # possibly without its replay buffer (clear_replay)
        del self.learner  # there may be no memory for two
        training = self.training.at_rate(LR_FACTOR)
        session = TrainingSession.prepare(training, callbacks=self.callbacks, quiet=self.quiet)
        if saved is None:
            session.start_from_init()
        lr = session.plan.settings[0].lr
        return session, saved, {"why": reason, "lr": str(lr), "from": saved.number if saved else 0}

    def _advice(self, run: Run) -> str:
        if not checkpoints.checkpoint_numbers(run.checkpoints):
            return "nothing was saved before that; start again with a lower learning rate"
        return (
            "start again from what it has learned with a lower learning rate: sparring train "
            f"--config {run.path / CONFIG} --init {run.path} --{self.training.first.algo}.lr 1e-4"
        )


def count_network(learner: Learner) -> NetCounts | None:
    """Return the size of the learner's network; None if a custom learner has none."""
    net = learner.policy().net
    return count(net) if isinstance(net, Net) else None


def close_games(plan: Plan, *, brought: bool) -> None:
    """Close the environments that a plan created. brought: they belong to the caller."""
    if isinstance(plan.custom, CustomPool) and not brought:
        try:
            plan.custom.close()
        except EnvError as error:  # training has succeeded all the same
            warn(str(error))


@contextmanager
def closing_games(plan: Plan, *, brought: bool) -> Iterator[None]:
    """Close the environments if the block raises."""
    try:
        yield
    except BaseException:
        close_games(plan, brought=brought)
        raise
