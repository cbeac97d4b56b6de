"""Searches many decisions at once: native trees, whose leaves one evaluator computes in batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.seeds import seed_bits
from sparring.machine import check_memory_budget
from sparring.phases import Timing, phase
from sparring.search.budget import GUMBEL, RULES, Budget
from sparring.search.worlds import WorldsConfig, check_worlds, make_worlds, uses_worlds

if TYPE_CHECKING:
    from sparring.games.state import State
    from sparring.pools.native import Pool

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Evaluate = Callable[[Bytes], tuple[Floats, Floats]]
"""Takes rows [B, obs_bytes]; returns the policy head [B, actions or 2 * box], and the expected
return of each row's seat [B]."""

TIMED_NODES = 2**18
"""Most nodes of a search that is limited by time alone."""
TRIAL = 16
"""Simulations of the search by which the speed is known."""
PLANNED = 0.9
"""Part of the time for which simulations are planned: some take longer."""
TREES_AT_ONCE = 256
"""Most trees of a batch of roots: enough rows for a network, and little memory."""
TREE_BYTES = 2**30
"""Most memory of a batch of trees."""


@dataclass(frozen=True)
class SearchConfig:
    """Settings of the trees; the defaults are those of the Gumbel AlphaZero paper."""

    considered: int = 16
    """Actions of the root that sequential halving begins with."""
    width: int = 32
    """Edges of a node below the root: the most probable legal actions."""
    samples: int = 16
    """Sampled continuous actions per node."""
    c_visit: float = 50.0
    c_scale: float | None = None
    """Weight of values against logits. Where a game is not zero-sum, values are rescaled to 0..1.
    None: 1 in zero-sum games, else 0.1."""
    c_puct: float = 1.25
    gamma: float = 1.0
    """Discount between two decisions of a seat."""
    prove: bool = True
    """Whether positions are proven won, drawn or lost, in games that end so and pay nothing else.
    """
    gamma_into: tuple[float, ...] = ()
    """Discounts by role of the next decision, where cards are hidden; none: gamma for all."""
    worlds: WorldsConfig = field(default_factory=WorldsConfig)
    """Where cards are hidden."""

    def scaling(self, rules: Rules) -> tuple[bool, float]:
        """Return whether values are rescaled, and their weight, in a game."""
        usual = 1.0 if rules.zero_sum else 0.1
        return not rules.zero_sum, usual if self.c_scale is None else self.c_scale


@dataclass(frozen=True)
class Found:
    """Results of a search, by root."""

    action: npt.NDArray[Any]
    """The chosen actions [T], or [T, box]."""
    policy: Floats
    """The improved policy [T, choices]; choices are actions, or sampled continuous actions."""
    value: Floats
    """Expected return of the improved policy for the seat to act [T]."""
    visits: npt.NDArray[np.int32]
    """[T, choices]"""
    q: Floats
    """Mean return after each choice [T, choices]; 0 if it was not visited."""
    simulations: npt.NDArray[np.int32]
    """[T]"""
    numbers: Floats
    """Sampled continuous actions [T, choices, box]."""


