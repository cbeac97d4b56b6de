"""Observations of custom environments as numbers, and what their seats may choose."""

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
from sparring.pools.custom.layout import ALL, BYTES, FLOATS, Layout, Part

Numbers = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

MASK = "action_mask"
"""Where Gymnasium and PettingZoo put legal actions, in an observation or in an info."""


NAMES_OF_ACTIONS = ("action_names", "action_meanings", "get_action_meanings")
"""Where an env may say what its actions are called; the last is Atari's."""
BINARY = -1
"""In place of a count of choices: zeros and ones."""
PIXEL = 255
"""The highest byte; a Box of bytes that goes so far holds pixels, which are divided by it."""


def library(name: str) -> Any:
    """Return a package if somebody has imported it: an env object brings its own along."""
    return sys.modules.get(name)


@dataclass(frozen=True)
class Encoding:
    """How one seat's observation becomes numbers, and what its actions are called."""

    space: Any
    """The Gymnasium space of the numbers, without the mask."""
    numbers: int
    actions: int
    """How many there are to choose from; 0 where an action is numbers."""
    first_action: int
    """What the env calls action 0."""
    masked: bool
    """Observations are dictionaries with an `action_mask`."""
    layout: Layout
    """Where its numbers lie in a row, and what they are called."""
    bounds: Bounds | None = None
    """Of actions that are numbers; there are no masks then."""
    action_names: tuple[str, ...] = ()
    """What the env calls its choices; () where it says nothing."""
    choices: Choices | None = None
    """Of an env that asks for several choices at once."""

    def mask_in(self, obs: Any) -> Any:
        """Return the mask inside an observation or a batch of them, None without one."""
        return obs[MASK] if self.masked else None

    def flatten(self, obs: Any, *lead: int) -> Numbers:
        """Return numbers [*lead, numbers]; `lead` is the number of envs if obs is a batch."""
        if isinstance(obs, np.ndarray) and obs.dtype == np.float32 and self.as_it_is:
            return flat(self.space, obs, lead)
        with np.errstate(over="ignore"):  # a float64 too large becomes inf, which is refused
            return flatten(self.space, obs, lead)

    def write(self, obs: Any, out: Numbers) -> None:
        """Flatten one observation into an array, without the arrays in between."""
        at = 0
        for path, shape, first, count in self._leaves:
            value = obs
            for key in path:
                value = value[key]
            if count > 0:  # one of so many
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
                with np.errstate(over="ignore"):  # what becomes inf is refused
                    out[at : at + given.size] = given.ravel()
                at += given.size
        else:
            if self._leaves:
                return
        out[:] = self.flatten(obs)  # other kinds, and whatever is to be refused

    @cached_property
    def _leaves(self) -> list[tuple[tuple[Any, ...], tuple[int, ...], int, int]]:
        """Where the parts of an observation are, with shapes, or counts of choices; [] for other
        kinds.
        """
        return leaves_of(self.space) or []

    @cached_property
    def as_it_is(self) -> bool:
        """Whether observations are arrays of numbers."""
        return isinstance(self.space, library("gymnasium").spaces.Box)

    def mask(self, given: Any, *lead: int) -> Mask:
        """Return a mask of bytes [*lead, actions]."""
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
    """Whether there are zeros and ones alone."""
    return bool(given.dtype.kind == "b" or ((given == 0) | (given == 1)).all())


