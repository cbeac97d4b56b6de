"""Phases of a run in an environment that somebody brought along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sparring
from sparring.errors import ConfigError
from sparring.training.records.metrics import read


class Corridor(gym.Env[Any, Any]):
    """As many steps as its flag says when it begins."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.steps, self.wanted = 0, 5

    def set_config(self, limit: float) -> None:
        self.wanted = int(limit)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.limit = 0, self.wanted
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        over = self.steps >= self.limit
        return np.full(3, self.steps / 20, np.float32), float(action), over, False, {}


def train(runs: Path, phases: list[dict[str, Any]]) -> sparring.Agent:
    env = gym.vector.SyncVectorEnv([Corridor] * 4)
    return sparring.train(
        env,
        decisions=2000,
        net={"hidden": (8,)},
        collect={"steps": 16},
        threads=1,
        runs=str(runs),
        tensorboard=False,
        quiet=True,
        phases=phases,
    )


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_an_environment_goes_through_phases(tmp_path: Path) -> None:
    rewards = {"reward": "0:1,1000:0.5"}
    agent = train(
        tmp_path,
        [
            {"name": "short", "decisions": 1000, "set": {"limit": 3}, "rewards": rewards},
            {"name": "long", "set": {"limit": "0:9,500:4"}, "ppo": {"lr": "0:1e-3,900:1e-4"}},
        ],
    )
    events = json.loads((agent.run / "events.json").read_text())
    assert [e["name"] for e in events if e["event"] == "phase"] == ["short", "long"]
    curves = read(agent.run)
    phase, length = curves["charts/phase"][2], curves["charts/length"][2]
    assert set(length[phase == 1]) == {3.0}
    assert length[phase == 2].max() > 6 > length[-1] >= 4
    assert curves["curriculum/reward/reward"][2][phase == 1].min() < 0.6
    assert curves["learning/lr"][2][-1] < 2e-4


@pytest.mark.parametrize(
    ("phase", "why"),
    [
        ({"opponents": ["past=1"]}, "has one seat, there is none for past"),
        ({"starts": ["usual=1"]}, "starts: .*its reset decides"),
        ({"until": {"score": 3}}, "until: .*which is not evaluated"),
        ({"set": {"limit": 3}}, "limit is named in other phases"),
        ({"rewards": {"foo": 1}}, "no reward part 'foo'"),
    ],
)
def test_what_nothing_would_come_of_is_refused(
    tmp_path: Path, phase: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        train(tmp_path / "runs", [{"name": "first", "decisions": 500, **phase}, {"name": "last"}])
    assert not (tmp_path / "runs").exists()
