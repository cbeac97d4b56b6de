"""Games that are played into a replay and recorded beside it, and what should be remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sparring
from sparring.config import CollectConfig, ReplayConfig
from sparring.learn.acting import ActorOutput, RngKeys
from sparring.learn.collect import Collector
from sparring.learn.replay import ReplayBuffer
from sparring.phases import Timing
from sparring.pools.native import Pool

GAMMA = 0.9


class AnyMove:
    """Answers with any legal action, or with any numbers, some beyond the bounds."""

    def __init__(self, rules: sparring.Rules, seed: int) -> None:
        self.rules, self.rng = rules, np.random.default_rng(seed)

    def act(self, obs: Any, mask: Any, keys: RngKeys) -> ActorOutput:
        if self.rules.box:
            numbers = self.rng.normal(size=(len(obs), self.rules.box))
            return ActorOutput(numbers.astype(np.float32))
        return ActorOutput((self.rng.random(mask.shape) * mask).argmax(1).astype(np.int32))


class Watched:
    """A pool that notes what every step brought."""

    def __init__(self, pool: Pool) -> None:
        self.pool, self.brought = pool, []  # type: ignore[var-annotated]
        self._slots: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)

    def step(self, action: Any) -> Any:
        batch = self.pool.step(action)
        self.brought.append(noted(batch, 0))
        return batch

    def recv(self, slot: int = 0) -> Any:
        batch = self.pool.recv(slot)
        games = sum(len(part["terminated"]) for part in self._slots)
        self._slots.append(noted(batch, games))
        if len(self._slots) == self.pool.slots:
            parts, self._slots = self._slots, []
            whole = ("reward", "skipped", "terminated", "truncated")
            joined = {name: np.concatenate([part[name] for part in parts]) for name in whole}
            joined["final"] = {k: v for part in parts for k, v in part["final"].items()}
            self.brought.append(joined)
        return batch


def noted(batch: Any, first_game: int) -> dict[str, Any]:
    names = ("reward", "skipped", "terminated", "truncated")
    found: dict[str, Any] = {name: getattr(batch, name).copy() for name in names}
    found["final"] = {
        int(game) + first_game: (batch.final_obs[i].copy(), batch.final_mask[i].copy())
        for i, game in enumerate(batch.final_game)
    }
    return found


@dataclass
class Decision:
    """One of the learner's, and what followed it."""

    serial: int
    obs: Any
    mask: Any
    action: Any
    role: int
    paid: float = 0.0
    skipped: int = 0
    discount: float = 0.0
    closed: bool = False
    next: Decision | None = None
    last: tuple[Any, Any] | None = None
    """Observation and mask that stand for what would have followed a cut."""


@dataclass
class Played:
    """A replay, and every decision that it was given, by serial number."""

    replay: ReplayBuffer
    collector: Collector
    decisions: dict[int, Decision] = field(default_factory=dict)
    rounds: int = 0
    gamma_into: tuple[float, ...] = ()
    _waiting: dict[tuple[int, int, int], Decision] = field(default_factory=dict)

    def play(self, rounds: int, *others: ReplayBuffer) -> None:
        """Play on; others are given the same rollouts."""
        collector = self.collector
        for _ in range(rounds):
            collector.collect(self.rounds)
            self.rounds += 1
            self.replay.mark_truncations(collector.rollout)
            collector.link(GAMMA, self.gamma_into, required=False)
            before = self.replay.head
            for replay in (self.replay, *others):
                replay.push(collector.rollout, collector.transitions)
            self._record(before)
            collector.keep_pending()

    def _record(self, serial: int) -> None:
        """Go through the rollout decision by decision, as the definition says."""
        rollout, rules = self.collector.rollout, self.collector.pool.rules
        max_pending, chains = (
            self.collector.transitions.max_pending,
            self.collector.transitions.chains,
        )
        steps, rows = rollout.seat.shape
        brought = self.collector.pool.brought[-steps:]  # type: ignore[attr-defined]
        into = self.gamma_into or (GAMMA,) * len(rules.roles)
        for step in range(steps):
            for row in range(rows):
                seat, role = int(rollout.seat[step, row]), int(rollout.role[step, row])
                if rollout.policy[step, row] != 0 or seat < 0:
                    continue
                at = max_pending + step * rows + row
                made = Decision(serial, rollout.obs[at].copy(), rollout.mask[at].copy(), None, role)
                made.action = rollout.action[at].copy()
                self.decisions[serial] = made
                serial += 1
                game = row // rules.rows
                for chain in range(chains):
                    before = self._waiting.get((game, seat, chain))
                    same = chain == (role if chains > 1 else 0)
                    if before and (same or into[role] == 0):
                        before.next, before.closed = made, True
                        before.discount = into[role] * GAMMA**before.skipped
                        del self._waiting[game, seat, chain]
                self._waiting[game, seat, role if chains > 1 else 0] = made
            self._step(brought[step])

    def _step(self, brought: dict[str, Any]) -> None:
        """What a step brought to everybody who waits."""
        for (game, seat, chain), made in list(self._waiting.items()):
            made.paid += float(brought["reward"][game, seat, made.role])
            made.skipped += int(brought["skipped"][game, seat])
            if brought["terminated"][game]:
                made.closed = True
            elif brought["truncated"][game]:
                self._cut(made, seat, *brought["final"][game])
            else:
                continue
            del self._waiting[game, seat, chain]

    def _cut(self, made: Decision, seat: int, obs: Any, mask: Any) -> None:
        rules = self.collector.pool.rules
        to_move = [bool(legal.any()) for legal in mask]
        if rules.box:
            to_move = [rules.rows == rules.seats] * rules.seats
        made.discount = GAMMA * GAMMA**made.skipped
        if to_move[seat]:
            made.last, made.closed = (obs[seat], mask[seat]), True
        elif rules.zero_sum and sum(to_move) == 1:
            made.last, made.closed = (obs[1 - seat], mask[1 - seat]), True
            made.discount *= -1

    def in_ring(self) -> dict[int, Decision]:
        """Decisions that can be sampled now, by place."""
        capacity, first = self.replay.config.capacity, self.replay.first
        return {
            serial % capacity: made
            for serial, made in self.decisions.items()
            if made.closed and serial >= first
        }


