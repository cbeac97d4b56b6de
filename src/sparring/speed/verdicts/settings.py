"""Causes that are settings: sizes, numbers of games, threads and processes, who is met."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from itertools import pairwise
from typing import Any

import torch

from sparring.config import NetConfig, TrainConfig
from sparring.errors import SparringError
from sparring.learn.acting import PlayerActor
from sparring.nets.policy import Policy
from sparring.speed.kernels import IDLE
from sparring.speed.progress import BETWEEN
from sparring.speed.verdicts.case import (
    GAMES,
    INFERENCE,
    OPPONENTS,
    PAST,
    STEPPING,
    Candidate,
    Case,
    counted,
    percent,
    typed,
    without,
)
from sparring.speed.verdicts.theirs import NOTICED_OPPONENT, ONE_CALL_EACH, SLOW_ENV, hot
from sparring.training.planning.custom import by_factory, rules_of
from sparring.training.planning.participants import participants_of
from sparring.training.planning.roles import nets_by_role, read_roles
from sparring.training.planning.settings import with_preset
from sparring.training.utilization.advice import advise_minibatch, sizes_to_try

FULL_BATCH, FULL_BATCH_GPU = 1024, 16384
"""Samples per optimizer step from which on a step is mostly arithmetic, not calls."""
CALLS = 0.1
"""Share of a tiny step's time that a larger minibatch does not save."""
FULL_ROWS = 256
"""Rows that are answered at once from which on an answer is mostly arithmetic."""
MAX_WAITING = 64
"""Workers for an environment that waits: they take no core."""
MAX_GAMES = 4096
FEW_SAMPLES = 1024
"""Samples of a rollout below which what surrounds an update counts."""
NO_BOTS = ("self", "past", "best", "given")
WAITING_ENV, FEW_WORKERS = "an environment that waits", "too few workers"
TOO_MANY_WORKERS = "too many workers"


def candidates(case: Case) -> list[Candidate]:
    """Changes of settings that what was seen speaks for, none that is in place already."""
    named = [batches(case), *threads(case), games(case), *workers(case)]
    named += [unused_gpu(case), games_on_cpu(case), float32(case)]
    found = sorted(filter(None, named), key=lambda one: one.hope, reverse=True)
    others = [bots(case), past_selves(case), actors(case), rollouts(case)]
    usual = preset(case.config.game, case.config.algo, gpu=case.on_gpu)
    if usual is not None:
        others += [epochs(case, usual), ratio(case, usual), net(case, usual)]
    return [*opponents(case), *found, *filter(None, others)]


@cache
def preset(game: str, algo: str, *, gpu: bool) -> TrainConfig | None:
    try:
        return with_preset(game, algo=algo, gpu=gpu)
    except SparringError:
        return None


def batches(case: Case) -> Candidate | None:
    """Optimizer steps so small that calling costs more than computing."""
    section, name, size = case.batch
    share, collect = case.phase("update", "sampling"), case.config.collect
    full = FULL_BATCH_GPU if case.on_gpu else FULL_BATCH
    if not size or share < 0.2 or 2 * size > full:
        return None
    max_size = max(full, 4 * size)
    if not case.remembers:
        max_size = min(max_size, max(collect.games * collect.steps, size))
    ratios = [(s, CALLS + (1 - CALLS) * size / s) for s in sizes_to_try(size, max_size) if s > size]
    advice = advise_minibatch(size, [(s, ratio, ratio) for s, ratio in ratios], share)
    if advice is None:
        return None
    larger = advice.then
    rate = "the learning rate" if section == "replay" else f"{section}.lr"
    return Candidate(
        "tiny minibatches",
        share,
        {section: {name: larger}},
        f"{percent(share)} in the update, {size} samples per optimizer step: calls cost more "
        "than the arithmetic",
        f"take {larger}; fewer and calmer steps learn a little less from each sample, so "
        f"watch the curves, and raise {rate} with it if they slow down",
        reckoned=without(share, 0.5) if 8 * size <= full else None,
        hope=advice.gain,
        alters=True,
        rows=larger,
    )


