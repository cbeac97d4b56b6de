"""Environments of somebody's own, by factories that other processes find: own_envs:make_cards.

Times are added without touching what happens: the same seeds give the same games in all variants.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

CARDS = 12
HAND = 6


def burn(seconds: float) -> None:
    """Take this long on a core, as a simulator does; time without a core does not count."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Delay:
    """How long a step takes, and whether it works or waits; by numbers of its own."""

    def __init__(self, min_s: float, max_s: float, *, sleeps: bool = False) -> None:
        self.min_s, self.max_s = min_s, max_s
        self._take = time.sleep if sleeps else burn
        self._rng = np.random.default_rng(0)

    def reset(self, seed: int | None) -> None:
        """Start the same times again for the same seed."""
        if seed is not None:
            self._rng = np.random.default_rng(seed % 2**64)

    def __call__(self) -> None:
        """Take the time of a step."""
        if self.max_s:
            self._take(float(self._rng.uniform(self.min_s, self.max_s)))


class Cards(gymnasium.Env[Any, Any]):
    """Beat as many of six open cards as you can with six cards of your own, one after the other.

    Paid are the tricks; a game lasts six steps. Masks are in the observation.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, delay: Delay | None = None, render_mode: str | None = None) -> None:
        self.delay, self.render_mode = delay or Delay(0, 0), render_mode
        self.observation_space = spaces.Dict(
            {
                "hand": spaces.MultiBinary(CARDS),
                "open": spaces.Discrete(CARDS),
                "won": spaces.Box(0, 1, (1,), np.float32),
                "action_mask": spaces.MultiBinary(CARDS),
            }
        )
        self.action_space = spaces.Discrete(CARDS)
        self.hand, self.stock, self.won = np.zeros(CARDS, np.int8), [0], 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.delay.reset(seed)
        deck = self.np_random.permutation(CARDS)
        self.hand = np.zeros(CARDS, np.int8)
        self.hand[deck[:HAND]] = 1
        self.stock, self.won = [int(card) for card in deck[HAND:]], 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.hand[action], f"card {action} is not in hand"
        self.delay()
        self.hand[action] = 0
        better = int(action) > self.stock.pop(0)
        self.won += better
        return self._seen(), float(better), not self.stock, False, {}

    def render(self) -> Any:
        """The cards, in a line or as a strip of gray."""
        if self.render_mode == "rgb_array":
            strip = np.repeat(np.repeat(self.hand[None, :, None].astype(int) * 255, 16, 0), 16, 1)
            return np.repeat(strip, 3, 2).astype(np.uint8)
        own = " ".join(str(card) for card in np.flatnonzero(self.hand))
        return f"open {self.stock[0] if self.stock else '-'} | hand {own} | won {self.won}"

    def _seen(self) -> dict[str, Any]:
        shown = self.stock[0] if self.stock else 0
        return {
            "hand": self.hand.copy(),
            "open": np.int64(shown),
            "won": np.array([self.won / HAND], np.float32),
            "action_mask": self.hand.copy(),
        }


class Walk(gymnasium.Env[Any, Any]):
    """Walk along a line to its end, with wind; cut after 30 steps. Floats, no masks."""

    observation_space = spaces.Box(-2, 2, (4,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, delay: Delay | None = None) -> None:
        self.delay, self.place, self.speed, self.age = delay or Delay(0, 0), 0.0, 0.0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.delay.reset(seed)
        self.place, self.speed, self.age = float(self.np_random.uniform(-0.5, 0.5)), 0.0, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.delay()
        self.age += 1
        wind = self.np_random.uniform(-0.05, 0.05)
        self.speed = 0.9 * self.speed + 0.1 * (int(action) - 1) + wind
        self.place = min(max(self.place + self.speed, -1.5), 1.5)
        there = self.place > 1
        return self._seen(), float(there) - 0.01, there, self.age >= 30, {}

    def _seen(self) -> Any:
        return np.array([self.place, self.speed, self.age / 30, 1.0], np.float32)


class Diary(gymnasium.Env[Any, Any]):
    """Shows the number of the episode and its age, pays the age. The number says how it ends."""

    observation_space = spaces.Box(0, 2**24, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.number, self.age = int(self.np_random.integers(2**24)), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        over = self.age == diary_length(self.number)
        return self._seen(), float(self.age), over and self.number % 2 == 0, over, {}

    def _seen(self) -> Any:
        return np.array([self.number, self.age], np.float32)


def diary_length(number: int) -> int:
    """Steps of an episode. Even ones are terminated, odd ones truncated."""
    return 3 + number % 17


class Nim(AECEnv):  # type: ignore[misc]
    """Take one to three of fifteen sticks in turn; who takes the last one wins."""

    metadata = {"name": "nim_v0", "is_parallelizable": False}  # noqa: RUF012
    sticks = 15

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["first", "second"]
        self.left = self.sticks

    def observation_space(self, agent: Any) -> Any:
        """Which sticks are left, and who asks."""
        return spaces.Dict(
            {
                "sticks": spaces.MultiBinary(self.sticks),
                "seat": spaces.Discrete(2),
                "action_mask": spaces.MultiBinary(3),
            }
        )

    def action_space(self, agent: Any) -> Any:
        """Take one, two or three."""
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin with 10 to 15 sticks."""
        if seed is not None or not hasattr(self, "rng"):
            self.rng = np.random.default_rng(None if seed is None else seed % 2**64)
        self.left = int(self.rng.integers(10, self.sticks + 1))
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}

    def observe(self, agent: Any) -> Any:
        """Everything is open."""
        sticks = np.zeros(self.sticks, np.int8)
        sticks[: self.left] = 1
        mask = np.array([self.left > taken for taken in range(3)], np.int8)
        seat = np.int64(self.possible_agents.index(agent))
        return {"sticks": sticks, "seat": seat, "action_mask": mask}

    def step(self, action: Any) -> None:
        """Take sticks."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        other = self.agents[1 - self.agents.index(agent)]
        self._cumulative_rewards[agent] = 0.0
        self.left -= int(action) + 1
        assert self.left >= 0, "more sticks than there are"
        self.rewards = dict.fromkeys(self.agents, 0.0)
        if self.left == 0:
            self.rewards = {agent: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()

    def render(self) -> str:
        """The sticks."""
        return "|" * self.left


class OpenNim(Nim):
    """Nim that says that nothing is hidden, and that one wins what the other loses."""

    perfect_information = True
    zero_sum = True


class Hands(ParallelEnv):  # type: ignore[misc]
    """Rock, paper, scissors, five times; the observation is what both showed last."""

    metadata = {"name": "hands_v0"}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self.shown, self.round = [3, 3], 0

    def observation_space(self, agent: Any) -> Any:
        """Both hands; 3 before anybody showed one."""
        return spaces.MultiDiscrete([4, 4])

    def action_space(self, agent: Any) -> Any:
        """Rock, paper, scissors."""
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Nobody has shown anything."""
        self.agents, self.shown, self.round = list(self.possible_agents), [3, 3], 0
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        """Show hands."""
        left, right = int(actions["left"]), int(actions["right"])
        won = (0.0, 1.0, -1.0)[(left - right) % 3]
        self.shown, self.round = [left, right], self.round + 1
        over = self.round == 5
        here = self.agents
        self.agents = [] if over else here
        flags = dict.fromkeys(here, over)
        rewards = {"left": won, "right": -won}
        return self._seen(), rewards, flags, dict.fromkeys(here, False), {one: {} for one in here}

    def _seen(self) -> dict[str, Any]:
        left, right = self.shown
        return {"left": np.array([left, right]), "right": np.array([right, left])}


