"""Environments of any kind, driven the same way, with everything as the env itself gave it.

A driver hides how a kind of env is called and nothing else: it checks no values, but it notes where
an answer does not have the form that its kind of env promises.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from sparring.errors import RAISED
from sparring.pools.foreign.encoding import MASK, library
from sparring.pools.foreign.make import SOLO, TOGETHER, TURNS, VECTOR, kind_of
from sparring.proof.contract.findings import Fault
from sparring.proof.contract.values import Fact, digest_of, fact_of, short

ALONE = "env"
"""Who decides in a gymnasium.Env."""
AUTORESET_KEYS = ("final_obs", "final_observation", "terminal_observation")

Actions = dict[Any, Any]
"""By who decides: an agent, the index of a sub-env, or ALONE."""


@dataclass
class Moment:
    """What an env answered to a reset or a step, by agent or sub-env."""

    obs: dict[Any, Any] = field(default_factory=dict)
    mask: dict[Any, Any] = field(default_factory=dict)
    reward: dict[Any, Any] = field(default_factory=dict)
    terminated: dict[Any, Any] = field(default_factory=dict)
    truncated: dict[Any, Any] = field(default_factory=dict)
    asked: tuple[Any, ...] = ()
    """Who has to decide next."""
    last: dict[Any, Any] = field(default_factory=dict)
    """The last observations of those whose episode ended in this step."""
    given: Any = None
    """The observations as one object, as the env gave them."""
    over: bool = False
    faults: list[Fault] = field(default_factory=list)

    def facts(self) -> dict[str, Fact]:
        """Return everything that has to be the same whenever the same is played."""
        parts = ("obs", "mask", "reward", "terminated", "truncated", "last")
        found = {
            f"{part} {who}": fact_of(value)
            for part in parts
            for who, value in getattr(self, part).items()
        }
        return found | {"who decides": fact_of(self.asked)}


class EnvRaisedError(Exception):
    """An env raised something, or answered in a form that cannot be read."""

    def __init__(self, call: str, error: BaseException | str) -> None:
        self.call, self.error = call, error
        super().__init__(f"{call} {told(error)}")


def told(error: BaseException | str) -> str:
    """Return an error in a line, with the place in the code that raised it."""
    if isinstance(error, str):
        return error
    at, trace = "", error.__traceback__
    while trace:
        at = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"raised {type(error).__name__}{f': {text}' if text else ''}{at}"


class Driver(ABC):
    """An env that can be reset and stepped, whatever its kind."""

    kind = ""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.step_s: list[float] = []
        """How long each of the env's steps took."""
        self._spaces: dict[Any, Any] = {}

    @abstractmethod
    def reset(self, seed: int | None) -> Moment:
        """Begin an episode."""

    @abstractmethod
    def step(self, actions: Actions) -> Moment:
        """Answer everyone who is asked."""

    @abstractmethod
    def look_again(self, answer: Any) -> Moment:
        """Return what an env shows that was put into another position.

        answer: what it said to that, in the form of a reset's, or None.
        """

    @abstractmethod
    def everyone(self) -> Sequence[Any]:
        """Return all who may ever decide."""

    @abstractmethod
    def observation_space(self, who: Any) -> Any:
        """Return the space of what somebody sees."""

    @abstractmethod
    def action_space(self, who: Any) -> Any:
        """Return the space of what somebody does."""

    def own_action_space(self, who: Any) -> Any:
        """Return a copy of the action space that can be seeded without the env's noticing."""
        if who not in self._spaces:
            self._spaces[who] = copy.deepcopy(self.action_space(who))
        return self._spaces[who]

    def call(self, name: str, *words: Any, **keywords: Any) -> Any:
        """Call a method of the env."""
        try:
            return getattr(self.env, name)(*words, **keywords)
        except RAISED as error:
            raise EnvRaisedError(f"{name}()", error) from error

    def timed_step(self, actions: Any) -> Any:
        """Step the env and note how long it took."""
        began = time.perf_counter()
        answer = self.call("step", actions)
        self.step_s.append(time.perf_counter() - began)
        return answer

    def restart(self, seed: int | None) -> Any:
        """Reset the env, with a seed if there is one."""
        return self.call("reset") if seed is None else self.call("reset", seed=seed)

    def close(self) -> None:
        """Close the env."""
        self.call("close")

    def dismiss(self) -> None:
        """Close the env; that it fails is found elsewhere."""
        with suppress(EnvRaisedError):
            self.close()


def parts_of(answer: Any, count: int, call: str, names: str) -> Any:
    """Return the parts of what an env returned, if there are as many as there should be."""
    if not isinstance(answer, tuple) or len(answer) != count:
        got = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
        raise EnvRaisedError(call, f"returned {got}, need {names}")
    return answer


