"""A short training in this process, in a folder that goes when it is over."""

from __future__ import annotations

import signal
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.league.arena import strength_of
from sparring.pools.foreign.again import is_own
from sparring.training.callbacks import Callbacks, Watched
from sparring.training.records import metrics
from sparring.training.train import train_with
from sparring.tuning.knobs import Point
from sparring.tuning.space import Space
from sparring.tuning.strength import Trial

EVALUATIONS = 20
"""Of a whole training; each is a chance to see that the target was reached."""
GAMES = 512
STRENGTH = "eval/strength"


class StoppedError(Exception):
    """A signal came while a training was going on."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.number = signal.Signals[name]


class Trainer:
    """Trains points under one schedule, and stops them on the way."""

    def __init__(self, space: Space, seconds: float) -> None:
        """Prepare. seconds: of the training whose schedules all of them have."""
        self.space, self.seconds = space, seconds

    def __call__(self, point: Point, seed: int, seconds: float, target: float | None) -> Trial:
        """Train until a strength is reached, or for so many seconds by the clock on the wall."""
        config, until = self.config(point, seed), time.monotonic() + seconds

        def on_update(watched: Watched) -> None:
            if time.monotonic() > until:
                watched.stop("its time is over")

        def on_evaluation(watched: Watched, results: Mapping[str, Any]) -> None:
            if target is not None and strength_of(self.space.rules, results) >= target:
                watched.stop("the target is reached")

        with tempfile.TemporaryDirectory(prefix="sparring-tune-") as folder:
            try:
                calls = Callbacks(on_update, on_evaluation)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of short trainings, said again and again
                    agent = train_with(replace(config, runs=folder), quiet=True, callbacks=calls)
            except (ConfigError, SparringError, MemoryError) as wrong:
                return Trial(point, seed, 0.0, why=str(wrong) or "memory ran out")
            if agent.ended.startswith("SIG"):
                raise StoppedError(agent.ended)
            curves = metrics.read(agent.run, STRENGTH, "charts/decisions")
        clock = curves.get("charts/decisions")
        trained = float(clock[1][-1]) if clock else 0.0
        if STRENGTH not in curves:
            return Trial(point, seed, trained)
        _, at, values = curves[STRENGTH]
        return Trial(
            point, seed, trained, list(zip(map(float, at), map(float, values), strict=True))
        )

    def config(self, point: Point, seed: int) -> TrainConfig:
        """The settings of a training that is measured often and leaves nothing behind."""
        config = self.space.config(point)
        games = config.eval.games if is_own(self.space.rules) else min(config.eval.games, GAMES)
        evaluation = replace(
            config.eval, every_s=self.seconds / EVALUATIONS, every_decisions=0, games=games
        )
        return replace(
            config,
            seed=seed,
            minutes=self.seconds / 60,
            updates=0,
            decisions=0,
            episodes=0,
            name="",
            eval=evaluation,
            checkpoint_every_s=self.seconds,
            checkpoint_every_decisions=0,
            tensorboard=False,
            wandb=False,
            csv=False,
            episodes_csv=False,
        )
