"""The process of one run of a bench."""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.learn.learner import DivergedError
from sparring.messages import Message
from sparring.processes import Parent
from sparring.training.agent import Agent, measure
from sparring.training.callbacks import Callbacks, Watched
from sparring.training.planning.settings import read_config
from sparring.training.records.run import Run, finite
from sparring.training.train import resume, train_with

TELL_EVERY_S = 1.0
KIB = 1024


def train_one(config: TrainConfig, tell: Callable[..., None]) -> dict[str, Any]:
    """Train a run, or go on with one that is there, and measure it."""
    folder, told = Path(config.runs) / config.name, [0.0]

    def look(watched: Watched) -> None:
        now, status = time.monotonic(), watched.status
        if now - told[0] >= TELL_EVERY_S:
            told[0] = now
            tell("progress", share=status.progress, decisions_per_s=status.decisions_per_s)

    if folder.is_dir():
        agent = resume(folder, quiet=True, on_update=look)
    else:
        agent = train_with(config, quiet=True, callbacks=Callbacks(on_update=look))
    if agent.ended.startswith("SIG"):
        return {"stopped": agent.ended}
    tell("progress", share=1.0, decisions_per_s=0.0)
    settings = read_config(Run.open(agent.run).config, str(agent.run))
    measure(agent, settings.eval, threads=settings.threads or 1)
    return ended(agent)


def ended(agent: Agent) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "ended": agent.ended,
        "memory_bytes": peak * (1 if sys.platform == "darwin" else KIB),
        "gpu_bytes": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
    }


def main() -> None:
    parent = Parent()
    warnings.simplefilter("ignore")

    def tell(name: str, **facts: Any) -> None:
        parent.tell(Message(name, finite(facts)))

    try:
        tell("ended", **train_one(read_config(next(parent).facts, "settings"), tell))
    except DivergedError as wrong:
        tell("ended", failed=f"diverged: {wrong}")
    except ConfigError as wrong:
        tell("ended", failed=f"refused: {wrong}")
    except SparringError as wrong:
        tell("ended", failed=str(wrong))
    except (MemoryError, torch.OutOfMemoryError):
        tell("ended", failed="memory ran out")


if __name__ == "__main__":
    main()
