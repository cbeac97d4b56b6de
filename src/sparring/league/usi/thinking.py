"""A search for one USI `go`: info lines as engines print them, and the move; stops when told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sparring.games import State, shogi
from sparring.games.shogi.protocol import centipawns
from sparring.league.usi.clock import GoLimits
from sparring.search.budget import GUMBEL, MAX_SIMULATIONS, PUCT, Budget
from sparring.search.search import TIMED_NODES, Found, Search

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

Edge = tuple[int, float, int, float, int]
"""Action, prior, visits, mean return, child: as `Search.edges` lists them."""
FIRST_ROUND, GROWTH = 64, 4
"""Simulations of the first search until `stop`, and how many times as many the next one has."""


def budget_for(own: Budget | None, most: int, limits: GoLimits) -> Budget | None:
    """Return the budget of a `go`: the smallest of all limits; None without any.

    own: time and rule of the player. most: simulations by option; 0: no limit.
    """
    simulations = min(filter(None, (most, limits.simulations)), default=0)
    times = (own.seconds if own else 0.0, limits.seconds)
    seconds = min(filter(None, times), default=0.0)
    if limits.until_stop:
        simulations, seconds = simulations or TIMED_NODES - 1, 0.0
    if not (simulations or seconds):
        return None
    rule = own.rule if own else PUCT if limits.until_stop else GUMBEL
    return Budget(min(simulations, MAX_SIMULATIONS), seconds, rule)


class Thinking:
    """A search that may run in a thread of its own."""

    def __init__(
        self,
        policy: Policy,
        state: State,
        budget: Budget,
        *,
        seed: int,
        noise: bool,
        rounds: bool,
        lines: int = 1,
        last: Thinking | None = None,
    ) -> None:
        """Allocate the tree, or go on with the last one.

        lines: most moves to report, each with its value and its main line (MultiPV).
        rounds: searches of more and more simulations, for what ends at `stop`.
        last: the search before this one, whose tree is kept if it is one of PUCT.
        """
        self.state, self.budget, self.rounds, self.lines = state, budget, rounds, lines
        self.search: Search = (last.tree_for(budget) if last else None) or policy.search(
            state.rules, budget=budget, seed=seed, noise=noise
        )
        self.stopped = threading.Event()
        self.done = self.dropped = False
        """The move is found; nobody waits for it any more."""
        self.started = time.monotonic()
        self.simulations = 0
        """Of all rounds."""
        self.action, self._most = -1, -1

    def tree_for(self, budget: Budget) -> Search | None:
        """Return the tree for a next search, if it can go on there."""
        simulations = budget.simulations or TIMED_NODES - 1
        same_size = self.search.max_simulations == simulations
        if not (same_size and self.budget.rule == budget.rule == PUCT):
            return None
        self.search.budget, self.search.halted = budget, False
        return self.search

    def stop(self) -> None:
        """End the search; what it found so far is its answer. For another thread."""
        self.stopped.set()
        self.search.halted = True

    def run(self) -> Iterator[str]:
        """Search; yield info lines after every round."""
        for simulations in self._sizes():
            found = self.search.from_state(self.state, simulations=simulations, keep=True)
            visits = int(found.visits.sum())
            self.simulations += int(found.simulations[0])
            if visits > self._most:  # a round that was cut short knows less than the one before
                self.action, self._most = int(found.action[0]), visits
                yield from self._info(found)
            if self.stopped.is_set():
                return

    def _sizes(self) -> Iterator[int | None]:
        """Yield the simulations of every round; None: those of the budget."""
        most, size = self.search.max_simulations, FIRST_ROUND
        while self.rounds and size < most:
            yield size
            size *= GROWTH
        yield None

    def _info(self, found: Found) -> Iterator[str]:
        seconds = max(time.monotonic() - self.started, 1e-3)
        speed = f"nodes {self.simulations} nps {round(self.simulations / seconds)}"
        for number, (value, actions) in enumerate(self._lines(found), 1):
            line = moves_of(self.state, actions)
            which = f" multipv {number}" if self.lines > 1 else ""
            yield (
                f"info depth {len(line)}{which} score cp {centipawns(value)} "
                f"time {round(1000 * seconds)} {speed} pv {' '.join(line)}"
            )

    def _lines(self, found: Found) -> Iterator[tuple[float, list[int]]]:
        """Yield value and main line of the best moves, the chosen one first."""
        yield float(found.value[0]), self.search.line()
        chosen = int(found.action[0])
        others = [edge for edge in self.search.edges() if edge[0] != chosen and edge[2]]
        for action, _, _, value, child in by_visits(others)[: self.lines - 1]:
            yield value, [action, *self._best_from(child)]

    def _best_from(self, node: int) -> Iterator[int]:
        """Yield the most visited actions from a node on; node 0: none."""
        while node and (edges := by_visits(self.search.edges(node=node))) and edges[0][2]:
            yield edges[0][0]
            node = edges[0][4]


def by_visits(edges: list[Edge]) -> list[Edge]:
    """Return edges, the most visited first, of those the one with the highest value."""
    return sorted(edges, key=lambda edge: (-edge[2], -edge[3]))


def moves_of(state: State, actions: list[int]) -> list[str]:
    """Return the actions of a line as USI moves."""
    state, moves = state.clone(), []
    for action in actions:
        if state.over:
            break
        moves.append(shogi.usi(state, action))
        state.apply(action)
    return moves
