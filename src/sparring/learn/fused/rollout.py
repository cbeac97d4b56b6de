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
from sparring.nets.hierarchy import RoleDetector
from sparring.nets.net import HIDDEN
from sparring.pools.lineups import LEARNER

CUT_EVERY = 4
"""Steps between two cuts of a game. All cuts of games that are cut no more often are kept; where
they are, the later ones of a rollout are counted, and the decision before them is not learned."""
EARNED = ("games", "length", "seats", "score")
"""Sums over the games that ended; `Earned` in csrc/cuda/pool.cuh."""


@dataclass(frozen=True)
class RolloutColumn:
    """What is kept of every place besides; decisions that are still open take theirs along."""

    name: str
    """What snapshots call that of open decisions."""
    by_place: Tensor
    """[places, ...]"""
    unknown: int = 0
    """What stands there if a snapshot has none."""
    fill: Callable[[], None] = lambda: None
    """Finishes it once the rollout was played, before anything is learned from it."""


class FusedRollout:
    """Rows lie behind the places of decisions carried over from the rollout before.

    Games come member by member of a population. Masks are bits.
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
        """Make the arrays, once and for all.

        remembers: networks write the memory that rows have behind the observation.
        scores: keep those of games that end.
        truth: bytes of the games' states that are kept with every row.
        examples: of decisions seen in hindsight, whose rows come behind the places.
        final_legal: keep what seats might do when games are cut.
        policies: those that may sit at tables, the learner included.
        chains: of a seat's decisions, one or one for every role.
        squash: continuous actions pass through tanh on their way to the games.
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
            if rules.box:  # as drawn, before bounds or squashing
                self.action = torch.zeros(self.places, rules.box)
            self.played = torch.zeros(rows, rules.box)
            """What the games are given in a step, if that is not what was drawn."""
            # What shows behind the next observation of the seat of each row of a step.
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
            """What came of goals, where somebody wants to know [steps, games, seats]."""
            if examples:
                self.record = torch.zeros(steps, games, seats, dtype=torch.int32)
            self._make_for_heads(scores, truth)
            self.terminated = torch.zeros(steps, games, dtype=torch.bool)
            self.truncated = torch.zeros(steps, games, dtype=torch.bool)
            self.final_value = torch.zeros(steps, games, seats)
            # Games that ended: sums, and what is seen where they were cut. A game's first cut of
            # the rollout lies in layer 0, its second in layer 1: no order of threads matters.
            self.earned = torch.zeros(games, len(EARNED))
            self.met = torch.zeros(members, policies + len(rules.bots), 3, dtype=torch.int32)
            """Games won, drawn and lost against policies, and behind them bots."""
            self.counts = torch.zeros(members, len(rules.counters), dtype=torch.int64)
            """What the rules counted at the learner's seats."""
            layers = -(-steps // CUT_EVERY)
            self.cut_obs = torch.zeros(layers, rows, row_bytes, dtype=torch.uint8)
            self.cut_at = torch.zeros(layers, rows, dtype=torch.int32)
            self.cut_count = torch.zeros(games, dtype=torch.int32)
            self.final_legal: Tensor | None = None
            """What seats that were to move might do when their game was cut."""
            if final_legal:
                self.final_legal = torch.zeros(steps, games, seats, words, dtype=torch.int64)
            # Transitions and advantages, and decisions that wait for the same seat's next one.
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
        """What terms of the loss want to know of every place besides."""
        shape = self.steps, self.games, self.rules.seats
        self.final_score = torch.zeros(shape) if scores else None
        """Of games that ended in a step, where somebody wants to know."""
        self.truth = truth
        self.hidden: Tensor | None = None
        """By place, what the game knew and the seat perhaps did not."""
        if truth:
            self.hidden = torch.zeros(self.places, truth.bytes, dtype=torch.uint8)
            self.columns.append(RolloutColumn(HIDDEN, self.hidden))

    def cut_layers(self) -> int:
        """How many layers of cuts the last rollout filled. Waits for the device."""
        return min(int(self.cut_count.max()), len(self.cut_at))

    def cuts_dropped(self) -> Tensor:
        """By game, how many cuts of the last rollout had no room."""
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
        """Where what a step brought is written."""
        names = ("reward", "skipped", "terminated", "truncated")
        record = {"record": self.record[step]} if self.record is not None else {}
        return {**{name: getattr(self, name)[step] for name in names}, **record}

    def ends(self, step: int) -> dict[str, Tensor | None]:
        """Where games that end in a step are noted."""
        names = ("earned", "cut_obs", "cut_at", "cut_count")
        score = self.final_score[step] if self.final_score is not None else None
        return {**{name: getattr(self, name) for name in names}, "score": score}

    def keep_truth(self, step: int, tables: Tensor, rows: slice | None = None) -> None:
        """Keep what games know while their rows of a step are asked. tables: of these games."""
        if self.hidden is not None and self.truth:
            known = tables[:, self.truth.stretch, None].transpose(1, 2)
            each = self.rules.rows
            self.hidden[self.at(step, rows)].view(-1, each, self.truth.bytes).copy_(known)

    def fill_columns(self) -> None:
        """Finish what is kept of every place, once the rollout was played."""
        for column in self.columns:
            column.fill()

    def carry_columns(self) -> None:
        """Keep that of decisions that are still open, before they are carried."""
        for column in self.columns:
            rows = self.open[:, 0].long()
            kept, front = column.by_place[rows.clamp(min=0)], column.by_place[: self.max_pending]
            waits = (rows >= 0).view(-1, *[1] * (front.dim() - 1))
            front.copy_(torch.where(waits, kept, front))

    def given(self, step: int) -> Tensor:
        """What the games are given for the answers to a step's rows."""
        return self.played if self.squash else self.action[self.at(step)]

    # Open decisions, in the layout of `learn.collect.Collector.front`

    def carried_of(self, member: int) -> slice:
        """The places of a member's open decisions."""
        each = self.max_pending // self.members
        return slice(member * each, (member + 1) * each)

    def pending_state(self, member: int) -> tuple[dict[str, Tensor], bytes]:
        """Copy a member's open decisions and their rows to the host."""
        at = self.carried_of(member)
        rows = {"obs": self.obs[at].cpu(), "mask": mask_of(self.legal[at].cpu(), self.rules)}
        for name in ("action", "log_prob", "value"):
            rows[name] = getattr(self, name)[at].cpu()
        rows |= {column.name: column.by_place[at].cpu() for column in self.columns}
        return rows, self.open[at].cpu().numpy().tobytes()

    def load_pending_rows(self, member: int, rows: Mapping[str, Tensor], pending: bytes) -> None:
        """Go on with the open decisions of another moment."""
        at = self.carried_of(member)
        count = at.stop - at.start
        waiting = read_pending(pending, count)
        check_pending(waiting, self.rules, rows["action"].numpy())
        opened = waiting.view("i4").reshape(count, -1)
        self.open[at] = torch.from_numpy(opened).to(self.open.device)
        for name in ("obs", "action", "log_prob", "value"):
            array = getattr(self, name)
            array[at] = rows[name].to(array.device)
        self.legal[at] = legal_of(rows["mask"], self.legal.shape[1]).to(self.legal.device)
        for column in self.columns:
            to = column.by_place[at]
            to.copy_(rows.get(column.name, torch.full_like(to, column.unknown)))


def mask_of(legal: Tensor, rules: Rules) -> Tensor:
    """Words of legal actions [rows, words] as bytes [rows, actions]."""
    eights = legal.contiguous().view(torch.uint8).unsqueeze(-1)
    bits = eights >> torch.arange(8, dtype=torch.uint8, device=legal.device) & 1
    return bits.flatten(1)[:, : rules.actions].contiguous()


def legal_of(mask: Tensor, words: int) -> Tensor:
    """Bytes of a mask [rows, actions] as 64-bit words [rows, words]."""
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
    """The rows as they were played. Discounts are the members' own, and come apart.

    final_role: to which role the worth of a cut game belongs; None: to all.
    """
    rules = rollout.rules
    return kernels.view(
        "RolloutView",
        **{name: getattr(rollout, name) for name in (*PLAYED, "final_value", "open")},
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
    """What follows every decision."""
    return kernels.view("Links", **{name: getattr(rollout, name) for name in LINKED})


def estimate_view(
    kernels: KernelModule, rollout: FusedRollout, *, apart: int, gamma_into: Tensor, **given: Any
) -> KernelView:
    """How rewards are discounted, and where advantages are written.

    given: `gamma` and `gae_lambda` of every member, `apart` numbers from one to the next; and
        discounts by role, where roles have their own.
    """
    by_role = dict.fromkeys(("gamma_of", "lambda_of", "ended_by"))
    return kernels.view(
        "EstimateView",
        **by_role | given,
        apart=apart,
        gamma_into=gamma_into,
        value=rollout.value,
        advantage=rollout.advantage,
        each=rollout.games // rollout.members,
    )


class RoleDiscounts:
    """The discounts of every role and member, and the role that a cut game's worth belongs to."""

    def __init__(self, rollout: FusedRollout) -> None:
        self.rollout, device = rollout, rollout.obs.device
        self.role_detector = RoleDetector(rollout.rules).to(device)
        shape = rollout.members, len(rollout.rules.roles)
        with torch.device(device):
            self.gamma_into, self.gamma_of, self.lambda_of = (torch.zeros(shape) for _ in range(3))
            self.ended_by = torch.zeros(shape, dtype=torch.int32)
            self.final_role = torch.zeros(rollout.final_value.shape, dtype=torch.int8)

    def send(self, found: Sequence[Discounts]) -> None:
        """Send those of every member to the device."""
        for name in ("gamma_into", "gamma_of", "lambda_of", "ended_by"):
            getattr(self, name).copy_(torch.tensor([getattr(mine, name) for mine in found]))

    def role_at(self, number: int) -> Tensor:
        """In which role every row was to decide when its game was cut for the `number`th time."""
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
    """Keep the decisions that are still open for the next rollout."""
    rollout.carry_columns()
    view = kernels.view(
        "CarriedView",
        **{name: getattr(rollout, name) for name in ("open", *ROWS)},
        carried=rollout.max_pending,
        row_bytes=rollout.obs.shape[1],
    )
    kernels.carry(blocks_of(rollout.max_pending, 8), 256, view)
