"""What an agent says that it is worth, whoever trained it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pytest

import own_envs
import sparring
from commands.run_helpers import make_run
from sparring.errors import SparringWarning
from sparring.training.agent import Agent

QUICK: dict[str, Any] = {
    **{"updates": 1, "quiet": True, "threads": 1, "tensorboard": False},
    **{"net": {"hidden": (8,)}, "collect": {"games": 2, "steps": 16}, "eval": {"games": 4}},
}


def trained(env: Any, root: Path, **settings: Any) -> Agent:
    with pytest.warns(SparringWarning, match="not its games"):
        return sparring.train(env, runs=str(root), **{**QUICK, **settings})


def test_of_an_environment_that_was_given_as_an_object(tmp_path: Path) -> None:
    envs = [own_envs.make_cards() for _ in range(2)]
    (found,) = trained(envs, tmp_path).results.items()
    assert found[0] == "alone"
    assert (found[1]["games"], found[1]["length"]) == (4, 6.0)
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    assert trained(vector, tmp_path).results["alone"]["games"] == 4
    tables = [own_envs.make_table() for _ in range(2)]
    assert trained(tables, tmp_path).results["random"]["games"] == 4


def test_nothing_is_measured_where_evaluations_are_off(tmp_path: Path) -> None:
    assert (
        trained(own_envs.make_cards(), tmp_path, collect={"games": 1}, eval={"off": True}).results
        == {}
    )


def test_of_a_run_that_was_evaluated_on_its_way(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {1: 0.4, 9: {"careful": 0.25, "random": 0.75}})
    nobody: Any = None
    found = Agent(nobody, run, "done").results
    assert {name: figures["win"] for name, figures in found.items()} == {
        "careful": 0.25,
        "random": 0.75,
    }
