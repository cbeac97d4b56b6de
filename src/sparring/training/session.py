"""Training from start to end: build everything, run the loop, recover once from a divergence."""

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
from sparring.training.imitation.imitate import begin_imitated, tell_members
from sparring.training.imitation.making import read_sources
from sparring.training.loop import Trainer, evaluator_for
from sparring.training.member import Member
from sparring.training.planning.checks import within_memory
from sparring.training.planning.participants import check_leagues
from sparring.training.planning.paths import paths_taken
from sparring.training.planning.training import TrainingPlan
from sparring.training.records.run import NETWORK, Run
from sparring.training.starting import start_from
from sparring.training.utilization.monitor import monitor_run

CALMER = 0.1
"""What the learning rate is multiplied with after the first divergence of a run."""
LOWERED = "diverged: learning rate lowered"
"""The event of that."""
INIT = "init"
"""The event of beginning with trained weights: what was kept of them."""


@dataclass
class TrainingSession:
    """A plan and its learner, about to train one run or a population."""

    training: TrainingPlan
    learner: Learner
    callbacks: Callbacks
    quiet: bool
    courses: Sequence[CurriculumState] = ()
    """The way of every member through its phases; none where nothing ever changes."""
    kept: dict[int, Transfer] = field(default_factory=dict)
    """What members have of the weights that they began with."""

    @classmethod
    def prepare(
        cls, training: TrainingPlan, *, callbacks: Callbacks | None = None, quiet: bool = False
    ) -> TrainingSession:
        """Build everything; nothing is written yet."""
        called = callbacks or Callbacks()
        asked = called.on_episode or any(run.file["episodes_csv"] for run in training.runs)
        if training.learning.fused and asked:
            raise ConfigError(
                "episodes_csv and on_episode: games on a GPU are not reported one by one; "
                "use --device cpu, or leave them out"
            )
        with closing_games(training.learning, brought=training.brought):
            courses = training.courses()
            learner = training.make_learner()
            if courses:
                check_overridable(learner)
        return cls(training, learner, called, quiet, courses)

    @property
    def plan(self) -> Plan:
        return self.training.learning

    def begin(self) -> None:
        """Refuse what new runs cannot begin with; give learners the weights of `init`."""
        training, plan = self.training, self.plan
        with closing_games(plan, brought=training.brought):
            read_sources(plan.rules, training.first.imitate)
            check_leagues(plan.participants, [run.league for run in training.runs])
            self.start_from_init()

    @property
    def announced(self) -> PathSummary:
        """The path that the networks are computed on."""
        return PathSummary(self.training.first.algo, paths_taken(self.plan, self.learner))

    def start_from_init(self) -> None:
        """Give fresh learners the weights that they are to begin with."""
        for member, run in enumerate(self.training.runs):
            if run.init:
                self.kept[member] = start_from(self.learner, run.init, member)

    def finish(
        self, runs: Sequence[Run], *, resume: checkpoints.Checkpoint | None = None, note: str = ""
    ) -> list[Agent]:
        """Run the loop to its end and load what came out of it. The runs are held by the caller.

        After a divergence it goes on once more, from the last checkpoint at a lower rate.
        note: an event of the resume.
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
        except DivergedError as wrong:
            why = str(wrong)
        session, saved, facts = self._calmer(runs[0], why, resume)
        events: dict[str, dict[str, Any]] = {LOWERED: facts}
        if note and saved is resume:
            events = {note: {}, **events}
        try:
            return session._train([runs[0]], saved, events)
        except DivergedError:
            raise DivergedError(f"{why}, and again at a tenth; {self._advice(runs[0])}") from None

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
                    self.learner.policy(index) if member.unsaved else load_policy(member.run.path),
                    member.run.path,
                    ended if member.active else "diverged",
                    elsewhere=member.elsewhere,
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
        with ExitStack() as held:
            worker = evaluator_for(self.learner.rules, first, self.plan.spare_threads)
            if worker:  # it loads for seconds: at the same time as this machine is measured
                held.enter_context(worker).start()
            monitor = monitor_run(first, self.plan, self.learner, quiet=self.quiet)
            display = held.enter_context(Display(quiet=self.quiet))
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
            self._tell_network(trainer.members)
            if LOWERED in events and resume is None:
                trainer.members[0].forget_after(-1)
            for member, kept in self.kept.items() if resume is None else ():
                trainer.members[member].note(INIT, **kept.record())
                trainer.members[member].status.told += (f"{INIT}: {kept.line()}",)
            for what, facts in events.items():
                trainer.members[0].note(what, **facts)
            if imitated:
                tell_members(imitated, trainer.members)
            return trainer, trainer.train()

    def _tell_network(self, members: Sequence[Member]) -> None:
        """Say how large the network is and on which path it is computed; keep it with the runs."""
        network, path = counted(self.learner), self.announced
        for member in members:
            if network:
                member.write_json(NETWORK, {**network.plain(), **path.plain()})
            member.status.told = (f"{path.line}; {network.line()}" if network else path.line,)

    def _calmer(
        self, run: Run, why: str, resume: checkpoints.Checkpoint | None
    ) -> tuple[TrainingSession, checkpoints.Checkpoint | None, dict[str, Any]]:
        """Prepare to go on from the last checkpoint at a lower rate, once in a run's life."""
        known = self.training.first.algo in LEARNERS
        if len(self.training.runs) > 1 or not known or self.plan.lr_factor != 1:
            raise DivergedError(f"{why}; {self._advice(run)}")
        newest = checkpoints.newest_valid(run.checkpoints)
        saved = checkpoints.load(newest) if newest else None
        if saved and resume and saved.number == resume.number:
            saved = resume  # perhaps without its replay, as was asked for
        del self.learner  # there may be no room for two
        training = self.training.at_rate(CALMER)
        session = TrainingSession.prepare(training, callbacks=self.callbacks, quiet=self.quiet)
        if saved is None:
            session.start_from_init()
        lr = session.plan.settings[0].lr
        return session, saved, {"why": why, "lr": str(lr), "from": saved.number if saved else 0}

    def _advice(self, run: Run) -> str:
        if not checkpoints.checkpoint_numbers(run.checkpoints):
            return "nothing was saved before that; start again with a lower learning rate"
        return (
            "start again from what it has learned with a lower learning rate: sparring train "
            f"--config {run.path / CONFIG} --init {run.path} --{self.training.first.algo}.lr 1e-4"
        )


def counted(learner: Learner) -> NetCounts | None:
    """How large the network is that plays; None where a learner of somebody's own has none."""
    net = learner.policy().net
    return count(net) if isinstance(net, Net) else None


def close_games(plan: Plan, *, brought: bool) -> None:
    """Close environments that a plan has made; those of the program are its own."""
    if isinstance(plan.custom, CustomPool) and not brought:
        try:
            plan.custom.close()
        except EnvError as wrong:  # what was trained is not lost by that
            warn(str(wrong))


@contextmanager
def closing_games(plan: Plan, *, brought: bool) -> Iterator[None]:
    """Close them if something is refused, or fails: nobody else knows them yet."""
    try:
        yield
    except BaseException:
        close_games(plan, brought=brought)
        raise
