"""From configurations to one plan: which game, line-ups, device, pool, network and learner."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.curriculum.curriculum import BEGINNING
from sparring.errors import ConfigError, SparringWarning
from sparring.factories import load_factory
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.games.seeds import checked_seed
from sparring.learn.algos import LEARNERS, factory_of
from sparring.learn.cast import Cast
from sparring.learn.learner import Learner
from sparring.learn.mirror import demand_mirror
from sparring.learn.plan import CPU, Plan
from sparring.learn.room import demand_room
from sparring.machine import MOST_THREADS, check_threads
from sparring.nets.grouped_flat import unsupported as no_grouped_pass
from sparring.pools.foreign.base import ForeignPool
from sparring.pools.foreign.make import make_pool
from sparring.pools.protocol import GamePool
from sparring.pools.starts import read_starts
from sparring.training.planning.algorithms import REMEMBERS, ROLLOUTS, SECTIONS
from sparring.training.planning.casting import cast_of
from sparring.training.planning.curricula import check_own, curriculum_of, read_phases
from sparring.training.planning.demands import check_demands, within_memory
from sparring.training.planning.hindsight import check_hindsight
from sparring.training.planning.own import is_own, own_pool, rules_of
from sparring.training.planning.roles import read_roles, turns_of
from sparring.training.planning.settings import check_against

GPU = "cuda"
UNFIT = {
    "set": "whoever made it has set its flags",
    "pool": "it is stepped where it was made",
    "starts": "its own reset decides where games begin",
}
"""Settings that mean nothing to an environment of somebody's own, and why."""
MAY_DIFFER = ("seed", "name", "minutes", "updates", "runs", "json", "league")
"""What members of a population may have otherwise than the first, besides the algorithm's own."""


def resolve(
    configs: Sequence[TrainConfig],
    *,
    pool: GamePool | None = None,
    opponents: Sequence[Any] = (),
    first_game: int = 0,
) -> Plan:
    """Decide everything about a run or a population.

    pool: brings a foreign environment; one that is named is made here. opponents: instead of the
    words of the configuration, with policies and functions among them. first_game: how many games
    of the same run are played by others before these.
    """
    config = configs[0]
    demand_alike(configs)
    rules = rules_of(config, pool)
    if pool or is_own(config):
        demand_fitting(config, rules)
    demand_named(config, pool)
    elsewhere = bool(config.actors or config.cluster)
    pool = pool or named_pool(config, first_game, elsewhere=elsewhere)
    for member in configs:
        check_against(rules, member.eval.against)
    device = choose_device(config.device)
    ours = config.algo in LEARNERS
    if config.algo_set and ours:
        raise ConfigError(
            f"algo_set is for a learner of your own; {config.algo} has the settings "
            f"{' and '.join(SECTIONS[config.algo])}"
        )
    games_on = choose_pool(config.pool, device)
    if pool or not ours or elsewhere:  # stepped and learned from step by step
        games_on = CPU
    fused = ours and pool is None and device != CPU and not elsewhere
    hindrance = why_not_fused(config, rules.box, games_on) if fused else ""
    if hindrance:
        if games_on != CPU and (config.pool == "cuda" or len(configs) > 1):
            raise ConfigError(hindrance)
        text = f"slower than it could be, with games on the CPU: {hindrance}"
        warnings.warn(SparringWarning(text), stacklevel=2)
        games_on, fused = CPU, False
    if len(configs) > 1:
        demand_one_gpu(config, "a foreign environment" if pool else games_on)
    if pool and not elsewhere and config.collect.games != pool.num_games:
        raise ConfigError(
            f"collect.games {config.collect.games}: the environment has {pool.num_games} games"
        )
    cast = cast_of(rules, config, opponents, read_phases(rules, config))
    curriculum = curriculum_of(config, rules, cast)
    if isinstance(pool, ForeignPool):
        check_own(pool, curriculum, named=is_own(config))
    apart = why_apart(cast, config) if fused else ""
    if apart:
        games_on, fused = play_apart(apart, several=len(configs) > 1)
    for member in configs:
        check_demands(rules, member)
        check_hindsight(rules, member, curriculum)
    plan = Plan(
        rules=rules,
        cast=cast,
        rewards=curriculum.rewards_at(0, BEGINNING, BEGINNING),
        paid_by_role=curriculum.pays_by_role and not curriculum.is_plain,
        starts=read_starts(rules, config.starts),
        seeds=tuple(checked_seed(member.seed) for member in configs),
        threads=check_threads(config.threads or min(os.cpu_count() or 1, MOST_THREADS)),
        device=device,
        games_on=games_on,
        fused=fused,
        collect=config.collect,
        net=config.net,
        settings=tuple(getattr(member, config.algo, None) for member in configs),
        replay=config.replay,
        options=read_options(config.algo_set),
        foreign=pool,
        first_game=first_game,
        hindsight=config.hindsight,
        roles=read_roles(rules, configs),
        turns=turns_of(config.hierarchy),
    )
    demand_mirror(plan)
    demand_room(plan)
    return plan


