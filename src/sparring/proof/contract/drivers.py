"""One interface to environments of any kind, for checks of the raw objects.

A driver only hides how a kind of environment is called. It checks no values, but records where a
result does not have the form that its kind of environment promises.
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
"""Actions by agent, index of a sub-env, or `gym.SOLO`."""


@dataclass
class StepResult:
    """Result of a reset or a step, by agent or sub-env."""

    obs: dict[Any, Any] = field(default_factory=dict)
    mask: dict[Any, Any] = field(default_factory=dict)
    reward: dict[Any, Any] = field(default_factory=dict)
    terminated: dict[Any, Any] = field(default_factory=dict)
    truncated: dict[Any, Any] = field(default_factory=dict)
    deciding: tuple[Any, ...] = ()
    """Agents that have to decide next."""
    last: dict[Any, Any] = field(default_factory=dict)
    """Last observations of agents whose episode ended in this step."""
    raw: Any = None
    """The observations as the env returned them."""
    over: bool = False
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    """Faults: the property, what shows it, and what to do."""

    def fault(self, name: str, detail: str, advice: str) -> None:
        self.faults.append((name, detail, advice))

    def facts(self) -> dict[str, Fact]:
        """Everything that has to be the same whenever the same episode is played."""
        parts = ("obs", "mask", "reward", "terminated", "truncated", "last")
        found = {
            f"{part} {who}": fact_of(value)
            for part in parts
            for who, value in getattr(self, part).items()
        }
        return found | {"who decides": fact_of(self.deciding)}


class EnvRaisedError(Exception):
    """An env raised an exception, or returned a result that cannot be read."""

    def __init__(self, call: str, error: BaseException | str) -> None:
        self.call, self.error = call, error
        super().__init__(f"{call} {describe_raised(error)}")


def describe_raised(error: BaseException | str) -> str:
    """One line about an exception, with its location."""
    if isinstance(error, str):
        return error
    at, trace = "", error.__traceback__
    while trace:
        at = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"raised {type(error).__name__}{f': {text}' if text else ''}{at}"


class Driver(ABC):
    """An env that can be reset and stepped, of any kind."""

    kind = ""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.step_s: list[float] = []
        """Seconds of each step of the env."""
        self._spaces: dict[Any, Any] = {}

    @abstractmethod
    def reset(self, seed: int | None) -> StepResult:
        """Start an episode."""

    @abstractmethod
    def step(self, actions: Actions) -> StepResult:
        """Step with the actions of all agents that decide."""

    @abstractmethod
    def read_position(self, answer: Any) -> StepResult:
        """Read an env that was put into another position.

        answer: the result of that call in the form of a reset's, or None.
        """

    @abstractmethod
    def all_agents(self) -> Sequence[Any]:
        """Return all agents that may ever decide."""

    @abstractmethod
    def observation_space(self, who: Any) -> Any:
        """Return the observation space of an agent."""

    @abstractmethod
    def action_space(self, who: Any) -> Any:
        """Return the action space of an agent."""

    def private_action_space(self, who: Any) -> Any:
        """Return a copy of the action space that can be seeded without effect on the env."""
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
        """Step the env and record how long it took."""
        began = time.perf_counter()
        answer = self.call("step", actions)
        self.step_s.append(time.perf_counter() - began)
        return answer

    def restart(self, seed: int | None) -> Any:
        """Reset the env, with a seed if there is one."""
        return self.call("reset") if seed is None else self.call("reset", seed=seed)

    def close(self) -> None:
        self.call("close")

    def close_quietly(self) -> None:
        """Close the env and ignore errors, which another check reports."""
        with suppress(EnvRaisedError):
            self.close()


def parts_of(answer: Any, count: int, call: str, names: str) -> Any:
    """Return the parts of an env's result; refuses another number of them."""
    if not isinstance(answer, tuple) or len(answer) != count:
        got = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
        raise EnvRaisedError(call, f"returned {got}, need {names}")
    return answer


def mask_of(obs: Any, info: Any, method: Callable[[], Any] | None = None) -> Any:
    """Return the mask of an observation, None without one."""
    if isinstance(obs, Mapping) and MASK in obs:
        return obs[MASK]
    if isinstance(info, Mapping) and MASK in info:
        return info[MASK]
    return method() if method else None
