"""A search tree in Python, for custom environments: the rules of csrc/search/tree.hpp.

Every simulation copies the root's environment and plays the actions of its path again. So one copy
per leaf is alive instead of one per node, and chance is searched open loop, as in native games.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparring.games.seeds import ENV_SEED_LIMIT, derive_seed
from sparring.pools.custom.copies import reseed_env
from sparring.pools.custom.rules import CustomRules
from sparring.pools.custom.tables import EnvTable
from sparring.search.budget import PUCT
from sparring.search.search import Floats, SearchConfig

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
MIN_PRIOR = np.float32(1e-30)
MIN_LOG_STD, MAX_LOG_STD = -5.0, 1.0


class Node:
    """A decision with its edges as arrays; with chance, all positions that its actions lead to."""

    def __init__(self, number: int) -> None:
        self.number, self.seat, self.value = number, -1, 0.0
        self.reward: Array = np.zeros(0)
        """By seat, of the step that led here last."""
        self.action: Ints = np.zeros(0, np.intp)
        """No actions: not expanded yet."""
        self.played: npt.NDArray[Any] = self.action
        """Actions as `CustomRules.env_actions` takes them: numbers, or [edges, box]."""
        self.prior = self.logit = self.mean = np.zeros(0, np.float32)
        self.visits = np.zeros(0, np.int64)
        self.child: dict[int, Node] = {}

    def expand(self, action: Ints, played: npt.NDArray[Any], logit: Array) -> None:
        above = logit - logit.max()
        weight = np.exp(above)
        self.action, self.played, self.logit = action, played, above.astype(np.float32)
        self.prior = np.maximum((weight / weight.sum()).astype(np.float32), MIN_PRIOR)
        self.mean, self.visits = np.zeros(len(action), np.float32), np.zeros(len(action), np.int64)


class Edges(NamedTuple):
    """Numbers of a node's edges, or of those that are legal now."""

    value: float
    prior: Array
    mean: Array
    visits: npt.NDArray[np.int64]

    @classmethod
    def of(cls, node: Node, at: Any = slice(None)) -> Edges:
        prior, mean = node.prior[at].astype(np.float64), node.mean[at].astype(np.float64)
        return cls(node.value, prior, mean, node.visits[at])

    def completed(self) -> Array:
        """Mean returns; edges without visits have the value mixed with the visited ones' means."""
        total, seen = int(self.visits.sum()), self.visits > 0
        if not total:
            return np.full(len(self.prior), self.value)
        weighted, mass = (self.prior * self.mean)[seen].sum(), self.prior[seen].sum()
        return np.where(seen, self.mean, (self.value + total * weighted / mass) / (1 + total))


class TreeRules:
    """What all trees of a search share: the environment's rules and the settings."""

    def __init__(
        self, game: CustomRules, config: SearchConfig, *, rule: str, seed: int, noise: bool
    ) -> None:
        self.game, self.config, self.seed, self.noise = game, config, seed, noise
        self.puct = rule == PUCT
        self.squash = False
        self.one_row = game.seats == 1 or game.zero_sum
        """Whether the value of the seat that decides tells that of the other."""
        self.rescale, scale = config.scaling(game)
        numbers = (scale, config.c_visit, config.c_puct, config.gamma)
        self.c_scale, self.c_visit, self.c_puct, self.gamma = np.array(numbers, "f4").tolist()

    def bonus(self, edges: Edges) -> Array:
        """Completed means as they are added to logits: sigma(q)."""
        q = edges.completed()
        q = rescaled(q, q) if self.rescale else q
        return np.asarray((self.c_visit + edges.visits.max()) * self.c_scale * q)

    def improved(self, edges: Edges) -> Array:
        """The improved policy."""
        bonus = self.bonus(edges)
        weight = edges.prior * np.exp(bonus - bonus.max())
        return np.asarray(weight / weight.sum())

    def choose(self, edges: Edges) -> int:
        return self._by_puct(edges) if self.puct else self._by_gumbel(edges)

    def _by_gumbel(self, edges: Edges) -> int:
        """The edge whose share of the visits is furthest below that of the improved policy."""
        return int(np.argmax(self.improved(edges) - edges.visits / (1 + edges.visits.sum())))

    def _by_puct(self, edges: Edges) -> int:
        seen = edges.visits > 0
        q = np.where(seen, edges.mean, edges.value)
        q = rescaled(q, np.append(edges.mean[seen], edges.value)) if self.rescale else q
        root = math.sqrt(max(int(edges.visits.sum()), 1))
        return int(np.argmax(q + self.c_puct * edges.prior * root / (1 + edges.visits)))


