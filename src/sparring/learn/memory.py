"""Whether what a plan collects fits into memory, asked before anything is made."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sparring.config import DQNConfig, NetConfig, SACConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.plan import CPU, Plan
from sparring.learn.replay import replay_bytes
from sparring.learn.ring import MAX_PLACES, check_capacity
from sparring.learn.transitions import PENDING_DTYPE
from sparring.machine import UNCHECKED_BYTES, check_memory_budget, format_bytes, free_memory
from sparring.nets.sizes import pass_bytes
from sparring.pools.limits import bytes_per_game

LINK_BYTES = 17
"""Of every row in `Transitions`: end, next, paid, discount and tail."""
LIST_BYTES = 16
"""Of every row in the lists of samples that each network has on a GPU, with marks and ranks."""
PASSING_BYTES = 64
"""Of every row on a GPU: what an update makes and forgets."""
SEGMENT_BYTES = 40
"""Of every step of every seat on a GPU, where decisions are learned from in a row."""
WORKSPACE = 2**30
"""What the driver, libraries, graphs and gaps between arrays take of a GPU's memory; on an H200
0.2 to 0.9 GiB were seen with perceptrons."""
EXAMPLE_BYTES = 12
"""Of every example on a GPU, besides its row: where it comes from, its place and its action."""
SORT_BYTES = 16
"""Of every row that frozen networks answer: its place, the row and the group there, its turn."""
GAPS = 2
"""Passes over boards make what they need anew, and graphs keep it: about as much lies between."""
IMAGES = 4
"""Copies of a row and its mask that are there at once while a minibatch is mirrored."""


@dataclass(frozen=True)
class MemoryUse:
    """What a plan takes of one memory: something for every game, and something besides."""

    per_game: int
    """Of every `collect.games`, for all members together."""
    fixed: int = 0

    def bytes_for(self, games: int) -> int:
        return self.per_game * games + self.fixed

    def games_in(self, free: int) -> int:
        """The most games that fit."""
        return max(free - self.fixed, 0) // max(self.per_game, 1)

    def demand(self, games: int, what: str, *, free: int | None = None) -> None:
        """Refuse more games than fit; free: bytes there are, None asks the machine."""
        left = None if free is None else max(free - self.fixed, 0)
        check_memory_budget("collect.games", games, self.per_game, what, free=left)


def check_memory(plan: Plan) -> None:
    """Refuse games and rollouts that do not fit."""
    rules, collect = plan.rules, plan.collect
    host, device = memory_uses(plan)
    what = f"the games and a rollout of {collect.steps} steps (collect.steps)"
    if host.per_game:
        host.demand(collect.games, what)
    if remembers(plan) and not plan.fused:
        check_replay(plan, host.bytes_for(collect.games))
    if device.per_game:
        free = torch.cuda.mem_get_info(plan.device)[0]
        device.demand(collect.games, f"{what} on the GPU", free=free)
        if remembers(plan) and plan.fused:
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
    """What a plan takes of the machine's memory, and of the GPU's."""
    rules, collect, members = plan.rules, plan.collect, len(plan.seeds)
    pool = 0 if plan.custom else bytes_per_game(rules, memory=plan.memory)
    custom_learner = plan.settings[0] is None  # what it keeps is its own affair
    row, chains, records = row_bytes_of(plan), chains_of(plan), plan.hindsight.relabels
    rollout = 0
    if not custom_learner:
        rollout = rollout_bytes(rules, row, collect.steps, chains=chains, records=records)
    host = pool * (plan.games_on == CPU) + rollout * (not plan.fused)
    if not plan.fused:
        return MemoryUse(members * host), MemoryUse(members * (pool + rollout - host))
    device = pool - host + fused_rollout_bytes(plan) + learning_bytes(plan)
    device += rules.rows * acting_bytes(plan)
    return MemoryUse(members * host), MemoryUse(members * device, minibatch_bytes(plan) + WORKSPACE)


def memory_line(plan: Plan) -> str:
    """Say what a game takes of the GPU's memory, and how many fit beside each other."""
    room = memory_uses(plan)[1]
    free = torch.cuda.mem_get_info(plan.device)[0] + torch.cuda.memory_reserved(plan.device)
    each, members = room.per_game // len(plan.seeds), len(plan.seeds)
    of = f" of each of {members} runs" if members > 1 else ""
    return (
        f"{format_bytes(each)} per game on the GPU and {format_bytes(room.fixed)} besides; of "
        f"{format_bytes(free)} that are free, at most {room.games_in(free)} games{of} "
        "(collect.games) fit"
    )


def row_bytes_of(plan: Plan) -> int:
    """Bytes of a row: the observation, and what its seat remembers."""
    memory = plan.custom.memory_bytes if plan.custom else plan.memory
    return plan.rules.obs_bytes + memory


def chains_of(plan: Plan) -> int:
    """How many decisions of a seat may be open at once."""
    return len(plan.rules.roles) if plan.by_role else 1


