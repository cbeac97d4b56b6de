"""Exact exploitability beside training: in the process of evaluations, in a share of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sparring.config import EvaluationConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.proof.exploitability import (
    EXACT_GAMES,
    MAX_POSITIONS,
    Tree,
    exploitability,
    has_memory,
)

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

SHARE = 0.02
"""Processor seconds per second of training that measurements may take with auto."""
SMALL_TREE = 200_000
"""Positions of the largest tree that auto builds: liar's dice with one die has 147,456."""


def exact_request(rules: Rules, wanted: EvaluationConfig, seconds: float) -> dict[str, Any]:
    """Return what a request asks for. seconds: of the training so far.

    Of evaluations by decisions nothing is left out, so that a run repeats on any machine.
    """
    if wanted.exploitability == "off":
        return {}
    always = wanted.exploitability == "on"
    if not always and rules.name not in EXACT_GAMES:
        return {}
    unlimited = always or bool(wanted.every_decisions)
    budget = {} if unlimited else {"budget_s": SHARE * seconds}
    return {"exact": {"positions": MAX_POSITIONS if always else SMALL_TREE, **budget}}


class ExactMeter:
    """Measures policies of one game; it builds the tree once and keeps it."""

    def __init__(self) -> None:
        self.tree: Tree | None = None
        self.refused = ""
        """Why there is no tree."""
        self.spent_s = 0.0
        """Processor seconds so far."""

    def measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the exploitability of a checkpoint; nothing if the time for it is used up.

        A game whose tree is too large gets the reason, `not_exact`.
        """
        from sparring.store.policies import load_policy

        terms = request["exact"]
        if self.spent_s > terms.get("budget_s", math.inf):
            return {}
        started = time.process_time()
        try:
            policy = load_policy(request["checkpoint"])
            tree = self._tree_for(policy, terms["positions"])
            if tree is None:
                return {"not_exact": self.refused}
            return {"exploitability": exploitability(tree, policy).exploitability}
        finally:
            self.spent_s += time.process_time() - started

    def _tree_for(self, policy: Policy, positions: int) -> Tree | None:
        if self.tree is None and not self.refused:
            try:
                recall = has_memory(policy)
                self.tree = Tree(policy.rules, recall=recall, max_positions=positions)
            except ConfigError as error:
                self.refused = str(error)
        return self.tree
