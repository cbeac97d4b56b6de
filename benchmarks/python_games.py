"""One game four ways: interpreted, a PettingZoo env in workers, compiled, a native header.

    python benchmarks/python_games.py --seconds 3

Decisions per second of random play of Connect Four on one core, contenders in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

import sparring
from sparring import trusted
from sparring.machine import machine_info
from sparring.pools.workers import WorkerPool
from sparring.pygames.registry import register

RULES = f"{Path(__file__).parents[1] / 'examples/python_games/connect_four.py'}:ConnectFour"
COLUMNS, ROWS = 7, 6


class ConnectFourEnv(AECEnv[str, Any, int]):
    """Connect Four as people write it for PettingZoo: lists, plain loops."""

    metadata = {"name": "connect_four", "is_parallelizable": False}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["player_0", "player_1"]
        seen = spaces.Box(0, 1, (2, ROWS, COLUMNS), np.int8)
        mask = spaces.Box(0, 1, (COLUMNS,), np.int8)
        space = spaces.Dict({"observation": seen, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {name: spaces.Discrete(COLUMNS) for name in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.board = [[0] * COLUMNS for _ in range(ROWS)]
        self.height = [0] * COLUMNS
        self.agent_selection = "player_0"
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {name: {} for name in self.agents}

    def observe(self, agent: str) -> Any:
        me = self.possible_agents.index(agent) + 1
        board = np.array(self.board)
        seen = np.stack([board == me, board == 3 - me]).astype(np.int8)
        mask = np.array([height < ROWS for height in self.height], np.int8)
        if agent != self.agent_selection or any(self.terminations.values()):
            mask[:] = 0
        return {"observation": seen, "action_mask": mask}

    def step(self, action: int) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        me = self.possible_agents.index(agent)
        row = self.height[action]
        self.board[row][action] = me + 1
        self.height[action] += 1
        self._cumulative_rewards[agent] = 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        other = self.possible_agents[1 - me]
        if self.has_four(row, action):
            self.rewards = {agent: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        elif all(height == ROWS for height in self.height):
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()

    def has_four(self, row: int, column: int) -> bool:
        color = self.board[row][column]
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            count = 1
            for sign in (-1, 1):
                r, c = row + sign * down, column + sign * right
                while 0 <= r < ROWS and 0 <= c < COLUMNS and self.board[r][c] == color:
                    count += 1
                    r, c = r + sign * down, c + sign * right
            if count >= 4:
                return True
        return False


def make_env() -> ConnectFourEnv:
    return ConnectFourEnv()


def rate_of_pool(pool: Any, seconds: float) -> float:
    """Decisions per second of a pool that plays random actions from Python."""
    pool.reset()
    games, decisions = pool.num_games, 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        pool.step(pool.sample_actions())
        decisions += games
    return decisions / (time.perf_counter() - began)


def rate_of_workers(seconds: float) -> float:
    """The same of environments in one worker process."""
    with WorkerPool(f"{Path(__file__).resolve()}:make_env", 64, workers=1) as pool:
        pool.reset()
        rng, decisions = np.random.default_rng(0), 0
        for slot in range(pool.slots):
            pool.send(drawn(pool.batch(slot), rng), slot)
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for slot in pool.ready(range(pool.slots), timeout_s=10):
                batch = pool.recv(slot)
                decisions += len(batch.mask)
                pool.send(drawn(batch, rng), slot)
        return decisions / (time.perf_counter() - began)


def drawn(batch: Any, rng: Any) -> Any:
    """Draw a legal action for every row."""
    return (batch.mask * rng.random(batch.mask.shape)).argmax(1)


def contenders(seconds: float) -> Iterator[tuple[str, Callable[[], float]]]:
    def of_pool(name: str, games: int) -> Callable[[], float]:
        return lambda: rate_of_pool(sparring.Pool(name, games, threads=1), seconds)

    yield "interpreted", of_pool(register(RULES, interpreted=True), 64)
    yield "PettingZoo env, one worker", lambda: rate_of_workers(seconds)
    yield "compiled", of_pool(register(RULES), 4096)
    yield "native header", of_pool("connect_four", 4096)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    trusted.allow(RULES, f"{Path(__file__).resolve()}:make_env")
    ways = dict(contenders(options.seconds))
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, run in ways.items():
            rates[name].append(run())
    base = median(rates["interpreted"])
    for name, found in rates.items():
        print(f"{name:28} {median(found):12,.0f} decisions/s  {median(found) / base:8.1f} x")
    print(machine_info())


if __name__ == "__main__":
    main()