def fused_rollout_bytes(plan: Plan) -> int:
    """Bytes per game of the arrays of a rollout on a GPU, asked of the arrays themselves."""
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
        final_legal=remembers(plan),
        examples=int(plan.hindsight.relabels),
        remembers=bool(plan.net.memory),
    )
    return sum(array.nbytes for array in vars(rollout).values() if isinstance(array, torch.Tensor))


def learning_bytes(plan: Plan) -> int:
    """Bytes per game of what updates on a GPU keep of a rollout: samples, and examples."""
    from sparring.learn.fused.examples import room_for

    rules, collect = plan.rules, plan.collect
    networks = max(len(plan.roles), 1)
    place = networks * LIST_BYTES + PASSING_BYTES
    listed = place * places_per_game(rules, collect.steps, chains_of(plan))
    if plan.net.recurrent:
        listed += SEGMENT_BYTES * rules.seats * (collect.steps + 1)
    if not plan.hindsight.relabels:
        return listed
    rows = collect.games * collect.steps * rules.rows
    each = row_bytes_of(plan) + networks * EXAMPLE_BYTES
    return listed - (-room_for(rows, plan.hindsight.share) * each // collect.games)


def acting_bytes(plan: Plan) -> int:
    """Bytes of a row for those who answer it: every network for itself, frozen ones together.

    With games on CPU threads, which are answered slot by slot, another pass looks at cut games.
    """
    bf16, rules = plan.collect.bf16, plan.rules
    nets = [role.net for role in plan.roles] or [plan.net]
    passes = 2 if plan.games_on == CPU else 1
    own = passes * sum(pass_bytes(rules, net, bf16=bf16, learn=False) for net in nets)
    if not plan.participants.slots:
        return own
    return own + pass_bytes(rules, plan.net, bf16=bf16, learn=False) + SORT_BYTES


def minibatch_bytes(plan: Plan) -> int:
    """Bytes of all minibatches that are learned from at once: one of each member."""
    bf16, rules = plan.collect.bf16, plan.rules
    pairs = [(role.net, role.settings[0]) for role in plan.roles] or [(plan.net, plan.settings[0])]
    images = IMAGES * plan.collect.mirror * (rules.obs_bytes + 64 * rules.legal_words)
    return len(plan.seeds) * sum(
        minibatch_rows(plan, net, getattr(own, "minibatch", 0))
        * (
            pass_bytes(rules, net, bf16=bf16, learn=True) * (GAPS if net.kind == "residual" else 1)
            + images
        )
        for net, own in pairs
    )


def minibatch_rows(plan: Plan, net: NetConfig, samples: int) -> int:
    """Rows of a minibatch of so many samples: in segments there is room for nobody's besides."""
    if not net.recurrent:
        return samples
    from sparring.learn.fused.sequences import Cut

    rules, collect = plan.rules, plan.collect
    played = collect.games * collect.steps * rules.rows
    seats, length = collect.games * rules.seats, min(net.bptt_steps, collect.steps + 1)
    cut = Cut(1, seats, collect.steps, seats + played, length)
    return cut.room(max(1, round(played / samples))) * length


def remembers(plan: Plan) -> bool:
    """Whether the learner has a replay."""
    own = plan.settings[0]
    return isinstance(own, SACConfig) or (isinstance(own, DQNConfig) and own.mode == "replay")


def check_replay(plan: Plan, taken: int, free: int | None = None) -> None:
    """Refuse a replay that does not fit beside what is taken, or that a rollout would overrun.

    free: bytes of the GPU; None asks the machine.
    """
    rules, collect, replay = plan.rules, plan.collect, plan.replay
    opened = rules.seats * chains_of(plan)
    check_capacity(replay.capacity, collect.games * (collect.steps * rules.rows + opened))
    where, members = "" if free is None else " on the GPU", len(plan.seeds)
    if members * replay.capacity > MAX_PLACES:  # there the rings of all members are one array
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
    left = max((free_memory() if free is None else free) - taken, 0)
    if needed > left:
        of = f" of each of {members} runs" if members > 1 else ""
        raise ConfigError(
            f"replay.capacity {replay.capacity}{of} needs {format_bytes(needed)}{where}, "
            f"{format_bytes(left)} are free; at most {int(left / needed * replay.capacity)} fit"
        )


def places_per_game(rules: Rules, steps: int, chains: int = 1) -> int:
    """Rows of a rollout, and places for decisions that the one before left open."""
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
    """Bytes per game of a `Rollout` and its `Transitions`.

    chains: of a seat's decisions. records: what came of goals is kept, too.
    """
    place = row_bytes + rules.actions + 4 * max(rules.box, 1) + 4 * columns + LINK_BYTES
    row = 1 + 1 + 2  # seat, role, policy
    # Paid, skipped, value and its role, what came of a goal; two ends.
    step = rules.seats * (4 * len(rules.roles) + 2 + 4 + 1 + 4 * records) + 1 + 1
    opened = rules.seats * chains * PENDING_DTYPE.itemsize
    places = places_per_game(rules, steps, chains)
    return places * (place + 4 * records) + steps * (rules.rows * row + step) + opened
