"""A deterministic policy and the games to try it on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Rules, State, _native
from sparring.envs.gymnasium import SparringEnv

needs_duel = pytest.mark.skipif(
    "duel" not in _native.game_names(), reason="the game duel is only in test builds"
)
TURN_GAMES = ["tic_tac_toe", "skull_king"]
ALL_GAMES = [*TURN_GAMES, pytest.param("duel", marks=needs_duel)]


class LegalEnv(SparringEnv):
    """Gymnasium's checker samples without a mask; take its choice among the legal actions."""

    def step(self, action: Any) -> Any:
        if not self.rules.box:
            legal = np.flatnonzero(self.action_masks())
            action = legal[action % len(legal)]
        return super().step(action)


def choose(rules: Rules, obs: np.ndarray, mask: np.ndarray | None) -> Any:
    """Let a hash of the observation choose: the same policy wherever it is asked."""
    digest = zlib.crc32(np.ascontiguousarray(obs, np.float32).tobytes())
    if rules.box:
        return np.random.default_rng(digest).uniform(-1, 1, rules.box).astype(np.float32)
    legal = np.flatnonzero(mask)
    return int(legal[digest % len(legal)]) if len(legal) else 0


def choose_all(rules: Rules, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
    """Choose for every game of a vector env."""
    masks = info.get("action_mask", [None] * len(obs))
    return np.array([choose(rules, o, m) for o, m in zip(obs, masks, strict=True)])


def replay(
    rules: Rules, seed: int, learner: int, bot: str
) -> Iterator[tuple[State, Callable[[Any], float]]]:
    """Play the first game of a seed as the pool must: yields each position of the learner.

    The caller answers with the function it gets, which returns what the learner was paid.
    Bots draw from the game's own stream, so they choose what they choose inside a pool.
    """
    state = sparring.new_state(rules, seed=seed)
    paid = advance(state, learner, bot)

    def answer(action: Any) -> float:
        if rules.rows == 1:
            state.apply(action)
        else:
            rows = [state.ask(bot, row) if row != learner else action for row in range(rules.rows)]
            state.apply(np.array(rows))
        return float(state.rewards[learner]) + advance(state, learner, bot)

    first = True
    while not state.over:
        if first:
            yield state, lambda action: paid + answer(action)
            first = False
        else:
            yield state, answer
    yield state, answer


def advance(state: State, learner: int, bot: str) -> float:
    """Let the bots move until the learner has to; return what it was paid meanwhile."""
    paid = 0.0
    while not state.over and learner not in state.seats_to_act:
        state.apply(state.ask(bot))
        paid += float(state.rewards[learner])
    return paid
