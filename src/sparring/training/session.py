"""Training from start to end: build everything, run the loop, recover once from a divergence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.curriculum.course import Course
from sparring.errors import ConfigError, EnvError, SparringWarning
from sparring.factories import lasting_name
from sparring.games.starts import lasting as lasting_start
from sparring.kernels import compiling
from sparring.learn.algos import LEARNERS
from sparring.learn.learner import DivergedError, Learner, closing_learner
from sparring.learn.path import Announced
from sparring.learn.plan import CPU, Plan
from sparring.nets.arithmetic import resolve_cpu
from sparring.nets.counts import Counts, count
from sparring.nets.net import Net
from sparring.nets.transfer import Transfer
from sparring.pools.foreign.base import ForeignPool
from sparring.pools.protocol import GamePool
from sparring.store import checkpoint as checkpoints
from sparring.store.folders import CONFIG
from sparring.store.policies import load_policy
from sparring.training.agent import Agent
from sparring.training.budget import budget_of
from sparring.training.callbacks import Callbacks
from sparring.training.courses import adjustable, with_courses
from sparring.training.display import Display
from sparring.training.loop import Trainer, evaluator_for
from sparring.training.member import Member
from sparring.training.metering import meter_for
from sparring.training.planning.casting import check_leagues, pinned
from sparring.training.planning.curricula import lasting_phases, with_phases
from sparring.training.planning.demands import demand_processes, within_memory
from sparring.training.planning.own import rules_of
from sparring.training.planning.own_nets import is_perceptron, lasting_net
from sparring.training.planning.paths import paths_taken
from sparring.training.planning.place import choose_device
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.records.run import NETWORK, Run, check_name
from sparring.training.results import measure_here
from sparring.training.starting import found_init, start_from
from sparring.training.teaching.sources import lasting as lasting_source
from sparring.training.teaching.sources import read_sources
from sparring.training.teaching.teach import begin_taught, tell_members

CALMER = 0.1
"""What the learning rate is multiplied with after the first divergence of a run."""
LOWERED = "diverged: learning rate lowered"
"""The event of that."""
INIT = "init"
"""The event of beginning with trained weights: what was kept of them."""


@dataclass
class Session:
    """A plan and its learner, about to train one run or a population."""

    configs: Sequence[TrainConfig]
    plan: Plan
    learner: Learner
    callbacks: Callbacks
    quiet: bool
    opponents: Sequence[Any] = ()
    """Instead of those of the settings, where a program has given objects."""
    brought: bool = False
    """The games are an object of the program, which closes it itself."""
    courses: Sequence[Course] = ()
    """The way of every member through its phases; none where nothing ever changes."""
    kept: dict[int, Transfer] = field(default_factory=dict)
    """What members have of the weights that they began with."""

    @classmethod
    def prepare(
        cls,
        configs: Sequence[TrainConfig],
        *,
        pool: GamePool | None = None,
        opponents: Sequence[Any] = (),
        lr_factor: float = 1.0,
        callbacks: Callbacks | None = None,
        quiet: bool = False,
    ) -> Session:
        """Decide and build everything; nothing is written yet."""
        for config in configs:
            budget_of(config)
            demand_processes(config)
        compiling.PROGRESS.quiet = quiet
        plan = resolve(configs, pool=pool, opponents=opponents, lr_factor=lr_factor)
        called = callbacks or Callbacks()
        if plan.fused and (called.on_episode or any(c.episodes_csv for c in configs)):
            raise ConfigError(
                "episodes_csv and on_episode: games on a GPU are not told one by one; "
                "use --device cpu, or leave them out"
            )
        with closing_games(plan, brought=pool is not None):
            courses, plan = with_courses(configs, plan)
            learner = make_learner(configs[0], plan)
            if courses:
                adjustable(learner)
        return cls(
            configs=configs,
            plan=plan,
            learner=learner,
            callbacks=called,
            quiet=quiet,
            opponents=opponents,
            brought=pool is not None,
            courses=courses,
        )

    @classmethod
    def begin(
        cls, configs: Sequence[TrainConfig], **options: Any
    ) -> tuple[Session, Sequence[TrainConfig]]:
        """Prepare runs that are new: their names are free, their weights those of `init`."""
        for config in configs:
            check_name(Path(config.runs), config.name)
        configs = [lasting(config, **options) for config in map(with_phases, configs)]
        session = cls.prepare(configs, **options)
        with closing_games(session.plan, brought=session.brought):
            read_sources(session.plan.rules, configs[0].teach)  # what is not there is refused now
            check_leagues(session.plan.cast, [config.league for config in configs])
            session.start_from_init()
        return session, configs

    @property
    def announced(self) -> Announced:
        """The path that the networks are computed on."""
        return Announced(self.configs[0].algo, paths_taken(self.plan, self.learner))

    def start_from_init(self) -> None:
        """Give fresh learners the weights that they are to begin with."""
        for member, config in enumerate(self.configs):
            if config.init:
                self.kept[member] = start_from(self.learner, config.init, member)

    def finish(
        self,
        runs: Sequence[Run],
        *,
        resume: checkpoints.Checkpoint | None = None,
        note: str = "",
    ) -> list[Agent]:
        """Run the loop to its end and load what came out of it. The runs are held by the caller.

        After a divergence it goes on once more, from the last checkpoint at a lower rate.
        note: an event of the resume.
        """
        try:
            with within_memory(self.configs[0], self.plan):
                return self._finish(runs, resume, note)
        finally:
            close_games(self.plan, brought=self.brought)

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
        pool, config = self.plan.foreign, self.configs[0]
        if self.brought and isinstance(pool, ForeignPool) and not config.eval.off:
            for agent in agents if not ended.startswith("SIG") else ():
                measure_here(agent, config, pool)
        return agents

    def _loop(
        self,
        runs: Sequence[Run],
        resume: checkpoints.Checkpoint | None,
        events: Mapping[str, Mapping[str, Any]],
    ) -> tuple[Trainer, str]:
        """Run the loop to its end and say why it ended."""
        taught = begin_taught(
            self.plan,
            self.configs,
            self.learner,
            runs,
            resumed=resume is not None,
            quiet=self.quiet,
        )
        config, spare = self.configs[0], self.plan.spare_threads
        with ExitStack() as held:
            worker = evaluator_for(self.learner.rules, config, spare)
            if worker:  # it loads for seconds: at the same time as this machine is measured
                held.enter_context(worker).start()
            meter = meter_for(config, self.plan, self.learner, quiet=self.quiet)
            display = held.enter_context(Display(quiet=self.quiet))
            trainer = Trainer(
                self.learner,
                self.configs,
                runs,
                spare_threads=spare,
                worker=worker,
                resume=resume,
                lr_factor=self.plan.lr_factor,
                cast=self.plan.cast,
                courses=self.courses,
                rules=self.plan.own_rules,
                watch=display,
                callbacks=self.callbacks,
                meter=meter,
            )
            self._tell_network(trainer.members)
            if LOWERED in events and resume is None:
                trainer.members[0].forget_after(-1)
            for member, kept in self.kept.items() if resume is None else ():
                trainer.members[member].note(INIT, **kept.record())
                trainer.members[member].status.told += (f"{INIT}: {kept.line()}",)
            for what, facts in events.items():
                trainer.members[0].note(what, **facts)
            if taught:
                tell_members(taught, trainer.members)
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
    ) -> tuple[Session, checkpoints.Checkpoint | None, dict[str, Any]]:
        """Prepare to go on from the last checkpoint at a lower rate, once in a run's life."""
        config = self.configs[0]
        if len(self.configs) > 1 or config.algo not in LEARNERS or self.plan.lr_factor != 1:
            raise DivergedError(f"{why}; {self._advice(run)}")
        newest = checkpoints.newest_valid(run.checkpoints)
        saved = checkpoints.load(newest) if newest else None
        if saved and resume and saved.number == resume.number:
            saved = resume  # perhaps without its replay, as was asked for
        del self.learner  # there may be no room for two
        session = Session.prepare(
            self.configs,
            pool=self.plan.foreign,
            opponents=self.opponents,
            lr_factor=CALMER,
            callbacks=self.callbacks,
            quiet=self.quiet,
        )
        if saved is None:
            session.start_from_init()
        lr = session.plan.settings[0].lr
        return session, saved, {"why": why, "lr": str(lr), "from": saved.number if saved else 0}

    def _advice(self, run: Run) -> str:
        """Say how to use what was learned before a divergence."""
        config = self.configs[0]
        if not checkpoints.numbers(run.checkpoints):
            return "nothing was saved before that; start again with a lower learning rate"
        return (
            "start again from what it has learned with a lower learning rate: sparring train "
            f"--config {run.path / CONFIG} --init {run.path} --{config.algo}.lr 1e-4"
        )


