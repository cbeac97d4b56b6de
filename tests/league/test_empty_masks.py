"""Environments whose mask allows nothing: told in a line, wherever they are stepped."""

from __future__ import annotations

import pytest
import torch

from proof.broken_envs import EmptyMask
from sparring import factories
from sparring.commands.shared.custom_game import CustomGame
from sparring.config import NetConfig
from sparring.errors import EnvError
from sparring.league.arena import evaluate
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.custom.make import make_pool

REFUSED = r"EmptyMask.*, step 3: seat 0 is to act and its action mask allows nothing; end the ep"


@pytest.fixture
def policy() -> Policy:
    rules = make_pool(EmptyMask, 1).rules
    rules.factory = factories.register_object(EmptyMask, "EmptyMask")
    torch.manual_seed(0)
    return Policy(rules, make_net(rules, NetConfig(hidden=(8,))))


def test_in_training() -> None:
    pool = make_pool(EmptyMask, 2)
    pool.reset()
    with pytest.raises(EnvError, match=REFUSED):
        for _ in range(4):
            pool.step(pool.sample_actions())


def test_in_a_measurement(policy: Policy) -> None:
    with pytest.raises(EnvError, match=REFUSED):
        evaluate(policy, [], games=4)


def test_in_a_single_game(policy: Policy) -> None:
    game = CustomGame("me", policy.rules)
    game.start(1)
    with pytest.raises(EnvError, match=REFUSED):
        for _ in range(4):
            game.play([(0, game.answer(policy, 0))])