def after(made: Decision, n: int) -> tuple[float, float, Any, Any]:
    """Paid within n decisions, the discount of what follows, and what is seen there."""
    paid, discount = 0.0, 1.0
    for _ in range(n):
        paid += discount * made.paid
        discount *= made.discount
        if made.last is not None:
            return paid, discount, *made.last
        if made.next is None or discount == 0:
            return paid, 0.0, made.obs, made.mask
        made = made.next
        if not made.closed:
            break
    return paid, discount, made.obs, made.mask


def check_samples(played: Played, number: int) -> set[int]:
    """Hold a batch against the recording; return the places it came from."""
    replay, rules = played.replay, played.replay.rules
    samples, known = replay.sample(number), played.in_ring()
    assert len(replay) == len(known)
    drawn = [known[int(place)] for place in samples.places]
    found = [after(made, replay.config.n_step) for made in drawn]
    given = np.stack([made.action for made in drawn])
    if rules.box:
        given = np.tanh(given) if replay.squash else np.clip(given, -1, 1)
    np.testing.assert_array_equal(samples.action, given)
    np.testing.assert_array_equal(samples.obs, [made.obs for made in drawn])
    np.testing.assert_array_equal(samples.mask, [made.mask for made in drawn])
    np.testing.assert_allclose(samples.reward, [paid for paid, *_ in found], atol=1e-5)
    np.testing.assert_allclose(samples.discount, [discount for _, discount, *_ in found], 1e-5)
    np.testing.assert_array_equal(samples.next_obs, [obs for *_, obs, _ in found])
    np.testing.assert_array_equal(samples.next_mask, [mask for *_, mask in found])
    return {int(place) for place in samples.places}


def make(
    game: str,
    config: dict[str, Any],
    members: Sequence[Any],
    *,
    games: int = 6,
    steps: int = 5,
    slots: int = 1,
    by_role: bool = False,
    gamma_into: tuple[float, ...] = (),
    squash: bool = False,
    **replay: Any,
) -> Played:
    """A pool of any moves, and a replay of its rollouts."""
    rules = sparring.Rules(game, config)
    lineups = [sparring.Lineup(tuple(members))]
    pool: Any = Watched(Pool(rules, games, seed=3, threads=1, lineups=lineups, slots=slots))
    collect = CollectConfig(games=games, steps=steps, groups=slots)
    actor = AnyMove(rules, 0)
    collector = Collector(pool, collect, actor, (), Timing(), squash=squash, by_role=by_role)
    collector.actors[1] = AnyMove(rules, 1)
    kept = ReplayConfig(**{"batch": 64, "capacity": 2 * collector.transitions.places, **replay})
    made = new_replay(collector, kept, squash=squash)
    return Played(made, collector, gamma_into=gamma_into)


def new_replay(collector: Collector, config: ReplayConfig, **options: Any) -> ReplayBuffer:
    """An empty one for a collector's rollouts."""
    pool, max_pending = collector.pool, collector.transitions.max_pending
    return ReplayBuffer(
        pool.rules, config, row_bytes=pool.row_bytes, max_pending=max_pending, seed=5, **options
    )
