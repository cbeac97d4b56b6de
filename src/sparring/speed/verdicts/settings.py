"""Causes in settings: batch sizes, numbers of games, threads and workers, opponents."""

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
from sparring.phases import TREES
from sparring.speed.curves import BETWEEN
from sparring.speed.kernels import IDLE
from sparring.speed.verdicts import searching
from sparring.speed.verdicts.profiled_run import (
    GAMES,
    INFERENCE,
    OPPONENTS,
    PAST,
    STEPPING,
    Candidate,
    ProfiledRun,
    counted,
    percent,
    typed,
    without,
)
from sparring.speed.verdicts.user_code import (
    NOTICED_OPPONENT,
    ONE_CALL_EACH,
    SLOW_ENV,
    mostly_in,
)
from sparring.training.planning.custom import by_factory, rules_of
from sparring.training.planning.participants import participants_of
from sparring.training.planning.roles import nets_by_role, read_roles
from sparring.training.planning.settings import with_preset
from sparring.training.utilization.advice import advise_minibatch, sizes_to_try

FULL_BATCH, FULL_BATCH_GPU = 1024, 16384
"""Minibatch size from which on a step is mostly arithmetic, not call overhead."""
FIXED = 0.1
"""Share of a tiny step that a larger minibatch does not save."""
FULL_ROWS = 256
"""Rows per inference call from which on it is mostly arithmetic."""
MAX_WAITING = 64
"""Workers of an environment that waits: they need no core."""
MAX_GAMES = 4096
FEW_SAMPLES = 1024
"""Samples of a rollout below which the overhead per update counts."""
ACTING = ("inference", "evaluate")
"""Phases in which networks choose actions, in searches as well."""
NO_BOTS = ("self", "past", "best", "given")
WAITING_ENV, FEW_WORKERS = "an environment that waits", "too few workers"
TOO_MANY_WORKERS = "too many workers"


def candidates(run: ProfiledRun) -> list[Candidate]:
    """Return changes of settings that the profile suggests."""
    named = [batches(run), *threads(run), games(run), *workers(run)]
    named += [unused_gpu(run), games_on_cpu(run), float32(run)]
    found = sorted(filter(None, named), key=lambda one: one.hope, reverse=True)
    others = [bots(run), past_selves(run), actors(run), rollouts(run)]
    usual = preset(run.config.game, run.config.algo, gpu=run.on_gpu)
    if usual is not None:
        others += [epochs(run, usual), ratio(run, usual), net(run, usual)]
    searches = searching.candidates(run, usual)
    return [*searches, *opponents(run), *found, *filter(None, others)]


@cache
def preset(game: str, algo: str, *, gpu: bool) -> TrainConfig | None:
    try:
        return with_preset(game, algo=algo, gpu=gpu)
    except SparringError:
        return None


def batches(run: ProfiledRun) -> Candidate | None:
    """Minibatches so small that call overhead exceeds the arithmetic."""
    section, name, size = run.batch
    share, collect = run.phase("update", "sampling"), run.config.collect
    full = FULL_BATCH_GPU if run.on_gpu else FULL_BATCH
    if not size or share < 0.2 or 2 * size > full:
        return None
    max_size = max(full, 4 * size)
    if not run.has_replay:
        max_size = min(max_size, max(collect.games * collect.steps, size))
    ratios = [(s, FIXED + (1 - FIXED) * size / s) for s in sizes_to_try(size, max_size) if s > size]
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
        estimated=without(share, 0.5) if 8 * size <= full else None,
        hope=advice.gain,
        alters=True,
        rows=larger,
    )


def threads(run: ProfiledRun) -> list[Candidate]:
    """Threads that block each other, or cores without a thread."""
    now, cores, load = run.threads, run.evidence.cores, run.evidence.load
    if run.on_gpu and run.phase("stepping") < 0.2:
        return []
    busy = run.evidence.cpu_cores
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
            estimated=0.1 if now > cores else None,
            hope=2.0 if now >= 2 * cores else 0.1 + 0.4 * run.phase("update", *ACTING),
        )
        for fewer in dict.fromkeys(tries)
    ]
    if now < cores and busy > 0.8 * now and load < cores - now:
        part = run.phase("update", "stepping", *ACTING, *TREES)
        hope = without(part, 0.5 * (1 - now / cores))
        why, change = f"{counted(now, 'thread')} at work on {cores} cores", {"threads": cores}
        found.append(Candidate("too few threads", part, change, why, f"use {cores}", hope=hope))
    return found