def threads(case: Case) -> list[Candidate]:
    """Threads that get into each other's way, or cores without one."""
    now, cores, load = case.threads, case.evidence.cores, case.evidence.load
    if case.on_gpu and case.phase("stepping") < 0.2:
        return []
    busy = case.evidence.cpu_cores
    tries = [cores] if now > cores else []
    if now > 1 and (busy < 0.8 * min(now, cores) or load > 0.3 or now > cores):
        tries.append(1 if now <= 2 or cores <= 2 else cores // 2)
    why = f"{now} threads keep {busy:.1f} cores busy"
    if now > cores:
        why = f"{now} threads on {counted(cores, 'core')}"
    found = [
        Candidate(
            "too many threads",
            1.0,
            {"threads": fewer},
            f"{why}: they wait for each other",
            f"use {fewer}",
            reckoned=0.1 if now > cores else None,
            hope=2.0 if now >= 2 * cores else 0.1 + 0.4 * case.phase("update", "inference"),
        )
        for fewer in dict.fromkeys(tries)
    ]
    if now < cores and busy > 0.8 * now and load < cores - now:
        part = case.phase("update", "inference", "stepping")
        hope = without(part, 0.5 * (1 - now / cores))
        why, change = f"{counted(now, 'thread')} at work on {cores} cores", {"threads": cores}
        found.append(Candidate("too few threads", part, change, why, f"use {cores}", hope=hope))
    return found


def games(case: Case) -> Candidate | None:
    """So few games at once that a call of the network is mostly overhead."""
    collect = case.config.collect
    now, share = collect.games, case.phase("inference")
    if not case.custom_env:
        share += case.at(STEPPING)
    share = max(share, case.at(INFERENCE, PAST))
    full = 16 * FULL_ROWS if case.on_gpu else FULL_ROWS
    if share < 0.15 or 2 * now > full or case.config.actors:
        return None
    more = min(now * 4, full)
    change: dict[str, int] = {"games": more}
    text = f"play {more}"
    fewer = max(collect.steps * now // more, 1)
    if not case.remembers and fewer >= 16:
        change["steps"] = fewer
        text += f" with collect.steps {fewer}, so that an update sees as many samples"
    return Candidate(
        "too few games",
        share,
        {"collect": change},
        f"{percent(share)} in inference, {counted(now, 'game')} at once: most of a call is "
        "overhead",
        text,
        hope=without(share, 0.8 * (1 - now / more)),
        alters="steps" not in change,
    )


def workers(case: Case) -> list[Candidate]:
    """Environments of one's own in too few processes, or in too many."""
    config, cores, word = case.config, case.evidence.cores, case.config.workers
    if not by_factory(config) or config.actors or not case.repeatable or not word.isdigit():
        return []
    now = int(word)
    waits, total = case.env_waits(), max(case.env_share(), case.phase("stepping"))
    if now == 0:
        return first_workers(case, total, waits)
    if now > cores and waits < 0.3 * total:
        text = f"{now} workers on {counted(cores, 'core')}: they push each other aside"
        advice = {cores: f"take {cores}", 0: "step the environment in the training process"}
        return [
            Candidate(TOO_MANY_WORKERS, total, {"workers": str(fewer)}, text, told, hope=0.5)
            for fewer, told in advice.items()
        ]
    if total < 0.15:
        text = f"{counted(now, 'worker')}, and only {percent(total)} of the time in stepping"
        change, rest = {"workers": "0"}, 1 - total
        return [Candidate(TOO_MANY_WORKERS, rest, change, text, "do without", hope=0.2)]
    if now < cores and total > 0.4:
        more = min(cores, config.collect.games)
        text = f"{percent(total)} in waiting for {counted(now, 'worker')}, on {cores} cores"
        hope = without(total, 1 - now / more)
        change = {"workers": str(more)}
        return [Candidate(FEW_WORKERS, total, change, text, f"take {more}", hope=hope)]
    return []


def first_workers(case: Case, total: float, waits: float) -> list[Candidate]:
    games, where = case.config.collect.games, hot(case)
    if total < 0.25:
        return []
    if waits > 0.5 * total and games > 1:
        many = min(games, MAX_WAITING)
        return [
            Candidate(
                WAITING_ENV,
                waits,
                {"workers": str(many)},
                f"{percent(waits)} in waiting inside your environment's step{where}, one game "
                "after the other",
                f"let {many} workers wait at the same time",
                reckoned=without(waits, 0.8 * (1 - 1 / many)),
                hope=without(waits, 0.9 * (1 - 1 / many)),
            )
        ]
    many = min(case.evidence.cores, games)
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


def unused_gpu(case: Case) -> Candidate | None:
    """A GPU that nobody asked."""
    if case.config.device != "cpu" or not torch.cuda.is_available() or case.on_gpu:
        return None
    cause, part = "a GPU that is not used", case.phase("update", "inference")
    text = f"{percent(part)} in the network on a CPU, beside a GPU"
    return Candidate(cause, part, {"device": "cuda"}, text, "use it", hope=without(part, 0.8))


def float32(case: Case) -> Candidate | None:
    """A GPU that computes in more digits than it has to."""
    part = case.phase("update", "inference")
    if not case.on_gpu or case.config.collect.bf16 or part < 0.3:
        return None
    text, change = f"{percent(part)} in the network, in float32", {"collect": {"bf16": True}}
    hope = without(part, 0.3)
    return Candidate("float32 on a GPU", part, change, text, "compute in bfloat16", hope=hope)


def games_on_cpu(case: Case) -> Candidate | None:
    idle = case.evidence.gpu.get(IDLE, 0.0)
    share = case.phase("stepping", "transfer") or case.at(GAMES)
    if idle < 0.3 or case.custom_env or share < 0.2:
        return None
    if case.config.pool == "cpu":
        change: dict[str, Any] = {"pool": "cuda"}
        advice = "play on the GPU too"
    elif case.config.collect.groups == 1:
        change, advice = {"collect": {"groups": 2}}, "let one half step while the other is answered"
    else:
        return None
    text = f"the GPU is idle for {percent(idle)}: it waits for games on the CPU"
    hope = without(idle, 0.8)
    return Candidate("games on the CPU", idle, change, text, advice, hope=hope)


def opponents(case: Case) -> list[Candidate]:
    """Networks of another kind than the learner's: each is asked by a call of its own."""
    share = case.share(lambda sight: sight.phase == OPPONENTS and not sight.theirs)
    if share < NOTICED_OPPONENT:
        return []
    config, others = case.config, apart(case)
    count = len(others) or sum(not word.startswith("self") for word in config.opponents)
    whom = f"each of {count} policies" if count > 1 else "one policy"
    why = f"{percent(share)} in opponents' inference, one call for {whom}"
    found, change = [], alike(case, others) if count > 1 else {}
    if change:
        found.append(
            Candidate(
                ONE_CALL_EACH,
                share,
                {"net": change},
                f"{why}, as their network is another than the learner's",
                f"group them: with {typed({'net': change})} it has theirs, and all are answered "
                "together",
                reckoned=without(share, 0.5 * (1 - 1 / count)),
                hope=without(share, 0.9) + 0.2,
                alters=True,
            )
        )
    games = 4 * config.collect.games
    if config.collect.games < MAX_GAMES:
        found.append(
            Candidate(
                ONE_CALL_EACH,
                share,
                {"collect": {"games": games, "steps": max(config.collect.steps // 4, 1)}},
                f"{why} in every step",
                f"play {games} games at once in shorter rollouts, so that every call answers "
                "more rows; or name fewer policies",
                hope=without(share, 0.6),
                alters=True,
            )
        )
    return found


def alike(case: Case, others: list[Policy]) -> dict[str, Any]:
    """What the learner's network has to change to be that of all opponents, if they have one."""
    nets = {replace(policy.net.config, sparse=case.config.net.sparse) for policy in others}
    if len(nets) != 1 or case.config.hierarchy.on:
        return {}
    mine = asdict(case.config.net)
    return {key: value for key, value in asdict(nets.pop()).items() if mine[key] != value}


def apart(case: Case) -> list[Policy]:
    """Policies that the run meets and that have no slot."""
    if not case.repeatable:
        return []
    try:
        rules = rules_of(case.config)
        nets = nets_by_role(read_roles(rules, [case.config]), case.config)
        participants = participants_of(rules, case.config, nets)
    except SparringError:
        return []
    players = [
        actor.player for actor in participants.actors.values() if isinstance(actor, PlayerActor)
    ]
    return [player for player in players if isinstance(player, Policy)]


def epochs(case: Case, usual: TrainConfig) -> Candidate | None:
    now, less, share = case.config.ppo.epochs, usual.ppo.epochs, case.phase("update")
    if case.config.algo != "ppo" or now < 2 * less or share < 0.3:
        return None
    return Candidate(
        "many epochs",
        share,
        {"ppo": {"epochs": less}},
        f"{percent(share)} in the update, {now} epochs over each rollout",
        f"take {less}, as the preset has; more of them learn little from the same samples",
        hope=without(share, 1 - less / now),
        alters=True,
    )


def ratio(case: Case, usual: TrainConfig) -> Candidate | None:
    now, less = case.config.replay.ratio, usual.replay.ratio
    share = case.phase("update", "sampling")
    if not case.remembers or now < 2 * less or share < 0.3:
        return None
    return Candidate(
        "a high replay ratio",
        share,
        {"replay": {"ratio": less}},
        f"{percent(share)} in the update, {now:g} samples trained per decision",
        f"take {less:g}, as the preset has",
        hope=without(share, 1 - less / now),
        alters=True,
    )


def weights(net: NetConfig) -> int:
    """About how many weights lie between the hidden layers."""
    if net.kind != "mlp":
        return net.blocks * 18 * net.channels**2
    wide = [net.hidden[0], *net.hidden]
    return sum(first * second for first, second in pairwise(wide))


def net(case: Case, usual: TrainConfig) -> Candidate | None:
    mine, theirs, share = case.config.net, usual.net, case.phase("update", "inference", "sampling")
    if weights(mine) < 4 * weights(theirs) or share < 0.4 or case.config.hierarchy.on:
        return None
    small: dict[str, Any] = {"hidden": theirs.hidden} if theirs.kind == "mlp" else {}
    if mine.kind != theirs.kind or not small:
        small |= {"kind": theirs.kind, "channels": theirs.channels, "blocks": theirs.blocks}
    times = weights(mine) / weights(theirs)
    return Candidate(
        "a large network",
        share,
        {"net": small},
        f"{percent(share)} in the network, which is {times:.0f} times as large as the preset's",
        f"take the preset's ({typed({'net': small})}), unless only the larger one learns the game",
        hope=without(share, 0.7),
        alters=True,
    )


def bots(case: Case) -> Candidate | None:
    """Bots that are slower than the games themselves."""
    config, share = case.config, case.phase("stepping") or case.at(GAMES)
    named = [word for word in config.opponents if is_bot(word)]
    if case.custom_env or share < 0.4 or not named:
        return None
    others = tuple(word for word in config.opponents if word not in named) or ("self=1",)
    return Candidate(
        "bots that think",
        share,
        {"opponents": others},
        f"{percent(share)} in stepping games, in which {', '.join(named)} think",
        "leave them out, or meet them less often (WHO=WEIGHT) for a part of it",
        hope=without(share, 0.7),
        alters=True,
    )


def is_bot(word: str) -> bool:
    players = word.partition("=")[0].split(",")
    named = [player for player in players if "/" not in player and "." not in player]
    return any(player.partition(":")[0].partition("@")[0] not in NO_BOTS for player in named)


def past_selves(case: Case) -> Candidate | None:
    share, now = case.at(PAST), case.config.league.slots
    if share < 0.25 or now < 8:
        return None
    fewer = now // 4
    return Candidate(
        "many past selves",
        share,
        {"league": {"slots": fewer}},
        f"{percent(share)} in the answers of up to {now} past selves",
        f"meet {fewer} at a time",
        hope=without(share, 0.5),
        alters=True,
    )


def actors(case: Case) -> Candidate | None:
    now, cores = case.config.actors, case.evidence.cores
    if now <= cores or case.config.cluster:
        return None
    fewer = max(cores - 1, 0)
    return Candidate(
        "too many actors",
        1.0,
        {"actors": fewer},
        f"{now} actors and a learner on {cores} cores",
        f"take {fewer}" if fewer else "let the learner play itself",
        hope=0.5,
    )


def rollouts(case: Case) -> Candidate | None:
    """Rollouts so short that what is done once per update counts."""
    collect, share = case.config.collect, case.phase("other", BETWEEN, "advantage")
    if case.remembers or collect.games * collect.steps >= FEW_SAMPLES or share < 0.1:
        return None
    longer = -(-2 * FEW_SAMPLES // collect.games)
    return Candidate(
        "updates too short",
        share,
        {"collect": {"steps": longer}},
        f"{percent(share)} in what is done once per update, and an update has no more than "
        f"{collect.games * collect.steps} samples",
        f"make rollouts longer: collect.steps {longer}",
        reckoned=without(share, 0.5),
        hope=without(share, 0.8),
        alters=True,
    )
