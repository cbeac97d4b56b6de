"""Weights go from one network to another by what they stand for, and what is kept is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.transfer import FRESH, IDENTITY, PART, WHOLE, Transfer, transfer_weights

SMALL = NetConfig(hidden=(16, 12))
BOARD = NetConfig(kind="residual", channels=8, blocks=1)


def trained_like(rules: Rules, config: NetConfig, **options: Any) -> Net:
    """A network whose numbers are as large as those of one that has learned something."""
    torch.manual_seed(1)
    net = make_net(rules, config, **options)
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
        for name, scale in net.named_buffers():
            if name.endswith("value_scale"):
                scale.fill_(3.0)
    return net


def begun_with(
    rules: Rules, config: NetConfig, theirs: Net, **options: Any
) -> tuple[Net, Transfer]:
    torch.manual_seed(2)
    net = make_net(rules, config, **options)
    found = transfer_weights("init: x", net, theirs, net.state_dict())
    net.load_state_dict(found.tensors)
    return net, found


def rows_of(rules: Rules, rows: int = 16) -> Tensor:
    by = torch.Generator().manual_seed(3)
    return torch.randint(0, 2, (rows, rules.obs_bytes), generator=by, dtype=torch.uint8)


def check_same_words(rules: Rules, mine: Net, theirs: Net) -> None:
    obs = rows_of(rules)
    with torch.no_grad():
        here, there = mine(obs), theirs(obs)
        torch.testing.assert_close(here[POLICY], there[POLICY], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(mine.unscaled_values(here), theirs.unscaled_values(there))


@pytest.mark.parametrize(
    ("game", "before", "after"),
    [
        ("skull_king", SMALL, replace(SMALL, hidden=(40, 24))),
        ("skull_king", SMALL, replace(SMALL, hidden=(16, 12, 12))),
        ("skull_king", SMALL, replace(SMALL, hidden=(24, 16, 20, 12))),
        ("skull_king", SMALL, replace(SMALL, hidden=(24, 24), shared=False)),
        ("skull_king", SMALL, replace(SMALL, policy_hidden=(14,), value_hidden=(12, 16))),
        ("skull_king", replace(SMALL, value_hidden=(6,)), replace(SMALL, value_hidden=(8, 7))),
        ("skull_king", SMALL, SMALL),
        (
            "laser_hockey",
            replace(SMALL, activation="tanh"),
            NetConfig(hidden=(20, 20), activation="tanh"),
        ),
        ("tic_tac_toe", replace(SMALL, shared=False), NetConfig(hidden=(20, 20), shared=False)),
        ("shogi", BOARD, replace(BOARD, channels=12, blocks=3)),
        ("connect_four", BOARD, replace(BOARD, channels=12, blocks=2)),
    ],
)
def test_a_larger_network_says_the_same_as_before(
    game: str, before: NetConfig, after: NetConfig
) -> None:
    rules = Rules(game)
    theirs = trained_like(rules, before)
    mine, found = begun_with(rules, after, theirs)
    check_same_words(rules, mine, theirs)
    assert not found.left
    if before == after:
        assert found.line() == f"kept all {len(found.kept)} tensors, {found.numbers[1]:,} numbers"
    with torch.no_grad():  # new units are no dead ones: what they give is not 0
        assert not torch.equal(
            mine(rows_of(rules))[POLICY], make_net(rules, after)(rows_of(rules))[POLICY]
        )


def test_new_units_learn() -> None:
    rules = Rules("tic_tac_toe")
    mine, _ = begun_with(rules, replace(SMALL, hidden=(20, 16)), trained_like(rules, SMALL))
    before = {name: weight.clone() for name, weight in mine.state_dict().items()}
    optimizer = torch.optim.SGD(mine.parameters(), lr=0.1)
    for _ in range(2):
        heads = mine(rows_of(rules))
        optimizer.zero_grad()
        (heads[POLICY].square().mean() + (heads[VALUE] - 1).square().mean()).backward()
        optimizer.step()
    assert (mine.state_dict()["towers.0.0.weight"][:12, 16:] != 0).any(), "they were 0"
    changed = mine.state_dict()["first.weight"][:, 16:] != before["first.weight"][:, 16:]
    assert changed.any()


def test_features_and_actions_are_known_by_their_names() -> None:
    three, five = (Rules("skull_king", {"num_players": count}) for count in (3, 5))
    theirs = trained_like(three, SMALL)
    mine, found = begun_with(five, SMALL, theirs)
    here = {feature.name: at for at, feature in enumerate(five.features)}
    there = {feature.name: at for at, feature in enumerate(three.features)}
    ours, old = mine.state_dict()["first.weight"], theirs.state_dict()["first.weight"]
    common = here.keys() & there.keys()
    assert 0 < len(common) < len(here)
    assert all(torch.equal(ours[here[name]], old[there[name]]) for name in common)
    assert all((ours[here[name]] == 0).all() for name in here.keys() - common)
    assert f"first.weight in part ({len(common)} of {len(here)} rows)" in found.line()


def test_a_smaller_network_takes_the_corner() -> None:
    rules = Rules("tic_tac_toe")
    theirs = trained_like(rules, SMALL)
    mine, found = begun_with(rules, replace(SMALL, hidden=(8,)), theirs)
    assert torch.equal(
        mine.state_dict()["first.weight"], theirs.state_dict()["first.weight"][:, :8]
    )
    assert "first.weight in part (8 of 16 columns there)" in found.line()
    assert "fresh: value_scale, policy_head.weight, policy_head.bias and 2 more" in found.line(), (
        "they would read another layer"
    )
    assert found.line().endswith(
        "left out: value_scale, towers.0.0.weight, towers.0.0.bias and 4 more"
    )


def test_towers_that_become_one_lose_the_value_and_its_unit() -> None:
    rules = Rules("tic_tac_toe")
    theirs = trained_like(rules, replace(SMALL, shared=False))
    mine, found = begun_with(rules, SMALL, theirs)
    obs = rows_of(rules)
    torch.testing.assert_close(mine(obs)[POLICY], theirs(obs)[POLICY])
    assert mine.value_scale == 1
    assert (mine(obs)[VALUE] == 0).all()
    fresh = [one.name for one in found.kept if one.how == FRESH]
    assert fresh == ["value_scale", "value_head.weight", "value_head.bias"]


def test_networks_by_role_grow_too() -> None:
    rules = Rules("skull_king")
    theirs = trained_like(rules, SMALL, roles=dict.fromkeys(rules.roles, SMALL))
    larger = dict.fromkeys(rules.roles, replace(SMALL, hidden=(20, 20)))
    mine, found = begun_with(rules, SMALL, theirs, roles=larger)
    check_same_words(rules, mine, theirs)
    assert {one.how for one in found.kept} == {WHOLE, PART}


def test_what_was_kept_is_told_in_plain_values() -> None:
    rules = Rules("tic_tac_toe")
    _, found = begun_with(rules, replace(SMALL, hidden=(16, 12, 12)), trained_like(rules, SMALL))
    told = found.record()
    assert told["changed"]["towers.0.2.weight"] == {"shape": [12, 12], "how": IDENTITY, "kept": 0}
    assert told["kept"] == told["numbers"] - 12 * 12 - 12
    assert told["summary"] == found.line()


def test_networks_without_anything_in_common_are_refused() -> None:
    rules = Rules("shogi")
    theirs = trained_like(rules, SMALL)
    with pytest.raises(
        ConfigError, match="init: x holds another network, of which nothing"
    ) as said:
        begun_with(rules, BOARD, theirs)
    assert "\n" not in str(said.value)
    with pytest.raises(ConfigError, match="of which nothing fits"):
        begun_with(rules, NetConfig(kind="own_nets:Plain"), theirs)


def test_a_module_of_somebody_s_own_brings_its_unit_along() -> None:
    rules, own = Rules("tic_tac_toe"), NetConfig(kind="own_nets:Plain")
    mine, found = begun_with(rules, own, trained_like(rules, own))
    assert mine.value_scale == 3
    assert found.line().startswith("kept all ")


def test_memory_and_attention_take_what_they_have_in_common() -> None:
    rules = Rules("skull_king")
    gru = replace(SMALL, memory="gru", memory_width=8)
    mine, found = begun_with(rules, gru, trained_like(rules, SMALL))
    assert [one.name for one in found.kept if one.kept] == ["first.weight", "first.bias"]
    memory = torch.rand(16, 8)
    wider = replace(gru, hidden=(20, 16), memory_width=12)
    theirs = trained_like(rules, gru)
    mine, found = begun_with(rules, wider, theirs)
    rows, empty = rows_of(rules), torch.zeros(16, 4)
    old = torch.cat((rows, memory.view(torch.uint8)), 1)
    new = torch.cat((rows, torch.cat((memory, empty), 1).view(torch.uint8)), 1)
    with torch.no_grad():
        here, there = mine(new), theirs(old)
    torch.testing.assert_close(here[POLICY], there[POLICY], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(here["memory"][:, :8], there["memory"])
    attention = NetConfig(kind="attention", token_width=16, token_layers=1)
    three, five = (Rules("skull_king", {"num_players": count}) for count in (3, 5))
    theirs = trained_like(three, attention)
    mine, found = begun_with(five, attention, theirs)
    assert not found.left
    assert torch.equal(
        mine.state_dict()["policy_head.weight"], theirs.state_dict()["policy_head.weight"]
    )
    mine, found = begun_with(five, replace(attention, token_width=32, token_heads=8), theirs)
    ours, old_look = (net.state_dict()["encoder.0.look.weight"] for net in (mine, theirs))
    assert torch.equal(ours[32 : 32 + 16, :16], old_look[16:32]), "keys lie behind queries"


def test_units_come_with_their_heads_and_settings_stay_those_of_the_run() -> None:
    rules = Rules("tic_tac_toe")
    heads = {POLICY: 9, VALUE: 1, "wdl": 3, "score": 1}
    theirs = trained_like(rules, SMALL, heads=heads)
    theirs.wdl_unit.fill_(2.0)
    theirs.score_scale.fill_(5.0)
    theirs.wdl_blend.fill_(0.9)
    torch.manual_seed(2)
    mine = make_net(rules, SMALL, heads=heads)
    mine.wdl_blend.fill_(0.25)
    found = transfer_weights("init: x", mine, theirs, mine.state_dict())
    numbers = [float(found.tensors[name]) for name in ("wdl_unit", "score_scale", "wdl_blend")]
    assert numbers == [2.0, 5.0, 0.25]
    _, found = begun_with(rules, SMALL, theirs, heads={POLICY: 9, VALUE: 1, "hidden": 4})
    assert [one.name for one in found.kept if one.how == FRESH] == [
        *("hidden_head.weight", "hidden_head.bias")
    ]