def demand_one_gpu(config: TrainConfig, where: str) -> None:
    """Refuse a population whose games are not with its networks. where: they are."""
    if config.algo not in LEARNERS:
        raise ConfigError(f"algo {config.algo!r} trains one run at a time, no population")
    if not where.startswith(GPU):
        raise ConfigError(
            f"a population is trained on one GPU, games included; here the games are on {where}"
        )


def named_pool(config: TrainConfig, first_game: int, *, elsewhere: bool) -> GamePool | None:
    """The games of an environment that has a name; where actors play, one is made to look at."""
    if not is_own(config):
        return None
    return make_pool(config.game, copies=1) if elsewhere else own_pool(config, first_game)


def why_apart(cast: Cast, config: TrainConfig) -> str:
    """Say what keeps opponents from being answered inside the rollout's graph, "" if nothing."""
    if cast.actors:
        return f"{', '.join(cast.others)} has another network than the learner, or none"
    if config.hierarchy.on and cast.slots:
        return "past selves with a network for every role are answered step by step"
    return no_grouped_pass(config.net) if cast.slots else ""


def play_apart(why: str, *, several: bool) -> tuple[str, bool]:
    """Have the games on the CPU, where one call per policy can be made; say that it is slower."""
    if several:
        raise ConfigError(
            f"opponents cannot be answered on the GPU, where a population is trained: {why}"
        )
    text = f"slower than it could be, with games on the CPU: {why}"
    warnings.warn(SparringWarning(text), stacklevel=3)
    return CPU, False


FLEET = "sparring.cluster.actors.learner:make_learner"
"""What makes a learner whose games are played by other processes. By name: it is loaded only when
it is asked for, and stands above, as an actor plans its part of a run like any other."""


REPLICATED = "sparring.cluster.replicas.learner:make_learner"
"""What makes a learner that shares its work with others."""


def make_learner(config: TrainConfig, plan: Plan) -> Learner:
    """Return the learner of a plan."""
    torch.set_num_threads(plan.threads)
    with within_memory(config):
        if config.replicas > 1:
            first: Learner = load_factory(REPLICATED, "replicas")(config, plan)
            return first
        if config.actors or config.cluster:
            learner: Learner = load_factory(FLEET, "actors")(config, plan)
            return learner
        return factory_of(config.algo)(plan)


def demand_alike(configs: Sequence[TrainConfig]) -> None:
    """Refuse a population whose members differ in what they share."""
    may = (*MAY_DIFFER, configs[0].algo)
    mine = asdict(configs[0])
    for other in configs[1:]:
        theirs = asdict(other)
        differ = [key for key in mine if key not in may and mine[key] != theirs[key]]
        if differ:
            raise ConfigError(f"members of a population share {', '.join(differ)}")


def demand_named(config: TrainConfig, pool: GamePool | None) -> None:
    """Refuse processes that would have to make an environment which has no name."""
    processes = {"actors": config.actors, "cluster": config.cluster}
    if config.workers != "0":
        processes["workers"] = config.workers
    for name, value in processes.items():
        if value and (pool is not None and not is_own(config)):
            raise ConfigError(
                f"{name} {value}: other processes make environments by a name; give "
                "module:factory, or a function of a module instead of an object"
            )
        if value and name == "workers" and pool is None and not is_own(config):
            raise ConfigError(
                f"workers {value}: {config.game} steps its games on threads; use --threads, or "
                "--actors for processes that play"
            )


