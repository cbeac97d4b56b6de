"""The phases of members, who plays in them, what members share, and what is their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sparring.config import TrainConfig
from sparring.curriculum.checks import check_flags
from sparring.curriculum.curriculum import SINGLE_PHASE, START, Curriculum
from sparring.curriculum.files import as_json, read_curriculum
from sparring.curriculum.phases import Phase
from sparring.curriculum.reading import opponent_texts, parse_texts, read_phases
from sparring.curriculum.rewards import check_any_reward, read_rewards, weights_of
from sparring.curriculum.state import CurriculumState
from sparring.errors import ConfigError
from sparring.games.flags import scheduled_flags
from sparring.games.rules import Rules
from sparring.games.starts import with_absolute_path
from sparring.learn.learner import Overrides
from sparring.learn.plan import Participants, pays_apart
from sparring.pools.custom.base import CustomPool
from sparring.training.budget import BUDGETS, COUNTED
from sparring.training.planning.custom import rules_of
from sparring.training.planning.participants import pin_checkpoints
from sparring.training.planning.settings import merged

MAY_DIFFER = (
    *("seed", "name", "minutes", "updates", "runs", "json", "league"),
    *("init", "set", "rewards"),
)
"""What members may have otherwise than the first, besides the algorithm's own. Of `set` those
flags that may change while games run."""


def curriculum_of(
    config: TrainConfig, rules: Rules, phases: tuple[Phase, ...], participants: Participants
) -> Curriculum:
    """The curriculum of a run with its participants; one without phases has one that never ends."""
    rewards = read_rewards(rules, config.rewards)
    check_any_reward(rules, rewards)
    flags = scheduled_flags(rules, config.set)
    check_flags(rules, flags)
    base = Phase(
        SINGLE_PHASE,
        flags=flags,
        rewards=rewards,
        starts=config.starts or None,
    )
    return Curriculum(rules, phases or (Phase(SINGLE_PHASE),), participants.seatings, base)


def check_custom(pool: CustomPool, curriculum: Curriculum, *, named: bool) -> None:
    """Refuse phases that mean nothing in somebody's own environment. named: by a factory."""
    name, flags = pool.rules.name, {flag for phase in curriculum.phases for flag in phase.flags}
    for number, phase in enumerate(curriculum.phases, start=1):
        where = f"phase {number} {phase.name!r}"
        unfit = {
            "starts": (phase.starts, "its reset decides where games start"),
            "until": (phase.until and not named, "given as an object, which is not evaluated"),
        }
        for key, (given, why) in unfit.items():
            if given:
                raise ConfigError(
                    f"{where}: {key}: {name} is a custom environment, {why}; leave it out"
                )
        for flag in sorted(flags.difference(phase.flags)):
            raise ConfigError(
                f"{where}: set: {flag} is named in other phases, and its value in {name} before is "
                "unknown; name it in every phase"
            )
    pool.check_flags(sorted(flags))


def with_phases(config: TrainConfig) -> TrainConfig:
    """A configuration with the phases of its file, if they are not in it yet."""
    if not config.curriculum or config.phases:
        return config
    given = read_curriculum(config.curriculum, config.game, config.algo)
    if any(getattr(config, kind) for kind in COUNTED):  # what somebody gives goes before the file
        given = {key: value for key, value in given.items() if key not in BUDGETS}
    fixed_settings = {
        "game": config.game,
        "algo": config.algo,
        "set": [*given.get("set", ()), *config.set],
    }
    result: TrainConfig = merged(config, {**given, **fixed_settings}, config.curriculum)
    return result


def absolute_phases(config: TrainConfig, rules: Rules) -> tuple[str, ...]:
    """The phases of a new run as its file is to name them: `latest` is another run tomorrow."""
    if not config.phases:
        return ()
    read_phases(rules, config)  # what is wrong is named with its line
    return tuple(as_json(pin_phase(rules, json.loads(phase))) for phase in config.phases)


