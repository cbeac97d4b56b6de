"""Encoding of custom environments: observations as numbers, and action spaces."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError
from sparring.pools.custom.bounds import Bounds, bounds_of
from sparring.pools.custom.choices import Choices, choices_of
from sparring.pools.custom.layout import ALL, BYTES, FLOATS, LayoutPart, ObsLayout, Pixels

Numbers = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

MASK = "action_mask"
"""Key of the legal actions in an observation or info of Gymnasium and PettingZoo."""


NAMES_OF_ACTIONS = ("action_names", "action_meanings", "get_action_meanings")
"""Attributes of an env that may name its actions; the last is Atari's."""
BINARY = -1
"""In place of a number of choices: zeros and ones."""
PIXEL = 255
"""A Box of bytes up to this value holds pixels, which are divided by it."""
LEAST_SIDE = 8
"""Pixels of fewer rows or columns are numbers like any other."""


def library(name: str) -> Any:
    """Return a package if it is imported: an env object has imported its library."""
    return sys.modules.get(name)


@dataclass(frozen=True)
class Encoding:
    """Encoding of one seat's observations, and its actions."""

    space: Any
    """Gymnasium space of the observation, without the mask."""
    numbers: int
    actions: int
    """Number of discrete actions; 0 for continuous ones."""
    first_action: int
    """The env's number of action 0."""
    masked: bool
    """Whether observations are dictionaries with an `action_mask`."""
    layout: ObsLayout
    """Layout of the numbers in a row, and their names."""
    bounds: Bounds | None = None
    """Of continuous actions, which have no masks."""
    action_names: tuple[str, ...] = ()
    """The env's names of its actions; () if it gives none."""
    choices: Choices | None = None
    """Of an env that asks for several choices at once."""

    def mask_in(self, obs: Any) -> Any:
        """The mask in an observation or a batch of them, None without one."""
        return obs[MASK] if self.masked else None

    def flatten(self, obs: Any, *lead: int) -> Numbers:
        """Return numbers [*lead, numbers]; `lead` is the number of envs if obs is a batch."""
        if isinstance(obs, np.ndarray) and obs.dtype == self.dtype and self.is_box:
            return flat(self.space, obs, lead, self.dtype)
        with np.errstate(over="ignore"):  # too large a float64 becomes inf, which is refused
            return flatten(self.space, obs, lead)

    def write(self, obs: Any, out: Numbers) -> None:
        """Flatten one observation into `out`, without temporary arrays."""
        at = 0
        for path, shape, first, count in self._leaves:
            value = obs
            for key in path:
                value = value[key]
            if count > 0:  # one of `count` choices
                chosen = int(value) - first
                if not 0 <= chosen < count or chosen + first != value:
                    break
                out[at : at + count] = 0
                out[at + chosen] = 1
                at += count
            else:
                given = np.asarray(value)
                if given.shape != shape or (count == BINARY and not is_binary(given)):
                    break
                if out.dtype == np.uint8 and given.dtype != np.uint8:
                    self.layout.check_bytes(given.ravel())
                with np.errstate(over="ignore"):  # inf is refused later
                    out[at : at + given.size] = given.ravel()
                at += given.size
        else:
            if self._leaves:
                return
        out[:] = self.flatten(obs)  # other kinds of spaces, and values that are refused

    @cached_property
    def _leaves(self) -> list[tuple[tuple[Any, ...], tuple[int, ...], int, int]]:
        """Paths of an observation's parts with shapes or counts of choices; [] for other kinds."""
        return leaves_of(self.space) or []

    @cached_property
    def dtype(self) -> type[np.float32] | type[np.uint8]:
        """Dtype of flattened observations in a pool: bytes of pixels, else floats."""
        return np.uint8 if self.layout.pixels else np.float32

    @cached_property
    def is_box(self) -> bool:
        return isinstance(self.space, library("gymnasium").spaces.Box)

    def mask(self, given: Any, *lead: int) -> Mask:
        """Return a mask as bytes [*lead, actions]."""
        mask = np.asarray(given)
        if self.choices:
            mask = self.choices.masks(mask)
        if mask.shape != (*lead, self.actions):
            raise SparringError(
                f"an action mask has shape {mask.shape}, need {(*lead, self.actions)}"
            )
        legal: Mask = (mask != 0).astype(np.uint8)
        return legal


def is_binary(given: npt.NDArray[Any]) -> bool:
    return bool(given.dtype.kind == "b" or ((given == 0) | (given == 1)).all())


