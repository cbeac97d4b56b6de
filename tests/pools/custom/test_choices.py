"""Environments that ask for several choices at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from sparring import IllegalActionError
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.predict import predict
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.store.policies import load_policy, save_policy


class Arm(gymnasium.Env[Any, Any]):
    """Three directions, from 1 on, and a hand that opens or closes; masks by part."""

    observation_space: Any = spaces.Box(-9, 9, (2,), np.float32)
    action_space: Any = spaces.MultiDiscrete([3, 2], start=[1, 0])
    action_names = ("left", "stay", "right", "open", "close")

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def legal(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, 0, 1, 1, 1], np.int8)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), self.legal()

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.seen.append(action.tolist())
        return np.array(action, np.float32), 0.0, False, False, self.legal()


class Lamps(Arm):
    """Two switches and no names."""

    action_space: Any = spaces.MultiBinary(2)
    action_names = ()

    def legal(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, 1, 0, 1])}  # by switch, though there are 4 combinations


def test_combinations_are_actions() -> None:
    pool = make_pool(Arm, 1)
    batch, rules = pool.reset(), pool.rules
    assert (rules.actions, rules.box) == (6, 0)
    np.testing.assert_array_equal(batch.mask[0], [1, 1, 0, 0, 1, 1])
    pool.step([5])
    (table,) = pool.tables  # type: ignore[attr-defined]
    assert table.env.seen == [[3, 1]]
    with pytest.raises(
        IllegalActionError, match=r"2 is not legal; legal: 0 \(left, open\), 1 \(le"
    ):
        pool.step([2])


def test_a_vector_and_zeros_and_ones_are_the_same() -> None:
    pool = make_pool(lambda: gymnasium.vector.SyncVectorEnv([Lamps, Lamps]), copies=1)
    np.testing.assert_array_equal(pool.reset().mask[0], [0, 1, 0, 1])
    batch = pool.step([1, 3])
    np.testing.assert_array_equal(pool.rules.widen(batch.obs), [[0, 1], [1, 1]])
    assert [pool.rules.action_name(action) for action in range(4)] == [
        "0, 0",
        "0, 1",
        "1, 0",
        "1, 1",
    ]


def test_a_checkpoint_and_predict_know_them(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rules = make_pool(Arm, 1).rules
    fresh = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    policy = load_policy(save_policy(fresh, tmp_path / "arm"))
    assert policy.rules.action_name(3) == "stay, close"
    assert isinstance(policy.rules, CustomRules) and policy.rules.plain() == rules.plain()
    only = np.array([0, 0, 1, 0, 1])
    how: dict[str, Any] = {"deterministic": True, "step": 0}
    action, _ = predict(policy, np.zeros(2), action_masks=only, **how)
    assert Arm.action_space.contains(action)
    assert action.tolist() == [3, 1]
