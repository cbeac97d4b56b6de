"""Games of bots, played to be learned from: every seat is asked in its turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparring.games.lessons import Lesson
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.seeds import mixed_seed
from sparring.games.state import State
from sparring.training.teaching.positions import plain_rules

OPENING = 4
"""Most steps at the beginning that lots decide, where nothing else makes two games differ."""


def bot_game(rules: Rules, bot: str, seed: int, number: int) -> Lesson:
    """Play a game with a bot in every seat. The same seed and number give the same game.

    Where the rules leave nothing to chance, a few steps at the beginning are drawn by lot: none in
    the first game, one in the second, up to `OPENING` of them.
    """
    plain = plain_rules(rules)
    lots = 0 if rules.chance else number % (OPENING + 1)
    rng = np.random.default_rng(mixed_seed(seed, number))
    state = State(plain, seed, plain.weights(None), game=number)
    actions: list[Any] = []
    while not state.over:
        by_lot = len(actions) < lots
        moves = []
        for row in range(rules.rows):
            if state.native.seat(row) < 0:
                moves.append(0)
            elif by_lot:
                moves.append(int(rng.choice(state.legal(row))))
            else:
                moves.append(int(state.ask(bot, row)))
        actions.append(tuple(moves))
        state.apply(moves[0] if rules.rows == 1 else np.array(moves))
    played = (bot,) * rules.seats
    replay = Replay(plain, seed, played, tuple(actions), tuple(state.scores), state.end, number)
    return Lesson(replay, by_lot=lots)
