"""From configurations to one plan: which game, line-ups, device, pool, network and learner."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from sparring.capabilities.refusals import FeatureRequest
from sparring.config import CollectConfig, TrainConfig
from sparring.config.algorithms import RATES
from sparring.curriculum.curriculum import START, Curriculum
from sparring.curriculum.reading import read_phases
from sparring.errors import ConfigError
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.games.seeds import check_seed
from sparring.learn.algos import LEARNERS, factory_at, factory_of
from sparring.learn.learner import Learner
from sparring.learn.members import TurnTaking, plan_of
from sparring.learn.memory import check_memory
from sparring.learn.plan import CPU, Plan, Turns, pays_apart
from sparring.machine import MAX_THREADS, check_threads
from sparring.nets.run.native import resolve_cpu
from sparring.pools.custom.base import CustomPool
from sparring.pools.protocol import GamePool
from sparring.pools.starts import read_starts
from sparring.training.budget import check_stop
from sparring.training.planning.algorithms import SECTIONS
from sparring.training.planning.checks import (
    check_hindsight,
    check_settings,
    check_targets,
    within_memory,
)
from sparring.training.planning.curricula import (
    check_alike,
    check_custom,
    check_same_chains,
    curriculum_of,
    first_overrides,
    rules_of_members,
)
from sparring.training.planning.custom import (
    by_factory,
    check_vector,
    custom_pool,
    is_perceptron,
    one_game,
    require_code,
    rules_of,
)
from sparring.training.planning.gpus import gpus_of, learns_with_others
from sparring.training.planning.participants import participants_of
from sparring.training.planning.paths import paths_of
from sparring.training.planning.placement import choose_placement, played_elsewhere
from sparring.training.planning.requests import combination
from sparring.training.planning.roles import nets_by_role, read_roles
from sparring.training.planning.settings import check_against, check_exploitability

UNFIT = {
    "set": "its flags are set by its code",
    "pool": "it is stepped where it was created",
    "starts": "its reset decides where games start",
}
"""Settings that mean nothing to an environment of somebody's own, and why."""


def resolve(configs: Sequence[TrainConfig], **options: Any) -> Plan:
    """Decide what learns in a run or a population; see `decide`."""
    return decide(configs, **options)[0]


