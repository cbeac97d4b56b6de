"""The reward part `material`: the change of the balance, paid by one seat to the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sparring
from reference.shogi import balance
from sparring.games import shogi

WEIGHT = 0.2


def result_of(state: sparring.State) -> list[float]:
    """What the part `result` pays for the last move."""
    return [float(score) for score in state.scores] if state.terminated else [0.0, 0.0]


def test_it_is_off_unless_asked_for() -> None:
    rules = sparring.Rules("shogi")
    assert rules.parts == ("result", "material")
    assert rules.config["material"] == 0
    assert rules.weights(None) == [1.0, 0.0]
    assert rules.changed({"material": 0.5}).weights(None) == [1.0, 0.5]
    state = sparring.new_state(rules)
    shogi.play(state, "7g7f", "3c3d", "8h2b+")
    assert not state.rewards.any()


@pytest.mark.parametrize(
    ("moves", "gain"),
    [
        (["7g7f", "3c3d", "8h2b+"], 2 * 855 + 90),  # a bishop, and a promotion
        (["7g7f", "3c3d", "8h2b+", "3a2b"], 945 + 855),  # a horse, which becomes a bishop in hand
        (["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e"], 0),  # a drop
        (["7g7f"], 0),
    ],
)
def test_the_mover_is_paid_what_the_other_loses(moves: list[str], gain: int) -> None:
    state = sparring.new_state("shogi", config={"material": WEIGHT})
    shogi.play(state, *moves)
    mover = (len(moves) - 1) % 2
    assert state.rewards[mover] == pytest.approx(WEIGHT * gain / 1000)
    assert state.rewards[1 - mover] == -state.rewards[mover]


def test_it_is_the_change_of_the_balance_in_random_games() -> None:
    draw = random.Random(5)
    paid = 0
    for _ in range(12):
        state = sparring.new_state("shogi", config={"material": WEIGHT, "max_plies": 300})
        before = balance(shogi.read_sfen(state))
        assert before == 0
        while not state.over:
            # Captures and promotions are seldom drawn otherwise.
            choices = state.legal() if draw.random() < 0.5 else [state.ask("greedy")]
            state.apply(draw.choice(choices))
            after = balance(shogi.read_sfen(state))
            gain = WEIGHT * (after - before) / 1000
            wanted = np.array([gain, -gain]) + result_of(state)
            np.testing.assert_allclose(state.rewards, wanted, atol=1e-6)
            paid += after != before
            before = after
    assert paid > 200


@pytest.mark.parametrize("skip_forced", [0, 1])
def test_pools_pay_nothing_into_or_out_of_the_game(skip_forced: int) -> None:
    rules = sparring.Rules("shogi", {"material": WEIGHT, "skip_forced": skip_forced})
    pool = sparring.Pool(rules, 16, seed=2, threads=1)
    batch = pool.reset()
    payments = ends = 0
    for _ in range(600):
        batch = pool.step(pool.sample_actions())
        reward = batch.reward[:, :, 0]
        np.testing.assert_array_equal(reward[:, 0], -reward[:, 1])
        payments += np.count_nonzero(reward[:, 0])
        ends += int(batch.terminated.sum())
    assert payments > 500
    assert ends > 5


def test_the_weight_is_shown_as_it_was_written() -> None:
    rules = sparring.Rules("shogi", {"material": "0.05"})
    assert rules.config["material"] == 0.05
    assert sparring.Rules("shogi", rules.config).config == rules.config
