"""Memory: bytes per (game, seat) outside the game, shown behind the observation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules
from sparring.pools import Lineup, Pool

BYTES = 32


def make(game: str = "skull_king", *, memory: int = BYTES) -> Pool:
    flags = {"rounds": [1, 2]} if game == "skull_king" else {}
    return Pool(Rules(game, flags), 64, seed=4, threads=1, memory=memory)


def write(pool: Pool, step: int) -> None:
    """Give every (game, seat) bytes of its own."""
    games, seats, size = pool.memory.shape
    numbers = np.arange(games * seats * size, dtype=np.uint32).reshape(games, seats, size)
    pool.memory[:] = (numbers * 31 + step * 7) % 251


def shown(pool: Pool) -> npt.NDArray[np.uint8]:
    return pool.batch().obs[:, pool.rules.obs_bytes :]


@pytest.mark.parametrize("game", ["skull_king", "tic_tac_toe", "duel"])
def test_what_is_written_shows_in_the_seats_next_row(game: str) -> None:
    pool, plain = make(game), make(game, memory=0)
    assert (pool.memory_bytes, pool.row_bytes) == (BYTES, pool.rules.obs_bytes + BYTES)
    pool.reset()
    plain.reset()
    assert not shown(pool).any()
    rows = pool.rules.rows
    ended = 0
    for step in range(40):
        write(pool, step)
        kept = pool.memory.copy()
        action = pool.sample_actions()
        assert np.array_equal(action, plain.sample_actions())
        batch = pool.step(action)
        other = plain.step(action)
        kept_of_ended = kept[batch.final_game]
        kept[batch.final_game] = 0  # their games began anew
        assert np.array_equal(pool.memory, kept)
        asked = np.flatnonzero(batch.seat >= 0)
        assert np.array_equal(shown(pool)[asked], kept[asked // rows, batch.seat[asked]])
        assert not shown(pool)[batch.seat < 0].any()
        assert np.array_equal(batch.final_obs[..., pool.rules.obs_bytes :], kept_of_ended)
        assert np.array_equal(batch.obs[:, : pool.rules.obs_bytes], other.obs)
        assert np.array_equal(batch.final_obs[..., : pool.rules.obs_bytes], other.final_obs)
        ended += len(batch.final_game)
    assert ended


def test_a_reset_clears_it() -> None:
    pool = make()
    pool.reset()
    write(pool, 1)
    pool.reset()
    assert not pool.memory.any()
    assert not shown(pool).any()


def test_it_is_part_of_the_state() -> None:
    pool, other = make(), make()
    pool.reset()
    for step in range(5):
        pool.step(pool.sample_actions())
        write(pool, step)
    other.load_state(pool.state())
    assert np.array_equal(other.memory, pool.memory)
    assert np.array_equal(
        shown(other), pool.memory[np.arange(64), other.batch().seat]
    )  # as it stands now
    for each in (pool, other):
        each.step(each.sample_actions())
    assert pool.state() == other.state()
    assert pool.digest() == other.digest()


def test_without_it_states_are_what_they_were() -> None:
    pool = make(memory=0)
    pool.reset()
    saved = pool.state()
    assert b'"memory"' not in saved
    with pytest.raises(StateError, match="memory 0, this pool has 32"):
        make().load_state(saved)
    with_memory = make()
    with_memory.reset()
    with pytest.raises(StateError, match="memory 32, this pool has 0"):
        pool.load_state(with_memory.state())


def test_threads_and_slots_change_nothing() -> None:
    rules = Rules("skull_king", {"rounds": [1, 2]})
    lineups = [Lineup((0, 0, "random", 0))]
    pools = [
        Pool(rules, 96, seed=2, threads=threads, slots=slots, memory=BYTES, lineups=lineups)
        for threads, slots in ((1, 1), (3, 1), (2, 3))
    ]
    for pool in pools:
        pool.reset()
        for step in range(30):
            write(pool, step)
            pool.step(pool.sample_actions())
    assert len({pool.digest() for pool in pools}) == 1
    assert len({pool.memory.tobytes() for pool in pools}) == 1


@pytest.mark.parametrize("size", [-16, 8, 17])
def test_sizes_that_leave_rows_unaligned_are_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=f"memory={size} must be a multiple of 16"):
        make(memory=size)