def make_cards(render_mode: str | None = None) -> Cards:
    """Make the card game at its own speed."""
    return Cards(render_mode=render_mode)


def make_slow_cards() -> Cards:
    """Make the card game with 5 ms of work in every step."""
    return Cards(Delay(0.005, 0.005))


def make_sleepy_cards() -> Cards:
    """Make the card game with 5 ms of waiting in every step."""
    return Cards(Delay(0.005, 0.005, sleeps=True))


def make_quick() -> Walk:
    """Make the walk with steps of about 50 us."""
    return Walk(Delay(4e-5, 4e-5))


def make_walk() -> Walk:
    """Make the walk at its own speed."""
    return Walk()


def make_uneven() -> Cards:
    """Make the card game with 1 to 50 ms of work in a step."""
    return Cards(Delay(0.001, 0.05))


def make_uneven_sleep() -> Cards:
    """Make the card game with 1 to 50 ms of waiting in a step."""
    return Cards(Delay(0.001, 0.05, sleeps=True))


def make_diary() -> Diary:
    return Diary()


def make_table() -> Nim:
    """Make the game in which agents take turns."""
    return Nim()


def make_open_table() -> OpenNim:
    """Make the same game, which declares what a search relies on."""
    return OpenNim()


def make_parallel() -> Hands:
    """Make the game in which all decide at once."""
    return Hands()


def make_vector() -> Any:
    """Make four card games that step together."""
    return gymnasium.vector.SyncVectorEnv([make_cards] * 4)


class Slots(gymnasium.Env[Any, Any]):
    """A slot machine: nothing to see, nothing to choose, and only what it pays is drawn."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), float(self.np_random.normal()), True, False, {}


def make_slots() -> Slots:
    """A slot machine."""
    return Slots()


def make_slots_vector() -> Any:
    """Four of them."""
    return gymnasium.vector.SyncVectorEnv([Slots] * 4)


def make_nothing() -> None:
    """Make nothing, by mistake."""


def make_trouble() -> Any:
    """Fail."""
    raise OSError("the simulator's port is taken")


make_lambda = partial(Cards, None)


class Screen(gymnasium.Env[Any, Any]):
    """Noise as pixels, of a shape; ends or is cut after some steps, by the seed alone."""

    action_space = spaces.Discrete(3)

    def __init__(self, *shape: int) -> None:
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self.left, self.cut = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left, self.cut = int(self.np_random.integers(1, 8)), bool(self.np_random.integers(2))
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        over = not self.left
        return self._seen(), float(action == 1), over and not self.cut, over and self.cut, {}

    def _seen(self) -> Any:
        shape = self.observation_space.shape
        return self.np_random.integers(0, 256, shape, np.uint8)


def make_screen() -> Screen:
    """Pixels that the nature network reads."""
    return Screen(36, 40, 1)


def make_small_screen() -> Screen:
    """Pixels that are too few for it."""
    return Screen(3, 10, 12)
