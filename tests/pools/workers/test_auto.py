"""How many workers `auto` chooses, and what it says."""

from __future__ import annotations

import pytest

from sparring.pools.workers.auto import StepTiming, choose_workers, duration, useful


@pytest.mark.parametrize(
    ("steps", "games", "cores", "workers"),
    [
        (StepTiming(1e-3, 1.0), 16, 4, 4),
        (StepTiming(1e-3, 1.0), 3, 4, 3),
        (StepTiming(1e-3, 0.7), 16, 1, 1),
        (StepTiming(1e-3, 0.1), 16, 2, 16),
        (StepTiming(1e-3, 0.25), 100, 2, 8),
        (StepTiming(1e-3, 0.0), 1000, 2, 64),
    ],
)
def test_more_workers_than_cores_only_where_they_wait(
    steps: StepTiming, games: int, cores: int, workers: int
) -> None:
    assert useful(steps, games, cores) == workers


def test_what_cannot_pay_stays_in_this_process() -> None:
    assert choose_workers("own_envs:make_vector", 4, 8).workers == 0
    alone = choose_workers("own_envs:make_cards", 1, 8)
    assert alone.workers == 0
    assert "there is one game" in alone.why
    assert "no core" in choose_workers("own_envs:make_cards", 8, 1).why


@pytest.mark.slow
def test_waiting_is_told_from_working() -> None:
    waits = choose_workers("own_envs:make_sleepy_cards", 16, 2)
    assert waits.workers > 2
    assert "waiting" in waits.why
    works = choose_workers("own_envs:make_slow_cards", 16, 2)
    assert works.workers == 2
    assert "\n" not in works.why


def test_times_are_written_with_their_unit() -> None:
    assert [duration(s) for s in (2.0, 5e-3, 4.8e-5)] == ["2 s", "5 ms", "48 us"]
