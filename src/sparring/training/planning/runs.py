"""What is decided about one run besides what learns: its file, its budget, what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparring.config import CloningConfig, EvaluationConfig, LeagueConfig, TrainConfig
from sparring.training.planning.own import by_factory
from sparring.training.planning.own_nets import is_own_net, only_here
from sparring.training.planning.place import played_elsewhere
from sparring.training.planning.settings import budget_of, written


@dataclass(frozen=True)
class SavingPlan:
    """When checkpoints are made, and how many are kept."""

    every_s: float
    every_decisions: int
    keep: int


@dataclass(frozen=True)
class RecordsPlan:
    """What is written down of a run, besides what every run has."""

    tensorboard: bool
    wandb: bool
    csv: bool
    episodes_csv: bool


@dataclass(frozen=True)
class TeachingPlan:
    """What a run learns from before it plays."""

    sources: tuple[str, ...]
    minutes: float
    cloning: CloningConfig


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
    saving: SavingPlan
    records: RecordsPlan
    teaching: TeachingPlan
    factory: str
    """What makes its environment, by name; "" if the game is one of ours, or an object."""
    own_net: bool
    """A network is somebody's own: whoever plays it needs its module."""
    only_here: bool
    """The network is an object of this program, which no other process finds."""
    processes: bool
    """Others play or learn with it."""
    plays_on: bool
    """Actors play while it learns: checkpoints are without their games."""


def run_plan(config: TrainConfig) -> RunPlan:
    """Return what a complete configuration says about a run."""
    saving = config.checkpoint_every_s, config.checkpoint_every_decisions, config.keep
    return RunPlan(
        name=config.name,
        file=written(config),
        algo=config.algo,
        budget=budget_of(config),
        init=config.init,
        evaluation=config.eval,
        league=config.league,
        saving=SavingPlan(*saving),
        records=RecordsPlan(config.tensorboard, config.wandb, config.csv, config.episodes_csv),
        teaching=TeachingPlan(config.teach, config.teach_minutes, config.cloning),
        factory=config.game if by_factory(config) else "",
        own_net=is_own_net(config),
        only_here=only_here(config),
        processes=played_elsewhere(config) or config.replicas > 1,
        plays_on=bool(config.actors) and not config.fleet.lockstep,
    )
