"""What a pool counts: for one player's seats, the same whatever the threads, slots or split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparring import Lineup, Pool
from sparring.errors import IllegalActionError
from sparring.games.rules import game_names

STEPS = 120
LINEUP = Lineup((0, 1, "captain", 0))
"""The learner twice, another policy and a bot."""


def counts_of(games: int = 96, steps: int = STEPS, **options: Any) -> np.ndarray:
    pool = Pool("skull_king", games, **{"seed": 3, "threads": 1, "lineups": [LINEUP], **options})
    pool.reset()
    for _ in range(steps):
        pool.step(pool.sample_actions())
    return pool.counts()


@pytest.mark.parametrize("options", [{"threads": 4}, {"slots": 3}, {"threads": 3, "slots": 2}])
def test_threads_and_slots_count_the_same(options: dict[str, Any]) -> None:
    assert counts_of(**options).tolist() == counts_of().tolist()


def test_pools_that_share_the_games_count_what_one_does() -> None:
    parts = [counts_of(games, first_game=first) for games, first in ((17, 0), (79, 17))]
    assert sum(parts).tolist() == counts_of().tolist()


def test_slots_that_step_on_their_own_count_the_same() -> None:
    pool = Pool("skull_king", 96, seed=3, threads=2, slots=3, lineups=[LINEUP])
    pool.reset()
    for slot in range(3):
        pool.send(pool.sample_actions(slot), slot)
    with pytest.raises(IllegalActionError, match="call recv"):
        pool.counts()
    for _ in range(STEPS - 1):
        for slot in range(3):
            pool.recv(slot)
            pool.send(pool.sample_actions(slot), slot)
    for slot in range(3):
        pool.recv(slot)
    assert pool.counts().tolist() == counts_of().tolist()


def test_counting_changes_no_game() -> None:
    for game in game_names():
        digests = []
        for counted in (0, None):
            pool = Pool(game, 32, seed=5, threads=1)
            pool.set_counting(counted)
            pool.reset()
            pool.run_random(60)
            digests.append(pool.digest())
            assert pool.counts().any() == (counted == 0 and bool(pool.rules.counters)), game
        assert digests[0] == digests[1], game


def test_everybody_together_is_the_sum_of_the_players() -> None:
    """Seats belong to exactly one player, so that whoever is asked for, nothing is lost."""

    def counted(player: int | str) -> np.ndarray:
        pool = Pool("skull_king", 64, seed=3, threads=1, lineups=[LINEUP])
        pool.set_counting(player)
        pool.reset()
        for _ in range(STEPS):
            pool.step(pool.sample_actions())
        return pool.counts()

    mine, other, bot = (counted(player) for player in (0, 1, "captain"))
    played = [int(counts[::5].sum()) for counts in (mine, other, bot)]
    assert played[0] == 2 * played[1] == 2 * played[2] > 0


def test_games_that_are_left_out_and_what_was_before_do_not_count() -> None:
    pool = Pool("skull_king", 64, seed=3, threads=1)
    pool.reset()
    pool.left_out[:] = 1
    pool.run_random(STEPS)
    assert not pool.counts().any()
    pool.left_out[5] = 0
    pool.run_random(STEPS)
    assert pool.counts().any()
    pool.clear_counts()
    assert not pool.counts().any()


def test_sums_are_no_part_of_the_games() -> None:
    """A run that goes on from a state counts from 0, as one that was never interrupted does."""
    pool = Pool("skull_king", 64, seed=3, threads=1)
    pool.reset()
    pool.run_random(STEPS)
    state = pool.state()
    pool.clear_counts()
    pool.run_random(STEPS)
    again = Pool("skull_king", 64, threads=1)
    again.load_state(state)
    assert not again.counts().any()
    again.run_random(STEPS)
    assert again.counts().tolist() == pool.counts().tolist()


def test_openings_by_lot_are_not_counted() -> None:
    pool = Pool("shogi", 16, seed=1, threads=1, opening_plies=30, every_game=True)
    pool.reset()
    assert not pool.counts().any()
    pool.step(pool.sample_actions())
    assert pool.counts()[pool.rules.counters.index("moves")] == 16
