"""Search over worlds, slow and plain: the twin that the native one is held equal to.

A decision is tried in worlds that its seat thinks possible: every candidate in every world. The
seats play on by one policy, each from its own row, until the deciding seat has decided so often
that the network's value counts, or to the end. Then one step of mirror descent from the policy.

Readings of what the rules leave open:
- The draws of a world are numbered from 0 on for every candidate, one per action that a policy
  chooses, rows in order.
- Rewards between two decisions of the seat are not discounted, as in training.
- A truncated game counts by the value of the seat's last row.
- A single world tells no error; with caution nothing is learned from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reference import search
from reference.philox import Philox
from reference.search import SEARCH, SEED_OF_SEARCH, Evaluate, draw_action, exp, f32, ln
from sparring.games.state import State


@dataclass(frozen=True)
class Options:
    """How to search; numbers that are not whole are float32."""

    playouts: int = 64
    seed: int = 0
    noise: bool = False
    considered: int = 16
    least: int = 1
    horizon: int = 0
    eta: float = 1.0
    alpha: float = 0.0
    caution: float = 0.0
    gamma: float = 1.0
    gamma_into: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("eta", "alpha", "caution", "gamma"):
            object.__setattr__(self, name, f32(getattr(self, name)))
        object.__setattr__(self, "gamma_into", tuple(map(f32, self.gamma_into)))

    def into(self, role: int) -> float:
        return self.gamma_into[role] if self.gamma_into else self.gamma


@dataclass(frozen=True)
class Found:
    action: int
    policy: np.ndarray
    value: float
    visits: dict[int, int]
    """Worlds by tried action."""
    q: dict[int, float]


class Worlds(search.Search):
    """One decision. Worlds are made as the slow trees make the roots of simulations."""

    def __init__(
        self,
        state: State,
        row: int,
        evaluate: Evaluate,
        options: Options,
        given: Sequence[State] = (),
        weights: Sequence[float] = (),
    ) -> None:
        self.row, self.evaluate, self.worlds = row, evaluate, options
        self.options = search.Options(resample=True)
        self.seed = options.seed % 2**64 ^ SEED_OF_SEARCH
        self.start = State(state.rules, self.seed, state.weights, game=state.index)
        self.episode_at = -(-len(state.native.position()[0]) // 4) * 4
        self.bytes = self.without_bots(state)
        self.root = search.Node(0, seat=state.native.seat(row))
        self.given, self.weights = given, weights
        self.legal = state.legal(row)
        heads, values = evaluate(state.observe_bytes(self.root.seat)[None])
        self.logits = [float(heads[0, action]) for action in self.legal]
        self.value = float(values[0])

    def world(self, number: int) -> State:
        if not self.given:
            return self.begin(number + 1)
        self.bytes = self.without_bots(self.given[number])
        self.options = search.Options(resample=False)
        return self.begin(number + 1)

    def candidates(self) -> list[int]:
        """Indices of the most probable actions."""
        options = self.worlds
        if len(self.legal) < 2 or options.playouts < 2:
            return []
        most = max(2, options.playouts // options.least)
        if self.given:
            most = max(1, options.playouts // len(self.given))
        by_logit = sorted(range(len(self.legal)), key=lambda i: (-self.logits[i], i))
        return by_logit[: min(options.considered, most)]

    def play(self, number: int, candidate: int) -> float:
        """The return of an action in a world."""
        state, me, options = self.world(number), self.root.seat, self.worlds
        rng = Philox(self.seed, self.start.index, self.mixed(number + 1), SEARCH, 0)
        decisions, total, weight, role = 0, 0.0, 1.0, state.native.role(self.row)
        while True:
            state.apply(self.actions(state, candidate if decisions == 0 else None, rng))
            decisions = max(decisions, 1)
            total += weight * float(state.rewards_by_role[me, role])
            for _ in range(state.native.skipped()[me]):
                weight *= options.gamma
            if state.terminated:
                return total
            if state.truncated:
                return total + weight * options.gamma * self.value_of(state)
            again = [row for row in range(state.rules.rows) if state.native.seat(row) == me]
            if not again:
                continue
            role = state.native.role(again[0])
            weight *= options.into(role)
            if weight == 0:
                return total
            if decisions == options.horizon:
                return total + weight * self.value_of(state)
            decisions += 1

    def value_of(self, state: State) -> float:
        _, values = self.evaluate(state.observe_bytes(self.root.seat)[None])
        return float(values[0])

    def actions(self, state: State, candidate: int | None, rng: Philox) -> int | list[int]:
        chosen = []
        for row in range(state.rules.rows):
            seat = state.native.seat(row)
            if candidate is not None and row == self.row:
                chosen.append(candidate)
            elif seat < 0:
                chosen.append(0)
            else:
                heads, _ = self.evaluate(state.observe_bytes(seat)[None])
                chosen.append(draw_action(heads[0], state.legal(row), rng))
        return chosen if len(chosen) > 1 else chosen[0]

    def run(self) -> Found:
        tried = self.candidates()
        count = len(self.given) or (self.worlds.playouts // len(tried) if tried else 0)
        played = [[self.play(world, self.legal[i]) for i in tried] for world in range(count)]
        weights = list(self.weights) or [1.0] * count
        log_policy = log_softmax(self.logits)
        q = [0.0] * len(self.legal)
        if played and tried:
            prior = [exp(x) for x in log_policy]
            q, eta = self.mean_returns(prior, tried, played, weights)
            alpha = self.worlds.alpha
            log_policy = [
                (x + eta * y) / (1 + eta * alpha) for x, y in zip(log_policy, q, strict=True)
            ]
        log_policy = log_softmax(log_policy)
        policy = [exp(x) for x in log_policy]
        return Found(
            action=self.choose(log_policy),
            policy=np.array(policy, np.float32),
            value=self.mean(policy, q) if tried else self.value,
            visits={self.legal[i]: count for i in tried},
            q={self.legal[i]: f32(q[i]) for i in tried},
        )

    @staticmethod
    def mean(policy: list[float], q: list[float]) -> float:
        """Added up in float32."""
        total = np.float32(0)
        for share, value in zip(policy, q, strict=True):
            total += np.float32(share * value)
        return float(total)

    def choose(self, log_policy: list[float]) -> int:
        rng = Philox(self.seed, self.start.index, self.mixed(0), SEARCH, 1 << 20)
        scores = []
        for x in log_policy:
            noise = -ln(-ln((rng.u32() + 0.5) / 2**32)) if self.worlds.noise else 0.0
            scores.append(x + noise)
        return self.legal[max(range(len(scores)), key=lambda i: (scores[i], -i))]

    def mean_returns(
        self,
        prior: list[float],
        tried: list[int],
        played: list[list[float]],
        weights: list[float],
    ) -> tuple[list[float], float]:
        """Mean returns of all legal actions, and the step size."""
        options, count = self.worlds, len(tried)
        mass = add(prior[i] for i in tried)
        sums, squares, mean = [0.0] * count, [0.0] * count, 0.0
        for returns, weight in zip(played, weights, strict=True):
            base = add(prior[i] * x for i, x in zip(tried, returns, strict=True)) / mass
            for at, x in enumerate(returns):
                sums[at] += weight * (x - base)
                squares[at] += weight * (x - base) * (x - base)
            mean += weight * base
        whole = add(weights)
        mean /= whole
        q, variance = [mean] * len(self.legal), 0.0
        for at, i in enumerate(tried):
            above = sums[at] / whole
            q[i] = mean + above
            variance += prior[i] / mass * (squares[at] / whole - above * above)
        if options.caution == 0:
            return q, options.eta
        effective = whole * whole / add(weight * weight for weight in weights)
        if effective < 1.5:
            return q, 0.0
        error = math.sqrt(max(variance, 0.0) / (effective - 1.0))
        return q, options.eta / (1.0 + options.caution * options.eta * error)


def add(numbers: Sequence[float] | object) -> float:
    """The sum in order, rounded after every addition."""
    total = 0.0
    for number in numbers:  # type: ignore[attr-defined]
        total += number
    return total


def log_softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    total = ln(add(exp(x - top) for x in logits))
    return [max(x - top, -600.0) - total for x in logits]


def exact_returns(
    world: State, seat: int, policy: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> dict[int, float]:
    """Expected sum of rewards of a seat by its action in a world, over all that may follow."""

    def value(state: State) -> float:
        if state.over:
            return 0.0
        obs, mask = state.decision()
        shares = np.asarray(policy(obs, mask)[0], np.float64)
        return sum(shares[a] * after(state, a) for a in state.legal() if shares[a])

    def after(state: State, action: int) -> float:
        next_state = state.clone()
        next_state.apply(action)
        return float(next_state.rewards[seat]) + value(next_state)

    return {action: after(world, action) for action in world.legal()}


def mirror_step(prior: np.ndarray, q: np.ndarray, eta: float, alpha: float = 0.0) -> np.ndarray:
    """One step of magnetic mirror descent toward the uniform policy, in float64."""
    magnet = np.full(len(prior), 1 / len(prior))
    logits = (np.log(prior) + eta * q + eta * alpha * np.log(magnet)) / (1 + eta * alpha)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()
