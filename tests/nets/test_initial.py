"""The first weights of a network, which no number of threads may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import sparring
from own_envs import make_screen
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.layers import orthogonal_
from sparring.nets.make import KINDS, make_net
from sparring.pools.custom import pool_of

SCREEN = "screen"
"""Pixels of an environment in Python, instead of a game."""
WIDE = NetConfig(hidden=(512, 512))
NETS = {
    "mlp": ("skull_king", WIDE),
    "mlp, inputs": ("skull_king", replace(WIDE, inputs=("hand",))),
    "gru": ("skull_king", replace(WIDE, memory="gru", memory_width=256)),
    "residual": ("shogi", NetConfig(kind="residual", channels=64, blocks=2)),
    "attention": ("skull_king", NetConfig(kind="attention", token_width=256)),
    "nature": (SCREEN, NetConfig(kind="nature")),
    "impala": (SCREEN, NetConfig(kind="impala")),
}


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def rules_of(game: str) -> Rules:
    return pool_of([make_screen()]).rules if game == SCREEN else Rules(game)


def test_every_kind_is_here() -> None:
    assert {config.kind for _, config in NETS.values()} == set(KINDS)


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", NETS)
def test_first_weights_are_the_same_bits_for_any_number_of_threads(kind: str) -> None:
    game, config = NETS[kind]
    made = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        made.append(make_net(rules_of(game), config).state_dict())
        assert torch.get_num_threads() == threads
    for name, weight in made[0].items():
        assert torch.equal(weight, made[1][name]), name


def test_a_training_is_the_same_bits_for_any_number_of_threads(tmp_path: Path) -> None:
    """Of a perceptron, which native code plays and learns with from end to end."""
    weights = []
    for threads in (1, 2):
        agent = sparring.train(
            "tic_tac_toe",
            updates=2,
            threads=threads,
            device="cpu",
            collect={"games": 64, "steps": 8},
            eval={"off": True},
            net={"hidden": (64, 64)},
            runs=str(tmp_path / str(threads)),
            tensorboard=False,
            quiet=True,
        )
        weights.append(agent.policy.net.state_dict())
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name]), name


def test_large_matrices_are_orthogonal_and_those_of_one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(2)
    wanted = nn.init.orthogonal_(torch.empty(1024, 1024), 2.0)
    torch.testing.assert_close(wanted @ wanted.T, 4 * torch.eye(1024), rtol=0, atol=1e-4)
    torch.set_num_threads(2)
    torch.manual_seed(2)
    assert torch.equal(orthogonal_(torch.empty(1024, 1024), 2.0), wanted)
