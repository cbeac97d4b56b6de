"""Where networks begin, measured: the same short trainings from weights drawn in other ways.

python benchmarks/initialisation.py                          every task, three seeds
python benchmarks/initialisation.py --tasks tic_tac_toe --seeds 11 12 13 14 15
python benchmarks/initialisation.py --tasks skull_king --share 6 --ways "as it is" "policy head 1"
python benchmarks/initialisation.py --json initialisation.json

A task is a game, a kind of network and a number of decisions, so few that most of what can be
learned is still ahead: there beginnings differ. Every way trains with the same seeds; what counts
is the median over them of how the agent does against a bot that does not learn, with its most
probable actions, in games that no training has seen.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

import sparring
from sparring.config import NetConfig
from sparring.league.arena import evaluate
from sparring.machine import machine_facts
from sparring.nets.mlp import Perceptron, initialise_seen
from sparring.nets.net import POLICY, Net
from sparring.nets.residual import ResidualNet

GAMES = 4096
EVALUATION = 900_000
"""The seed of the games that are measured."""


@dataclass(frozen=True)
class Task:
    """A training."""

    game: str
    against: str
    decisions: int
    net: Mapping[str, Any]
    ways: Sequence[str]


def torch_s_own(net: Net) -> None:
    """Hidden layers as torch draws them: uniform, by the number of inputs."""
    assert isinstance(net, Perceptron)
    bound = 1 / math.sqrt(net.first.weight.shape[0])
    nn.init.uniform_(net.first.weight, -bound, bound)
    nn.init.uniform_(net.first.bias, -bound, bound)
    for layer in net.towers.modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()


def kaiming(net: Net) -> None:
    """Hidden layers normal, by the number of inputs, for relu."""
    assert isinstance(net, Perceptron)
    nn.init.normal_(net.first.weight, std=math.sqrt(2 / net.first.weight.shape[0]))
    for layer in net.towers.modules():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")


def gain_of_one(net: Net) -> None:
    """Hidden layers orthogonal, without the gain of relu."""
    assert isinstance(net, Perceptron)
    initialise_seen(net.first.weight, net.inputs, 1.0)
    for layer in net.towers.modules():
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)


def middling_policy(net: Net) -> None:
    """The policy's head ten times as large as it is."""
    with torch.no_grad():
        net.get_parameter(f"{POLICY}_head.weight").mul_(10)


def large_policy(net: Net) -> None:
    """The policy's head as large as a hidden layer: the first policy has opinions."""
    head = net.get_submodule(f"{POLICY}_head")
    assert isinstance(head, nn.Linear | nn.Conv2d)
    if isinstance(head, nn.Linear):
        nn.init.orthogonal_(head.weight, 1.0)
    else:
        nn.init.kaiming_normal_(head.weight, nonlinearity="linear")


def large_value(net: Net) -> None:
    """The value's head orthogonal instead of 0."""
    nn.init.orthogonal_(net.value_head.weight, 1.0)


def blocks_not_zero(net: Net) -> None:
    """Both convolutions of a block drawn alike: blocks do something from the beginning."""
    assert isinstance(net, ResidualNet)
    for block in net.tower:
        nn.init.kaiming_normal_(block.second.weight, nonlinearity="relu")


def blocks_by_depth(net: Net) -> None:
    """As Fixup has it: the second at 0, the first smaller the more blocks there are."""
    assert isinstance(net, ResidualNet)
    with torch.no_grad():
        for block in net.tower:
            block.first.weight.mul_(len(net.tower) ** -0.5)


def plain_stem(net: Net) -> None:
    """The stem as if all of its planes were seen on every square."""
    assert isinstance(net, ResidualNet)
    nn.init.kaiming_normal_(net.stem.weight, nonlinearity="relu")


