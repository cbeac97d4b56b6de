"""Tiny runs of tic-tac-toe, trained in a moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sparring
from sparring.config import TrainConfig
from sparring.training import evaluate
from sparring.training.evaluate import loading_early
from sparring.training.loop import Trainer
from sparring.training.planning.presets import own_of
from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import plan_training
from sparring.training.records.run import Run
from sparring.training.train import train_with

TINY: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 16, "steps": 8},
    "ppo": {"epochs": 1, "minibatch": 64, "lr": 1e-3, "entropy": 0.01},
    "eval": {"off": True},
    "tensorboard": False,
    "threads": 1,
    "checkpoint_every_s": 0.0,
}
WORDS = ["--net.hidden", "16", "--collect.games", "16", "--collect.steps", "8", "--threads", "1"]
WORDS += ["--ppo.epochs", "1", "--ppo.minibatch", "64", "--no-tensorboard"]


def settings(runs: Path, **changes: Any) -> TrainConfig:
    algo = str(changes.get("algo", TrainConfig.algo))
    tiny = own_of({**TINY, "runs": str(runs)}, algo, "")
    base = merged(with_preset("tic_tac_toe", algo=algo), tiny, "test")
    config: TrainConfig = merged(base, changes, "test")
    return config


def trained(runs: Path, **changes: Any) -> sparring.Agent:
    return train_with(settings(runs, **changes), quiet=True)


def trainer_for(config: TrainConfig, run: Run, **options: Any) -> Trainer:
    """The loop of a run, before its first update."""
    plan = plan_training([config])
    return Trainer(plan.make_learner(), plan, [run], **options)


@contextmanager
def evaluator_at_hand() -> Iterator[None]:
    """Let the next training have somebody who evaluates at once, however busy this machine is."""
    with loading_early():
        (worker,) = evaluate._early
        while worker.loading:
            worker.poll()
        yield


def events(run: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((run / "events.json").read_text())
    return found
