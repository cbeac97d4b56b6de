"""A network run by autograd from flat arrays is the network itself; shapes never change."""

from __future__ import annotations

import pytest
import torch

from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.pools import Pool

NETS = {
    "silu": ("skull_king", NetConfig(hidden=(30,), activation="silu"), 0),
    "layer norm": ("skull_king", NetConfig(hidden=(16, 8), norm=True), 0),
    "memory": ("tic_tac_toe", NetConfig(hidden=(12, 7)), 32),
    "odd channels": ("shogi", NetConfig(kind="residual", channels=6, blocks=1), 0),
    "gaussian": ("duel", NetConfig(hidden=(20, 20), shared=False, std="predicted"), 0),
}
ROWS = 8


@pytest.mark.parametrize("kind", NETS)
def test_passes_are_those_of_the_network(kind: str) -> None:
    game, config, memory = NETS[kind]
    rules = Rules(game)
    pool = Pool(rules, 16, threads=1, memory=memory)
    pool.reset()
    if memory:  # of float32 numbers
        pool.memory.view("f4")[:] = torch.randn(16, rules.seats, memory // 4).numpy()
        pool.step(pool.sample_actions())
    obs = torch.from_numpy(pool.batch().obs)
    flat = CapturedNet(rules, config, 2, bf16=False, device=torch.device("cpu"), memory=memory)
    nets = [make_net(rules, config, memory=memory) for _ in range(2)]
    for member, net in enumerate(nets):
        for parameter in net.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        flat.load(member, net.state_dict())
        for name, tensor in flat.state(member).items():
            assert torch.equal(tensor, net.state_dict()[name]), name
    places = torch.randint(0, len(obs), (2, ROWS), dtype=torch.int32)
    places[0, -1] = -1
    at = flat.make_pass(ROWS, learn=True)
    for _ in range(2):  # the second pass must not meet what the first left
        at.read(obs, places)
        at.forward()
        at.logits_grad.normal_()
        at.value_grad.normal_()
        at.logits_grad[0, -1] = at.value_grad[0, -1] = 0
        at.backward()
    for member, net in enumerate(nets):
        heads = net(obs[places[member].clamp(min=0).long()])
        width = heads["policy"].shape[1]
        assert torch.allclose(heads["policy"], at.logits[member, :, :width], atol=1e-5)
        assert torch.allclose(heads["value"], at.value[member, :, 0], atol=1e-5)
        policy_grad = at.logits_grad[member, :, :width]
        value_grad = at.value_grad[member, :, 0]
        total = (heads["policy"] * policy_grad).sum() + (heads["value"] * value_grad).sum()
        total.backward()
        mine = flat.unpack(flat.grad[member])
        for name, parameter in net.named_parameters():
            assert torch.allclose(mine[name], parameter.grad, atol=1e-3, rtol=1e-3), name
    assert not flat.policy_bias.any()
    assert not flat.value_bias.any()


def test_the_value_head_comes_last() -> None:
    game, config, _ = NETS["silu"]
    flat = CapturedNet(Rules(game), config, 1, bf16=False, device=torch.device("cpu"))
    first = flat.layout["value_head.weight"].offset
    behind = [name for name, at in flat.layout.items() if at.offset >= first]
    assert behind == ["value_head.weight", "value_head.bias"]


def test_a_critic_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a policy and a value"):
        CapturedNet(
            Rules("tic_tac_toe"),
            NetConfig(),
            1,
            bf16=False,
            device=torch.device("cpu"),
            heads={"value": 1},
        )
