"""Tree search, slow and plain: the twin that the searches of the native core are held equal to.

Every simulation plays its moves from the root again, in every game: games without chance lead to
the same positions, and games with chance are searched open loop. Numbers are Python floats;
`f32` rounds where the native core stores a float32.

Readings of what the rules of search leave open:
- Over the edges that are legal now (open loop) everything is computed as if the node had no other
  edges: the sum of visits, the mixed value, the largest visit count, the improved policy.
- exp(x) is 0 below -600, before exp2_of would leave its range.
- The principal line ends at a node whose edges have no visits.
- q of an edge without visits is 0 in the result. A PUCT search without simulations takes the most
  probable action.
- After a truncation the seat that would act is asked for the value; in games of one seat that one.
- Draws of an expansion begin at number 0x40000000 | row << 20 of the simulation's stream.
- What a single player cannot see is drawn anew in every simulation, as `State.resample_hidden`
  draws it with the complement of the seed.
- Rewards of forced moves before the root belong to its first step, as `State.apply` gives them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reference.philox import MASK, Philox
from sparring.games.state import State

SEARCH = 10
"""Stream of random numbers."""
SEED_OF_SEARCH = 0x5EA2C4B175EED5
MAX_LEGAL = {"shogi": 593}
"""Most legal actions of a position, where that is not the number of actions."""
WINS = ("tic_tac_toe", "connect_four", "shogi")
"""Games that pay a win, 1 to the winner and -1 to the loser, and nothing else."""
MAX_SEATS = {"skull_king": 8, "kuhhandel": 5}
"""Most seats of games in which their number is a flag."""

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def f32(x: float) -> float:
    return float(np.float32(x))


def log2_of(x: float) -> float:
    """As csrc/core/power.hpp."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    exponent = (bits >> 52) - 1023
    part = struct.unpack("<d", struct.pack("<Q", bits & 0xFFFFFFFFFFFFF | 0x3FF0000000000000))[0]
    if part > 1.4142135623730951:
        part *= 0.5
        exponent += 1
    s = (part - 1) / (part + 1)
    square = s * s
    total = square * (1.0 / 13) + 1.0 / 11
    for below in (9, 7, 5, 3, 1):
        total = total * square + 1.0 / below
    return exponent + 2.8853900817779268 * (s * total)


def exp2_of(x: float) -> float:
    """As csrc/core/power.hpp."""
    whole = int(x - 0.5 if x < 0 else x + 0.5)
    rest = (x - whole) * 0.6931471805599453
    total = rest * (1.0 / 3628800) + 1.0 / 362880
    for term in (1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0):
        total = total * rest + term
    return total * 2.0**whole


def exp(x: float) -> float:
    return 0.0 if x < -600 else exp2_of(x * 1.4426950408889634)


def ln(x: float) -> float:
    return log2_of(x) * 0.6931471805599453


@dataclass(frozen=True)
class Options:
    """How to search; numbers that are not whole are float32."""

    rule: str = "gumbel"
    simulations: int = 64
    seed: int = 0
    noise: bool = False
    squash: bool = False
    gamma: float = 1.0
    considered: int = 16
    width: int = 32
    samples: int = 16
    resample: bool = False
    """Whether what is hidden from the mover is drawn anew in every simulation."""
    rescale: bool = False
    c_visit: float = 50.0
    c_scale: float = 1.0
    c_puct: float = 1.25
    prove: bool = True
    """Whether positions are proven, in games that pay a win at the end and nothing else."""

    def __post_init__(self) -> None:
        for name in ("gamma", "c_visit", "c_scale", "c_puct"):
            object.__setattr__(self, name, f32(getattr(self, name)))


@dataclass
class Edge:
    index: int
    action: int
    prior: float
    logit: float = 0.0
    played: Any = None
    """What is applied: an action, or with several rows the actions of all."""
    gumbel: float = 0.0
    q: float = 0.0
    visits: int = 0
    child: Node | None = None


