"""The head for what the other seats do next, against loops over the rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from make import make_ppo
from sparring.config import CollectConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.learn.opponents import UNKNOWN, OpponentsTerm, next_actions
from sparring.learn.ppo import PPO
from sparring.schedule import Schedule

HEADS = HeadsConfig(opponents=Schedule.constant(1.0))


def make(game: str, cpu: str = "float32") -> PPO:
    collect = CollectConfig(games=12, steps=24, cpu=cpu)
    return make_ppo(
        game,
        PPOConfig(epochs=2, minibatch=100),
        NetConfig(hidden=(32,)),
        collect=collect,
        heads=HEADS,
    )


def by_loops(rollout: Any, first: int, seats: int) -> np.ndarray[Any, Any]:
    """The next action of every other seat, one decision after the other."""
    steps, rows = rollout.seat.shape
    each = rows // rollout.terminated.shape[1]
    action = rollout.action[first:].reshape(steps, rows)
    found = np.full((steps, rows, seats - 1), UNKNOWN)
    for step, row in np.argwhere(rollout.seat >= 0):
        game = row // each
        for other in range(steps - step):
            at = step + other
            now = rollout.seat[at, game * each : (game + 1) * each]
            if other and rollout.seat[step, row] in now:
                break
            for k, who in enumerate(now):
                away = (who - rollout.seat[step, row]) % seats - 1
                if who >= 0 and who != rollout.seat[step, row] and found[step, row, away] < 0:
                    found[step, row, away] = action[at, game * each + k]
            if rollout.terminated[at, game] or rollout.truncated[at, game]:
                break
    return found.reshape(-1, seats - 1)


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "tic_tac_toe", "rock_paper_scissors"])
def test_targets_are_those_of_loops(game: str) -> None:
    learner = make(game)
    for _ in range(2):
        learner.iterate(0.0)
    rollout, first = learner.collector.rollout, learner.collector.transitions.max_pending
    (term,) = learner.terms
    assert isinstance(term, OpponentsTerm)
    targets = term.targets(rollout, first)
    assert (targets[:first] == UNKNOWN).all()
    wanted = by_loops(rollout, first, learner.rules.seats)
    assert (targets[first:] == wanted).all()
    assert (wanted != UNKNOWN).mean() > 0.2


def test_seats_that_never_move_are_unknown() -> None:
    seat = torch.tensor([[0], [0], [1], [0]], dtype=torch.int8)
    action, over = torch.tensor([[5], [6], [7], [8]]), torch.tensor([[0], [0], [1], [0]]).bool()
    found = next_actions(seat, action, over, 3)
    assert found[:, 0].tolist() == [[-1, -1], [7, -1], [-1, -1], [-1, -1]]


@pytest.mark.parametrize("cpu", ["float32", "torch"])
def test_a_head_learns_what_others_do(cpu: str) -> None:
    learner = make("tic_tac_toe", cpu)
    assert learner.net.heads["opponents"] == 9
    stats = [learner.iterate(0.0)[0].stats for _ in range(12)]
    assert stats[-1]["losses/opponents"] < 0.95 * stats[0]["losses/opponents"]
    assert 0 < stats[-1]["losses/opponents_accuracy"] <= 1


def test_native_code_and_autograd_learn_alike() -> None:
    native, torch_ = (make("kuhhandel", cpu) for cpu in ("float32", "torch"))
    for name in ("opponents", "policy_loss"):
        first, second = (one.iterate(0.0)[0].stats for one in (native, torch_))
        assert first[f"losses/{name}"] == pytest.approx(second[f"losses/{name}"], rel=1e-3)
