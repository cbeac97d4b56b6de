"""Ratings of a run's league: whose games count for whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sparring.league.ladder import count_pairs, rate_league, scale_down
from sparring.league.results import MatchRecord
from sparring.league.roles import FIXED, MAIN
from sparring.store.archive import LEARNER_NAME, MATCH, TRAINING, Archive

BOTS = ("random", "careful")


def snapshot(archive: Archive, update: int, role: str = MAIN, member: str = "run") -> str:
    weights = {"w": torch.full((2,), float(update + 1000 * (role == FIXED)))}
    when = {"update": update, "decisions": update, "seconds": 0.0}
    return archive.add(weights, role=role, member=member, **when).hash


def ratings(archive: Archive) -> dict[str, float]:
    return {row.player: row.elo for row in rate_league(archive, BOTS)}


def test_games_count_for_the_snapshot_that_the_learner_became(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=10**9)
    snapshot(archive, 0, FIXED)
    late = snapshot(archive, 20)
    early = snapshot(archive, 10)  # kept when it was found to be the best
    archive.record(0, 0, {"random": (1, 0, 1)}, MATCH, member="run")
    archive.record(10, 10, {"random": (100, 0, 100)}, TRAINING, member="run")
    archive.record(20, 20, {"random": (180, 0, 20)}, TRAINING, member="run")
    archive.record(30, 30, {"random": (199, 0, 1)}, TRAINING, member="run")
    found = ratings(archive)
    assert found["random"] == 0
    assert set(found) == {"random", early, late, LEARNER_NAME}
    assert abs(found[early]) < 10 < 300 < found[late] < found[LEARNER_NAME]


def test_a_learner_that_is_never_kept_is_rated_as_it_is_now(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=10**9)
    for update in range(10):
        archive.record(update, 0, {"random": (0, 0, 200)}, TRAINING, member="run")
    archive.record(10, 0, {"random": (100, 0, 100)}, TRAINING, member="run")
    archive.record(9, 0, {"random": (0, 0, 64)}, MATCH, member="run")
    archive.record(11, 0, {"random": (32, 0, 32)}, MATCH, member="run")
    assert abs(ratings(archive)[LEARNER_NAME]) < 10


def test_games_of_one_run_say_nothing_about_the_snapshots_of_another(tmp_path: Path) -> None:
    archive = Archive(tmp_path, max_bytes=10**9)
    theirs = snapshot(archive, 20, member="other")
    archive.record(10, 0, {"random": (190, 0, 10), theirs: (50, 0, 50)}, TRAINING, member="run")
    found = ratings(archive)
    assert found[LEARNER_NAME] == pytest.approx(found[theirs], abs=20) and found[LEARNER_NAME] > 300


def test_many_games_of_training_count_as_a_match(tmp_path: Path) -> None:
    assert scale_down((300, 40, 60)) == [300, 40, 60]
    assert scale_down((3000, 400, 600)) == [300, 40, 60]
    assert ratings(Archive(tmp_path, max_bytes=1)) == {}


def test_pairs_are_of_the_first_player_wherever_it_sits() -> None:
    record = MatchRecord(
        seat_of=np.array([[1, 0, 2], [2, 1, 0]]),
        score=np.array([[1, 2, 2], [5, 0, 1]], np.float32),
        length=np.ones(2, np.int32),
        end=np.zeros(2, np.uint8),
        deal=np.arange(2),
        action_hash=np.arange(2, dtype=np.uint64),
    )
    assert count_pairs(record) == [2, 1, 1]
