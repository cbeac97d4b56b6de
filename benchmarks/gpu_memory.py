"""What memory costs a training on a GPU: samples per second beside the same network without one.

python benchmarks/gpu_memory.py                      Skull King, 4,096 games of 64 steps
python benchmarks/gpu_memory.py --game cage2 --games 8192 --steps 32
python benchmarks/gpu_memory.py --kinds gru stack    without the perceptron run by autograd
python benchmarks/gpu_memory.py --json               the figures alone

All are made first and take turns, so that a busy moment meets them alike. `filled` is the share of
the rows of a minibatch that are samples: segments are padded to one length.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace
from typing import Any

import torch

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.games.rules import Rules
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.nets.memory import memory_of
from sparring.pools.cuda import CudaPool

PLAIN = NetConfig(hidden=(512, 512, 256))
KINDS = {
    # silu has no kernels: the same layers by autograd, as a GRU is.
    "autograd": replace(PLAIN, activation="silu"),
    "stack": replace(PLAIN, memory="stack", frames=4),
    "gru": replace(PLAIN, memory="gru", memory_width=256, segment=16),
}
WARM = 3
"""Updates before the first round: graphs are captured in the second."""


def main() -> None:
    """Measure and print a line for every kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--games", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--minibatch", type=int, default=32768)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=3, help="of a round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    nets = {"none": PLAIN, **{name: KINDS[name] for name in given.kinds}}
    learners = {name: learner(given, net) for name, net in nets.items()}
    for ppo in learners.values():
        rate(ppo, WARM)
    rounds = [
        {name: rate(ppo, given.updates) for name, ppo in learners.items()}
        for _ in range(given.rounds)
    ]
    found = {name: summary(learners[name], rounds, name) for name in nets}
    if given.json:
        print(json.dumps(found, indent=1))
        return
    for name, of in found.items():
        print(
            f"{name:10} {of['samples_per_s'] / 1e6:7.2f} M samples/s, {of['of_none']:.2f} of none, "
            f"filled {of['filled']:.2f}, {of['weights']:,} weights"
        )


def learner(given: argparse.Namespace, net: NetConfig) -> FusedPPO:
    """Return a learner that plays against itself."""
    rules = Rules(given.game)
    pool = CudaPool(rules, given.games, memory=memory_of(rules, net))
    collect = CollectConfig(games=given.games, steps=given.steps)
    config = PPOConfig(minibatch=given.minibatch, target_kl=0.0)
    return FusedPPO(DeviceGames(pool), collect, config, net)


def rate(ppo: FusedPPO, updates: int) -> float:
    """Samples learned from per second, each once."""
    torch.cuda.synchronize()
    before, started = ppo.samples[0], time.perf_counter()
    for _ in range(updates):
        ppo.iterate(0.0)
    torch.cuda.synchronize()
    return (ppo.samples[0] - before) / (time.perf_counter() - started)


def summary(ppo: FusedPPO, rounds: list[dict[str, float]], name: str) -> dict[str, Any]:
    """The median rate, as a share of the one without memory in the same round, and sizes."""
    update = ppo.update
    rows = update.minibatches * update.room
    return {
        "samples_per_s": statistics.median(one[name] for one in rounds),
        "of_none": statistics.median(one[name] / one["none"] for one in rounds),
        "filled": min(float(update.sample_counts[0]) / rows, 1.0),
        "weights": sum(tensor.numel() for tensor in ppo.net.state(0).values()),
        "phases_s": dict(ppo.phases.seconds),
        "device": torch.cuda.get_device_name(),
    }


if __name__ == "__main__":
    main()
