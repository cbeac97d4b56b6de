"""Gradient steps per second of SAC and DQN: ours beside stable-baselines3's, on laser hockey.

python benchmarks/replay_speed.py                      both algorithms, batch 256, 2 threads
python benchmarks/replay_speed.py --only sac --batch 256 4096 --json speed.json
python benchmarks/replay_speed.py --cpu torch          ours as it is without native networks

Both have the same batch, networks and number of optimizer steps, and both sample their replay in
the time that counts; theirs play through our adapter. They take turns of about a second; what is
shown is the median of the turns, and the median and the range of what they are to each other in a
turn. Ours of DQN is double and dueling, which theirs is not; `plain` is ours without either, which
is the same work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sparring import Lineup, Pool
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig, SACConfig
from sparring.learn.dqn import DQN
from sparring.learn.sac import SAC
from sparring.machine import machine_info, warn_if_busy
from sparring.nets.run.native import resolve_cpu
from sparring.schedule import Moment

DISCRETE = "laser_hockey_discrete"
GAMES = {"sac": "laser_hockey", "dqn": DISCRETE, "plain": DISCRETE}
HIDDEN, FILLED = (256, 256), 2_000
Steps = Callable[[int], None]
"""Makes so many optimizer steps."""


def ours(algo: str, threads: int, batch: int, cpu: str = "auto") -> Steps:
    """Our learner, with some decisions to learn from. cpu: as collect.cpu."""
    pool = Pool(GAMES[algo], 8, seed=1, threads=threads, lineups=[Lineup((0, "weak"))])
    collect = CollectConfig(games=8, steps=32, cpu=cpu)
    replay = ReplayConfig(batch=batch, warmup=FILLED)
    options: dict[str, Any] = {"seed": 1, "threads": threads}
    learner: DQN | SAC
    if algo == "sac":
        net = NetConfig(hidden=HIDDEN, squash=True, std="predicted")
        learner = SAC(pool, collect, SACConfig(), replay, net, **options)
    else:
        net = NetConfig(hidden=HIDDEN)
        more = algo == "dqn"
        config = DQNConfig(double=more, dueling=more)
        learner = DQN(pool, collect, config, replay, net, **options)
    while not learner.experience.warm:
        learner.iterate(0.0)
    moment = Moment(learner.playing.collector.decisions, 0.0)

    def steps(count: int) -> None:
        learner.experience.owed = float(count * batch)
        with learner.forward.best_matmul():
            learner.learn(moment)

    return steps


def theirs(algo: str, batch: int) -> Steps:
    """Theirs, with as many."""
    import stable_baselines3

    from sparring.envs.sb3 import SparringVecEnv

    env = SparringVecEnv(GAMES[algo], 1, opponents="weak", seed=1)
    kind = stable_baselines3.SAC if algo == "sac" else stable_baselines3.DQN
    nets = {"net_arch": list(HIDDEN)}
    model = kind("MlpPolicy", env, batch_size=batch, device="cpu", seed=1, policy_kwargs=nets)
    model.learning_starts = 2 * FILLED
    model.learn(FILLED)
    return lambda count: model.train(gradient_steps=count, batch_size=batch)


def speed(steps: Steps, count: int) -> float:
    """Steps per second."""
    started = time.perf_counter()
    steps(count)
    return count / (time.perf_counter() - started)


def contest(algo: str, batch: int, given: argparse.Namespace) -> dict[str, Any]:
    """Let both make steps by turns, each as many as take it about so long."""
    sides = {
        "ours": ours(algo, given.threads, batch, given.cpu),
        "theirs": theirs(algo, batch),
    }
    counts = {}
    for name, steps in sides.items():
        steps(5)
        counts[name] = max(3, round(speed(steps, 20) * given.seconds))
    turns: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(given.rounds):
        for name, steps in sides.items():
            turns[name].append(speed(steps, counts[name]))
    ratios = [mine / other for mine, other in zip(turns["ours"], turns["theirs"], strict=True)]
    medians = {name: statistics.median(found) for name, found in turns.items()}
    return {
        "algo": algo,
        "batch": batch,
        **medians,
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
    }


def main() -> None:
    """Measure, and show a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=GAMES, help="one algorithm")
    parser.add_argument("--rounds", type=int, default=7, help="turns of both")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a turn takes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument(
        "--cpu", choices=("auto", "bf16", "float32", "torch"), default="auto", help="of ours"
    )
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args()
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    torch.set_num_threads(given.threads)
    meant = resolve_cpu(given.cpu)
    print(f"networks {HIDDEN}, {given.threads} threads, ours in {meant}")
    print("| | batch | ours, steps/s | stable-baselines3, steps/s | ratio | in single turns |")
    print("|---|---|---|---|---|---|")
    found = []
    for algo in [given.only] if given.only else GAMES:
        for batch in given.batch:
            line = contest(algo, batch, given)
            found.append(line)
            between = f"{line['least']:.2f} to {line['most']:.2f}"
            print(
                f"| {algo} | {batch} | {line['ours']:.0f} | {line['theirs']:.0f} "
                f"| {line['ratio']:.2f} | {between} |",
                flush=True,
            )
    if given.json:
        figures = {"machine": facts, "threads": given.threads, "cpu": meant, "found": found}
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
