"""Wins paid backwards in the replay: what the specification says, by a slow look at every chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from learn.q_helpers import SMALL
from sparring import Pool
from sparring.config import CollectConfig, DQNConfig, ReplayConfig
from sparring.games.rules import Rules
from sparring.learn.dqn import DQN
from sparring.learn.transitions import TERMINATED, TO_NEXT
from sparring.schedule import Schedule

FLAGS: dict[str, dict[str, Any]] = {
    "tic_tac_toe": {},
    "laser_hockey_discrete": {"mode": "TRAIN_DEFENSE"},
}


def learner(game: str, bonus: str, *, discount: float = 0.5, capacity: int = 65536) -> DQN:
    """Plays at random and never learns, so that the games do not depend on what is paid."""
    config = DQNConfig(win_bonus=Schedule.read(bonus), win_discount=Schedule.constant(discount))
    replay = ReplayConfig(capacity=capacity, warmup=10**9)
    pool = Pool(Rules(game, FLAGS[game]), 8, seed=3, threads=1)
    return DQN(pool, CollectConfig(games=8, steps=25), config, replay, SMALL, seed=1)


def played(game: str, bonus: str, updates: int, **options: Any) -> DQN:
    dqn = learner(game, bonus, **options)
    for _ in range(updates):
        dqn.iterate(0.0)
    return dqn


def payments(dqn: DQN) -> np.ndarray:
    """What all decisions were paid that are known to the end, 0 for the others."""
    ring, there = (
        dqn.experience.replay.ring,
        min(dqn.experience.replay.head, dqn.experience.replay.ring.capacity),
    )
    return np.where(ring["end"][:there] > 0, ring["paid"][:there], 0)


def chains(dqn: DQN) -> list[list[int]]:
    """Places of every finished game of a seat from its first decision to the last one."""
    ring, found = dqn.experience.replay.ring, []
    followed = set()
    for place in range(dqn.experience.replay.head):
        if ring["end"][place] == TO_NEXT:
            followed.add(int(ring["next"][place]))
    for first in set(range(dqn.experience.replay.head)) - followed:
        chain = [first]
        while ring["end"][chain[-1]] == TO_NEXT:
            chain.append(int(ring["next"][chain[-1]]))
        if ring["end"][chain[-1]] == TERMINATED:
            found.append(chain)
    return found


@pytest.mark.parametrize("game", FLAGS)
def test_every_step_of_a_win_but_the_last_is_paid(game: str) -> None:
    """+ bonus * discount^(L-2-t) for t = 0..L-2; nobody else is paid anything."""
    plain, paid = played(game, "0", 6), played(game, "8", 6)
    usual = payments(plain)
    assert plain.experience.replay.head == paid.experience.replay.head
    expected = usual.copy()
    won = 0
    for chain in chains(plain):
        if usual[chain[-1]] <= 0.5:  # lost or drawn
            continue
        won += 1
        for t, place in enumerate(chain[:-1]):
            expected[place] += 8 * 0.5 ** (len(chain) - 2 - t)
    assert won >= 2
    assert (expected != usual).sum() > 2 * won
    np.testing.assert_allclose(payments(paid), expected, rtol=1e-6)


def test_the_bonus_is_that_of_the_games_number() -> None:
    """Ten games at 8, none from the eleventh on."""
    paid = played("tic_tac_toe", "0ep:8,10ep:0 stepped", 1)
    plain = played("tic_tac_toe", "0", 1)
    always = played("tic_tac_toe", "8", 1)
    some, all_of_them = ((payments(one) != payments(plain)).sum() for one in (paid, always))
    assert paid.experience.episodes > 40
    assert 10 <= some <= 10 * 4
    assert all_of_them > 3 * some


@pytest.mark.parametrize("capacity", [65536, 2048])
def test_a_run_that_was_saved_in_the_middle_of_a_game_pays_the_same(capacity: int) -> None:
    whole = played("laser_hockey_discrete", "8", 4, capacity=capacity)
    half = played("laser_hockey_discrete", "8", 2, capacity=capacity)
    again = learner("laser_hockey_discrete", "8", capacity=capacity)
    again.restore(half.snapshot())
    for _ in range(2):
        again.iterate(0.0)
    assert (whole.experience.episodes, whole.experience.replay.head) == (
        again.experience.episodes,
        again.experience.replay.head,
    )
    np.testing.assert_array_equal(payments(whole), payments(again))


def test_what_is_saved_as_final_is_never_changed() -> None:
    """Segments are written once: decisions of running games are in none of them."""
    dqn = learner("laser_hockey_discrete", "8", capacity=4096)
    kept: dict[str, np.ndarray] = {}
    for _ in range(5):
        dqn.iterate(0.0)
        _, readers, _ = dqn.experience.replay.state()
        for name, read in readers.items():
            values = read()["paid"].numpy().copy()
            np.testing.assert_array_equal(kept.setdefault(name, values), values)
    assert len(kept) > 3
