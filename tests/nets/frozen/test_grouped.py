"""Frozen networks that answer together say what each of them says alone."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import sparring
from make import nets, played
from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.frozen.cpu import GroupedNet
from sparring.nets.heads import head_width
from sparring.nets.make import make_net
from sparring.nets.net import Net

NETS = nets(
    *("relu", "odd widths", "one layer", "tanh, two trunks", "silu"),
    *("without our own first layer", "continuous", "continuous, two trunks"),
    *("layer norm", "layer norm, two trunks", "residual", "residual, odd channels"),
    "residual, dense policy",
)


def observed(game: str, rows: int = 90) -> tuple[sparring.Rules, torch.Tensor]:
    found = played(game, rows, steps=20)
    return found.rules, found.tensor


def frozen(rules: sparring.Rules, config: NetConfig, count: int, memory: int = 0) -> list[Net]:
    torch.manual_seed(7)
    nets = [make_net(rules, config, memory=memory) for _ in range(count)]
    for net in nets:
        for parameter in net.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
    return nets


def grouped_of(rules: sparring.Rules, nets: list[Net], threads: int = 1) -> GroupedNet:
    memory = nets[0].inputs.memory
    grouped = GroupedNet(rules, nets[0].config, len(nets), memory=memory, threads=threads)
    for slot, net in enumerate(nets, 1):
        grouped.load(slot, net.state_dict())
    return grouped


@torch.no_grad()
def one_by_one(nets: list[Net], obs: torch.Tensor, slot: np.ndarray) -> torch.Tensor:
    out = torch.full((len(slot), head_width(nets[0].inputs.rules)), torch.nan)
    for at, net in enumerate(nets, 1):
        rows = torch.from_numpy(np.flatnonzero(slot == at))
        out[rows] = net(obs[rows])["policy"]
    return out


@pytest.mark.few(9)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("net", NETS)
def test_process_group_as_alone(net: str, threads: int) -> None:
    game, config = NETS[net]
    rules, obs = observed(game)
    nets = frozen(rules, config, 5)
    grouped = grouped_of(rules, nets, threads)
    rng = np.random.default_rng(1)
    shares = [
        rng.choice([1, 2, 3, 5], p=[0.05, 0.1, 0.25, 0.6], size=len(obs)),  # nobody in slot 4
        np.full(len(obs), 4),
        np.arange(len(obs)) % 5 + 1,
        np.array([2]),
        np.array([], np.int64),
    ]
    for slot in shares:
        said = grouped.forward(obs[: len(slot)], slot.astype(np.int16))["policy"]
        assert said.shape == (len(slot), head_width(rules))
        torch.testing.assert_close(said, one_by_one(nets, obs, slot), atol=1e-5, rtol=1e-5)


def test_memory_is_read_behind_the_observation() -> None:
    rules, obs = observed("tic_tac_toe", 30)
    nets = frozen(rules, NetConfig(hidden=(32, 32)), 3, memory=32)
    obs = torch.cat([obs, torch.randn(30, 8).view(torch.uint8)], dim=1)
    slot = np.arange(30) % 3 + 1
    said = grouped_of(rules, nets).forward(obs, slot)["policy"]
    torch.testing.assert_close(said, one_by_one(nets, obs, slot), atol=1e-5, rtol=1e-5)


def test_a_slot_can_be_filled_anew() -> None:
    rules, obs = observed("tic_tac_toe", 20)
    nets = frozen(rules, NetConfig(hidden=(32,)), 3)
    grouped = grouped_of(rules, nets[:2])
    grouped.load(1, nets[2].state_dict())
    slot = np.arange(20) % 2 + 1
    expected = one_by_one([nets[2], nets[1]], obs, slot)
    torch.testing.assert_close(grouped.forward(obs, slot)["policy"], expected)


@pytest.mark.parametrize("net", ["relu", "residual"])
def test_answers_do_not_depend_on_threads_or_on_company(net: str) -> None:
    game, config = NETS[net]
    rules, obs = observed(game, 40)
    nets = frozen(rules, config, 4)
    slot = np.arange(40) % 4 + 1
    alone, crew = grouped_of(rules, nets), grouped_of(rules, nets, threads=3)
    assert torch.equal(alone.forward(obs, slot)["policy"], crew.forward(obs, slot)["policy"])
    if net == "relu":
        mine = slot == 3
        only = alone.forward(obs[mine], slot[mine])["policy"]
        assert torch.equal(alone.forward(obs, slot)["policy"][mine], only)


def test_what_differs_is_named() -> None:
    rules, obs = observed("tic_tac_toe", 4)
    config = NetConfig(hidden=(32, 32))
    grouped = GroupedNet(rules, config, 2)
    state = make_net(rules, config).state_dict()
    other = make_net(rules, NetConfig(hidden=(32, 16))).state_dict()
    deeper = make_net(rules, NetConfig(hidden=(32, 32, 32))).state_dict()
    with pytest.raises(ConfigError, match=r"towers\.0\.0\.weight has shape \(16, 32\)"):
        grouped.load(1, other)
    with pytest.raises(ConfigError, match=r"towers\.0\.2\.weight, which is unknown"):
        grouped.load(1, deeper)
    with pytest.raises(ConfigError, match=r"no first\.bias"):
        grouped.load(1, {name: t for name, t in state.items() if name != "first.bias"})
    with pytest.raises(ConfigError, match="slot 3; there are 1 to 2"):
        grouped.load(3, state)
    grouped.load(1, {name: t for name, t in state.items() if not name.startswith("value")})
    for slot in (0, 2, 3, -1):
        with pytest.raises(ConfigError, match=rf"slot {slot}, which holds no network"):
            grouped.forward(obs, np.array([1, 1, slot, 1]))["policy"]
    with pytest.raises(ConfigError, match="4 rows and 2 slots"):
        grouped.forward(obs, np.array([1, 1]))["policy"]
    with pytest.raises(ConfigError, match="0 slots"):
        GroupedNet(rules, config, 0)


def test_making_room_draws_no_random_numbers() -> None:
    rules, _ = observed("tic_tac_toe", 1)
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    GroupedNet(rules, NetConfig(hidden=(16,)), 2)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(
    ("config", "memory", "why"),
    [
        (NetConfig(hidden=(64, 32), norm=True), 0, r"net\.norm has no grouped kernels"),
        (NetConfig(hidden=(64, 30)), 0, r"net\.hidden 64 30 \(no multiples of 8\) has no grouped"),
        (NetConfig(kind="residual", channels=12), 0, r"net\.channels 12 \(no multiple of 8\)"),
        (
            NetConfig(kind="residual", channels=16),
            16,
            "a board with memory behind it has no grouped",
        ),
    ],
)
def test_networks_without_grouped_passes_are_named(
    config: NetConfig, memory: int, why: str
) -> None:
    assert re.search(why, unsupported_reason("grouped", config, memory=memory))
    assert not unsupported_reason("captured", config, memory=memory)
    assert not unsupported_reason(
        "grouped", NetConfig(hidden=(64, 32), activation="silu"), memory=16
    )
    assert "net.normalize has no graphs" in unsupported_reason(
        "captured", NetConfig(normalize=True)
    )
