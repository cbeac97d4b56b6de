"""Tree search with a policy: its network evaluates the leaves of the trees.

A policy with a budget searches at every decision. It needs positions, not observations: rows of a
pool, or a state. So `Policy.decide` takes them as `roots`, and callers that have them pass them on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.seeds import derive_seed
from sparring.games.state import State
from sparring.nets.array_net import ArrayNet
from sparring.nets.critic_rows import never_plays
from sparring.nets.heads import POLICY, Evaluation, takes_belief
from sparring.nets.roots import Roots
from sparring.pools.custom.cache import is_custom
from sparring.pools.custom.rules import CustomRules
from sparring.pools.native import Pool
from sparring.schedule import Moment, Schedule
from sparring.search.budget import Budget
from sparring.search.environment import EnvironmentSearch, trees_at_once
from sparring.search.search import (
    TIMED_NODES,
    Evaluate,
    Search,
    SearchConfig,
    check_memory,
    trees_for,
)
from sparring.search.worlds import WorldsConfig, check_worlds, uses_worlds

if TYPE_CHECKING:
    from sparring.nets.net import Net

Believe = Callable[[npt.NDArray[np.uint8]], Any]
"""Takes rows; returns log-probabilities of what is hidden from them."""


class Searcher(Protocol):
    """What a search needs of a policy."""

    name: str
    rules: Rules
    net: Net
    device: str
    budget: Budget | None
    meta: dict[str, Any]
    searches: SearchCache
    is_value_based: bool

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per seat; 0: none."""

    @property
    def has_values(self) -> bool:
        """Whether its value head is there and was trained."""

    def evaluate(self, obs: npt.NDArray[np.uint8]) -> Evaluation:
        """Return what the network says about rows."""

    def belief(self, obs: npt.NDArray[np.uint8]) -> Any:
        """Return log-probabilities of what is hidden from each row's seat, None without a head."""

    def search(self, rules: Rules | None = None, **options: Any) -> Search:
        """Return a search whose leaves this policy's network evaluates."""


def check_searchable(policy: Searcher) -> None:
    """Raise with the reason if a policy cannot search."""
    rules, name = policy.rules, policy.name
    if policy.net.config.sees:
        raise ConfigError(never_plays(name))
    worlds = uses_worlds(rules) and not is_custom(rules)  # an environment is asked where it is
    if worlds:
        check_worlds(rules)
    if worlds and policy.net.by_role:
        raise ConfigError(
            f"{name} has a network for every role, whose values are of different rewards; leave "
            "the search out, or train without --hierarchy.on"
        )
    if policy.memory_bytes:
        raise ConfigError(
            f"{name} has memory, which the positions of a tree do not hold; leave the search out, "
            "or train without net.memory"
        )
    if policy.is_value_based:
        raise ConfigError(
            f"{name} has learned action values, and search needs probabilities and values of "
            "positions; leave the search out, or train with --algo ppo"
        )
    if not policy.has_values:
        raise ConfigError(
            f"{name} has no values: its value head is missing or was never trained; leave the "
            "search out, or train it with --algo ppo"
        )


class SearchCache:
    """Native passes and trees of a policy that searches, shared by copies of the policy.

    Packing weights and allocating trees would take longer than a search of few simulations.
    """

    def __init__(self) -> None:
        self._native: Evaluate | None = None
        self._key: tuple[Any, ...] = ()
        self._search: Search | None = None

    def evaluator(self, policy: Searcher, threads: int) -> Evaluate | None:
        """Return native passes of a network of torch: a batch of a search may have few rows."""
        if self._native is None and not isinstance(policy.net, ArrayNet):
            from sparring.nets.run.native import native_evaluator

            self._native = native_evaluator(policy.net, policy.device, threads)
        return self._native

    def search(self, policy: Searcher, rules: Rules, trees: int, **options: Any) -> Search:
        """Return a search with at least so many trees: the last one, if nothing else differs."""
        key = (policy.budget, id(rules), *options.items())
        if self._search is None or self._key != key or self._search.trees < trees:
            self._search = policy.search(rules, trees=trees, **options)
            self._key = key
        return self._search


