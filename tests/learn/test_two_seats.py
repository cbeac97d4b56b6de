"""Two seats against each other: whose plus and whose minus a result is, from pool to advantage."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparring
from sparring.games import shogi
from sparring.learn.transitions import TERMINATED, TO_NEXT, Transitions

QUIET_THEN_MATE = [
    ("4k4/9/4P3p/9/9/9/9/9/4K4 w G 1", ("1c1d", "G*5b")),
    ("4k4/9/9/9/9/9/P3p4/9/4K4 b g 1", ("9g9f", "G*5h")),
]
"""The side to move has a free move, then it is mated."""


def returns(
    rules: sparring.Rules, games: int, arrays: dict[str, Any]
) -> tuple[Transitions, npt.NDArray[np.float32]]:
    """Sums of what every decision leads to: no values, nothing discounted."""
    done = Transitions(rules, games, len(arrays["seat"]))
    done.link(**arrays, gamma=1.0)
    return done, done.advantages(np.zeros(done.places, np.float32), 1.0)


@pytest.mark.parametrize(("sfen", "moves"), QUIET_THEN_MATE)
def test_who_mates_is_paid_and_who_is_mated_pays(sfen: str, moves: tuple[str, str]) -> None:
    state = sparring.new_state("shogi", sfen=sfen)
    loser = state.seat
    names = ("seat", "role", "policy", "reward", "terminated", "truncated")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    for move in moves:
        kept["seat"].append(np.array([state.seat], np.int8))
        kept["role"].append(np.zeros(1, np.int8))
        kept["policy"].append(np.zeros(1, np.int16))
        shogi.play(state, move)
        kept["reward"].append(state.rewards_by_role.astype(np.float32).reshape(1, 2, 1))
        kept["terminated"].append(np.array([state.terminated]))
        kept["truncated"].append(np.array([state.truncated]))
    assert state.end == "checkmate"
    assert state.scores[1 - loser] == 1
    done, advantage = returns(state.rules, 1, {name: np.stack(rows) for name, rows in kept.items()})
    assert advantage[done.max_pending :].tolist() == [-1.0, 1.0]
    assert done.end[done.max_pending :].tolist() == [TERMINATED, TERMINATED]


@pytest.mark.parametrize("game", ["shogi", "tic_tac_toe"])
def test_every_move_of_the_winner_is_plus_and_every_one_of_the_loser_minus(game: str) -> None:
    rules = sparring.Rules(game)
    games, steps = 8, 800
    pool = sparring.Pool(rules, games, seed=4, threads=1)
    batch = pool.reset()
    names = ("seat", "role", "policy", "reward", "terminated", "truncated")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    mates: list[tuple[int, int]] = []
    winning = {"checkmate", "three in a row"}
    for step in range(steps):
        for name in names[:3]:
            kept[name].append(getattr(batch, name).copy())
        batch = pool.step(pool.sample_actions())
        for name in names[3:]:
            kept[name].append(getattr(batch, name).copy())
        for at, reason in zip(batch.final_game, batch.final_reason, strict=True):
            if rules.ends[reason] in winning:
                mates.append((step, int(at)))
    arrays = {name: np.stack(rows) for name, rows in kept.items()}
    done, advantage = returns(rules, games, arrays)
    link = done.end[done.max_pending :].reshape(steps, games)
    found = advantage[done.max_pending :].reshape(steps, games)
    assert len(mates) >= 8
    over = arrays["terminated"] | arrays["truncated"]
    for last, at in mates:
        winner = arrays["seat"][last, at]  # who moved last
        assert link[last - 1 : last + 1, at].tolist() == [TERMINATED, TERMINATED]
        earlier = np.flatnonzero(over[:last, at])
        first = int(earlier[-1]) + 1 if len(earlier) else 0
        sign = np.where(arrays["seat"][first : last + 1, at] == winner, 1, -1)
        np.testing.assert_array_equal(found[first : last + 1, at], sign)
        assert (link[first : last - 1, at] == TO_NEXT).all()
