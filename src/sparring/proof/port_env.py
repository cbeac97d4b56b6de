"""The environment's side of a port test: optional methods that make it comparable.

Each is a method of the env or of its inner env:

    load(state)         take the position of a native `State`; may return a result as reset() does
    chance(after)       draw in the next step what the native game drew; `after` is its next state
    action_of(number)   the env's action for a native one
    seat_of(agent)      the native seat of an agent
    native_obs(seat)    the observation of a seat, in numbers like `State.observe`
    scores()            the scores of all seats
    state_text()        the position as text
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import USER_CODE_ERRORS, ConfigError
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.pools.custom.encoding import Encoding, encoding_of
from sparring.pools.custom.rules import rules_for
from sparring.proof.contract.drivers import Driver, EnvRaisedError, StepResult
from sparring.proof.contract.gym import VectorDriver
from sparring.proof.contract.values import short


class EnvSide:
    """An env with seats and action numbers of a native game."""

    def __init__(self, driver: Driver, rules: Rules, what: str) -> None:
        if isinstance(driver, VectorDriver):
            raise ConfigError(f"{what} makes a VectorEnv; give a factory of one of its envs")
        self.driver, self.rules, self.what = driver, rules, what
        self.alone = driver.kind == "gymnasium.Env"
        all_agents = driver.all_agents()
        if not self.alone and len(all_agents) != rules.seats:
            raise ConfigError(
                f"{what} has {len(all_agents)} possible_agents, {rules.name} has {rules.seats} "
                "seats; change one of them (--set for the game's flags)"
            )
        numbers = self.hook("seat_of") or all_agents.index
        self.agents = {int(numbers(who)): who for who in all_agents}
        """Agents by seat; a gymnasium.Env has one for all seats."""
        self.encoding = self._encoding()
        self._to_env = rules_for("port", self.encoding, seats=1, rows=1)
        self.result = StepResult()

    def hook(self, name: str) -> Callable[..., Any] | None:
        """Return an optional method, None if the env lacks it."""
        for owner in (self.driver.env, self.driver.env.unwrapped):
            found = getattr(owner, name, None)
            if callable(found):
                method: Callable[..., Any] = found
                return method
        return None

    def call(self, name: str, *words: Any) -> Any:
        """Call an optional method that exists."""
        method = self.hook(name)
        assert method is not None
        try:
            return method(*words)
        except USER_CODE_ERRORS as error:
            raise EnvRaisedError(f"{name}()", error) from error

    def start(self, seed: int, state: State, *, load: bool) -> None:
        """Start a game; with `load`, in the native position."""
        self.result = StepResult()
        self.result = self.driver.reset(seed)
        if load:
            self.load(state)

    def load(self, state: State) -> None:
        self.result = self.driver.read_position(self.call("load", state))

    def step(self, state: State, action: Any, after: State) -> None:
        """Step with a native action; `after` is the native state that it has led to."""
        if self.hook("chance"):
            self.call("chance", after)
        if self.alone:
            (who,) = self.driver.all_agents()
            chosen = {who: self.env_action(action)}
        elif self.rules.rows == 1:
            chosen = {self.agents[state.seat]: self.env_action(action)}
        else:
            rows = [(row, state.native.seat(row)) for row in range(self.rules.rows)]
            seated = [(row, seat) for row, seat in rows if seat >= 0]
            chosen = {self.agents[seat]: self.env_action(action[row]) for row, seat in seated}
        self.result = StepResult()  # an env that raises has no result
        self.result = self.driver.step(chosen)

    def env_action(self, action: Any) -> Any:
        if self.rules.box:
            return self._to_env.env_actions(np.asarray(action).reshape(-1))
        if self.hook("action_of"):
            return self.call("action_of", int(action))
        return int(self._to_env.env_actions(action))

    def seats_to_act(self) -> list[int]:
        """Seats of the agents that decide; a gymnasium.Env does not say."""
        seats = {who: seat for seat, who in self.agents.items()}
        return sorted(seats[who] for who in self.result.deciding)

    def legal(self, seat: int) -> list[int] | None:
        """Native numbers of the actions that the env allows; None without a mask."""
        mask = self.result.mask.get(self._who(seat))
        if mask is None:
            return None
        indices = enumerate(self._mask_indices)
        return [number for number, at in indices if 0 <= at < len(mask) and mask[at]]

    @cached_property
    def _mask_indices(self) -> list[int]:
        """Index of every native action in the env's masks."""
        first = self.encoding.first_action
        return [int(self.env_action(number)) - first for number in range(self.rules.actions)]

    def last_legal(self) -> dict[int, list[int]]:
        """Actions that the masks allow after the end, by seat."""
        found = {}
        for seat, who in self.agents.items():
            obs = self.result.last.get(who)
            mask = obs.get("action_mask") if isinstance(obs, dict) else None
            mask = self.result.mask.get(who) if mask is None else mask
            if mask is not None:
                found[seat] = [int(at) for at in np.flatnonzero(np.asarray(mask))]
        return found

    def rewards(self, mover: int) -> dict[int, float]:
        """Rewards of the last step by seat; that of a gymnasium.Env is the mover's."""
        if self.alone:
            return {mover: float(next(iter(self.result.reward.values())))}
        return {seat: float(self.result.reward.get(who, 0.0)) for seat, who in self.agents.items()}

    def ended(self) -> tuple[bool, bool]:
        """Whether the game is terminated, and whether it is truncated."""
        if not self.result.over:
            return False, False
        return any(self.result.terminated.values()), any(self.result.truncated.values())

    def observation(self, seat: int) -> npt.NDArray[np.float32] | None:
        """The observation of a seat in native numbers; None if it is not comparable."""
        if self.hook("native_obs"):
            return np.asarray(self.call("native_obs", seat), np.float32).ravel()
        obs = self.result.obs.get(self._who(seat))
        if obs is None or self.encoding.numbers != len(self.rules.features):
            return None
        return self.encoding.flatten(obs)

    def text(self) -> str:
        if self.hook("state_text"):
            return str(self.call("state_text"))
        if getattr(self.driver.env, "render_mode", None) == "ansi":
            return str(self.driver.call("render"))
        plain = self.driver.env.unwrapped
        if type(plain).__str__ not in (object.__str__, *base_texts(plain)):
            return str(plain)
        seen = {**self.result.obs, **self.result.last}
        return "\n".join(f"{who} sees {short(obs)}" for who, obs in seen.items())

    def scores(self) -> Sequence[float] | None:
        """Scores of all seats, if the env has them."""
        return [float(one) for one in self.call("scores")] if self.hook("scores") else None

    def _who(self, seat: int) -> Any:
        return next(iter(self.agents.values())) if self.alone else self.agents[seat]

    def _encoding(self) -> Encoding:
        who = next(iter(self.agents.values()))
        spaces = self.driver.observation_space(who), self.driver.action_space(who)
        encoding = encoding_of(*spaces, self.what)
        if bool(encoding.bounds) != bool(self.rules.box):
            raise ConfigError(
                f"actions of {self.what} are {spaces[1]}, those of {self.rules.name} are "
                f"{self.rules.box or self.rules.actions} "
                f"{'numbers' if self.rules.box else 'choices'}"
            )
        if not self.hook("action_of") and encoding.actions != self.rules.actions:
            raise ConfigError(
                f"{self.what} has {encoding.actions} actions, {self.rules.name} has "
                f"{self.rules.actions}; say with a method action_of(number) which is which"
            )
        return encoding


def base_texts(env: Any) -> list[Any]:
    """The `__str__` methods of libraries, which show no position."""
    libraries = ("gymnasium", "pettingzoo")
    return [
        kind.__dict__["__str__"]
        for kind in type(env).__mro__
        if "__str__" in kind.__dict__ and kind.__module__.split(".")[0] in libraries
    ]
