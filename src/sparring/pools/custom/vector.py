"""Pools of Gymnasium vector environments: every sub-env is a game with one seat."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.games.seeds import ENV_SEED_LIMIT
from sparring.phases import phase
from sparring.pools.custom.base import (
    TERMINATED,
    TRUNCATED,
    CustomPool,
    check_finite,
)
from sparring.pools.custom.encoding import MASK, Mask, Numbers, encoding_of, library
from sparring.pools.custom.flags import check_of_vector, set_on_vector
from sparring.pools.custom.rules import rules_for
from sparring.pools.lineups import LEARNER, NO_POLICY

Bools = npt.NDArray[np.bool_]


class VectorEnvPool(CustomPool):
    """The sub-envs of a Gymnasium vector env, each a game with one seat."""

    def __init__(self, env: Any, *, seed: int = 0, memory: int = 0) -> None:
        """Wrap the env; `reset` starts it.

        seed: passed to the env's first reset; Gymnasium's vectors add the env's index.
        """
        name = vector_name(env)
        spaces = (env.single_observation_space, env.single_action_space)
        self._encoding = encoding_of(*spaces, name, env)
        rules = rules_for(name, self._encoding, seats=1, rows=1)
        super().__init__(rules, env.num_envs, seed, (), memory)
        self.env = env
        self.mode = autoreset_mode(env)
        """Gymnasium's autoreset mode: NextStep, SameStep or Disabled."""
        self._no_games = np.zeros(self.num_games, np.bool_)
        self._resetting = self._no_games
        """NextStep: games whose next step only resets them."""
        self._masks_in = "nothing"
        """Source of masks: obs, info, method, call or nothing."""
        self._score = np.zeros((self.num_games, 1))
        self._length = np.zeros(self.num_games, np.int32)

    @phase("reset")
    def _reset(self, seed: int | None) -> None:
        if seed is not None:
            seed = (seed + self.first_game) % (ENV_SEED_LIMIT - self.num_games)
        obs, info = self.env.reset(seed=seed)
        check_info(info)
        self._resetting = self._no_games
        self._score.fill(0)
        self._length.fill(0)
        self._masks_in = "nothing" if self.rules.box else self._find_masks(info)
        numbers = self._encoding.flatten(obs, self.num_games)
        self._check(numbers, np.zeros(self.num_games))
        mask, known = self._masks(obs, info)
        self._ask(numbers, mask, known)

    def _close(self) -> None:
        self.env.close()

    def check_flags(self, flags: Iterable[str]) -> None:
        check_of_vector(self.rules.name, self.env, flags)

    def _set_config(self, flags: Mapping[str, Any]) -> None:
        set_on_vector(self.rules.name, self.env, flags)

    @phase("stepping")
    def _step(self, action: npt.NDArray[Any]) -> None:
        batch, resetting = self._batch, self._resetting
        self._length += batch.policy != NO_POLICY
        env_action = self.rules.env_actions(action).astype(
            self.env.single_action_space.dtype, copy=False
        )
        obs, reward, terminated, truncated, info = self.env.step(env_action)
        check_info(info)
        # The reward of a reset belongs to no decision. TimeLimit may set both flags at once.
        paid = np.array(reward, np.float64)
        batch.terminated[:], batch.truncated[:] = terminated, truncated
        if resetting.any():
            paid[resetting], batch.terminated[resetting], batch.truncated[resetting] = (
                0.0,
                False,
                False,
            )
        over = batch.terminated | batch.truncated
        batch.truncated &= ~batch.terminated
        self._check_ends(over, info)
        numbers = self._encoding.flatten(obs, self.num_games)
        self._check(numbers, paid)
        mask, known = self._masks(obs, info)
        batch.reward[:, 0, 0] = paid
        self._score[:, 0] += paid
        self._end(over, numbers, mask, known, info)
        self._resetting = over if self.mode == "NextStep" else self._no_games
        if self.mode == "Disabled" and over.any():
            obs, info = self.env.reset(options={"reset_mask": over.copy()})
            check_info(info)
            fresh, fresh_known = self._masks(obs, info)
            numbers[over] = self._encoding.flatten(obs, self.num_games)[over]
            mask[over], known[over] = fresh[over], fresh_known[over]
            self._check(numbers, paid)
        self._ask(numbers, mask, known)

    def _end(self, over: Bools, numbers: Numbers, mask: Mask, known: Bools, info: Any) -> None:
        """Store the episodes that have ended, with their last observations."""
        batch, games = self._batch, np.flatnonzero(over)
        batch.clear_ends(len(games))
        if not len(games):
            return
        mask = np.where(known[:, None], mask, 1)
        cut = batch.truncated[games]
        batch.final_game[:] = games
        batch.final_score[:] = self._score[games]
        batch.final_length[:] = self._length[games]
        batch.final_reason[:] = np.where(cut, TRUNCATED, TERMINATED)
        batch.final_over[:, 0] = ~cut
        self._score[games], self._length[games] = 0, 0
        if self.mode == "SameStep":
            numbers, mask = self._final(games, info)
        self.rules.layout.write(batch.final_obs[:, 0], numbers[games])
        batch.final_mask[cut, 0] = mask[games[cut]]

    def _final(self, games: npt.NDArray[np.intp], info: Any) -> tuple[Numbers, Mask]:
        """Read last observations and masks of envs that have been reset already."""
        encoding, batch, given = self._encoding, self._batch, info["final_obs"]
        numbers = np.zeros((self.num_games, encoding.numbers), np.float32)
        mask = np.ones_like(batch.mask)
        last_info = info.get("final_info", {})
        has_mask = last_info.get(f"_{MASK}", np.ones(self.num_games, np.bool_))
        for game in games:
            # Gymnasium stores them one by one; other vectors may return a batch.
            obs = given[game] if isinstance(given, np.ndarray) else row_of(given, game)
            numbers[game] = encoding.flatten(obs)
            check_finite(self._where(game), numbers[game], np.zeros(()))
            if encoding.masked:
                mask[game] = encoding.mask(encoding.mask_in(obs))
            elif self._masks_in == "info" and MASK in last_info and has_mask[game]:
                mask[game] = encoding.mask(last_info[MASK][game])
        return numbers, mask

    def _ask(self, numbers: Numbers, mask: Mask, known: Bools) -> None:
        """Fill the rows of the next decisions; games that are resetting have none."""
        batch = self._batch
        if not known.all():
            for game in np.flatnonzero(~self._resetting & ~known)[:1]:
                raise SparringError(
                    f"{self._where(game)}: no {MASK} in its info, though there were some before; "
                    "give one at every reset and step"
                )
        self.rules.layout.write(batch.obs, numbers)
        batch.mask[:] = mask
        batch.seat[:], batch.policy[:] = 0, LEARNER
        if self._resetting.any():
            batch.clear_rows(self._resetting)

    def _find_masks(self, info: Any) -> str:
        if self._encoding.masked:
            return "obs"
        if MASK in info:
            return "info"
        if callable(getattr(self.env, "action_masks", None)):
            return "method"
        base = self.env.unwrapped  # vector wrappers do not forward unknown methods
        if callable(getattr(base, "action_masks", None)):
            return "method"
        # Checked first: a worker process dies if a missing method is called.
        if hasattr(base, "call") and all(base.call("has_wrapper_attr", "action_masks")):
            return "call"
        return "nothing"

    def _masks(self, obs: Any, info: Any) -> tuple[Mask, Bools]:
        """Return masks [N, actions], and which games have one."""
        games, encoding = self.num_games, self._encoding
        known = np.ones(games, np.bool_)
        if self._masks_in == "info":
            mask = np.zeros((games, encoding.actions), np.uint8)
            known = info.get(f"_{MASK}", known) if MASK in info else np.zeros(games, np.bool_)
            if known.any():
                mask[known] = encoding.mask(np.stack(list(info[MASK][known])), int(known.sum()))
            return mask, known.copy()
        if self._masks_in == "nothing":
            if MASK in info and not self.rules.box:
                raise SparringError(
                    f"{self.rules.name} gives an {MASK} at step {self.steps} and gave none at its "
                    "reset; put one into the info of every reset and step"
                )
            return np.ones((games, encoding.actions), np.uint8), known
        if self._masks_in == "obs":
            return encoding.mask(encoding.mask_in(obs), games), known
        if self._masks_in == "call":
            return encoding.mask(self.env.unwrapped.call("action_masks"), games), known
        owner = self.env if hasattr(self.env, "action_masks") else self.env.unwrapped
        return encoding.mask(owner.action_masks(), games), known

    def _check(self, numbers: Numbers, paid: npt.NDArray[np.float64]) -> None:
        if np.isfinite(numbers).all() and np.isfinite(paid).all():
            return
        fine = np.isfinite(numbers).all(axis=1) & np.isfinite(paid)
        for game in np.flatnonzero(~fine)[:1]:
            check_finite(self._where(game), numbers[game], paid[game])

    def _check_ends(self, over: Bools, info: Any) -> None:
        """Refuse an env that resets in another way than its metadata says."""
        if not over.any() and "final_obs" not in info:
            return
        says = f"{self.rules.name} says autoreset_mode {self.mode} in its metadata"
        if self.mode == "SameStep":
            given = info.get("_final_obs", over) if "final_obs" in info else ~over
            for game in np.flatnonzero(over & ~given)[:1]:
                raise SparringError(f"{says}, but env {game} ended without a final_obs in info")
        elif "final_obs" in info:
            raise SparringError(f"{says}, but its info has a final_obs as in SameStep")


