"""Saved games in parts: those of pools with a share each are those of one pool with all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparring import Pool
from sparring.cluster.replicas.snapshots import (
    ROWS,
    join_snapshots,
    slice_snapshot,
)
from sparring.errors import StateError
from sparring.learn.learner import GAMES, PENDING, Snapshot
from sparring.learn.transitions import PENDING_DTYPE
from sparring.pools.slices import join_states, saved_games, slice_state


def pool_of(first: int, games: int, memory: int = 0) -> Pool:
    pool = Pool("skull_king", games, seed=3, first_game=first, threads=1, memory=memory)
    pool.reset()
    pool.memory[:] = 1 + first % 250
    return pool


@pytest.mark.parametrize("memory", [0, 32])
def test_parts_are_joined_to_the_games_of_one_pool(memory: int) -> None:
    whole, parts = pool_of(0, 12, memory), [pool_of(first, 4, memory) for first in (0, 4, 8)]
    for _ in range(20):
        for pool in (whole, *parts):
            pool.step(pool.sample_actions())
    whole.memory[:] = np.concatenate([part.memory for part in parts])
    states = [part.state() for part in parts]
    assert join_states(states, whole.rules.seats) == whole.state()
    for number, state in enumerate(states):
        assert slice_state(whole.state(), whole.rules.seats, 4 * number, 4) == state
    # Another number of pools goes on with the same games.
    other = pool_of(6, 6, memory)
    other.load_state(slice_state(whole.state(), whole.rules.seats, 6, 6))
    seen = whole.rules.obs_bytes
    assert np.array_equal(other.batch().obs[:, :seen], whole.batch().obs[6:, :seen])
    assert saved_games(whole.state()) == 12


def test_bytes_that_are_no_games_are_refused() -> None:
    raw = pool_of(0, 4).state()
    with pytest.raises(StateError, match="not a saved state"):
        slice_state(b"nothing", 4, 0, 1)
    with pytest.raises(StateError, match="its hash does not match"):
        slice_state(raw[:-1], 4, 0, 1)
    with pytest.raises(StateError, match="the state has 4 games, not 6"):
        slice_state(raw, 4, 2, 4)


def test_snapshots_are_cut_and_joined_with_their_pending_decisions() -> None:
    pool, seats = pool_of(0, 6), 4
    pending = np.zeros(6 * seats, PENDING_DTYPE)
    pending["row"] = np.where(np.arange(24) % 3 == 0, -1, np.arange(24))
    pending["reward"] = np.arange(24)
    whole = Snapshot(
        {"net": {"w": torch.ones(2)}, ROWS: {"obs": torch.arange(48).view(24, 2)}},
        {GAMES: pool.state(), PENDING: pending.tobytes()},
        {"decisions": 5},
    )
    parts = [slice_snapshot(whole, seats, first, 2) for first in (0, 2, 4)]
    own = np.frombuffer(parts[1].blobs[PENDING], PENDING_DTYPE)
    assert own["row"].tolist() == [n - 8 if n % 3 else -1 for n in range(8, 16)]
    assert own["reward"].tolist() == list(range(8, 16))
    assert parts[1].tensors[ROWS]["obs"][0].tolist() == [16, 17]
    again = join_snapshots(parts, seats)
    assert again.blobs == whole.blobs
    assert torch.equal(again.tensors[ROWS]["obs"], whole.tensors[ROWS]["obs"])
    without = replace(whole, blobs={})
    assert slice_snapshot(without, seats, 2, 2) is without