def leaves_of(
    space: Any, path: tuple[Any, ...] = ()
) -> list[tuple[tuple[Any, ...], tuple[int, ...], int, int]] | None:
    """The parts of a space in the order of `flatten`; None if a part is not supported."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inside = space.spaces
        keyed = inside.items() if isinstance(inside, Mapping) else enumerate(inside)
        found = [leaves_of(inner, (*path, key)) for key, inner in keyed]
        if any(part is None for part in found):
            return None
        return [leaf for part in found for leaf in part or ()]
    if isinstance(space, spaces.Discrete):
        return [(path, (), int(space.start), int(space.n))]
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        kind = BINARY if isinstance(space, spaces.MultiBinary) else 0
        return [(path, tuple(space.shape), 0, kind)]
    return None


def encoding_of(observations: Any, actions: Any, where: str, env: Any = None) -> Encoding:
    """Read a seat's spaces; unsupported ones are refused.

    env: the environment, which may name its numbers and actions.
    """
    gymnasium = library("gymnasium")
    if gymnasium is None:
        raise ConfigError(f'{where}: spaces are Gymnasium\'s; pip install "sparring[gymnasium]"')
    spaces = gymnasium.spaces
    several = isinstance(actions, spaces.MultiDiscrete | spaces.MultiBinary)
    if not several and not isinstance(actions, spaces.Discrete | spaces.Box):
        raise ConfigError(
            f"{where}: actions are {actions}; only Discrete, MultiDiscrete, MultiBinary and Box "
            "can be learned"
        )
    bounds = bounds_of(actions, where) if isinstance(actions, spaces.Box) else None
    masked = not bounds and isinstance(observations, spaces.Dict) and MASK in observations.spaces
    if masked:
        rest = {key: space for key, space in observations.spaces.items() if key != MASK}
        observations = spaces.Dict(rest)
    check_readable(observations, where)
    numbers = int(spaces.flatdim(observations))
    if not numbers:
        raise ConfigError(f"{where}: the observation space {observations} holds no numbers")
    layout = ObsLayout(tuple(parts_of(observations)), names_of(env))
    if bounds:
        return Encoding(observations, numbers, 0, 0, masked, layout, bounds)
    choices = choices_of(actions, where) if several else None
    count, first = (choices.actions, 0) if choices else (int(actions.n), int(actions.start))
    names = action_names_of(env, range(first, first + count), where, choices)
    read = Encoding(observations, numbers, count, first, masked, layout, action_names=names)
    return replace(read, choices=choices)


def names_of(env: Any) -> tuple[str, ...]:
    """The env's names of the numbers of its observations, if it has `feature_names`."""
    return tuple(map(str, env_attribute(env, "feature_names") or ()))


class ActionNamesError(ConfigError):
    """Action names that are not one for each action."""


def action_names_of(
    env: Any, actions: range, where: str, choices: Choices | None
) -> tuple[str, ...]:
    """The env's action names from one of `NAMES_OF_ACTIONS`: a list, or a method that returns one.

    An env with several choices at once may name those of all parts, concatenated. A list of another
    length belongs to an inner env whose actions a wrapper has changed.
    """
    for name in NAMES_OF_ACTIONS:
        value = env_attribute(env, name)
        value = value() if callable(value) else value
        if value is None:
            continue
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ActionNamesError(
                f"{where}: {name} is {type(value).__name__}; give a list of names"
            )
        ordered = by_action(value, actions) if isinstance(value, Mapping) else value
        names = tuple(" ".join(str(one).split()) for one in ordered)
        if not names:
            continue
        if choices and len(names) == sum(choices.counts):
            names = choices.names(names)
        if len(names) == len(set(names)) == len(actions):
            return names
        if name == NAMES_OF_ACTIONS[0]:
            raise ActionNamesError(
                f"{where}: {name} has {len(names)} names, {len(set(names))} of them different; "
                f"there are {len(actions)} actions, each needs one"
            )
    return ()


def by_action(given: Mapping[Any, Any], actions: range) -> list[Any]:
    """The names in a dict by action: {0: "roll"}, or {"roll": 0}."""
    if all(isinstance(key, str) for key in given):
        given = {action: name for name, action in given.items() if isinstance(action, Integral)}
    first, count = actions.start, max(len(actions), len(given))
    return [given[action] for action in range(first, first + count) if action in given]


def env_attribute(env: Any, name: str) -> Any:
    """An attribute of an env, of its inner envs, or of a vector's first env; None without one."""
    base = getattr(env, "unwrapped", env)
    while env is not base and getattr(env, name, None) is None and hasattr(env, "env"):
        env = env.env
    found = getattr(env, name, None)
    found = getattr(base, name, None) if found is None else found
    for inner in getattr(base, "envs", ())[:1] if found is None else ():
        return env_attribute(inner, name)
    return found