def autoreset_mode(env: Any) -> str:
    """The env's autoreset mode; Gymnasium 1.x assumes NextStep if it is missing."""
    mode = env.metadata.get("autoreset_mode")
    if mode is None:
        text = f"{env} does not say its autoreset_mode in its metadata; NextStep is assumed"
        warnings.warn(SparringWarning(text), stacklevel=3)
        return "NextStep"
    return str(library("gymnasium").vector.AutoresetMode(mode).value)


def check_info(info: Any) -> None:
    """Refuse infos in another form than Gymnasium's, whose masks would be missed."""
    if not isinstance(info, dict):
        raise ConfigError(
            f"infos come as {type(info).__name__}, need Gymnasium's dictionary of arrays; take "
            "DictInfoToList off"
        )


def row_of(batch: Any, row: int) -> Any:
    if isinstance(batch, dict):
        return {key: row_of(part, row) for key, part in batch.items()}
    return tuple(row_of(part, row) for part in batch) if isinstance(batch, tuple) else batch[row]


def vector_name(env: Any) -> str:
    """The id that the env was made by, or its class."""
    known = [env, *getattr(env.unwrapped, "envs", ())[:1]]
    specs = [spec for spec in (getattr(one, "spec", None) for one in known) if spec is not None]
    return str(specs[0].id) if specs else type(env.unwrapped).__name__
