"""A module with the weights of our perceptron learns what ours learns, by torch and natively."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring.config import CollectConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.errors import SparringWarning
from sparring.games.rules import Rules
from sparring.learn import forward as forwards
from sparring.learn.ppo import PPO
from sparring.nets.frozen.cpu import GroupedNet, SequentialNets, StackedPerceptrons
from sparring.nets.make import make_net
from sparring.nets.run.trace import (
    TracedPerceptron,
    from_perceptron_tensors,
    sample_rows,
    trace_perceptron,
)
from sparring.pools import Pool
from sparring.schedule import Schedule

PPO_ = PPOConfig(minibatch=64)

PAIRS = {
    "shared": (NetConfig(hidden=(16, 16)), ("Plain", ())),
    "silu": (
        NetConfig(hidden=(12, 12), activation="silu"),
        ("Plain", ("width=12", "activation=SiLU")),
    ),
    "towers": (NetConfig(hidden=(16, 16), shared=False, activation="tanh"), ("Towers", ())),
}
"""Settings of ours, and the class and arguments of theirs."""


def theirs_of(pair: str) -> NetConfig:
    _, (kind, words) = PAIRS[pair]
    return NetConfig(kind=f"own_nets:{kind}", set=words)


def learner(net: NetConfig, cpu: str) -> PPO:
    torch.manual_seed(5)
    pool = Pool("skull_king", 16, seed=2, threads=1)
    collect = CollectConfig(games=16, steps=24, cpu=cpu)
    return PPO(pool, collect, PPOConfig(minibatch=64, gamma_into=(0, 1)), net, threads=1)


def give_weights(ours: PPO, theirs: PPO) -> None:
    """Give a module the weights of our perceptron."""
    layers = trace_perceptron(theirs.net)
    assert isinstance(layers, TracedPerceptron)
    state = from_perceptron_tensors(layers, {n: p.detach() for n, p in ours.net.named_parameters()})
    with torch.no_grad():
        for name, parameter in theirs.net.named_parameters():
            parameter.copy_(state[name])


@pytest.mark.few(3)
@pytest.mark.parametrize("cpu", ["torch", "float32"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_module_learns_as_our_perceptron_does(pair: str, cpu: str) -> None:
    ours, theirs = learner(PAIRS[pair][0], cpu), learner(theirs_of(pair), cpu)
    with torch.no_grad():
        for parameter in ours.net.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    give_weights(ours, theirs)
    layers = trace_perceptron(theirs.net)
    assert isinstance(layers, TracedPerceptron)
    rows = sample_rows(ours.net.inputs)
    for name, head in ours.net(rows).items():
        torch.testing.assert_close(theirs.net(rows)[name], head, atol=1e-5, rtol=1e-5)
    for update in range(3):
        expected, found = ours.iterate(0.0)[0].stats, theirs.iterate(0.0)[0].stats
        assert found["learning/native"] == float(cpu != "torch")
        for name in ("losses/policy_loss", "losses/value_loss", "learning/value_scale"):
            assert found[name] == pytest.approx(expected[name], rel=2e-3, abs=1e-4), (update, name)
        named = from_perceptron_tensors(layers, dict(ours.net.named_parameters()))
        for name, parameter in theirs.net.named_parameters():
            torch.testing.assert_close(parameter, named[name], atol=2e-3, rtol=0)


@pytest.mark.parametrize("cpu", ["torch", "float32"])
@pytest.mark.parametrize("pair", PAIRS)
def test_gradients_are_those_of_our_perceptron(pair: str, cpu: str) -> None:
    ours, theirs = learner(PAIRS[pair][0], "torch"), learner(theirs_of(pair), cpu)
    give_weights(ours, theirs)
    layers, rows = trace_perceptron(theirs.net), sample_rows(ours.net.inputs)
    assert isinstance(layers, TracedPerceptron)
    heads = ours.net(rows)
    weights = {name: torch.randn_like(head) for name, head in heads.items()}
    sum((heads[name] * weights[name]).sum() for name in heads).backward()  # type: ignore[union-attr]
    grads = {name: p.grad for name, p in ours.net.named_parameters()}
    wanted = from_perceptron_tensors(layers, grads)  # type: ignore[arg-type]
    if theirs.forward.native:
        passes = theirs.forward.native
        passes.forward(rows, keep=True)
        passes.backward(torch.cat([weights["policy"], weights["value"][:, None]], 1))
    else:
        said = theirs.net(rows)
        sum((said[name] * weights[name]).sum() for name in said).backward()  # type: ignore[union-attr]
    for name, parameter in theirs.net.named_parameters():
        largest = max(1.0, float(wanted[name].abs().max()))
        torch.testing.assert_close(parameter.grad, wanted[name], atol=1e-5 * largest, rtol=0)


def test_further_heads_learn_natively_as_by_torch() -> None:
    one = Schedule.constant(1.0)
    heads, net = HeadsConfig(wdl=one, score=one), NetConfig(kind="own_nets:Judging")
    found = {}
    for cpu in ("torch", "float32"):
        torch.manual_seed(5)
        pool = Pool("tic_tac_toe", 12, seed=1, threads=1)
        ppo = PPO(pool, CollectConfig(games=12, steps=24, cpu=cpu), PPO_, net, heads=heads)
        assert ppo.net.score_parameters == (
            "module.others.score.weight",
            "module.others.score.bias",
        )
        found[cpu] = [ppo.iterate(0.0)[0].stats for _ in range(2)]
    for mine, other in zip(found["float32"], found["torch"], strict=True):
        assert (mine["learning/native"], other["learning/native"]) == (1, 0)
        for name in ("losses/wdl", "losses/score", "losses/value_loss"):
            assert mine[name] == pytest.approx(other[name], rel=2e-3), name
    frozen = GroupedNet(Rules("tic_tac_toe"), net, 1)  # is asked for a policy alone
    frozen.load(1, ppo.net.state_dict())


UNLIKE = {
    "Blocks": "reads blocks",
    "Gated": "it has mul",
    "Deep": "share some of their layers and not others",
    "Detached": "it has detach",
    "Choosing": "depends on more than shapes",
    "Mixed": "it has the activations relu, tanh",
    "Spare": "its spare.bias is in no layer",
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_what_is_no_perceptron_is_run_by_torch(kind: str) -> None:
    ppo = learner(NetConfig(kind=f"own_nets:{kind}"), "auto")
    assert UNLIKE[kind] in ppo.forward.why_torch()
    assert ppo.iterate(0.0)[0].stats["learning/native"] == 0


def test_native_passes_that_say_something_else_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        forwards, "describe_difference", lambda *_, **__: "its layers say a value that is off"
    )
    with pytest.warns(SparringWarning, match="is run by torch: its layers say a value that is off"):
        ppo = learner(NetConfig(kind="own_nets:Plain"), "float32")
    assert ppo.iterate(0.0)[0].stats["learning/native"] == 0
    assert "off" in ppo.forward.why_torch()


@pytest.mark.parametrize(
    ("kind", "how"),
    [("Plain", StackedPerceptrons), ("Towers", StackedPerceptrons), ("Bytes", SequentialNets)],
)
def test_frozen_modules_answer_together(kind: str, how: type) -> None:
    rules, config = Rules("skull_king"), NetConfig(kind=f"own_nets:{kind}")
    grouped = GroupedNet(rules, config, 3, threads=1)
    assert isinstance(grouped._nets, how)
    nets = [make_net(rules, config) for _ in range(3)]
    for slot, net in enumerate(nets, start=1):
        grouped.load(slot, net.state_dict())
    rows = sample_rows(nets[0].inputs, 30)
    slots = np.arange(30) % 3 + 1
    said = grouped.forward(rows, slots)["policy"]
    said = said["policy"] if isinstance(said, dict) else said
    for slot, net in enumerate(nets, start=1):
        mine = slots == slot
        torch.testing.assert_close(said[mine], net(rows[mine])["policy"], atol=1e-5, rtol=1e-5)
