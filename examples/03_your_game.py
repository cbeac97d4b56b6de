"""3. Your own game for two: Nim as a PettingZoo environment, learned by self-play.

You learn: how a game in Python looks to sparring, how one network plays both seats, and how to
measure an agent where perfect play is known.

    python examples/03_your_game.py
    sparring check examples/03_your_game.py:make_game
    sparring train examples/03_your_game.py:make_game

It takes 25 s of processor time (README.md says where) and prints:

    against random play 92.8% (89.5% to 95.0%)
    of 106 positions that can be won, its move wins 88
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

import sparring

HEAPS, TALLEST = 3, 4
ACTIONS = HEAPS * TALLEST
"""Action 4 * heap + n - 1 takes n stones from a heap."""


class Nim(AECEnv):  # type: ignore[misc]
    """Three heaps of stones. A move takes any number from one heap; who takes the last one wins."""

    metadata = {"name": "nim", "is_parallelizable": False}  # noqa: RUF012
    possible_agents = ["first", "second"]  # noqa: RUF012
    action_names = tuple(
        f"{n} from {'abc'[h]}" for h in range(HEAPS) for n in range(1, TALLEST + 1)
    )
    perfect_information = True  # nothing is hidden, so that agents may search (08_search.py)
    zero_sum = True

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The heaps, each one-hot; the mask is no part of what a network sees."""
        heaps = spaces.MultiBinary(HEAPS * (TALLEST + 1))
        return spaces.Dict({"heaps": heaps, "action_mask": spaces.MultiBinary(ACTIONS)})

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Any move; the mask says which are legal."""
        return spaces.Discrete(ACTIONS)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin with any heaps, so that an agent meets all positions."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.heaps = np.zeros(HEAPS, np.int64)
        while not self.heaps.any():
            self.heaps = self.rng.integers(0, TALLEST + 1, HEAPS)
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}

    def observe(self, agent: str) -> dict[str, Any]:
        """What either agent sees: the same, as it is always asked about its own move."""
        return {"heaps": row_of(self.heaps), "action_mask": legal_of(self.heaps)}

    def step(self, action: int | None) -> None:
        """Take stones; pay the winner 1 and the loser -1."""
        mover = self.agent_selection
        if self.terminations[mover]:
            self._was_dead_step(action)  # PettingZoo's way of saying goodbye
            return
        assert action is not None
        self._cumulative_rewards[mover] = 0.0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        heap, stones = divmod(int(action), TALLEST)
        self.heaps[heap] -= stones + 1
        (other,) = (agent for agent in self.agents if agent != mover)
        if not self.heaps.any():
            self.rewards = {mover: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()


def row_of(heaps: np.ndarray) -> np.ndarray:
    """Each heap one-hot."""
    return np.eye(TALLEST + 1, dtype=np.int8)[heaps].ravel()


def legal_of(heaps: np.ndarray) -> np.ndarray:
    """1 for every move that a heap has stones for."""
    return (np.arange(1, TALLEST + 1) <= heaps[:, None]).astype(np.int8).ravel()


def make_game() -> Nim:
    """Make one game."""
    return Nim()


def right_moves(agent: Any) -> tuple[int, int]:
    """Count the positions that can be won, and those in which the agent's move wins.

    Bouton, 1901: a move wins if it leaves heaps whose exclusive or is 0.
    """
    heaps = np.array([h for h in product(range(TALLEST + 1), repeat=HEAPS) if h[0] ^ h[1] ^ h[2]])
    seen = {
        "heaps": np.array([row_of(one) for one in heaps]),
        "action_mask": np.array([legal_of(one) for one in heaps]),
    }
    moves, _ = agent.predict(seen, deterministic=True)
    right = 0
    for before, move in zip(heaps, moves, strict=True):
        heap, stones = divmod(int(move), TALLEST)
        after = before.copy()
        after[heap] -= stones + 1
        right += int(np.bitwise_xor.reduce(after) == 0)
    return len(heaps), right


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train by self-play; return the win share against random play and that of right moves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=float, default=120_000, help="to learn from")
    parser.add_argument("--games", type=int, default=400, help="against random play")
    given = parser.parse_args(arguments)

    # Games in Python cannot be saved in mid-game, of which a run warns (02_your_environment.py).
    warnings.filterwarnings("ignore", ".*cannot be saved")

    # `opponents="self"`: the network has both seats and learns from the moves of both. Others can
    # be mixed, as in `opponents=["self=3", "random=1"]`; every game draws one of them.
    agent = sparring.train(
        make_game,
        decisions=given.decisions,
        opponents="self",
        seed=1,
        quiet=True,
        eval={"off": True},
        collect={"games": 64, "steps": 32},
        ppo={
            "gamma": 1.0,
            "lr": "0%:3e-3,100%:3e-4",
            "entropy": 0.03,
        },  # no win is worth less for being late
    )
    match = agent.evaluate("random", games=given.games)["random"].first
    low, high = match.win_interval
    print(f"against random play {match.win_share:.1%} ({low:.1%} to {high:.1%})")
    positions, right = right_moves(agent)
    print(f"of {positions} positions that can be won, its move wins {right}")
    return match.win_share, right / positions


if __name__ == "__main__":
    main()
