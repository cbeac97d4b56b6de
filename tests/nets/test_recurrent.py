"""Networks that remember: what they write, and that decisions in a row are single ones repeated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.frozen.cpu import GroupedNet
from sparring.nets.heads import MEMORY, POLICY, VALUE
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.net import HeadOutputs, Net
from sparring.nets.recurrent import RecurrentNet
from sparring.nets.run.native import NativeNet
from sparring.pools import Pool

GRU = NetConfig(hidden=(24, 16), memory="gru", memory_width=6)
STACK = NetConfig(hidden=(24, 16), memory="stack", frames=3)


def make(rules: Rules, config: NetConfig, seed: int = 0) -> Net:
    """A network whose heads say something."""
    torch.manual_seed(seed)
    net = make_net(rules, config)
    for head in (POLICY, VALUE):
        nn.init.normal_(net.get_submodule(f"{head}_head").weight)  # type: ignore[arg-type]
    return net


def recurrent(rules: Rules, config: NetConfig = GRU, seed: int = 0) -> RecurrentNet:
    net = make(rules, config, seed)
    assert isinstance(net, RecurrentNet)
    return net


def rows_of(rules: Rules, count: int, memory: int) -> Tensor:
    """Observations of random play, with random memory behind them."""
    pool = Pool(rules, count, seed=3, memory=memory)
    pool.reset()
    for _ in range(3):
        pool.step(pool.sample_actions())
    obs = pool.batch().obs[:count].copy()
    numbers = np.random.default_rng(0).normal(size=(count, memory // 4)).astype(np.float32)
    obs[:, rules.obs_bytes :] = numbers.view(np.uint8)
    return torch.from_numpy(obs)


def remember(net: Net, rows: Tensor, heads: HeadOutputs) -> Tensor:
    """The same rows with what the network remembers of them."""
    held = net.next_memory(rows, heads)
    assert held is not None and held.dtype == torch.float32
    shown = rows[:, : net.inputs.rules.obs_bytes]
    return torch.cat((shown, held.detach().contiguous().view(torch.uint8)), 1)


@pytest.mark.parametrize("game", ["signal", "cage2", "laser_hockey_discrete", "kuhn_poker"])
def test_a_stack_holds_what_was_seen_before_in_the_order_of_the_features(game: str) -> None:
    rules = Rules(game)
    net = make(rules, STACK)
    size = net.inputs.memory
    pool = Pool(rules, 5, seed=1, memory=size)
    pool.reset()
    obs = torch.from_numpy(pool.batch().obs[:5].copy())
    seen: list[list[list[float]]] = [[] for _ in obs]
    for _ in range(4):
        for row, line in enumerate(obs.numpy()):
            numbers = [
                float(
                    np.float32(
                        line[f.offset :].copy()[: np.dtype(f.dtype).itemsize].view(f.dtype)[0]
                    )
                )
                / f.divisor
                for f in rules.features
            ]
            seen[row].insert(0, numbers)
        obs = remember(net, obs, {})
        held = obs[:, rules.obs_bytes :].contiguous().view(torch.float32)
        for row, frames in enumerate(seen):
            told = [number for frame in frames[:2] for number in frame]
            expected = np.zeros(size // 4)
            expected[: len(told)] = told
            np.testing.assert_allclose(held[row], expected, rtol=1e-6)
        pool.step(pool.sample_actions())  # other observations, the memory goes along
        obs[:, : rules.obs_bytes] = torch.from_numpy(pool.batch().obs[:5, : rules.obs_bytes])


def test_a_state_is_that_of_torchs_cell_and_is_written_in_full_precision() -> None:
    rules = Rules("kuhn_poker")
    net = recurrent(rules)
    assert net.inputs.memory == 32 == memory_bytes_of(rules, GRU)  # 6 numbers in steps of 16 bytes
    obs = rows_of(rules, 7, 32)
    before = obs[:, rules.obs_bytes :].contiguous().view(torch.float32)[:, :6]
    after = net.cell(net.trunk(net.first(obs)), before)
    heads = net(obs)
    torch.testing.assert_close(heads[MEMORY][:, :6], after)
    assert not heads[MEMORY][:, 6:].any()
    torch.testing.assert_close(heads[POLICY], net.get_submodule("policy_head")(after))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = net(obs)
    assert rounded[MEMORY].dtype == torch.float32
    torch.testing.assert_close(rounded[MEMORY], heads[MEMORY], atol=0.02, rtol=0.02)


def test_a_fresh_seat_has_no_state_and_two_twins_say_the_same() -> None:
    rules = Rules("signal")
    net = recurrent(rules)
    obs = rows_of(rules, 4, net.inputs.memory)
    obs[:, rules.obs_bytes :] = 0
    cell = net.cell(net.trunk(net.first(obs)))
    torch.testing.assert_close(net(obs)[MEMORY][:, :6], cell)
    assert torch.equal(net.cpu_copy()(obs)[POLICY], net(obs)[POLICY])
    described = net.describe()
    again = make_net(rules, NetConfig(**described["net"]), memory=described["memory"])
    again.load_state_dict(net.state_dict())
    assert torch.equal(again(obs)[VALUE], net(obs)[VALUE])


def test_decisions_in_a_row_are_single_ones_repeated() -> None:
    """Against a loop over segments and steps that hands every state on; gradients too."""
    rules = Rules("skull_king", {"rounds": [2]})
    net = recurrent(rules)
    segments, steps = 3, 5
    obs = rows_of(rules, segments * steps, net.inputs.memory).view(segments, steps, -1)
    fresh = torch.zeros(segments, steps, dtype=torch.bool)
    fresh[1, 2] = fresh[2, 4] = True
    lots = torch.randn(segments * steps, 1)
    said = net.unroll(obs, fresh)
    grad = torch.autograd.grad(weighed(said, lots), list(net.parameters()))
    told: list[HeadOutputs] = []
    for segment in range(segments):
        state = torch.zeros(1, 6)
        for step in range(steps):
            row = obs[segment, step : step + 1]
            if step == 0 or fresh[segment, step]:
                state = row[:, rules.obs_bytes :].contiguous().view(torch.float32)[:, :6]
            state = net.cell(net.trunk(net.first(row)), state)
            policy, value = (net.get_submodule(f"{name}_head") for name in (POLICY, VALUE))
            told.append({POLICY: policy(state), VALUE: value(state).squeeze(1), MEMORY: state})
    expected = {name: torch.cat([one[name] for one in told]) for name in said}
    for name, one in expected.items():
        torch.testing.assert_close(said[name][..., : one.shape[-1]], one, atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(
        grad, torch.autograd.grad(weighed(expected, lots), list(net.parameters())), strict=True
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_rounded_products_have_nearly_the_same_gradients() -> None:
    rules = Rules("signal")
    net = recurrent(rules)
    obs = rows_of(rules, 12, net.inputs.memory).view(3, 4, -1)
    fresh, lots = torch.zeros(3, 4, dtype=torch.bool), torch.randn(12, 1)
    found = []
    for rounds in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=rounds):
            said = net.unroll(obs, fresh)
        assert said[MEMORY].dtype == torch.float32
        found.append(torch.autograd.grad(weighed(said, lots), list(net.parameters())))
    for name, exact, rounded in zip(dict(net.named_parameters()), *found, strict=True):
        assert rounded.dtype == torch.float32
        assert float((exact - rounded).norm() / exact.norm().clamp(min=1e-6)) < 0.05, name


def weighed(heads: HeadOutputs, lots: Tensor) -> Tensor:
    return (heads[POLICY] * lots).sum() + (heads[VALUE] * lots.squeeze(1)).sum()


@pytest.mark.parametrize("frames", [2, 4])
def test_native_passes_see_the_stack(frames: int) -> None:
    rules = Rules("cage2")
    net = make(rules, NetConfig(hidden=(24, 16), memory="stack", frames=frames))
    obs = rows_of(rules, 9, net.inputs.memory)
    expected = net(obs)
    (said,) = NativeNet(net, threads=1, arithmetic="float32").forward_heads(obs)
    torch.testing.assert_close(said[POLICY], expected[POLICY], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(said[VALUE], expected[VALUE], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", [GRU, STACK, NetConfig(hidden=(8,), memory="stack", norm=True)])
def test_frozen_networks_remember_what_they_do_alone(config: NetConfig) -> None:
    rules = Rules("tic_tac_toe")
    nets = [make(rules, config, seed) for seed in (1, 2)]
    grouped = GroupedNet(rules, config, 2)
    for slot, net in enumerate(nets, start=1):
        grouped.load(slot, net.state_dict())
    obs = rows_of(rules, 12, nets[0].inputs.memory)
    slot = np.tile([2, 1, 1], 4).astype(np.int16)
    said = grouped.forward(obs, slot)
    for number, net in enumerate(nets, start=1):
        mine = torch.from_numpy(slot == number)
        heads = net(obs[mine])
        torch.testing.assert_close(said[POLICY][mine], heads[POLICY], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(said[MEMORY][mine], net.next_memory(obs[mine], heads))


@pytest.mark.parametrize("game", ["signal", "shogi", "kuhhandel", "skull_king"])
def test_what_is_normalized_is_remembered_normalized(game: str) -> None:
    rules = Rules(game)
    net = make(rules, NetConfig(hidden=(8,), memory="stack", frames=2, normalize=True))
    obs = rows_of(rules, 64, net.inputs.memory)
    net.update_normalizer(obs)
    assert net.normalizer is not None
    held = net.next_memory(obs, {})
    assert held is not None
    assert isinstance(net, Perceptron)
    count = len(rules.features)
    by_bytes, expected = net.normalizer(net.first.widen(obs))[:, :count], torch.zeros(64, count)
    expected[:, net.first._order[:count]] = by_bytes
    torch.testing.assert_close(held[:, :count], expected)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "residual"}, "needs a network with memory, and net.kind residual is not one"),
        ({"shared": False}, "needs one trunk for policy and value, .* set --net.shared"),
        ({"policy_hidden": (8,)}, "net.memory gru and net.policy_hidden 8 do not combine"),
    ],
)
def test_what_has_no_state_says_so(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_net(Rules("shogi"), NetConfig(memory="gru", **changes))  # type: ignore[arg-type]


def test_rows_of_another_size_and_networks_by_role_are_refused() -> None:
    with pytest.raises(ConfigError, match="make the pool with memory=32"):
        make_net(Rules("signal"), GRU, memory=64)
    roles = {"bidder": GRU, "player": GRU}
    with pytest.raises(ConfigError, match=r"memory gru needs .* and hierarchy\.on is not one"):
        make_net(Rules("skull_king"), GRU, roles=roles)