@dataclass
class Node:
    number: int
    seat: int = -1
    value: float = 0.0
    exact: bool = False
    """Whether the value is known: the game is over, or all that follows has been searched."""
    cut: bool = False
    """Whether it may have more legal actions than edges."""
    rewards: list[float] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    action: Any
    policy: np.ndarray
    value: float
    visits: list[int]
    q: list[float]
    actions: list[int]
    """Actions of the root's edges, in the order of `policy`, `visits` and `q`."""
    line: list[int]
    nodes: int


def complete(edges: list[Edge], value: float) -> list[float]:
    """Q of the visited edges, and for the others a mixture of value and visited Q."""
    visits = sum(edge.visits for edge in edges)
    mixed = value
    if visits:
        weighted = mass = 0.0
        for edge in edges:
            if edge.visits:
                weighted += edge.prior * edge.q
                mass += edge.prior
        mixed = (value + visits * weighted / mass) / (1 + visits)
    return [edge.q if edge.visits else mixed for edge in edges]


def rescaled(values: list[float], low: float, high: float) -> list[float]:
    return [(value - low) / max(high - low, 1e-8) for value in values]


def sigma(edges: list[Edge], value: float, options: Options) -> list[float]:
    """The completed Q as it is added to logits."""
    completed = complete(edges, value)
    if options.rescale:
        completed = rescaled(completed, min(completed), max(completed))
    most = max(edge.visits for edge in edges)
    return [(options.c_visit + most) * options.c_scale * q for q in completed]


def improved_weights(edges: list[Edge], value: float, options: Options) -> list[float]:
    """The improved policy before it is normalized."""
    scaled = sigma(edges, value, options)
    best = max(scaled)
    return [edge.prior * exp(x - best) for edge, x in zip(edges, scaled, strict=True)]


def weights_of(edges: list[Edge], value: float, options: Options) -> list[float]:
    """The improved policy, not yet divided by its sum."""
    scaled = sigma(edges, value, options)
    best = max(scaled)
    return [edge.prior * exp(x - best) for edge, x in zip(edges, scaled, strict=True)]


def improve(edges: list[Edge], value: float, options: Options) -> list[float]:
    """The improved policy."""
    weights = weights_of(edges, value, options)
    total = sum_in_order(weights)
    return [weight / total for weight in weights]


def largest(edges: list[Edge], keys: list[Any]) -> Edge:
    """The edge with the largest key, the first of equal ones."""
    return edges[max(range(len(edges)), key=lambda i: (keys[i], -i))]


def choose_by_gumbel(edges: list[Edge], value: float, options: Options) -> Edge:
    weights = weights_of(edges, value, options)
    by_sum = 1.0 / sum_in_order(weights)
    by_visits = 1.0 / (1.0 + sum(edge.visits for edge in edges))
    shares = zip(weights, edges, strict=True)
    return largest(edges, [w * by_sum - edge.visits * by_visits for w, edge in shares])


def choose_by_puct(edges: list[Edge], value: float, options: Options) -> Edge:
    visits = sum(edge.visits for edge in edges)
    q = [edge.q if edge.visits else value for edge in edges]
    if options.rescale:
        seen = [edge.q for edge in edges if edge.visits] + [value]
        q = rescaled(q, min(seen), max(seen))
    root = math.sqrt(max(visits, 1))
    return largest(
        edges,
        [
            x + options.c_puct * edge.prior * root / (1 + edge.visits)
            for x, edge in zip(q, edges, strict=True)
        ],
    )


