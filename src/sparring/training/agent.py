"""Training from Python in three lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring.config import TrainConfig
from sparring.errors import SparringError
from sparring.league.arena import evaluate, usual_opponents
from sparring.learn.ppo import PPO
from sparring.nets.policy import Policy
from sparring.pools.foreign import ForeignRules
from sparring.pools.protocol import GamePool
from sparring.pools.python import pool_of
from sparring.store import checkpoint as checkpoints
from sparring.store.policies import load_policy, save_policy
from sparring.training.display import Display
from sparring.training.learners import Learner, make_learner, uses_gpu
from sparring.training.loop import Trainer
from sparring.training.run import Run
from sparring.training.settings import (
    as_table,
    demand_same,
    from_table,
    members_of,
    merged,
    with_preset,
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


def train(
    game: Any = "skull_king",
    *,
    minutes: float | None = None,
    updates: int | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Agent:
    """Train an agent; any setting of `sparring train` may be given by name.

    game: a game's name, or an environment object of your own: a Gymnasium vector environment, a
        PettingZoo AEC or parallel environment.
    """
    changes: dict[str, Any] = dict(settings)
    if minutes is not None:
        changes["minutes"] = float(minutes)
    if updates is not None:
        changes["updates"] = updates
    if isinstance(game, str):
        gpu = uses_gpu(changes.get("device", "auto"))
        config = merged(with_preset(game, gpu=gpu), changes, "train")
        if len(members_of(config)) > 1:
            raise SparringError("several runs at once: use `sparring train --population`")
        return train_with(config, quiet=quiet)
    pool = pool_of(game, seed=changes.get("seed", 0))
    ppo = {**changes.get("ppo", {}), "games": pool.num_games}
    base = TrainConfig(game=pool.rules.name, ppo=replace(TrainConfig().ppo, gamma=0.99))
    config = merged(base, {**changes, "ppo": ppo}, "train")
    return train_with(config, quiet=quiet, pool=pool)


def train_with(config: TrainConfig, *, quiet: bool = False, pool: GamePool | None = None) -> Agent:
    """Train an agent under a complete configuration."""
    learner = make_learner([config], pool=pool)  # first: what is refused leaves no folder behind
    return finish(config, new_run(config), None, learner, quiet=quiet)


def train_population(config: TrainConfig, *, quiet: bool = False) -> list[Agent]:
    """Train several runs at once on one GPU; each has a folder of its own, like any other run."""
    configs = members_of(config)
    learner = make_learner(configs)
    runs = [new_run(member) for member in configs]
    with ExitStack() as held:
        for run in runs:
            held.enter_context(run.held())
        display = held.enter_context(Display(quiet=quiet))
        ended = Trainer(learner, configs, runs, watch=display).train()
    return [Agent(load_policy(run.path), run.path, ended) for run in runs]


def new_run(config: TrainConfig) -> Run:
    """Make the folder of a run."""
    name = re.sub(r"\W+", "_", config.game).strip("_") or "env"
    return Run.create(Path(config.runs), name, "ppo", as_table(config))


def resume(path: str, *, number: int = -1, updates: int = 0, quiet: bool = False) -> Agent:
    """Go on with a run from one of its checkpoints."""
    run = Run.open(path)
    config = from_table(run.config, f"{run.path}/config.toml")
    folder = run.path / "checkpoints"
    at = checkpoints.newest_valid(folder) if number < 0 else folder / f"{number:08d}"
    if at is None:
        raise SparringError(f"{run.path} has no checkpoint yet; start again with sparring train")
    saved = checkpoints.load(at)
    demand_same(saved.meta["config"], as_table(config))
    if updates:
        config = replace(config, updates=updates)
    return finish(config, run, saved, make_learner([config]), quiet=quiet)


def finish(
    config: TrainConfig,
    run: Run,
    saved: checkpoints.Checkpoint | None,
    learner: Learner,
    *,
    quiet: bool,
) -> Agent:
    """Run the loop to its end and load what came out of it."""
    with run.held(), Display(quiet=quiet) as display:
        ended = Trainer(learner, [config], [run], resume=saved, watch=display).train()
    rules = learner.pool.rules
    if isinstance(learner, PPO) and isinstance(rules, ForeignRules):
        return Agent(Policy(rules, learner.net, name=run.name), run.path, ended)
    return Agent(load_policy(run.path), run.path, ended)
