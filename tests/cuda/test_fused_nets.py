"""Networks on the GPU give what the networks for CPUs give."""

from __future__ import annotations

import pytest
import torch

from learn.fused_helpers import (
    COLLECT,
    NETS,
    PPO_,
    ROUNDED,
    game_of,
    learner,
    policy_bias,
)
from sparring.nets.heads import head_width
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.nets.run.fused_mlp import FusedPerceptron
from sparring.nets.run.fused_residual import FusedResidual
from sparring.nets.run.make_flat import make_flat
from sparring.pools.cuda import CudaPool


@pytest.mark.parametrize("net", NETS)
def test_a_network_has_its_own_passes_where_they_are_written(net: str) -> None:
    ppo = learner(net=NETS[net], game=game_of(net))
    wanted = FusedResidual if "residual" in net else FusedPerceptron
    wanted = CapturedNet if "silu" in net or "odd" in net else wanted
    assert type(ppo.net) is wanted


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bf16", [False, True])
def test_forward_is_that_of_the_policy_net(net: str, bf16: bool) -> None:
    collect = ROUNDED if bf16 else COLLECT
    ppo = learner(PPO_, NETS[net], (4, 5), collect=collect, game=game_of(net))
    ppo.playing.play()
    width = head_width(ppo.rules)
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(ppo.net.state(member))
        each = ppo.rollout.rows // 2
        rows = slice(member * each, (member + 1) * each)
        obs = ppo.rollout.obs[ppo.rollout.at(23)][rows].cpu()
        heads = module(obs)
        mine = (
            ppo.playing.acting[""].passing.logits[member, :, :width] + policy_bias(ppo, member)
        ).cpu()
        assert torch.allclose(mine, heads["policy"], atol=3e-3 if bf16 else 1e-5)
        assert torch.allclose(
            ppo.playing.acting[""].passing.value[member, :, 0].cpu(), heads["value"], atol=1e-5
        )


@pytest.mark.parametrize("memory", [16, 64])
def test_memory_is_read_behind_the_observation(memory: int) -> None:
    config = NETS["shared"]
    pool = CudaPool("skull_king", 32)
    rules, device = pool.rules, pool.device
    flat = make_flat(rules, config, 1, bf16=False, device=device, memory=memory)
    module = make_net(rules, config, memory=memory)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    flat.load(0, module.state_dict())
    obs = torch.randint(0, 3, (40, rules.obs_bytes + memory), dtype=torch.uint8)
    obs[:, rules.obs_bytes :] = torch.randn(40, memory // 4).view(torch.uint8)
    at = flat.make_pass(40, learn=False)
    at.read(obs.to(device))
    at.forward()
    heads = module(obs)
    logits = at.logits[0, :, :86] + flat.policy_bias[0, :86]
    assert torch.allclose(logits.cpu(), heads["policy"], atol=1e-3)
    value = at.value[0, :, 0] + flat.value_bias[0, 0]
    assert torch.allclose(value.cpu(), heads["value"], atol=1e-3)


@pytest.mark.parametrize(
    "net", ["towers", "residual", "residual, dense policy", "silu, odd widths"]
)
def test_weights_survive_the_way_there_and_back(net: str) -> None:
    ppo = learner(net=NETS[net], game=game_of(net))
    module = make_net(ppo.rules, NETS[net])
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    ppo.net.load(0, module.state_dict())
    for name, tensor in ppo.net.state(0).items():
        assert torch.equal(tensor, module.state_dict()[name]), name
