"""Residual nets: what they see where, what their numbers mean, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from make import played
from sparring import ConfigError, Rules
from sparring.config import NetConfig
from sparring.games import shogi
from sparring.nets.board import board_layout
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.residual import ResidualNet
from sparring.nets.run.flat import FlatTensor
from sparring.store.policies import load_policy, save_policy

OBSERVATIONS = ("COMPACT", "PLANES46")
KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
DROP_PAWN = 20
"""The label of a pawn's drop."""
LOOKS = 3
"""Squares that a net of one block looks away: the stem and two convolutions."""


def make(rules: Rules, *, channels: int = 8, blocks: int = 1) -> ResidualNet:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = make_net(rules, NetConfig(kind="residual", channels=channels, blocks=blocks))
    assert isinstance(net, ResidualNet)
    return net


def stirred(net: ResidualNet) -> ResidualNet:
    """Fill all weights, so that nothing hides behind those that begin at 0."""
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return net


def cleared(net: ResidualNet) -> ResidualNet:
    """Set all weights to 0: blocks then pass on what they get."""
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    return net


def seen(rules: Rules, sfen: str, seat: int = 0) -> Tensor:
    """What a seat sees of a position."""
    state = shogi.load_sfen(sfen, config=rules.config)
    return torch.from_numpy(state.observe_bytes(seat))[None]


def rows(rules: Rules, games: int = 16) -> tuple[np.ndarray, np.ndarray]:
    _, obs, mask = played(rules, games, steps=5, seed=1)
    return obs, mask


def changed_squares(net: ResidualNet, one: Tensor, two: Tensor) -> set[int]:
    """Squares of which any logit differs."""
    with torch.no_grad():
        differ = (net(one)["policy"] != net(two)["policy"]).view(27, 81).any(0)
    return set(differ.nonzero().flatten().tolist())


def around(square: int, distance: int = LOOKS) -> set[int]:
    file, rank = divmod(square, 9)
    return {
        9 * f + r
        for f in range(9)
        for r in range(9)
        if max(abs(f - file), abs(r - rank)) <= distance
    }


@pytest.mark.parametrize(
    ("observation", "planes", "numbers"), [("COMPACT", 28, 19), ("PLANES46", 46, 0)]
)
def test_both_observations_lie_on_the_board(observation: str, planes: int, numbers: int) -> None:
    rules = Rules("shogi", {"observation": observation})
    at = board_layout(rules)
    assert (at.height, at.width, at.planes, at.numbers, at.actions) == (9, 9, planes, numbers, 27)
    assert len(at.divisors) == planes + numbers
    obs, _ = rows(rules)
    heads = make(rules)(torch.from_numpy(obs))
    logits, value = heads["policy"], heads["value"]
    assert logits.shape == (16, 2187)
    assert value.shape == (16,)
    assert logits.dtype == value.dtype == torch.float32


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize(("place", "square"), [("5e", 40), ("2c", 11), ("9h", 79)])
def test_a_piece_changes_what_is_near_it(observation: str, place: str, square: int) -> None:
    rules = Rules("shogi", {"observation": observation})
    net = stirred(make(rules))
    file, rank = int(place[0]), "abcdefghi".index(place[1])
    board = [["."] * 9 for _ in range(9)]
    board[0][4], board[8][4] = "k", "K"
    board[rank][9 - file] = "G"
    lines = "/".join("".join(line) for line in board)
    for run in range(9, 0, -1):
        lines = lines.replace("." * run, str(run))
    sfen = f"{lines} b - 1"
    for seat, here in ((0, square), (1, 80 - square)):
        found = changed_squares(net, seen(rules, KINGS, seat), seen(rules, sfen, seat))
        assert found == around(here)


def test_a_number_changes_all_squares_and_padding_none() -> None:
    rules = Rules("shogi")
    net = stirred(make(rules))
    before = seen(rules, KINGS)
    for at in range(28 * 81, len(rules.features)):
        after = before.clone()
        after[0, at] += 1
        assert changed_squares(net, before, after) == set(range(81)), rules.features[at].name
    padded = before.clone()
    padded[0, len(rules.features) :] = 255
    assert rules.obs_bytes > len(rules.features)
    assert not changed_squares(net, before, padded)


