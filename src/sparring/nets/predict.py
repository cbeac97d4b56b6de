"""Predictions for observations in the form in which environments return them.

Rows of a pool go to `Policy.act` as they are; this module converts all other observations to rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError
from sparring.games.rules import Rules

Bytes = npt.NDArray[np.uint8]

MASK = "action_mask"
"""Key of the legal actions in a dictionary observation."""
WHOLE = "obs"
"""Name of the only block of an observation without names."""


class Decider(Protocol):
    """What predictions need of a policy."""

    name: str

    @property
    def rules(self) -> Rules: ...

    @property
    def memory_bytes(self) -> int: ...

    def initial_memory(self, rows: int) -> Bytes: ...

    def decide(
        self, obs: Bytes, mask: Any, memory: Bytes, *, greedy: bool, step: int
    ) -> tuple[Any, Bytes]: ...


def rows_of(rules: Rules, observation: Any, row_bytes: int) -> tuple[Bytes, bool]:
    """Return observations as rows of bytes [B, ...], and whether there was a single one.

    observation: as the environment returns it, bytes as pools write them, numbers as `rules.pack`
        takes them (in any shape of that size), or a dictionary of numbers by the names of the
        observation's blocks.
    row_bytes: length of a row that includes memory, which is accepted as well.
    """
    if isinstance(observation, Mapping) or is_tuple_or_choice(rules, observation):
        return rows_from_parts(rules, observation)
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
        f"(gymnasium.spaces.flatten makes them, without {MASK}), or {rules.obs_bytes} bytes as "
        "pools write them"
    )


def is_tuple_or_choice(rules: Rules, observation: Any) -> bool:
    """Whether an observation is the value of a Tuple, Discrete or MultiDiscrete space."""
    first = rules.blocks[0].name
    if first.startswith(f"{WHOLE}."):
        return isinstance(observation, tuple)
    choices = rules.choices_in(first) if len(rules.blocks) == 1 else 0
    return choices > 0 and np.size(observation) == choices != len(rules.features)


def pack_finite(rules: Rules, numbers: npt.NDArray[Any]) -> Bytes:
    """Pack features [B, features] to byte rows; raise if one of them is not finite."""
    for row, feature in np.argwhere(~np.isfinite(numbers))[:1]:
        name, value = rules.features[feature].name, numbers[row, feature]
        raise ConfigError(f"observations: {name} of row {row} is {value}, not finite")
    return rules.pack(numbers)


def named_parts(
    observation: Any, names: Container[str], name: str = ""
) -> Iterator[tuple[str, Any]]:
    """Parts of nested dictionaries and tuples, by the names of their blocks."""
    if name not in names and isinstance(observation, Mapping):
        for key, value in observation.items():
            yield from named_parts(value, names, f"{name}.{key}" if name else str(key))
    elif name not in names and isinstance(observation, tuple):
        for number, value in enumerate(observation):
            yield from named_parts(value, names, f"{name or WHOLE}.{number}")
    else:
        yield name or WHOLE, observation


def rows_from_parts(rules: Rules, observation: Any) -> tuple[Bytes, bool]:
    """Return the rows of a dictionary, tuple or choice, without its mask.

    A choice is its value, as the environment gives it, or one-hot numbers.
    """
    sizes = {block.name: block.rows * len(block.columns) for block in rules.blocks}
    named = dict(named_parts(observation, sizes))
    parts = {name: np.asarray(named[name]) for name in sizes if name in named}
    if missing := [name for name in sizes if name not in parts]:
        raise ConfigError(f"observations: {', '.join(missing)} of {rules.name} is missing")
    either = {name: {sizes[name], rules.choices_in(name) or sizes[name]} for name in sizes}
    mask: Any = named.get(MASK)
    single = np.ndim(mask) < 2 and all(parts[name].size in either[name] for name in parts)
    count = 1 if single else len(np.atleast_1d(next(iter(parts.values()))))
    numbers = []
    for name, part in parts.items():
        size = part.size // max(count, 1)
        if part.dtype.kind not in "biuf" or size * count != part.size or size not in either[name]:
            needs = " or ".join(f"{size:,}" for size in sorted(either[name]))
            raise ConfigError(
                f"observations: {name} of {rules.name} is {part.dtype} {part.shape}; it needs "
                f"{needs} numbers for each of {count} observations"
            )
        block = part.reshape(count, size)
        is_hot = size == sizes[name] and (
            size != rules.choices_in(name) or bool((block == 1).all())
        )
        numbers.append(block if is_hot else rules.env_block(name, block))
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
    policy: Decider,
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