def games(run: ProfiledRun) -> Candidate | None:
    """So few games at once that an inference call is mostly overhead."""
    collect = run.config.collect
    now, share = collect.games, run.phase(*ACTING)
    if not run.custom_env:
        share += run.at(STEPPING)
    share = max(share, run.at(INFERENCE, PAST))
    full = 16 * FULL_ROWS if run.on_gpu else FULL_ROWS
    if share < 0.15 or 2 * now > full or run.config.actors:
        return None
    more = min(now * 4, full)
    change: dict[str, int] = {"games": more}
    text = f"play {more}"
    fewer = max(collect.steps * now // more, 1)
    if not run.has_replay and fewer >= 16:
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


def workers(run: ProfiledRun) -> list[Candidate]:
    """Custom environments in too few workers, or in too many."""
    config, cores, word = run.config, run.evidence.cores, run.config.workers
    if not by_factory(config) or config.actors or not run.repeatable or not word.isdigit():
        return []
    now = int(word)
    waits, total = run.env_waits(), max(run.env_share(), run.phase("stepping"))
    if now == 0:
        return first_workers(run, total, waits)
    if now > cores and waits < 0.3 * total:
        text = f"{now} workers on {counted(cores, 'core')}: they compete for cores"
        advice = {cores: f"take {cores}", 0: "step the environment in the training process"}
        return [
            Candidate(TOO_MANY_WORKERS, total, {"workers": str(fewer)}, text, remedy, hope=0.5)
            for fewer, remedy in advice.items()
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


def first_workers(run: ProfiledRun, total: float, waits: float) -> list[Candidate]:
    games, where = run.config.collect.games, mostly_in(run)
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
                estimated=without(waits, 0.8 * (1 - 1 / many)),
                hope=without(waits, 0.9 * (1 - 1 / many)),
            )
        ]
    many = min(run.evidence.cores, games)
    if many < 2:
        return []
    return [
        Candidate(
            SLOW_ENV,
            total,
            {"workers": str(many)},
            f"{percent(total)} in your environment's step{where}, in one process",
            f"step it in {many} workers, or make that function faster",
            estimated=without(total, 0.6 * (1 - 1 / many)),
            hope=without(total, 1 - 1 / many),
        )
    ]


def unused_gpu(run: ProfiledRun) -> Candidate | None:
    """A GPU that is not used."""
    if run.config.device != "cpu" or not torch.cuda.is_available() or run.on_gpu:
        return None
    cause, part = "a GPU that is not used", run.phase("update", *ACTING)
    text = f"{percent(part)} in the network on a CPU, beside a GPU"
    return Candidate(cause, part, {"device": "cuda"}, text, "use it", hope=without(part, 0.8))


def float32(run: ProfiledRun) -> Candidate | None:
    """A GPU that computes in float32 where bfloat16 is enough."""
    part = run.phase("update", *ACTING)
    if not run.on_gpu or run.config.collect.bf16 or part < 0.3:
        return None
    text, change = f"{percent(part)} in the network, in float32", {"collect": {"bf16": True}}
    hope = without(part, 0.3)
    return Candidate("float32 on a GPU", part, change, text, "compute in bfloat16", hope=hope)


def games_on_cpu(run: ProfiledRun) -> Candidate | None:
    idle = run.evidence.gpu.get(IDLE, 0.0)
    share = run.phase("stepping", "transfer") or run.at(GAMES)
    if idle < 0.3 or run.custom_env or share < 0.2:
        return None
    if run.config.pool == "cpu":
        change: dict[str, Any] = {"pool": "cuda"}
        advice = "play on the GPU too"
    elif run.config.collect.groups == 1:
        change, advice = {"collect": {"groups": 2}}, "let one half step while the other is answered"
    else:
        return None
    text = f"the GPU is idle for {percent(idle)}: it waits for games on the CPU"
    hope = without(idle, 0.8)
    return Candidate("games on the CPU", idle, change, text, advice, hope=hope)