def test_deeper_nets_look_farther() -> None:
    rules = Rules("shogi")
    one, two = seen(rules, KINGS), seen(rules, "4k4/9/9/9/9/9/9/9/G3K4 b - 1")
    square = 9 * 8 + 8
    for blocks in (1, 2, 3):
        net = stirred(make(rules, blocks=blocks))
        assert changed_squares(net, one, two) == around(square, 1 + 2 * blocks)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_the_map_of_a_label_is_in_the_order_of_the_actions(observation: str) -> None:
    """A net made by hand that wants to drop a pawn wherever it has one on the board."""
    rules = Rules("shogi", {"observation": observation})
    net = cleared(make(rules))
    with torch.no_grad():
        net.stem.weight[2, 0, 1, 1] = 1  # the plane of own pawns, each square by itself
        net.policy_head.weight[DROP_PAWN, 2] = 3
        net.policy_bias[7] = 5
        logits = net(seen(rules, shogi.START))["policy"][0]
    assert logits[7] == 5
    logits[7] = 0
    wanted = {f"P*{file}g" for file in range(1, 10)}
    assert {rules.action_name(a) for a in logits.nonzero().flatten().tolist()} == wanted
    assert set(logits[logits != 0].tolist()) == {3.0}


def test_convolutions_move_along_files_and_ranks_and_stop_at_the_edge() -> None:
    rules = Rules("shogi")
    net = cleared(make(rules))
    with torch.no_grad():
        net.policy_head.weight[0, 0] = 1
        for row, column, wanted in (
            (0, 1, [f"{file}g" for file in range(2, 10)]),  # one file on; the ninth falls off
            (1, 0, [f"{file}h" for file in range(1, 10)]),  # one rank down
        ):
            net.stem.weight.zero_()
            net.stem.weight[0, 0, row, column] = 1
            logits = net(seen(rules, shogi.START))["policy"][0]
            found = [rules.action_name(a) for a in logits.nonzero().flatten().tolist()]
            assert sorted(found) == sorted(f"up to {square}" for square in wanted)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_numbers_are_divided_as_the_game_says(observation: str) -> None:
    rules = Rules("shogi", {"observation": observation})
    net = cleared(make(rules))
    position = seen(rules, "4k4/9/9/9/9/9/9/9/4K4 b R6P2b 1")
    with torch.no_grad():
        net.policy_head.weight[0, 0] = 1
        for number, wanted in ((0, 6 / 18), (5, 1 / 2), (7 + 4, 1), (7, 0)):
            if net.numbers is not None:
                net.numbers.weight.zero_()
                net.numbers.weight[0, number] = 1
            else:
                net.stem.weight.zero_()
                net.stem.weight[0, 28 + number, 1, 1] = 1
            logits = net(position)["policy"][0]
            np.testing.assert_allclose(logits[:81], wanted, rtol=1e-6)
            assert not logits[81:].any()


@pytest.mark.parametrize("game", ["shogi", "tic_tac_toe", "connect_four"])
def test_a_fresh_net_has_hardly_an_opinion(game: str) -> None:
    rules = Rules(game)
    obs, mask = rows(rules)
    policy = Policy(rules, make(rules, channels=16, blocks=2))
    shares = policy.probabilities(obs, mask)
    even = mask / mask.sum(1, keepdims=True)
    assert np.abs(shares - even).max() < 0.2 * even.max()
    assert (shares[mask > 0] > 0.7 * even[mask > 0]).all()
    assert not policy.value(obs).any()
    assert policy.net(torch.from_numpy(obs))["policy"].std() > 0


def test_a_new_unit_of_values_changes_no_value() -> None:
    rules = Rules("shogi")
    obs, _ = rows(rules)
    policy = Policy(rules, stirred(make(rules)))
    before = policy.value(obs)
    assert before.std() > 0.01
    policy.net.rescale_value_head(40.0)
    with torch.no_grad():
        inside = policy.net(torch.from_numpy(obs))["value"].numpy()
    np.testing.assert_allclose(40 * inside, before, rtol=1e-4)
    np.testing.assert_allclose(policy.value(obs), before, rtol=1e-4)