def mask_of(obs: Any, info: Any, method: Callable[[], Any] | None = None) -> Any:
    """Return the mask that comes with an observation, None without one."""
    if isinstance(obs, Mapping) and MASK in obs:
        return obs[MASK]
    if isinstance(info, Mapping) and MASK in info:
        return info[MASK]
    return method() if method else None


class SoloDriver(Driver):
    """A gymnasium.Env."""

    kind = "gymnasium.Env"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._begun: list[str] = []
        """Hashes of the observations that resets returned, of the env and of all that it wraps."""
        for layer in layers_of(env):
            with suppress(AttributeError):  # an object with fixed attributes goes unwatched
                layer.reset = noting(layer.reset, self._begun)

    def everyone(self) -> Sequence[Any]:
        """Return the one who decides."""
        return (ALONE,)

    def observation_space(self, who: Any) -> Any:
        """Return the env's space."""
        return self.env.observation_space

    def action_space(self, who: Any) -> Any:
        """Return the env's space."""
        return self.env.action_space

    def reset(self, seed: int | None) -> Moment:
        """Begin an episode."""
        obs, info = parts_of(self.restart(seed), 2, "reset()", "(observation, info)")
        return self._moment(Moment(asked=(ALONE,)), obs, info)

    def look_again(self, answer: Any) -> Moment:
        """Return what the env answered; without an answer nothing is known."""
        moment = Moment(asked=(ALONE,))
        return moment if answer is None else self._moment(moment, *answer)

    def step(self, actions: Actions) -> Moment:
        """Play an action."""
        names = "(observation, reward, terminated, truncated, info)"
        self._begun.clear()
        answer = parts_of(self.timed_step(actions[ALONE]), 5, "step()", names)
        obs, reward, terminated, truncated, info = answer
        over = bool(terminated) or bool(truncated)
        moment = Moment(
            reward={ALONE: reward},
            terminated={ALONE: terminated},
            truncated={ALONE: truncated},
            asked=() if over else (ALONE,),
            last={ALONE: obs} if over else {},
            over=over,
        )
        if over:
            self._note_reset(moment, obs, info)
        return self._moment(moment, obs, info)

    def _note_reset(self, moment: Moment, obs: Any, info: Any) -> None:
        """Note that the last step of an episode has begun the next one already."""
        keys = [key for key in AUTORESET_KEYS if isinstance(info, Mapping) and key in info]
        text = ""
        if keys:
            text = f"the info at the end has a {keys[0]}, so the observation is the next episode's"
        elif digest_of(obs) in self._begun:
            text = f"the last step calls reset() and returns what that returns, {short(obs)}"
        if text:
            advice = "leave resets to the caller, or take the wrapper off that resets by itself"
            moment.faults.append(Fault("last observation", text, advice))

    def _moment(self, moment: Moment, obs: Any, info: Any) -> Moment:
        moment.obs, moment.given = {ALONE: obs}, obs
        if not isinstance(info, dict):
            text = f"info is {type(info).__name__}, need a dict"
            moment.faults.append(Fault("reset and step", text, "return {} if there is nothing"))
        if isinstance(self.env.action_space, library("gymnasium").spaces.Discrete):
            mask = mask_of(obs, info, self._masks)
            moment.mask = {} if mask is None else {ALONE: mask}
        return moment

    def _masks(self) -> Any:
        env = self.env if hasattr(self.env, "action_masks") else self.env.unwrapped
        method = getattr(env, "action_masks", None)
        if not callable(method):
            return None
        try:
            return method()
        except RAISED as error:
            raise EnvRaisedError("action_masks()", error) from error


def layers_of(env: Any) -> list[Any]:
    """Return an env and everything that it wraps."""
    layers = [env]
    while layers[-1] is not env.unwrapped and hasattr(layers[-1], "env"):
        layers.append(layers[-1].env)
    return layers


def noting(reset: Callable[..., Any], begun: list[str]) -> Callable[..., Any]:
    """Return a reset that writes down the observation that it returns."""

    @wraps(reset)
    def noted(*words: Any, **keywords: Any) -> Any:
        answer = reset(*words, **keywords)
        begun.append(digest_of(answer[0] if isinstance(answer, tuple) and answer else answer))
        return answer

    return noted


def driver_of(env: Any, what: str) -> Driver:
    """Return the driver for an env of any kind that is known."""
    from sparring.proof.contract.tables import ParallelDriver, TurnDriver
    from sparring.proof.contract.vectors import VectorDriver

    drivers: dict[str, type[Driver]] = {
        SOLO: SoloDriver,
        VECTOR: VectorDriver,
        TURNS: TurnDriver,
        TOGETHER: ParallelDriver,
    }
    return drivers[kind_of(env, what)](env)
