"""Frozen networks that answer together on a GPU say what each of them says alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import sparring
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.frozen.gpu import GroupedFlat, GroupedPass
from sparring.nets.frozen.tiles import make_grouped
from sparring.nets.heads import head_width
from sparring.nets.make import make_net
from sparring.nets.net import Net

DEVICE = torch.device("cuda")
NETS = {
    "relu": ("skull_king", NetConfig(hidden=(64, 32))),
    "tanh, two trunks": ("skull_king", NetConfig(hidden=(72, 40), shared=False, activation="tanh")),
    "silu, one layer": ("tic_tac_toe", NetConfig(hidden=(96,), activation="silu")),
    "continuous": ("duel", NetConfig(hidden=(64, 32))),
    "residual": ("shogi", NetConfig(kind="residual", channels=16, blocks=2)),
    "dense policy": ("connect_four", NetConfig(kind="residual", channels=16, blocks=2)),
    # Run as they are.
    "layer norm": ("skull_king", NetConfig(hidden=(64, 30), norm=True)),
    "odd channels": ("shogi", NetConfig(kind="residual", channels=12, blocks=1)),
    # Somebody's own: a perceptron, and others.
    "own": ("skull_king", NetConfig(kind="own_nets:Plain", set=("width=64",))),
    "own, not recognized": ("skull_king", NetConfig(kind="own_nets:Clamped", set=("width=64",))),
    "own, blocks": ("kuhhandel", NetConfig(kind="own_nets:Blocks")),
    "own, bytes": ("tic_tac_toe", NetConfig(kind="own_nets:Bytes")),
    "attention": ("skull_king", NetConfig(kind="attention", token_width=16)),
}
CLOSE = {False: 1e-5, True: 1e-2}
"""Of the largest number, in float32 and in bf16."""
FARTHER = {"attention": 10}
"""Times as far, where more layers round."""


@dataclass
class Case:
    flat: GroupedFlat
    nets: list[Net]
    """By group."""
    obs: torch.Tensor
    at: GroupedPass

    def run(self, policy: np.ndarray) -> None:
        self.at.sort(torch.from_numpy(policy).to(DEVICE), self.at.rows_each)
        self.at.read(self.obs.to(DEVICE))
        self.at.forward()

    def groups(self, policy: np.ndarray) -> np.ndarray:
        slots = self.flat.slots
        group = np.arange(len(policy)) // self.at.rows_each * slots + policy - 1
        return np.where((policy >= 1) & (policy <= slots), group, -1)

    @torch.no_grad()
    def check(self, policy: np.ndarray, *, close: float) -> None:
        width, group = head_width(self.flat.rules), self.groups(policy)
        position, logits = self.at.position.cpu().long(), self.at.logits.cpu()
        biases = self.flat.policy_bias.cpu()
        assert (position.numpy()[group < 0] == -1).all()
        for number in np.unique(group[group >= 0]):
            rows = torch.from_numpy(np.flatnonzero(group == number))
            said = (logits[position[rows]] + biases[number])[:, :width]
            alone = self.nets[number](self.obs[rows])["policy"]
            largest = max(1.0, float(alone.abs().max()))
            torch.testing.assert_close(said, alone, atol=close * largest, rtol=0)


def case(
    net: str, *, members: int = 2, slots: int = 5, rows_each: int = 150, bf16: bool = False
) -> Case:
    game, config = NETS[net]
    pool = sparring.Pool(game, 200, seed=3, threads=1)
    pool.reset()
    for _ in range(20):
        pool.step(pool.sample_actions())
    rows = np.random.default_rng(2).integers(0, 200, members * rows_each)
    obs = torch.from_numpy(pool.batch().obs[rows].copy())
    flat = make_grouped(pool.rules, config, members, slots, bf16=bf16, device=DEVICE)
    torch.manual_seed(7)
    nets = [make_net(pool.rules, config) for _ in range(members * slots)]
    for group, one in enumerate(nets):
        for parameter in one.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        flat.load(group // slots, group % slots + 1, one.state_dict())
    return Case(flat, nets, obs, flat.make_pass(members * rows_each))


def shares(rows: int, slots: int, seed: int = 1) -> list[np.ndarray]:
    """Uneven ones without slot 2, nobody, everybody in one slot, strangers among them."""
    rng = np.random.default_rng(seed)
    uneven = np.minimum(rng.geometric(0.4, rows) - 1, slots)
    uneven[uneven == 2] = 0
    mixed = rng.integers(-1, slots + 3, rows)
    found = [uneven, np.zeros(rows), np.full(rows, slots), mixed]
    return [policy.astype(np.int16) for policy in found]


@pytest.mark.parametrize(
    ("members", "slots", "rows_each"), [(1, 1, 7), (1, 64, 5000), (3, 255, 1025), (2, 3, 2048)]
)
def test_rows_are_sorted_by_network_and_keep_their_order(
    members: int, slots: int, rows_each: int
) -> None:
    config = NetConfig(hidden=(8,))
    rules = sparring.Rules("tic_tac_toe")
    flat = make_grouped(rules, config, members, slots, bf16=False, device=DEVICE)
    at, rows = flat.make_pass(members * rows_each), members * rows_each
    for policy in shares(rows, slots):
        at.sort(torch.from_numpy(policy).to(DEVICE), rows_each)
        ours = (policy >= 1) & (policy <= slots)
        group = np.arange(rows) // rows_each * slots + policy - 1
        order = np.flatnonzero(ours)[np.argsort(group[ours], kind="stable")]
        behind = np.full(rows - len(order), -1)
        position = np.full(rows, -1)
        position[order] = np.arange(len(order))
        ends = np.cumsum(np.bincount(group[ours], minlength=members * slots))
        np.testing.assert_array_equal(at.order.cpu(), np.concatenate([order, behind]))
        np.testing.assert_array_equal(at.group_of.cpu(), np.concatenate([group[order], behind]))
        np.testing.assert_array_equal(at.position.cpu(), position)
        np.testing.assert_array_equal(at.ends.cpu(), ends)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("net", NETS)
def test_process_group_as_alone(net: str, bf16: bool) -> None:
    made = case(net, rows_each=40 if net == "residual" else 150, bf16=bf16)
    for policy in shares(made.at.rows, made.flat.slots):
        made.run(policy)
        made.check(policy, close=CLOSE[bf16] * FARTHER.get(net, 1))


def test_our_products_say_what_the_librarys_say() -> None:
    made = case("relu", bf16=True)
    if not made.flat.uses_library:
        pytest.skip("needs a GPU with the library's grouped products")
    made.flat.uses_library = False
    made.at = made.flat.make_pass(made.at.rows)
    for policy in shares(made.at.rows, made.flat.slots):
        made.run(policy)
        made.check(policy, close=CLOSE[True])


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("net", ["relu", "residual", "dense policy", "attention"])
def test_a_graph_follows_other_rows_and_other_networks(net: str, bf16: bool) -> None:
    made = case(net, rows_each=40, bf16=bf16)
    rows, slots = made.at.rows, made.flat.slots
    first, *others = shares(rows, slots)
    policy, obs = torch.from_numpy(first).to(DEVICE), made.obs.to(DEVICE)

    def work() -> None:
        made.at.sort(policy, made.at.rows_each)
        made.at.read(obs)
        made.at.forward()

    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    made.obs = made.obs.flip(0)
    obs.copy_(made.obs)
    made.nets[0], made.nets[slots] = made.nets[slots], made.nets[0]
    made.flat.load(0, 1, made.nets[0].state_dict())
    made.flat.load(1, 1, made.nets[slots].state_dict())
    for other in (first, *others):
        policy.copy_(torch.from_numpy(other))
        graph.replay()
        made.check(other, close=CLOSE[bf16] * FARTHER.get(net, 1))


def test_memory_is_read_behind_the_observation() -> None:
    rules, config = sparring.Rules("tic_tac_toe"), NetConfig(hidden=(32, 32))
    flat = make_grouped(rules, config, 1, 2, bf16=False, device=DEVICE, memory=32)
    net = make_net(rules, config, memory=32)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    flat.load(0, 2, net.state_dict())
    obs = torch.randint(0, 3, (40, rules.obs_bytes + 32), dtype=torch.uint8)
    obs[:, rules.obs_bytes :] = torch.randn(40, 8).view(torch.uint8)
    at = flat.make_pass(40)
    at.sort(torch.full((40,), 2, dtype=torch.int16, device=DEVICE), 40)
    at.read(obs.to(DEVICE))
    at.forward()
    said = (at.logits + flat.policy_bias[1])[:, : rules.actions].cpu()
    torch.testing.assert_close(said, net(obs)["policy"].detach(), atol=1e-5, rtol=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    rules, config = sparring.Rules("tic_tac_toe"), NetConfig(hidden=(32,))
    flat = make_grouped(rules, config, 2, 3, bf16=False, device=DEVICE)
    other = make_net(rules, NetConfig(hidden=(16,))).state_dict()
    with pytest.raises(ConfigError, match=r"first\.weight has shape"):
        flat.load(0, 1, other)
    with pytest.raises(ConfigError, match="slot 4; there are 1 to 3"):
        flat.load(0, 4, make_net(rules, config).state_dict())
    with pytest.raises(ConfigError, match="7 rows for 2 members"):
        flat.make_pass(7)
    with pytest.raises(ConfigError, match="this pass is for 8, 4 of each"):
        flat.make_pass(8).sort(torch.zeros(6, dtype=torch.int16, device=DEVICE), 3)
    with pytest.raises(ConfigError, match="256 slots; a GPU takes 1 to 255"):
        make_grouped(rules, config, 1, 256, bf16=False, device=DEVICE)
