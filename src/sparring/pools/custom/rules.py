"""Rules of a custom environment, without a native game."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.features import Feature, FeatureBlock
from sparring.games.rules import Bots, Field, Rewards, Rules
from sparring.games.stats import Stat
from sparring.pools.custom.bounds import Bounds, read_bounds
from sparring.pools.custom.choices import Choices, read_choices
from sparring.pools.custom.encoding import Encoding, env_attribute
from sparring.pools.custom.layout import LayoutPart, ObsLayout, Pixels, read_layout

DECLARED = ("zero_sum", "perfect_information")
"""Attributes by which an env declares what a search relies on: two seats of which one wins what the
other loses; nothing is hidden from any seat."""


class CustomRules(Rules):
    """Sizes and names of a custom environment. There is no native game."""

    def __init__(
        self,
        name: str,
        *,
        seats: int,
        rows: int,
        actions: int,
        numbers: int,
        first_action: int = 0,
        bounds: Bounds | Mapping[str, Any] | None = None,
        parts: Sequence[Sequence[Any]] = (),
        names: Sequence[str] = (),
        action_names: Sequence[str] = (),
        choices: Choices | Mapping[str, Any] | None = None,
        zero_sum: bool = False,
        perfect_information: bool = False,
    ) -> None:
        """Describe an environment; `plain` returns the same arguments.

        numbers: length of a flattened observation.
        first_action: the env's number of action 0.
        bounds: of continuous actions, see `Bounds`; then `actions` is 0.
        parts, names: of an observation, see `ObsLayout`; by default unnamed floats.
        action_names: one for every action, if the env gives them.
        choices: of an env that asks for several at once; actions are their combinations.
        zero_sum, perfect_information: what the env declares, see `DECLARED`.
        """
        self.name = re.sub(r"[^\w.-]+", "_", name)  # part of the run folder's name
        self.title = name
        self.rules_version = 0
        self.bounds = read_bounds(bounds) if isinstance(bounds, Mapping) else bounds
        self.seats, self.rows, self.actions = seats, rows, actions
        self.box = len(self.bounds.low) if self.bounds else 0
        self.numbers, self.first_action = numbers, first_action
        self.layout: ObsLayout = read_layout(numbers, parts, names)
        self.action_names = tuple(map(str, action_names))
        self.choices = read_choices(choices) if isinstance(choices, Mapping) else choices
        self.obs_bytes = self.layout.obs_bytes
        self.roles = ("player",)
        self.board = ()
        self.parts = ("reward",)
        self.bots = Bots()
        self.ends = ("terminated", "truncated")
        self.counters = ()
        self.hides = not perfect_information
        self.zero_sum = bool(zero_sum)
        self.chance = True
        self.skip_forced = False

    declares_flags = False
    factory = ""
    """Name of the env's factory, module:factory; "" for an env that was given as an object."""

    def plain(self) -> dict[str, Any]:
        """Arguments of `CustomRules`, for a checkpoint."""
        names = ("seats", "rows", "actions", "numbers", "first_action")
        plain = {"name": self.title, **{name: getattr(self, name) for name in names}}
        plain |= self.layout.plain()
        plain |= {"action_names": list(self.action_names)} if self.action_names else {}
        plain |= {"choices": self.choices.plain()} if self.choices else {}
        declared = {"zero_sum": self.zero_sum, "perfect_information": not self.hides}
        plain |= {name: True for name in DECLARED if declared[name]}
        return plain | ({"bounds": self.bounds.plain()} if self.bounds else {})

    @cached_property
    def fields(self) -> dict[str, Field]:
        return {}

    @cached_property
    def stats(self) -> tuple[Stat, ...]:
        return ()

    @property
    def config(self) -> dict[str, Any]:
        return {}

    def changed(self, changes: Mapping[str, Any]) -> Rules:
        """Refuse: the env object was configured when it was made."""
        if changes:
            raise ConfigError(f"{self.name} has no flags; change the env object: {dict(changes)}")
        return self

    def action_name(self, action: int) -> str:
        """The env's name of an action, or its number."""
        if not 0 <= action < self.actions:
            raise ConfigError(f"{self.name} has actions 0..{self.actions - 1}, not {action}")
        if self.action_names:
            return self.action_names[action]
        return self.choices.name(action) if self.choices else str(action + self.first_action)

    def numbered(self, action: int) -> str:
        """An action's index from 0, with its name if the env gives one."""
        return f"{action} ({self.action_names[action]})" if self.action_names else str(action)

    def env_actions(self, action: npt.ArrayLike) -> npt.NDArray[Any]:
        """Turn a policy's actions into those of the env.

        Discrete actions [...] are offset by the env's first action, or split into the parts of a
        combination [..., *shape]; continuous ones [..., box] are scaled from -1..1 to the env's
        bounds [..., *shape].
        """
        given = np.asarray(action)
        if self.choices:
            return self.choices.applied(given)
        if not self.bounds:
            return np.asarray(given + self.first_action)
        if given.shape[-1:] != (self.box,):
            raise ConfigError(f"actions have shape {given.shape}, need (..., {self.box})")
        return self.bounds.applied(given)

    def env_masks(self, given: npt.ArrayLike) -> npt.NDArray[Any]:
        """Turn masks of an env into those of actions; of several choices, see `Choices`."""
        mask = np.asarray(given)
        return self.choices.masks(mask) if self.choices else mask

    def choices_in(self, block: str) -> int:
        """Number of choices in a part of the env's observations."""
        return len(self._parts_by_name[block].choices)

    def env_block(self, block: str, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Turn the choices of a part [B, choices] into its numbers; others stay as they are."""
        part = self._parts_by_name[block]
        return part.one_hot(given) if part.choices else given

    @cached_property
    def _parts_by_name(self) -> dict[str, LayoutPart]:
        return {part.name: part for part in self.layout.parts}

    @cached_property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """A block for every key of a Dict observation, or one for all numbers."""
        return self.layout.blocks

    @property
    def pixels(self) -> Pixels | None:
        """The pixels that an observation consists of; None: it is something else."""
        return self.layout.pixels

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The numbers of a flattened observation."""
        return self.layout.features

    @cached_property
    def mirror(self) -> None:
        """Custom environments do not declare a symmetry."""
        return None

    def pack(self, numbers: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Turn flattened observations [..., numbers] into bytes [..., obs_bytes]."""
        given = np.asarray(numbers, np.float32)
        if given.shape[-1:] != (self.numbers,):
            raise ConfigError(f"observations have shape {given.shape}, need (..., {self.numbers})")
        rows = np.zeros((*given.shape[:-1], self.obs_bytes), np.uint8)
        self.layout.write(rows, given)
        return rows

    def weights(self, rewards: Rewards | None) -> list[float]:
        """The weight of the only reward part, 1 by default."""
        return [1.0] if rewards is None else super().weights(rewards)


def rules_for(
    name: str, encoding: Encoding, *, seats: int, rows: int, env: Any = None
) -> CustomRules:
    """Rules of an env whose seats all have this encoding. env: may declare more, see `DECLARED`."""
    return CustomRules(
        name,
        seats=seats,
        rows=rows,
        actions=encoding.actions,
        numbers=encoding.numbers,
        first_action=encoding.first_action,
        bounds=encoding.bounds,
        action_names=encoding.action_names,
        choices=encoding.choices,
        **encoding.layout.plain(),
        **declared_by(env, name, seats),
    )


def declared_by(env: Any, name: str, seats: int) -> dict[str, Any]:
    """What an env declares by the attributes in `DECLARED`."""
    declared = {what: env_attribute(env, what) is True for what in DECLARED}
    if declared["zero_sum"] and seats != 2:
        raise ConfigError(f"{name} declares zero_sum, which is for two seats, not {seats}")
    return declared
