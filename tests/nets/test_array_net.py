"""Networks of arrays say what the same networks of torch say, in all games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from make import NETS, played, stirred
from sparring.config import NetConfig
from sparring.games.rules import Rules, game_names
from sparring.nets.array_net import ArrayNet, as_arrays
from sparring.nets.heads import head_width
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.net import Net

KINDS: dict[str, tuple[str, NetConfig]] = {
    **{name: made for name, made in NETS.items() if not name.startswith("own")},
    **{game: (game, NetConfig(hidden=(24, 16))) for game in game_names()},
    "normalized": ("kuhhandel", NetConfig(hidden=(24,), normalize=True, activation="silu")),
    "own layers": ("leduc_poker", NetConfig(hidden=(24,), policy_hidden=(8,), value_hidden=(9, 8))),
    "some inputs": ("skull_king", NetConfig(hidden=(16,), inputs=("hand",))),
    "gru": ("leduc_poker", NetConfig(hidden=(24, 16), memory="gru", memory_width=10, norm=True)),
    "stack": ("laser_hockey", NetConfig(hidden=(24,), memory="stack", frames=3)),
    "stack, normalized": (
        "kuhhandel",
        NetConfig(hidden=(24,), memory="stack", frames=2, normalize=True),
    ),
}


def demand_same(net: Net, rules: Rules) -> None:
    rows = played(rules, 40, steps=5, memory=net.inputs.memory).obs
    if net.inputs.memory:
        held = np.random.default_rng(0).normal(size=(len(rows), net.inputs.memory // 4))
        rows[:, rules.obs_bytes :] = held.astype(np.float32).view(np.uint8)
    net.update_normalizer(torch.from_numpy(rows))
    mine, theirs = net.evaluate(rows), as_arrays(net).evaluate(rows)
    assert mine.heads.keys() == theirs.heads.keys()
    for name, wanted in mine.heads.items():
        np.testing.assert_allclose(theirs.heads[name], wanted, rtol=1e-4, atol=2e-5)
    for one, other in ((mine.values, theirs.values), (mine.memory, theirs.memory)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_say_what_torch_says(kind: str) -> None:
    game, config = KINDS[kind]
    rules = Rules(game)
    memory = memory_bytes_of(rules, config)
    net = stirred(make_net(rules, config, memory=memory)).eval()
    net.value_scale.fill_(7.0)
    demand_same(net, rules)
    expected = net.state_dict()
    empty = ArrayNet(rules, config, memory=memory).state_dict()
    assert {name: one.shape for name, one in empty.items()} == {
        name: tuple(one.shape) for name, one in expected.items()
    }
    assert all(str(one.dtype) == f"torch.{empty[name].dtype}" for name, one in expected.items())


@pytest.mark.parametrize("kind", ["mlp", "residual"])
def test_auxiliary_heads_and_their_share_of_a_value_are_the_same(kind: str) -> None:
    rules = Rules("connect_four")
    heads = {"policy": head_width(rules), "value": 1, "wdl": 3, "score": 1}
    net = stirred(make_net(rules, NetConfig(kind=kind, channels=8, blocks=1), heads=heads))
    net.wdl_blend.fill_(0.5)
    net.wdl_unit.fill_(2.0)
    demand_same(net, rules)


def test_every_role_has_its_network() -> None:
    rules = Rules("skull_king")
    roles: dict[str, Any] = {
        role: NetConfig(hidden=(16, 8 * at)) for at, role in enumerate(rules.roles, 1)
    }
    net = stirred(make_net(rules, NetConfig(), roles=roles))
    demand_same(net, rules)
    assert as_arrays(net).parameter_count == sum(one.numel() for one in net.parameters())
