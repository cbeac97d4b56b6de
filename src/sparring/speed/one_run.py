"""The process of one run of a bench: `python -m sparring.speed.one_run PARENT`.

A request on stdin, progress and the end of it on stdout, as JSON objects, one per line.
"""

from __future__ import annotations

import json
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
from sparring.processes import answering, follow_parent
from sparring.training.agent import Agent
from sparring.training.callbacks import Callbacks, Watched
from sparring.training.planning.settings import read_config
from sparring.training.records.run import Run, finite
from sparring.training.results import measure
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
            tell(progress=status.progress, decisions_per_s=status.decisions_per_s)

    if folder.is_dir():
        agent = resume(folder, quiet=True, on_update=look)
    else:
        agent = train_with(config, quiet=True, callbacks=Callbacks(on_update=look))
    if agent.ended.startswith("SIG"):
        return {"stopped": agent.ended}
    tell(progress=1.0, decisions_per_s=0.0)
    settings = read_config(Run.open(agent.run).config, str(agent.run))
    measure(agent, settings.eval, threads=settings.threads or 1)
    return ended(agent)


def ended(agent: Agent) -> dict[str, Any]:
    """Return what only this process knows."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "ended": agent.ended,
        "memory_bytes": peak * (1 if sys.platform == "darwin" else KIB),
        "gpu_bytes": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
    }


def main(parent: int) -> None:
    """Train what stdin says."""
    follow_parent(parent)
    answer = answering()
    warnings.simplefilter("ignore")

    def tell(**said: Any) -> None:
        answer(finite(said))

    request = json.loads(sys.stdin.readline())
    sys.path += [place for place in request["paths"] if place not in sys.path]
    try:
        tell(**train_one(read_config(request["config"], "settings"), tell))
    except DivergedError as wrong:
        tell(failed=f"diverged: {wrong}")
    except ConfigError as wrong:
        tell(failed=f"refused: {wrong}")
    except SparringError as wrong:
        tell(failed=str(wrong))
    except (MemoryError, torch.OutOfMemoryError):
        tell(failed="memory ran out")


if __name__ == "__main__":
    main(int(sys.argv[1]))
