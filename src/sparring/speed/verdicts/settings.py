"""Causes that are settings: sizes of batches, numbers of games, threads and processes."""

from __future__ import annotations

from sparring.speed.verdicts.case import Candidate, Case
from sparring.speed.verdicts.places import AROUND_ENV, GAMES, INFERENCE, SLOTS, WORKERS
from sparring.speed.verdicts.told import counted, percent, without
from sparring.training.planning.own import by_factory

TINY_BATCHES = "tiny minibatches"
TOO_MANY_THREADS = "too many threads"
TOO_FEW_THREADS = "too few threads"
FEW_GAMES = "too few games"
SLOW_ENV = "slow environment"
WAITING_ENV = "an environment that waits"
MANY_WORKERS = "too many workers"
FEW_WORKERS = "too few workers"
GAMES_ON_CPU = "games on the CPU"
UNUSED_GPU = "a GPU that is not used"
FLOAT32 = "float32 on a GPU"

FULL_BATCH, FULL_BATCH_GPU = 1024, 16384
"""Samples per optimiser step from which on a step is mostly arithmetic, not calls."""
FULL_ROWS = 256
"""Rows that are answered at once from which on an answer is mostly arithmetic."""
MOST_WAITING = 64
"""Workers for an environment that waits: they take no core."""


def candidates(case: Case) -> list[Candidate]:
    """Changes of settings that what was seen speaks for, none that is in place already."""
    found = [*batches(case), *threads(case), *games(case), *workers(case), *device(case)]
    return sorted(found, key=lambda one: one.hope, reverse=True)


def batches(case: Case) -> list[Candidate]:
    """Optimiser steps so small that calling costs more than computing."""
    section, name, size = case.batch
    share = case.phase("update", "sampling")
    full = FULL_BATCH_GPU if case.on_gpu else FULL_BATCH
    if not size or share < 0.2 or 2 * size > full:
        return []
    sizes = [size * 4] if size * 8 > full else [full if size * 16 >= full else size * 16]
    why = f"{percent(share)} in the update, {size} samples per optimiser step: calls cost more than"
    return [
        Candidate(
            TINY_BATCHES,
            share,
            {section: {name: larger}},
            f"{why} the arithmetic",
            f"take {larger}; fewer and calmer steps learn a little less from each sample, so "
            f"watch the curves, and raise {rate_of(section)} with it if they slow down",
            reckoned=without(share, 0.5) if 8 * size <= full else None,
            hope=without(share, 0.9 * (1 - size / larger)),
            alters=True,
            rows=larger,
        )
        for larger in sizes
    ]


def rate_of(section: str) -> str:
    """The learning rate that belongs to a table."""
    return "the learning rate" if section == "replay" else f"{section}.lr"


