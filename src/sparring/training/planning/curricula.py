"""The curriculum of a run: its file, its phases, and everybody who plays in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sparring.config import TrainConfig
from sparring.curriculum.checks import check_flags
from sparring.curriculum.curriculum import THE_RUN, Curriculum
from sparring.curriculum.files import as_json, read_curriculum
from sparring.curriculum.phases import Phase
from sparring.curriculum.reading import read_phases, words_met, words_of
from sparring.curriculum.rewards import demand_paid, read_rewards
from sparring.errors import ConfigError
from sparring.games.flags import scheduled_flags
from sparring.games.rules import Rules
from sparring.games.starts import lasting as lasting_start
from sparring.learn.plan import Cast
from sparring.pools.foreign.base import ForeignPool
from sparring.training.budget import BUDGETS, COUNTED
from sparring.training.planning.casting import pinned
from sparring.training.planning.settings import merged

__all__ = ["check_own", "curriculum_of", "lasting_phases", "read_phases", "with_phases"]


def curriculum_of(
    config: TrainConfig, rules: Rules, phases: tuple[Phase, ...], cast: Cast
) -> Curriculum:
    """The curriculum of a run whose cast is there; one without phases has one that never ends."""
    rewards = read_rewards(rules, config.rewards)
    demand_paid(rules, rewards)
    flags = scheduled_flags(rules, config.set)
    check_flags(rules, flags)
    own = Phase(
        THE_RUN,
        flags=flags,
        rewards=rewards,
        starts=config.starts or None,
    )
    return Curriculum(rules, phases or (Phase(THE_RUN),), cast.seatings, own)


def check_own(pool: ForeignPool, curriculum: Curriculum, *, named: bool) -> None:
    """Refuse phases that mean nothing in somebody's own environment. named: by a factory."""
    name, flags = pool.rules.name, {flag for phase in curriculum.phases for flag in phase.flags}
    for number, phase in enumerate(curriculum.phases, start=1):
        where = f"phase {number} {phase.name!r}"
        unfit = {
            "starts": (phase.starts, "its own reset decides where games begin"),
            "until": (phase.until and not named, "given as an object, and nobody measures it"),
        }
        for key, (given, why) in unfit.items():
            if given:
                raise ConfigError(
                    f"{where}: {key}: {name} is your own environment, {why}; leave it out"
                )
        for flag in sorted(flags.difference(phase.flags)):
            raise ConfigError(
                f"{where}: set: {flag} is named in other phases, and nobody knows what it was in "
                f"{name} before; name it in every phase"
            )
    pool.demand_flags(sorted(flags))


def with_phases(config: TrainConfig) -> TrainConfig:
    """A configuration with the phases of its file, if they are not in it yet."""
    if not config.curriculum or config.phases:
        return config
    given = read_curriculum(config.curriculum, config.game, config.algo)
    if any(getattr(config, kind) for kind in COUNTED):  # what somebody gives goes before the file
        given = {key: value for key, value in given.items() if key not in BUDGETS}
    kept = {"game": config.game, "algo": config.algo, "set": [*given.get("set", ()), *config.set]}
    told: TrainConfig = merged(config, {**given, **kept}, config.curriculum)
    return told


def lasting_phases(config: TrainConfig, rules: Rules) -> tuple[str, ...]:
    """The phases of a new run as its file is to name them: `latest` is another run tomorrow."""
    if not config.phases:
        return ()
    read_phases(rules, config)  # what is wrong is named with its line
    return tuple(as_json(pinned_in(rules, json.loads(phase))) for phase in config.phases)


def pinned_in(rules: Rules, phase: Mapping[str, Any]) -> dict[str, Any]:
    """A phase with checkpoints for runs, and whole paths of files."""
    told = dict(phase)
    if who := phase.get("opponents"):
        told["opponents"] = list(pinned(rules, words_met(who)))
    if phase.get("starts"):
        told["starts"] = [lasting_start(word) for word in words_of(phase["starts"], "starts")]
    return told
