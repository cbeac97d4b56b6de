"""Illegal actions of learners without masks: an error, or replaced by a legal one and counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, suggestion
from sparring.games.rules import Rules
from sparring.games.seeds import seed_bits

CHOICES = ("error", "random")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class IllegalActions:
    """Replaces illegal actions with random legal ones, reproducible by seed."""

    def __init__(
        self, rules: Rules, choice: str, reward: float, *, games: int, seed: int, first_game: int
    ) -> None:
        """Choose what an illegal action leads to.

        choice: "error" raises; "random" plays a random legal action instead.
        reward: added to the learner's reward for it.
        """
        if choice not in CHOICES:
            raise ConfigError(f"illegal={choice!r} is unknown{suggestion(choice, CHOICES)}")
        if not math.isfinite(reward):
            raise ConfigError(f"illegal_reward={reward} must be finite")
        if reward and choice == "error":
            raise ConfigError(f'illegal_reward={reward} needs illegal="random"; here it is "error"')
        self.rules, self.reward, self.replaces = rules, reward, choice == "random"
        self._index = np.arange(first_game, first_game + games, dtype=np.uint64)
        self.count = np.zeros(games, np.int64)
        """Illegal actions in the episode of each game."""
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Restart the random stream with a seed."""
        self._seed = np.uint64(seed_bits(seed))
        self._drawn = np.zeros(len(self.count), np.uint64)

    def replace(
        self, given: npt.NDArray[Any], mask: npt.NDArray[np.bool_], held: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the actions to play, and the games whose action was illegal.

        Actions outside the action space stay, and raise later.
        """
        wrong = np.zeros(len(given), np.bool_)
        if not self.replaces or self.rules.box:
            return given, wrong
        known = (given >= 0) & (given < self.rules.actions) | held
        if not known.all():  # the whole step will be refused
            return given, wrong
        asked = ~held & mask.any(axis=1)  # nobody is before the first reset
        wrong[asked] = ~mask[asked, given[asked]]
        games = np.flatnonzero(wrong)
        if not len(games):
            return given, wrong
        played = given.copy()
        played[games] = self._draw(mask[games], games)
        self.count[games] += 1
        return played, wrong

    def _draw(
        self, mask: npt.NDArray[np.bool_], games: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.intp]:
        keys = splitmix64(splitmix64(self._seed + self._index[games] * GOLDEN) ^ self._drawn[games])
        self._drawn[games] += np.uint64(1)
        wanted = keys % mask.sum(axis=1).astype(np.uint64)
        chosen: npt.NDArray[np.intp] = (mask.cumsum(axis=1) > wanted[:, None]).argmax(axis=1)
        return chosen


def splitmix64(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash 64-bit keys (the finalizer of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