def opponents(run: ProfiledRun) -> list[Candidate]:
    """Opponent networks unlike the learner's: each needs a separate call."""
    share = run.share(lambda stack: stack.phase == OPPONENTS and not stack.user_frames)
    if share < NOTICED_OPPONENT:
        return []
    config, others = run.config, policies_without_slot(run)
    count = len(others) or sum(not word.startswith("self") for word in config.opponents)
    whom = f"each of {count} policies" if count > 1 else "one policy"
    why = f"{percent(share)} in opponents' inference, one call for {whom}"
    found, change = [], common_net(run, others) if count > 1 else {}
    if change:
        found.append(
            Candidate(
                ONE_CALL_EACH,
                share,
                {"net": change},
                f"{why}, as their network differs from the learner's",
                f"group them: with {typed({'net': change})} the learner has the same network, and "
                "all are answered together",
                estimated=without(share, 0.5 * (1 - 1 / count)),
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


def common_net(run: ProfiledRun, others: list[Policy]) -> dict[str, Any]:
    """Return the change of `net` to the opponents' network, {} if they have different ones."""
    nets = {replace(policy.net.config, sparse=run.config.net.sparse) for policy in others}
    if len(nets) != 1 or run.config.hierarchy.on:
        return {}
    mine = asdict(run.config.net)
    return {key: value for key, value in asdict(nets.pop()).items() if mine[key] != value}


def policies_without_slot(run: ProfiledRun) -> list[Policy]:
    """Return the opponent policies that have no slot."""
    if not run.repeatable:
        return []
    try:
        rules = rules_of(run.config)
        nets = nets_by_role(read_roles(rules, [run.config]), run.config)
        participants = participants_of(rules, run.config, nets)
    except SparringError:
        return []
    players = [
        actor.player for actor in participants.actors.values() if isinstance(actor, PlayerActor)
    ]
    return [player for player in players if isinstance(player, Policy)]


def epochs(run: ProfiledRun, usual: TrainConfig) -> Candidate | None:
    now, less, share = run.config.ppo.epochs, usual.ppo.epochs, run.phase("update")
    if run.config.algo != "ppo" or now < 2 * less or share < 0.3:
        return None
    return Candidate(
        "many epochs",
        share,
        {"ppo": {"epochs": less}},
        f"{percent(share)} in the update, {now} epochs over each rollout",
        f"take {less}, as in the preset; more epochs learn little from the same samples",
        hope=without(share, 1 - less / now),
        alters=True,
    )


def ratio(run: ProfiledRun, usual: TrainConfig) -> Candidate | None:
    now, less = run.config.replay.ratio, usual.replay.ratio
    share = run.phase("update", "sampling")
    if not run.has_replay or now < 2 * less or share < 0.3:
        return None
    return Candidate(
        "a high replay ratio",
        share,
        {"replay": {"ratio": less}},
        f"{percent(share)} in the update, {now:g} samples trained per decision",
        f"take {less:g}, as in the preset",
        hope=without(share, 1 - less / now),
        alters=True,
    )


def weights(net: NetConfig) -> int:
    """Return the approximate number of weights between hidden layers."""
    if net.kind != "mlp":
        return net.blocks * 18 * net.channels**2
    wide = [net.hidden[0], *net.hidden]
    return sum(first * second for first, second in pairwise(wide))


def net(run: ProfiledRun, usual: TrainConfig) -> Candidate | None:
    now, small, share = run.config.net, usual.net, run.phase("update", "sampling", *ACTING)
    if weights(now) < 4 * weights(small) or share < 0.4 or run.config.hierarchy.on:
        return None
    change: dict[str, Any] = {"hidden": small.hidden} if small.kind == "mlp" else {}
    if now.kind != small.kind or not change:
        change |= {"kind": small.kind, "channels": small.channels, "blocks": small.blocks}
    times = weights(now) / weights(small)
    return Candidate(
        "a large network",
        share,
        {"net": change},
        f"{percent(share)} in the network, which is {times:.0f} times as large as the preset's",
        f"take the preset's ({typed({'net': change})}), unless only the larger one learns the game",
        hope=without(share, 0.7),
        alters=True,
    )


def bots(run: ProfiledRun) -> Candidate | None:
    """Bots that are slower than the games themselves."""
    config, share = run.config, run.phase("stepping") or run.at(GAMES)
    named = [word for word in config.opponents if is_bot(word)]
    if run.custom_env or share < 0.4 or not named:
        return None
    others = tuple(word for word in config.opponents if word not in named) or ("self=1",)
    return Candidate(
        "slow bots",
        share,
        {"opponents": others},
        f"{percent(share)} in stepping games, in which the bots {', '.join(named)} search",
        "leave them out, or give them less weight (BOT=WEIGHT)",
        hope=without(share, 0.7),
        alters=True,
    )


def is_bot(word: str) -> bool:
    players = word.partition("=")[0].split(",")
    named = [player for player in players if "/" not in player and "." not in player]
    return any(player.partition(":")[0].partition("@")[0] not in NO_BOTS for player in named)


def past_selves(run: ProfiledRun) -> Candidate | None:
    share, now = run.at(PAST), run.config.league.slots
    if share < 0.25 or now < 8:
        return None
    fewer = now // 4
    return Candidate(
        "many past selves",
        share,
        {"league": {"slots": fewer}},
        f"{percent(share)} in inference of up to {now} past selves",
        f"play against {fewer} at a time",
        hope=without(share, 0.5),
        alters=True,
    )


def actors(run: ProfiledRun) -> Candidate | None:
    now, cores = run.config.actors, run.evidence.cores
    if now <= cores or run.config.cluster:
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


def rollouts(run: ProfiledRun) -> Candidate | None:
    """Rollouts so short that the overhead per update counts."""
    collect, share = run.config.collect, run.phase("other", BETWEEN, "advantage")
    if run.has_replay or collect.games * collect.steps >= FEW_SAMPLES or share < 0.1:
        return None
    longer = -(-2 * FEW_SAMPLES // collect.games)
    return Candidate(
        "short updates",
        share,
        {"collect": {"steps": longer}},
        f"{percent(share)} in overhead per update, and an update has only "
        f"{collect.games * collect.steps} samples",
        f"make rollouts longer: collect.steps {longer}",
        estimated=without(share, 0.5),
        hope=without(share, 0.8),
        alters=True,
    )
