"""What a configuration asks for, as the table of capabilities knows it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sparring.capabilities.refusals import (
    Combination,
    FeatureRequest,
    game_offers,
    games_offering,
    learner_of,
    net_settings,
    shown,
)
from sparring.capabilities.table import FEATURES, OF_WORLDS, UNHEARD
from sparring.config import (
    DistributedConfig,
    GumbelConfig,
    HeadsConfig,
    NetConfig,
    PPOConfig,
    SACConfig,
    TrainConfig,
)
from sparring.curriculum.phases import Phase
from sparring.factories import is_factory
from sparring.games.rules import Rules, game_names
from sparring.pools.custom.cache import is_custom
from sparring.pygames.registry import is_registered
from sparring.search.worlds import uses_worlds
from sparring.training.planning.algorithms import REMEMBERS, ROLLOUTS
from sparring.training.planning.presets import presets_of

ASKED = {"qrdqn": ("algo qrdqn",), "td3": ("algo td3",)}
BOX_ASKED = ASKED | dict.fromkeys(("sac", "redq"), ("squashed actions",))
"""What an algorithm asks for besides its settings; BOX_ASKED: where actions are continuous."""
MANY_CRITICS = ("critics", "target_critics", "actor_q", "policy_every")
"""Settings of SAC in which REDQ differs from it."""
INSTEAD = {"qrdqn": "use --algo dqn"}
TOGETHER = ("population", "shared league")
"""Features of several runs at once; without them there is one run."""


def combination(
    rules: Rules,
    config: TrainConfig,
    nets: Mapping[str, NetConfig],
    *,
    phases: Sequence[Phase] = (),
    apart: Sequence[str] = (),
    slots: int = 0,
    members: int = 1,
    paid_by_role: bool = False,
) -> Combination:
    """Return everything that a run asks for together.

    nets: by role; one called "" where it is for all. phases: that it goes through. apart: opponents
    with another network than the learner, or none. slots: for past selves. members: of a
    population. paid_by_role: roles are paid differently at some time.
    """
    asked = dict(of_learner(rules, config, phases))
    asked |= of_networks(config, nets)
    asked |= of_place(rules, config, members)
    if apart:
        typed = f"{', '.join(apart)} (another network than the learner's)"
        asked["players apart"] = ask("players apart", typed)
    if slots and config.hierarchy.on:
        asked["past selves by role"] = ask("past selves by role", "past selves with hierarchy.on")
    if paid_by_role:
        asked["rewards by role"] = ask("rewards by role", "rewards that differ by role")
    return Combination(
        learner=learner_key(config),
        networks=nets,
        game=rules.name,
        game_offers=game_offers(rules),
        asked=asked,
        games=games_offering,
    )


def learner_key(config: TrainConfig) -> str:
    rollouts = config.dqn.mode == ROLLOUTS
    return learner_of(config.algo, rollouts=rollouts, by_role=config.hierarchy.on)


def ask(feature: str, typed: str, instead: str | None = None) -> FeatureRequest:
    return FeatureRequest(FEATURES[feature], typed, instead=instead)


def of_learner(
    rules: Rules, config: TrainConfig, phases: Sequence[Phase]
) -> Iterator[tuple[str, FeatureRequest]]:
    """What the game and settings of learning ask for, at some time of the run."""
    algo, learner = config.algo, learner_key(config)
    actions = "continuous actions" if rules.box else "discrete actions"
    twin = f"{rules.name}_discrete"
    yield actions, ask(actions, rules.name, f"play {twin}" if twin in game_names() else "")
    if algo in REMEMBERS and learner != "pqn":
        yield "replay", ask("replay", f"algo {algo}")
        own = getattr(config, algo).win_bonus
        for bonus in (own, *(phase.settings.get(algo, {}).get("win_bonus") for phase in phases)):
            if bonus and any(bonus.values):
                yield "win bonus", ask("win bonus", f"{algo}.win_bonus {bonus}")
    if learner == "pqn":
        yield "dqn.mode rollouts", ask("dqn.mode rollouts", f"dqn.mode {ROLLOUTS}")
    if algo == "gumbel":
        changes = [phase.settings.get(algo, {}) for phase in phases]
        settings = [config.gumbel, *(replace(config.gumbel, **one) for one in changes)]
        yield from of_gumbel(rules, settings)
    asked = BOX_ASKED if rules.box else ASKED
    yield from (
        (one, ask(one, f"algo {algo}", INSTEAD.get(algo, ""))) for one in asked.get(algo, ())
    )
    if algo in ("sac", "redq"):
        changes = [phase.settings.get(algo, {}) for phase in phases]
        own = getattr(config, algo)
        yield from of_critics(algo, [own, *(replace(own, **one) for one in changes)])
    switches = {
        "hierarchy.on": config.hierarchy.on,
        "hindsight.on": config.hindsight.on,
        "collect.mirror": config.collect.mirror,
    }
    yield from ((name, ask(name, name)) for name, on in switches.items() if on)
    if (groups := config.collect.groups) > 1:
        yield "collect.groups", ask("collect.groups", f"collect.groups {groups}")
    if config.hindsight.relabels:
        yield "seen in hindsight", ask("seen in hindsight", "hindsight.on")
        if algo in REMEMBERS:
            yield "replay in hindsight", ask("replay in hindsight", "hindsight.on of a replay")
    yield from of_heads(config.heads)
    if config.average:
        yield "average", ask("average", f"average {config.average:g}")
    if algo == "ppo":
        changes = [phase.settings.get(algo, {}) for phase in phases]
        yield from of_ppo([config.ppo, *(replace(config.ppo, **one) for one in changes)])
    if config.imitate:
        yield "imitate", ask("imitate", f"imitate {shown(tuple(config.imitate))}")


def of_critics(algo: str, settings: Sequence[SACConfig]) -> Iterator[tuple[str, FeatureRequest]]:
    """What the critics of SAC and REDQ ask for. settings: those of all phases."""
    usual = SACConfig()
    for one, name in itertools.product(settings, MANY_CRITICS):
        if (given := getattr(one, name)) != getattr(usual, name):
            yield "sac.critics", ask("sac.critics", f"{algo}.{name} {given}")


def of_heads(heads: HeadsConfig) -> Iterator[tuple[str, FeatureRequest]]:
    name = changed(heads, HeadsConfig())
    if name:
        yield "heads", ask("heads", f"heads.{name} {shown(getattr(heads, name))}")
    if any(heads.wdl.values):
        yield "heads.wdl", ask("heads.wdl", f"heads.wdl {heads.wdl}")
    if any(heads.hidden.values):
        yield "heads.hidden", ask("heads.hidden", f"heads.hidden {heads.hidden}")
    if any(heads.opponents.values):
        yield "heads.opponents", ask("heads.opponents", f"heads.opponents {heads.opponents}")


def of_gumbel(
    rules: Rules, settings: Sequence[GumbelConfig]
) -> Iterator[tuple[str, FeatureRequest]]:
    """What self-play with search asks for. settings: those of all phases."""
    yield "algo gumbel", ask("algo gumbel", "algo gumbel", "use --algo ppo")
    if uses_worlds(rules):
        typed = f"algo gumbel in {rules.name}, which hides cards,"
        yield "playouts in worlds", ask("playouts in worlds", typed, "use --algo ppo")
    elif is_registered(rules.name):
        typed = f"algo gumbel with rules in Python ({rules.name})"
        yield "trees of rules in Python", ask("trees of rules in Python", typed, "use --algo ppo")
    usual = GumbelConfig()
    for one, feature in itertools.product(settings, (*OF_WORLDS, "gumbel.c_scale")):
        name = feature.removeprefix("gumbel.")
        if (given := getattr(one, name)) != getattr(usual, name):
            yield feature, ask(feature, f"{feature} {shown(given)}")


def of_ppo(settings: Sequence[PPOConfig]) -> Iterator[tuple[str, FeatureRequest]]:
    """What PPO's settings ask for. settings: those of all phases."""
    for one in settings:
        if any(one.value_clip.values):
            yield "ppo.value_clip", ask("ppo.value_clip", f"ppo.value_clip {one.value_clip}")
        if any(one.magnet.values):
            yield "ppo.magnet", ask("ppo.magnet", f"ppo.magnet {one.magnet}")
            if any(round(period) == 0 for period in one.magnet_period.values):
                typed = f"ppo.magnet_period {one.magnet_period}"
                instead = "give a --ppo.magnet-period from 1 on"
                yield "ppo.magnet_period 0", ask("ppo.magnet_period 0", typed, instead)


