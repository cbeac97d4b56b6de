"""The process of a gauge."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from sparring.errors import ConfigError, SparringError
from sparring.learn.learner import Learner, closing_learner
from sparring.learn.plan import CPU, Plan
from sparring.machine import free_memory
from sparring.messages import Message
from sparring.processes import Parent
from sparring.speed.rounds import Reading, Round, fill_slots, measure_round
from sparring.speed.stand import Opened, UnfitError
from sparring.training.planning.demands import check_processes
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, read_config
from sparring.training.session import close_games, closing_games
from sparring.usage import below, memory, trim

GRAPHS = 1
"""Rounds more that a fused learner needs before it is warm: it captures graphs in them."""
MEMORY = "memory ran out"
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What libraries say then that have no error of its own for it."""


@dataclass
class Ready:
    """Settings that are open."""

    learner: Learner
    plan: Plan
    gpu_bytes: int = 0
    """That it took on a GPU when it was opened."""

    def close(self) -> None:
        with closing_learner(self.learner):
            close_games(self.plan, brought=False)


def opened(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    """Make a learner and warm it up."""
    trim()  # or what others have let go of would be taken for room that it does not need
    started, used, used_there = time.perf_counter(), memory(below()), gpu_used()
    config = read_config(request["config"], "settings")
    check_processes(config)
    plan = resolve(members_of(config))
    with closing_games(plan, brought=False):
        learner = make_learner(config, plan)
    ready = Ready(learner, plan)
    try:
        if plan.participants.slots:
            fill_slots(learner, plan)
        for _ in range(request["warm_up"] + GRAPHS * plan.fused):
            measure_round(learner)
    except BaseException:
        ready.close()
        raise
    ready.gpu_bytes = max(gpu_used() - used_there, 0)
    held[request["name"]] = ready
    net = learner.policy().net
    made = Opened(
        device=plan.device,
        games_on=plan.games_on,
        fused=plan.fused,
        threads=plan.threads,
        games=plan.collect.games,
        steps=plan.collect.steps,
        slots=plan.collect.groups,
        parameters=sum(parameter.numel() for parameter in net.parameters()),
        seconds=time.perf_counter() - started,
        workers=getattr(plan.custom, "workers", 0),
        memory_bytes=max(memory(below()) - used, 0),
        gpu_bytes=ready.gpu_bytes,
        free_bytes=free_memory(),
        gpu_free_bytes=torch.cuda.mem_get_info()[0] if plan.device != CPU else 0,
    )
    return asdict(made)


def timed(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    ready = known(held, request["name"])
    torch.set_num_threads(ready.plan.threads)
    on_gpu = ready.plan.device != CPU
    others = gpu_used() - ready.gpu_bytes if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    helpers = below()
    until = time.perf_counter() + request["seconds"]
    rounds: list[Round] = []
    while len(rounds) < request["least"] or time.perf_counter() < until:
        rounds.append(measure_round(ready.learner, helpers=helpers))
    used = torch.cuda.max_memory_allocated() - others if on_gpu else 0
    return asdict(Reading(tuple(rounds), memory(helpers), max(used, 0)))


def shut(held: dict[str, Ready], request: Mapping[str, Any]) -> dict[str, Any]:
    """Let go of settings, and of the memory that they had."""
    known(held, request["name"])
    held.pop(request["name"]).close()
    clear()
    return {}


def known(held: Mapping[str, Ready], name: str) -> Ready:
    if name not in held:
        told = ", ".join(map(repr, held)) or "nothing"
        raise SparringError(f"{name!r} is not open; {told} is")
    return held[name]


def gpu_used() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def clear() -> None:
    """Give memory back that nobody holds any more."""
    gc.collect()
    trim()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


DO: dict[str, Callable[[dict[str, Ready], Mapping[str, Any]], dict[str, Any]]] = {
    "open": opened,
    "time": timed,
    "shut": shut,
}


def answer(held: dict[str, Ready], asked: Message) -> Message:
    """Do what is asked for; settings are refused or unfit, whatever is wrong with them."""
    try:
        return Message("done", DO[asked.name](held, asked.facts))
    except ConfigError as wrong:
        told: SparringError = ConfigError(str(wrong))
    except SparringError as wrong:
        told = UnfitError(str(wrong))
    except (MemoryError, torch.OutOfMemoryError):
        told = UnfitError(MEMORY)
    except Exception as wrong:
        of_memory = any(words in str(wrong).lower() for words in OUT_OF_MEMORY)
        told = UnfitError(MEMORY if of_memory else f"{type(wrong).__name__}: {wrong}")
    clear()
    raise told


def main() -> None:
    parent, held = Parent(), dict[str, Ready]()
    warnings.simplefilter("ignore")
    parent.serve(partial(answer, held))


if __name__ == "__main__":
    main()
