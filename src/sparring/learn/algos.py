"""Makes learners by the name of their algorithm, or from a custom factory."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from sparring import PLACED_LEARNERS
from sparring.config import (
    DQNConfig,
    GumbelConfig,
    PPOConfig,
    QRDQNConfig,
    SACConfig,
    TD3Config,
)
from sparring.errors import ConfigError, suggestion
from sparring.factories import is_factory, load_factory
from sparring.learn.dqn import DQN
from sparring.learn.gumbel import Gumbel
from sparring.learn.learner import Learner
from sparring.learn.memory import has_replay
from sparring.learn.plan import CPU, Plan
from sparring.learn.ppo import PPO
from sparring.learn.pqn import PQN
from sparring.learn.qrdqn import QRDQN
from sparring.learn.sac import SAC
from sparring.learn.td3 import TD3
from sparring.pools.protocol import GamePool

if TYPE_CHECKING:
    from sparring.learn.fused import Games

Factory = Callable[[Plan], Learner]
OFF_POLICY: dict[type, Callable[..., Learner]] = {
    DQNConfig: DQN,
    QRDQNConfig: QRDQN,
    SACConfig: SAC,
    TD3Config: TD3,
}
"""Learners with a replay buffer, by their settings."""


def host_learner(plan: Plan, pool: GamePool | None = None, **changes: Any) -> Any:
    """Make the learner of a plan on the host: it has a `SelfPlay`, called `playing`.

    pool: plays instead of the plan's games. changes: of `host_options`.
    """
    config, games = plan.settings[0], pool or plan.host_pool()
    options = {**host_options(plan), **changes}
    if isinstance(config, PPOConfig):
        options["turns"] = plan.turns
        return PPO(games, plan.collect, plan.roles or config, plan.net, **options)
    if isinstance(config, GumbelConfig):
        return Gumbel(games, plan.collect, config, plan.net, **options)
    if isinstance(config, DQNConfig) and config.mode == "rollouts":
        return PQN(games, plan.collect, config, plan.net, **options)
    kind = next(kind for settings, kind in OFF_POLICY.items() if isinstance(config, settings))
    return kind(games, plan.collect, config, plan.replay, plan.net, **options)


def make_on_host(plan: Plan) -> Learner:
    learner: Learner = host_learner(plan)
    return learner


def make_ppo(plan: Plan) -> Learner:
    """Make PPO on the host or as CUDA graphs, with a shared network or one per role."""
    if not plan.fused:
        return make_on_host(plan)
    from sparring.learn.fused import FusedPPO

    options: dict[str, Any] = {"hindsight": plan.hindsight, "average": plan.average}
    if plan.roles:
        options |= {"roles": plan.roles, "turns": plan.turns}
    else:
        options |= {**gpu_options(plan), "heads": plan.heads}
    options |= {"replicas": plan.replicas, "first_game": plan.first_game}
    return FusedPPO(fused_games(plan), plan.collect, plan.settings, plan.net, **options)


def make_dqn(plan: Plan) -> Learner:
    """Make DQN with a replay buffer, or PQN, which learns from rollouts."""
    if not plan.fused:
        return make_on_host(plan)
    from sparring.learn.fused.dqn import FusedDQN

    games = fused_games(plan)
    return FusedDQN(games, plan.collect, plan.settings, plan.replay, plan.net, **gpu_options(plan))


def make_sac(plan: Plan) -> Learner:
    """Make SAC or REDQ on the host or as CUDA graphs."""
    if not plan.fused:
        return make_on_host(plan)
    from sparring.learn.fused.sac import FusedSAC

    games = fused_games(plan)
    return FusedSAC(games, plan.collect, plan.settings, plan.replay, plan.net, **gpu_options(plan))


def make_gumbel(plan: Plan) -> Learner:
    """Make Gumbel AlphaZero on the host, where its network may be on a GPU, or as CUDA graphs."""
    if not plan.fused:
        return make_on_host(plan)
    from sparring.learn.fused.gumbel import FusedGumbel
    from sparring.learn.fused.kernels import GUMBEL_SOURCE
    from sparring.search.cuda import compile_ahead

    compile_ahead(plan.rules, torch.device(plan.device))
    games, options = fused_games(plan, GUMBEL_SOURCE), {**gpu_options(plan), "heads": plan.heads}
    return FusedGumbel(games, plan.collect, plan.settings, plan.net, **options)


def host_options(plan: Plan) -> dict[str, Any]:
    """Options of every learner on the host."""
    return {
        "seed": plan.seed,
        "threads": plan.threads,
        "device": plan.device,
        "by_role": plan.by_role,
        "slots": plan.participants.slots,
        "actors": plan.participants.actors,
        "first": plan.first[0] if plan.first else None,
        "hindsight": plan.hindsight,
        "first_row": plan.first_game * plan.rules.rows,
        "heads": plan.heads,
        "average": plan.average,
    }


def gpu_options(plan: Plan) -> dict[str, Any]:
    """Options of every learner of CUDA graphs."""
    slots = plan.participants.slots
    return {"by_role": plan.by_role, "slots": slots, "average": plan.average}


def fused_games(plan: Plan, source: str = "") -> Games:
    """Make the games of a learner of CUDA graphs: on the GPU, or on CPU threads.

    source: of the learner's kernels, if not those of PPO or of a replay buffer.
    """
    from sparring.learn.fused import MIN_SLOTS, DeviceGames, HostGames
    from sparring.learn.fused.kernels import PPO_SOURCE, REPLAY_SOURCE, compile_ahead

    compile_ahead(
        plan.rules,
        source or (REPLAY_SOURCE if has_replay(plan) else PPO_SOURCE),
        [role.net for role in plan.roles] or [plan.net],
        bf16=plan.collect.bf16,
        slots=plan.participants.slots,
        device=torch.device(plan.device),
    )
    games: Games
    if plan.games_on != CPU:
        games = DeviceGames(plan.device_pool(), plan.custom_rules)
    else:
        pool = plan.native_pool(slots=max(plan.collect.groups, MIN_SLOTS))
        games = HostGames(pool, plan.device)
    for member, overrides in enumerate(plan.first):
        games.apply_overrides(overrides, member)
    return games


LEARNERS: dict[str, Factory] = {
    "ppo": make_ppo,
    "dqn": make_dqn,
    "qrdqn": make_on_host,
    "sac": make_sac,
    "redq": make_sac,
    "td3": make_on_host,
    "gumbel": make_gumbel,
}
"""Factories by `algo`; a custom learner is module:factory."""


def factory_of(algo: str) -> Factory:
    """Return the factory of an algorithm, or a custom one."""
    if algo in LEARNERS:
        return LEARNERS[algo]
    if not is_factory(algo):
        raise ConfigError(
            f"algo {algo!r} is neither module:factory nor known{suggestion(algo, LEARNERS)}"
        )
    return load_factory(algo, "algo")


def factory_at(algo: str, place: str) -> Callable[..., Learner]:
    """Return the factory of a distributed learner. place: actors or replicas."""
    target = PLACED_LEARNERS.get(f"{algo}@{place}")
    if target is None:
        pairs = (name.split("@") for name in PLACED_LEARNERS)
        known = " or ".join(known for known, there in pairs if there == place)
        raise ConfigError(
            f"algo {algo} has no learner with {place}; use {known}, or leave {place} out"
        )
    module, _, function = target.partition(":")
    factory: Callable[..., Learner] = getattr(import_module(module), function)
    return factory