def leaves_of(
    space: Any, path: tuple[Any, ...] = ()
) -> list[tuple[tuple[Any, ...], tuple[int, ...], int, int]] | None:
    """The parts of a space in the order of `flatten`; None if one is no array and no choice."""
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
    """Read a seat's spaces; those that cannot be learned from are refused.

    env: whose they are, where it may say what numbers and actions are called.
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
    layout = Layout(tuple(parts_of(observations)), names_of(env))
    if bounds:
        return Encoding(observations, numbers, 0, 0, masked, layout, bounds)
    choices = choices_of(actions, where) if several else None
    count, first = (choices.actions, 0) if choices else (int(actions.n), int(actions.start))
    names = action_names_of(env, range(first, first + count), where, choices)
    read = Encoding(observations, numbers, count, first, masked, layout, action_names=names)
    return replace(read, choices=choices)


def names_of(env: Any) -> tuple[str, ...]:
    """What an env calls the numbers of its observations, if it has `feature_names`."""
    return tuple(map(str, said_by(env, "feature_names") or ()))


class ActionNamesError(ConfigError):
    """Names of actions that are not one for each."""


def action_names_of(
    env: Any, actions: range, where: str, choices: Choices | None
) -> tuple[str, ...]:
    """What an env calls its actions, by one of `NAMES_OF_ACTIONS`: a list, or what returns one.

    Where several choices are made at once, it may name those of all parts, one behind the other.
    Meanings of another count are those of an env inside, whose actions a wrapper has changed.
    """
    for name in NAMES_OF_ACTIONS:
        said = said_by(env, name)
        said = said() if callable(said) else said
        if said is None:
            continue
        if isinstance(said, str) or not isinstance(said, Iterable):
            raise ActionNamesError(
                f"{where}: {name} is {type(said).__name__}; give a list of names"
            )
        ordered = by_action(said, actions) if isinstance(said, Mapping) else said
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


def by_action(said: Mapping[Any, Any], actions: range) -> list[Any]:
    """The names in a dict in the order of their actions: {0: "roll"}, or {"roll": 0}."""
    if all(isinstance(key, str) for key in said):
        said = {action: name for name, action in said.items() if isinstance(action, Integral)}
    first, count = actions.start, max(len(actions), len(said))
    return [said[action] for action in range(first, first + count) if action in said]


def said_by(env: Any, name: str) -> Any:
    """An attribute of an env, of what it wraps, or of a vector's first env; None without one."""
    base = getattr(env, "unwrapped", env)
    while env is not base and getattr(env, name, None) is None and hasattr(env, "env"):
        env = env.env
    found = getattr(env, name, None)
    found = getattr(base, name, None) if found is None else found
    for inner in getattr(base, "envs", ())[:1] if found is None else ():
        return said_by(inner, name)
    return found


def parts_of(space: Any, name: str = "") -> Iterator[Part]:
    """The parts of an observation in the order of `flatten`, each with its name."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inside = space.spaces
        keyed = inside.items() if isinstance(inside, Mapping) else enumerate(inside)
        for key, inner in keyed:
            told = str(key) if isinstance(inside, Mapping) or name else f"{ALL}.{key}"
            yield from parts_of(inner, f"{name}.{told}" if name else told)
        return
    count = int(spaces.flatdim(space))
    if count:
        yield Part(name or ALL, count, *kept_as(space))


def kept_as(space: Any) -> tuple[str, float]:
    """How the numbers of a space are kept, and what a network sees them divided by."""
    spaces = library("gymnasium").spaces
    if not isinstance(space, spaces.Box):
        return BYTES, 1.0  # zeros and ones
    if space.dtype.kind not in "biu" or space.low.min() < 0 or space.high.max() > PIXEL:
        return FLOATS, 1.0
    pixels = space.dtype == np.uint8 and space.high.max() == PIXEL
    return BYTES, float(PIXEL) if pixels else 1.0


def check_readable(space: Any, where: str) -> None:
    """Refuse a space that is not made of numbers of a fixed count."""
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
    """Do what `gymnasium.spaces.flatten` does, for a whole batch at once."""
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


def flat(space: Any, given: npt.NDArray[Any], lead: tuple[int, ...]) -> Numbers:
    """Return a copy of an array of numbers as [*lead, numbers]."""
    check_shape(space, given, lead)
    return given.astype(np.float32).reshape(*lead, -1)


def check_shape(space: Any, given: npt.NDArray[Any], lead: tuple[int, ...]) -> None:
    """Refuse what has another shape than its space says."""
    if given.shape != (*lead, *space.shape):
        raise SparringError(
            f"an observation has shape {given.shape[len(lead) :]}, its space {space} says "
            f"{space.shape}"
        )


def one_hot(value: npt.NDArray[Any], count: int, space: Any) -> Numbers:
    """Return [..., count] with a 1 where the value says."""
    if not np.all((value >= 0) & (value < count) & (value == np.floor(value))):
        raise SparringError(f"an observation lies outside of its space {space}")
    hot: Numbers = np.eye(count, dtype=np.float32)[value.astype(np.intp)]
    return hot
