"""Everybody who plays in a run: line-ups, and who is behind their policy ids and pots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from sparring.learn.collect import Actor
from sparring.pools.lineups import Lineup
from sparring.schedule import Schedule


@dataclass(frozen=True)
class Fixed:
    """A frozen policy of the learner's own kind that line-ups name; it keeps its slot for good."""

    name: str
    """As it was typed."""
    slot: int
    weights: Mapping[str, Tensor]
    greedy: bool


@dataclass(frozen=True)
class Seating:
    """A line-up, and how often it is drawn as the run goes on."""

    lineup: Lineup
    weight: Schedule


@dataclass(frozen=True)
class Cast:
    """Who plays."""

    lineups: tuple[Lineup, ...]
    """Those that the run begins with."""
    fixed: tuple[Fixed, ...] = ()
    past_slots: int = 0
    """Slots that past selves share, the first ones; 0: nobody meets them."""
    recent: tuple[int, ...] = ()
    """Every N for which there is a pot past:N."""
    pots: tuple[str, ...] = ()
    """The names of the pots that line-ups draw from."""
    greedy: bool = False
    """Whether past selves take their most probable action."""
    actors: Mapping[int, Actor] = field(default_factory=dict)
    """Other networks and functions by policy id, one call each."""
    others: tuple[str, ...] = ()
    """What those are called, in the order of their ids."""
    seatings: tuple[tuple[Seating, ...], ...] = ()
    """Who plays in each phase; ids, slots and pots are the same in all of them."""

    @property
    def slots(self) -> int:
        """Frozen networks of the learner's kind that can be met at a time."""
        return self.past_slots + len(self.fixed)
