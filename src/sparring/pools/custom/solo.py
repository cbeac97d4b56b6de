"""Single Gymnasium environments: games with one seat."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.pools.custom.encoding import MASK, Encoding, encoding_of
from sparring.pools.custom.seats import TablePool
from sparring.pools.custom.tables import EnvTable

PLAYER = "player"
"""Name of the only seat in errors."""


class SoloTable(EnvTable):
    """A gymnasium.Env."""

    def __init__(self, env: Any, index: int, agents: Any, encodings: list[Encoding]) -> None:
        super().__init__(env, index, agents, encodings)
        self.name = solo_name(env)
        self._asks = not encodings[0].bounds and not encodings[0].masked and has_method(env)

    def start(self, seed: int | None) -> None:
        self.clear()
        obs, info = answered(self.env.reset(seed=seed), 2, self.where, "reset")
        self.enter([PLAYER])
        self.see(PLAYER, obs, self._with_mask(info))

    def play(self, actions: npt.NDArray[Any]) -> None:
        self.steps += 1
        given = answered(self.env.step(self.one(actions, 0)), 5, self.where, "step")
        obs, reward, terminated, truncated, info = given
        self.reward[0] = reward
        over = bool(terminated or truncated)
        self.see(PLAYER, obs, self._with_mask(info), last=over)
        if over:
            self.leave(PLAYER, terminated=bool(terminated))

    def deciding(self) -> list[int]:
        return [-1 if self.over else 0]

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        """Add the mask of `action_masks()` to an info without one."""
        if not self._asks or MASK in info:
            return info
        return {**info, MASK: np.asarray(self.env.get_wrapper_attr("action_masks")())}


class SoloPool(TablePool):
    """gymnasium.Envs of one kind, each a game with one seat."""

    table, turns = SoloTable, True

    @staticmethod
    def read(env: Any) -> tuple[list[Any], list[Encoding]]:
        name = solo_name(env)
        spaces = (env.observation_space, env.action_space)
        return [PLAYER], [encoding_of(*spaces, name, env)]

    @staticmethod
    def name_of(env: Any) -> str:
        return solo_name(env)


def solo_name(env: Any) -> str:
    """The id that the env was made by, or its class."""
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def has_method(env: Any) -> bool:
    """Whether the env or its wrappers have a method for masks."""
    return bool(env.has_wrapper_attr("action_masks"))


def answered(given: Any, count: int, where: str, method: str) -> tuple[Any, ...]:
    """Refuse a result that is not Gymnasium's, such as that of an env for the old gym."""
    if isinstance(given, tuple) and len(given) == count and isinstance(given[-1], dict):
        return given
    wanted = {2: "(obs, info)", 5: "(obs, reward, terminated, truncated, info)"}[count]
    raise SparringError(f"{where}: {method} returns no {wanted}, as Gymnasium's envs do")


def check_env(env: Any) -> None:
    """Refuse an env without spaces."""
    for name in ("observation_space", "action_space"):
        if getattr(env, name, None) is None:
            raise ConfigError(f"{solo_name(env)} has no {name}; set it in the env's __init__")
