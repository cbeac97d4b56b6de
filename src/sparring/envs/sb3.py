"""A game as a Stable-Baselines3 VecEnv, ready for sb3-contrib's MaskablePPO."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.extras import not_installed
from sparring.envs.opponents import Opponents
from sparring.envs.seat import Ended, LearnerSeats, check_discrete
from sparring.games.rules import Rewards, Rules

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as missing:
    raise not_installed("sb3", missing) from missing

from sparring.envs.spaces import action_space, observation_space

Indices = None | int | Iterable[int]


class SparringVecEnv(VecEnv):  # type: ignore[misc]
    """N games in one pool, each with the learner in a seat drawn anew for every episode.

    The info of a game that ended has "terminal_observation", "TimeLimit.truncated", "episode"
    as SB3 wants them, and "seat", "score", "scores", "end"; other infos are empty.
    """

    def __init__(
        self,
        game: str | Rules,
        num_envs: int,
        *,
        config: Mapping[str, Any] | None = None,
        opponents: Opponents = None,
        seed: int = 0,
        rewards: Rewards | None = None,
        threads: int | None = None,
        illegal: str = "error",
        illegal_reward: float = 0.0,
    ) -> None:
        """Make the games; `reset` starts them.

        opponents: who sits in the other seats, see `sparring.envs.opponents.Opponents`: words,
            policies, functions, one for all or one each, tables with weights, or a factory.
        rewards: weights of the game's reward parts; the learner is paid in its first role.
        threads: how many step the games; None takes one per core.
        illegal: "error" refuses an illegal action; "random" plays a random legal one instead, for
            learners without masks. illegal_reward: what "random" adds to the reward for it.
        """
        self._seats = LearnerSeats(
            game,
            num_envs,
            hold=False,
            config=config,
            opponents=opponents,
            seed=seed,
            rewards=rewards,
            threads=threads,
            illegal=illegal,
            illegal_reward=illegal_reward,
        )
        self.rules = self._seats.rules
        self.render_mode = None
        super().__init__(num_envs, observation_space(self.rules), action_space(self.rules))
        self._actions: npt.NDArray[Any] | None = None
        self._begin_s = time.time()
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Choose the seed of the next reset; all games share it and differ by their index."""
        first: int = super().seed(seed)[0]
        self._seeds = [first] * self.num_envs
        return self._seeds

    def reset(self) -> npt.NDArray[np.float32]:
        """Start a new episode in every game."""
        self._seats.reset(self._seeds[0])
        self._returns[:] = 0
        self._lengths[:] = 0
        self.reset_infos = [{"seat": int(seat)} for seat in self._seats.seat]
        self._reset_seeds()
        self._reset_options()
        return self._seats.obs

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
        list[dict[str, Any]],
    ]:
        """Play the actions. An illegal one is refused and no game changes."""
        assert self._actions is not None, "call step_async first"
        step = self._seats.step(self._actions)
        self._returns += step.reward
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if step.ended is not None:
            self._report(step.ended, step.truncated, infos)
        return self._seats.obs, step.reward, step.terminated | step.truncated, infos

    def _report(
        self, ended: Ended, truncated: npt.NDArray[np.bool_], infos: list[dict[str, Any]]
    ) -> None:
        elapsed_s = round(time.time() - self._begin_s, 6)
        for at, game in enumerate(ended.game):
            infos[game] = {
                "terminal_observation": ended.obs[at],
                "TimeLimit.truncated": bool(truncated[game]),
                "episode": {
                    "r": float(self._returns[game]),
                    "l": int(self._lengths[game]),
                    "t": elapsed_s,
                },
                "seat": int(ended.seat[at]),
                "score": float(ended.score[at]),
                "scores": ended.scores[at],
                "end": str(ended.end[at]),
            }
            if self._seats.illegal.replaces:
                infos[game]["illegal_actions"] = int(ended.illegal[at])
            self.reset_infos[game] = {"seat": int(self._seats.seat[game])}
        self._returns[ended.game] = 0
        self._lengths[ended.game] = 0

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal, [num_envs, actions]."""
        check_discrete(self.rules)
        return self._seats.mask.copy()

    def env_method(
        self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of single games; `action_masks` is the one they have."""
        return [call(*args, **kwargs) for call in self._methods(method_name, indices)]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of single games: what they share, or `action_masks`."""
        if attr_name in ("render_mode", "rules", "observation_space", "action_space"):
            return [getattr(self, attr_name) for _ in self._get_indices(indices)]
        return self._methods(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refuse: the games of a pool have no attributes of their own."""
        raise NotImplementedError(
            f"cannot set {attr_name!r}: the games share one pool; make a new SparringVecEnv"
        )

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Say yes to Monitor: SB3 asks in order to trust info["episode"], which we fill in."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Do nothing; the pool goes with the object."""

    def _methods(self, name: str, indices: Indices) -> list[Any]:
        if name != "action_masks" or self.rules.box:
            raise AttributeError(f"the games of a {type(self).__name__} have no {name!r}")
        return [partial(self._mask, i) for i in self._get_indices(indices)]

    def _mask(self, game: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self._seats.mask[game].copy()
        return mask
