"""Policies of small poker games as functions, and OpenSpiel's states as ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparring import Rules, State, new_state
from sparring.proof.exploitability import Bytes, Floats, Probabilities

JACK, QUEEN, KING = range(3)


def uniform(obs: Bytes, mask: Bytes) -> Floats:
    return np.asarray(mask / mask.sum(axis=1, keepdims=True), np.float64)


def always(action: int) -> Probabilities:
    def policy(obs: Bytes, mask: Bytes) -> Floats:
        return np.eye(mask.shape[1])[np.full(len(mask), action)]

    return policy


def at_random(seed: int) -> Probabilities:
    """A policy whose probabilities are drawn from what it sees, the same whoever asks."""

    def policy(obs: Bytes, mask: Bytes) -> Floats:
        drawn = [np.random.default_rng([seed, *row]).uniform(size=mask.shape[1]) for row in obs]
        shares = np.array(drawn) ** 3 * mask
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float64)

    return policy


def kuhn_equilibrium(alpha: float, queen_calls: float | None = None) -> Probabilities:
    """Kuhn's family of equilibria: the first seat bluffs with the jack by alpha in [0, 1/3]."""
    rules = Rules("kuhn_poker")
    calls = alpha + 1 / 3 if queen_calls is None else queen_calls
    # [card][nothing yet, after pass, after bet, after pass and bet]
    bets = [
        [alpha, 1 / 3, 0.0, 0.0],
        [0.0, 0.0, 1 / 3, calls],
        [3 * alpha, 1.0, 1.0, 1.0],
    ]

    def policy(obs: Bytes, mask: Bytes) -> Floats:
        shares = []
        for row in obs:
            seen = dict(zip((f.name for f in rules.features), row, strict=False))
            card = [seen["card.jack"], seen["card.queen"], seen["card.king"]].index(1)
            passed, bet = seen["moves[0].pass"], seen["moves[0].bet"]
            at = 3 if seen["moves[1].bet"] else 2 if bet else 1 if passed else 0
            shares.append([1 - bets[card][at], bets[card][at]])
        return np.array(shares)

    return policy


def from_open_spiel(theirs: Any) -> State:
    """Our state of OpenSpiel's state; the table's card of Leduc is any while it lies face down."""
    game = theirs.get_game().get_type().short_name
    cards = [a for p, a in history(theirs) if p < 0]
    if game == "kuhn_poker":
        deal = 2 * cards[0] + (cards[1] - cards[0] - 1) % 3
    else:
        left = [card for card in range(6) if card != cards[0]]
        deal = 20 * cards[0] + 4 * left.index(cards[1])
        left.remove(cards[1])
        deal += left.index(cards[2]) if len(cards) > 2 else 0
    ours = new_state(game, config={"deal": deal})
    for player, action in history(theirs):
        if player >= 0:
            ours.apply(action)
    return ours


def history(theirs: Any) -> list[tuple[int, int]]:
    return [(int(step.player), int(step.action)) for step in theirs.full_history()]
