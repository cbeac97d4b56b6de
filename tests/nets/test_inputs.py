"""Networks that see some blocks of the observation, and networks by role."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import sparring
from sparring.config import NetConfig
from sparring.nets.hierarchy import HierarchyNet, RoleDetector
from sparring.nets.inputs import Inputs
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy

SEEN = ("hand", "round", "seat")
ROLES = {
    "manager": NetConfig(hidden=(12,), inputs=(*SEEN, "stage?")),
    "worker": NetConfig(hidden=(20, 10)),
}


def rows_of(rules: sparring.Rules, steps: int = 120) -> np.ndarray:
    pool = sparring.Pool(rules, 8, seed=1, threads=1)
    batch, rows = pool.reset(), []
    for _ in range(steps):
        rows.append(batch.obs.copy())
        batch = pool.step(pool.sample_actions())
    return np.concatenate(rows)


def features_of(rules: sparring.Rules, blocks: tuple[str, ...]) -> list[int]:
    return [i for i, f in enumerate(rules.features) if f.name.split("[")[0].split(".")[0] in blocks]


@pytest.mark.parametrize("sparse", [True, False])
def test_what_is_not_seen_makes_no_difference_and_gets_no_gradient(sparse: bool) -> None:
    rules = sparring.Rules("skull_king")
    net = make_net(rules, NetConfig(hidden=(24,), inputs=SEEN, sparse=sparse))
    obs = torch.from_numpy(rows_of(rules, 4))
    mine = features_of(rules, SEEN)
    hidden = [i for i in range(len(rules.features)) if i not in mine]
    heads = net(obs)
    heads["policy"].square().sum().backward()
    weight = net.get_parameter("first.weight")
    assert len(mine) == 74 + 10 + 18 * 4
    assert not weight[hidden].any()
    assert weight.grad is not None
    assert not weight.grad[hidden].any()
    assert weight.grad[mine].any()
    blind = obs.clone()
    for at in hidden:
        blind[:, list(rules.features[at].bytes)] = 77
    assert torch.equal(net(blind)["policy"], heads["policy"])


def test_seen_features_begin_orthogonal_and_unrestricted_nets_as_ever() -> None:
    rules = sparring.Rules("skull_king")
    torch.manual_seed(3)
    weight = make_net(rules, NetConfig(hidden=(24,), inputs=SEEN)).get_parameter("first.weight")
    product = weight.T @ weight
    assert torch.allclose(product, 2 * torch.eye(24), atol=1e-5)
    torch.manual_seed(3)
    every = tuple(block.name for block in rules.blocks)
    named = make_net(rules, NetConfig(hidden=(24,), inputs=every))
    torch.manual_seed(3)
    plain = make_net(rules, NetConfig(hidden=(24,)))
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, named.state_dict()[name]), name


def test_blocks_that_do_not_exist_are_refused_unless_they_may_be_missing() -> None:
    rules = sparring.Rules("skull_king")
    with pytest.raises(sparring.ConfigError, match="no block 'hnad'; did you mean 'hand'"):
        Inputs(rules, block_names=("hnad",))
    with pytest.raises(sparring.ConfigError, match="none of them"):
        Inputs(rules, block_names=("stage?",))
    staged = rules.changed({"phase_embed": 1})
    assert [b.name for b in Inputs(rules, block_names=("stage?", "hand")).blocks] == ["hand"]
    assert [b.name for b in Inputs(staged, block_names=("stage?", "hand")).blocks] == [
        "hand",
        "stage",
    ]
    with pytest.raises(
        sparring.ConfigError, match=r"net\.inputs own needs a network with selectable inputs"
    ):
        make_net(sparring.Rules("tic_tac_toe"), NetConfig(kind="residual", inputs=("own",)))


@pytest.mark.parametrize(
    ("game", "config"),
    [
        ("skull_king", {}),
        ("skull_king", {"scoring": "RASCAL", "cannonball": 1, "abilities": 1, "num_players": 3}),
        ("kuhhandel", {}),
    ],
)
def test_rows_tell_the_role_that_the_pool_says(game: str, config: dict[str, object]) -> None:
    rules = sparring.Rules(game, config)
    pool = sparring.Pool(rules, 16, seed=2, threads=1)
    batch, role_detector, met = pool.reset(), RoleDetector(rules), set()
    for _ in range(150):
        told = rules.role_of(batch.obs)
        assert np.array_equal(told, batch.role)
        assert np.array_equal(role_detector(torch.from_numpy(batch.obs)).numpy(), told)
        met |= set(told.tolist())
        batch = pool.step(pool.sample_actions())
    assert met == {0, 1}


def test_a_game_whose_rows_do_not_tell_says_so() -> None:
    rules = sparring.Rules("duel")
    assert rules.role_bytes == ()
    with pytest.raises(sparring.ConfigError, match="does not mark roles in observations"):
        rules.role_of(np.zeros((1, rules.obs_bytes), np.uint8))


def opinionated(rules: sparring.Rules) -> HierarchyNet:
    torch.manual_seed(0)
    net = make_net(rules, NetConfig(), roles=ROLES)
    assert isinstance(net, HierarchyNet)
    for at, (_, one) in enumerate(net.nets()):
        torch.nn.init.normal_(one.value_head.weight)
        torch.nn.init.normal_(one.get_parameter("policy_head.weight"))
        one.rescale_value_head(10.0**at)
    return net


def test_every_row_is_answered_by_the_network_of_its_role_in_units_of_rewards() -> None:
    rules = sparring.Rules("skull_king")
    net, obs = opinionated(rules), torch.from_numpy(rows_of(rules))
    heads = net(obs)
    values = net.unscaled_values(heads)
    told = rules.role_of(obs.numpy())
    for role, name in enumerate(rules.roles):
        mine = torch.from_numpy(np.flatnonzero(told == role))
        one = net.net_of(name)
        alone = one(obs[mine])
        assert len(mine)
        assert torch.equal(heads["policy"][mine], alone["policy"])
        assert torch.equal(values[mine], alone["value"] * one.value_scale)
        only: dict[str, Tensor] = net(obs[mine])
        assert torch.equal(only["policy"], alone["policy"])
    assert net(obs[:0])["policy"].shape == (0, rules.actions)


def test_a_saved_hierarchy_is_the_same_policy(tmp_path: Path) -> None:
    rules = sparring.Rules("skull_king")
    policy = Policy(rules, opinionated(rules))
    obs = rows_of(rules, 30)
    again = load_policy(save_policy(policy, tmp_path / "policy"))
    assert np.array_equal(policy.value(obs), again.value(obs))
    assert np.array_equal(policy.probabilities(obs), again.probabilities(obs))
    assert isinstance(again.net, HierarchyNet)
    assert again.net.net_of("manager").config == replace(ROLES["manager"])
    twin = policy.net.cpu_copy()
    with torch.no_grad():
        policy.net.get_parameter("roles.worker.policy_head.bias").add_(1.0)
    assert np.array_equal(Policy(rules, twin).probabilities(obs), again.probabilities(obs))
