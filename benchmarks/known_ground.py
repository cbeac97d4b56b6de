"""Well-known tasks: ours beside stable-baselines3 with its tuned settings.

python benchmarks/known_ground.py                              both tasks, both libraries
python benchmarks/known_ground.py --only cartpole --ours       one task, ours alone
python benchmarks/known_ground.py --seeds 3 --first-seed 100   other seeds, to try settings out

Both play one environment and are measured by the same code: 20 greedy episodes every so many
steps. What counts is the number of steps to the first mean at the target. Time is that of
training alone, on one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch

from sparring.config import TrainConfig
from sparring.learn.learner import Learner
from sparring.pools.custom import VectorEnvPool
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import merged

EPISODES = 20
Act = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """An environment, what is to be reached, and the settings of both libraries."""

    env: str
    steps: int
    every: int
    target: float
    ours: dict[str, Any]
    theirs: dict[str, Any] = field(default_factory=dict)


TASKS = {
    "cartpole": Task(
        env="CartPole-v1",
        steps=50_000,
        every=2_500,
        target=475.0,
        ours={
            "algo": "dqn",
            "collect": {"games": 1, "steps": 16},
            "net": {"hidden": (256, 256)},
            "dqn": {
                "lr": 2e-3,
                "gamma": 0.99,
                "tau": 0.02,
                "double": False,
                "epsilon": "0:1.0,8000:0.04",
                "max_grad_norm": 10.0,
            },
            "replay": {
                "ratio": 16,
                "batch": 64,
                "capacity": 100_000,
                "warmup": 1_000,
                "n_step": 3,
            },
        },
        theirs={
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1_000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    ),
    "pendulum": Task(
        env="Pendulum-v1",
        steps=15_000,
        every=1_000,
        target=-200.0,
        ours={
            "algo": "sac",
            "collect": {"games": 1, "steps": 1},
            "net": {"hidden": (256, 256), "std": "predicted", "squash": True},
            "sac": {"lr": 1e-3, "critic_lr": 1e-3, "temperature_lr": 1e-3},
            "replay": {"ratio": 256, "batch": 256, "capacity": 100_000, "warmup": 100},
        },
        theirs={"learning_rate": 1e-3},
    ),
}


@dataclass
class Course:
    """Curve of one training."""

    name: str
    seed: int
    curve: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0

    def reached(self, target: float) -> int | None:
        """Steps at the first mean at the target, None if there is none."""
        return next((at for at, mean in self.curve if mean >= target), None)


def evaluate(env: str, act: Act, seed: int) -> float:
    """The mean return of greedy episodes, all of them played at once."""
    games = gymnasium.make_vec(env, num_envs=EPISODES, vectorization_mode="sync")
    obs, _ = games.reset(seed=10_000 + seed)
    paid, over = np.zeros(EPISODES), np.zeros(EPISODES, np.bool_)
    while not over.all():
        obs, reward, terminated, truncated, _ = games.step(act(obs))
        paid += np.where(over, 0.0, reward)
        over |= terminated | truncated
    games.close()
    return float(paid.mean())


def train_ours(task: Task, seed: int) -> Course:
    """Train our learner over a Gymnasium vector of one environment."""
    same_step = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.make_vec(
        task.env,
        num_envs=1,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": same_step},
    )
    pool = VectorEnvPool(env, seed=seed)
    settings = {**task.ours, "seed": seed, "threads": 1, "device": "cpu"}
    config = merged(TrainConfig(), settings, "known ground")
    learner = make_learner(config, resolve([config], pool=pool))
    course, decisions = Course(task.ours["algo"], seed), 0
    while decisions < task.steps:
        started = time.perf_counter()
        (report,) = learner.iterate(decisions / task.steps)
        course.seconds += time.perf_counter() - started
        before, decisions = decisions, report.decisions
        if decisions // task.every > before // task.every:
            mean = evaluate(task.env, acting(learner, pool), seed)
            course.curve.append((decisions, mean))
            if mean >= task.target:
                break
    course.steps = decisions
    return course


def acting(learner: Learner, pool: VectorEnvPool) -> Act:
    """Return the learner's policy as a function of observations."""
    policy, space = learner.policy(), pool.env.single_action_space

    def act(obs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = np.zeros((len(obs), policy.rules.obs_bytes), np.uint8)
        numbers = np.ascontiguousarray(obs, np.float32).view(np.uint8)
        rows[:, : numbers.shape[1]] = numbers
        mask = np.ones((len(rows), policy.rules.actions), np.uint8)
        action = policy.act(rows, mask, greedy=True)
        if policy.rules.box:  # from -1..1 to the bounds of the environment
            return space.low + (action + 1) / 2 * (space.high - space.low)
        return action

    return act


def train_theirs(task: Task, seed: int) -> Course:
    """Train stable-baselines3's."""
    import stable_baselines3
    from stable_baselines3.common.callbacks import BaseCallback

    kind = stable_baselines3.DQN if task.ours["algo"] == "dqn" else stable_baselines3.SAC
    course = Course(f"sb3 {task.ours['algo']}", seed)

    class Measure(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps % task.every:
                return True
            began = time.perf_counter()
            mean = evaluate(task.env, lambda obs: model.predict(obs, deterministic=True)[0], seed)
            course.curve.append((self.num_timesteps, mean))
            course.seconds -= time.perf_counter() - began
            return mean < task.target

    model = kind("MlpPolicy", task.env, seed=seed, device="cpu", **task.theirs)
    started = time.perf_counter()
    model.learn(task.steps, callback=Measure())
    course.seconds += time.perf_counter() - started
    course.steps = model.num_timesteps
    return course


def table(task: Task, courses: list[Course]) -> str:
    """A line per library."""
    lines = ["| | seeds that got there | steps, median | steps of each | steps/s | seconds |"]
    lines.append("|---|---|---|---|---|---|")
    for name in dict.fromkeys(course.name for course in courses):
        mine = [course for course in courses if course.name == name]
        reached = [course.reached(task.target) for course in mine]
        known = [at for at in reached if at is not None]
        middle = f"{statistics.median(at or task.steps for at in reached):,.0f}" if known else "-"
        each = ", ".join("-" if at is None else f"{at:,}" for at in reached)
        seconds = sum(course.seconds for course in mine)
        speed = sum(course.steps for course in mine) / seconds
        lines.append(
            f"| {name} | {len(known)} of {len(mine)} | {middle} | {each} | {speed:,.0f} "
            f"| {statistics.median(course.seconds for course in mine):.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Train, one after the other in turns, and print a table per task."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TASKS, help="one task")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--ours", action="store_true", help="not stable-baselines3's, unless asked")
    parser.add_argument("--sb3", action="store_true", help="not ours, unless asked")
    parser.add_argument(
        "--set", default="{}", help="settings of ours as JSON, laid over the task's"
    )
    parser.add_argument("--json", help="a file for all curves")
    given = parser.parse_args()
    torch.set_num_threads(1)
    kinds = [train_ours] * (given.ours or not given.sb3)
    kinds += [train_theirs] * (given.sb3 or not given.ours)
    kept: dict[str, Any] = {}
    for name in [given.only] if given.only else TASKS:
        task = changed(TASKS[name], json.loads(given.set))
        courses = []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for train in kinds:
                courses.append(train(task, seed))
                last = courses[-1]
                at = last.reached(task.target)
                print(f"{name} {last.name} seed {seed}: {at} in {last.seconds:.1f} s", flush=True)
        print(f"\n{task.env}: a mean of {task.target:g} over {EPISODES} greedy episodes\n")
        print(table(task, courses), flush=True)
        kept[name] = [vars(course) for course in courses]
    if given.json:
        Path(given.json).write_text(json.dumps(kept), encoding="utf-8")


def changed(task: Task, settings: dict[str, Any]) -> Task:
    """Return the task with some settings of ours changed."""
    ours = dict(task.ours)
    for section, values in settings.items():
        ours[section] = {**ours[section], **values} if isinstance(values, dict) else values
    return replace(task, ours=ours)


if __name__ == "__main__":
    main()
