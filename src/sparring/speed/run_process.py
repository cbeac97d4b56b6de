"""Main module of a run of `sparring bench configs`: trains, evaluates, reports."""

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
from sparring.training.callbacks import CallbackRun, Callbacks
from sparring.training.planning.settings import read_config
from sparring.training.records.run import Run, finite
from sparring.training.train import resume, train_with

REPORT_EVERY_S = 1.0
KIB = 1024


def train_one(config: TrainConfig, send: Callable[..., None]) -> dict[str, Any]:
    """Train or resume a run, and play its final games."""
    folder, last_report = Path(config.runs) / config.name, [0.0]

    def report(watched: CallbackRun) -> None:
        now, status = time.monotonic(), watched.status
        if now - last_report[0] >= REPORT_EVERY_S:
            last_report[0] = now
            send("progress", share=status.progress, decisions_per_s=status.decisions_per_s)

    if folder.is_dir():
        agent = resume(folder, quiet=True, on_update=report)
    else:
        agent = train_with(config, quiet=True, callbacks=Callbacks(on_update=report))
    if agent.ended.startswith("SIG"):
        return {"stopped": agent.ended}
    send("progress", share=1.0, decisions_per_s=0.0)
    settings = read_config(Run.open(agent.run).config, str(agent.run))
    measure(agent, settings.eval, threads=settings.threads or 1)
    return result_of(agent)


def result_of(agent: Agent) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "ended": agent.ended,
        "memory_bytes": peak * (1 if sys.platform == "darwin" else KIB),
        "gpu_bytes": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
    }


def main() -> None:
    parent = Parent()
    warnings.simplefilter("ignore")

    def send(name: str, **facts: Any) -> None:
        parent.send(Message(name, finite(facts)))

    try:
        send("ended", **train_one(read_config(next(parent).payload, "settings"), send))
    except DivergedError as error:
        send("ended", failed=f"diverged: {error}")
    except ConfigError as error:
        send("ended", failed=f"refused: {error}")
    except SparringError as error:
        send("ended", failed=str(error))
    except (MemoryError, torch.OutOfMemoryError):
        send("ended", failed="memory ran out")


if __name__ == "__main__":
    main()