class Search:
    """Trees of one game, reused from search to search."""

    def __init__(
        self,
        rules: Rules,
        evaluate: Evaluate,
        budget: Budget,
        *,
        trees: int = 1,
        threads: int = 1,
        seed: int = 0,
        squash: bool = False,
        noise: bool = False,
        config: SearchConfig | None = None,
        phases: Timing | None = None,
        believe: Callable[[Bytes], Floats] | None = None,
        open_cards: bool = False,
    ) -> None:
        """Allocate the trees.

        trees: most roots of one search.
        squash: continuous actions pass through tanh.
        noise: Gumbel noise at the root: actions are sampled from the improved policy.
        phases: gets the seconds of the stages select, evaluate and settle.
        believe: takes rows, returns log-probabilities of what is hidden from them, by which worlds
            are drawn where cards are hidden. Left out, they are drawn uniformly.
        open_cards: search a game that hides cards as if all saw everything; for tests.
        """
        self.rules, self.evaluate, self.budget = rules, evaluate, budget
        self.config = config or SearchConfig()
        self.trees = trees
        nodes = budget.simulations + 1 if budget.simulations else TIMED_NODES // trees
        self.max_simulations = max(nodes, 2) - 1
        worlds = uses_worlds(rules) and not open_cards
        self.believe = believe if worlds else None
        check_memory(rules, self.max_simulations, trees, self.config, worlds=worlds)
        if worlds:
            check_worlds(rules, budget)
            self.native = make_worlds(
                rules,
                self.max_simulations,
                self.config.worlds,
                roots=trees,
                threads=threads,
                seed=seed,
                noise=noise,
                gamma=self.config.gamma,
                gamma_into=self.config.gamma_into,
                believes=believe is not None,
            )
        else:
            self.native = _native.make_search(
                rules.native,
                trees,
                seed=seed_bits(seed),
                threads=threads,
                open_cards=open_cards,
                rule=RULES.index(budget.rule),
                nodes=self.max_simulations + 1,
                **tree_settings(rules, self.config),
                noise=noise,
                squash=squash,
            )
        self.phases = phases or Timing()
        self.evaluated = self.simulated = 0
        """Rows evaluated and simulations made so far."""
        self.halted = False
        """Another thread sets it to end the search that is running; its result is that so far."""

    def from_pool(
        self,
        pool: Pool,
        rows: npt.NDArray[np.intp],
        simulations: npt.NDArray[np.int32] | None = None,
    ) -> Found:
        """Search rows of a native pool. simulations: of each, at most those of the budget."""
        rows = np.ascontiguousarray(rows, np.int64)

        def begin(most: int) -> None:
            given = np.full(len(rows), most, np.int32) if simulations is None else simulations
            given = np.ascontiguousarray(given, np.int32)
            self.native.begin_pool(pool._native, rows, given)

        return self._search(begin, len(rows), planned=simulations is None)

    def from_state(
        self, state: State, row: int = 0, simulations: int | None = None, *, keep: bool = False
    ) -> Found:
        """Search the decision of a single game.

        keep: go on with the tree of the last search, if the position is in it, up to so many
            visits. For the rule puct and games without chance; others begin anew.
        """

        def begin(most: int) -> None:
            given = most if simulations is None else simulations
            self.native.begin_state(state.native, row, given, keep)

        return self._search(begin, 1, planned=simulations is None)

    def from_worlds(
        self, worlds: Sequence[State], weights: Sequence[float] | None = None, row: int = 0
    ) -> Found:
        """Search a decision in given worlds, which look alike to its seat, instead of drawn ones.

        weights: how probable each is, by any unit; none: all alike.
        """
        given = np.ones(len(worlds)) if weights is None else np.asarray(weights, np.float64)

        def begin(most: int) -> None:
            self.native.begin_worlds([world.native for world in worlds], row, given)

        return self._search(begin, 1, planned=False)

    def set_step(self, worlds: WorldsConfig) -> None:
        """Take step size and pull of these settings, where cards are hidden."""
        step = worlds.step_size(self.rules, believes=self.believe is not None)
        self.native.set_step(step, worlds.pull(self.rules))

    def line(self, tree: int = 0) -> list[int]:
        """Return the expected actions from the root on, the chosen one first."""
        return self.native.line(tree)

    def edges(self, tree: int = 0, node: int = 0) -> list[tuple[int, float, int, float, int]]:
        """Return (action, prior, visits, mean return, child) of a node's edges; child 0: none."""
        return self.native.edges(tree, node)

    def _search(self, begin: Callable[[int], None], roots: int, *, planned: bool) -> Found:
        """Begin with the most simulations, and search.

        planned: sequential halving has to know its simulations, so within a time a first, short
            search tells how many fit.
        """
        budget, started = self.budget, time.monotonic()
        if not (planned and budget.seconds and budget.rule == GUMBEL and not budget.simulations):
            return self._run(begin, self.max_simulations, roots, budget.seconds)
        found = self._run(begin, TRIAL, roots, budget.seconds)
        left = started + budget.seconds - time.monotonic()
        fit = simulations_in(left, int(found.simulations.min()), budget.seconds - left)
        if fit <= TRIAL or self.halted:
            return found
        return self._run(begin, min(fit, self.max_simulations), roots, left)

    def _run(self, begin: Callable[[int], None], most: int, roots: int, seconds: float) -> Found:
        """Search with at most so many simulations. seconds: 0 is no limit."""
        self.phases.start()
        begin(most)
        self._grow(time.monotonic() + seconds if seconds else math.inf)
        found = self._found(roots)
        self.phases.lap("settle")
        self.simulated += int(found.simulations.sum())
        return found

    def _grow(self, stop: float) -> None:
        """Make simulations, until a time of the clock at the latest."""
        obs, believe = self.native.obs, self.believe
        while rows := self._select():
            if believe:  # the first rows are those of the roots
                self.native.believe(believe(obs[:rows]))
                believe = None
            self._settle(*self._evaluate(obs[:rows]))
            if self.halted or time.monotonic() > stop:
                return

    @phase("select")
    def _select(self) -> int:
        rows = self.native.select()
        self.phases.lap("select")
        return rows

    @phase("evaluate")
    def _evaluate(self, obs: Bytes) -> tuple[Floats, Floats]:
        outputs = self.evaluate(obs)
        self.evaluated += len(obs)
        self.phases.lap("evaluate")
        return outputs

    @phase("settle")
    def _settle(self, logits: Floats, value: Floats) -> None:
        self.native.expand(logits, value)
        self.phases.lap("settle")

    def _found(self, roots: int) -> Found:
        choices, box = self.native.choices, self.rules.box
        policy = np.zeros((roots, choices), np.float32)
        visits = np.zeros((roots, choices), np.int32)
        q = np.zeros((roots, choices), np.float32)
        value, chosen = np.zeros(roots, np.float32), np.zeros(roots, np.int32)
        numbers = np.zeros((roots, choices, box), np.float32)
        self.native.results(policy, visits, q, value, chosen, numbers)
        action = numbers[np.arange(roots), chosen] if box else chosen
        made = np.array([self.native.simulations(tree) for tree in range(roots)], np.int32)
        return Found(action, policy, value, visits, q, made, numbers)


