"""PPO from pixels in examples/more/breakout.py: what it learns, its speed beside Stable-Baselines3.

    python benchmarks/pixels.py speed --rounds 8 --out benchmarks/results/pixels-speed-MACHINE.json
    python benchmarks/pixels.py learn --seeds 0 1 2 --decisions 100000 --out ...

Seconds are those of the processor in this process, of one thread: other programs of the machine
cost neither library anything but its caches. `speed` makes updates of both libraries in turn: the
same games, network (nature over four frames), rollout, minibatches and epochs; networks of both are
held against each other first. `learn` reports the mean score of the games that end in training.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "more"))

import breakout
import numpy as np
import torch

from sparring.training.planning.settings import merged, with_preset
from sparring.training.planning.training import plan_training

ROOT = Path(__file__).resolve().parents[1]
GAME = f"{ROOT / 'examples' / 'more' / 'breakout.py'}:make_env"
GAMES, STEPS, MINIBATCH, EPOCHS, FRAMES = 8, 128, 256, 4, 4
"""Of `speed`, as Atari is usually trained."""
LEARNING: dict[str, Any] = {"net": {"memory": "stack", "frames": 2}, "ppo": {"lr": 5e-4}}
"""Of `learn`, besides what an environment of somebody's own has anyway."""
WINDOW = 10
"""Updates whose games make a point of a curve."""


def learner(**settings: Any) -> Any:
    """The learner that `sparring train` makes, without the run around it."""
    from sparring import trusted

    trusted.allow(GAME)
    config = merged(with_preset(GAME), {"threads": 1, "device": "cpu", **settings}, "benchmark")
    return plan_training([config]).make_learner()


def ours() -> tuple[Callable[[], int], torch.nn.Module]:
    """Return what makes one update and returns its decisions, and the network."""
    made = learner(
        net={"kind": "nature", "memory": "stack", "frames": FRAMES},
        collect={"games": GAMES, "steps": STEPS, "cpu": "float32"},
        ppo={"minibatch": MINIBATCH, "epochs": EPOCHS, "target_kl": 0.0},
    )
    done = 0

    def update() -> int:
        nonlocal done
        (report,) = made.iterate(0.0)
        before, done = done, report.decisions
        return done - before

    return update, made.net


def sb3() -> tuple[Callable[[], int], torch.nn.Module]:
    """The same of Stable-Baselines3."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    env = VecFrameStack(DummyVecEnv([breakout.make_env] * GAMES), FRAMES)
    settings: dict[str, Any] = {"n_steps": STEPS, "batch_size": MINIBATCH, "n_epochs": EPOCHS}
    model = PPO("CnnPolicy", env, learning_rate=1e-3, ent_coef=0.01, device="cpu", **settings)

    def update() -> int:
        model.learn(GAMES * STEPS, reset_num_timesteps=False)
        return GAMES * STEPS

    return update, model.policy


def shapes(net: torch.nn.Module) -> list[tuple[int, ...]]:
    """Return the shapes of a network's weights, in an order that does not depend on names."""
    return sorted(tuple(parameter.shape) for parameter in net.parameters())


def speed(rounds: int) -> dict[str, Any]:
    """Make updates in turn."""
    sides = {"sparring": ours(), "stable-baselines3": sb3()}
    (_, mine), (_, theirs) = sides.values()
    assert shapes(mine) == shapes(theirs), "the networks differ"
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, (update, _) in sides.items():
            began = time.process_time()
            decisions = update()
            rate = decisions / (time.process_time() - began)
            if number:  # the first one also warms up
                rates[name].append(rate)
            print(f"{name}: {rate:,.0f} decisions per second of the processor", file=sys.stderr)
    ratios = [mine / theirs for mine, theirs in zip(*rates.values(), strict=True)]
    spread = [round(float(np.quantile(ratios, share)), 2) for share in (0, 0.5, 1)]
    return {
        "games": GAMES,
        "steps": STEPS,
        "minibatch": MINIBATCH,
        "epochs": EPOCHS,
        "frames": FRAMES,
        "decisions_per_cpu_s": {name: round(median(each), 1) for name, each in rates.items()},
        "ratio_lowest_median_highest": spread,
        "rounds": rounds,
    }


def random_score(games: int = 1000) -> float:
    """Return the mean score of random play."""
    env, rng, total = breakout.make_env(), np.random.default_rng(0), 0.0
    for seed in range(games):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(int(rng.integers(3)))
            total, over = total + reward, terminated or truncated
    return total / games


def learn(seed: int, decisions: int) -> dict[str, Any]:
    """Train one run; return its curve."""
    made, done, progress = learner(seed=seed, decisions=decisions, **LEARNING), 0, 0.0
    began, window, curve = time.process_time(), [], []
    while progress < 1:
        (report,) = made.iterate(progress)
        done, progress = report.decisions, report.decisions / decisions
        stats = report.stats
        window.append((stats.get("charts/score", 0.0), stats.get("charts/games", 0.0)))
        if len(window) == WINDOW or progress >= 1:
            scores, games = np.array(window).T
            score = float((scores * games).sum() / max(games.sum(), 1))
            seconds = time.process_time() - began
            curve.append([done, round(seconds, 1), round(score, 2), int(games.sum())])
            print(f"seed {seed}: {curve[-1]}", file=sys.stderr)
            window = []
    return {"seed": seed, "decisions_cpu_s_score_games": curve}


def machine() -> dict[str, Any]:
    """Describe where and what this was measured with."""
    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    commit = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return {
        "cpu": name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "stable_baselines3": version("stable_baselines3"),
        "commit": subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip(),
    }


def main() -> None:
    """Measure one of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "learn"])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--out", default="", help="a JSON file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "speed":
        found: dict[str, Any] = speed(given.rounds)
    else:
        runs = [learn(seed, given.decisions) for seed in given.seeds]
        found = {"settings": LEARNING, "random_score": random_score(), "runs": runs}
    text = json.dumps({"machine": machine(), **found}, indent=1)
    print(text)
    if given.out:
        Path(given.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
