"""Heads beside policy and value, and the anchor, on a GPU: terms of `learn.head_terms`, fed there.

All of it is index arithmetic of fixed shapes in torch, so that a graph can hold it and a test
compares it with the CPU's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring.games.hidden import StateField
from sparring.learn.fused.rollout import FusedRollout, mask_of
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.head_terms import REFERENCE, SEAT, WIDTH, KLPenalty
from sparring.learn.opponents import UNKNOWN, OpponentsTerm, next_actions
from sparring.learn.terms import OfColumn, OfTruth, Term, columns_of, truth_of
from sparring.learn.transitions import NOT_A_SAMPLE
from sparring.nets.heads import HIDDEN, OPPONENTS, POLICY, RESULTS, SCORE, WDL
from sparring.nets.net import MAX_SCALED_RETURN, SCALE_DECAY
from sparring.nets.run.captured import CapturedNet
from sparring.nets.run.flat import FlatNet, Pass


class FusedOutcomes:
    """Targets of outcome and score by place of the rollout; see `learn.head_terms`."""

    def __init__(self, net: FlatNet, rollout: FusedRollout, *, blend: bool) -> None:
        """Allocate the arrays. blend: values include the outcome head."""
        self.net, self.rollout, self.blend = net, rollout, blend
        steps, games, seats = rollout.steps, rollout.games, rollout.rules.seats
        self.ends = steps * games * seats
        """Entries of the table for games that end; those of games that go on follow."""
        self.passing: Pass = net.make_pass(games * seats // net.members, learn=False)
        with torch.device(net.device):
            self.step = torch.arange(steps)[:, None]
            self.game = torch.arange(rollout.rows) // rollout.rules.rows
            self.owner = torch.arange(rollout.max_pending) // rollout.chains
            """Of pending transitions: game * seats + seat."""
            self.place = torch.arange(rollout.places)
            self.alone = torch.eye(seats, dtype=torch.bool)
            self.truncations = torch.full((self.ends + 1, WIDTH), torch.nan)
            """Predictions for truncated games; the last entry is unused."""
            self.result = torch.full((rollout.places, WIDTH), torch.nan)
            self.final = torch.zeros(rollout.places, dtype=torch.bool)
            self.score = torch.zeros(rollout.places)
            """Divided by its scale."""

    def predictions(self, at: Pass) -> Tensor:
        """Predictions of a pass for its rows [rows of all members, WIDTH]."""
        members, rows = at.value.shape[:2]
        found = torch.zeros(members, rows, WIDTH, device=self.net.device)
        if WDL in at.extra_outputs:
            found[..., :RESULTS] = at.extra_outputs[WDL].softmax(-1)
        if SCORE in at.extra_outputs:
            found[..., RESULTS:] = (
                at.extra_outputs[SCORE] * self.net.head_buffers["score_scale"][:, None, None]
            )
        return found.view(-1, WIDTH)

    def add_truncated(self, number: int, at: Pass) -> None:
        """Store the predictions of a pass over layer `number` of truncations."""
        rollout, predicted = self.rollout, self.predictions(at)
        where = rollout.cut_at[number].long()
        there = (rollout.cut_count[self.game] > number) & (where >= 0)
        self.truncations[torch.where(there, where >> 1, self.ends)] = predicted
        from_opponent = torch.cat([predicted[:, :RESULTS].flip(-1), -predicted[:, RESULTS:]], -1)
        also = there & (where & 1 == 1)
        self.truncations[torch.where(also, where >> 1 ^ 1, self.ends)] = from_opponent

    def fill(self) -> None:
        """Compute the targets of a rollout, and update the scales."""
        rollout, seats = self.rollout, self.rollout.rules.seats
        end = self._ends()
        ended = torch.where(rollout.terminated[..., None, None], self._results(), self._cuts())
        table = torch.cat([ended.view(-1, WIDTH), self._expected(end)])
        self.result.copy_(table[end])
        game = (end // seats).clamp(max=rollout.terminated.numel() - 1)
        self.final.copy_((end < self.ends) & rollout.terminated.view(-1)[game])
        self.truncations.fill_(torch.nan)
        self._update_scales()

    def _ends(self) -> Tensor:
        rollout, seats = self.rollout, self.rollout.rules.seats
        over = rollout.terminated | rollout.truncated
        step = torch.where(over, self.step, rollout.steps).flip(0).cummin(0).values.flip(0)
        played = (step[:, self.game] * rollout.games + self.game) * seats
        played = played + rollout.seat.clamp(min=0)
        waiting = step[0, self.owner // seats] * rollout.games * seats + self.owner
        return torch.cat([waiting, played.view(-1)])

    def _results(self) -> Tensor:
        """Win, draw or loss of every seat against the best other one, and its score."""
        score = self.rollout.final_score
        assert score is not None
        seats = score.shape[-1]
        others = score[..., None, :].expand(*score.shape, seats)
        best = others.masked_fill(self.alone, -torch.inf).amax(-1) if seats > 1 else score
        found = torch.stack([score > best, score == best, score < best], -1).float()
        return torch.cat([found, score[..., None]], -1)

    def _cuts(self) -> Tensor:
        shape = (*self.rollout.terminated.shape, self.rollout.rules.seats, WIDTH)
        return self.truncations[:-1].view(shape)

    def _expected(self, end: Tensor) -> Tensor:
        """Predictions for games that go on, at the last decision of every seat."""
        rollout, owners = self.rollout, self.rollout.games * self.rollout.rules.seats
        asked = torch.cat([self.owner >= 0, rollout.seat.view(-1) >= 0])
        owner = torch.where((end >= self.ends) & asked, end - self.ends, owners)
        last = torch.full((owners + 1,), -1, dtype=torch.int64, device=self.net.device)
        last.scatter_reduce_(0, owner, self.place, "amax")
        last = last[:-1]
        self.passing.read(rollout.obs, last.view(self.net.members, -1).int())
        self.passing.forward()
        return torch.where((last >= 0)[:, None], self.predictions(self.passing), torch.nan)

    def _by_member(self, by_place: Tensor) -> Tensor:
        max_pending, members = self.rollout.max_pending, self.net.members
        front = by_place[:max_pending].view(members, -1).sum(1)
        return front + by_place[max_pending:].view(self.rollout.steps, members, -1).sum((0, 2))

    def _update_scales(self) -> None:
        """Update the scales of scores and wins, as `learn.head_terms.OutcomeColumn` does."""
        net, rollout = self.net, self.rollout
        if SCORE in net.extra_heads:
            assert rollout.final_score is not None
            over = rollout.terminated[..., None]
            squares = torch.where(over, rollout.final_score**2, 0.0)
            shape = rollout.steps, net.members, -1
            count = over.expand_as(squares).reshape(shape).sum((0, 2))
            size = (squares.reshape(shape).sum((0, 2)) / count.clamp(min=1)).sqrt().clamp(min=1e-6)
            before = net.head_buffers["score_scale"]
            unit = SCALE_DECAY * before + (1 - SCALE_DECAY) * size
            unit = torch.where(count > 0, torch.maximum(unit, size / MAX_SCALED_RETURN), before)
            assert isinstance(net, CapturedNet)
            for name in net.module.score_parameters:
                held = net.view(net.weight, name)
                held.mul_((before / unit).view(-1, *[1] * (held.dim() - 1)))
            before.copy_(unit)
            self.score.copy_(self.result[:, RESULTS] / self._of_place(unit))
        if self.blend:
            known = self.final & (rollout.end != NOT_A_SAMPLE)
            won = torch.where(known, self.result[:, 0] - self.result[:, 2], 0.0)
            returns = torch.where(known, rollout.advantage + rollout.value, 0.0)
            paid, decided = self._by_member(returns * won), self._by_member(won**2)
            unit = net.head_buffers["wdl_unit"]
            slope = paid.clamp(min=0.0) / decided.clamp(min=1e-6)
            moved = SCALE_DECAY * unit + (1 - SCALE_DECAY) * slope
            unit.copy_(torch.where(decided > 0, moved, unit))

    def _of_place(self, by_member: Tensor) -> Tensor:
        rollout, members = self.rollout, self.net.members
        front = by_member.repeat_interleave(rollout.max_pending // members)
        step = by_member.repeat_interleave(rollout.rows // members)
        return torch.cat([front, step.repeat(rollout.steps)])

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        return {WDL: self.result[:, :RESULTS], SCORE: self.score}


@dataclass(frozen=True)
class OfOutcomes:
    """Loss term of an outcome or score head."""

    term: Term
    column: FusedOutcomes

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        return self.column.by_place

    def fill(self) -> None:
        """Do nothing: the shared column is filled elsewhere."""


class HiddenColumns:
    """Hidden information by place: a field of the game state, and the seat that decided."""

    def __init__(self, rollout: FusedRollout) -> None:
        self.rollout = rollout
        place = torch.arange(rollout.places, device=rollout.end.device)
        self.seat = (place // rollout.chains % rollout.rules.seats).to(torch.int8)
        """Seat of every place; those of pending transitions never change."""

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        assert self.rollout.hidden is not None
        return {HIDDEN: self.rollout.hidden, SEAT: self.seat}

    def fill(self) -> None:
        self.seat[self.rollout.max_pending :].copy_(self.rollout.seat.view(-1))


class OfHidden(HiddenColumns):
    """Loss term of the head for hidden cards."""

    def __init__(self, term: Term, rollout: FusedRollout) -> None:
        super().__init__(rollout)
        self.term = term


class OfOpponents:
    """Loss term of the head for the next actions of the other seats."""

    def __init__(self, term: OpponentsTerm, rollout: FusedRollout) -> None:
        self.term, self.rollout = term, rollout
        shape = rollout.places, term.seats - 1
        self.target = torch.full(shape, UNKNOWN, dtype=torch.int32, device=rollout.end.device)

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        return {OPPONENTS: self.target}

    def fill(self) -> None:
        """Compute the targets of a rollout."""
        rollout, first = self.rollout, self.rollout.max_pending
        seat, over = rollout.seat, rollout.terminated | rollout.truncated
        action = rollout.action[first:].view(seat.shape)
        actions = next_actions(seat, action, over, self.term.seats)
        self.target[first:].copy_(actions.view(-1, self.term.seats - 1))


def rollout_options(terms: Sequence[Term], truth: StateField | None) -> dict[str, Any]:
    """Options of a `FusedRollout` that terms need. truth: a field that others need."""
    return {"scores": bool(columns_of(terms)), "truth": truth or truth_of(terms)}


def fused_heads(net: FlatNet, rollout: FusedRollout, terms: Sequence[Term]) -> list[FusedTerm]:
    """Make the loss terms of heads on the GPU. terms: their formulas."""
    found: list[FusedTerm] = []
    columns = columns_of(terms)
    outcomes = {one: FusedOutcomes(net, rollout, blend=bool(one.blend)) for one in columns}
    for term in terms:
        if isinstance(term, OfTruth):
            found.append(OfHidden(term, rollout))
        elif isinstance(term, OpponentsTerm):
            found.append(OfOpponents(term, rollout))
        elif isinstance(term, OfColumn):
            found.append(OfOutcomes(term, outcomes[term.column]))
    return found


AT_ONCE = 16384
"""Rows of a pass of the frozen network."""


class FusedKLPenalty:
    """KL to a frozen network, which runs once per update on all rows."""

    def __init__(self, term: KLPenalty, rollout: FusedRollout, *, bf16: bool) -> None:
        """Move the frozen network to the rollout's device."""
        self.term, self.rollout, self.bf16 = term, rollout, bf16
        device = rollout.obs.device
        term.net.to(device)
        width = term.net.heads[POLICY]
        room = torch.zeros(rollout.places, width, dtype=term.dtype, device=device)
        self.by_place: Mapping[str, Tensor] = {REFERENCE: room}
        self._compute(slice(0, min(AT_ONCE, rollout.places)))  # warm up before any capture

    def fill(self) -> None:
        """Compute the column of every place."""
        for at in range(0, self.rollout.places, AT_ONCE):
            self._compute(slice(at, min(at + AT_ONCE, self.rollout.places)))

    @torch.no_grad()
    def _compute(self, places: slice) -> None:
        obs, legal = self.rollout.obs[places], self.rollout.legal[places]
        obs = obs[:, : self.term.net.inputs.row_bytes]
        # As in `nets.run.captured`: rounded weights that are kept would be read by a later replay.
        with torch.autocast(
            obs.device.type, torch.bfloat16, enabled=self.bf16, cache_enabled=False
        ):
            head = self.term.net(obs)[POLICY]
        stored = self.term.stored(head, mask_of(legal, self.rollout.rules))
        self.by_place[REFERENCE][places].copy_(stored)