def decide(
    configs: Sequence[TrainConfig],
    *,
    pool: GamePool | None = None,
    opponents: Sequence[Any] = (),
    first_game: int = 0,
    played: bool = True,
    lr_factor: float = 1.0,
    replicas: int = 1,
    response: bool = False,
) -> tuple[Plan, tuple[Curriculum, ...]]:
    """Decide what learns in a run or a population, and read the phases of every member.

    pool: brings a custom environment; one that is named is made here, when nothing else is left to
    be refused. opponents: instead of the words of the configuration, with policies and functions
    among them. first_game: how many games of the same run are played by others before these.
    played: False where only what is refused is asked for; then no workers are measured or started.
    lr_factor: what learning rates are multiplied with, in a run that has diverged.
    replicas: learners that share the updates, each with its games.
    response: a response of `sparring exploit`, which alone may see what is hidden.
    """
    config, own = configs[0], pool is not None or by_factory(configs[0])
    elsewhere = played_elsewhere(config) or not played
    check_alike(configs)
    for member in configs:
        require_code(member)
    rules = rules_of(config, pool)
    check_meant(configs, rules, pool)
    roles = read_roles(rules, configs)
    nets = nets_by_role(roles, config)
    if not response and any(net.sees for net in (*nets.values(), *(one.net for one in configs))):
        raise ConfigError(
            "net.sees: who sees what is hidden never plays; leave it out, or measure what seeing "
            "is worth with sparring exploit POLICY --kinds sees"
        )
    played_by = rules_of_members(configs, rules)
    phases = [read_phases(*one) for one in zip(played_by, configs, strict=True)]
    participants = participants_of(rules, config, nets, opponents, phases[0])
    members = zip(configs, played_by, phases, strict=True)
    curricula = tuple(curriculum_of(*member, participants) for member in members)
    curriculum = curricula[0]
    if not config.hierarchy.on:  # whose roles have decisions of their own in any case
        check_same_chains([paid_by(one) for one in curricula])
    asked: Mapping[str, FeatureRequest] = {}
    for member, theirs, course in zip(configs, played_by, curricula, strict=True):
        paid = pays_apart(**paid_by(course))
        run = combination(
            theirs,
            member,
            nets,
            phases=course.phases,
            apart=participants.others,
            slots=participants.slots,
            members=len(configs),
            paid_by_role=paid,
        )
        if refused := run.refusal():
            raise ConfigError(refused)
        asked = {**run.asked, **asked}
        check_settings(theirs, member, nets)
        check_hindsight(theirs, member, course)
    place = choose_placement(config, asked.values())
    starts = read_starts(rules, config.starts)
    threads = check_threads(config.threads or min(os.cpu_count() or 1, MAX_THREADS))
    seeds = tuple(check_seed(member.seed) for member in configs)
    first = first_overrides(played_by, curricula)
    games = None
    if own:
        if config.replicas > 1:
            check_vector(config, f"replicas {config.replicas}", config.replicas)
        games_each = max(config.collect.games // config.replicas, 1)
        mine = replace(config, collect=replace(config.collect, games=games_each))
        games = pool or (one_game(config) if elsewhere else custom_pool(mine, first_game))
        check_games(mine, games, curriculum, elsewhere=elsewhere)
    plan = Plan(
        rules=rules,
        participants=participants,
        custom_rules=played_by if any(one is not rules for one in played_by) else (),
        **paid_by(curriculum),
        starts=starts,
        seeds=seeds,
        threads=threads,
        device=place.device,
        games_on=place.games_on,
        fused=place.fused,
        collect=computed(rules, config, place.device),
        net=config.net,
        settings=tuple(calmer(getattr(one, config.algo, None), lr_factor) for one in configs),
        replay=config.replay,
        options=dict(read_pair(word, "algo_set") for word in config.algo_set),
        custom=games,
        first_game=first_game,
        replicas=replicas,
        hindsight=config.hindsight,
        heads=config.heads,
        average=config.average,
        roles=tuple(
            replace(role, settings=tuple(calmer(one, lr_factor) for one in role.settings))
            for role in roles
        ),
        turns=Turns(config.hierarchy.learn, config.hierarchy.turn),
        first=first,
        lr_factor=lr_factor,
    )
    each = config.collect.games // max(len(gpus_of(config)), 1)
    check_memory(replace(plan, collect=replace(plan.collect, games=max(each, 1))))
    paths = paths_of(config.algo, plan, place.because)
    return replace(plan, paths=paths), curricula


def calmer(settings: Any, factor: float) -> Any:
    """Settings of an algorithm with other learning rates; a learner of one's own has none."""
    if factor == 1 or settings is None:
        return settings
    rates = {name: getattr(settings, name) for name in RATES if hasattr(settings, name)}
    return replace(settings, **{name: rate.scaled(factor) for name, rate in rates.items()})


def computed(rules: Rules, config: TrainConfig, device: str) -> CollectConfig:
    """How games are played and networks computed; on a CPU as this machine can."""
    if device != CPU:
        return config.collect
    perceptron = is_perceptron(rules, config.net)
    return replace(config.collect, cpu=resolve_cpu(config.collect.cpu, perceptron=perceptron))


def paid_by(curriculum: Curriculum) -> dict[str, Any]:
    return {
        "rewards": curriculum.rewards_at(0, START, START),
        "paid_by_role": curriculum.pays_by_role and not curriculum.is_constant,
    }


def check_meant(configs: Sequence[TrainConfig], rules: Rules, pool: GamePool | None) -> None:
    config = configs[0]
    if pool is not None or by_factory(config):
        check_fitting(config, rules)
    check_named(config, pool)
    for member in configs:
        check_against(rules, member.eval.against)
        check_targets(rules, member.eval.target)
        check_exploitability(rules, member.eval.exploitability)
        check_stop(member.eval, rules)
    if config.algo_set and config.algo in LEARNERS:
        raise ConfigError(
            f"algo_set is for a custom learner; {config.algo} has the settings "
            f"{' and '.join(SECTIONS[config.algo])}"
        )


def check_games(
    config: TrainConfig, games: GamePool, curriculum: Curriculum, *, elsewhere: bool
) -> None:
    if not elsewhere and config.collect.games != games.num_games:
        raise ConfigError(
            f"collect.games {config.collect.games}: the environment has {games.num_games} games"
        )
    if isinstance(games, CustomPool):
        check_custom(games, curriculum, named=by_factory(config))


def make_learner(config: TrainConfig, plan: Plan) -> Learner:
    """Return the learner of a plan."""
    torch.set_num_threads(plan.threads)
    with within_memory(plan):
        if learns_with_others(config):
            first: Learner = factory_at(config.algo, "replicas")(config, plan)
            return first
        if played_elsewhere(config):
            learner: Learner = factory_at(config.algo, "actors")(config, plan)
            return learner
        make = factory_of(config.algo)
        if len(plan.seeds) > 1 and not plan.fused:
            return TurnTaking([make(plan_of(plan, one)) for one in range(len(plan.seeds))])
        return make(plan)


def check_named(config: TrainConfig, pool: GamePool | None) -> None:
    replicas = config.replicas * (config.replicas > 1)
    processes = {"actors": config.actors, "replicas": replicas, "cluster": config.cluster}
    if config.workers != "0":
        processes["workers"] = config.workers
    for name, value in processes.items():
        if value and (pool is not None and not by_factory(config)):
            raise ConfigError(
                f"{name} {value}: other processes make environments by a name; give "
                "module:factory, or a function of a module instead of an object"
            )
        if value and name == "workers" and pool is None and not by_factory(config):
            raise ConfigError(
                f"workers {value}: {config.game} steps its games on threads; use --threads, or "
                "--actors for processes that play"
            )


def check_fitting(config: TrainConfig, rules: Rules) -> None:
    usual = TrainConfig()
    unfit = {
        name: (getattr(config, name), getattr(usual, name), why) for name, why in UNFIT.items()
    }
    slots = (config.collect.groups, usual.collect.groups)
    unfit["collect.groups"] = (*slots, "its games are stepped together")
    if not by_factory(config):
        for name in ("every_s", "every_decisions", "against", "target", "patience", "stop"):
            values = getattr(config.eval, name), getattr(usual.eval, name)
            unfit[f"eval.{name}"] = (
                *values,
                "given as an object, which other processes cannot evaluate",
            )
    for name, (given, default, why) in unfit.items():
        if given != default and (name, given) != ("pool", CPU):
            shown = ", ".join(map(str, given)) if isinstance(given, tuple) else given
            raise ConfigError(
                f"{name} {shown}: {rules.name} is a custom environment, {why}; leave it out"
            )
