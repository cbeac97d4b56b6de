"""From complete configurations to one plan of training; below it nobody sees a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sparring.config import EvaluationConfig, ImitationConfig, LeagueConfig, TrainConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.curriculum.state import CurriculumState
from sparring.factories import is_factory, is_object_name
from sparring.learn.learner import Learner
from sparring.learn.plan import Plan
from sparring.pools.protocol import GamePool
from sparring.training.planning.checks import check_processes
from sparring.training.planning.custom import by_factory
from sparring.training.planning.gpus import learns_with_others
from sparring.training.planning.placement import played_elsewhere
from sparring.training.planning.plan import decide, make_learner
from sparring.training.planning.settings import budget_of, written


@dataclass(frozen=True)
class RunPlan:
    """One run: a folder of its own, alone or as a member of a population."""

    name: str
    """That somebody gave it, "" if nobody did."""
    file: Mapping[str, Any]
    """The complete configuration in plain values, as config.toml and checkpoints have it."""
    algo: str
    budget: tuple[str, float]
    """What ends it: minutes, updates, decisions or episodes, and how many in all."""
    init: str
    """Whose weights it begins with."""
    evaluation: EvaluationConfig
    league: LeagueConfig
    imitate: tuple[str, ...]
    """What it learns from before it plays."""
    imitation: ImitationConfig
    factory: str
    """What makes its environment, by name; "" if the game is one of ours, or an object."""
    custom_net: bool
    """A network is somebody's own: whoever plays it needs its module."""
    in_process_only: bool
    """The network is an object of this program, which no other process finds."""
    processes: bool
    """Others play or learn with it."""
    actors_keep_playing: bool
    """Actors play while it learns: checkpoints are without their games."""


def run_plan(config: TrainConfig) -> RunPlan:
    """Return what a complete configuration says about a run."""
    return RunPlan(
        name=config.name,
        file=written(config),
        algo=config.algo,
        budget=budget_of(config),
        init=config.init,
        evaluation=config.eval,
        league=config.league,
        imitate=config.imitate,
        imitation=config.imitation,
        factory=config.game if by_factory(config) else "",
        custom_net=is_factory(config.net.kind)
        or any(".net.kind=" in word for word in config.roles),
        in_process_only=is_object_name(config.net.kind),
        processes=played_elsewhere(config) or learns_with_others(config),
        actors_keep_playing=bool(config.actors) and not config.distributed.lockstep,
    )


@dataclass(frozen=True)
class TrainingPlan:
    """One run, or a population that is trained together: what learns, and what is around it."""

    learning: Plan
    runs: tuple[RunPlan, ...]
    curricula: tuple[Curriculum, ...]
    """The phases of every member."""
    brought: bool
    """The games are an object of the program, which closes it itself."""
    make_learner: Callable[[], Learner]
    replan: Callable[..., TrainingPlan]
    """Plans the same once more; see `plan_training` for what may be otherwise."""

    @property
    def first(self) -> RunPlan:
        """The run, or the first of a population, which says what all of them share."""
        return self.runs[0]

    def at_rate(self, lr_factor: float) -> TrainingPlan:
        """The same with other learning rates, in the games that there are."""
        again = self.replan(pool=self.learning.custom, lr_factor=lr_factor)
        return replace(again, brought=self.brought)

    def courses(self) -> list[CurriculumState]:
        """The ways of all members through their phases; none where nothing ever changes."""
        if all(curriculum.is_constant for curriculum in self.curricula):
            return []
        plan = self.learning
        courses = [
            CurriculumState(
                curriculum,
                algo=self.first.algo,
                settings=plan.settings[member],
                starts=curriculum.starts,
                role_settings={role.role: role.settings[member] for role in plan.roles},
                lr_factor=plan.lr_factor,
            )
            for member, curriculum in enumerate(self.curricula)
        ]
        for course in courses:
            course.begin()  # as the plan says of the first games
        return courses


def plan_training(
    configs: Sequence[TrainConfig],
    *,
    pool: GamePool | None = None,
    opponents: Sequence[Any] = (),
    lr_factor: float = 1.0,
    response: bool = False,
) -> TrainingPlan:
    """Decide everything about training runs together.

    pool: an environment that a program brought along. opponents: instead of the words of the
    configuration, with policies and functions among them. lr_factor: what learning rates are
    multiplied with, in a run that has diverged. response: of `sparring exploit`, see `decide`.
    """
    for config in configs:
        budget_of(config)
        check_processes(config)
    same: dict[str, Any] = {"opponents": opponents, "response": response}
    plan, curricula = decide(configs, pool=pool, lr_factor=lr_factor, **same)
    return TrainingPlan(
        learning=plan,
        runs=tuple(map(run_plan, configs)),
        curricula=curricula,
        brought=pool is not None,
        make_learner=partial(make_learner, configs[0], plan),
        replan=partial(plan_training, configs, **same),
    )
