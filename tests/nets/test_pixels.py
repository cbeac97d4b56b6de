"""Networks over pixels: what plain torch computes, from bytes that stay bytes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from torch import Tensor, nn
from torch.nn import functional

from own_envs import Screen
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.nets.frozen.cpu import GroupedNet
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.pixels import PixelNet
from sparring.nets.policy import Policy
from sparring.pools.custom import CustomRules, pool_of
from sparring.pools.custom.base import CustomBatch, CustomPool
from sparring.store.policies import load_policy, save_policy

SHAPES = [(36, 40), (36, 40, 3), (3, 36, 40), (2, 36, 40, 3), (2, 3, 36, 40)]
"""Gray, colors last, colors first, and frames that an environment stacks itself."""


def net_of(rules: CustomRules, **settings: Any) -> PixelNet:
    """A network whose weights are all unlike 0."""
    net = make_net(rules, NetConfig(**settings))
    assert isinstance(net, PixelNet)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=1 / math.sqrt(max(parameter[0].numel(), 1)))
    return net


def as_channels(pixels: Tensor) -> Tensor:
    """[rows, *shape] as [rows, channels, height, width], axis by axis."""
    shape = pixels.shape[1:]
    if len(shape) == 2:
        return pixels[:, None]
    if shape[-1] < shape[-3]:
        pixels = pixels.movedim(-1, -3)
    return pixels.flatten(1, -3)


def nature(net: PixelNet, x: Tensor) -> Tensor:
    """The network of DQN in plain torch, with a network's weights."""
    weights = dict(net.named_parameters())
    for at, stride in ((0, 4), (2, 2), (4, 1)):
        weight, bias = (weights[f"convolutions.{at}.{name}"] for name in ("weight", "bias"))
        x = functional.relu(functional.conv2d(x, weight, bias, stride=stride))
    return functional.relu(functional.linear(x.flatten(1), net.hidden.weight, net.hidden.bias))


def impala(net: PixelNet, x: Tensor) -> Tensor:
    """IMPALA's small network in plain torch, with a network's weights."""
    weights = dict(net.named_parameters())

    def convolve(name: str, x: Tensor) -> Tensor:
        return functional.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)

    for stage in range(3):
        first = 4 * stage
        x = functional.max_pool2d(convolve(f"convolutions.{first}", x), 3, 2, padding=1)
        for block in (first + 2, first + 3):
            inside = convolve(f"convolutions.{block}.first", functional.relu(x))
            x = x + convolve(f"convolutions.{block}.second", functional.relu(inside))
    x = functional.relu(x).flatten(1)
    return functional.relu(functional.linear(x, net.hidden.weight, net.hidden.bias))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "plain"), [("nature", nature), ("impala", impala)])
def test_it_is_what_plain_torch_computes(kind: str, plain: Any, shape: tuple[int, ...]) -> None:
    rules = pool_of([Screen(*shape)]).rules
    net = net_of(rules, kind=kind)
    pixels = np.random.default_rng(0).integers(0, 256, (5, *shape), np.uint8)
    hidden = plain(net, as_channels(torch.from_numpy(pixels).float() / 255))
    heads = net(torch.from_numpy(rules.pack(pixels.reshape(5, -1))))
    wanted = functional.linear(hidden, net.policy_head.weight, net.policy_head.bias)
    assert torch.allclose(heads["policy"], wanted, atol=1e-5)
    wanted = functional.linear(hidden, net.value_head.weight, net.value_head.bias)
    assert torch.allclose(heads["value"], wanted[:, 0], atol=1e-5)


def test_the_sizes_are_those_of_the_papers() -> None:
    rules = pool_of([Screen(84, 84, 4)]).rules
    sizes = {
        kind: [
            tuple(layer.weight.shape)
            for layer in make_net(rules, NetConfig(kind=kind)).modules()
            if isinstance(layer, nn.Conv2d | nn.Linear)
        ]
        for kind in ("nature", "impala")
    }
    heads = [(3, 512), (1, 512)]
    first = [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 3136)]
    assert sizes["nature"] == [*first, *heads]
    stages = [(16, 4, 3, 3), *4 * [(16, 16, 3, 3)], (32, 16, 3, 3), *4 * [(32, 32, 3, 3)]]
    stages += [(32, 32, 3, 3), *4 * [(32, 32, 3, 3)], (256, 32 * 11 * 11), (3, 256), (1, 256)]
    assert sizes["impala"] == stages


# Stacked frames


