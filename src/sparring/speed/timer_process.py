"""Main module of `TimerProcess`: opens, times and closes sessions on request."""

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
from sparring.speed.rounds import Measurement, Round, fill_slots, measure_round
from sparring.speed.timer import SessionInfo, UnfitError
from sparring.training.planning.checks import check_processes
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, read_config
from sparring.training.session import close_games, closing_games
from sparring.usage import descendants, resident_bytes, trim_heap

CAPTURE_ROUNDS = 1
"""Additional warm-up rounds of a fused learner: it captures CUDA graphs in them."""
MEMORY = "memory ran out"
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""Texts of libraries that raise a general error when memory runs out."""


@dataclass
class TimedLearner:
    """Learner of an open session."""

    learner: Learner
    plan: Plan
    gpu_bytes: int = 0
    """GPU memory that opening it took."""

    def close(self) -> None:
        with closing_learner(self.learner):
            close_games(self.plan, brought=False)


def open_session(sessions: dict[str, TimedLearner], request: Mapping[str, Any]) -> dict[str, Any]:
    """Make a learner and warm it up."""
    trim_heap()  # or memory freed by closed sessions would hide what this one takes
    started, used, used_there = time.perf_counter(), resident_bytes(descendants()), gpu_used()
    config = read_config(request["config"], "settings")
    check_processes(config)
    plan = resolve(members_of(config))
    with closing_games(plan, brought=False):
        learner = make_learner(config, plan)
    session = TimedLearner(learner, plan)
    try:
        if plan.participants.slots:
            fill_slots(learner, plan)
        for _ in range(request["warm_up"] + CAPTURE_ROUNDS * plan.fused):
            measure_round(learner)
    except BaseException:
        session.close()
        raise
    session.gpu_bytes = max(gpu_used() - used_there, 0)
    sessions[request["name"]] = session
    net = learner.policy().net
    info = SessionInfo(
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
        memory_bytes=max(resident_bytes(descendants()) - used, 0),
        gpu_bytes=session.gpu_bytes,
        free_bytes=free_memory(),
        gpu_free_bytes=torch.cuda.mem_get_info()[0] if plan.device != CPU else 0,
    )
    return asdict(info)


def time_session(sessions: dict[str, TimedLearner], request: Mapping[str, Any]) -> dict[str, Any]:
    session = find_session(sessions, request["name"])
    torch.set_num_threads(session.plan.threads)
    on_gpu = session.plan.device != CPU
    others = gpu_used() - session.gpu_bytes if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    helpers = descendants()
    until = time.perf_counter() + request["seconds"]
    rounds: list[Round] = []
    while len(rounds) < request["min_rounds"] or time.perf_counter() < until:
        rounds.append(measure_round(session.learner, helpers=helpers))
    used = torch.cuda.max_memory_allocated() - others if on_gpu else 0
    return asdict(Measurement(tuple(rounds), resident_bytes(helpers), max(used, 0)))


def close_session(sessions: dict[str, TimedLearner], request: Mapping[str, Any]) -> dict[str, Any]:
    find_session(sessions, request["name"])
    sessions.pop(request["name"]).close()
    free_memory_of_closed()
    return {}


def find_session(sessions: Mapping[str, TimedLearner], name: str) -> TimedLearner:
    if name not in sessions:
        open_names = ", ".join(map(repr, sessions)) or "nothing"
        raise SparringError(f"{name!r} is not open; {open_names} is")
    return sessions[name]


def gpu_used() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def free_memory_of_closed() -> None:
    gc.collect()
    trim_heap()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


HANDLERS: dict[str, Callable[[dict[str, TimedLearner], Mapping[str, Any]], dict[str, Any]]] = {
    "open": open_session,
    "time": time_session,
    "close": close_session,
}


def respond(sessions: dict[str, TimedLearner], request: Message) -> Message:
    """Handle a request; any failure becomes a ConfigError or an UnfitError."""
    try:
        return Message("done", HANDLERS[request.name](sessions, request.payload))
    except ConfigError as error:
        raised: SparringError = ConfigError(str(error))
    except SparringError as error:
        raised = UnfitError(str(error))
    except (MemoryError, torch.OutOfMemoryError):
        raised = UnfitError(MEMORY)
    except Exception as error:
        is_memory = any(words in str(error).lower() for words in OUT_OF_MEMORY)
        raised = UnfitError(MEMORY if is_memory else f"{type(error).__name__}: {error}")
    free_memory_of_closed()
    raise raised


def main() -> None:
    parent, sessions = Parent(), dict[str, TimedLearner]()
    warnings.simplefilter("ignore")
    parent.serve(partial(respond, sessions))


if __name__ == "__main__":
    main()
