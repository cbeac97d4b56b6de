"""Valid calls of the bindings of searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.odd import Lots
from sparring import _native

TREES, NODES = 3, 9


class SearchCalls:
    """Part of `Workshop`: makes trees of any game, hidden cards open, and searches in worlds."""

    lots: Lots
    kept: dict[str, Any]
    rules: dict[str, Any]
    searched: Any
    """Rules of the search that was made last."""
    pending: int = 0
    """Rows that it selected."""

    def any_rules(self) -> Any:
        raise NotImplementedError

    def thing(self, owner: str) -> Any:
        raise NotImplementedError

    def of_make_search(self) -> Any:
        rule = int(self.lots.integers(2))
        return [self.any_rules(), TREES, 1, 2, True, rule, NODES, 4, 8, 4]

    def of_search_bytes(self) -> Any:
        return [self.any_rules(), NODES, 8, 4]

    def of_make_worlds(self) -> Any:
        rules = list(self.rules.values())[int(self.lots.integers(len(self.rules)))]
        return [rules, TREES, 1, 2, NODES - 1, 4, 2, int(self.lots.integers(3)), 2.0, 0.1, 1.0]

    def of_worlds_bytes(self) -> Any:
        return [self.any_rules(), NODES, TREES]

    def new_search(self) -> Any:
        made = _native.make_search, self.of_make_search()
        if self.lots.random() < 0.3:
            made = _native.make_worlds, [self.rules["leduc_poker"], *self.of_make_worlds()[1:]]
        make, arguments = made
        self.searched = arguments[0]
        search = make(*arguments)
        weights = list(self.searched.default_weights)
        search.begin_state(_native.make_state(self.searched, 1, 0, False, weights), 0, NODES - 1)
        for _ in range(int(self.lots.integers(3))):
            if rows := search.select():
                search.expand(*self.evaluation(search, rows))
        return search

    def evaluation(self, search: Any, rows: int) -> list[Any]:
        """Return what a network might say about so many rows; sometimes what none should."""
        head = np.zeros((rows, search.head_width), np.float32)
        value = np.linspace(-1, 1, rows, dtype=np.float32)
        for array in (head, value):
            if self.lots.random() < 0.2:
                array[:] = np.array([np.nan, np.inf, -np.inf])[int(self.lots.integers(3))]
        return [head, value]

    def of_search_begin_pool(self) -> Any:
        return [self.thing("Pool"), np.arange(2, dtype=np.int64), np.full(2, 3, np.int32)]

    def of_search_begin_state(self) -> Any:
        return [self.thing("State"), 0, 3, bool(self.lots.integers(2))]

    def of_search_begin_worlds(self) -> Any:
        states = [self.thing("State") for _ in range(int(self.lots.integers(1, 4)))]
        return [states, 0, np.ones(len(states))]

    def of_search_believe(self) -> Any:
        return [np.zeros((1, int(self.lots.integers(1, 7))), np.float32)]

    def of_search_set_step(self) -> Any:
        return [2.0, float(self.lots.integers(-1, 3))]

    def of_search_expand(self) -> Any:
        rows = int(self.lots.integers(5))
        return self.evaluation(self.kept["Search"], rows)

    def of_search_results(self) -> Any:
        choices = self.kept["Search"].choices
        both = {"policy": np.float32, "visits": np.int32, "q": np.float32}
        return [
            *(np.zeros((1, choices), kind) for kind in both.values()),
            np.zeros(1, np.float32),
            np.zeros(1, np.int32),
            np.zeros((1, choices, self.searched.box), np.float32),
        ]

    def of_search_line(self) -> Any:
        return [0]

    of_search_nodes = of_search_simulations = of_search_line

    def of_search_edges(self) -> Any:
        return [0, 0]
