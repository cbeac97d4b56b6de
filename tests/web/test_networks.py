"""Packed networks, computed by a game's module, against torch."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from sparring import _native
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.heads import POLICY, check_hidden
from sparring.nets.hierarchy import HierarchyNet, nets_by_role
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import Net
from sparring.nets.policy import BY_VALUE, DUELING, VALUES, Policy
from sparring.pools.custom.rules import CustomRules
from sparring.pools.native import Pool
from sparring.web.networks import pack_network
from web.wasm import Module, ModuleError, WasmNetwork

CLOSE = 1e-5
ROWS = 24

SMALL = (48, 33)
"""Widths that fill no vectors."""
KINDS: dict[str, tuple[str, NetConfig, dict[str, Any]]] = {
    "relu": ("skull_king", NetConfig(hidden=(64, 40)), {}),
    "separate": ("leduc_poker", NetConfig(hidden=SMALL, shared=False), {}),
    "tanh": ("kuhhandel", NetConfig(hidden=SMALL, activation="tanh"), {}),
    "silu": ("cage2", NetConfig(hidden=SMALL, activation="silu"), {}),
    "one layer": ("kuhn_poker", NetConfig(hidden=(7,)), {}),
    "norm": ("tic_tac_toe", NetConfig(hidden=SMALL, norm=True), {}),
    "norm separate": ("skull_king", NetConfig(hidden=(32, 16), norm=True, shared=False), {}),
    "normalized": ("laser_hockey_discrete", NetConfig(hidden=SMALL, normalize=True), {}),
    "inputs": ("skull_king", NetConfig(hidden=(32, 32), inputs=("hand", "round")), {}),
    "residual": ("shogi", NetConfig(kind="residual", channels=24, blocks=2), {}),
    "residual, odd": ("tic_tac_toe", NetConfig(kind="residual", channels=6, blocks=1), {}),
    "residual, dense": ("connect_four", NetConfig(kind="residual", channels=6, blocks=2), {}),
    "residual by value": (
        "tic_tac_toe",
        NetConfig(kind="residual", channels=8, blocks=1),
        {BY_VALUE: True, DUELING: True},
    ),
    "by value": ("laser_hockey_discrete", NetConfig(hidden=SMALL), {BY_VALUE: True}),
    "dueling": ("skull_king", NetConfig(hidden=(32, 32)), {BY_VALUE: True, DUELING: True}),
    "box": ("laser_hockey", NetConfig(hidden=SMALL), {}),
    "box, predicted": ("laser_hockey", NetConfig(hidden=SMALL, std="predicted"), {}),
    "sac": (
        "laser_hockey",
        NetConfig(hidden=SMALL, std="predicted", squash=True),
        {VALUES: False},
    ),
    "box normalized": (
        "laser_hockey",
        NetConfig(hidden=SMALL, normalize=True, activation="tanh", shared=False),
        {},
    ),
}


def grown(net: Net, obs: np.ndarray) -> Net:
    """Give every tensor something to say: fresh heads, norms and biases say nothing."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in net.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * 0.3 / math.sqrt(max(parameter.shape)))
    for at, one in enumerate([own for _, own in nets_by_role(net)] or [net]):
        one.value_scale.fill_(2.5 + at)
        one.update_normalizer(torch.from_numpy(obs))
    return net