def demand_fitting(config: TrainConfig, rules: Rules) -> None:
    """Refuse settings that nothing would come of in an environment that somebody brought along."""
    usual = TrainConfig()
    unfit = {
        name: (getattr(config, name), getattr(usual, name), why) for name, why in UNFIT.items()
    }
    slots = (config.collect.slots, usual.collect.slots)
    unfit["collect.slots"] = (*slots, "its games are stepped together")
    if not is_own(config):
        for name in ("every_s", "every_decisions", "against", "target", "patience", "limit_s"):
            values = getattr(config.eval, name), getattr(usual.eval, name)
            unfit[f"eval.{name}"] = (*values, "given as an object, which nobody else can measure")
    for name, (given, default, why) in unfit.items():
        if given != default and (name, given) != ("pool", CPU):
            shown = ", ".join(map(str, given)) if isinstance(given, tuple) else given
            raise ConfigError(
                f"{name} {shown}: {rules.name} is your own environment, {why}; leave it out"
            )


def read_options(words: Sequence[str]) -> dict[str, str]:
    """Read the settings of a learner of one's own."""
    return dict(read_pair(word, "algo_set") for word in words)


def why_not_fused(config: TrainConfig, box: int, games_on: str) -> str:
    """Say what keeps rollout and update from being graphs on the GPU, "" if nothing does."""
    by_rollouts = config.algo == "dqn" and config.dqn.mode == ROLLOUTS
    if by_rollouts or config.net.normalise:
        what = "dqn.mode rollouts" if by_rollouts else "net.normalise"
        return f"{what} plays and learns step by step"
    if config.algo in REMEMBERS and (games_on == CPU or config.hindsight.sees):
        why = "is seen in hindsight" if config.hindsight.sees else "lies with the games"
        return f"what is remembered {why}, and is learned from step by step there"
    if games_on == CPU and config.hindsight.sees:
        return "games that are seen in hindsight go with the network, not on the CPU"
    from sparring import kernels

    try:
        kernels.version()
    except ConfigError as missing:
        return str(missing)
    if games_on == CPU and (box or config.hierarchy.on):
        which = "with continuous actions" if box else "with a network for every role"
        return f"games {which} go with the network, not on the CPU"
    return ""


def choose_device(name: str) -> str:
    """Return cpu or cuda; a GPU that is asked for and missing is an error."""
    if name == "auto":
        return GPU if torch.cuda.is_available() else CPU
    if name == CPU:
        return CPU
    named = re.fullmatch(r"cuda(?::(\d{1,4}))?", name, re.ASCII)
    if named is None:
        raise ConfigError(f"device {name!r} is unknown; use cpu, cuda or auto")
    if not torch.cuda.is_available():
        raise ConfigError(
            f"device {name!r}: torch sees no GPU here; use --device cpu, or install a CUDA build "
            "of torch and check `nvidia-smi`"
        )
    index, count = int(named[1] or 0), torch.cuda.device_count()
    if index >= count:
        some = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise ConfigError(f"device {name!r} is not there; torch sees {some}")
    if index:
        raise ConfigError(
            f"device {name!r}: training takes the first GPU it sees; make it that one with "
            f"CUDA_VISIBLE_DEVICES={index} and --device cuda"
        )
    return GPU


def choose_pool(name: str, device: str) -> str:
    """Return where the games live: with the network, unless said otherwise."""
    if name not in ("auto", CPU, "cuda"):
        raise ConfigError(f"pool {name!r} is unknown; use cpu, cuda or auto")
    if name == "cuda" and not device.startswith("cuda"):
        raise ConfigError(f"pool 'cuda' needs the network there too; the device is {device!r}")
    return CPU if CPU in (name, device) else device


def uses_gpu(device: str) -> bool:
    """Whether the network will live on a GPU."""
    return choose_device(device).startswith("cuda")
