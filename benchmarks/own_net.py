"""Samples per second with a network of your own against sparring's perceptron, in turn.

python benchmarks/own_net.py                          on the CPU, Skull King
python benchmarks/own_net.py --device cuda --json     inside the graphs of a GPU

The module below is a perceptron of the same size as ours. `recognised` is run by our own passes,
`by torch` is the same thing written so that nobody recognises it. All sides learn in one process,
one after the other in every round; ratios are taken to ours within a round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from sparring.machine import machine_facts, warn_if_busy
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.train import complete

OURS = "ours"


class Recognised(nn.Module):
    """What a user would write."""

    def __init__(self, inputs: Any, width: int = 256) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs.width, width), nn.Linear(width, width)
        self.policy, self.value = nn.Linear(width, inputs.policy), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.policy(x), self.value(x)


class ByTorch(Recognised):
    """The same, with a function that native code does not know."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value."""
        x = self.second(self.first(x).clamp(min=0)).clamp(min=0)
        return self.policy(x), self.value(x)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--games", type=int, default=0, help="collect.games; 0: the preset's")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a turn")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def learners_of(given: argparse.Namespace) -> dict[str, Any]:
    """Everybody who takes part, ready to learn."""
    words = {"set": {"width": given.width}}
    nets: dict[str, Any] = {
        OURS: {"kind": "mlp", "hidden": (given.width, given.width)},
        "recognised": {"kind": f"{__file__}:Recognised"},
        "by torch": {"kind": f"{__file__}:ByTorch"},
    }
    made = {}
    for name, net in nets.items():
        if name != OURS:
            net["set"] = tuple(f"{key}={value}" for key, value in words["set"].items())
        changes: dict[str, Any] = {"device": given.device, "net": net, "threads": given.threads}
        if given.games:
            changes["collect"] = {"games": given.games}
        config = complete(given.game, "", changes)
        made[name] = make_learner(config, resolve([config]))
    return made


def turn(learner: Any, seconds: float) -> float:
    """Samples per second of one turn."""
    start, before = time.perf_counter(), None
    samples = 0
    while time.perf_counter() - start < seconds:
        (report,) = learner.iterate(0.0)
        before = report.samples if before is None else before
        samples = report.samples
        if samples == before:  # the first update counts neither as work nor as time
            start = time.perf_counter()
    return (samples - (before or 0)) / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    given = options()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    learners = learners_of(given)
    for learner in learners.values():
        turn(learner, 1.0)
    rates: dict[str, list[float]] = {name: [] for name in learners}
    for _ in range(given.rounds):
        for name, learner in learners.items():
            rates[name].append(turn(learner, given.seconds))
    found = {}
    for name, each in rates.items():
        ratios = [mine / ours for mine, ours in zip(each, rates[OURS], strict=True)]
        found[name] = {
            "samples_per_s": round(statistics.median(each)),
            "of_ours": round(statistics.median(ratios), 3),
            "from": round(min(ratios), 3),
            "to": round(max(ratios), 3),
        }
    if given.json:
        print(json.dumps({"game": given.game, "device": given.device, "sides": found, **facts}))
        return
    for name, one in found.items():
        spread = f"{one['from']:.2f} to {one['to']:.2f}"
        print(f"{name:12} {one['samples_per_s']:>12,} samples/s  {one['of_ours']:.2f} ({spread})")


if __name__ == "__main__":
    main()
