"""What programs ask a policy: observations as environments give them, in any form.

A pool's rows go to `Policy.act` as they are. What comes from elsewhere becomes such rows here.
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
"""The key of a dictionary observation that holds the legal actions."""


def rows_of(rules: Rules, given: Any, row_bytes: int) -> tuple[Bytes, bool]:
    """Return observations as rows of bytes [B, ...], and whether there was a single one.

    given: bytes as pools write them, numbers as `rules.pack` takes them (in any shape of that
        size), or a dictionary of numbers by the names of the observation's parts.
    row_bytes: length of a row with what is remembered behind it, which is fine too.
    """
    if isinstance(given, Mapping):
        return rows_from_dict(rules, given)
    obs, count = np.asarray(given), len(rules.features)
    if obs.dtype.kind in "biu" and obs.shape[-1:] in ((rules.obs_bytes,), (row_bytes,)):
        rows = np.atleast_2d(obs)
        if rows.ndim == 2 and (obs.dtype == np.uint8 or ((rows >= 0) & (rows <= 255)).all()):
            return rows.astype(np.uint8, copy=False), obs.ndim == 1
    if obs.dtype.kind in "biuf" and obs.ndim:
        if obs[0].size == count:
            return packed(rules, obs.reshape(len(obs), count)), False
        if obs.size == count:
            return packed(rules, obs.reshape(1, count)), True
    raise ConfigError(
        f"observations are {obs.dtype} {obs.shape}; {rules.name} has {count} numbers each "
        f"(gymnasium.spaces.flatten makes them), or {rules.obs_bytes} bytes as pools write them"
    )


def packed(rules: Rules, numbers: npt.NDArray[Any]) -> Bytes:
    """Return rows of numbers [B, features], which have to be finite."""
    for row, at in np.argwhere(~np.isfinite(numbers))[:1]:
        name = rules.features[at].name
        raise ConfigError(f"observations: {name} of row {row} is {numbers[row, at]}, not finite")
    return rules.pack(numbers)


def rows_from_dict(rules: Rules, given: Mapping[str, Any]) -> tuple[Bytes, bool]:
    """Return rows of a dictionary observation; its mask is not among the numbers."""
    sizes = {block.name: block.rows * len(block.columns) for block in rules.blocks}
    parts = {name: np.asarray(given[name]) for name in sizes if name in given}
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
    return packed(rules, np.concatenate(numbers, axis=1)), single


def to_masks(rules: Rules, given: Any, count: int) -> Bytes | None:
    """Return masks of bytes [B, actions]; None where none is given, or actions are numbers."""
    if given is None or rules.box:
        return None
    mask = np.atleast_2d(np.asarray(given))
    if mask.shape != (count, rules.actions):
        raise ConfigError(
            f"action_masks have shape {np.shape(given)}; {rules.name} needs {rules.actions} for "
            f"each of {count} observations"
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
    """Return the actions as the environment takes them, and what is remembered, see `Agent`."""
    rules = policy.rules
    rows, single = rows_of(rules, observation, rules.obs_bytes)
    if action_masks is None and isinstance(observation, Mapping):
        action_masks = observation.get(MASK)
    memory = policy.initial_memory(len(rows)) if state is None else np.array(state, np.uint8)
    if memory.shape != (len(rows), policy.memory_bytes):
        raise ConfigError(
            f"state has shape {memory.shape}; {policy.name} needs what predict returned for the "
            f"same {len(rows)} observations, ({len(rows)}, {policy.memory_bytes}), or None"
        )
    if episode_start is not None:
        memory[np.broadcast_to(np.asarray(episode_start, np.bool_), len(rows))] = 0
    given = None if action_masks is None else rules.env_masks(action_masks)
    mask = to_masks(rules, given, len(rows))
    how: dict[str, Any] = {"greedy": deterministic, "step": step}
    actions, memory = policy.decide(rows, mask, memory, **how)
    own = rules.env_actions(actions)
    return own[0] if single else own, memory if policy.memory_bytes else None
