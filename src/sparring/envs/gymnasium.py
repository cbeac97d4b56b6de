"""A game as a Gymnasium environment: you are one seat, bots are the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.extras import not_installed
from sparring.envs.frames import ANSI, DEFAULT_FPS, RGB_ARRAY, frame, metadata_of
from sparring.envs.opponents import Opponents
from sparring.envs.registration import register_games
from sparring.envs.seat import Ended, LearnerSeats, check_discrete
from sparring.errors import ConfigError, IllegalActionError
from sparring.games.rules import Rewards, Rules

try:
    import gymnasium
    from gymnasium.error import ResetNeeded
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as missing:
    raise not_installed("gymnasium", missing) from missing

from sparring.envs.spaces import action_space, observation_space

Obs = npt.NDArray[np.float32]
Info = dict[str, Any]


class SparringEnv(gymnasium.Env[Obs, Any]):
    """One game; the learner's seat is drawn at every reset.

    `info` has "seat" and (discrete games) "action_mask"; at the end also "score", "scores" of
    all seats and "end", the reason. Only legal actions are accepted, see `action_masks`, unless
    `illegal` says otherwise; then "illegal_actions" counts those of the episode.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [ANSI, RGB_ARRAY],  # of all games together
        "render_fps": DEFAULT_FPS,
    }

    def __init__(
        self,
        game: str | Rules,
        *,
        config: Mapping[str, Any] | None = None,
        opponents: Opponents = None,
        seed: int = 0,
        rewards: Rewards | None = None,
        first_game: int = 0,
        render_mode: str | None = None,
        illegal: str = "error",
        illegal_reward: float = 0.0,
    ) -> None:
        """Make the game; `reset` starts it.

        opponents: who sits in the other seats, see `sparring.envs.opponents.Opponents`: words,
            policies, functions, one for all or one each, tables with weights, or a factory.
        rewards: weights of the game's reward parts; the learner is paid in its first role.
        first_game: the index that, with the seed, the episodes are drawn from.
        render_mode: None, "ansi", or "rgb_array" where the game has a picture.
        illegal: "error" refuses an illegal action; "random" plays a random legal one instead, for
            learners without masks. illegal_reward: what "random" adds to the reward for it.
        """
        self._seats = LearnerSeats(
            game,
            1,
            hold=True,
            config=config,
            opponents=opponents,
            seed=seed,
            rewards=rewards,
            first_game=first_game,
            illegal=illegal,
            illegal_reward=illegal_reward,
            watch=render_mode is not None,
        )
        self.rules = self._seats.rules
        self.metadata = metadata_of(self.rules, render_mode)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.rules)
        self.action_space = action_space(self.rules)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Start the next episode; with a seed, the first of that seed. Options are not used."""
        super().reset(seed=seed)
        self._seats.reset(seed)
        return self._seats.obs[0].copy(), self._info(None)

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, Info]:
        """Play an action and let the others answer. An illegal one changes nothing."""
        if self._seats.over[0]:
            raise ResetNeeded("the episode is over; call reset()")
        given = np.asarray(action)
        if given.shape != self.action_space.shape:
            raise IllegalActionError(
                f"the action has shape {given.shape}, need {self.action_space.shape}"
            )
        step = self._seats.step(given[None])
        return (
            self._seats.obs[0].copy(),
            float(step.reward[0]),
            bool(step.terminated[0]),
            bool(step.truncated[0]),
            self._info(step.ended),
        )

    def render(self) -> Any:
        """Return the whole position as text or pixels, whichever render_mode says."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                f"make {self} with a render_mode: {self.metadata['render_modes']}"
            )
            return None
        return frame(self._seats.position(0), self.render_mode, self._seats.names(0))

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now; the name that sb3-contrib looks for."""
        check_discrete(self.rules)
        mask: npt.NDArray[np.bool_] = self._seats.mask[0].copy()
        return mask

    def _info(self, ended: Ended | None) -> Info:
        info: Info = {"seat": int(self._seats.seat[0])}
        if self._seats.illegal.replaces:
            info["illegal_actions"] = int(self._seats.illegal.count[0])
        if not self.rules.box:
            info["action_mask"] = self.action_masks()
        if ended is not None:
            info["score"] = float(ended.score[0])
            info["scores"] = ended.scores[0]
            info["end"] = str(ended.end[0])
        return info


class SparringVectorEnv(VectorEnv[Obs, npt.NDArray[Any], npt.NDArray[Any]]):
    """N games at once. SAME_STEP is the fast mode: one pool, no Python per game."""

    def __init__(
        self,
        game: str | Rules,
        num_envs: int,
        *,
        config: Mapping[str, Any] | None = None,
        opponents: Opponents = None,
        seed: int = 0,
        rewards: Rewards | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        threads: int | None = None,
        render_mode: str | None = None,
        illegal: str = "error",
        illegal_reward: float = 0.0,
    ) -> None:
        """Make the games; `reset` starts them.

        opponents, rewards, render_mode, illegal, illegal_reward: as in `SparringEnv`; game i plays
            as `SparringEnv(first_game=i)` does.
        autoreset_mode: what happens to a game that ended, as Gymnasium defines it.
        threads: how many step the games in SAME_STEP mode; None takes one per core.
        """
        super().__init__()
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._seats = LearnerSeats(
            game,
            num_envs,
            hold=self.autoreset_mode is not AutoresetMode.SAME_STEP,
            config=config,
            opponents=opponents,
            seed=seed,
            rewards=rewards,
            threads=threads,
            illegal=illegal,
            illegal_reward=illegal_reward,
            watch=render_mode is not None,
        )
        self.rules = self._seats.rules
        self.num_envs, self.render_mode = num_envs, render_mode
        modes = metadata_of(self.rules, render_mode)
        self.metadata = modes | {"autoreset_mode": self.autoreset_mode}
        self.single_observation_space = observation_space(self.rules)
        self.single_action_space = action_space(self.rules)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Start all games anew, or those of `options["reset_mask"]`; with a seed, its first ones.

        One seed serves all games: each is drawn from the seed and its own index.
        """
        games = self._chosen(options)
        super().reset(seed=seed)
        self._seats.reset(seed, games)
        return self._seats.obs.copy(), self._running_info(games)

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Obs, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], Info]:
        """Play one action per game. An illegal one is refused and no game changes."""
        over = self._seats.over
        if self.autoreset_mode is AutoresetMode.DISABLED and over.any():
            raise ResetNeeded(
                f"games {np.flatnonzero(over).tolist()} are over; "
                'reset them with options={"reset_mask": terminated | truncated}'
            )
        step = self._seats.step(actions)
        info = self._running_info(None)
        if step.ended is not None:
            if self._seats.hold:
                info |= self._spread(step.ended.game, end_info(step.ended))
            else:
                info |= self._final_info(step.ended)
        # On hold the observations may be shown again, so the caller gets a copy.
        obs = self._seats.obs.copy() if self._seats.hold else self._seats.obs
        return obs, step.reward.astype(np.float64), step.terminated, step.truncated, info

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame per game; in SAME_STEP mode a game that ended shows its next episode."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                f"make {self} with a render_mode: {self.metadata['render_modes']}"
            )
            return None
        seats = self._seats
        games = range(self.num_envs)
        return tuple(frame(seats.position(i), self.render_mode, seats.names(i)) for i in games)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return what `step` accepts, [num_envs, actions]: the legal actions.

        Everything, where the next step ignores the action (NEXT_STEP, after an end), so that a
        masked policy has something to choose from.
        """
        check_discrete(self.rules)
        masks = self._seats.mask.copy()
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            masks[self._seats.over] = True
        return masks

    def _chosen(self, options: dict[str, Any] | None) -> npt.NDArray[np.bool_] | None:
        if options is None or "reset_mask" not in options:
            return None
        games = options["reset_mask"]
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            raise ConfigError("reset_mask needs autoreset_mode DISABLED or NEXT_STEP")
        if not isinstance(games, np.ndarray) or games.dtype != np.bool_:
            raise ConfigError("reset_mask must be a NumPy array of bool")
        if games.shape != (self.num_envs,) or not games.any():
            raise ConfigError(
                f"reset_mask must have shape {(self.num_envs,)} and name at least one game, "
                f"got {games}"
            )
        return games

    def _running_info(self, games: npt.NDArray[np.bool_] | None) -> Info:
        """Return the info that every step has, of all games or of some."""
        chosen = np.arange(self.num_envs) if games is None else np.flatnonzero(games)
        values: dict[str, npt.NDArray[Any]] = {"seat": self._seats.seat[chosen]}
        if self._seats.illegal.replaces:
            values["illegal_actions"] = self._seats.illegal.count[chosen]
        if not self.rules.box:
            values["action_mask"] = self._seats.mask[chosen]
        return self._spread(chosen, values)

    def _final_info(self, ended: Ended) -> Info:
        """Return what SAME_STEP has to tell about the episodes that are gone already."""
        values: dict[str, npt.NDArray[Any]] = {"seat": ended.seat}
        if self._seats.illegal.replaces:
            values["illegal_actions"] = ended.illegal
        if not self.rules.box:
            values["action_mask"] = ended.mask
        obs = np.empty(len(ended.game), np.object_)
        obs[:] = list(ended.obs)
        info = self._spread(ended.game, {"final_obs": obs})
        info["final_info"] = self._spread(ended.game, values | end_info(ended))
        info["_final_info"] = info["_final_obs"].copy()
        return info

    def _spread(self, games: npt.NDArray[np.intp], values: Mapping[str, npt.NDArray[Any]]) -> Info:
        """Write values of some games as Gymnasium does: one per game, and who has one."""
        info: Info = {}
        for key, value in values.items():
            nothing = None if value.dtype == np.object_ else 0
            info[key] = np.full((self.num_envs, *value.shape[1:]), nothing, value.dtype)
            info[key][games] = value
            info[f"_{key}"] = np.zeros(self.num_envs, np.bool_)
            info[f"_{key}"][games] = True
        return info


def end_info(ended: Ended) -> dict[str, npt.NDArray[Any]]:
    """Return what `info` says about an episode at its end."""
    return {"score": ended.score, "scores": ended.scores, "end": ended.end}


register_games()
