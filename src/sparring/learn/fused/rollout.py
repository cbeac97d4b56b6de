"""The arrays of a rollout on a GPU, as `learn.rollout` has them, and its way to advantages.

Launches are those of `learn.transitions` and GAE, in csrc/cuda/rollout.cuh: links, discounts of one
network or of every role, and what is carried to the next rollout. Tests in tests/cuda hold links
and advantages equal to those of a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring.games.hidden import StateField
from sparring.games.rules import Rules
from sparring.kernels import KernelModule
from sparring.kernels.views import KernelView
from sparring.learn.advantages import Discounts
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.transitions import PENDING_DTYPE, check_pending, read_pending
from sparring.nets.heads import HIDDEN
from sparring.nets.hierarchy import RoleDetector
from sparring.pools.lineups import LEARNER

CUT_EVERY = 4
"""A rollout of n steps has room for n / CUT_EVERY truncations of each game. Further ones are
counted, and the decisions before them are not samples."""
EARNED = ("games", "length", "seats", "score")
"""Sums over the games that ended; `EpisodeSums` in csrc/cuda/pool.cuh."""


@dataclass(frozen=True)
class RolloutColumn:
    """A further array by place, which pending transitions keep."""

    name: str
    """Its name in snapshots."""
    by_place: Tensor
    """[places, ...]"""
    unknown: int = 0
    """Value if a snapshot has no such array."""
    fill: Callable[[], None] = lambda: None
    """Computes it after the rollout, before learning."""


class FusedRollout:
    """The rows of a rollout on a GPU, after places for pending transitions.

    Games are sorted by member of a population. Masks are bits.
    """

    def __init__(
        self,
        rules: Rules,
        games: int,
        steps: int,
        *,
        members: int,
        row_bytes: int,
        squash: bool,
        device: torch.device,
        chains: int = 1,
        policies: int = 1,
        final_legal: bool = False,
        examples: int = 0,
        remembers: bool = False,
        scores: bool = False,
        truth: StateField | None = None,
    ) -> None:
        """Allocate the arrays; captured graphs rely on their addresses.

        remembers: networks have memory, which follows the observation in rows.
        scores: store the final scores of games.
        truth: field of the game state that is stored with every row.
        examples: maximum of hindsight examples, whose rows follow the places.
        final_legal: store the legal actions of truncated games.
        policies: number of policies in games, the learner included.
        chains: of a seat's decisions, one or one per role.
        squash: continuous actions pass through tanh before games get them.
        """
        rows, seats, words = games * rules.rows, rules.seats, rules.legal_words
        self.rules, self.games, self.steps, self.members = rules, games, steps, members
        self.rows, self.max_pending, self.squash = rows, games * seats * chains, squash
        self.chains, self.policies = chains, policies
        self.places, self.examples = self.max_pending + steps * rows, examples
        with torch.device(device):
            self.obs = torch.zeros(self.places + examples, row_bytes, dtype=torch.uint8)
            self.legal = torch.zeros(self.places, words, dtype=torch.int64)
            self.action = torch.zeros(self.places, dtype=torch.int32)
            if rules.box:  # as sampled, before bounds or squashing
                self.action = torch.zeros(self.places, rules.box)
            self.played = torch.zeros(rows, rules.box)
            """Actions of a step for the games, if they differ from the sampled ones."""
            # New memory of the seat of each row of a step.
            self.remembered = (
                torch.zeros(rows, (row_bytes - rules.obs_bytes) // 4) if remembers else None
            )
            self.log_prob = torch.zeros(self.places)
            self.value = torch.zeros(self.places)
            self.seat = torch.zeros(steps, rows, dtype=torch.int8)
            self.role = torch.zeros(steps, rows, dtype=torch.int8)
            self.policy = torch.zeros(steps, rows, dtype=torch.int16)
            self.reward = torch.zeros(steps, games, seats, len(rules.roles))
            self.skipped = torch.zeros(steps, games, seats, dtype=torch.uint16)
            self.record: Tensor | None = None
            """[steps, games, seats], goal results, with hindsight."""
            if examples:
                self.record = torch.zeros(steps, games, seats, dtype=torch.int32)
            self._make_for_heads(scores, truth)
            self.terminated = torch.zeros(steps, games, dtype=torch.bool)
            self.truncated = torch.zeros(steps, games, dtype=torch.bool)
            self.final_value = torch.zeros(steps, games, seats)
            # Games that ended: sums, and final observations of truncated ones. A game's first
            # truncation is in layer 0, its second in layer 1: the order of threads does not matter.
            self.earned = torch.zeros(games, len(EARNED))
            self.met = torch.zeros(members, policies + len(rules.bots), 3, dtype=torch.int32)
            """Games won, drawn and lost against policies, then bots."""
            self.counts = torch.zeros(members, len(rules.counters), dtype=torch.int64)
            """Counters of the rules at the learner's seats."""
            layers = -(-steps // CUT_EVERY)
            self.cut_obs = torch.zeros(layers, rows, row_bytes, dtype=torch.uint8)
            self.cut_at = torch.zeros(layers, rows, dtype=torch.int32)
            self.cut_count = torch.zeros(games, dtype=torch.int32)
            self.final_legal: Tensor | None = None
            """Legal actions of the seats that were to move in truncated games."""
            if final_legal:
                self.final_legal = torch.zeros(steps, games, seats, words, dtype=torch.int64)
            # Transitions, advantages, and pending transitions.
            self.open = torch.zeros(
                self.max_pending, PENDING_DTYPE.itemsize // 4, dtype=torch.int32
            )
            self.open[:, 0] = -1
            self.end = torch.zeros(self.places, dtype=torch.uint8)
            self.next = torch.zeros(self.places, dtype=torch.int32)
            self.paid = torch.zeros(self.places)
            self.discount = torch.zeros(self.places)
            self.tail, self.advantage = torch.zeros(self.places), torch.zeros(self.places)

    def _make_for_heads(self, scores: bool, truth: StateField | None) -> None:
        self.columns: list[RolloutColumn] = []
        """Further arrays by place, for loss terms."""
        shape = self.steps, self.games, self.rules.seats
        self.final_score = torch.zeros(shape) if scores else None
        """Final scores of games that ended in a step, for outcome heads."""
        self.truth = truth
        self.hidden: Tensor | None = None
        """By place, a field of the game state."""
        if truth:
            self.hidden = torch.zeros(self.places, truth.bytes, dtype=torch.uint8)
            self.columns.append(RolloutColumn(HIDDEN, self.hidden))

    def cut_layers(self) -> int:
        """Number of layers of truncations that the last rollout filled. Synchronizes."""
        return min(int(self.cut_count.max()), len(self.cut_at))

    def cuts_dropped(self) -> Tensor:
        """By game, the truncations of the last rollout that did not fit."""
        return (self.cut_count - len(self.cut_at)).clamp(min=0)

    def at(self, step: int, rows: slice | None = None) -> slice:
        """The places of a step's rows, or of some of them."""
        first = self.max_pending + step * self.rows
        start, stop = (rows.start, rows.stop) if rows else (0, self.rows)
        return slice(first + start, first + stop)

    def rows_of(self, step: int) -> dict[str, Tensor]:
        at = self.at(step)
        of_step = {name: getattr(self, name)[step] for name in ("seat", "role", "policy")}
        return {"obs": self.obs[at], "legal": self.legal[at], **of_step}

    def outcome_of(self, step: int) -> dict[str, Tensor]:
        """Arrays of a step that games write: rewards and ends."""
        names = ("reward", "skipped", "terminated", "truncated")
        record = {"goal_result": self.record[step]} if self.record is not None else {}
        return {**{name: getattr(self, name)[step] for name in names}, **record}

    def ends(self, step: int) -> dict[str, Tensor | None]:
        """Arrays that games that end in a step write."""
        names = ("earned", "cut_obs", "cut_at", "cut_count")
        score = self.final_score[step] if self.final_score is not None else None
        return {**{name: getattr(self, name) for name in names}, "score": score}

    def keep_truth(self, step: int, tables: Tensor, rows: slice | None = None) -> None:
        """Store a field of the game state with the rows of a step. tables: states of the games."""
        if self.hidden is not None and self.truth:
            known = tables[:, self.truth.byte_slice, None].transpose(1, 2)
            each = self.rules.rows
            self.hidden[self.at(step, rows)].view(-1, each, self.truth.bytes).copy_(known)

    def fill_columns(self) -> None:
        """Compute the columns after the rollout."""
        for column in self.columns:
            column.fill()

    def keep_pending_columns(self) -> None:
        """Move the columns of pending transitions to the front."""
        for column in self.columns:
            rows = self.open[:, 0].long()
            kept, front = column.by_place[rows.clamp(min=0)], column.by_place[: self.max_pending]
            is_pending = (rows >= 0).view(-1, *[1] * (front.dim() - 1))
            front.copy_(torch.where(is_pending, kept, front))

    def given(self, step: int) -> Tensor:
        """Actions of a step for the games."""
        return self.played if self.squash else self.action[self.at(step)]

    # Pending transitions, in the layout of `learn.collect.Collector.pending_state`

    def pending_of(self, member: int) -> slice:
        """Places of a member's pending transitions."""
        each = self.max_pending // self.members
        return slice(member * each, (member + 1) * each)

    def pending_state(self, member: int) -> tuple[dict[str, Tensor], bytes]:
        """Copy a member's pending transitions and their rows to the host."""
        at = self.pending_of(member)
        rows = {"obs": self.obs[at].cpu(), "mask": mask_of(self.legal[at].cpu(), self.rules)}
        for name in ("action", "log_prob", "value"):
            rows[name] = getattr(self, name)[at].cpu()
        rows |= {column.name: column.by_place[at].cpu() for column in self.columns}
        return rows, self.open[at].cpu().numpy().tobytes()

    def load_pending_rows(self, member: int, rows: Mapping[str, Tensor], pending: bytes) -> None:
        """Restore `pending_state`."""
        at = self.pending_of(member)
        count = at.stop - at.start
        waiting = read_pending(pending, count)
        check_pending(waiting, self.rules, rows["action"].numpy())
        raw = waiting.view("i4").reshape(count, -1)
        self.open[at] = torch.from_numpy(raw).to(self.open.device)
        for name in ("obs", "action", "log_prob", "value"):
            array = getattr(self, name)
            if name in rows:  # searches on the CPU keep no log-probabilities
                array[at] = rows[name].to(array.device)
        self.legal[at] = legal_of(rows["mask"], self.legal.shape[1]).to(self.legal.device)
        for column in self.columns:
            to = column.by_place[at]
            to.copy_(rows.get(column.name, torch.full_like(to, column.unknown)))


def mask_of(legal: Tensor, rules: Rules) -> Tensor:
    """Unpack legal actions [rows, words] into masks of bytes [rows, actions]."""
    eights = legal.contiguous().view(torch.uint8).unsqueeze(-1)
    bits = eights >> torch.arange(8, dtype=torch.uint8, device=legal.device) & 1
    return bits.flatten(1)[:, : rules.actions].contiguous()


def legal_of(mask: Tensor, words: int) -> Tensor:
    """Pack masks of bytes [rows, actions] into 64-bit words [rows, words]."""
    padded = torch.zeros(len(mask), words * 64, dtype=torch.uint8, device=mask.device)
    padded[:, : mask.shape[1]] = mask
    shifts = torch.arange(8, dtype=torch.uint8, device=mask.device)
    eights = (padded.view(len(mask), -1, 8) << shifts).sum(-1, dtype=torch.uint8)
    return eights.view(torch.int64)


PLAYED = ("seat", "role", "policy", "reward", "terminated", "truncated", "skipped")
LINKED = ("end", "next", "paid", "discount", "tail")
ROWS = ("obs", "legal", "action", "log_prob", "value")


def rollout_view(
    kernels: KernelModule, rollout: FusedRollout, final_role: Tensor | None = None
) -> KernelView:
    """View of a rollout; discounts of members are in `estimate_view`.

    final_role: role of the bootstrap value of truncated games; None: all roles.
    """
    rules = rollout.rules
    return kernels.view(
        "RolloutView",
        **{name: getattr(rollout, name) for name in (*PLAYED, "final_value")},
        pending=rollout.open,
        steps=rollout.steps,
        games=rollout.games,
        rows=rules.rows,
        seats=rules.seats,
        roles=len(rules.roles),
        chains=rollout.chains,
        learner=LEARNER,
        gamma=0.0,
        gamma_into=None,
        gamma_of=None,
        lambda_of=None,
        ended_by=None,
        final_role=final_role,
    )


def links_view(kernels: KernelModule, rollout: FusedRollout) -> KernelView:
    """View of the transitions."""
    arrays = (getattr(rollout, name) for name in LINKED)
    return kernels.view("Links", **dict(zip(kernels.names("Links"), arrays, strict=True)))


def estimate_view(
    kernels: KernelModule, rollout: FusedRollout, *, apart: int, gamma_into: Tensor, **given: Any
) -> KernelView:
    """View of discounts and advantages.

    given: `gamma` and `gae_lambda` of every member, with a stride of `apart` numbers; and
        discounts by role.
    """
    by_role = dict.fromkeys(("gamma_of", "lambda_of", "ended_by"))
    return kernels.view(
        "EstimateView",
        **by_role | given,
        hparams_stride=apart,
        gamma_into=gamma_into,
        value=rollout.value,
        advantage=rollout.advantage,
        each=rollout.games // rollout.members,
    )


class RoleDiscounts:
    """Discounts by role and member, and the role of bootstrap values of truncated games."""

    def __init__(self, rollout: FusedRollout) -> None:
        self.rollout, device = rollout, rollout.obs.device
        self.role_detector = RoleDetector(rollout.rules).to(device)
        shape = rollout.members, len(rollout.rules.roles)
        with torch.device(device):
            self.gamma_into, self.gamma_of, self.lambda_of = (torch.zeros(shape) for _ in range(3))
            self.ended_by = torch.zeros(shape, dtype=torch.int32)
            self.final_role = torch.zeros(rollout.final_value.shape, dtype=torch.int8)

    def send(self, found: Sequence[Discounts]) -> None:
        """Copy the discounts of all members to the device."""
        for name in ("gamma_into", "gamma_of", "lambda_of", "ended_by"):
            getattr(self, name).copy_(torch.tensor([getattr(mine, name) for mine in found]))

    def role_at(self, number: int) -> Tensor:
        """Role of every row in layer `number` of truncations."""
        role: Tensor = self.role_detector(self.rollout.cut_obs[number])
        return role.to(torch.int8)

    def view(self, kernels: KernelModule) -> KernelView:
        """See `estimate_view`."""
        return estimate_view(
            kernels,
            self.rollout,
            gamma=self.gamma_of,
            gae_lambda=self.lambda_of,
            apart=self.gamma_of.shape[1],
            gamma_into=self.gamma_into,
            gamma_of=self.gamma_of,
            lambda_of=self.lambda_of,
            ended_by=self.ended_by,
        )


def keep_pending(kernels: KernelModule, rollout: FusedRollout) -> None:
    """Move pending transitions to the front of the rollout, for the next one."""
    rollout.keep_pending_columns()
    view = kernels.view(
        "PendingView",
        **{name: getattr(rollout, name) for name in ROWS},
        pending=rollout.open,
        pending_count=rollout.max_pending,
        row_bytes=rollout.obs.shape[1],
    )
    kernels.move_pending(blocks_of(rollout.max_pending, 8), 256, view)
