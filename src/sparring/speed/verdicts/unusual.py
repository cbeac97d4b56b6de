"""Settings that are far from what the game's preset has, and cost time: those are tried."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from sparring.config import NetConfig, TrainConfig
from sparring.errors import SparringError
from sparring.speed.progress import BETWEEN
from sparring.speed.verdicts.case import Candidate, Case
from sparring.speed.verdicts.places import GAMES, SLOTS
from sparring.speed.verdicts.told import percent, typed, without
from sparring.training.planning.settings import with_preset

MANY_EPOCHS = "many epochs"
HIGH_RATIO = "a high replay ratio"
LARGE_NET = "a large network"
BOTS = "bots that think"
MANY_PAST = "many past selves"
MANY_ACTORS = "too many actors"
SHORT_ROLLOUTS = "updates too short"
FEW_SAMPLES = 1024
"""Samples of a rollout below which what surrounds an update counts."""
NO_BOTS = ("self", "past", "best", "given")


def candidates(case: Case) -> list[Candidate]:
    """Changes towards what the preset has, where that bears on much of the time."""
    usual = preset(case.config.game, case.config.algo, gpu=case.on_gpu)
    found = [*bots(case), *past_selves(case), *actors(case), *rollouts(case)]
    if usual is not None:
        found += [*epochs(case, usual), *ratio(case, usual), *net(case, usual)]
    return found


@cache
def preset(game: str, algo: str, *, gpu: bool) -> TrainConfig | None:
    """What `sparring train` would take."""
    try:
        return with_preset(game, algo=algo, gpu=gpu)
    except SparringError:
        return None


def epochs(case: Case, usual: TrainConfig) -> list[Candidate]:
    """Many more passes over each rollout than usual."""
    now, less, share = case.config.ppo.epochs, usual.ppo.epochs, case.phase("update")
    if case.config.algo != "ppo" or now < 2 * less or share < 0.3:
        return []
    return [
        Candidate(
            MANY_EPOCHS,
            share,
            {"ppo": {"epochs": less}},
            f"{percent(share)} in the update, {now} epochs over each rollout",
            f"take {less}, as the preset has; more of them learn little from the same samples",
            hope=without(share, 1 - less / now),
            alters=True,
        )
    ]


def ratio(case: Case, usual: TrainConfig) -> list[Candidate]:
    """Many more samples per decision than usual."""
    now, less = case.config.replay.ratio, usual.replay.ratio
    share = case.phase("update", "sampling")
    if not case.remembers or now < 2 * less or share < 0.3:
        return []
    return [
        Candidate(
            HIGH_RATIO,
            share,
            {"replay": {"ratio": less}},
            f"{percent(share)} in the update, {now:g} samples trained per decision",
            f"take {less:g}, as the preset has",
            hope=without(share, 1 - less / now),
            alters=True,
        )
    ]


def weights(net: NetConfig) -> int:
    """About how many weights lie between the hidden layers."""
    if net.kind != "mlp":
        return net.blocks * 18 * net.channels**2
    wide = [net.hidden[0], *net.hidden]
    return sum(first * second for first, second in pairwise(wide))


def net(case: Case, usual: TrainConfig) -> list[Candidate]:
    """A network many times as large as usual."""
    mine, theirs, share = case.config.net, usual.net, case.phase("update", "inference", "sampling")
    if weights(mine) < 4 * weights(theirs) or share < 0.4 or case.config.hierarchy.on:
        return []
    small: dict[str, Any] = {"hidden": theirs.hidden} if theirs.kind == "mlp" else {}
    if mine.kind != theirs.kind or not small:
        small |= {"kind": theirs.kind, "channels": theirs.channels, "blocks": theirs.blocks}
    times = weights(mine) / weights(theirs)
    return [
        Candidate(
            LARGE_NET,
            share,
            {"net": small},
            f"{percent(share)} in the network, which is {times:.0f} times as large as the preset's",
            f"take the preset's ({typed({'net': small})}), unless only the larger one learns the "
            "game",
            hope=without(share, 0.7),
            alters=True,
        )
    ]


def bots(case: Case) -> list[Candidate]:
    """Bots that are slower than the games themselves."""
    config, share = case.config, case.phase("stepping") or case.places.at(GAMES)
    named = [word for word in config.opponents if is_bot(word)]
    if case.own_env or share < 0.4 or not named:
        return []
    others = tuple(word for word in config.opponents if word not in named) or ("self=1",)
    return [
        Candidate(
            BOTS,
            share,
            {"opponents": others},
            f"{percent(share)} in stepping games, in which {', '.join(named)} think",
            "leave them out, or meet them less often (WHO=WEIGHT) for a part of it",
            hope=without(share, 0.7),
            alters=True,
        )
    ]


def is_bot(word: str) -> bool:
    """Whether a table of `opponents` seats a bot of the game."""
    players = word.partition("=")[0].split(",")
    return any(
        player.partition(":")[0].partition("@")[0] not in NO_BOTS
        and "/" not in player
        and "." not in player
        for player in players
    )


def past_selves(case: Case) -> list[Candidate]:
    """Past selves of many generations at a time."""
    share, now = case.places.at(SLOTS), case.config.league.slots
    if share < 0.25 or now < 8:
        return []
    fewer = now // 4
    return [
        Candidate(
            MANY_PAST,
            share,
            {"league": {"slots": fewer}},
            f"{percent(share)} in the answers of up to {now} past selves",
            f"meet {fewer} at a time",
            hope=without(share, 0.5),
            alters=True,
        )
    ]


def actors(case: Case) -> list[Candidate]:
    """Processes that play, more than there are cores."""
    now, cores = case.config.actors, case.evidence.cores
    if now <= cores or case.config.cluster:
        return []
    fewer = max(cores - 1, 0)
    return [
        Candidate(
            MANY_ACTORS,
            1.0,
            {"actors": fewer},
            f"{now} actors and a learner on {cores} cores",
            f"take {fewer}" if fewer else "let the learner play itself",
            hope=0.5,
        )
    ]


def rollouts(case: Case) -> list[Candidate]:
    """Rollouts so short that what is done once per update counts."""
    collect, phases = case.config.collect, case.evidence.phases
    share = sum(phases.get(name, 0.0) for name in ("other", BETWEEN, "advantage"))
    if case.remembers or collect.games * collect.steps >= FEW_SAMPLES or share < 0.1:
        return []
    longer = -(-2 * FEW_SAMPLES // collect.games)
    return [
        Candidate(
            SHORT_ROLLOUTS,
            share,
            {"collect": {"steps": longer}},
            f"{percent(share)} in what is done once per update, and an update has no more than "
            f"{collect.games * collect.steps} samples",
            f"make rollouts longer: collect.steps {longer}",
            reckoned=without(share, 0.5),
            hope=without(share, 0.8),
            alters=True,
        )
    ]
