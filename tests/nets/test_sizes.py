"""Parameters and multiply-accumulates of networks, held against formulas written by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.heads import POLICY
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.sizes import NetCounts, count, num_parameters, pass_bytes, plain_torch_copy

MLP = NetConfig(hidden=(24, 16))


def counted(game: str, config: NetConfig) -> tuple[Rules, Net, NetCounts]:
    rules = Rules(game)
    net = make_net(rules, config)
    found = count(net)
    assert found.parameters == sum(weight.numel() for weight in net.parameters())
    assert sum(layer.macs for layer in found.layers) == found.macs
    return rules, net, found


def dense(*widths: int) -> int:
    return sum(a * b for a, b in pairwise(widths))


@pytest.mark.parametrize("sparse", [True, False])
def test_a_perceptron(sparse: bool) -> None:
    rules, _, found = counted("skull_king", replace(MLP, sparse=sparse))
    features = len(rules.features)
    assert found.macs == dense(features, 24, 16) + 16 * (rules.actions + 1)
    assert found.layers[0].name == "first"
    assert (found.layers[0].shape, found.layers[0].macs) == ((features, 24), features * 24)
    line = f"{found.parameters:,} parameters, {found.macs:,} multiply-accumulates per decision"
    assert found.line() == line
    assert found.plain()["layers"][0]["parameters"] == features * 24 + 24


def test_perceptrons_with_towers_layers_of_heads_frames_and_norm() -> None:
    rules, _, found = counted("tic_tac_toe", replace(MLP, shared=False, norm=True))
    features = len(rules.features)
    assert found.macs == 2 * dense(features, 24, 16) + 16 * (rules.actions + 1)
    _, _, found = counted("tic_tac_toe", replace(MLP, policy_hidden=(8,), value_hidden=(6, 4)))
    heads = dense(16, 8, rules.actions) + dense(16, 6, 4, 1)
    assert found.macs == dense(features, 24, 16) + heads
    _, net, found = counted("tic_tac_toe", replace(MLP, memory="stack", frames=3))
    numbers = features + net.inputs.memory // 4
    assert found.macs == dense(numbers, 24, 16) + 16 * (rules.actions + 1)


def test_a_cell_and_roles() -> None:
    config = replace(MLP, memory="gru", memory_width=8)
    rules, _, found = counted("skull_king", config)
    features = len(rules.features)
    cell = 3 * 8 * (16 + 8)
    assert found.macs == dense(features, 24, 16) + cell + 8 * (rules.actions + 1)
    roles = {rules.roles[0]: MLP, rules.roles[1]: replace(MLP, hidden=(64,))}
    both = count(make_net(rules, MLP, roles=roles))
    each = [count(make_net(rules, one)) for one in roles.values()]
    assert both.parameters == sum(one.parameters for one in each)
    assert both.macs == max(one.macs or 0 for one in each)
    assert both.layers[0].name == f"roles.{rules.roles[0]}.first"


def test_a_residual_tower() -> None:
    config = NetConfig(kind="residual", channels=8, blocks=2)
    rules, net, found = counted("shogi", config)
    squares, planes, numbers = 81, 28, len(rules.features) - 81 * 28
    stem = 9 * squares * planes * 8 + numbers * 8
    tower = 2 * 2 * 9 * squares * 8 * 8
    policy = squares * 8 * (rules.actions // squares)
    value = squares * 8 * 8 + 8 * squares * 64 + 64
    assert found.macs == stem + tower + policy + value
    obs = torch.zeros(2, net.inputs.row_bytes, dtype=torch.uint8)
    torch.testing.assert_close(plain_torch_copy(net)(obs)[POLICY], net(obs)[POLICY])


def test_attention() -> None:
    width, config = 16, NetConfig(kind="attention", token_width=16, token_layers=1, token_heads=2)
    _, net, found = counted("skull_king", config)
    macs = {layer.name: layer.macs for layer in found.layers}
    tokens = 1 + sum(one.tokens for one in net.declared.sets)  # type: ignore[union-attr]
    asked = int(net.output_tokens)  # type: ignore[arg-type]
    assert macs["first"] == net.first.weight.numel()  # type: ignore[union-attr, operator]
    assert macs["encoder.0.look"] == asked * width * width + 2 * tokens * width * width
    assert macs["encoder.0"] == 2 * asked * tokens * width, "queries with keys, shares with values"
    assert macs["encoder.0.up"] == macs["encoder.0.down"] == asked * width * 2 * width
    assert macs["value_head"] == width


def test_a_module_of_somebody_s_own_is_counted_without_a_formula() -> None:
    rules, _, found = counted("tic_tac_toe", NetConfig(kind="own_nets:Plain"))
    names = [layer.name for layer in found.layers]
    assert all(name.startswith("module.") for name in names)
    assert found.macs == sum(layer.shape[0] * layer.shape[1] for layer in found.layers)
    assert rules.actions in [layer.shape[0] for layer in found.layers]


@pytest.mark.parametrize(
    ("game", "config"),
    [
        ("skull_king", MLP),
        ("laser_hockey", replace(MLP, shared=False, norm=True, std="predicted")),
        ("tic_tac_toe", replace(MLP, policy_hidden=(8,), value_hidden=(6, 4), normalize=True)),
        ("tic_tac_toe", replace(MLP, memory="stack", frames=3)),
        ("skull_king", replace(MLP, memory="gru", memory_width=8)),
        ("shogi", NetConfig(kind="residual", channels=8, blocks=2)),
        ("connect_four", NetConfig(kind="residual", channels=8, blocks=2)),
        ("skull_king", NetConfig(kind="attention", token_width=16, token_layers=2)),
        ("tic_tac_toe", NetConfig(kind="own_nets:Plain")),
    ],
)
def test_settings_tell_the_weights_of_the_network_that_they_make(
    game: str, config: NetConfig
) -> None:
    rules = Rules(game)
    net = make_net(rules, config)
    before = torch.random.get_rng_state()
    assert num_parameters(rules, config) == sum(weight.numel() for weight in net.parameters())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_weights_are_told_of_networks_that_hardly_a_machine_has_room_for() -> None:
    rules, wide, layers = Rules("tic_tac_toe"), 8192, 16
    behind = (layers - 1) * (wide * wide + wide) + (wide + 1) * (rules.actions + 1)
    found = num_parameters(rules, NetConfig(hidden=(wide,) * layers))
    assert found == (len(rules.features) + 1) * wide + behind


@pytest.mark.parametrize("learn", [False, True])
def test_a_pass_of_a_perceptron_takes_what_its_layers_do(learn: bool) -> None:
    rules = Rules("tic_tac_toe")
    narrow, wide = (
        pass_bytes(rules, NetConfig(hidden=(width, 16)), bf16=False, learn=learn)
        for width in (16, 24)
    )
    assert wide - narrow == 4 * 8 * (2 if learn else 1)
