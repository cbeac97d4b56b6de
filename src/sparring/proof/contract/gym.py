"""Gymnasium environments, driven: one decides, or every sub-env of a vector does."""

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
    Moment,
    mask_of,
    parts_of,
)
from sparring.proof.contract.values import digest_of, short

ALONE = "env"
"""Who decides."""
AUTORESET_KEYS = ("final_obs", "final_observation", "terminal_observation")
ENDS = 2


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
        return (ALONE,)

    def observation_space(self, who: Any) -> Any:
        return self.env.observation_space

    def action_space(self, who: Any) -> Any:
        return self.env.action_space

    def reset(self, seed: int | None) -> Moment:
        obs, info = parts_of(self.restart(seed), 2, "reset()", "(observation, info)")
        return self._moment(Moment(asked=(ALONE,)), obs, info)

    def look_again(self, answer: Any) -> Moment:
        moment = Moment(asked=(ALONE,))
        return moment if answer is None else self._moment(moment, *answer)

    def step(self, actions: Actions) -> Moment:
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
            moment.fault("last observation", text, advice)

    def _moment(self, moment: Moment, obs: Any, info: Any) -> Moment:
        moment.obs, moment.given = {ALONE: obs}, obs
        if not isinstance(info, dict):
            text = f"info is {type(info).__name__}, need a dict"
            moment.fault("reset and step", text, "return {} if there is nothing")
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
        except USER_CODE_ERRORS as error:
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