def evaluator_of(policy: Searcher, threads: int = 1) -> Evaluate:
    """Return the function that evaluates leaves: policy head and value of each row."""

    def evaluate(rows: npt.NDArray[np.uint8]) -> tuple[Any, Any]:
        found = policy.evaluate(rows)
        return found.heads[POLICY], found.values

    return policy.searches.evaluator(policy, threads) or evaluate


def make_search(rules: Rules, evaluate: Evaluate, budget: Budget, **options: Any) -> Search:
    """Return a search in native games, or in custom environments."""
    if isinstance(rules, CustomRules):
        return EnvironmentSearch(rules, evaluate, budget, **options)
    return Search(rules, evaluate, budget, **options)


def belief_of(policy: Searcher, rules: Rules, config: SearchConfig) -> Believe | None:
    """Return the function that tells what a seat believes of hidden cards; None: it has none."""
    return policy.belief if config.worlds.belief and takes_belief(rules, policy.net) else None


def check_budget(rules: Rules, budget: Budget) -> None:
    """Raise if the game is not searched by such a budget, or memory does not hold a decision."""
    if not is_custom(rules):
        if uses_worlds(rules):
            check_worlds(rules, budget)
        check_memory(rules, budget.simulations or TIMED_NODES, 1, SearchConfig())


def config_of(policy: Searcher) -> SearchConfig:
    """Return the settings that follow from a policy: discounts and the unit of its returns."""
    unit = float(policy.net.value_scale)
    return SearchConfig(
        gamma=discount_of(policy.meta),
        gamma_into=tuple(settings_of(policy.meta).get("gamma_into", ())),
        worlds=WorldsConfig(unit=unit if unit > 0 else 1.0),
    )


def discount_of(meta: Mapping[str, Any]) -> float:
    """Return the discount that a policy was trained with, that at the end of a schedule."""
    given = settings_of(meta).get("gamma", 1.0)
    return Schedule.read(str(given)).at(Moment(decisions=2**62, progress=1.0))


def settings_of(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the algorithm that a policy was trained with."""
    config = meta.get("config")
    given = config.get(str(config.get("algo", "ppo"))) if isinstance(config, Mapping) else None
    return given if isinstance(given, Mapping) else {}


def search_actions(
    policy: Searcher, roots: Roots | None, *, greedy: bool, seed: int, rollout: int, step: int
) -> npt.NDArray[Any]:
    """Return the action of every root, in the order of the batch.

    greedy: without noise; otherwise Gumbel noise at the root varies the actions. Actions depend on
    the seed and the positions alone, for any threads and batches. States may come again, so their
    noise depends on the step as well.
    """
    if roots is None:
        give = f"give states of {policy.rules.name}, or "
        raise ConfigError(
            f"{policy.name} searches from positions, and observations are not positions; "
            f"{'' if is_custom(policy.rules) else give}leave @{policy.budget} out"
        )
    by_pool, by_state = derive_seed(seed, rollout), derive_seed(seed, rollout, step)
    actions = []
    where: Any
    for where, rows in roots:
        if isinstance(where, State):
            search = policy.search(where.rules, seed=by_state, noise=not greedy)
            actions += [search.from_state(where, int(row)).action for row in rows]
        elif len(rows):
            assert policy.budget
            options: dict[str, Any] = {"seed": by_pool, "noise": not greedy}
            if isinstance(where, Pool):
                trees = trees_for(where.rules, policy.budget, len(rows))
                options["threads"] = where.threads
            else:
                trees = trees_at_once(policy.budget, len(rows))
                options["seed"] = by_pool if greedy else by_state
            search = policy.searches.search(policy, where.rules, trees, **options)
            parts = [rows[first : first + trees] for first in range(0, len(rows), trees)]
            actions += [search.from_pool(where, part).action for part in parts]
    found = np.concatenate(actions)
    return found.clip(-1, 1) if policy.rules.box else found.astype(np.int32)
