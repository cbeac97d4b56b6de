"""A module of somebody's own is a network like any other: what it sees, says, and may not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from make import played
from sparring import trusted
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.custom import CustomNet
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy

WRONG = {
    "reads": "reads is 'pixels'; it may be floats, blocks, bytes",
    "making": "cannot be made with inputs, how=making: ValueError: no such width",
    "norm": "its norm is a BatchNorm1d.*use LayerNorm or GroupNorm",
    "raises": "its forward fails for 2 rows of zeros: RuntimeError",
    "random": "its policy differs between two calls",
    "keeps": "its forward changes its buffer seen",
    "frozen": "its layer.weight takes no gradient",
    "narrow": r"its policy of 2 rows is \(2, 8\), need \(rows, 9\)",
    "wide value": r"its value of 2 rows is \(2, 9\), need \(rows\) or \(rows, 1\)",
    "nan": "its value of rows of zeros is not finite",
    "no value": "returns no 'value'; return .policy, value.",
    "alone": "its forward returns a Tensor; return .policy, value., or heads by name",
}


def own(kind: str, *words: str, game: str = "tic_tac_toe", memory: int = 0) -> CustomNet:
    config = NetConfig(kind=f"own_nets:{kind}", set=words)
    net = make_net(Rules(game), config, memory=memory)
    assert isinstance(net, CustomNet)
    return net


def rows_of(game: str, memory: int = 0) -> torch.Tensor:
    return played(game, 16, steps=6, seed=0, memory=memory).tensor


@pytest.mark.parametrize("how", WRONG)
def test_what_cannot_be_trained_is_refused_in_a_line(how: str) -> None:
    with pytest.raises(ConfigError, match=WRONG[how]) as wrong:
        own("Wrong", f"how={how}")
    assert "\n" not in str(wrong.value)


def test_a_class_that_is_no_module_is_refused() -> None:
    trusted.allow("own_nets:Nobody")
    with pytest.raises(ConfigError, match=r"own_nets:NotANetwork is no torch[.]nn[.]Module"):
        own("NotANetwork")
    with pytest.raises(
        ConfigError, match=r"net[.]kind 'own_nets:Nobody': own_nets has no 'Nobody'"
    ):
        own("Nobody")
    with pytest.raises(ConfigError, match=r"net[.]set 'width' is not key=value"):
        own("Plain", "width")
    with pytest.raises(ConfigError, match=r"net[.]set width=8 needs a custom network"):
        make_net(Rules("tic_tac_toe"), NetConfig(set=("width=8",)))


@pytest.mark.parametrize(("game", "memory"), [("skull_king", 0), ("cage2", 32)])
def test_numbers_are_those_of_the_observation(game: str, memory: int) -> None:
    rules, obs = Rules(game), rows_of(game, memory)
    numbers = rules.widen(obs[:, : rules.obs_bytes].numpy())
    shown = own("Plain", game=game, memory=memory).reader(obs)
    assert torch.is_tensor(shown)
    width = len(rules.features)
    assert np.array_equal(shown[:, :width].numpy(), numbers)
    assert shown.shape[1] == width + memory // 4
    blocks = own("Blocks", game=game, memory=memory).reader(obs)
    assert isinstance(blocks, dict)
    for block in rules.blocks:
        part = numbers[:, block.first : block.first + block.rows * len(block.columns)]
        assert np.array_equal(blocks[block.name].flatten(1).numpy(), part)
    assert torch.equal(own("Bytes", game=game, memory=memory).reader(obs), obs)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["Plain", "Towers", "Blocks", "Bytes"])
def test_another_unit_changes_no_value(kind: str) -> None:
    net, obs = own(kind), rows_of("tic_tac_toe")
    before = net(obs)
    assert before["value"].shape == (len(obs),)
    net.rescale_value_head(8.0)
    after = net(obs)
    assert torch.allclose(net.unscaled_values(after), before["value"], rtol=1e-6, atol=1e-7)
    assert torch.allclose(after["value"] * 8, before["value"], rtol=1e-6, atol=1e-7)
    assert torch.equal(after["policy"], before["policy"])


def test_the_last_layer_of_values_is_found_where_it_is_one() -> None:
    layer = ("module.value.weight", "module.value.bias")
    assert own("Plain").value_parameters == own("Towers").value_parameters == layer
    assert own("Blocks").value_parameters == own("Bytes").value_parameters == ()


@pytest.mark.parametrize("kind", ["Plain", "Bytes"])
def test_it_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    net, obs = own(kind, "width=12"), rows_of("tic_tac_toe").numpy()
    net.rescale_value_head(3.0)
    policy = Policy(Rules("tic_tac_toe"), net)
    loaded = load_policy(save_policy(policy, tmp_path / "mine"))
    assert np.array_equal(loaded.probabilities(obs), policy.probabilities(obs))
    assert np.array_equal(loaded.value(obs), policy.value(obs))
    twin = net.cpu_copy()
    assert torch.equal(twin(torch.from_numpy(obs))["policy"], net(torch.from_numpy(obs))["policy"])
