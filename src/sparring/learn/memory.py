"""Memory use of a plan, checked before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sparring.config import NetConfig
from sparring.config.algorithms import REPLAYED
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.critic import critic_config
from sparring.learn.plan import CPU, Plan
from sparring.learn.replay import replay_bytes
from sparring.learn.ring import MAX_PLACES, check_capacity
from sparring.learn.transitions import PENDING_DTYPE
from sparring.machine import UNCHECKED_BYTES, check_memory_budget, format_bytes, free_memory
from sparring.nets.critic_rows import CriticRows, rules_read
from sparring.nets.sizes import pass_bytes
from sparring.pools.limits import bytes_per_game

LINK_BYTES = 17
"""Per row of `Transitions`: end, next, paid, discount and tail."""
LIST_BYTES = 16
"""Per row and network on a GPU: lists of samples, with marks and ranks."""
PASSING_BYTES = 64
"""Per row on a GPU: temporary arrays of an update."""
SEGMENT_BYTES = 40
"""Per step of every seat on a GPU, with recurrent networks."""
WORKSPACE = 2**30
"""GPU memory of driver, libraries, graphs and fragmentation; 0.2 to 0.9 GiB were measured on an
H200 with perceptrons."""
EXAMPLE_BYTES = 12
"""Per hindsight example on a GPU, besides its row: source, place and action."""
SORT_BYTES = 16
"""Per row of frozen networks: place, row, group and order."""
GAPS = 2
"""Factor for convolutions, whose temporary arrays fragment the memory of graphs."""
IMAGES = 4
"""Copies of a row and its mask while a minibatch is mirrored."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that a plan needs of host or GPU memory."""

    per_game: int
    """Bytes per `collect.games`, of all members."""
    fixed: int = 0

    def bytes_for(self, games: int) -> int:
        return self.per_game * games + self.fixed

    def games_in(self, free: int) -> int:
        """Return the largest number of games that fits."""
        return max(free - self.fixed, 0) // max(self.per_game, 1)

    def check(self, games: int, what: str, *, free: int | None = None) -> None:
        """Raise if the games do not fit. free: bytes available; None: those of the host."""
        free_bytes = None if free is None else max(free - self.fixed, 0)
        check_memory_budget("collect.games", games, self.per_game, what, free=free_bytes)


def check_memory(plan: Plan) -> None:
    """Raise if games, rollout or replay buffer do not fit into memory."""
    rules, collect = plan.rules, plan.collect
    host, device = memory_uses(plan)
    what = f"the games and a rollout of {collect.steps} steps (collect.steps)"
    if host.per_game:
        host.check(collect.games, what)
    if has_replay(plan) and not plan.fused:
        check_replay(plan, host.bytes_for(collect.games))
    if device.per_game:
        free = torch.cuda.mem_get_info(plan.device)[0]
        device.check(collect.games, f"{what} on the GPU", free=free)
        if has_replay(plan) and plan.fused:
            check_replay(plan, device.bytes_for(collect.games), free=free)
    places = (
        collect.games * len(plan.seeds) * places_per_game(rules, collect.steps, chains_of(plan))
    )
    if places > MAX_PLACES:
        raise ConfigError(
            f"collect.games={collect.games}: with collect.steps={collect.steps} a rollout has "
            f"{places} rows, at most {MAX_PLACES} can be linked; make either smaller"
        )


def memory_uses(plan: Plan) -> tuple[MemoryUse, MemoryUse]:
    """Return the use of host memory and of GPU memory."""
    rules, collect, members = plan.rules, plan.collect, len(plan.seeds)
    pool = 0 if plan.custom else bytes_per_game(rules, memory=plan.memory)
    custom_learner = plan.settings[0] is None  # its memory is not known
    row, chains, records = row_bytes_of(plan), chains_of(plan), plan.hindsight.relabels
    rollout = 0
    if not custom_learner:
        rollout = rollout_bytes(rules, row, collect.steps, chains=chains, records=records)
        rollout += critic_bytes(plan)
    host = pool * (plan.games_on == CPU) + rollout * (not plan.fused)
    if not plan.fused:
        return MemoryUse(members * host), MemoryUse(members * (pool + rollout - host))
    device = pool - host + fused_rollout_bytes(plan) + learning_bytes(plan) + critic_bytes(plan)
    device += rules.rows * acting_bytes(plan)
    return MemoryUse(members * host), MemoryUse(members * device, minibatch_bytes(plan) + WORKSPACE)


