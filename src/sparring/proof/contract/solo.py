"""Gymnasium environments, driven: one decides, and an episode ends when a step says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

from sparring.errors import RAISED
from sparring.pools.foreign.encoding import library
from sparring.proof.contract.drivers import (
    Actions,
    Driver,
    EnvRaisedError,
    Moment,
    mask_of,
    parts_of,
)
from sparring.proof.contract.findings import Fault
from sparring.proof.contract.values import digest_of, short

ALONE = "env"
"""Who decides."""
AUTORESET_KEYS = ("final_obs", "final_observation", "terminal_observation")


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
