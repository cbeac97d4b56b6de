"""The rollout of the learner on a GPU keeps open decisions as the readable one does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.fused.rollout import FusedRollout, legal_of, mask_of
from sparring.learn.transitions import PENDING_DTYPE
from sparring.pools.lineups import check_answered

RULES = Rules("skull_king")


@pytest.fixture
def rollout() -> FusedRollout:
    return FusedRollout(
        *(RULES, 6, 4),
        members=2,
        row_bytes=RULES.obs_bytes + 16,
        squash=False,
        device=torch.device("cpu"),
    )


def some_open(count: int) -> np.ndarray:
    opened = np.zeros(count, PENDING_DTYPE)
    opened["row"] = np.where(np.arange(count) % 3, np.arange(count), -1)
    opened["decisions"], opened["reward"] = 2, np.linspace(-1, 1, count)
    opened["role"] = 1
    return opened


def test_masks_survive_the_way_to_words_and_back() -> None:
    mask = (torch.rand(50, RULES.actions) < 0.3).to(torch.uint8)
    assert torch.equal(mask_of(legal_of(mask, RULES.legal_words), RULES), mask)


def test_a_members_front_survives_the_way_there_and_back(rollout: FusedRollout) -> None:
    count = rollout.max_pending // 2
    rows = {
        "obs": torch.randint(0, 255, (count, rollout.obs.shape[1]), dtype=torch.uint8),
        "mask": (torch.rand(count, RULES.actions) < 0.5).to(torch.uint8),
        "action": torch.arange(count, dtype=torch.int32),
        "log_prob": torch.randn(count),
        "value": torch.randn(count),
    }
    opened = some_open(count).tobytes()
    rollout.load_pending_rows(1, rows, opened)
    found, kept = rollout.pending_state(1)
    assert kept == opened
    assert found.keys() == rows.keys()
    assert all(torch.equal(found[name], rows[name]) for name in rows)
    other, still = rollout.pending_state(0)
    assert not other["obs"].any()
    assert (np.frombuffer(still, PENDING_DTYPE)["row"] == -1).all()


def test_the_places_of_a_step_lie_behind_the_carried_ones(rollout: FusedRollout) -> None:
    assert rollout.at(2) == slice(24 + 12, 24 + 18)
    assert rollout.at(2, slice(3, 6)) == slice(24 + 15, 24 + 18)
    for shaped in (rollout.rows_of(3), rollout.outcome_of(3)):
        assert {len(tensor) for tensor in shaped.values()} == {6}


def test_policies_that_nobody_answers_are_named() -> None:
    check_answered({0, 2}, {0: "learner", 2: "frozen"})
    with pytest.raises(
        ConfigError, match=r"policy 3 is in the line-ups but has no player; known are \[0, 2\]"
    ):
        check_answered({0, 3, 5}, [2, 0])
