"""Small environments with one mistake each, all of them made by somebody before."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from own_envs import Hands, Nim

ACTIONS = 4


class Good(gymnasium.Env[Any, Any]):
    """Nothing is wrong with it: six steps, a number that is drawn, masks in the info."""

    observation_space: Any = spaces.Box(-1, 10, (2,), np.float32)
    action_space: Any = spaces.Discrete(ACTIONS)
    length = 6

    def __init__(self) -> None:
        self.age, self.drawn = 0, 0.0

    def draw(self) -> float:
        return float(self.np_random.uniform(0, 1))

    def start(self) -> None:
        self.age, self.drawn = 0, self.draw()

    def look(self) -> Any:
        return np.array([self.age, self.drawn], np.float32)

    def legal(self) -> Any:
        mask = np.ones(ACTIONS, np.int8)
        mask[self.age % ACTIONS] = 0
        return mask

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.legal()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.start()
        return self.look(), self.info()

    def move(self, action: Any) -> None:
        if not self.legal()[action]:
            raise ValueError(f"{action} is forbidden")
        self.age, self.drawn = self.age + 1, self.draw()

    def step(self, action: Any) -> Any:
        self.move(action)
        over = self.age == self.length
        return self.look(), float(action), over, False, self.info()


class Cut(Good):
    """Ends by truncation, as a time limit does."""

    def step(self, action: Any) -> Any:
        self.move(action)
        return self.look(), 1.0, False, self.age == self.length, self.info()


class WideNumbers(Good):
    def look(self) -> Any:
        return super().look().astype(np.float64)


class Beyond(Good):
    def look(self) -> Any:
        return super().look() * (3 if self.age == 4 else 1)


class NotANumber(Good):
    def look(self) -> Any:
        return np.array([np.nan if self.age == 2 else 0, 0], np.float32)


class AList(Good):
    def look(self) -> Any:
        return [0.0, 0.0]


class Paper(Good):
    observation_space = spaces.Text(9)

    def look(self) -> Any:
        return "a"


class EndlessPay(Good):
    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, float("inf") if self.age == 3 else 0.0, *rest


class SomeMasks(Good):
    def info(self) -> dict[str, Any]:
        return super().info() if self.age < 3 else {}


class EmptyMask(Good):
    def legal(self) -> Any:
        return super().legal() * (self.age != 3)


class LongMask(Good):
    def info(self) -> dict[str, Any]:
        return {"action_mask": np.ones(ACTIONS + 1, np.int8)}


class LyingMask(Good):
    def info(self) -> dict[str, Any]:
        return {"action_mask": np.ones(ACTIONS, np.int8)}


class OneArray(Good):
    """Writes all observations into one array."""

    def __init__(self) -> None:
        super().__init__()
        self.array = np.zeros(2, np.float32)

    def look(self) -> Any:
        self.array[:] = self.age, self.drawn
        return self.array


class StartsAgain(Good):
    """Begins the next episode by itself and shows that."""

    def step(self, action: Any) -> Any:
        self.age, over = self.age + 1, self.age + 1 == self.length
        if over:
            self.start()
        return self.look(), 0.0, over, False, self.info()


class ResetsItself(Cut):
    """Ends with a reset, after numbers were drawn."""

    def step(self, action: Any) -> Any:
        obs, *rest, info = super().step(action)
        if self.age == self.length:
            obs, info = self.reset()
        return obs, *rest, info


class ResettingWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Resets what it wraps and keeps the last observation in the info, as old vectors did."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            last = obs
            obs, info = self.env.reset()
            info["final_observation"] = last
        return obs, reward, terminated, truncated, info


def make_resetting() -> ResettingWrapper:
    return ResettingWrapper(Cut())


class StartsAgainAtTheLimit(Cut):
    """The same, where every episode begins alike."""

    def draw(self) -> float:
        return 0.0

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        if self.age == self.length:
            self.start()
        return self.look(), *rest


class Remembers(Good):
    def start(self) -> None:
        super().start()
        self.drawn += getattr(self, "episodes", 0)
        self.episodes = 1


class NeverSeeded(Good):
    def draw(self) -> float:
        return float(np.random.default_rng().uniform(0, 1))


class EverybodysNumbers(Good):
    def draw(self) -> float:
        return random.random() if self.age % 2 else float(np.random.rand())


class DrawnWhenMade(Good):
    def __init__(self) -> None:
        super().__init__()
        self.world = random.random()

    def look(self) -> Any:
        return np.array([self.age, self.world], np.float32)


class OneForAll(Good):
    """Keeps its age in the class."""

    def start(self) -> None:
        super().start()
        OneForAll.common = 0

    def move(self, action: Any) -> None:
        super().move(action)
        OneForAll.common += 1

    def look(self) -> Any:
        return np.array([OneForAll.common, self.drawn], np.float32)


class ByHash(Good):
    """Walks through a set of words, whose order every process has its own."""

    def look(self) -> Any:
        order = "".join(word[-1] for word in {f"word {i}" for i in range(9)})
        return np.array([self.age, float(f"0.{order}")], np.float64).astype(np.float32)


class NoEnd(Good):
    length = -1

    def look(self) -> Any:
        return np.zeros(2, np.float32)


class TwoResets(Good):
    """A second reset before the first step gives something else."""

    fresh = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        obs[1] += self.fresh
        self.fresh = True
        return obs, info

    def move(self, action: Any) -> None:
        super().move(action)
        self.fresh = False


class OldStep(Good):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, info


class OldReset(Good):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]


class NumbersForFlags(Good):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, int(terminated), truncated, info


class ClosesOnce(Good):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("there is no window")
        self.closed = True


class NeverCloses(Good):
    def close(self) -> None:
        raise RuntimeError("there never was a window")


class GoesOn(Good):
    """Plays on after its end."""

    def move(self, action: Any) -> None:
        super().move(action)
        self.age %= self.length + 1


class Breaks(Good):
    def move(self, action: Any) -> None:
        super().move(action)
        if self.age == 5:
            raise ZeroDivisionError("0 cards left")


class StaysInAgents(Nim):
    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            return
        super().step(action)


class WrongTurn(Nim):
    def step(self, action: Any) -> None:
        super().step(action)
        if self.agents and self.left == 5:
            self.agent_selection = "third"


class ForgetsAPlayer(Nim):
    def step(self, action: Any) -> None:
        super().step(action)
        if self.agents and self.left < 8:
            self.rewards = {self.agents[0]: 0.0}


class SlipsAway(Hands):
    def step(self, actions: Any) -> Any:
        answer = super().step(actions)
        if self.round == 3:
            self.agents = ["left"]
        return answer


class ShortAnswer(Hands):
    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, {"left": rewards["left"]}, *rest


class LastUnseen(ParallelEnv):  # type: ignore[misc]
    """Is truncated and shows nothing any more."""

    metadata = {"name": "unseen_v0"}  # noqa: RUF012
    possible_agents = ["one"]  # noqa: RUF012

    def observation_space(self, agent: Any) -> Any:
        return spaces.Discrete(9)

    def action_space(self, agent: Any) -> Any:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.age = ["one"], 0
        return {"one": 0}, {"one": {}}

    def step(self, actions: Any) -> Any:
        self.age += 1
        cut = self.age == 4
        self.agents = [] if cut else ["one"]
        seen = {} if cut else {"one": self.age}
        return seen, {"one": 0.0}, {"one": False}, {"one": cut}, {"one": {}}


class Vector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Two games of five and seven steps that reset in the step after their end."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012
    num_envs = 2
    single_observation_space = spaces.Box(0, 9, (1,), np.float32)
    single_action_space = spaces.Discrete(2)
    observation_space = spaces.Box(0, 9, (2, 1), np.float32)
    action_space = spaces.MultiDiscrete([2, 2])
    pay = 0.0
    """In a step that only resets."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.age, self.held = np.zeros(2, int), np.zeros(2, bool)
        return self.look(), {}

    def look(self) -> Any:
        return self.age[:, None].astype(np.float32)

    def step(self, actions: Any) -> Any:
        self.age = np.where(self.held, 0, self.age + 1)
        reward = np.where(self.held, self.pay, 1.0)
        self.held = self.age == [5, 7]
        return self.look(), reward, self.held.copy(), np.zeros(2, bool), {}


class PaysForAReset(Vector):
    pay = 1.0


class SaysNothing(Vector):
    metadata: Any = {}  # noqa: RUF012


class SaysSameStep(Vector):
    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012


def make_by_hash() -> ByHash:
    """Make the env that plays otherwise in every process."""
    return ByHash()
