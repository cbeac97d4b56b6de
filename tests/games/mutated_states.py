"""Bytes of states, changed by lot behind a hash that fits.

python mutated_states.py GAME FIRST COUNT: each is refused in one line, or shown, asked and played
on. The number of a case is printed before it runs, so that whoever started this knows which one
ended it.
"""

from __future__ import annotations

import faulthandler
import sys
from collections import Counter
from typing import Any

import numpy as np

from sparring.errors import StateError
from sparring.games.saved import add_header
from sparring.games.state import State, load_state, new_state

FAMILY = 30
"""Cases that share a game, which is played once."""
STEPS = 8
MAX_S = 60


def sealed(state: State, body: bytes) -> bytes:
    """The bytes as a file that somebody made up: with the hash that they have."""
    return add_header(state.rules, {"seed": state.seed, "weights": state.weights}, body)


def chosen(state: State, rng: np.random.Generator) -> Any:
    """A legal action for every row."""
    rules = state.rules
    if rules.box:
        return rng.uniform(-1, 1, (rules.rows, rules.box)).astype(np.float32)
    picks = [int(rng.choice(legal)) if (legal := state.legal(r)) else 0 for r in range(rules.rows)]
    return picks if rules.rows > 1 else picks[0]


def played(game: str, family: int) -> tuple[State, list[bytes]]:
    """A game that was played by lot, and its positions, at most 300 from anywhere in it."""
    rng = np.random.default_rng([1, family])
    state = new_state(game, seed=family)
    start, bodies = state.clone(), [state.native.serialize()]
    for _ in range(int(rng.integers(1, 1500))):
        if state.over:
            break
        state.apply(chosen(state, rng))
        bodies.append(state.native.serialize())
    return start, bodies[-300:]


def mutated(number: int, bodies: list[bytes], rng: np.random.Generator) -> bytes:
    """One position, changed: a byte in its turn, several, or a stretch of another one."""
    body = bytearray(bodies[rng.integers(len(bodies))])
    if number % 8 == 7:
        other = bodies[rng.integers(len(bodies))]
        at = int(rng.integers(len(body)))
        end = at + int(rng.integers(1, 64))
        body[at:end] = other[at:end]
        return bytes(body)
    several = number % 8 == 6
    places = rng.integers(len(body), size=5) if several else [number * 37 % len(body)]
    for at in places:
        ways = (0, 255, body[at] + 1, body[at] - 1, body[at] ^ 1 << rng.integers(8))
        body[at] = int(rng.choice([*ways, rng.integers(256)])) % 256
    return bytes(body)


def use(state: State, rng: np.random.Generator) -> None:
    """Ask everything of a position, and play on from it."""
    rules = state.rules
    str(state), repr(state), state.audit(), state.fields(), state.scores, state.end, state.rewards
    for seat in range(rules.seats):
        state.text(seat), state.observe(seat), state.clone().resample_hidden(seat, 5)
    for row in range(rules.rows):
        for bot in rules.bots if not state.over and state.native.seat(row) >= 0 else ():
            state.clone().ask(bot, row)
    for _ in range(STEPS):
        if state.over:
            break
        state.apply(chosen(state, rng))
        assert state.native.check() == "", state.native.check()
    assert load_state(state.serialize()).native.serialize() == state.native.serialize()


def run(game: str, first: int, count: int) -> Counter[str]:
    """Run the cases; return how many were refused and how many accepted."""
    outcomes: Counter[str] = Counter()
    family, start, bodies = -1, None, []
    for number in range(first, first + count):
        print(number, flush=True)
        faulthandler.dump_traceback_later(MAX_S, exit=True)
        if number // FAMILY != family:
            family = number // FAMILY
            start, bodies = played(game, family)
        rng = np.random.default_rng([2, number])
        assert start is not None
        try:
            state = load_state(sealed(start, mutated(number, bodies, rng)))
        except StateError as wrong:
            assert "\n" not in str(wrong)
            outcomes["refused"] += 1
            continue
        outcomes["accepted"] += 1
        use(state, rng)
    faulthandler.cancel_dump_traceback_later()
    return outcomes


if __name__ == "__main__":
    faulthandler.enable()
    print(dict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