@cache
def rows_of(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks from all over games that are played at random."""
    pool = Pool(rules, 4, seed=2, threads=1)
    batch = pool.reset()
    obs, masks = [], []
    while sum(map(len, obs)) < ROWS:
        asked = batch.seat >= 0
        obs.append(batch.obs[asked].copy())
        masks.append(batch.mask[asked].copy())
        for _ in range(5):
            batch = pool.step(pool.sample_actions())
    return np.concatenate(obs)[:ROWS], np.concatenate(masks)[:ROWS]


@cache
def made(kind: str) -> tuple[Policy, WasmNetwork, np.ndarray, np.ndarray]:
    """A policy, the same in a module, and rows to ask both."""
    if kind == "hierarchy":
        rules, meta = Rules("skull_king"), {}
        roles = {role: NetConfig(hidden=(32, 16 + 8 * i)) for i, role in enumerate(rules.roles)}
        net = make_net(rules, NetConfig(), roles=roles)
    else:
        game, config, meta = KINDS[kind]
        rules = Rules(game)
        net = make_net(rules, config)
    obs, masks = rows_of(rules)
    policy = Policy(rules, grown(net, obs), name=kind, meta=meta)
    return policy, Module(rules).network(pack_network(policy)), obs, masks


ALL = [*KINDS, "hierarchy"]
BOXES = [kind for kind in KINDS if KINDS[kind][0] == "laser_hockey"]
DISCRETE = [kind for kind in ALL if kind not in BOXES]


@pytest.mark.parametrize("kind", ALL)
def test_says_what_torch_says(kind):
    policy, network, obs, masks = made(kind)
    wanted = policy.heads(obs)[POLICY]
    values = policy.value(obs, masks) if network.about["values"] else None
    unit = network.about["value_unit"]
    assert np.abs(wanted).max() > 0.01
    for at in range(len(obs)):
        logits, value = network.answer(obs[at].tobytes(), masks[at].tobytes())
        assert np.abs(logits - wanted[at]).max() < CLOSE
        if values is not None:
            assert abs(value - values[at]) < CLOSE * unit
    assert (values is None) == (kind == "sac")


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "skull_king", "kuhhandel"])
def test_believes_what_torch_believes(game, shared):
    rules = Rules(game)
    heads = {"policy": rules.actions, "value": 1, "hidden": check_hidden(rules).width}
    obs, masks = rows_of(rules)
    config = NetConfig(hidden=(24, 16), shared=shared)
    policy = Policy(rules, grown(make_net(rules, config, heads=heads), obs))
    network = Module(rules).network(pack_network(policy))
    assert network.about["belief"]
    wanted = policy.belief(obs)
    logits, values = policy.heads(obs)[POLICY], policy.value(obs, masks)
    for at in range(len(obs)):
        assert np.abs(network.belief(obs[at].tobytes()) - wanted[at]).max() < CLOSE
        head, value = network.answer(obs[at].tobytes(), masks[at].tobytes())
        assert np.abs(head - logits[at]).max() < CLOSE
        assert abs(value - values[at]) < CLOSE * network.about["value_unit"]


@pytest.mark.parametrize("game", ["tic_tac_toe", "goofspiel"])
def test_a_head_that_no_world_is_drawn_by_is_left_out(game):
    rules = Rules(game)
    heads = {"policy": rules.actions, "value": 1, "wdl": 3}
    net = make_net(rules, NetConfig(hidden=(8,)), heads=heads)
    network = Module(rules).network(pack_network(Policy(rules, net)))
    assert not network.about["belief"]
    assert network.module.call("network_belief", network.handle, network.module.row) == 0


@pytest.mark.parametrize("kind", DISCRETE)
def test_probabilities_are_those_of_torch(kind):
    policy, network, obs, masks = made(kind)
    wanted = policy.probabilities(obs, masks)
    for at in range(len(obs)):
        network.answer(obs[at].tobytes(), masks[at].tobytes())
        found = network.probabilities()
        assert np.abs(found - wanted[at]).max() < CLOSE
        assert not found[masks[at] == 0].any()


@pytest.mark.parametrize("kind", ["relu", "residual", "by value"])
def test_draws_are_those_of_the_native_sampler(kind):
    policy, network, obs, masks = made(kind)
    action, log_prob = np.empty(1, np.int32), np.empty(1, np.float32)
    for at in range(len(obs)):
        logits, _ = network.answer(obs[at].tobytes(), masks[at].tobytes())
        for greedy in (False, True):
            where = 2**63 + at, np.array([7 * at], np.uint32), 3, 11 + at
            wise = greedy or policy.is_value_based
            _native.sample_masked(
                logits[None], masks[at][None], *where, wise, None, action, log_prob
            )
            found = network.draw(greedy=greedy, seed=where[0], row=7 * at, episode=3, step=where[3])
            assert found == action


@pytest.mark.parametrize("kind", BOXES)
def test_continuous_draws_are_those_of_the_native_sampler(kind):
    policy, network, obs, _ = made(kind)
    box = policy.rules.box
    action, log_prob = np.empty((1, box), np.float32), np.empty(1, np.float32)
    for at in range(len(obs)):
        head, _ = network.answer(obs[at].tobytes(), b"")
        for greedy in (False, True):
            where = 2**40 + at, np.array([at], np.uint32), 2, at
            _native.sample_gaussian(
                head[None], *where, greedy, None, policy.net.config.squash, action, log_prob
            )
            wanted = np.tanh(action) if policy.net.config.squash else action
            found = network.draw(greedy=greedy, seed=where[0], row=at, episode=2, step=at)
            # Logarithms and sines are the C library's, which may differ in the last bit.
            assert np.abs(found - wanted.clip(-1, 1)).max() < 1e-6


def test_the_header_says_what_it_is():
    policy, network, *_ = made("relu")
    about = network.about
    assert about["format"] == "sparring-network"
    assert about["game"] == "skull_king"
    assert about["parameters"] == sum(p.numel() for p in policy.net.parameters())
    assert json.dumps(about["flags"]) == "{}"
    assert about["values"]


def test_numbers_begin_at_a_multiple_of_four():
    policy, *_ = made("one layer")
    for name in ("a", "ab", "abc", "ä"):
        policy.name = name
        packed = pack_network(policy)
        assert (packed.index(b"\n") + 1) % 4 == 0
        assert len(packed) % 4 == 0


@pytest.mark.parametrize("keep", [-4, 400])
def test_a_cut_network_is_refused(keep):
    policy, network, *_ = made("one layer")
    with pytest.raises(ModuleError, match="damaged"):
        Module(policy.rules).network(pack_network(policy)[:keep])
    with pytest.raises(ModuleError, match="damaged"):
        Module(policy.rules).network(pack_network(policy) + bytes(4))
    assert network.handle


def test_a_network_with_memory_is_refused():
    rules = Rules("tic_tac_toe")
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,)), memory=16), name="mine")
    with pytest.raises(ConfigError, match="mine cannot run in a browser: 16 bytes of memory"):
        pack_network(policy)


def test_somebodys_own_network_is_refused():
    class Mine(Perceptron):
        pass

    rules = Rules("tic_tac_toe")
    with pytest.raises(
        ConfigError, match="a Mine, a network of your own, has no passes in a browser"
    ):
        pack_network(Policy(rules, Mine(rules, NetConfig(hidden=(8,))), name="x"))


def test_a_module_of_somebodys_own_is_refused_by_name():
    rules, config = Rules("tic_tac_toe"), NetConfig(kind="own_nets:Plain")
    with pytest.raises(ConfigError, match=r"net\.kind own_nets:Plain has no passes in a browser"):
        pack_network(Policy(rules, make_net(rules, config), name="x"))


def test_somebodys_own_environment_is_refused():
    rules = CustomRules("mine:make", seats=1, rows=1, actions=2, numbers=4)
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))), name="x")
    with pytest.raises(ConfigError, match="the custom environment"):
        pack_network(policy)


def test_a_hierarchy_has_a_network_per_role():
    policy, network, obs, _ = made("hierarchy")
    assert isinstance(policy.net, HierarchyNet)
    assert network.about["roles"] == list(policy.rules.roles)
    assert len(set(policy.rules.role_of(obs).tolist())) == len(policy.rules.roles)
