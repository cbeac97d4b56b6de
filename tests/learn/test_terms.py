"""Terms of the loss: native steps descend on them as torch does, and heads beside policy and value.

torch's steps are the slow, obvious reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from make import make_ppo
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.ppo import PPO
from sparring.nets.distribution import masked_log_probs
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.net import HeadOutputs
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(games=16, steps=24)
SETTINGS = PPOConfig(epochs=2, minibatch=100, lr=Schedule.constant(3e-3))


class Pull:
    """Draws the policy to what a column says, and the value to 0."""

    name = "pull"
    measured = ("pull_value",)

    def __init__(self, weight: Schedule) -> None:
        self.schedule, self.weight = weight, 0.0

    def set_weight(self, moment: Moment) -> None:
        self.weight = self.schedule.at(moment)

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        wanted = np.random.default_rng(0).random((len(samples), learner.rules.actions))
        return {"wanted": wanted.astype(np.float32)}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        said = masked_log_probs(heads[POLICY], rows["mask"])
        wanted = rows["wanted"] * rows["mask"]
        wanted = wanted / wanted.sum(-1, keepdim=True)
        missed = -(wanted * said.masked_fill(rows["mask"] == 0, 0.0)).sum(-1)
        return missed + heads[VALUE] ** 2

    def measure(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"pull_value": heads[VALUE].abs()}


def make(cpu: str, game: str, weight: Schedule, net: NetConfig, *, mirror: bool = False) -> PPO:
    learner = make_ppo(game, SETTINGS, net, collect=replace(COLLECT, cpu=cpu, mirror=mirror))
    learner.terms.append(Pull(weight))
    return learner


@pytest.mark.parametrize(("game", "mirror"), [("skull_king", False), ("tic_tac_toe", True)])
def test_native_steps_descend_on_terms_as_torch_does(game: str, mirror: bool) -> None:
    net = NetConfig(hidden=(32, 16), shared=not mirror)
    runs = [
        make(cpu, game, Schedule.constant(0.3), net, mirror=mirror) for cpu in ("float32", "torch")
    ]
    assert [run.forward.native is not None for run in runs] == [True, False]
    stats = [run.iterate(0.0)[0].stats for run in runs]
    for name in ("losses/pull", "losses/pull_value", "losses/policy_loss", "losses/grad_norm"):
        assert stats[0][name] == pytest.approx(stats[1][name], rel=1e-3, abs=1e-5), name
    for mine, theirs in zip(*(run.net.parameters() for run in runs), strict=True):
        assert torch.allclose(mine, theirs, atol=2e-5)


def test_a_term_without_weight_changes_nothing() -> None:
    net = NetConfig(hidden=(32,))
    runs = [make("float32", "tic_tac_toe", Schedule.constant(0.0), net) for _ in range(2)]
    runs[1].terms.clear()
    stats = [run.iterate(0.0)[0].stats for run in runs]
    assert "losses/pull" not in stats[0]
    for mine, theirs in zip(*(run.net.parameters() for run in runs), strict=True):
        assert torch.equal(mine, theirs)
