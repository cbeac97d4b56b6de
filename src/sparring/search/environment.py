"""Tree search in custom environments, which Python copies and steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparring.errors import ConfigError
from sparring.phases import Timing
from sparring.pools.custom.faults import env_errors
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.seats import TablePool
from sparring.pools.custom.tables import EnvTable
from sparring.search.budget import Budget
from sparring.search.python_tree import Edges, Leaf, Tree, TreeRules
from sparring.search.search import TIMED_NODES, Evaluate, Found, Search, SearchConfig


class EnvironmentSearch(Search):
    """`Search` in environments of this process. The leaves of all trees are evaluated together."""

    def __init__(
        self,
        rules: CustomRules,
        evaluate: Evaluate,
        budget: Budget,
        *,
        trees: int = 1,
        threads: int = 1,
        seed: int = 0,
        squash: bool = False,
        noise: bool = False,
        config: SearchConfig | None = None,
    ) -> None:
        """Take the settings, see `Search`. threads: ignored, environments step in one."""
        check_environment(rules)
        self.custom, self.evaluate, self.budget, self.trees = rules, evaluate, budget, trees
        self.rules, self.config = rules, config or SearchConfig()
        self.shared = TreeRules(rules, self.config, rule=budget.rule, seed=seed, noise=noise)
        self.shared.squash = squash
        self.max_simulations = budget.simulations or TIMED_NODES
        self.phases, self.halted = Timing(), False
        self.evaluated = self.simulated = 0
        self._checked = False
        self._trees: list[Tree] = []

    def from_pool(self, pool: Any, rows: Any, simulations: Any = None) -> Found:
        """Search rows of a pool of single environments."""
        if not isinstance(pool, TablePool):
            raise ConfigError(
                f"search copies environments, and those of {self.rules.name} are stepped by a "
                "vector or by workers; name a factory of a single environment, and leave "
                "--workers or the search out"
            )
        tables = [pool.tables[int(row)] for row in rows]

        def begin(most: int) -> None:
            given = np.full(len(rows), most) if simulations is None else simulations
            self._trees = [Tree(self.shared, *root) for root in zip(tables, given, strict=True)]

        with env_errors(f"{self.rules.name} failed in a search"):
            for table in () if self._checked else tables[:1]:
                self._check(table)
            return self._search(begin, len(rows), planned=simulations is None)

    def line(self, tree: int = 0) -> list[int]:
        return self._trees[tree].line()

    def edges(self, tree: int = 0, node: int = 0) -> list[tuple[int, float, int, float, int]]:
        at = self._trees[tree].nodes[node]
        child = [at.child[edge].number if edge in at.child else 0 for edge in range(len(at.action))]
        numbers = (array.tolist() for array in (at.action, at.prior, at.visits, at.mean))
        return list(zip(*numbers, child, strict=True))

    def _check(self, table: EnvTable) -> None:
        """Look once whether copies are worth anything."""
        seat, box = table.deciding()[0], self.rules.box
        action = np.zeros((1, box)) if box else table.mask[seat].argmax()[None]
        table.check_clones(self.custom.env_actions(action))
        self._checked = True

    def _grow(self, stop: float) -> None:
        growing = [(tree, tree.grow()) for tree in self._trees]
        while growing:
            rounds = [(tree, grown, next(grown, None)) for tree, grown in growing]
            growing = [(tree, grown) for tree, grown, leaves in rounds if leaves is not None]
            self.phases.lap("select")
            self._take([(tree, leaf) for tree, _, leaves in rounds for leaf in leaves or ()])
            self.phases.lap("settle")
            if self.halted or time.monotonic() > stop:
                return

    def _take(self, leaves: Sequence[tuple[Tree, Leaf]]) -> None:
        """Evaluate leaves in one batch."""
        head = value = np.zeros(0, np.float32)
        numbers = [leaf.table.numbers[leaf.seats] for _, leaf in leaves if leaf.seats]
        if numbers:
            head, value = self._evaluate(self.custom.pack(np.concatenate(numbers)))
        first = 0
        for tree, leaf in leaves:
            mine = slice(first, first + len(leaf.seats))
            tree.settle(leaf, head[mine], value[mine])
            first = mine.stop

    def _found(self, roots: int) -> Found:
        box = self.rules.box
        choices = self.config.samples if box else self.rules.actions
        policy, q = np.zeros((2, roots, choices), np.float32)
        visits, value = np.zeros((roots, choices), np.int32), np.zeros(roots, np.float32)
        action = np.zeros((roots, box), np.float32) if box else np.zeros(roots, np.int32)
        numbers = np.zeros((roots, choices, box), np.float32)
        for at, tree in enumerate(self._trees):
            root, edges = tree.root, Edges.of(tree.root)
            improved = self.shared.improved(edges)
            value[at] = improved @ edges.completed()
            policy[at, root.action], q[at, root.action] = improved, root.mean
            visits[at, root.action] = root.visits
            action[at] = root.played[tree.decide()]
            numbers[at, root.action] = root.played if box else numbers[at, root.action]
        made = np.array([tree.settled for tree in self._trees], np.int32)
        return Found(action, policy, value, visits, q, made, numbers)


def trees_at_once(budget: Budget, roots: int) -> int:
    """Return how many of these roots to search at a time, see `trees_for`."""
    return 1 if budget.seconds else max(1, min(roots, TIMED_NODES // budget.simulations))


def check_environment(rules: CustomRules) -> None:
    """Raise if a custom environment cannot be searched."""
    if rules.rows > 1:
        raise ConfigError(
            f"search: in {rules.name} all agents decide at once, which search in custom "
            "environments does not cover; leave the search out, or write it as an AECEnv"
        )
    if rules.hides and rules.seats > 1:
        raise ConfigError(
            f"search: a copy of {rules.name} may show a seat what others hide; if every seat sees "
            "everything, declare it in the environment: perfect_information = True (and zero_sum = "
            "True, if one wins what the other loses); otherwise leave the search out"
        )