def parts_of(space: Any, name: str = "") -> Iterator[LayoutPart]:
    """The parts of an observation in the order of `flatten`, with their names."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inside = space.spaces
        keyed = inside.items() if isinstance(inside, Mapping) else enumerate(inside)
        for key, inner in keyed:
            label = str(key) if isinstance(inside, Mapping) or name else f"{ALL}.{key}"
            yield from parts_of(inner, f"{name}.{label}" if name else label)
        return
    count = int(spaces.flatdim(space))
    if count:
        stored = storage_of(space)
        shape = shape_of(space) if PIXEL in stored else ()
        yield LayoutPart(name or ALL, count, *stored, shape, one_hot_choices(space))


def one_hot_choices(space: Any) -> tuple[tuple[int, int], ...]:
    """Count and first value of every choice that is flattened as one-hot numbers."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Discrete):
        return ((int(space.n), int(space.start)),)
    if isinstance(space, spaces.MultiDiscrete):
        counts, firsts = np.ravel(space.nvec), np.ravel(space.start)
        return tuple((int(n), int(first)) for n, first in zip(counts, firsts, strict=True))
    return ()


def storage_of(space: Any) -> tuple[str, float]:
    """The dtype in which a space's numbers are stored, and their divisor."""
    spaces = library("gymnasium").spaces
    if not isinstance(space, spaces.Box):
        return BYTES, 1.0  # zeros and ones
    if space.dtype.kind not in "biu" or space.low.min() < 0 or space.high.max() > PIXEL:
        return FLOATS, 1.0
    pixels = space.dtype == np.uint8 and space.high.max() == PIXEL
    return BYTES, float(PIXEL) if pixels else 1.0


def shape_of(space: Any) -> tuple[int, ...]:
    """The shape of a Box of pixels if it can be seen as a picture, else ()."""
    shape = tuple(map(int, space.shape))
    if not 2 <= len(shape) <= 4:
        return ()
    pixels = Pixels(shape, 0)
    least = min(pixels.size)
    channels = min(shape[-3], shape[-1]) if len(shape) > 2 else 1
    return shape if least >= LEAST_SIDE and channels < least else ()


def check_readable(space: Any, where: str) -> None:
    """Refuse a space that does not consist of a fixed number of numbers."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict):
        for inner in space.spaces.values():
            check_readable(inner, where)
    elif isinstance(space, spaces.Tuple):
        for inner in space.spaces:
            check_readable(inner, where)
    elif not isinstance(
        space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    ):
        raise ConfigError(
            f"{where}: observations have a part {space}; there are Box, Discrete, MultiDiscrete, "
            "MultiBinary, Dict and Tuple"
        )


def flatten(space: Any, obs: Any, lead: tuple[int, ...]) -> Numbers:
    """The same as `gymnasium.spaces.flatten`, for a whole batch."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict):
        parts = [flatten(inner, obs[key], lead) for key, inner in space.spaces.items()]
        return np.concatenate(parts, axis=-1)
    if isinstance(space, spaces.Tuple):
        inside = zip(space.spaces, obs, strict=True)
        return np.concatenate([flatten(inner, part, lead) for inner, part in inside], axis=-1)
    given = np.asarray(obs)
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        if isinstance(space, spaces.MultiBinary) and not is_binary(given):
            raise SparringError(f"an observation lies outside of its space {space}")
        return flat(space, given, lead)
    check_shape(space, given, lead)
    if isinstance(space, spaces.Discrete):
        return one_hot(given - space.start, int(space.n), space)
    counts = space.nvec.ravel()
    values = (given - space.start).reshape(*lead, -1)
    chosen = [one_hot(values[..., i], int(n), space) for i, n in enumerate(counts)]
    return np.concatenate(chosen, axis=-1)


def flat(
    space: Any, given: npt.NDArray[Any], lead: tuple[int, ...], dtype: Any = np.float32
) -> Numbers:
    """Return a copy of an array of numbers as [*lead, numbers]."""
    check_shape(space, given, lead)
    return given.astype(dtype).reshape(*lead, -1)


def check_shape(space: Any, given: npt.NDArray[Any], lead: tuple[int, ...]) -> None:
    """Refuse a value of another shape than its space's."""
    if given.shape != (*lead, *space.shape):
        raise SparringError(
            f"an observation has shape {given.shape[len(lead) :]}, its space {space} says "
            f"{space.shape}"
        )


def one_hot(value: npt.NDArray[Any], count: int, space: Any) -> Numbers:
    if not np.all((value >= 0) & (value < count) & (value == np.floor(value))):
        raise SparringError(f"an observation lies outside of its space {space}")
    hot: Numbers = np.eye(count, dtype=np.float32)[value.astype(np.intp)]
    return hot