WAYS: dict[str, tuple[Callable[[Net], None] | None, dict[str, Any]]] = {
    "as it is": (None, {}),
    "with layer norm": (None, {"norm": True}),
    "gain 1": (gain_of_one, {}),
    "torch's own": (torch_s_own, {}),
    "kaiming": (kaiming, {}),
    "policy head 1": (large_policy, {}),
    "policy head 0.1": (middling_policy, {}),
    "head 1 and norm": (large_policy, {"norm": True}),
    "value head 1": (large_value, {}),
    "blocks not 0": (blocks_not_zero, {}),
    "blocks by depth": (blocks_by_depth, {}),
    "plain stem": (plain_stem, {}),
}
"""By name: what is done to a network that was just made, and other settings of it."""
OF_MLPS = tuple(WAYS)[:9]
OF_TOWERS = ("as it is", "blocks not 0", "blocks by depth", "plain stem", "policy head 1")
BOARD = {"kind": "residual", "channels": 16, "blocks": 3}
TASKS = {
    "tic_tac_toe": Task("tic_tac_toe", "careful", 60_000, {}, OF_MLPS),
    "skull_king": Task("skull_king", "rule_medium", 60_000, {"hidden": (128, 128)}, OF_MLPS),
    "hockey": Task("laser_hockey", "weak", 60_000, {"hidden": (64, 64)}, OF_MLPS),
    "board": Task("tic_tac_toe", "careful", 40_000, BOARD, OF_TOWERS),
}


@contextmanager
def beginning(way: Callable[[Net], None] | None) -> Iterator[None]:
    """Draw the weights of all networks that are made in the meantime in another way."""
    kinds: list[Any] = [Perceptron, ResidualNet]
    before = [kind._initialise for kind in kinds]
    if way is not None:
        for kind, usual in zip(kinds, before, strict=True):

            def drawn(net: Net, *given: Any, usual: Any = usual) -> None:
                usual(net, *given)
                way(net)

            kind._initialise = drawn
    try:
        yield
    finally:
        for kind, usual in zip(kinds, before, strict=True):
            kind._initialise = usual


def score(task: Task, way: str, seed: int, decisions: int) -> float:
    """Train once and measure."""
    change, settings = WAYS[way]
    net = {**task.net, **settings}
    with tempfile.TemporaryDirectory() as folder, beginning(change):
        agent = sparring.train(
            task.game,
            decisions=decisions,
            seed=seed,
            threads=1,
            quiet=True,
            device="cpu",
            runs=folder,
            net=net,
            tensorboard=False,
            eval={"off": True},
        )
        given: dict[str, Any] = {"games": GAMES, "seed": EVALUATION, "threads": 1}
        return float(evaluate(agent.policy, [task.against], **given)[task.against].first.score)


def measured(name: str, task: Task, seeds: Sequence[int], share: float) -> dict[str, Any]:
    """Train all ways in turn, seed by seed, and print their medians."""
    decisions = int(task.decisions * share)
    scores: dict[str, list[float]] = {way: [] for way in task.ways}
    for seed in seeds:
        for way in task.ways:
            scores[way].append(score(task, way, seed, decisions))
    net = {key: getattr(NetConfig(**task.net), key) for key in ("kind", *task.net)}
    print(f"{name}: {task.game} against {task.against}, {decisions:,} decisions, {net}")
    for way, found in scores.items():
        each = " ".join(f"{one:8.3f}" for one in found)
        print(f"  {way:16} {median(found):8.3f}   {each}", flush=True)
    return {"game": task.game, "against": task.against, "decisions": decisions, "scores": scores}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=tuple(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), help="left out: all of a task")
    parser.add_argument("--share", type=float, default=1.0, help="of the decisions of each task")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    tasks = {name: TASKS[name] for name in given.tasks}
    if given.ways:
        tasks = {name: replace(task, ways=given.ways) for name, task in tasks.items()}
    found = {name: measured(name, task, given.seeds, given.share) for name, task in tasks.items()}
    print(f"{time.perf_counter() - started:.0f} s")
    if given.json:
        facts = {"machine": machine_facts(), "seeds": given.seeds, "tasks": found}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
