"""Learners that several processes make up are found by algorithm and place."""

from __future__ import annotations

import pytest

from sparring import PLACED_LEARNERS
from sparring.errors import ConfigError
from sparring.learn.algos import factory_at


@pytest.mark.parametrize("name", PLACED_LEARNERS)
def test_a_learner_is_loaded_by_its_name(name: str) -> None:
    algo, _, place = name.partition("@")
    assert callable(factory_at(algo, place))


@pytest.mark.parametrize(
    ("algo", "place", "known"),
    [("sac", "replicas", "ppo"), ("mine:make", "actors", "ppo or dqn or .*")],
)
def test_an_algorithm_without_a_learner_there_is_refused(algo: str, place: str, known: str) -> None:
    message = f"algo {algo} has no learner with {place}; use {known}, or leave {place} out"
    with pytest.raises(ConfigError, match=message):
        factory_at(algo, place)
