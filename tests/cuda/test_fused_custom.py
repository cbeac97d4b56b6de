"""Networks of somebody's own on the GPU: equal to ours, inside graphs or launched one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, PPO_, ROUNDED, learner, play, policy_bias
from sparring.config import (
    CollectConfig,
    EvaluationConfig,
    NetConfig,
    PPOConfig,
    TrainConfig,
)
from sparring.errors import SparringWarning
from sparring.learn.fused import FusedPPO
from sparring.nets.heads import head_width
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.nets.run.fused_mlp import CustomPerceptron, FusedPerceptron
from sparring.nets.run.make_flat import make_flat
from sparring.nets.run.trace import (
    TracedPerceptron,
    from_perceptron_tensors,
    sample_rows,
    trace_perceptron,
)
from sparring.store.policies import load_policy
from sparring.training.train import resume, train_population, train_with

DEVICE = torch.device("cuda")
OURS = NetConfig(hidden=(64, 64))
NETS = {
    "perceptron": NetConfig(kind="own_nets:Plain", set=("width=64",)),
    "towers": NetConfig(kind="own_nets:Towers", set=("width=64",)),
    "not recognized": NetConfig(kind="own_nets:Clamped", set=("width=64",)),
    "blocks": NetConfig(kind="own_nets:Blocks"),
    "bytes": NetConfig(kind="own_nets:Bytes"),
}
CHOOSING = NetConfig(kind="own_nets:Choosing", set=("width=64",))


def with_our_weights(ours: FusedPPO, net: NetConfig) -> FusedPPO:
    """A learner whose networks have the weights of our perceptrons."""
    theirs = learner(net=net, seeds=tuple(ours.games.seeds))
    layers = trace_perceptron(make_net(ours.rules, NETS["perceptron"]))
    assert isinstance(layers, TracedPerceptron)
    for member in range(ours.members):
        state = ours.net.state(member)
        named = from_perceptron_tensors(layers, state)
        theirs.net.load(member, {**named, "value_scale": state["value_scale"]})
    return theirs


@pytest.mark.parametrize("net", NETS)
def test_perceptrons_have_our_kernels_and_others_autograd(net: str) -> None:
    ppo = learner(net=NETS[net])
    wanted = CustomPerceptron if net in ("perceptron", "towers") else CapturedNet
    assert type(ppo.net) is wanted
    assert not ppo.net.eager_reason


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bf16", [False, True])
def test_forward_is_that_of_the_module(net: str, bf16: bool) -> None:
    collect = ROUNDED if bf16 else COLLECT
    ppo = learner(PPO_, NETS[net], (4, 5), collect=collect)
    play(ppo)  # which chooses a unit of values
    ppo.playing.play()
    width = head_width(ppo.rules)
    for member in range(2):
        module = ppo.policy(member).net
        each = ppo.rollout.rows // 2
        rows = slice(member * each, (member + 1) * each)
        obs = ppo.rollout.obs[ppo.rollout.at(23)][rows].cpu()
        with torch.no_grad():
            heads = module(obs)
        mine = (
            ppo.playing.acting[""].passing.logits[member, :, :width] + policy_bias(ppo, member)
        ).cpu()
        largest = max(1.0, float(heads["policy"].abs().max()))
        assert torch.allclose(mine, heads["policy"], atol=(2e-2 if bf16 else 1e-5) * largest)
        value = ppo.rollout.value[ppo.rollout.at(23)][rows].cpu()
        true = module.unscaled_values(heads)
        largest = max(1.0, float(true.abs().max()))
        assert torch.allclose(value, true, atol=(2e-2 if bf16 else 1e-5) * largest)


@pytest.mark.parametrize("net", NETS)
def test_gradients_are_those_of_the_module(net: str) -> None:
    rules = learner().rules
    flat = make_flat(rules, NETS[net], 1, bf16=False, device=DEVICE)
    module = make_net(rules, NETS[net])
    module.rescale_value_head(3.0)
    flat.load(0, module.state_dict())
    at = flat.make_pass(64, learn=True)
    rows = sample_rows(module.inputs, 64)
    at.read(rows.to(DEVICE))
    at.forward()
    width = head_width(rules)
    torch.manual_seed(1)
    at.logits_grad[0, :, :width] = torch.randn(64, width)
    at.value_grad[0, :, 0] = torch.randn(64)
    at.backward()
    heads = module(rows)
    policy_grad, value_grad = at.logits_grad[0, :, :width].cpu(), at.value_grad[0, :, 0].cpu()
    ((heads["policy"] * policy_grad).sum() + (heads["value"] * value_grad).sum()).backward()
    found = flat.unpack(flat.grad[0])
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        wanted = parameter.grad
        if type(flat) is CustomPerceptron and name in first_weights(module):
            continue  # lies there before its divisors are applied; the next test learns with it
        largest = max(1.0, float(wanted.abs().max()))
        torch.testing.assert_close(found[name], wanted, atol=1e-5 * largest, rtol=0, msg=name)


def first_weights(module: Any) -> list[str]:
    layers = trace_perceptron(module)
    assert isinstance(layers, TracedPerceptron)
    return [f"module.{tower[0]}.weight" for tower in layers.towers]


@pytest.mark.parametrize("net", ["perceptron", "not recognized"])
@pytest.mark.parametrize("graphs", [False, True])
def test_a_module_learns_what_our_perceptron_learns(net: str, graphs: bool) -> None:
    ours = learner(net=OURS, seeds=(3, 4))
    assert type(ours.net) is FusedPerceptron
    theirs = with_our_weights(ours, NETS[net])
    for one in (ours, theirs):
        one.playing.graphs.on = graphs
    layers = trace_perceptron(make_net(ours.rules, NETS["perceptron"]))
    assert isinstance(layers, TracedPerceptron)
    for update in range(4):
        for member, (mine, other) in enumerate(
            zip(theirs.iterate(0.0), ours.iterate(0.0), strict=True)
        ):
            near = (
                1e-3 if update < 2 else 5e-2
            )  # one action that falls the other way, and games part
            for name in ("losses/value_loss", "losses/entropy", "learning/value_scale"):
                assert mine.stats[name] == pytest.approx(other.stats[name], rel=near), name
            if update:
                continue
            state = theirs.net.state(member)
            for name, tensor in from_perceptron_tensors(layers, ours.net.state(member)).items():
                torch.testing.assert_close(state[name], tensor, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("net", ["blocks", "bytes"])
def test_a_value_without_a_layer_of_its_own_keeps_its_unit(net: str) -> None:
    ppo = learner(net=NETS[net])
    assert ppo.net.value_from == ppo.net.size
    for _ in range(3):
        ppo.iterate(0.0)
    scale = float(ppo.net.value_scale[0])
    assert scale != 1.0
    before = ppo.policy().value(ppo.rollout.obs[:64].cpu().numpy())
    ppo.net.value_scale.mul_(4.0)
    after = ppo.policy().value(ppo.rollout.obs[:64].cpu().numpy())
    assert np.allclose(before, after, rtol=1e-5)


@pytest.mark.parametrize("net", ["not recognized", "bytes"])
def test_graphs_do_what_launches_do(net: str) -> None:
    both = [learner(net=NETS[net], graphs=graphs) for graphs in (False, True)]
    for update in range(4):
        one, two = (ppo.iterate(0.0)[0].stats for ppo in both)
        near = 1e-3 if update < 2 else 5e-2
        for name in ("losses/value_loss", "losses/entropy"):
            assert one[name] == pytest.approx(two[name], rel=near), (update, name)
    assert both[1].playing.graphs.on


def test_what_waits_for_the_device_is_launched_without_graphs() -> None:
    with pytest.warns(SparringWarning, match="Choosing does not fit into a CUDA graph: .*own_nets"):
        ppo = learner(net=CHOOSING, graphs=True)
    assert not ppo.playing.graphs.on
    other = learner(net=NETS["not recognized"])
    other.net.load(0, ppo.net.state(0))
    for _ in range(3):
        mine, theirs = ppo.iterate(0.0)[0].stats, other.iterate(0.0)[0].stats
        assert mine["losses/entropy"] == pytest.approx(theirs["losses/entropy"], rel=1e-2)


def test_a_capture_that_fails_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{make_flat.__module__}.capture_unsupported_reason", lambda _: "")
    ppo = learner(net=CHOOSING, graphs=True)
    other = learner(net=CHOOSING, graphs=False)
    first, _ = ppo.iterate(0.0)[0], other.iterate(0.0)  # the first time runs without graphs anyway
    assert ppo.playing.graphs.on
    with pytest.warns(SparringWarning, match="does not fit into a CUDA graph"):
        ppo.iterate(0.0)
    other.iterate(0.0)
    assert not ppo.playing.graphs.on
    for _ in range(3):
        mine, theirs = ppo.iterate(0.0)[0], other.iterate(0.0)[0]
        key = "losses/entropy"
        assert mine.stats[key] == pytest.approx(theirs.stats[key], rel=5e-2)
        assert mine.decisions == pytest.approx(theirs.decisions, rel=0.02)
    assert mine.decisions > first.decisions
    assert torch.rand(4, device=DEVICE).isfinite().all()


def config(tmp_path: Path, net: NetConfig, **changes: Any) -> TrainConfig:
    return replace(
        TrainConfig(
            game="tic_tac_toe",
            device="cuda",
            runs=str(tmp_path),
            updates=4,
            net=net,
            collect=CollectConfig(games=64, steps=16),
            ppo=PPOConfig(minibatch=256),
            eval=EvaluationConfig(off=True),
            tensorboard=False,
        ),
        **changes,
    )


@pytest.mark.parametrize("net", ["perceptron", "blocks", "bytes"])
def test_runs_go_on_and_move_to_a_cpu(net: str, tmp_path: Path) -> None:
    begun = train_with(config(tmp_path, NETS[net]), quiet=True)
    ended = resume(str(begun.run), updates=6, quiet=True)
    policy = load_policy(ended.run)
    obs = np.zeros((3, policy.rules.obs_bytes), np.uint8)
    assert np.array_equal(policy.probabilities(obs), ended.policy.probabilities(obs))
    assert policy.net.config.kind == NETS[net].kind


@pytest.mark.parametrize("net", ["perceptron", "bytes"])
def test_a_league_of_them_is_met_on_the_gpu(net: str, tmp_path: Path) -> None:
    wanted = config(tmp_path, NETS[net], updates=12, opponents=("self=1", "past=1"))
    agent = train_with(wanted, quiet=True)
    assert agent.decisions > 0


@pytest.mark.parametrize("net", ["perceptron", "bytes"])
def test_a_population_of_them_is_trained(net: str, tmp_path: Path) -> None:
    agents = train_population(config(tmp_path, NETS[net], population=3), quiet=True)
    weights = [agent.policy.net.state_dict() for agent in agents]
    name = next(iter(dict(agents[0].policy.net.named_parameters())))
    assert not torch.equal(weights[0][name], weights[1][name])


@pytest.mark.parametrize("algo", ["dqn", "sac"])
@pytest.mark.parametrize("net", ["perceptron", "bytes"])
def test_other_algorithms_learn_them_too(algo: str, net: str, tmp_path: Path) -> None:
    agent = train_with(
        config(tmp_path, NETS[net], algo=algo, ppo=PPOConfig(), decisions=20_000, updates=0),
        quiet=True,
    )
    assert agent.ended in ("done", "early")