def threads(case: Case) -> list[Candidate]:
    """Threads that get into each other's way, or cores without one."""
    now, cores = case.threads, case.evidence.cores
    if case.on_gpu and case.phase("stepping") < 0.2:
        return []
    busy = case.evidence.cpu_cores
    found = []
    tries = [cores] if now > cores else []
    if now > 1 and (busy < 0.8 * min(now, cores) or case.evidence.load > 0.3 or now > cores):
        tries.append(1 if now <= 2 or cores <= 2 else cores // 2)
    for fewer in dict.fromkeys(tries):
        crowd = f"{now} threads on {counted(cores, 'core')}"
        wait = f"{now} threads keep {busy:.1f} cores busy"
        found.append(
            Candidate(
                TOO_MANY_THREADS,
                1.0,
                {"threads": fewer},
                f"{crowd if now > cores else wait}: they wait for each other",
                f"use {fewer}",
                reckoned=0.1 if now > cores else None,
                hope=2.0 if now >= 2 * cores else 0.1 + 0.4 * case.phase("update", "inference"),
            )
        )
    if now < cores and busy > 0.8 * now and case.evidence.load < cores - now:
        part = case.phase("update", "inference", "stepping")
        found.append(
            Candidate(
                TOO_FEW_THREADS,
                part,
                {"threads": cores},
                f"{counted(now, 'thread')} at work on {cores} cores",
                f"use {cores}",
                hope=without(part, 0.5 * (1 - now / cores)),
            )
        )
    return found


def games(case: Case) -> list[Candidate]:
    """So few games at once that a call of the network is mostly overhead."""
    config, places = case.config, case.places
    now, steps = config.collect.games, config.collect.steps
    share = case.phase("inference")
    if not case.own_env:
        share += places.at(AROUND_ENV)
    share = max(share, places.at(INFERENCE, SLOTS))
    full = 16 * FULL_ROWS if case.on_gpu else FULL_ROWS
    if share < 0.15 or 2 * now > full or config.actors:
        return []
    more = min(now * 4, full)
    change: dict[str, int] = {"games": more}
    text = f"play {more}"
    fewer = max(steps * now // more, 1)
    if not case.remembers and fewer >= 16:
        change["steps"] = fewer
        text += f" with collect.steps {fewer}, so that an update sees as many samples"
    return [
        Candidate(
            FEW_GAMES,
            share,
            {"collect": change},
            f"{percent(share)} in inference, {counted(now, 'game')} at once: most of a call is "
            "overhead",
            text,
            hope=without(share, 0.8 * (1 - now / more)),
            alters="steps" not in change,
        )
    ]


def workers(case: Case) -> list[Candidate]:
    """Environments of one's own in too few processes, or in too many."""
    config, cores, now = case.config, case.evidence.cores, case.workers
    if not by_factory(config) or config.actors or not case.repeatable or now < 0:
        return []
    waits, total = case.places.env_waits(), max(case.places.env_share(), case.phase("stepping"))
    if now == 0:
        return first_workers(case, total, waits)
    if now > cores and waits < 0.3 * total:
        idle = case.places.at(WORKERS) + case.phase("stepping")
        text = f"{now} workers on {counted(cores, 'core')}: they push each other aside"
        return [
            Candidate(
                MANY_WORKERS,
                min(idle, 1.0),
                {"workers": str(fewer)},
                text,
                f"take {fewer}" if fewer else "step the environment in the training process",
                hope=0.5,
            )
            for fewer in (cores, 0)
        ]
    if total < 0.15:
        text = f"{counted(now, 'worker')}, and only {percent(total)} of the time in stepping"
        zero = Candidate(MANY_WORKERS, 1 - total, {"workers": "0"}, text, "do without", hope=0.2)
        return [zero]
    if now < cores and total > 0.4:
        more = min(cores, config.collect.games)
        text = f"{percent(total)} in waiting for {counted(now, 'worker')}, on {cores} cores"
        hope = without(total, 1 - now / more)
        return [
            Candidate(FEW_WORKERS, total, {"workers": str(more)}, text, f"take {more}", hope=hope)
        ]
    return []


def first_workers(case: Case, total: float, waits: float) -> list[Candidate]:
    """Worker processes, where there are none."""
    cores, games, where = case.evidence.cores, case.config.collect.games, hot(case)
    if total < 0.25:
        return []
    if waits > 0.5 * total and games > 1:
        many = min(games, MOST_WAITING)
        text = f"{percent(waits)} in waiting inside your environment's step{where}, one game after"
        return [
            Candidate(
                WAITING_ENV,
                waits,
                {"workers": str(many)},
                f"{text} the other",
                f"let {many} workers wait at the same time",
                reckoned=without(waits, 0.8 * (1 - 1 / many)),
                hope=without(waits, 0.9 * (1 - 1 / many)),
            )
        ]
    many = min(cores, games)
    if many < 2:
        return []
    return [
        Candidate(
            SLOW_ENV,
            total,
            {"workers": str(many)},
            f"{percent(total)} in your environment's step{where}, in one process",
            f"step it in {many} workers, or make that function faster",
            reckoned=without(total, 0.6 * (1 - 1 / many)),
            hope=without(total, 1 - 1 / many),
        )
    ]


def hot(case: Case) -> str:
    """The user's costliest function, as a clause."""
    where = case.places.where(lambda sight: sight.place in ("environment", "reset"))
    return f", most of it in {where}" if where else ""


def device(case: Case) -> list[Candidate]:
    """A GPU that waits for games on the CPU, or that nobody asked."""
    if case.config.device == "cpu" and has_gpu() and not case.on_gpu:
        part = case.phase("update", "inference")
        text = f"{percent(part)} in the network on a CPU, beside a GPU"
        change = {"device": "cuda"}
        return [Candidate(UNUSED_GPU, part, change, text, "use it", hope=without(part, 0.8))]
    return [*games_on_cpu(case), *numbers(case)]


def has_gpu() -> bool:
    """Whether this machine has a GPU."""
    import torch

    return bool(torch.cuda.is_available())


def numbers(case: Case) -> list[Candidate]:
    """float32 on a GPU."""
    part = case.phase("update", "inference")
    if not case.on_gpu or case.config.collect.bf16 or part < 0.3:
        return []
    text = f"{percent(part)} in the network, in float32"
    change = {"collect": {"bf16": True}}
    return [Candidate(FLOAT32, part, change, text, "compute in bfloat16", hope=without(part, 0.3))]


def games_on_cpu(case: Case) -> list[Candidate]:
    """A GPU that waits for games on the CPU."""
    idle, config = case.evidence.gpu.get("idle", 0.0), case.config
    share = case.phase("stepping", "transfer") or case.places.at(GAMES)
    if idle < 0.3 or case.own_env or share < 0.2:
        return []
    if config.pool == "cpu":
        change: dict[str, object] = {"pool": "cuda"}
        advice = "play on the GPU too"
    elif config.collect.slots == 1:
        change, advice = {"collect": {"slots": 2}}, "let one half step while the other is answered"
    else:
        return []
    text = f"the GPU is idle for {percent(idle)}: it waits for games on the CPU"
    return [Candidate(GAMES_ON_CPU, idle, change, text, advice, hope=without(idle, 0.8))]
