"""Policies of other runs in training: each remembers in the first bytes of its own seats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.supervisors import settings
from remembering import remembering
from sparring import ConfigError
from sparring.learn.acting import PlayerActor
from sparring.store.policies import save_policy
from sparring.training.planning.plan import make_learner, resolve


def learner_against(folder: Path, **net: Any) -> Any:
    config = settings(
        "leduc_poker",
        opponents=(f"self,{folder}@greedy=1",),
        net={"hidden": (16,), **net},
        collect={"games": 6, "steps": 20},
    )
    return make_learner(config, resolve([config]))


@pytest.mark.parametrize("kind", ["gru", "stack", ""])
def test_another_run_remembers_what_a_slow_loop_does(kind: str, tmp_path: Path) -> None:
    """Less than the learner does, behind shorter rows; what is behind belongs to nobody."""
    policy = remembering("leduc_poker", kind).always(greedy=True)
    folder = save_policy(policy, tmp_path / "other")
    learner = learner_against(folder, memory="gru", memory_width=80)
    others = {k: a for k, a in learner.collector.actors.items() if isinstance(a, PlayerActor)}
    (number,) = others
    learner.iterate(0.0)
    rollout, rules = learner.collector.rollout, learner.rules
    first = learner.collector.transitions.max_pending
    obs, mask, action = (
        getattr(rollout, name)[first:].reshape(20, 6, -1) for name in ("obs", "mask", "action")
    )
    over = (rollout.terminated | rollout.truncated).astype(bool)
    held: dict[tuple[int, int], Any] = {}
    asked = 0
    for step in range(20):
        for game in np.flatnonzero(rollout.policy[step] == number):
            seat = (int(game), int(rollout.seat[step, game]))
            row, legal = obs[step, game][None], mask[step, game][None]
            memory = held.get(seat, policy.initial_memory())
            shown = row[0, rules.obs_bytes :][: policy.memory_bytes]
            # A network answers batches with other roundings.
            np.testing.assert_allclose(
                shown.view(np.float32), memory[0].view(np.float32), atol=1e-6
            )
            (wanted,), held[seat] = policy.decide(
                row[:, : rules.obs_bytes], legal, memory, greedy=True
            )
            assert wanted == action[step, game, 0]
            asked += 1
        for game in np.flatnonzero(over[step]):
            held = {seat: memory for seat, memory in held.items() if seat[0] != game}
    assert asked > 20


def test_one_that_remembers_more_than_the_learner_is_refused(tmp_path: Path) -> None:
    folder = save_policy(remembering("leduc_poker", "wide"), tmp_path / "other")
    with pytest.raises(ConfigError, match=r"remembers 160 bytes of each seat and the learner 0"):
        learner_against(folder)
    with pytest.raises(ConfigError, match=r"and the learner 32; give the learner as much"):
        learner_against(folder, memory="gru", memory_width=8)