def memory_line(plan: Plan) -> str:
    """Return a line with the GPU memory per game and the number of games that fit."""
    use = memory_uses(plan)[1]
    free = torch.cuda.mem_get_info(plan.device)[0] + torch.cuda.memory_reserved(plan.device)
    each, members = use.per_game // len(plan.seeds), len(plan.seeds)
    of = f" of each of {members} runs" if members > 1 else ""
    return (
        f"{format_bytes(each)} per game on the GPU and {format_bytes(use.fixed)} besides; of "
        f"{format_bytes(free)} that are free, at most {use.games_in(free)} games{of} "
        "(collect.games) fit"
    )


def row_bytes_of(plan: Plan) -> int:
    """Bytes of a row: observation and memory of the seat."""
    memory = plan.custom.memory_bytes if plan.custom else plan.memory
    return rules_read(plan.rules, plan.net).obs_bytes + memory


def chains_of(plan: Plan) -> int:
    """Number of pending transitions that a seat may have at once."""
    return len(plan.rules.roles) if plan.by_role else 1


def fused_rollout_bytes(plan: Plan) -> int:
    """Bytes per game of a rollout on a GPU, measured on the meta device."""
    from sparring.learn.fused.rollout import FusedRollout

    rollout = FusedRollout(
        plan.rules,
        1,
        plan.collect.steps,
        members=1,
        row_bytes=row_bytes_of(plan),
        squash=False,
        device=torch.device("meta"),
        chains=chains_of(plan),
        policies=plan.participants.slots + 1,
        final_legal=has_replay(plan),
        examples=int(plan.hindsight.relabels),
        remembers=bool(plan.net.memory),
    )
    return sum(array.nbytes for array in vars(rollout).values() if isinstance(array, torch.Tensor))


