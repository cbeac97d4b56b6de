"""Whether what a plan collects fits into memory, asked before anything is made."""

from __future__ import annotations

import torch

from sparring.config import DQNConfig, SACConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.plan import CPU, Plan
from sparring.learn.replay import replay_bytes
from sparring.learn.ring import MOST_PLACES, check_capacity
from sparring.learn.transitions import OPEN
from sparring.machine import UNNOTICED, demand_memory, free_memory, show_size
from sparring.pools.limits import bytes_per_game

LINK_BYTES = 17
"""Of every row in `Transitions`: end, next, paid, discount and tail."""


def demand_room(plan: Plan) -> None:
    """Refuse games and rollouts that do not fit."""
    rules, collect = plan.rules, plan.collect
    games = collect.games * len(plan.seeds)
    pool = 0 if plan.foreign else bytes_per_game(rules)
    memory = plan.foreign.memory_bytes if plan.foreign else 0
    own_learner = plan.settings[0] is None  # what it keeps is its own affair
    rollout = 0 if own_learner else rollout_bytes(rules, rules.obs_bytes + memory, collect.steps)
    host = pool * (plan.games_on == CPU) + rollout * (not plan.fused)
    what = f"the games and a rollout of {collect.steps} steps (collect.steps)"
    if host:
        demand_memory("collect.games", games, host, what)
    if remembers(plan) and not plan.fused:
        demand_replay(plan, games * host)
    # On the GPU a quarter of the rows has room for what cut games looked like.
    cuts = plan.fused * -(-collect.steps // 4) * rules.rows * rules.obs_bytes
    device = pool + rollout - host + cuts
    if device:
        free = torch.cuda.mem_get_info(plan.device)[0]
        demand_memory("collect.games", games, device, f"{what} on the GPU", free=free)
        if remembers(plan) and plan.fused:
            demand_replay(plan, games * device, free=free)
    places = games * places_per_game(rules, collect.steps)
    if places > MOST_PLACES:
        raise ConfigError(
            f"collect.games={collect.games}: with collect.steps={collect.steps} a rollout has "
            f"{places} rows, at most {MOST_PLACES} can be linked; make either smaller"
        )


def remembers(plan: Plan) -> bool:
    """Whether the learner has a replay."""
    own = plan.settings[0]
    return isinstance(own, SACConfig) or (isinstance(own, DQNConfig) and own.mode == "replay")


def demand_replay(plan: Plan, taken: int, free: int | None = None) -> None:
    """Refuse a replay that does not fit beside what is taken, or that a rollout would overrun.

    free: bytes of the GPU; None asks the machine.
    """
    rules, collect, replay = plan.rules, plan.collect, plan.replay
    opened = rules.seats * (len(rules.roles) if plan.by_role else 1)
    check_capacity(replay.capacity, collect.games * (collect.steps * rules.rows + opened))
    memory = plan.foreign.memory_bytes if plan.foreign else 0
    where, members = "" if free is None else " on the GPU", len(plan.seeds)
    if members * replay.capacity > MOST_PLACES:  # there the rings of all members are one array
        raise ConfigError(
            f"replay.capacity={replay.capacity} is too large for {members} runs together, at most "
            f"{MOST_PLACES // members}"
        )
    needed = members * replay_bytes(
        rules,
        rules.obs_bytes + memory,
        replay,
        device=bool(where),
        records=plan.hindsight.sees,
    )
    if free is None and needed < UNNOTICED:
        return
    left = max((free_memory() if free is None else free) - taken, 0)
    if needed > left:
        of = f" of each of {members} runs" if members > 1 else ""
        raise ConfigError(
            f"replay.capacity {replay.capacity}{of} needs {show_size(needed)}{where}, "
            f"{show_size(left)} are free; at most {int(left / needed * replay.capacity)} fit"
        )


def places_per_game(rules: Rules, steps: int) -> int:
    """Rows of a rollout, and places for decisions that the one before left open."""
    return rules.seats + steps * rules.rows


def rollout_bytes(rules: Rules, row_bytes: int, steps: int, columns: int = 2) -> int:
    """Bytes per game of a `Rollout` and its `Transitions`."""
    place = row_bytes + rules.actions + 4 * max(rules.box, 1) + 4 * columns + LINK_BYTES
    row = 1 + 1 + 2  # seat, role, policy
    # Paid, skipped, value and its role; two ends.
    step = rules.seats * (4 * len(rules.roles) + 2 + 4 + 1) + 1 + 1
    opened = rules.seats * OPEN.itemsize
    return places_per_game(rules, steps) * place + steps * (rules.rows * row + step) + opened
