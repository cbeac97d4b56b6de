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
from typing import Any

from sparring.errors import USER_CODE_ERRORS
from sparring.pools.custom.encoding import MASK
from sparring.proof.contract.values import Fact, fact_of

Actions = dict[Any, Any]
"""By who decides: an agent, the index of a sub-env, or `solo.ALONE`."""


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
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    """Properties that do not hold, what shows it, and what to do."""

    def fault(self, name: str, detail: str, advice: str) -> None:
        """Note something that does not hold."""
        self.faults.append((name, detail, advice))

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
        except USER_CODE_ERRORS as error:
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