def stacks_in(net: PixelNet, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """What the network sees of rows, as bytes [rows, channels, height, width]."""
    return net.planes(torch.from_numpy(rows)).byte().numpy()


def step(pool: CustomPool, net: PixelNet, batch: CustomBatch, action: int) -> CustomBatch:
    """Write the memory as learners do, and step all games."""
    obs = torch.from_numpy(batch.obs.copy())
    after = net.next_memory(obs, {})
    assert after is not None
    pool.memory[:, 0] = after.numpy().view(np.uint8)
    return pool.step(np.full(pool.num_games, action))


@pytest.mark.parametrize("shape", [(36, 40), (10, 12, 3), (3, 10, 12)])
@pytest.mark.parametrize("frames", [2, 4])
def test_stacked_frames_are_those_of_gymnasium(shape: tuple[int, ...], frames: int) -> None:
    """Over ends of all kinds: no frame of the old episode, and the true last observation."""
    games, ends = 3, 0
    config = NetConfig(kind="impala", memory="stack", frames=frames)
    theirs = [
        FrameStackObservation(Screen(*shape), frames, padding_type="zero") for _ in range(games)
    ]
    rules = pool_of([Screen(*shape)]).rules
    pool = pool_of([Screen(*shape) for _ in range(games)], memory=memory_bytes_of(rules, config))
    net = net_of(rules, kind="impala", memory="stack", frames=frames)
    assert net.inputs.row_bytes == pool.row_bytes
    wanted = [env.reset(seed=7 + game)[0] for game, env in enumerate(theirs)]
    batch = pool.reset(7)
    for _ in range(25):
        seen = stacks_in(net, batch.obs)
        for game in range(games):
            there = as_channels(torch.from_numpy(np.array(wanted[game]))[None].flatten(0, 0))
            assert np.array_equal(seen[game], there[0].numpy())
        batch = step(pool, net, batch, 1)
        for game, env in enumerate(theirs):
            wanted[game], _, terminated, truncated, _ = env.step(1)
            if not terminated and not truncated:
                continue
            at = list(batch.final_game).index(game)
            last = as_channels(torch.from_numpy(np.array(wanted[game]))[None])
            assert np.array_equal(stacks_in(net, batch.final_obs[at])[0], last[0].numpy())
            assert (batch.terminated[game], batch.truncated[game]) == (terminated, truncated)
            wanted[game], _ = env.reset()
            ends += 1
    assert ends > 6


def test_frames_stay_bytes() -> None:
    rules = pool_of([Screen(84, 84, 1)]).rules
    assert rules.obs_bytes == 84 * 84
    assert memory_bytes_of(rules, NetConfig(kind="nature", memory="stack", frames=4)) == 3 * 84 * 84


def test_an_agent_remembers_what_it_saw(tmp_path: Path) -> None:
    """Acting with memory, a saved policy and past selves in slots agree with the network."""
    env = Screen(10, 12, 3)
    rules = pool_of([env]).rules
    config = NetConfig(kind="impala", memory="stack", frames=3)
    net = net_of(rules, kind="impala", memory="stack", frames=3)
    policy = load_policy(save_policy(Policy(rules, net), tmp_path / "policy"))
    slots = GroupedNet(rules, config, 2, memory=net.inputs.memory)
    slots.load(2, net.state_dict())
    first = rules.pack(env.reset(seed=1)[0].ravel())[None]
    second = rules.pack(env.step(1)[0].ravel())[None]
    _, memory = policy.decide(first, None, policy.initial_memory())
    whole = policy.rows(second, memory)
    seen = stacks_in(net, whole)[0]
    assert not seen[:3].any()
    assert np.array_equal(
        seen[3:6], stacks_in(net, policy.rows(first, policy.initial_memory()))[0][6:]
    )
    outputs = slots.forward(torch.from_numpy(whole), np.array([2]))
    assert np.allclose(outputs["policy"], policy.heads(whole)["policy"], atol=1e-6)
    after = outputs["memory"].numpy().view(np.uint8)
    assert np.array_equal(after, policy.next_memory(whole, policy.evaluate(whole)))


# What is refused


def test_observations_without_pixels_are_refused_in_a_line() -> None:
    walk = pool_of([gymnasium.make("CartPole-v1")]).rules
    small = pool_of([Screen(10, 12, 3)]).rules
    with pytest.raises(ConfigError, match=r"nature needs pixels as observations, and CartPole"):
        make_net(walk, NetConfig(kind="nature"))
    with pytest.raises(ConfigError, match=r"36 x 36 pixels or more, and Screen has 10 x 12: use"):
        make_net(small, NetConfig(kind="nature"))
    with pytest.raises(ConfigError, match=r"net\.memory gru needs a network that may be recurrent"):
        make_net(small, NetConfig(kind="impala", memory="gru"))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (7, 40, 3), np.uint8),
        spaces.Box(0, 255, (40, 40, 40), np.uint8),
        spaces.Box(0, 1, (40, 40, 3), np.float32),
        spaces.Box(0, 3, (40, 40), np.int64),
        spaces.Box(0, 255, (64,), np.uint8),
        spaces.Dict({"seen": spaces.Box(0, 255, (40, 40), np.uint8), "left": spaces.Discrete(3)}),
    ],
)
def test_other_observations_are_no_pixels(space: Any) -> None:
    env = Screen(8, 8)
    env.observation_space = space
    assert pool_of([env]).rules.pixels is None
