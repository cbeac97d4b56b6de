"""Hindsight that nothing would come of is refused before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from sparring.config import DQNConfig, HindsightConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.dqn import DQN
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged

ON = HindsightConfig(on=True)
TINY: dict[str, Any] = {
    "threads": 1,
    "device": "cpu",
    "collect": {"games": 8, "steps": 48},
    "net": {"hidden": (8,)},
    "set": ("rounds=2,3",),
}


def plan(game: str = "skull_king", **settings: Any) -> Any:
    given = {"device": "cpu", "threads": 1, "hindsight": ON, **settings}
    return resolve([TrainConfig(game=game, **given)])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"game": "tic_tac_toe"},
            r"on needs a game with goals, .* play one of skull_king",
        ),
        ({"algo": "sac"}, r"hindsight.on needs .*, and algo sac is not one"),
        (
            {"algo": "dqn", "dqn": DQNConfig(mode="rollouts")},
            r"use --algo ppo, or use --algo dqn, or",
        ),
        ({"set": ("abilities=1",)}, r"hindsight.on: skull_king .*abilities=1.*set abilities=0"),
        (
            {"algo": "dqn", "rewards": ("rank=1", "worker.worker=1")},
            r"hindsight.on: the reward rank .*score_delta, manager, worker",
        ),
        ({"algo": "dqn", "set": ("reward=FLAT_SHAPED",)}, r"hindsight.on: the reward flat_shaped"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        plan(**settings)
    assert "\n" not in str(refused.value)


def test_ppo_may_be_paid_by_anything() -> None:
    assert plan(rewards=("rank=1",)).hindsight.relabels
    assert plan(algo="dqn", rewards=("manager.manager=1", "worker.worker=1")).hindsight.relabels


@pytest.mark.parametrize("hierarchy", [False, True])
def test_ppo_says_what_it_saw(hierarchy: bool) -> None:
    changes = {**TINY, "hierarchy": {"on": hierarchy}, "hindsight": {"on": True, "share": 1.0}}
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    (report,) = make_learner(config, resolve([config])).iterate(0.0)
    for role in ("/manager", "/worker") if hierarchy else ("",):
        assert report.stats[f"losses/hindsight{role}"] > 0
        assert report.stats[f"learning/examples{role}"] > 0


def test_dqn_remembers_what_came_of_bids() -> None:
    changes = {**TINY, "algo": "dqn", "hindsight": {"on": True}}
    config = merged(TrainConfig(game="skull_king"), changes, "test")
    learner = make_learner(config, resolve([config]))
    assert isinstance(learner, DQN)
    learner.iterate(0.0)
    assert learner.experience.replay.ring["record"].any()
