"""Decisions of games that others have played: what was seen, what was legal, what was done, and
what the seat was paid from there on, as a learner that plays would count it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.games.demonstrations import Demonstration
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.learn.demonstrations import BITS, Decisions
from sparring.learn.transitions import NOT_A_SAMPLE, TERMINATED, TO_NEXT, Transitions

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Pay:
    """How a run pays, and how it discounts."""

    weights: Sequence[float]
    """Of every part and role, flat."""
    gamma: float
    gamma_into: Sequence[float] = ()
    by_role: bool = False


@lru_cache(maxsize=4)
def plain_rules(rules: Rules) -> Rules:
    """Return the same game in which every decision is asked for."""
    return rules.changed({"skip_forced": 0}) if rules.skip_forced else rules


def other_flags(rules: Rules, demonstration: Demonstration) -> str:
    """Say which flags a game was played by that the run has otherwise; another game is refused."""
    theirs, source = demonstration.replay.rules, demonstration.replay.source
    if theirs is rules or theirs is plain_rules(rules):
        return ""
    if theirs.name != rules.name:
        raise ConfigError(f"{source}: a game of {theirs.name}, and this run plays {rules.name}")
    mine, other = rules.config, theirs.config
    names = [name for name in mine if mine[name] != other[name] and name != "skip_forced"]
    return ", ".join(f"{name}={other[name]} instead of {mine[name]}" for name in names)


def decisions_of(
    rules: Rules, demonstration: Demonstration, pay: Pay, number: int = 0
) -> Decisions:
    """Play a game again and return every decision of it that a learner would be asked for.

    It may have been played with other flags if it comes out the same by those of the run.
    number: of the game.
    """
    flags = other_flags(rules, demonstration)
    if flags and len(demonstration.replay.players) != rules.seats:
        raise ConfigError(
            f"{demonstration.replay.source}: played with {flags}; set that, or leave it out"
        )
    walk = Walk(rules, demonstration, pay)
    walk.play()
    if flags and (told := demonstration.replay.differences(walk.state)):
        raise ConfigError(
            f"{demonstration.replay.source}: played with {flags}, and so {told[0]}; set that, or "
            "leave the file out"
        )
    chosen, returns = walk.linked()
    rows = walk.rows
    return Decisions(
        walk.obs[:rows][chosen],
        np.packbits(walk.mask[:rows][chosen], axis=1, bitorder=BITS),
        walk.action[:rows][chosen],
        returns,
        np.full(len(returns), number, np.int32),
        np.empty((len(returns), 0), np.float16),
    )


class Walk:
    """A game that is played again, with what a pool would have shown of it.

    With `skip_forced` a pool asks for no decision in which nobody has a choice, but for the first.
    """

    def __init__(self, rules: Rules, demonstration: Demonstration, pay: Pay) -> None:
        replay = demonstration.replay
        self.rules, self.demonstration, self.pay = rules, demonstration, pay
        self.state = State(plain_rules(rules), replay.seed, pay.weights, game=replay.index)
        if replay.setup and (error := self.state.set_up(replay.setup)):
            raise ConfigError(f"{replay.source}: setup: {error}")
        most = len(replay.actions) * rules.rows
        self.obs = np.zeros((most, rules.obs_bytes), np.uint8)
        self.mask = np.zeros((most, rules.actions), np.uint8)
        box = (rules.box,) if rules.box else ()
        self.action = np.zeros((most, *box), np.float32 if box else np.int32)
        self.seat = np.full(most, -1, np.int8)
        self.role = np.zeros(most, np.int8)
        self.policy = np.full(most, -1, np.int16)
        steps = len(replay.actions)
        self.reward = np.zeros((steps, rules.seats, len(rules.roles)), np.float32)
        self.skipped = np.zeros((steps, rules.seats), np.uint16)
        self.steps = 0

    @property
    def rows(self) -> int:
        return self.steps * self.rules.rows

    def play(self) -> None:
        """Take one step after the other, up to the end that the rules know."""
        for number, moves in enumerate(self.demonstration.replay.actions):
            if self.state.over:  # a referee let it go on
                return
            self.take(number, moves)

    def take(self, number: int, moves: Sequence[int]) -> None:
        state, rules = self.state, self.rules
        native = state.native
        seats = [native.seat(row) for row in range(rules.rows)]
        legal = [state.legal(row) if seat >= 0 else [] for row, seat in enumerate(seats)]
        forced = rules.skip_forced and self.steps > 0 and not rules.box
        forced = forced and all(len(legal[row]) == 1 for row, seat in enumerate(seats) if seat >= 0)
        if not forced:
            for row, seat in enumerate(seats):
                if seat >= 0:
                    self.see(self.rows + row, row, seat, legal[row], by_lot=self.lots(number))
                    taken = np.clip(moves[row], -1, 1) if rules.box else moves[row]
                    self.action[self.rows + row] = taken  # a game clips what is out of bounds
            self.steps += 1
        try:
            state.apply(moves[0] if rules.rows == 1 else np.array(moves))
        except SparringError as error:
            raise ConfigError(f"{self.where(number)}: {error}") from None
        self.reward[self.steps - 1] += state.rewards_by_role
        if forced:
            for seat in seats:
                if seat >= 0:
                    self.skipped[self.steps - 1, seat] += 1

    def lots(self, number: int) -> bool:
        return number < self.demonstration.by_lot

    def see(self, at: int, row: int, seat: int, legal: list[int], *, by_lot: bool) -> None:
        self.state.native.observe(seat, self.obs[at])
        self.mask[at, legal] = 1
        self.seat[at] = seat
        self.role[at] = self.state.native.role(row) if len(self.rules.roles) > 1 else 0
        if not by_lot:
            self.policy[at] = 0

    def where(self, number: int) -> str:
        return f"{self.demonstration.replay.source}, move {number + 1}"

    def linked(self) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the rows of decisions, and what each one's seat is paid from there on."""
        steps, rules, pay = self.steps, self.rules, self.pay
        links = Transitions(rules, 1, steps, by_role=pay.by_role)
        ends = np.zeros((2, steps, 1), np.bool_)
        if steps and (self.state.terminated or self.demonstration.paid is not None):
            ends[0, -1] = True
        elif steps:
            ends[1, -1] = True
        if not self.state.over and self.demonstration.paid is not None and steps:
            self.reward[steps - 1] += payment(rules, pay, self.demonstration.paid)
        shape = (steps, rules.rows)
        policy = self.policy[: self.rows]
        links.link(
            seat=self.seat[: self.rows].reshape(shape),
            role=self.role[: self.rows].reshape(shape),
            policy=policy.reshape(shape),
            reward=self.reward[:steps, None],
            terminated=ends[0],
            truncated=ends[1],
            gamma=pay.gamma,
            gamma_into=pay.gamma_into,
            skipped=self.skipped[:steps, None],
        )
        returns = links.advantages(np.zeros(links.places, np.float32), 1.0)
        returns[~played_out(links)] = np.nan
        chosen = np.flatnonzero(policy == 0)
        return chosen, returns[links.max_pending + chosen]


def payment(rules: Rules, pay: Pay, paid: Mapping[str, tuple[float, ...]]) -> Floats:
    """Return what every seat is paid [seats, roles] for the end of a game."""
    weights = np.array(pay.weights, np.float32).reshape(len(rules.parts), len(rules.roles))
    return np.asarray(
        sum(np.outer(each, weights[rules.parts.index(part)]) for part, each in paid.items()),
        np.float32,
    )


def played_out(links: Transitions) -> npt.NDArray[np.bool_]:
    """Whether everything that followed a decision is known, by place."""
    known = np.zeros(links.places, np.bool_)
    for place in range(links.places - 1, -1, -1):
        end = links.end[place]
        if end == TO_NEXT:
            known[place] = links.discount[place] == 0 or known[links.next[place]]
        elif end != NOT_A_SAMPLE:
            known[place] = end == TERMINATED
    return known
