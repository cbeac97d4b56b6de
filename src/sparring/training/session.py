"""Training from start to end: build everything, run the loop, recover once from a divergence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.learn.algos import LEARNERS
from sparring.learn.learner import DivergedError, Learner, Snapshot
from sparring.learn.plan import Plan
from sparring.pools.protocol import GamePool
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy, locate, whole_checkpoint
from sparring.training.agent import Agent
from sparring.training.budget import budget_of
from sparring.training.callbacks import Callbacks
from sparring.training.display import Display
from sparring.training.loop import Trainer
from sparring.training.plan import make_learner, resolve
from sparring.training.run import Run, check_name
from sparring.training.settings import written

CALMER = 0.1
"""What the learning rate is multiplied with after the first divergence of a run."""
LOWERED = "diverged: learning rate lowered"
"""The event of that."""


@dataclass(frozen=True)
class Session:
    """A plan and its learner, about to train one run or a population."""

    configs: Sequence[TrainConfig]
    plan: Plan
    learner: Learner
    callbacks: Callbacks
    quiet: bool = False

    @classmethod
    def prepare(
        cls,
        configs: Sequence[TrainConfig],
        *,
        pool: GamePool | None = None,
        callbacks: Callbacks | None = None,
        quiet: bool = False,
    ) -> Session:
        """Decide and build everything; nothing is written yet."""
        for config in configs:
            budget_of(config)
        plan = resolve(configs, pool=pool)
        called = callbacks or Callbacks()
        if plan.fused and (called.on_episode or any(c.episodes_csv for c in configs)):
            raise ConfigError(
                "episodes_csv and on_episode: games on a GPU are not told one by one; "
                "use --device cpu, or leave them out"
            )
        return cls(configs, plan, make_learner(configs[0], plan), called, quiet)

    @classmethod
    def begin(
        cls, configs: Sequence[TrainConfig], **options: Any
    ) -> tuple[Session, Sequence[TrainConfig]]:
        """Prepare runs that are new: their names are free, their weights those of `init`."""
        for config in configs:
            check_name(Path(config.runs), config.name)
        configs = [replace(config, init=found_init(config.init)) for config in configs]
        session = cls.prepare(configs, **options)
        for member, config in enumerate(configs):
            if config.init:
                start_from(session.learner, config.init, member)
        return session, configs

    def finish(
        self, runs: Sequence[Run], *, resume: checkpoints.Checkpoint | None = None
    ) -> list[Agent]:
        """Run the loop to its end and load what came out of it."""
        with ExitStack() as held:
            for run in runs:
                held.enter_context(run.held())
            return self._train_calmly(runs, resume)

    def _train_calmly(
        self,
        runs: Sequence[Run],
        resume: checkpoints.Checkpoint | None,
        lowered: dict[str, Any] | None = None,
    ) -> list[Agent]:
        """Train; after a divergence once more, from the last checkpoint at a lower rate."""
        try:
            return self._train(runs, resume, lowered)
        except DivergedError as wrong:
            session, saved, facts = self._calmer(runs, wrong, again=lowered is not None)
        return session._train_calmly(runs, saved, facts)

    def _train(
        self,
        runs: Sequence[Run],
        resume: checkpoints.Checkpoint | None,
        lowered: dict[str, Any] | None,
    ) -> list[Agent]:
        with Display(quiet=self.quiet) as display:
            trainer = Trainer(
                self.learner,
                self.configs,
                runs,
                spare_threads=self.plan.spare_threads,
                resume=resume,
                watch=display,
                callbacks=self.callbacks,
            )
            if lowered:
                (member,) = trainer.members
                if resume is None:
                    member.metrics.truncate_after(-1)
                member.note(LOWERED, **lowered)
                trainer.save()  # with the settings of now, so that a resume finds them equal
            ended = trainer.train()
        agents = []
        for index, member in enumerate(trainer.members):
            kept = member.elsewhere is None and checkpoints.numbers(member.run.checkpoints)
            policy = load_policy(member.run.path) if kept else self.learner.policy(index)
            agents.append(Agent(policy, member.run.path, ended, elsewhere=member.elsewhere))
        return agents

    def _calmer(
        self, runs: Sequence[Run], wrong: DivergedError, *, again: bool
    ) -> tuple[Session, checkpoints.Checkpoint | None, dict[str, Any]]:
        """Go back to the last checkpoint with a lower learning rate, once in a run's life."""
        (config, *others), run = self.configs, runs[0]
        newest = checkpoints.newest_valid(run.checkpoints)
        saved = checkpoints.load(newest) if newest else None
        again = again or any(e["event"] == LOWERED for e in (saved.meta["events"] if saved else ()))
        advice = (
            f"start again from what it has learned with a lower learning rate: sparring train "
            f"{config.game} --init {run.path} --{config.algo}.lr 1e-4"
        )
        if again or others or config.algo not in LEARNERS:
            raise DivergedError(f"{wrong}; {advice}" if saved else str(wrong)) from wrong
        settings = getattr(config, config.algo)
        lower = replace(settings, lr=settings.lr.scaled(CALMER))
        calmer: TrainConfig = replace(config, **{config.algo: lower})
        run.configure(written(calmer))
        session = Session.prepare(
            [calmer], pool=self.plan.foreign, callbacks=self.callbacks, quiet=self.quiet
        )
        facts = {"why": str(wrong), "lr": str(lower.lr), "from": saved.number if saved else 0}
        return session, saved, facts


def found_init(text: str) -> str:
    """Return the very checkpoint that a word means, so that the run says what it began with."""
    if not text:
        return ""
    place = locate(text)
    if place is None:
        raise ConfigError(f"init: no folder {text}; give a run, a checkpoint or a saved policy")
    folder, _ = whole_checkpoint(place)
    return str(folder)


def start_from(learner: Learner, path: str, member: int = 0) -> None:
    """Give a fresh learner trained weights; all else stays as it begins."""
    policy = load_policy(path)
    policy.check_fits(learner.rules)
    fresh = learner.snapshot(member)
    mine = fresh.tensors.get("net", {})
    theirs = {name: value.detach().cpu() for name, value in policy.net.state_dict().items()}
    if differ := differences(mine, theirs):
        raise ConfigError(f"init: {path} holds another network: {differ}; set net as it was there")
    try:
        learner.restore(Snapshot({**fresh.tensors, "net": theirs}, fresh.blobs, fresh.meta), member)
    except SparringError as wrong:
        raise ConfigError(f"init: {wrong}") from wrong


def differences(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Say in which tensors two networks differ, "" if in none."""
    for name in {**mine, **theirs}:
        here, there = (tuple(net[name].shape) if name in net else None for net in (mine, theirs))
        if here != there:
            return f"{name} is {there} there and {here} here"
    return ""