def counted(learner: Learner) -> Counts | None:
    """How large the network is that plays; None where a learner of somebody's own has none."""
    net = learner.policy().net
    return count(net) if isinstance(net, Net) else None


def close_games(plan: Plan, *, brought: bool) -> None:
    """Close environments that a plan has made; those of the program are its own."""
    if isinstance(plan.foreign, ForeignPool) and not brought:
        try:
            plan.foreign.close()
        except EnvError as wrong:  # what was trained is not lost by that
            warnings.warn(SparringWarning(str(wrong)), stacklevel=2)


@contextmanager
def closing_games(plan: Plan, *, brought: bool) -> Iterator[None]:
    """Close them if something is refused, or fails: nobody else knows them yet."""
    try:
        yield
    except BaseException:
        close_games(plan, brought=brought)
        raise


def lasting(
    config: TrainConfig, *, pool: GamePool | None = None, opponents: Sequence[Any] = (), **_: Any
) -> TrainConfig:
    """The settings of a new run as its file is to have them: what they name stays what it is.

    pool, opponents: what the program that begins the run brings along.
    """
    rules = rules_of(config, pool)
    collect = config.collect
    if choose_device(config.device) == CPU:
        collect = replace(
            collect, cpu=resolve_cpu(collect.cpu, perceptron=is_perceptron(rules, config.net))
        )
    return replace(
        config,
        collect=collect,
        game=lasting_name(config.game),
        net=lasting_net(config.net),
        init=found_init(config.init),
        opponents=config.opponents if opponents else pinned(rules, config.opponents),
        starts=tuple(map(lasting_start, config.starts)),
        teach=tuple(lasting_source(rules, word) for word in config.teach),
        phases=lasting_phases(config, rules),
    )