def pin_phase(rules: Rules, phase: Mapping[str, Any]) -> dict[str, Any]:
    """A phase with checkpoints for runs, and whole paths of files."""
    result = dict(phase)
    if who := phase.get("opponents"):
        result["opponents"] = list(pin_checkpoints(rules, opponent_texts(who)))
    if phase.get("starts"):
        result["starts"] = [
            with_absolute_path(word) for word in parse_texts(phase["starts"], "starts")
        ]
    return result


def check_alike(configs: Sequence[TrainConfig]) -> None:
    """Refuse a population whose members differ in what they share."""
    if len(configs) == 1:
        return
    may = (*MAY_DIFFER, configs[0].algo)
    mine = asdict(configs[0])
    for other in configs[1:]:
        theirs = asdict(other)
        differ = [key for key in mine if key not in may and mine[key] != theirs[key]]
        if differ:
            raise ConfigError(f"members of a population share {', '.join(differ)}")
        if other.set != configs[0].set:
            check_live(rules_of(configs[0]), rules_of(other))


def rules_of_members(configs: Sequence[TrainConfig], rules: Rules) -> tuple[Rules, ...]:
    """What every member plays by, where they are alike. rules: of the first."""
    return tuple(rules if one.set == configs[0].set else rules_of(one) for one in configs)


def check_live(rules: Rules, theirs: Rules) -> None:
    other = differing(rules, theirs)
    fixed = [name for name in other if name not in rules.fields or not rules.fields[name].live]
    if not fixed:
        return
    may = ", ".join(name for name, one in rules.fields.items() if one.live) or "none"
    pairs = ", ".join(f"{name}={theirs.config[name]}" for name in fixed)
    raise ConfigError(
        f"set: members of a population share {', '.join(fixed)}, and one has {pairs} instead of "
        f"{', '.join(str(rules.config[name]) for name in fixed)}; train it apart, a run for each "
        f"(flags of {rules.name} that may differ: {may})"
    )


def differing(rules: Rules, theirs: Rules) -> dict[str, Any]:
    """The flags that are otherwise, as the others have them."""
    mine, other = rules.config, theirs.config
    return {name: value for name, value in other.items() if mine.get(name) != value}


def first_overrides(
    base: Sequence[Rules], curricula: Sequence[Curriculum]
) -> tuple[Overrides, ...]:
    """What the first games of every member begin under: what is its own, and its first phase."""
    overrides = member_overrides(base, curricula)
    if all(curriculum.is_constant for curriculum in curricula):
        return overrides
    begun = [
        CurriculumState(curriculum, starts=curriculum.starts).begin() for curriculum in curricula
    ]
    mine = overrides or (Overrides(),) * len(begun)
    return tuple(under_phase(*one) for one in zip(mine, begun, strict=True))


def member_overrides(
    base: Sequence[Rules], curricula: Sequence[Curriculum]
) -> tuple[Overrides, ...]:
    """What every member's games begin under besides the first one's; none where nobody differs."""
    paid = [one.rewards_at(0, START, START) for one in curricula]
    overrides = []
    for rules, rewards in zip(base, paid, strict=True):
        flags = differing(base[0], rules)
        weights = None if rewards == paid[0] else rewards or weights_of(rules)
        overrides.append(Overrides(flags=flags or None, rewards=weights))
    return tuple(overrides) if any(one != Overrides() for one in overrides) else ()


def check_same_chains(paid: Sequence[Mapping[str, Any]]) -> None:
    """Refuse members of which only some pay their roles differently: decisions link otherwise."""
    if len({pays_apart(**one) for one in paid}) > 1:
        raise ConfigError(
            "rewards: some members of the population pay every role its own and others do not, so "
            "that decisions are linked otherwise; give all of them weights by role, or train them "
            "apart"
        )


def under_phase(base: Overrides, phase: Overrides) -> Overrides:
    """What a member's games begin under, where a first phase has its say, too."""
    overrides = {name: value for name, value in vars(phase).items() if value is not None}
    flags = {**(base.flags or {}), **(phase.flags or {})}
    return replace(base, **{**overrides, "flags": flags or None})