def rescaled(q: Array, seen: Array) -> Array:
    return np.asarray((q - seen.min()) / max(seen.max() - seen.min(), 1e-8))


@dataclass
class Leaf:
    """Where a simulation stops."""

    node: Node
    path: list[tuple[Node, int]]
    """Nodes from the root on, and the edges that were followed."""
    table: EnvTable
    seats: list[int]
    """Seats whose observations are evaluated."""
    simulation: int


class Tree:
    """The tree of one decision."""

    def __init__(self, rules: TreeRules, table: EnvTable, simulations: int) -> None:
        self.rules, self.table, self.simulations = rules, table, simulations
        self.root = Node(0)
        self.nodes = [self.root]
        self.started = self.settled = 0
        seen = zlib.crc32(table.numbers.tobytes())
        # With noise, games in the same position play differently.
        self.seed = derive_seed(rules.seed, seen, table.index if rules.noise else 0)
        self.chance = np.random.default_rng(self.seed)
        """Draws the seeds of simulations."""
        self.gumbel: Array = np.zeros(0)

    def grow(self) -> Iterator[list[Leaf]]:
        """Yield the leaves of one round after another; `settle` them before the next."""
        yield [self._leaf(self.root, [], self.table.clone())]
        self.gumbel = np.zeros(len(self.root.action))
        if self.rules.noise:
            self.gumbel = np.random.default_rng(self.seed).gumbel(size=len(self.gumbel))
        for edges in self._rounds():
            yield [self._simulate(edge) for edge in edges]

    def settle(self, leaf: Leaf, head: Floats, value: Floats) -> None:
        """Take the evaluation of a leaf: policy head and value of each of its seats."""
        node, seats = leaf.node, self.rules.game.seats
        returns = np.zeros(seats)
        returns[leaf.seats] = value
        if self.rules.one_row and seats == 2:
            returns[[1 - seat for seat in leaf.seats]] = -value
        if not len(node.action) and not leaf.table.over:
            node.seat = leaf.table.deciding()[0]
            node.value = float(returns[node.seat])
            mine = head[leaf.seats.index(node.seat)].astype(np.float64)
            self._expand(node, leaf.table.mask[node.seat], mine, leaf.simulation)
        if leaf.path:
            self._back_up(leaf.path, returns)
            self.settled += 1

    def decide(self) -> int:
        """The chosen edge of the root: the best of the most visited ones."""
        root = self.root
        alone = np.where(root.visits > 0, root.mean, root.prior)
        score = alone if self.rules.puct else self._scores()
        return int(np.argmax(np.where(root.visits == root.visits.max(), score, -np.inf)))

    def line(self) -> list[int]:
        """Expected actions from the root on, the chosen one first."""
        node, edge = self.root, self.decide()
        actions = [int(node.action[edge])]
        while edge in node.child and node.child[edge].visits.any():
            node = node.child[edge]
            edge = int(np.argmax(node.visits))
            actions.append(int(node.action[edge]))
        return actions

    def _rounds(self) -> Iterator[list[int]]:
        """Yield edges of the root that are visited together."""
        if self.rules.puct:
            for _ in range(self.simulations):
                yield [self.rules.choose(Edges.of(self.root))]
            return
        considered = np.argsort(-self._scores(), kind="stable")
        count = max(1, min(self.rules.config.considered, len(considered), self.simulations))
        phases, left = max(1, math.ceil(math.log2(count))), self.simulations
        while left > 0:
            for _ in range(max(1, self.simulations // (phases * count))):
                visited = considered[: min(count, left)].tolist()
                left -= len(visited)
                if visited:
                    yield visited
            kept = np.sort(considered[:count])
            considered = kept[np.argsort(-self._scores()[kept], kind="stable")]
            count = 1 if count == 1 else max(2, count // 2)

    def _scores(self) -> Array:
        """By which sequential halving keeps edges of the root."""
        scores = self.gumbel + self.root.logit
        return scores + self.rules.bonus(Edges.of(self.root)) if self.settled else scores

    def _simulate(self, first: int) -> Leaf:
        """Play from the root, as far as the tree reaches."""
        self.started += 1
        table, node, path = self.table.clone(), self.root, list[tuple[Node, int]]()
        reseed_env(table.env, int(self.chance.integers(ENV_SEED_LIMIT)))
        edge: int | None = first
        while edge is not None:
            self._play(table, node.played[edge])
            path.append((node, edge))
            node = self._child(node, edge)
            node.reward = table.reward.astype(np.float32).astype(np.float64)
            edge = None if table.over else self._choose(node, table)
        return self._leaf(node, path, table)

    def _play(self, table: EnvTable, action: Any) -> None:
        table.reward.fill(0)
        table.play(self.rules.game.env_actions(np.asarray(action)[None]))

    def _child(self, node: Node, edge: int) -> Node:
        if edge not in node.child:
            node.child[edge] = Node(len(self.nodes))
            self.nodes.append(node.child[edge])
        return node.child[edge]

    def _choose(self, node: Node, table: EnvTable) -> int | None:
        """The edge to follow, of those that are legal now; None: the simulation stops."""
        if not len(node.action) or table.deciding()[0] != node.seat:
            return None
        box = self.rules.game.box
        legal = range(len(node.action)) if box else table.mask[node.seat][node.action].nonzero()[0]
        if not len(legal):
            return None
        return int(legal[self.rules.choose(Edges.of(node, legal))])

    def _leaf(self, node: Node, path: list[tuple[Node, int]], table: EnvTable) -> Leaf:
        table.check()  # here, not in every step again
        count = self.rules.game.seats
        seats = [seat for seat in range(count) if not table.terminated[seat]]
        if seats and self.rules.one_row:
            # After a truncation the seat that would decide next.
            seats = [(path[-1][0].seat + 1) % count] if table.over else table.deciding()
        elif seats:
            table.see_all()
        return Leaf(node, path, table, seats, self.started)

    def _expand(self, node: Node, mask: Any, head: Array, simulation: int) -> None:
        if self.rules.game.box:
            numbers = self._sampled(head, simulation)
            node.expand(np.arange(len(numbers)), numbers, np.zeros(len(numbers)))
            return
        legal, width = np.flatnonzero(mask), self.rules.config.width
        if node is not self.root and len(legal) > width:
            legal = np.sort(legal[np.argsort(-head[legal], kind="stable")[:width]])
        node.expand(legal, legal, head[legal])

    def _sampled(self, head: Array, simulation: int) -> Floats:
        """Continuous actions drawn from a Gaussian; the first is its mean."""
        mean, log_std = np.split(head, 2)
        rng = np.random.default_rng([self.seed, simulation])
        drawn = rng.standard_normal((self.rules.config.samples, len(mean)))
        drawn[0] = 0
        numbers = mean + np.exp(log_std.clip(MIN_LOG_STD, MAX_LOG_STD)) * drawn
        numbers = np.tanh(numbers) if self.rules.squash else numbers
        return np.asarray(numbers.clip(-1, 1), np.float32)

    def _back_up(self, path: Sequence[tuple[Node, int]], returns: Array) -> None:
        """Add the returns of a simulation to the edges on its way."""
        for node, edge in reversed(path):
            returns[node.seat] *= self.rules.gamma
            returns = node.child[edge].reward + returns
            total = float(node.mean[edge]) * int(node.visits[edge]) + returns[node.seat]
            node.visits[edge] += 1
            node.mean[edge] = total / node.visits[edge]
