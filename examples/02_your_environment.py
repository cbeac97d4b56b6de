"""2. Your own environment: a lift, learned from a Gymnasium class in this file.

You learn: what sparring takes of a Gymnasium environment (spaces, masks, names), how to train in
it, and how to find out whether training was worth it.

    python examples/02_your_environment.py
    sparring check examples/02_your_environment.py:make_env     # is the environment sound?
    sparring train examples/02_your_environment.py:make_env     # the same from the command line

It takes 52 s of processor time (README.md says where) and prints:

    random         -40.4 +- 3.5 a day
    by the book      3.0 +- 1.2 a day
    trained         10.0 +- 0.4 a day
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import sparring

FLOORS, STEPS, ARRIVAL = 6, 100, 0.25
DOWN, OPEN, UP = range(3)

Seen = dict[str, Any]


class Lift(gymnasium.Env[Seen, int]):
    """People wait on floors, and the lift brings them to the ground floor.

    A lift has room for all. It is paid 1 for everybody who arrives below, and pays 0.05 for
    everybody who waits or rides, in every step.
    """

    # An observation is a `Box`, or several of them by name. `action_mask` is no part of what the
    # network sees: it says what is legal, and sparring never takes another action.
    observation_space = spaces.Dict(
        {
            "floor": spaces.MultiBinary(FLOORS),
            "waiting": spaces.Box(0, 1, (FLOORS,), np.float32),
            "riding": spaces.Box(0, 1, (1,), np.float32),
            "action_mask": spaces.MultiBinary(3),
        }
    )
    action_space = spaces.Discrete(3)
    action_names = ("down", "open", "up")  # for `sparring play` and in errors

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)  # makes self.np_random, the only chance here
        self.floor, self.riding, self.steps = 0, 0, 0
        self.waiting = np.zeros(FLOORS, np.int64)
        return self.seen(), {}

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        arrived = 0
        if action == OPEN and self.floor == 0:
            arrived, self.riding = self.riding, 0
        elif action == OPEN:
            self.riding += int(self.waiting[self.floor])
            self.waiting[self.floor] = 0
        else:
            self.floor += 1 if action == UP else -1
        if self.np_random.random() < ARRIVAL:
            self.waiting[self.np_random.integers(1, FLOORS)] += 1
        self.steps += 1
        reward = arrived - 0.05 * (int(self.waiting.sum()) + self.riding)
        # The day ends by the clock, not by the rules: that is truncation, and the learner takes
        # into account that people would go on arriving.
        return self.seen(), float(reward), False, self.steps >= STEPS, {}

    def seen(self) -> Seen:
        """Numbers near 1 are learned best."""
        return {
            "floor": np.eye(FLOORS, dtype=np.int8)[self.floor],
            "waiting": np.minimum(self.waiting / 4, 1).astype(np.float32),
            "riding": np.array([min(self.riding / 8, 1)], np.float32),
            "action_mask": np.array([self.floor > 0, 1, self.floor < FLOORS - 1], np.int8),
        }


def make_env() -> Lift:
    """Make one environment. A function with a name is what other processes can call."""
    return Lift()


Choose = Callable[[Lift, Seen], int]


def at_random(env: Lift, seen: Seen) -> int:
    """Any legal action."""
    return int(env.np_random.choice(np.flatnonzero(seen["action_mask"])))


def by_the_book(env: Lift, seen: Seen) -> int:
    """What a simple lift does: up to the highest call, and down again with everybody."""
    called = env.waiting[env.floor] if env.floor else env.riding
    if called:
        return OPEN
    if env.waiting[env.floor + 1 :].any() and not env.riding:
        return UP
    return DOWN if env.floor else OPEN


def days(choose: Choose, count: int) -> np.ndarray:
    """Returns of that many days, the same ones for everybody."""
    env, returns = make_env(), np.zeros(count)
    for day in range(count):
        seen, _ = env.reset(seed=1_000_000 + day)
        over = False
        while not over:
            seen, reward, _, over, _ = env.step(choose(env, seen))
            returns[day] += reward
    return returns


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Compare random play, a rule and an agent; return their mean returns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=float, default=100_000, help="to learn from")
    parser.add_argument("--days", type=int, default=100, help="to measure")
    given = parser.parse_args(arguments)

    # An environment in Python cannot be saved in mid-game, which matters to a run that is resumed
    # alone: its network goes on, in new games. A warning says so at the start of every run.
    warnings.filterwarnings("ignore", ".*cannot be saved")

    # `sparring.train` takes the function itself. Settings for environments in Python differ from
    # those of the games that come along, which play a thousand times as fast.
    agent = sparring.train(
        make_env, decisions=given.decisions, seed=1, quiet=True, eval={"off": True}
    )

    def trained(_env: Lift, seen: Seen) -> int:
        action, _ = agent.predict(seen, deterministic=True)
        return int(action)

    means = {}
    players = {"random": at_random, "by the book": by_the_book, "trained": trained}
    for name, choose in players.items():
        returns = days(choose, given.days)
        means[name] = float(returns.mean())
        half = 1.96 * returns.std(ddof=1) / len(returns) ** 0.5
        print(f"{name:12} {means[name]:7.1f} +- {half:.1f} a day")
    return means


if __name__ == "__main__":
    main()
