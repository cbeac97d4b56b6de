"""Several runs from Python: agents, and how they compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sparring
from commands.run_helpers import make_run
from sparring.errors import ConfigError
from sparring.training.agent import Agent
from sparring.training.several import Agents

QUICK: dict[str, Any] = {
    **{"updates": 1, "quiet": True, "threads": 1, "tensorboard": False, "eval": {"off": True}},
    **{"net": {"hidden": (8,)}, "collect": {"games": 4, "steps": 8}},
}


def made(root: Path, strengths: dict[str, float], **settings: Any) -> Agents:
    """Agents of runs whose evaluations are known."""
    runs = [
        make_run(root, name, {1: 0.4, 9: strength}, seed=seed, **settings)
        for seed, (name, strength) in enumerate(strengths.items())
    ]
    nobody: Any = None
    return Agents([Known(nobody, run, "done") for run in runs])


class Known(Agent):
    """An agent of whom only the run is asked."""

    def __repr__(self) -> str:
        return f"Agent({self.run.name})"


def test_seeds_give_agents_in_order(tmp_path: Path) -> None:
    agents = sparring.train("tic_tac_toe", seeds=2, seed=5, name="x", runs=str(tmp_path), **QUICK)
    assert isinstance(agents, sparring.Agents)
    assert [agent.run.name for agent in agents] == ["x-1", "x-2"]
    seeds = [agent.policy.meta["config"]["seed"] for agent in agents]
    assert seeds == [5, 6]
    assert isinstance(agents[:1], Agents) and agents[-1].act(sparring.new_state("tic_tac_toe")) < 9
    assert "not compared:" in repr(agents), "nothing was measured"
    with pytest.raises(ConfigError, match="no evaluation yet"):
        _ = agents.comparison


def test_the_table_is_that_of_compare(tmp_path: Path) -> None:
    agents = made(tmp_path, {"a": 0.5, "b": 0.9, "c": 0.7})
    assert agents.best.run.name == "b"
    (group,) = agents.comparison.groups
    assert len(group.entries) == 3
    assert [one.label for one in agents.compare("run").groups] == ["a", "b", "c"]
    shown = repr(agents).splitlines()
    assert shown[:3] == ["Agent(a)", "Agent(b)", "Agent(c)"]
    assert shown[3].split() == ["group", "settings", "runs", "strength", "(IQM)", "95", "%"]
    assert shown[4].split()[:4] == ["A", "all", "runs", "3"]
    assert any("differ in nothing but the seed" in line for line in shown)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"seeds": 0}, "seeds 0 must be from 1 to"),
        ({"seeds": 2.5}, "seeds.*2.5"),
        ({"seeds": 2, "population": 2}, "seeds 2 and population 2 both say how many"),
        ({"population": 4, "device": "cpu"}, "on one GPU.*; use --seeds for runs one after"),
        ({"seeds": 2, "opponents": ["carefull"]}, "did you mean 'careful'"),
        ({"seeds": 2, "name": "x y"}, "name"),
    ],
)
def test_mistakes_are_told_in_a_line_before_anything_is_made(
    given: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=why):
        sparring.train("tic_tac_toe", runs=str(tmp_path / "runs"), **{**QUICK, **given})
    assert not (tmp_path / "runs").exists()