def of_networks(config: TrainConfig, nets: Mapping[str, NetConfig]) -> dict[str, FeatureRequest]:
    """What settings of networks ask for; those that a preset says ask for nothing elsewhere."""
    found: dict[str, FeatureRequest] = {}
    for role, net in nets.items():
        preset = list(said_by_presets(config, "net", role))
        for name, one in net_settings(net, role):
            if name in UNHEARD and any(same(net, table, name) for table in preset):
                continue
            found[f"{role}.{name}" if role else name] = one
        if net.full_critic:
            found["net.critic full"] = ask("net.critic full", "net.critic full")
        if net.sees:
            found["net.sees"] = ask("net.sees", "kinds sees", "leave sees out of --kinds")
        if net.critic_hidden:
            typed = f"net.critic_hidden {shown(net.critic_hidden)}"
            found["net.critic_hidden"] = ask("net.critic_hidden", typed)
        if (kind := f"net.kind {net.kind}") in FEATURES:
            typed = f"roles {role}.{kind}" if role else kind
            found[f"{role}.{kind}" if role else kind] = ask(kind, typed, "use --net.kind mlp")
    return found


def of_place(
    rules: Rules, config: TrainConfig, members: int
) -> Iterator[tuple[str, FeatureRequest]]:
    asked = {
        "population": f"a population of {members}" if members > 1 else "",
        "shared league": f"a population of {members} with league.shared" if members > 1 else "",
        "actors": f"actors {config.actors}" if config.actors else "",
        "replicas": f"replicas {config.replicas}" if config.replicas > 1 else "",
        "devices": f"devices {config.devices}" if "," in config.devices else "",
        "cluster": f"cluster {config.cluster}" if config.cluster else "",
        "pool cuda": "pool cuda" if config.pool == "cuda" else "",
        "own environment": rules.name if is_custom(rules) else "",
        "own learner": f"algo {config.algo}" if is_factory(config.algo) else "",
    }
    for name in ("rho_clip", "c_clip"):
        if (given := getattr(config.distributed, name)) != getattr(DistributedConfig, name):
            asked["late decisions"] = f"distributed.{name} {given:g}"
    del asked[TOGETHER[not config.league.shared]]
    for name, typed in asked.items():
        if typed:
            yield name, ask(name, typed, "" if name in TOGETHER else None)


def said_by_presets(
    config: TrainConfig, section: str, role: str = ""
) -> Iterator[Mapping[str, Any]]:
    """What presets of the game say about a section, or about that of a role."""
    if is_factory(config.game) or config.game not in game_names():
        return
    for gpu in (False, True):
        asked: dict[str, Any] = {"gpu": gpu, "hierarchy": config.hierarchy.on}
        for _, table in presets_of(config.game, config.algo, config.dqn.mode, **asked):
            yield table.get(section, {})
            yield table.get("roles", {}).get(role, {}).get(section, {})


def same(net: NetConfig, table: Mapping[str, Any], setting: str) -> bool:
    """Whether a table of `net` says the same of a setting, such as net.frames."""
    name = setting.removeprefix("net.")
    told = table.get(name)
    return name in table and (tuple(told) if isinstance(told, list) else told) == getattr(net, name)


def changed(section: Any, usual: Any) -> str:
    """The first setting that is not as usual, "" if there is none."""
    names = (field.name for field in fields(section))
    return next((name for name in names if getattr(section, name) != getattr(usual, name)), "")
