"""Heads beside policy and value on a GPU: the terms of `learn.head_terms`, fed by the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sparring.config import HeadsConfig
from sparring.learn.fused.outcomes import FusedOutcomes
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.head_terms import SEAT, HiddenTerm, head_terms
from sparring.learn.terms import Term
from sparring.nets.flat import FlatNet
from sparring.nets.net import HIDDEN, SCORE, WDL


@dataclass(frozen=True)
class OfOutcomes:
    """A head that learns what came of games."""

    term: Term
    outcomes: FusedOutcomes
    first: bool
    """Of several, the one that finds out."""

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        """What came of the game of every place."""
        return self.outcomes.by_place

    def fill(self) -> None:
        """Find that out."""
        if self.first:
            self.outcomes.find()


class OfHidden:
    """A head that learns what is hidden."""

    def __init__(self, term: HiddenTerm, rollout: FusedRollout) -> None:
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


def fused_heads(
    net: FlatNet, rollout: FusedRollout, config: HeadsConfig | None
) -> tuple[list[FusedTerm], FusedOutcomes | None]:
    """The terms of all heads that a run asks for, and what finds out how games ended."""
    outcomes = None
    if WDL in net.others or SCORE in net.others:
        outcomes = FusedOutcomes(net, rollout, blend=bool(config and config.blend))
    found: list[FusedTerm] = []
    for term in head_terms(rollout.rules, config):
        if isinstance(term, HiddenTerm):
            found.append(OfHidden(term, rollout))
        else:
            assert outcomes is not None
            found.append(OfOutcomes(term, outcomes, first=not found))
    return found, outcomes
