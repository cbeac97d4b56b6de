"""Heads beside policy and value on a GPU: the terms of `learn.head_terms`, fed by the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparring.learn.fused.outcomes import FusedOutcomes
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.head_terms import SEAT
from sparring.learn.terms import OfColumn, OfTruth, Term, columns_of, truth_of
from sparring.nets.net import HIDDEN
from sparring.nets.run.flat import FlatNet


@dataclass(frozen=True)
class OfOutcomes:
    """A head that learns what came of games."""

    term: Term
    column: FusedOutcomes

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        """What came of the game of every place."""
        return self.column.by_place

    def fill(self) -> None:
        """Nothing: the column is filled for all."""


class OfHidden:
    """A head that learns what is hidden."""

    def __init__(self, term: Term, rollout: FusedRollout) -> None:
        self.term, self.rollout = term, rollout
        place = torch.arange(rollout.places, device=rollout.end.device)
        self.seat = (place // rollout.chains % rollout.rules.seats).to(torch.int8)
        """Of the decision of every place; those of open ones stand for good."""

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        """What games knew at every place, and who did not."""
        assert self.rollout.hidden is not None
        return {HIDDEN: self.rollout.hidden, SEAT: self.seat}

    def fill(self) -> None:
        """Say who decided."""
        self.seat[self.rollout.carried :].copy_(self.rollout.seat.view(-1))


def kept_for(terms: Sequence[Term]) -> dict[str, Any]:
    """What a rollout keeps for terms besides."""
    return {"scores": bool(columns_of(terms)), "truth": truth_of(terms)}


def fused_heads(net: FlatNet, rollout: FusedRollout, terms: Sequence[Term]) -> list[FusedTerm]:
    """The terms of heads, fed by the device. terms: their formulas."""
    found: list[FusedTerm] = []
    columns = columns_of(terms)
    outcomes = {one: FusedOutcomes(net, rollout, blend=bool(one.blend)) for one in columns}
    for term in terms:
        if isinstance(term, OfTruth):
            found.append(OfHidden(term, rollout))
        elif isinstance(term, OfColumn):
            found.append(OfOutcomes(term, outcomes[term.column]))
    return found