def halve(
    simulations: int, considered: list[int], ranked: Callable[[list[int]], list[int]]
) -> Iterator[int]:
    """Visits of sequential halving; `ranked` sorts edges by what the visits so far have shown."""
    count, left = len(considered), simulations
    phases = max(1, math.ceil(math.log2(count)))
    while left > 0:
        for _ in range(max(1, simulations // (phases * count))):
            for edge in considered[:count]:
                if left > 0:
                    left -= 1
                    yield edge
        considered = ranked(considered[:count])
        count = 1 if count == 1 else max(2, count // 2)


class Search:
    """The tree of one decision."""

    def __init__(self, state: State, row: int, evaluate: Evaluate, options: Options) -> None:
        rules = state.rules
        self.row = row
        self.evaluate = evaluate
        self.options = options
        self.seats = rules.seats
        alone = rules.seats == 1 or (rules.zero_sum and rules.seats == 2 and rules.rows == 1)
        self.leaf_rows = 1 if alone else rules.seats
        self.proves = options.prove and rules.name in WINS and not rules.chance
        self.seed = options.seed % 2**64 ^ SEED_OF_SEARCH
        self.start = State(rules, self.seed, state.weights, game=state.index)
        self.episode_at = -(-len(state.native.position()[0]) // 4) * 4
        self.bytes = self.without_bots(state)
        self.nodes: list[Node] = []
        self.root = self.new_node()
        self.root.seat = state.native.seat(row)
        self.settle(self.root, self.begin(0), 0)
        self.add_gumbels()

    def without_bots(self, state: State) -> bytes:
        """The bytes of a state, with policies in all seats: `Env` of csrc/core/env.hpp."""
        rules = state.rules
        seats = MAX_SEATS.get(rules.name, rules.seats)
        changed = bytearray(state.native.serialize())
        struct.pack_into("<I", changed, self.episode_at + 20, rules.seats)
        players_at = self.episode_at + 24 + 4 * seats * len(rules.roles) + 2 * seats
        struct.pack_into(f"<{rules.seats}h", changed, players_at, *[0] * rules.seats)
        return bytes(changed)

    def mixed(self, simulation: int) -> int:
        """An episode of its own for a simulation."""
        episode, _, _, _, length = struct.unpack_from("<5I", self.bytes, self.episode_at)
        return (episode * 0x9E3779B1 + length * 0x85EBCA77 + simulation * 0xC2B2AE3D) & MASK

    def begin(self, simulation: int) -> State:
        """The root's position, with the chance of a simulation ahead."""
        changed = bytearray(self.bytes)
        struct.pack_into("<I", changed, self.episode_at, self.mixed(simulation))
        state = self.start.clone()
        error = state.native.load(bytes(changed))
        assert not error, error
        if self.options.resample and simulation:
            state.resample_hidden(self.root.seat, self.seed ^ 2**64 - 1)
        return state

    def rng(self, simulation: int, drawn: int) -> Philox:
        return Philox(self.seed, self.start.index, self.mixed(simulation), SEARCH, drawn)

    def new_node(self) -> Node:
        self.nodes.append(Node(len(self.nodes)))
        return self.nodes[-1]

    def add_gumbels(self) -> None:
        rng = self.rng(0, self.row << 20)
        for edge in self.root.edges if self.options.noise else ():
            edge.gumbel = f32(-ln(-ln((rng.u32() + 0.5) / 2**32)))

    def settle(self, node: Node, state: State, simulation: int) -> list[float]:
        """Values by seat where a simulation stops; a new node gets its edges."""
        if state.terminated:
            return [0.0] * self.seats
        seat = mover(state, self.row)
        asked = [seat] if self.leaf_rows == 1 else range(self.seats)
        heads, values = self.evaluate(np.stack([state.observe_bytes(x) for x in asked]))
        returns = [float(value) for value in values]
        if self.leaf_rows == 1 and self.seats == 2:
            returns = [returns[0] if x == seat else -returns[0] for x in range(2)]
        if not node.edges and not state.truncated:
            node.seat = seat
            node.value = returns[seat]
            self.expand(node, state, heads, simulation)
        return returns

    def expand(self, node: Node, state: State, heads: np.ndarray, simulation: int) -> None:
        rules = state.rules
        rng = self.rng(simulation, 0x40000000 | self.row << 20)
        if rules.box:
            by_row = [heads[mover(state, row)] for row in range(rules.rows)]
            for index in range(self.options.samples):
                played = [draw_box(head, index > 0, self.options.squash, rng) for head in by_row]
                prior = f32(1 / self.options.samples)
                node.edges.append(Edge(index, index, prior, 0.0, np.array(played, np.float32)))
            return
        self.expand_policy(node, state, heads[0 if self.leaf_rows == 1 else node.seat])
        if rules.rows > 1:
            for edge in node.edges:
                edge.played = self.joint_action(edge.action, state, heads, rng)

    def joint_action(self, action: int, state: State, heads: np.ndarray, rng: Philox) -> list[int]:
        """An action of the searched row, answered by draws from the policies of the others."""
        joint = []
        for row in range(state.rules.rows):
            seat = state.native.seat(row)
            if row == self.row:
                joint.append(action)
            elif seat < 0:
                joint.append(0)
            else:
                joint.append(draw_action(heads[seat], state.legal(row), rng))
        return joint

    def expand_policy(self, node: Node, state: State, head: np.ndarray) -> None:
        legal, rules = state.legal(self.row), state.rules
        if node is not self.root and len(legal) > self.options.width:
            best = sorted(legal, key=lambda action: (-head[action], action))
            legal = sorted(best[: self.options.width])
        widest = len(legal) == self.options.width and self.options.width < MAX_LEGAL.get(
            rules.name, rules.actions
        )
        node.cut = node is not self.root and widest
        top = max(float(head[action]) for action in legal)
        weights = softmax_weights(head, legal)
        total = sum_in_order(weights)
        for index, (action, weight) in enumerate(zip(legal, weights, strict=True)):
            logit = f32(float(head[action]) - top)
            prior = max(f32(weight / total), f32(1e-30))
            node.edges.append(Edge(index, action, prior, logit, action))

    def simulate(self, simulation: int, edge: Edge) -> None:
        """One simulation, which begins with an edge of the root."""
        state = self.begin(simulation)
        node = self.root
        path: list[tuple[Node, Edge]] = []
        chosen: Edge | None = edge
        while chosen is not None:
            role = state.native.role(self.row)
            state.apply(chosen.played)
            chosen.child = chosen.child or self.new_node()
            path.append((node, chosen))
            node = chosen.child
            node.rewards = [float(reward) for reward in state.rewards_by_role[:, role]]
            node.exact = node.exact or (self.proves and state.terminated)
            chosen = None if state.over or node.exact else self.choose(node, state)
        if node.exact:
            self.back_up(path, self.by_seat(node.value, node.seat))
        else:
            self.back_up(path, self.settle(node, state, simulation))

    def choose(self, node: Node, state: State) -> Edge | None:
        """The edge by the rule; None where the simulation stops."""
        if state.native.seat(self.row) != node.seat:
            return None
        edges = node.edges
        if not state.rules.box:
            legal = set(state.legal(self.row))
            edges = [edge for edge in edges if edge.action in legal]
        if not edges:
            return None
        rule = choose_by_puct if self.options.rule == "puct" else choose_by_gumbel
        return rule(edges, node.value, self.options)

    def back_up(self, path: list[tuple[Node, Edge]], returns: list[float]) -> None:
        for parent, edge in reversed(path):
            assert edge.child is not None
            for seat in range(self.seats):
                discounted = seat == parent.seat or self.start.rules.rows > 1
                gamma = self.options.gamma if discounted else 1.0
                returns[seat] = edge.child.rewards[seat] + gamma * returns[seat]
            total = edge.q * edge.visits + returns[parent.seat]
            exact = edge.child.exact
            edge.q = f32(returns[parent.seat] if exact else total / (edge.visits + 1))
            edge.visits += 1
            if exact and parent is not self.root and self.prove(parent):
                returns = self.by_seat(parent.value, parent.seat)

    def by_seat(self, value: float, seat: int) -> list[float]:
        """Returns of a zero-sum game in which `seat` gains a value."""
        return [value if x == seat else -value for x in range(self.seats)]

    def prove(self, node: Node) -> bool:
        """Note the value of a node as exact, if an edge wins or those of all edges are."""
        exact = [edge.q for edge in node.edges if is_exact(edge)]
        known = len(exact) == len(node.edges) and not node.cut
        if max(exact) > 0 or known:
            node.exact, node.value = True, max(exact)
        return node.exact

    def keep(self, before: Search, actions: list[int]) -> None:
        """Go on with the tree of a search whose root was so many actions before this one."""
        node: Node | None = before.root
        for action in actions:
            children = {edge.action: edge.child for edge in node.edges} if node else {}
            node = children.get(action)
        known = {edge.action: edge for edge in node.edges} if node else {}
        for edge in self.root.edges:
            if old := known.get(edge.action):
                edge.visits, edge.q, edge.child = old.visits, old.q, old.child
                self.nodes += nodes_below(old)
        visits = sum(edge.visits for edge in self.root.edges)
        self.options = replace(self.options, simulations=max(self.options.simulations - visits, 0))

    def run(self) -> Found:
        if self.options.rule == "puct":
            for number in range(1, self.options.simulations + 1):
                edge = choose_by_puct(self.root.edges, self.root.value, self.options)
                self.simulate(number, edge)
        else:
            for number, index in enumerate(self.gumbel_visits(), 1):
                self.simulate(number, self.root.edges[index])
        return self.found()

    def gumbel_visits(self) -> Iterator[int]:
        edges = self.root.edges
        first = sorted(edges, key=lambda edge: (-(edge.gumbel + edge.logit), edge.index))
        count = max(1, min(self.options.considered, len(edges), self.options.simulations))
        return halve(self.options.simulations, [edge.index for edge in first[:count]], self.ranked)

    def scores(self) -> list[float]:
        """Of the root's edges, by which halving keeps them."""
        edges = self.root.edges
        if not any(edge.visits for edge in edges):
            return [edge.gumbel + edge.logit for edge in edges]
        scaled = sigma(edges, self.root.value, self.options)
        return [e.gumbel + e.logit + x for e, x in zip(edges, scaled, strict=True)]

    def ranked(self, indices: list[int]) -> list[int]:
        scores = self.scores()
        return sorted(indices, key=lambda index: (-scores[index], index))

    def decide(self) -> Edge:
        edges = self.root.edges
        scores = [e.q if e.visits else e.prior for e in edges]
        if self.options.rule != "puct":
            scores = self.scores()
        ranks = [np.sign(e.q) if is_exact(e) else 0 for e in edges]
        return largest(
            edges, [(r, e.visits, s) for r, e, s in zip(ranks, edges, scores, strict=True)]
        )

    def found(self) -> Found:
        edges, value = self.root.edges, self.root.value
        chosen = self.decide()
        improved = improve(edges, value, self.options)
        completed = complete(edges, value)
        return Found(
            action=chosen.played[self.row] if self.start.rules.rows > 1 else chosen.played,
            policy=np.array(improved, np.float32),
            value=sum_in_order([p * q for p, q in zip(improved, completed, strict=True)]),
            visits=[edge.visits for edge in edges],
            q=[edge.q for edge in edges],
            actions=[edge.action for edge in edges],
            line=principal_line(chosen),
            nodes=len(self.nodes),
        )


def nodes_below(edge: Edge) -> list[Node]:
    if edge.child is None:
        return []
    return [edge.child, *(node for below in edge.child.edges for node in nodes_below(below))]


def is_exact(edge: Edge) -> bool:
    return edge.child is not None and edge.child.exact


def principal_line(edge: Edge) -> list[int]:
    """Actions from an edge on, by the most visits, or those that prove an exact value."""
    line = [edge.action]
    while edge.child and any(below.visits for below in edge.child.edges):
        node, edges = edge.child, edge.child.edges
        if node.exact:
            edges = [below for below in edges if is_exact(below) and below.q == node.value]
        edge = largest(edges, [below.visits for below in edges])
        line.append(edge.action)
    return line


def mover(state: State, row: int) -> int:
    """The seat to act; after a truncation the one that would be."""
    if not state.truncated:
        return state.native.seat(row)
    if state.rules.seats == 1 or "mover" not in state.fields():
        return 0
    return int(state.fields()["mover"][0])


def draw_action(head: np.ndarray, legal: list[int], rng: Philox) -> int:
    weights = softmax_weights(head, legal)
    point = rng.u32() / 2**32 * sum_in_order(weights)
    running = 0.0
    for action, weight in zip(legal, weights, strict=True):
        running += weight
        if running > point:
            return action
    return legal[-1]


def draw_box(head: np.ndarray, sampled: bool, squash: bool, rng: Philox) -> list[float]:
    """Components within -1..1 from Gaussians; `head` has means, then log deviations."""
    box = len(head) // 2
    numbers = []
    for mean, log_std in zip(head[:box], head[box:], strict=True):
        x = float(mean)
        if sampled:
            x += exp(min(max(float(log_std), -5.0), 1.0)) * draw_normal(rng)
        if squash:  # tanh
            x = 1.0 - 2.0 / (exp(2.0 * min(max(x, -20.0), 20.0)) + 1.0)
        numbers.append(min(max(f32(x), -1.0), 1.0))
    return numbers


def draw_normal(rng: Philox) -> float:
    radius = math.sqrt(-2.0 * ln((rng.u32() + 1.0) / 2**32))
    turn = rng.u32() / 2**32
    return radius * cos_of(np.float32(turn * 6.283185307179586))


def cos_of(angle: np.float32) -> float:
    """As csrc/core/sincos.hpp, of an angle that is not negative; all in float32."""
    f = np.float32
    quarters = int(angle * f(0.636619772) + f(0.5))
    count = f(quarters)
    rest = angle - count * f(1.5703125) - count * f(0.0004837512969970703)
    rest = rest - count * f(7.54979013e-08)
    square = rest * rest
    inner = (f(-1.9517298e-4) * square + f(8.3321781e-3)) * square - f(1.66666549e-1)
    sin = rest + rest * square * inner
    inner = (f(2.4438451e-5) * square - f(1.38873675e-3)) * square + f(4.16666469e-2)
    cos = f(1) - f(0.5) * square + square * square * inner
    return float((cos, -sin, -cos, sin)[quarters & 3])


def softmax_weights(head: np.ndarray, legal: list[int]) -> list[float]:
    logits = [float(head[action]) for action in legal]
    top = max(logits)
    return [exp(logit - top) for logit in logits]


def sum_in_order(numbers: list[float]) -> float:
    """A plain sum; Python's `sum` compensates rounding from 3.12 on."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def split_mix(numbers: np.ndarray) -> np.ndarray:
    """SplitMix64 of each number: an integer hash."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def fixed_evaluator(outputs: int) -> Evaluate:
    """A policy and value that are a hash of the observation, in exact floats.

    obs u8 [rows, bytes] -> head f32 [rows, outputs] in 64ths within -4..4, value f32 [rows] in
    256ths within -1..1. Byte i counts split_mix(i) times; all is modulo 2^64.
    """

    def evaluate(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = split_mix(np.arange(obs.shape[1]))
        hashes = (obs.astype(np.uint64) * weights).sum(1, dtype=np.uint64)
        mixed = split_mix(hashes[:, None] + np.arange(outputs + 1, dtype=np.uint64))
        steps = (mixed >> np.uint64(32)).astype(np.int64) % 513 - 256
        head = (steps[:, :outputs] / 64).astype(np.float32)
        return head, (steps[:, outputs] / 256).astype(np.float32)

    return evaluate
