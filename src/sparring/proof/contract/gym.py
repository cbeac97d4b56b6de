"""Drivers of Gymnasium envs and vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from sparring.errors import USER_CODE_ERRORS
from sparring.pools.custom.encoding import MASK, library
from sparring.pools.custom.vector import row_of
from sparring.proof.contract.drivers import (
    Actions,
    Driver,
    EnvRaisedError,
    StepResult,
    mask_of,
    parts_of,
)
from sparring.proof.contract.values import digest_of, short

SOLO = "env"
"""The only agent of a gymnasium.Env."""
AUTORESET_KEYS = ("final_obs", "final_observation", "terminal_observation")
ENDS = 2


class SoloDriver(Driver):
    """A gymnasium.Env."""

    kind = "gymnasium.Env"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._begun: list[str] = []
        """Hashes of the observations that resets returned, of the env and its inner envs."""
        for layer in layers_of(env):
            with suppress(AttributeError):  # objects with fixed attributes are not recorded
                layer.reset = recording(layer.reset, self._begun)

    def all_agents(self) -> Sequence[Any]:
        return (SOLO,)

    def observation_space(self, who: Any) -> Any:
        return self.env.observation_space

    def action_space(self, who: Any) -> Any:
        return self.env.action_space

    def reset(self, seed: int | None) -> StepResult:
        obs, info = parts_of(self.restart(seed), 2, "reset()", "(observation, info)")
        return self._result(StepResult(deciding=(SOLO,)), obs, info)

    def read_position(self, answer: Any) -> StepResult:
        result = StepResult(deciding=(SOLO,))
        return result if answer is None else self._result(result, *answer)

    def step(self, actions: Actions) -> StepResult:
        names = "(observation, reward, terminated, truncated, info)"
        self._begun.clear()
        answer = parts_of(self.timed_step(actions[SOLO]), 5, "step()", names)
        obs, reward, terminated, truncated, info = answer
        over = bool(terminated) or bool(truncated)
        result = StepResult(
            reward={SOLO: reward},
            terminated={SOLO: terminated},
            truncated={SOLO: truncated},
            deciding=() if over else (SOLO,),
            last={SOLO: obs} if over else {},
            over=over,
        )
        if over:
            self._note_reset(result, obs, info)
        return self._result(result, obs, info)

    def _note_reset(self, result: StepResult, obs: Any, info: Any) -> None:
        """Record that the last step of an episode has reset the env already."""
        keys = [key for key in AUTORESET_KEYS if isinstance(info, Mapping) and key in info]
        text = ""
        if keys:
            text = f"the info at the end has a {keys[0]}, so the observation is the next episode's"
        elif digest_of(obs) in self._begun:
            text = f"the last step calls reset() and returns what that returns, {short(obs)}"
        if text:
            advice = "leave resets to the caller, or take the wrapper off that resets by itself"
            result.fault("last observation", text, advice)

    def _result(self, result: StepResult, obs: Any, info: Any) -> StepResult:
        result.obs, result.raw = {SOLO: obs}, obs
        if not isinstance(info, dict):
            text = f"info is {type(info).__name__}, need a dict"
            result.fault("reset and step", text, "return {} if there is nothing")
        if isinstance(self.env.action_space, library("gymnasium").spaces.Discrete):
            mask = mask_of(obs, info, self._masks)
            result.mask = {} if mask is None else {SOLO: mask}
        return result

    def _masks(self) -> Any:
        env = self.env if hasattr(self.env, "action_masks") else self.env.unwrapped
        method = getattr(env, "action_masks", None)
        if not callable(method):
            return None
        try:
            return method()
        except USER_CODE_ERRORS as error:
            raise EnvRaisedError("action_masks()", error) from error


def layers_of(env: Any) -> list[Any]:
    """Return an env and its inner envs."""
    layers = [env]
    while layers[-1] is not env.unwrapped and hasattr(layers[-1], "env"):
        layers.append(layers[-1].env)
    return layers


def recording(reset: Callable[..., Any], begun: list[str]) -> Callable[..., Any]:
    """Wrap a reset so that the hash of its observation is recorded."""

    @wraps(reset)
    def recorded(*words: Any, **keywords: Any) -> Any:
        answer = reset(*words, **keywords)
        begun.append(digest_of(answer[0] if isinstance(answer, tuple) and answer else answer))
        return answer

    return recorded


class VectorDriver(Driver):
    """A gymnasium VectorEnv, played until every sub-env has ended twice."""

    kind = "gymnasium VectorEnv"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        mode = (env.metadata or {}).get("autoreset_mode")
        known = library("gymnasium").vector.AutoresetMode
        self.mode = str(known(mode).value) if mode is not None else ""
        """NextStep, SameStep or Disabled; "" if the metadata has none."""
        self._resetting = np.zeros(env.num_envs, bool)
        """NextStep: sub-envs whose next step only resets them."""
        self._ends = np.zeros(env.num_envs, int)
        base = env.unwrapped
        # Checked first: a worker process dies if a missing method is called.
        self._calls = hasattr(base, "call") and all(base.call("has_wrapper_attr", "action_masks"))

    def all_agents(self) -> Sequence[Any]:
        return range(self.env.num_envs)

    def observation_space(self, who: Any) -> Any:
        return self.env.single_observation_space

    def action_space(self, who: Any) -> Any:
        return self.env.single_action_space

    def reset(self, seed: int | None) -> StepResult:
        obs, info = parts_of(self.restart(seed), 2, "reset()", "(observations, infos)")
        self._resetting[:], self._ends[:] = False, 0
        result = StepResult(deciding=tuple(self.all_agents()), raw=obs)
        self._look(result, obs, info)
        if not self.mode:
            text = "metadata have no autoreset_mode; NextStep is assumed"
            result.fault("autoreset", text, "say it in metadata")
        return result

    def read_position(self, answer: Any) -> StepResult:
        result = StepResult(deciding=tuple(self.all_agents()))
        if answer is not None:
            self._look(result, *answer)
        return result

    def step(self, actions: Actions) -> StepResult:
        space = self.env.single_action_space
        batch = self._batched(actions, space)
        names = "(observations, rewards, terminations, truncations, infos)"
        answer = parts_of(self.timed_step(batch), 5, "step()", names)
        obs, rewards, terminated, truncated, info = answer
        result, count = StepResult(deciding=tuple(self.all_agents()), raw=obs), self.env.num_envs
        flags = (("rewards", rewards), ("terminations", terminated), ("truncations", truncated))
        for name, given in flags:
            if np.shape(given) != (count,):
                raise EnvRaisedError(name, f"have shape {np.shape(given)}, need ({count},)")
        for who in self.all_agents():
            result.reward[who], result.terminated[who] = rewards[who], terminated[who]
            result.truncated[who] = truncated[who]
        over = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        self._note_resetting(result, over)
        over &= ~self._resetting
        self._note_final(result, obs, info, over)
        self._ends += over
        self._look(result, obs, info)
        self._resetting = over if self.mode in ("", "NextStep") else np.zeros(count, bool)
        if self.mode == "Disabled" and over.any():
            fresh, fresh_info = self.call("reset", options={"reset_mask": over.copy()})
            again = StepResult()
            self._look(again, fresh, fresh_info)
            for who in np.flatnonzero(over):
                result.obs[int(who)] = again.obs[int(who)]
                if int(who) in again.mask:
                    result.mask[int(who)] = again.mask[int(who)]
        for who in np.flatnonzero(self._resetting):  # they do not decide
            result.mask.pop(int(who), None)
        result.over = bool((self._ends >= ENDS).all())
        result.deciding = tuple(int(who) for who in np.flatnonzero(~self._resetting))
        return result

    def _batched(self, actions: Actions, space: Any) -> Any:
        spaces, utils = library("gymnasium").spaces, library("gymnasium").vector.utils
        idle = self.private_action_space(0)
        each = [actions.get(who, None) for who in self.all_agents()]
        if isinstance(space, spaces.Discrete):
            chosen = [int(space.start) if one is None else one for one in each]
            return np.array(chosen, space.dtype)
        if any(one is None for one in each):
            idle.seed(0)
        each = [idle.sample() if one is None else one for one in each]
        return utils.concatenate(space, each, utils.create_empty_array(space, len(each)))

    def _note_resetting(self, result: StepResult, over: Any) -> None:
        for who in np.flatnonzero(self._resetting):
            paid = float(result.reward[int(who)])
            if over[who] or paid:
                text = (
                    f"env {who} is only reset in this step (NextStep), but it pays {paid:g}, "
                    f"terminated {bool(result.terminated[int(who)])}, "
                    f"truncated {bool(result.truncated[int(who)])}"
                )
                advice = "pay 0 and end nothing there, or say another autoreset_mode in metadata"
                result.fault("autoreset", text, advice)

    def _note_final(self, result: StepResult, obs: Any, info: Any, over: Any) -> None:
        given = info.get("final_obs") if isinstance(info, dict) else None
        if self.mode == "SameStep":
            has = info.get("_final_obs", over) if given is not None else np.zeros_like(over)
            for who in np.flatnonzero(over):
                if not has[who]:
                    text = f"env {who} ended in mode SameStep without a final_obs in the infos"
                    advice = "put its last observation there, or say another autoreset_mode"
                    result.fault("autoreset", text, advice)
                    continue
                one = given[who] if isinstance(given, np.ndarray) else row_of(given, int(who))
                result.last[int(who)] = one
            return
        if given is not None:
            text = f"infos have a final_obs as in SameStep, metadata say {self.mode or 'nothing'}"
            result.fault("autoreset", text, "say SameStep in metadata")
        result.last = {int(who): row_of(obs, int(who)) for who in np.flatnonzero(over)}

    def _look(self, result: StepResult, obs: Any, info: Any) -> None:
        if not isinstance(info, dict):
            text = f"infos are {type(info).__name__}, need Gymnasium's dict of arrays"
            result.fault("reset and step", text, "take DictInfoToList off")
            info = {}
        try:
            result.obs = {who: row_of(obs, who) for who in self.all_agents()}
        except (IndexError, TypeError, KeyError) as error:
            raise EnvRaisedError("observations", f"are no batch of sub-envs: {error}") from error
        if not isinstance(self.env.single_action_space, library("gymnasium").spaces.Discrete):
            return
        masks = self._masks(obs, info)
        for who in self.all_agents():
            if masks is not None and masks[1][who]:
                result.mask[who] = masks[0][who]

    def _masks(self, obs: Any, info: Any) -> tuple[Any, Any] | None:
        """Return masks by sub-env, and which sub-envs have one."""
        all_agents = np.ones(self.env.num_envs, bool)
        if isinstance(obs, dict) and MASK in obs:
            return obs[MASK], all_agents
        if MASK in info:
            return info[MASK], info.get(f"_{MASK}", all_agents)
        for owner in (self.env, self.env.unwrapped):
            if callable(getattr(owner, "action_masks", None)):
                return owner.action_masks(), all_agents
        return (self.env.unwrapped.call("action_masks"), all_agents) if self._calls else None
