"""Predictions for observations in the form in which environments return them.

Rows of a pool go to `Policy.act` as they are; this module converts all other observations to rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.policy import Policy

Bytes = npt.NDArray[np.uint8]

MASK = "action_mask"
"""Key of the legal actions in a dictionary observation."""


def rows_of(rules: Rules, observation: Any, row_bytes: int) -> tuple[Bytes, bool]:
    """Return observations as rows of bytes [B, ...], and whether there was a single one.

    observation: bytes as pools write them, numbers as `rules.pack` takes them (in any shape of
        that size), or a dictionary of numbers by the names of the observation's blocks.
    row_bytes: length of a row that includes memory, which is accepted as well.
    """
    if isinstance(observation, Mapping):
        return rows_from_dict(rules, observation)
    obs, count = np.asarray(observation), len(rules.features)
    if obs.dtype.kind in "biu" and obs.shape[-1:] in ((rules.obs_bytes,), (row_bytes,)):
        rows = np.atleast_2d(obs)
        if rows.ndim == 2 and (obs.dtype == np.uint8 or ((rows >= 0) & (rows <= 255)).all()):
            return rows.astype(np.uint8, copy=False), obs.ndim == 1
    if obs.dtype.kind in "biuf" and obs.ndim:
        if obs[0].size == count:
            return pack_finite(rules, obs.reshape(len(obs), count)), False
        if obs.size == count:
            return pack_finite(rules, obs.reshape(1, count)), True
    raise ConfigError(
        f"observations are {obs.dtype} {obs.shape}; {rules.name} has {count} numbers each "
        f"(gymnasium.spaces.flatten makes them), or {rules.obs_bytes} bytes as pools write them"
    )


def pack_finite(rules: Rules, numbers: npt.NDArray[Any]) -> Bytes:
    """Pack features [B, features] to byte rows; raise if one of them is not finite."""
    for row, feature in np.argwhere(~np.isfinite(numbers))[:1]:
        name, value = rules.features[feature].name, numbers[row, feature]
        raise ConfigError(f"observations: {name} of row {row} is {value}, not finite")
    return rules.pack(numbers)


def rows_from_dict(rules: Rules, observation: Mapping[str, Any]) -> tuple[Bytes, bool]:
    """Return the rows of a dictionary observation, without its mask."""
    sizes = {block.name: block.rows * len(block.columns) for block in rules.blocks}
    parts = {name: np.asarray(observation[name]) for name in sizes if name in observation}
    missing = [name for name in sizes if name not in parts]
    single = all(parts[name].size == sizes[name] for name in parts)
    count = 1 if single or not parts else len(np.atleast_1d(next(iter(parts.values()))))
    wrong = [name for name in parts if parts[name].size != count * sizes[name]]
    if missing or wrong:
        raise ConfigError(
            f"observations: {', '.join(missing or wrong)} of {rules.name} "
            f"{'is missing' if missing else 'has another size than its part'}; give a flat one, "
            "as gymnasium.spaces.flatten makes it"
        )
    numbers = [parts[name].reshape(count, sizes[name]) for name in sizes]
    return pack_finite(rules, np.concatenate(numbers, axis=1)), single


def to_masks(rules: Rules, action_masks: Any, count: int) -> Bytes | None:
    """Return masks as bytes [B, actions]; None without masks, or with continuous actions."""
    if action_masks is None or rules.box:
        return None
    mask = np.atleast_2d(np.asarray(action_masks))
    if mask.shape != (count, rules.actions):
        raise ConfigError(
            f"action_masks have shape {np.shape(action_masks)}; {rules.name} needs "
            f"{rules.actions} for each of {count} observations"
        )
    legal: Bytes = (mask != 0).astype(np.uint8)
    return legal


def predict(
    policy: Policy,
    observation: Any,
    state: Any = None,
    episode_start: Any = None,
    *,
    deterministic: bool,
    action_masks: Any,
    step: int,
) -> tuple[Any, Bytes | None]:
    """Return actions in the environment's format, and the next memory; see `Agent.predict`."""
    rules = policy.rules
    rows, single = rows_of(rules, observation, rules.obs_bytes)
    if action_masks is None and isinstance(observation, Mapping):
        action_masks = observation.get(MASK)
    memory = policy.initial_memory(len(rows)) if state is None else np.array(state, np.uint8)
    if memory.shape != (len(rows), policy.memory_bytes):
        raise ConfigError(
            f"state has shape {memory.shape}; {policy.name} needs the state that predict returned "
            f"for the same {len(rows)} observations, ({len(rows)}, {policy.memory_bytes}), or None"
        )
    if episode_start is not None:
        memory[np.broadcast_to(np.asarray(episode_start, np.bool_), len(rows))] = 0
    masks = None if action_masks is None else rules.env_masks(action_masks)
    mask = to_masks(rules, masks, len(rows))
    actions, memory = policy.decide(rows, mask, memory, greedy=deterministic, step=step)
    env_actions = rules.env_actions(actions)
    return env_actions[0] if single else env_actions, memory if policy.memory_bytes else None