def simulations_in(left_s: float, made: int, took_s: float) -> int:
    """Return how many simulations to plan for the time that is left, by those made before."""
    return int(made / max(took_s, 1e-6) * max(left_s, 0.0) * PLANNED)


def tree_settings(rules: Rules, config: SearchConfig | None = None) -> dict[str, Any]:
    """Return the settings of native trees for a game."""
    config = config or SearchConfig()
    rescale, scale = config.scaling(rules)
    settings = {**asdict(config), "c_scale": scale, "rescale": rescale}
    return {key: settings[key] for key in settings if key not in ("gamma_into", "worlds")}


def check_open(rules: Rules, *, open_cards: bool = False) -> None:
    """Raise if trees cannot search a game, where worlds are not played.

    What is hidden from a single player is drawn anew in every simulation.
    """
    if uses_worlds(rules) and not open_cards:
        raise ConfigError(
            f"search: {rules.name} hides cards, and a tree of its states would see them; leave the "
            "search out: the network plays without it"
        )


def trees_for(rules: Rules, budget: Budget, roots: int) -> int:
    """Return how many of these roots to search at a time.

    A search by time has one: every decision has its own time.
    """
    if budget.seconds:
        return 1
    each = bytes_each(rules, budget.simulations, TREES_AT_ONCE, SearchConfig())
    return max(1, min(roots, TREES_AT_ONCE, TREE_BYTES // each))


def bytes_each(
    rules: Rules, simulations: int, roots: int, config: SearchConfig, *, worlds: bool | None = None
) -> int:
    """Return the bytes of a root among so many. worlds: whether worlds are played, or trees."""
    if uses_worlds(rules) if worlds is None else worlds:
        return _native.worlds_bytes(rules.native, simulations, roots)
    return _native.search_bytes(rules.native, simulations + 1, config.width, config.samples)


def check_memory(
    rules: Rules,
    simulations: int,
    roots: int,
    config: SearchConfig,
    *,
    worlds: bool | None = None,
) -> None:
    """Raise if a search does not fit into memory; the error names the largest one that does."""
    made = min(simulations, 2**20 - 1)
    each = bytes_each(rules, made, roots, config, worlds=worlds) / made
    check_memory_budget(
        "search",
        simulations,
        int(each * roots) + 1,
        f"{roots} decision{'s' * (roots > 1)} of so many simulations",
        unit="simulations",
    )
