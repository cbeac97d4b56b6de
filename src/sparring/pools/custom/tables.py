"""One environment as a game with seats."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sparring.errors import USER_CODE_ERRORS, ConfigError, SparringError
from sparring.pools.custom.base import check_finite
from sparring.pools.custom.copies import clone_env, reseed_env
from sparring.pools.custom.encoding import MASK, Encoding
from sparring.pools.custom.faults import empty_mask_error

ARRAYS = ("numbers", "mask", "reward", "inside", "terminated", "truncated")
"""Attributes of a table that hold its state beside the env's."""


class EnvTable(ABC):
    """One env: observations, masks, rewards and ends of its seats."""

    def __init__(self, env: Any, index: int, agents: Sequence[Any], encodings: list[Encoding]):
        self.env, self.index, self.agents, self.encodings = env, index, tuple(agents), encodings
        self.seats = {agent: seat for seat, agent in enumerate(agents)}
        self.name = env_name(env)
        self.steps = 0
        self.masked: bool | None = None
        """Whether decisions come with masks; the first one decides."""
        count = len(agents)
        self.numbers = np.zeros((count, encodings[0].numbers), encodings[0].dtype)
        """Last observation of every seat, as floats or as bytes."""
        self.mask = np.zeros((count, encodings[0].actions), np.uint8)
        self.reward = np.zeros(count)
        self.inside = np.zeros(count, np.bool_)
        self.terminated = np.zeros(count, np.bool_)
        self.truncated = np.zeros(count, np.bool_)

    @abstractmethod
    def start(self, seed: int | None) -> None:
        """Reset the env and read its first observations."""

    @abstractmethod
    def play(self, actions: npt.NDArray[Any]) -> None:
        """Step the env; the rows of `actions` belong to the seats of `deciding()`."""

    @abstractmethod
    def deciding(self) -> list[int]:
        """Return the seat of every row; -1: none."""

    def clone(self) -> Self:
        """Return a table with a copy of the env."""
        twin = copy.copy(self)
        twin.env = clone_env(self.env, self.name)
        for name in ARRAYS:
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def check_clones(self, actions: npt.NDArray[Any]) -> None:
        """Refuse an env of which two copies do not play alike.

        They may share with the env what a step changes: a search would play its moves in the real
        game. actions: legal ones, as in `play`.
        """
        seen = []
        for attempt in range(2):
            twin = self.clone()
            reseed_env(twin.env, 0)
            try:
                twin.play(actions)
            except USER_CODE_ERRORS:
                if not attempt:
                    raise
            seen.append(twin)
        if not all(np.array_equal(*(getattr(twin, name) for twin in seen)) for name in ARRAYS):
            raise ConfigError(
                f"search copies {self.name}, and two copies play differently after the same "
                "action; clone() has to copy all that a step changes, random generators too"
            )

    def see_all(self) -> None:
        """Store what every seat sees, also those that do not decide."""
        return  # as the step has done

    def one(self, actions: npt.NDArray[Any], row: int) -> Any:
        """One row's action in the form that the env takes: a number, or an array."""
        first = self.encodings[0]
        return np.array(actions[row]) if first.bounds or first.choices else int(actions[row])

    @property
    def over(self) -> bool:
        """Whether no agent is left."""
        return True not in self.inside.tolist()  # of a few, faster than asking the array

    def clear(self) -> None:
        """Clear the state of the last episode."""
        for array in (self.numbers, self.mask, self.reward):
            array.fill(0)
        for flags in (self.inside, self.terminated, self.truncated):
            flags.fill(False)

    def see(self, agent: Any, obs: Any, info: Mapping[str, Any], *, last: bool = False) -> None:
        """Store an agent's observation and mask; last: it decides no more."""
        seat = self.seats[agent]
        encoding = self.encodings[seat]
        encoding.write(obs, self.numbers[seat])
        if encoding.bounds:
            return
        given = encoding.mask_in(obs) if encoding.masked else info.get(MASK)
        if not last:
            if self.masked is None:
                self.masked = given is not None
            if self.masked != (given is not None):
                raise SparringError(
                    f"{self.where}: {agent} has {'no' if self.masked else 'an'} {MASK}, "
                    "unlike other decisions; give one with every decision or with none"
                )
        self.mask[seat] = 1 if given is None else encoding.mask(given)

    def leave(self, agent: Any, *, terminated: bool) -> None:
        """Mark an agent as out; one that is both terminated and truncated is terminated."""
        seat = self.seats[agent]
        self.inside[seat] = False
        self.terminated[seat], self.truncated[seat] = terminated, not terminated

    def enter(self, agents: Sequence[Any]) -> None:
        """Mark agents as in; refuse agents that return, or vanish without an end."""
        for agent in agents:
            if agent not in self.seats:
                raise SparringError(f"{self.where}: {agent} is not one of possible_agents")
            seat = self.seats[agent]
            if self.terminated[seat] or self.truncated[seat]:
                raise SparringError(
                    f"{self.where}: {agent} came back after its end; an agent plays once per "
                    "episode"
                )
            self.inside[seat] = True
        for agent, seat in self.seats.items():
            if self.inside[seat] and agent not in agents:
                raise SparringError(
                    f"{self.where}: {agent} is gone from agents and was neither "
                    "terminated nor truncated"
                )

    def check(self) -> None:
        """Refuse observations and rewards that are not finite, and masks of zeros."""
        for seat, agent in enumerate(self.agents):
            check_finite(f"{self.where} ({agent})", self.numbers[seat], self.reward[seat])
        for seat in self.deciding() if not self.encodings[0].bounds else ():
            if seat >= 0 and not self.mask[seat].any():
                raise empty_mask_error(self.where, seat)

    @property
    def where(self) -> str:
        """Beginning of error messages."""
        return f"{self.name} env {self.index}, step {self.steps}"