class VectorDriver(Driver):
    """A gymnasium VectorEnv, played until every sub-env has ended twice: once after its reset."""

    kind = "gymnasium VectorEnv"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        mode = (env.metadata or {}).get("autoreset_mode")
        known = library("gymnasium").vector.AutoresetMode
        self.mode = str(known(mode).value) if mode is not None else ""
        """NextStep, SameStep or Disabled; "" where the metadata do not say."""
        self._held = np.zeros(env.num_envs, bool)
        """NextStep: sub-envs whose next step only resets them."""
        self._ends = np.zeros(env.num_envs, int)
        base = env.unwrapped
        # Asked for first: a worker process that is called for something missing dies.
        self._calls = hasattr(base, "call") and all(base.call("has_wrapper_attr", "action_masks"))

    def everyone(self) -> Sequence[Any]:
        return range(self.env.num_envs)

    def observation_space(self, who: Any) -> Any:
        return self.env.single_observation_space

    def action_space(self, who: Any) -> Any:
        return self.env.single_action_space

    def reset(self, seed: int | None) -> Moment:
        obs, info = parts_of(self.restart(seed), 2, "reset()", "(observations, infos)")
        self._held[:], self._ends[:] = False, 0
        moment = Moment(asked=tuple(self.everyone()), given=obs)
        self._look(moment, obs, info)
        if not self.mode:
            text = "metadata have no autoreset_mode; NextStep is assumed"
            moment.fault("autoreset", text, "say it in metadata")
        return moment

    def look_again(self, answer: Any) -> Moment:
        moment = Moment(asked=tuple(self.everyone()))
        if answer is not None:
            self._look(moment, *answer)
        return moment

    def step(self, actions: Actions) -> Moment:
        space = self.env.single_action_space
        batch = self._batched(actions, space)
        names = "(observations, rewards, terminations, truncations, infos)"
        answer = parts_of(self.timed_step(batch), 5, "step()", names)
        obs, rewards, terminated, truncated, info = answer
        moment, count = Moment(asked=tuple(self.everyone()), given=obs), self.env.num_envs
        flags = (("rewards", rewards), ("terminations", terminated), ("truncations", truncated))
        for name, given in flags:
            if np.shape(given) != (count,):
                raise EnvRaisedError(name, f"have shape {np.shape(given)}, need ({count},)")
        for who in self.everyone():
            moment.reward[who], moment.terminated[who] = rewards[who], terminated[who]
            moment.truncated[who] = truncated[who]
        over = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        self._note_held(moment, over)
        over &= ~self._held
        self._note_final(moment, obs, info, over)
        self._ends += over
        self._look(moment, obs, info)
        self._held = over if self.mode in ("", "NextStep") else np.zeros(count, bool)
        if self.mode == "Disabled" and over.any():
            fresh, fresh_info = self.call("reset", options={"reset_mask": over.copy()})
            again = Moment()
            self._look(again, fresh, fresh_info)
            for who in np.flatnonzero(over):
                moment.obs[int(who)] = again.obs[int(who)]
                if int(who) in again.mask:
                    moment.mask[int(who)] = again.mask[int(who)]
        for who in np.flatnonzero(self._held):  # nobody asks them for anything
            moment.mask.pop(int(who), None)
        moment.over = bool((self._ends >= ENDS).all())
        moment.asked = tuple(int(who) for who in np.flatnonzero(~self._held))
        return moment

    def _batched(self, actions: Actions, space: Any) -> Any:
        spaces, utils = library("gymnasium").spaces, library("gymnasium").vector.utils
        idle = self.own_action_space(0)
        each = [actions.get(who, None) for who in self.everyone()]
        if isinstance(space, spaces.Discrete):
            chosen = [int(space.start) if one is None else one for one in each]
            return np.array(chosen, space.dtype)
        if any(one is None for one in each):
            idle.seed(0)
        each = [idle.sample() if one is None else one for one in each]
        return utils.concatenate(space, each, utils.create_empty_array(space, len(each)))

    def _note_held(self, moment: Moment, over: Any) -> None:
        for who in np.flatnonzero(self._held):
            paid = float(moment.reward[int(who)])
            if over[who] or paid:
                text = (
                    f"env {who} is only reset in this step (NextStep), but it pays {paid:g}, "
                    f"terminated {bool(moment.terminated[int(who)])}, "
                    f"truncated {bool(moment.truncated[int(who)])}"
                )
                advice = "pay 0 and end nothing there, or say another autoreset_mode in metadata"
                moment.fault("autoreset", text, advice)

    def _note_final(self, moment: Moment, obs: Any, info: Any, over: Any) -> None:
        given = info.get("final_obs") if isinstance(info, dict) else None
        if self.mode == "SameStep":
            has = info.get("_final_obs", over) if given is not None else np.zeros_like(over)
            for who in np.flatnonzero(over):
                if not has[who]:
                    text = f"env {who} ended in mode SameStep without a final_obs in the infos"
                    advice = "put its last observation there, or say another autoreset_mode"
                    moment.fault("autoreset", text, advice)
                    continue
                one = given[who] if isinstance(given, np.ndarray) else row_of(given, int(who))
                moment.last[int(who)] = one
            return
        if given is not None:
            text = f"infos have a final_obs as in SameStep, metadata say {self.mode or 'nothing'}"
            moment.fault("autoreset", text, "say SameStep in metadata")
        moment.last = {int(who): row_of(obs, int(who)) for who in np.flatnonzero(over)}

    def _look(self, moment: Moment, obs: Any, info: Any) -> None:
        if not isinstance(info, dict):
            text = f"infos are {type(info).__name__}, need Gymnasium's dict of arrays"
            moment.fault("reset and step", text, "take DictInfoToList off")
            info = {}
        try:
            moment.obs = {who: row_of(obs, who) for who in self.everyone()}
        except (IndexError, TypeError, KeyError) as error:
            raise EnvRaisedError("observations", f"are no batch of sub-envs: {error}") from error
        if not isinstance(self.env.single_action_space, library("gymnasium").spaces.Discrete):
            return
        masks = self._masks(obs, info)
        for who in self.everyone():
            if masks is not None and masks[1][who]:
                moment.mask[who] = masks[0][who]

    def _masks(self, obs: Any, info: Any) -> tuple[Any, Any] | None:
        """Return masks by sub-env and who has one."""
        everyone = np.ones(self.env.num_envs, bool)
        if isinstance(obs, dict) and MASK in obs:
            return obs[MASK], everyone
        if MASK in info:
            return info[MASK], info.get(f"_{MASK}", everyone)
        for owner in (self.env, self.env.unwrapped):
            if callable(getattr(owner, "action_masks", None)):
                return owner.action_masks(), everyone
        return (self.env.unwrapped.call("action_masks"), everyone) if self._calls else None