def learning_bytes(plan: Plan) -> int:
    """Bytes per game of sample lists and hindsight examples on a GPU."""
    from sparring.learn.fused.examples import room_for

    rules, collect = plan.rules, plan.collect
    networks = max(len(plan.roles), 1)
    place = networks * LIST_BYTES + PASSING_BYTES
    list_bytes = place * places_per_game(rules, collect.steps, chains_of(plan))
    if plan.net.recurrent:
        list_bytes += SEGMENT_BYTES * rules.seats * (collect.steps + 1)
    if not plan.hindsight.relabels:
        return list_bytes
    rows = collect.games * collect.steps * rules.rows
    each = row_bytes_of(plan) + networks * EXAMPLE_BYTES
    return list_bytes - (-room_for(rows, plan.hindsight.share) * each // collect.games)


def critic_bytes(plan: Plan) -> int:
    """Bytes per game of the rows of a critic that sees what is hidden."""
    if not plan.net.full_critic:
        return 0
    rows = CriticRows(plan.rules)
    places = places_per_game(plan.rules, plan.collect.steps, chains_of(plan))
    return places * (rows.row_bytes + rows.state_field.bytes)


def acting_bytes(plan: Plan) -> int:
    """Bytes per row of forward passes while acting: every network, and one for all frozen ones.

    With games on CPU threads, which act group by group, another pass values truncated games.
    """
    bf16, rules = plan.collect.bf16, plan.rules
    nets = [role.net for role in plan.roles] or [plan.net]
    passes = 2 if plan.games_on == CPU else 1
    settings = passes * sum(pass_bytes(rules, net, bf16=bf16, learn=False) for net in nets)
    if not plan.participants.slots:
        return settings
    return settings + pass_bytes(rules, plan.net, bf16=bf16, learn=False) + SORT_BYTES


def minibatch_bytes(plan: Plan) -> int:
    """Bytes of one minibatch of each member."""
    bf16, rules = plan.collect.bf16, plan.rules
    pairs = [(role.net, role.settings[0]) for role in plan.roles] or [(plan.net, plan.settings[0])]
    if plan.net.full_critic:
        pairs.append((critic_config(plan.net), plan.settings[0]))
    images = IMAGES * plan.collect.mirror * (rules.obs_bytes + 64 * rules.legal_words)
    return len(plan.seeds) * sum(
        minibatch_rows(plan, net, getattr(settings, "minibatch", 0))
        * (
            pass_bytes(rules, net, bf16=bf16, learn=True) * (GAPS if net.kind == "residual" else 1)
            + images
        )
        for net, settings in pairs
    )


def minibatch_rows(plan: Plan, net: NetConfig, samples: int) -> int:
    """Rows of a minibatch of so many samples; segments of recurrent networks are padded."""
    if not net.recurrent:
        return samples
    from sparring.learn.fused.sequences import Cut

    rules, collect = plan.rules, plan.collect
    played = collect.games * collect.steps * rules.rows
    seats, length = collect.games * rules.seats, min(net.bptt_steps, collect.steps + 1)
    cut = Cut(1, seats, collect.steps, seats + played, length)
    return cut.room(max(1, round(played / samples))) * length


def has_replay(plan: Plan) -> bool:
    """Whether the learner has a replay buffer."""
    settings = plan.settings[0]
    return isinstance(settings, REPLAYED) and getattr(settings, "mode", "replay") == "replay"


def check_replay(plan: Plan, taken: int, free: int | None = None) -> None:
    """Raise if the replay buffer does not fit into memory, or is too small for a rollout.

    taken: bytes of games and rollout. free: bytes of the GPU; None: those of the host.
    """
    rules, collect, replay = plan.rules, plan.collect, plan.replay
    pending = rules.seats * chains_of(plan)
    check_capacity(replay.capacity, collect.games * (collect.steps * rules.rows + pending))
    where, members = "" if free is None else " on the GPU", len(plan.seeds)
    if members * replay.capacity > MAX_PLACES:  # on a GPU the rings of all members are one array
        raise ConfigError(
            f"replay.capacity={replay.capacity} is too large for {members} runs together, at most "
            f"{MAX_PLACES // members}"
        )
    needed = members * replay_bytes(
        rules,
        row_bytes_of(plan),
        replay,
        device=bool(where),
        records=plan.hindsight.relabels,
    )
    if free is None and needed < UNCHECKED_BYTES:
        return
    free_bytes = max((free_memory() if free is None else free) - taken, 0)
    if needed > free_bytes:
        of = f" of each of {members} runs" if members > 1 else ""
        raise ConfigError(
            f"replay.capacity {replay.capacity}{of} needs {format_bytes(needed)}{where}, "
            f"{format_bytes(free_bytes)} are free; at most "
            f"{int(free_bytes / needed * replay.capacity)} fit"
        )


def places_per_game(rules: Rules, steps: int, chains: int = 1) -> int:
    """Rows of a rollout, and places for pending transitions."""
    return rules.seats * chains + steps * rules.rows


def rollout_bytes(
    rules: Rules,
    row_bytes: int,
    steps: int,
    columns: int = 2,
    *,
    chains: int = 1,
    records: bool = False,
) -> int:
    """Bytes per game of a `Rollout` and its `Transitions`. records: with goal results."""
    place = row_bytes + rules.actions + 4 * max(rules.box, 1) + 4 * columns + LINK_BYTES
    row = 1 + 1 + 2  # seat, role, policy
    # Paid, skipped, value and its role, what came of a goal; two ends.
    step = rules.seats * (4 * len(rules.roles) + 2 + 4 + 1 + 4 * records) + 1 + 1
    pending = rules.seats * chains * PENDING_DTYPE.itemsize
    places = places_per_game(rules, steps, chains)
    return places * (place + 4 * records) + steps * (rules.rows * row + step) + pending
