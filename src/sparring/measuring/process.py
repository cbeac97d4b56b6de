"""The process of a gauge: `python -m sparring.measuring.process PARENT`."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sparring.errors import ConfigError, SparringError
from sparring.learn.learner import Learner, closing_learner
from sparring.learn.plan import CPU, Plan
from sparring.machine import memory_used
from sparring.measuring.reading import Opened, Reading
from sparring.measuring.rounds import Round, fill_slots, measure_round
from sparring.processes import follow_parent
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, read_config
from sparring.training.session import close_games

GRAPHS = 1
"""Rounds more that a fused learner needs before it is warm: it captures graphs in them."""


@dataclass
class Ready:
    """Settings that are open."""

    learner: Learner
    plan: Plan

    def close(self) -> None:
        """End whoever works for it."""
        with closing_learner(self.learner):
            close_games(self.plan, brought=False)


def opened(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    """Make a learner and warm it up."""
    started = time.perf_counter()
    config = read_config(request["config"], "settings")
    plan = resolve(members_of(config))
    learner = make_learner(config, plan)
    ready = Ready(learner, plan)
    try:
        if plan.cast.slots:
            fill_slots(learner, plan)
        for _ in range(request["warm_up"] + GRAPHS * plan.fused):
            measure_round(learner)
    except BaseException:
        ready.close()
        raise
    held[request["name"]] = ready
    net = learner.policy().net
    return Opened(
        device=plan.device,
        games_on=plan.games_on,
        fused=plan.fused,
        threads=plan.threads,
        games=plan.collect.games,
        steps=plan.collect.steps,
        slots=plan.collect.slots,
        parameters=sum(parameter.numel() for parameter in net.parameters()),
        seconds=time.perf_counter() - started,
    ).plain()


def timed(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    """Measure rounds until the time is over."""
    ready = held[request["name"]]
    torch.set_num_threads(ready.plan.threads)
    on_gpu = ready.plan.device != CPU
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    until = time.perf_counter() + request["seconds"]
    rounds: list[Round] = []
    while len(rounds) < request["least"] or time.perf_counter() < until:
        rounds.append(measure_round(ready.learner))
    used = torch.cuda.max_memory_allocated() if on_gpu else 0
    return Reading(tuple(rounds), memory_used() or 0, used).plain()


def shut(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    """Let go of settings, and of the memory that they had."""
    held.pop(request["name"]).close()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return {}


DO: dict[str, Callable[[dict[str, Ready], Mapping[str, Any]], dict[str, Any]]] = {
    "open": opened,
    "time": timed,
    "shut": shut,
}


def answer(held: dict[str, Ready], line: str) -> dict[str, Any]:
    """Do what one request asks for. Whatever is wrong with it becomes its answer."""
    request = json.loads(line)
    try:
        return DO[request["do"]](held, request)
    except ConfigError as wrong:
        return {"refused": str(wrong)}
    except SparringError as wrong:
        return {"failed": str(wrong)}
    except (MemoryError, torch.OutOfMemoryError):
        return {"failed": "memory ran out"}
    except Exception as wrong:
        return {"failed": f"{type(wrong).__name__}: {wrong}"}


def main(parent: int) -> None:
    """Answer requests until stdin closes."""
    follow_parent(parent)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    warnings.simplefilter("ignore")
    held: dict[str, Ready] = {}
    for line in sys.stdin:
        answers.write(json.dumps(answer(held, line), allow_nan=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
