"""Training from Python in three lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.league.arena import evaluate, usual_opponents
from sparring.learn.learner import Learner
from sparring.learn.plan import Plan
from sparring.nets.policy import Policy
from sparring.pools.foreign import pool_of
from sparring.pools.protocol import GamePool
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy, save_policy
from sparring.training.demands import nothing_left_in
from sparring.training.display import Display
from sparring.training.loop import Trainer
from sparring.training.plan import make_learner, resolve, uses_gpu
from sparring.training.run import Run
from sparring.training.settings import (
    demand_same,
    members_of,
    merged,
    read_config,
    read_file,
    with_preset,
    written,
)

if TYPE_CHECKING:
    from sparring.league.results import MatchResult


class Agent:
    """A trained policy and the run it came from."""

    def __init__(self, policy: Policy, run: Path, ended: str) -> None:
        self.policy, self.run, self.ended = policy, run, ended

    def evaluate(
        self, *against: str | Policy, games: int = 4096, seed: int = 0, threads: int = 1
    ) -> dict[str, MatchResult]:
        """Play seat-fair games against each opponent; without one, against all bots, or alone."""
        opponents: Sequence[str | Policy] = against or usual_opponents(self.policy.rules)
        if not self.policy.rules.bots:
            raise SparringError(
                f"{self.policy.rules.name} is your own environment; play it with agent.policy.act"
            )
        return evaluate(self.policy, opponents, games=games, seed=seed, threads=threads)

    def save(self, path: str | Path) -> Path:
        """Write the policy to a folder of its own; `sparring.load` reads it."""
        return save_policy(self.policy, Path(path))


@dataclass(frozen=True)
class Session:
    """A plan and its learner, about to train one run or a population."""

    configs: Sequence[TrainConfig]
    plan: Plan
    learner: Learner

    @classmethod
    def prepare(cls, configs: Sequence[TrainConfig], *, pool: GamePool | None = None) -> Session:
        """Decide and build everything; nothing is written yet."""
        plan = resolve(configs, pool=pool)
        return cls(configs, plan, make_learner(configs[0], plan))

    def finish(
        self,
        runs: Sequence[Run],
        *,
        resume: checkpoints.Checkpoint | None = None,
        quiet: bool = False,
    ) -> list[Agent]:
        """Run the loop to its end and load what came out of it."""
        with ExitStack() as held:
            for run in runs:
                held.enter_context(run.held())
            trainer = Trainer(
                self.learner,
                self.configs,
                runs,
                spare_threads=self.plan.spare_threads,
                resume=resume,
                watch=held.enter_context(Display(quiet=quiet)),
            )
            ended = trainer.train()
        return [Agent(load_policy(run.path), run.path, ended) for run in runs]


def train(
    game: Any = None,
    *,
    minutes: float | None = None,
    updates: int | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Agent:
    """Train an agent; any setting of `sparring train` may be given by name.

    game: a game's name, or an environment object of your own: a Gymnasium vector environment, a
        PettingZoo AEC or parallel environment. Left out: the game of the file that `config` names,
        or skull_king.
    """
    changes: dict[str, Any] = dict(settings)
    if minutes is not None:
        changes["minutes"] = float(minutes)
    if updates is not None:
        changes["updates"] = updates
    file = str(changes.pop("config", ""))
    if game is None or isinstance(game, str):
        config = merged(with_preset(game or "", file), changes, "train")
        if uses_gpu(config.device):
            config = merged(with_preset(game or "", file, gpu=True), changes, "train")
        return train_with(alone(config), quiet=quiet)
    pool = pool_of(game, seed=own_settings(1, file, changes).seed)
    config = replace(own_settings(pool.num_games, file, changes), game=pool.rules.name)
    return train_with(alone(config), quiet=quiet, pool=pool)


def own_settings(games: int, file: str, changes: Mapping[str, Any]) -> TrainConfig:
    """What an environment of somebody else's is trained with, if it plays so many games."""
    usual = {"ppo": {"gamma": 0.99}, "collect": {"games": games}}
    base = merged(TrainConfig(), usual, "your own environment")
    base = merged(base, read_file(file) if file else {}, file)
    config: TrainConfig = merged(base, {**changes, "config": file}, "train")
    return config


def alone(config: TrainConfig) -> TrainConfig:
    """Refuse settings of a population."""
    if len(members_of(config)) > 1:
        raise SparringError("several runs at once: use `sparring train --population`")
    return config


def train_with(config: TrainConfig, *, quiet: bool = False, pool: GamePool | None = None) -> Agent:
    """Train an agent under a complete configuration."""
    session = Session.prepare([config], pool=pool)  # what is refused leaves no folder behind
    with nothing_left_in(config.runs) as runs:
        runs.append(new_run(config))
        return session.finish(runs, quiet=quiet)[0]


def train_population(config: TrainConfig, *, quiet: bool = False) -> list[Agent]:
    """Train several runs at once on one GPU; each has a folder of its own, like any other run."""
    session = Session.prepare(members_of(config))
    with nothing_left_in(config.runs) as runs:
        runs += [new_run(member) for member in session.configs]
        return session.finish(runs, quiet=quiet)


def new_run(config: TrainConfig) -> Run:
    """Make the folder of a run."""
    name = re.sub(r"\W+", "_", config.game).strip("_") or "env"
    algo = re.sub(r"\W+", "_", config.algo).strip("_")
    return Run.create(Path(config.runs), name, algo, written(config))


def resume(path: str, *, number: int = -1, updates: int = 0, quiet: bool = False) -> Agent:
    """Go on with a run from one of its checkpoints."""
    run = Run.open(path)
    config = read_config(run.config, f"{run.path}/config.toml")
    folder = run.path / "checkpoints"
    at = checkpoints.newest_valid(folder) if number < 0 else folder / f"{number:08d}"
    if at is None:
        raise SparringError(f"{run.path} has no checkpoint yet; start again with sparring train")
    saved = checkpoints.load(at)
    before = read_config(saved.meta["config"], f"{at}/manifest.json")
    demand_same(written(before), written(config))
    if updates:
        config = replace(config, updates=updates)
    return Session.prepare([config]).finish([run], resume=saved, quiet=quiet)[0]