def test_tic_tac_toe_has_one_logit_for_each_square() -> None:
    rules = Rules("tic_tac_toe")
    at = board_layout(rules)
    assert (at.planes, at.numbers, at.actions) == (2, 1, 1)
    net = cleared(make(rules))
    obs, _ = rows(rules)
    with torch.no_grad():
        net.stem.weight[0, 1, 1, 1] = 1
        net.policy_head.weight[0, 0] = 1
        np.testing.assert_array_equal(net(torch.from_numpy(obs))["policy"], obs[:, 9:18])
    assert obs[:, 9:18].any()


def test_columns_of_connect_four_have_a_dense_head() -> None:
    """A net made by hand that counts own stones of a column twice, and likes column d."""
    rules = Rules("connect_four")
    at = board_layout(rules)
    assert (at.height, at.width, at.planes, at.numbers, at.actions) == (6, 7, 2, 1, 0)
    net = cleared(make(rules))
    obs, _ = rows(rules)
    with torch.no_grad():
        net.stem.weight[1, 0, 1, 1] = 1  # the plane of own stones, each cell by itself
        net.policy_map.weight[3, 1] = 2
        assert isinstance(net.policy_head, torch.nn.Linear)
        by_cell = net.policy_head.weight.view(7, 6, 7, 8)  # [action, row, column, map]
        for column in range(7):
            by_cell[column, :, column, 3] = 1
        net.policy_head.bias[3] = 5
        logits = net(torch.from_numpy(obs))["policy"]
    wanted = 2.0 * obs[:, :42].reshape(-1, 6, 7).sum(1)
    wanted[:, 3] += 5
    np.testing.assert_array_equal(logits, wanted)
    assert obs[:, :42].any()


@pytest.mark.parametrize(
    ("game", "net", "message"),
    [
        (
            "skull_king",
            {},
            "needs a game with a board; skull_king has none: use --net.kind mlp",
        ),
        ("laser_hockey", {}, "needs a game with a board"),
        ("shogi", {"channels": 0}, "net.channels 0 must be from 1 to 1024"),
        ("shogi", {"blocks": -1}, "net.blocks -1 must be from 1 to 128"),
        ("shogi", {"kind": "residul"}, "did you mean 'residual'"),
    ],
)
def test_what_cannot_be_built_is_refused(game: str, net: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_net(Rules(game), NetConfig(**{"kind": "residual", **net}))


def test_a_policy_survives_its_folder(tmp_path: Path) -> None:
    rules = Rules("shogi", {"observation": "PLANES46"})
    obs, mask = rows(rules)
    policy = Policy(rules, stirred(make(rules, blocks=2)))
    policy.net.rescale_value_head(3.0)
    again = load_policy(save_policy(policy, tmp_path / "mine"))
    assert again.net.config == policy.net.config
    np.testing.assert_array_equal(policy.probabilities(obs, mask), again.probabilities(obs, mask))
    np.testing.assert_array_equal(policy.value(obs), again.value(obs))
    assert policy.value(obs).std() > 0


@pytest.mark.parametrize(
    ("theirs", "axes", "shape"),
    [
        ((8, 5, 3, 3), (0, 2, 3, 1), (8, 3, 3, 16)),
        ((27, 8, 1, 1), (1, 0), (8, 32)),
        ((8, 19), (1, 0), (24, 8)),
        ((5,), (0,), (8,)),
    ],
)
def test_a_tensor_comes_back_from_its_spot(
    theirs: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    spot = FlatTensor("some", 64, shape, axes, theirs)
    given = torch.randn(theirs, generator=torch.Generator().manual_seed(0))
    flat = torch.full((64 + spot.size + 32,), torch.nan)
    flat[64 : 64 + spot.size] = 0
    spot.write(flat, given)
    assert torch.equal(spot.read(flat), given)
    assert flat[:64].isnan().all()
    assert flat[64 + spot.size :].isnan().all()
    # The first axis of the network's tensor is where the layout says, the rest of it is 0.
    inside = flat[64 : 64 + spot.size].view(shape)
    one = inside.select(axes.index(0), 1)
    assert torch.equal(one[one != 0].sort().values, given[1].flatten().sort().values)
    assert int((inside != 0).sum()) == given.numel()
