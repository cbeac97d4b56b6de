"""Columns of a rollout on a GPU: what open decisions take along, on any device that torch has."""

from __future__ import annotations

import torch

from sparring import Rules
from sparring.learn.fused.rollout import FusedRollout, RolloutColumn


def rollout_with(*columns: tuple[str, int]) -> FusedRollout:
    """Two games of tic-tac-toe over three steps. columns: names, and what stands for unknown."""
    rules = Rules("tic_tac_toe")
    cpu = torch.device("cpu")
    shape = {"members": 2, "row_bytes": rules.obs_bytes, "squash": False, "device": cpu}
    rollout = FusedRollout(rules, 2, 3, **shape)  # type: ignore[arg-type]
    for name, unknown in columns:
        by_place = torch.arange(2 * rollout.places, dtype=torch.int32).view(-1, 2)
        rollout.columns.append(RolloutColumn(name, by_place, unknown))
    return rollout


def test_open_decisions_take_their_columns_along() -> None:
    rollout = rollout_with(("truth", 0))
    (column,) = rollout.columns
    rollout.open[:, 0] = torch.tensor([-1, 6, -1, 9])
    rollout.keep_pending_columns()
    assert column.by_place[:4].tolist() == [[0, 1], [12, 13], [4, 5], [18, 19]]


def test_columns_are_finished_once_the_rollout_was_played() -> None:
    rollout, told = rollout_with(), list[str]()
    nothing = torch.zeros(rollout.places)
    rollout.columns.append(RolloutColumn("told", nothing, fill=lambda: told.append("told")))
    rollout.fill_columns()
    assert told == ["told"]


def test_a_snapshot_without_a_column_says_that_it_is_unknown() -> None:
    saved, opened = rollout_with(("truth", 0)).pending_state(1)
    assert saved["truth"].tolist() == [[4, 5], [6, 7]]
    rollout = rollout_with(("truth", 0), ("record", -7))
    rollout.load_pending_rows(1, saved, opened)
    truth, record = (column.by_place[:4].tolist() for column in rollout.columns)
    assert truth == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert record == [[0, 1], [2, 3], [-7, -7], [-7, -7]]
