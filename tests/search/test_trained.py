"""What a trained network is worth with search: exact play of tic-tac-toe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparring
from search.positions import keeps_value, pools, positions


def lost(policy: sparring.Policy, simulations: int) -> int:
    """Return the number of positions whose value the policy gives away."""
    count = 0
    for same, pool in pools(positions("tic_tac_toe")):
        search = policy.searching(f"{simulations}").search(trees=len(same))
        moves = search.from_pool(pool, np.arange(len(same))).action
        count += sum(not keeps_value(p, move) for p, move in zip(same, moves, strict=True))
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_tic_tac_toe_is_played_without_a_mistake(seed: int, tmp_path: Path) -> None:
    """300 updates are half a minute of a core."""
    options = {"seed": seed, "device": "cpu", "threads": 1, "eval": {"off": True}}
    runs = str(tmp_path)
    agent = sparring.train(
        "tic_tac_toe", algo="gumbel", updates=300, runs=runs, quiet=True, **options
    )
    assert lost(agent.policy, 64) == 0
