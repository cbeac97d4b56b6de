"""An environment beside a native game: what it may offer so that the two can be compared.

Everything is optional, a method of the env itself or of what it wraps:

    load(state)         take on the position of a native `State`; what it returns, if anything, is
                        taken as an answer of reset()
    chance(after)       draw in the next step what the native game drew; `after` is its state then
    action_of(number)   the env's own action for a native one
    seat_of(agent)      the native seat of an agent
    native_obs(seat)    what a seat sees, as numbers like `State.observe`
    scores()            the points of all seats
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
from sparring.proof.contract.drivers import Driver, EnvRaisedError, Moment
from sparring.proof.contract.gym import VectorDriver
from sparring.proof.contract.values import short


class EnvSide:
    """An env in the words of a native game: seats instead of agents, numbers for actions."""

    def __init__(self, driver: Driver, rules: Rules, what: str) -> None:
        if isinstance(driver, VectorDriver):
            raise ConfigError(f"{what} makes a VectorEnv; give a factory of one of its envs")
        self.driver, self.rules, self.what = driver, rules, what
        self.alone = driver.kind == "gymnasium.Env"
        everyone = driver.everyone()
        if not self.alone and len(everyone) != rules.seats:
            raise ConfigError(
                f"{what} has {len(everyone)} possible_agents, {rules.name} has {rules.seats} "
                "seats; change one of them (--set for the game's flags)"
            )
        numbers = self.hook("seat_of") or everyone.index
        self.agents = {int(numbers(who)): who for who in everyone}
        """By seat; a gymnasium.Env has one, whoever is to move."""
        self.encoding = self._encoding()
        self._to_env = rules_for("port", self.encoding, seats=1, rows=1)
        self.moment = Moment()

    def hook(self, name: str) -> Callable[..., Any] | None:
        """Return an optional method, None if the env does not have it."""
        for owner in (self.driver.env, self.driver.env.unwrapped):
            found = getattr(owner, name, None)
            if callable(found):
                method: Callable[..., Any] = found
                return method
        return None

    def call(self, name: str, *words: Any) -> Any:
        """Call an optional method that is there."""
        method = self.hook(name)
        assert method is not None
        try:
            return method(*words)
        except USER_CODE_ERRORS as error:
            raise EnvRaisedError(f"{name}()", error) from error

    def start(self, seed: int, state: State, *, load: bool) -> None:
        """Begin a game; with `load`, in the native position."""
        self.moment = Moment()
        self.moment = self.driver.reset(seed)
        if load:
            self.load(state)

    def load(self, state: State) -> None:
        """Take on a native position."""
        self.moment = self.driver.look_again(self.call("load", state))

    def step(self, state: State, action: Any, after: State) -> None:
        """Play a native action; `after` is what it has led to in the native game."""
        if self.hook("chance"):
            self.call("chance", after)
        if self.alone:
            (who,) = self.driver.everyone()
            chosen = {who: self.own_action(action)}
        elif self.rules.rows == 1:
            chosen = {self.agents[state.seat]: self.own_action(action)}
        else:
            rows = [(row, state.native.seat(row)) for row in range(self.rules.rows)]
            seated = [(row, seat) for row, seat in rows if seat >= 0]
            chosen = {self.agents[seat]: self.own_action(action[row]) for row, seat in seated}
        self.moment = Moment()  # of an env that raises there is nothing to tell
        self.moment = self.driver.step(chosen)

    def own_action(self, action: Any) -> Any:
        """Return the env's own action for a native one."""
        if self.rules.box:
            return self._to_env.env_actions(np.asarray(action).reshape(-1))
        if self.hook("action_of"):
            return self.call("action_of", int(action))
        return int(self._to_env.env_actions(action))

    def seats_to_act(self) -> list[int]:
        """Return the seats of those who are asked; a gymnasium.Env does not say."""
        seats = {who: seat for seat, who in self.agents.items()}
        return sorted(seats[who] for who in self.moment.asked)

    def legal(self, seat: int) -> list[int] | None:
        """Return the native numbers of the actions that the env allows; None without a mask."""
        mask = self.moment.mask.get(self._who(seat))
        if mask is None:
            return None
        places = enumerate(self._places)
        return [number for number, at in places if 0 <= at < len(mask) and mask[at]]

    @cached_property
    def _places(self) -> list[int]:
        """The place of every native action in the env's masks."""
        first = self.encoding.first_action
        return [int(self.own_action(number)) - first for number in range(self.rules.actions)]

    def last_legal(self) -> dict[int, list[int]]:
        """Return what the masks allow after the end, by seat."""
        found = {}
        for seat, who in self.agents.items():
            obs = self.moment.last.get(who)
            mask = obs.get("action_mask") if isinstance(obs, dict) else None
            mask = self.moment.mask.get(who) if mask is None else mask
            if mask is not None:
                found[seat] = [int(at) for at in np.flatnonzero(np.asarray(mask))]
        return found

    def rewards(self, mover: int) -> dict[int, float]:
        """Return what the last step paid, by seat; that of a gymnasium.Env is the mover's."""
        if self.alone:
            return {mover: float(next(iter(self.moment.reward.values())))}
        return {seat: float(self.moment.reward.get(who, 0.0)) for seat, who in self.agents.items()}

    def ended(self) -> tuple[bool, bool]:
        """Return whether the game is terminated and whether it is truncated."""
        if not self.moment.over:
            return False, False
        return any(self.moment.terminated.values()), any(self.moment.truncated.values())

    def observation(self, seat: int) -> npt.NDArray[np.float32] | None:
        """Return what a seat sees as native numbers; None if it cannot be said."""
        if self.hook("native_obs"):
            return np.asarray(self.call("native_obs", seat), np.float32).ravel()
        obs = self.moment.obs.get(self._who(seat))
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
        seen = {**self.moment.obs, **self.moment.last}
        return "\n".join(f"{who} sees {short(obs)}" for who, obs in seen.items())

    def scores(self) -> Sequence[float] | None:
        """Return the points of all seats, if the env tells them."""
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
    """Return the `__str__` that libraries give their envs, which tell nothing of a position."""
    libraries = ("gymnasium", "pettingzoo")
    return [
        kind.__dict__["__str__"]
        for kind in type(env).__mro__
        if "__str__" in kind.__dict__ and kind.__module__.split(".")[0] in libraries
    ]