class TurnTable(EnvTable):
    """An AECEnv: one agent decides at a time."""

    def start(self, seed: int | None) -> None:
        self.clear()
        self.env.reset(seed=seed)
        self.enter(self.env.agents)
        self._earned = dict(self.env._cumulative_rewards)
        self._find_next()

    def play(self, actions: npt.NDArray[Any]) -> None:
        """Step with the selected agent's action, then step agents that are out with None."""
        env = self.env
        agent = env.agent_selection
        self.steps += 1
        env.step(self.one(actions, 0))
        # `last()` returns what an agent has earned since it acted. Paid as differences, all of it
        # arrives before the agent's next decision, whenever the env adds it up.
        self._earned[agent] = 0.0
        for one, total in env._cumulative_rewards.items():
            self.reward[self.seats[one]] = total - self._earned.get(one, 0.0)
        self._earned = dict(env._cumulative_rewards)
        self._find_next()

    def deciding(self) -> list[int]:
        return [-1 if self.over else self.seats[self.env.agent_selection]]

    def clone(self) -> Self:
        twin = super().clone()
        twin._earned = dict(self._earned)
        return twin

    def see_all(self) -> None:
        for agent in self.env.agents:
            seat = self.seats[agent]
            self.encodings[seat].write(self.env.observe(agent), self.numbers[seat])

    def _find_next(self) -> None:
        env = self.env
        gone = [a for a in env.agents if env.terminations[a] or env.truncations[a]]
        for agent in gone:  # all of them, before the first one is removed
            self.see(agent, env.observe(agent), env.infos.get(agent, {}), last=True)
            self.leave(agent, terminated=bool(env.terminations[agent]))
        for _ in range(len(gone)):
            agent = env.agent_selection
            if agent not in gone:
                break  # the others step when it is their turn
            env.step(None)
            if agent in env.agents:
                raise SparringError(f"{self.where}: {agent} stays in agents after its last step")
        left = [a for a in env.agents if a not in gone]
        self.enter(left)
        if left:
            agent = env.agent_selection
            self.see(agent, env.observe(agent), env.infos.get(agent, {}))


class ParallelTable(EnvTable):
    """A ParallelEnv: all agents decide at once."""

    def start(self, seed: int | None) -> None:
        self.clear()
        obs, infos = self.env.reset(seed=seed)
        self._look(obs, infos, self.env.agents)

    def play(self, actions: npt.NDArray[Any]) -> None:
        """Step with the actions of all agents that are in."""
        given = {
            agent: self.one(actions, seat)
            for agent, seat in self.seats.items()
            if self.inside[seat]
        }
        self.steps += 1
        obs, rewards, terminated, truncated, infos = self.env.step(given)
        for agent in given:
            self.reward[self.seats[agent]] = rewards.get(agent, 0.0)
        over = {agent for agent in given if terminated.get(agent) or truncated.get(agent)}
        for agent in over:
            if agent in obs:
                self.see(agent, obs[agent], infos.get(agent, {}), last=True)
            elif not terminated.get(agent):
                raise SparringError(
                    f"{self.where}: {agent} is truncated without a last observation; what would "
                    "have followed cannot be estimated"
                )
            self.leave(agent, terminated=bool(terminated.get(agent)))
        # Some envs still list agents that are out, with their flags set.
        agents = [a for a in self.env.agents if not (terminated.get(a) or truncated.get(a))]
        self._look(obs, infos, agents)

    def deciding(self) -> list[int]:
        """Every seat that is in, in order; -1 for the others."""
        return [seat if self.inside[seat] else -1 for seat in range(len(self.agents))]

    def _look(
        self, obs: Mapping[Any, Any], infos: Mapping[Any, Any], agents: Sequence[Any]
    ) -> None:
        self.enter(agents)
        for agent in agents:
            if agent not in obs:
                raise SparringError(f"{self.where}: no observation for {agent}")
            self.see(agent, obs[agent], infos.get(agent, {}))


def env_name(env: Any) -> str:
    """The name in the env's metadata, or its class."""
    metadata = getattr(env, "metadata", None) or {}
    return str(metadata.get("name") or type(env.unwrapped).__name__)
