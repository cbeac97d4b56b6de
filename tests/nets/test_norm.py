"""Layer norm stands in front of every activation, and no faster path leaves it out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sparring
from make import played
from sparring.capabilities.refusals import unsupported_reason
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.make import make_net

CONFIG = NetConfig(hidden=(24, 16, 12), norm=True)


def observed(rows: int = 40) -> tuple[sparring.Rules, torch.Tensor]:
    found = played("skull_king", rows, steps=9)
    return found.rules, found.tensor


def normalized(x: np.ndarray, state: dict[str, np.ndarray], name: str) -> np.ndarray:
    off = x - x.mean(1, keepdims=True)
    spread = np.sqrt((off**2).mean(1, keepdims=True) + 1e-5)
    return off / spread * state[f"{name}.weight"] + state[f"{name}.bias"]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_against_plain_float64(shared: bool, sparse: bool) -> None:
    rules, obs = observed()
    net = make_net(rules, NetConfig(**{**vars(CONFIG), "shared": shared, "sparse": sparse}))
    torch.manual_seed(1)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    with torch.no_grad():
        said = net(obs)
    state = {name: value.double().numpy() for name, value in net.state_dict().items()}
    first = rules.widen(obs.numpy()).astype(np.float64) @ state["first.weight"]
    towers = np.split(first + state["first.bias"], 1 if shared else 2, axis=1)
    ends = []
    for number, part in enumerate(towers):
        hidden = np.maximum(normalized(part, state, f"first_norms.{number}"), 0)
        for at in (0, 3):
            layer = f"towers.{number}.{at}"
            hidden = hidden @ state[f"{layer}.weight"].T + state[f"{layer}.bias"]
            hidden = np.maximum(normalized(hidden, state, f"towers.{number}.{at + 1}"), 0)
        ends.append(hidden)
    for name, end in (("policy", ends[0]), ("value", ends[-1])):
        wanted = end @ state[f"{name}_head.weight"].T + state[f"{name}_head.bias"]
        np.testing.assert_allclose(said[name].reshape(wanted.shape), wanted, atol=1e-4)


def test_a_net_without_it_has_no_such_weights() -> None:
    rules, _ = observed(1)
    names = make_net(rules, NetConfig(hidden=(24, 16, 12))).state_dict()
    assert not [name for name in names if "norm" in name]
    assert "towers.0.2.weight" in names


def test_passes_that_do_not_know_it_say_so() -> None:
    assert unsupported_reason("kernels", CONFIG).startswith("net.norm ")
    rules = sparring.Rules("shogi")
    with pytest.raises(ConfigError, match=r"net\.norm needs a network with layer norm, and"):
        make_net(rules, NetConfig(kind="residual", channels=8, blocks=1, norm=True))
