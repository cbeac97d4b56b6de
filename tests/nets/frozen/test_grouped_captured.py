"""Frozen networks of any kind say together what each of them says alone; shapes never change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from make import nets
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.frozen.tiles import FrozenNets, TiledNets, Tiles
from sparring.nets.make import make_net
from sparring.pools import Pool

CPU = torch.device("cpu")
NETS = {
    "layer norm": ("skull_king", NetConfig(hidden=(16, 8), norm=True, sparse=False)),
    **nets("residual, odd channels", "own", "own, blocks", "own, a table"),
}
GROUPS, ROWS = 5, 70


def sorted_by(policy: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """The row at every place, -1 behind the last; and the place behind every group's last row."""
    order = np.full(len(policy), -1, np.int32)
    ours = np.flatnonzero(policy >= 0)
    order[: len(ours)] = ours[np.argsort(policy[ours], kind="stable")]
    counts = np.bincount(policy[ours], minlength=GROUPS)
    return torch.from_numpy(order), torch.from_numpy(counts.cumsum().astype(np.int32))


def drawn(how: str) -> np.ndarray:
    """The group of every row, -1 for somebody else's."""
    policy = np.random.default_rng(1).integers(-1, GROUPS, ROWS)
    if how == "nobody":
        policy[:] = -1
    if how == "all of one":
        policy[:] = 3
    if how == "one each":
        policy[:] = -1
        policy[7 : 7 + GROUPS] = np.arange(GROUPS)
    return policy


@pytest.mark.parametrize("each", [1, 4])
@pytest.mark.parametrize("how", ["mixed", "nobody", "all of one", "one each"])
def test_every_row_is_in_one_tile_of_its_network(how: str, each: int) -> None:
    policy = drawn(how)
    order, ends = sorted_by(policy)
    tiles = Tiles(ROWS, GROUPS, each, CPU)
    group, place = tiles.cut(ends)
    assert place.shape == (tiles.count, tiles.size)
    held = place < ROWS
    places = place[held]
    assert sorted(places.tolist()) == list(range(int(ends[-1])))
    of_tile = group[:, None].expand_as(place)[held]
    assert np.array_equal(policy[order[places].numpy()], of_tile.numpy())


@pytest.mark.few(3)
@pytest.mark.parametrize("net", NETS)
def test_networks_say_what_each_says_alone(net: str) -> None:
    game, config = NETS[net]
    pool = Pool(game, ROWS, threads=1)
    pool.reset()
    pool.step(pool.sample_actions())
    obs = torch.from_numpy(pool.batch().obs[:ROWS].copy())
    frozen = FrozenNets(Rules(game), config, GROUPS, bf16=False, device=CPU)
    nets = [make_net(Rules(game), config) for _ in range(GROUPS)]
    for group, one in enumerate(nets):
        for parameter in one.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        frozen.load(group, one.state_dict())
    policy = drawn("mixed")
    order, ends = sorted_by(policy)
    together = TiledNets(frozen, len(obs))
    assert bool(together.sequential_reason) == (
        net == "residual, odd channels"
    )  # of which torch cannot do many at once
    apart = TiledNets(frozen, len(obs))
    apart.sequential_reason = "so that they are asked one after the other"
    for tiled in (together, apart):
        place, said = tiled.forward(obs, order, ends)
        mine = place < len(obs)
        rows, logits = order[place[mine]].long(), said["policy"][mine]
        assert len(rows) == (policy >= 0).sum()
        for row, logit in zip(rows.tolist(), logits, strict=True):
            alone = nets[policy[row]](obs[row : row + 1])["policy"][0]
            torch.testing.assert_close(logit, alone, atol=1e-5, rtol=1e-5)
