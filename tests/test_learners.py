"""Learners of other places are known by name alone, until somebody asks for one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparring import learners
from sparring.errors import ConfigError


@pytest.mark.parametrize("place", ["actors", "replicas"])
def test_ppo_is_there_in_every_place(place: str) -> None:
    assert callable(learners.factory_at("ppo", place))


@pytest.mark.parametrize(
    ("algo", "place", "message"),
    [
        ("sac", "actors", "algo sac has no learner with actors; use ppo, or leave actors out"),
        ("ppo", "mirrors", "algo ppo has no learner with mirrors; leave mirrors out"),
    ],
)
def test_an_algorithm_without_a_learner_there_is_refused(
    algo: str, place: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        learners.factory_at(algo, place)


def test_names_load_nothing() -> None:
    heavy = "{'torch', 'numpy', 'sparring.cluster'} & {*sys.modules}"
    code = f"import sparring, sys; sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
