"""Values of any space: comparison, formatting, faults, and random actions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparring.pools.custom.encoding import library

SHOWN_NUMBERS = 24
"""Longer arrays are shown by their beginning."""
CORNERS = 0.2
"""Probability that a component of a bounded action is at a bound, where faults are frequent."""


class Fact(NamedTuple):
    """A value's hash, comparable between processes, and its text."""

    digest: str
    text: str


def fact_of(value: Any) -> Fact:
    return Fact(digest_of(value), short(value))


def digest_of(value: Any) -> str:
    """Return a hash of a value, the same in every process."""
    found = hashlib.blake2b(digest_size=12)
    feed(found, value)
    return found.hexdigest()


def feed(found: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            found.update(f"{{{key}".encode())
            feed(found, value[key])
    elif isinstance(value, tuple | list):
        found.update(f"({len(value)}".encode())
        for part in value:
            feed(found, part)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    else:
        found.update(repr(value).encode())


def short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        flat = value.ravel()
        numbers = ", ".join(map(str, flat[:SHOWN_NUMBERS].tolist()))
        more = f", ... {flat.size} numbers" if flat.size > SHOWN_NUMBERS else ""
        shape = f" of shape {value.shape}" if value.ndim > 1 else ""
        return f"[{numbers}{more}]{shape}"
    if isinstance(value, np.generic):
        return str(value.item())
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {short(part)}" for key, part in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(short(part) for part in value) + ")"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def fault_in(space: Any, value: Any, name: str = "") -> tuple[str, str]:
    """Return why a value is not in its space and what to do, ("", "") if it is."""
    return next(faults_in(space, value, name), ("", ""))


def faults_in(space: Any, value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield all reasons why a value is not in its space."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Dict):
        keys = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
        if keys != sorted(space.spaces):
            yield f"{name}: keys are {keys}, the space has {sorted(space.spaces)}", "give all keys"
            return
        for key, inner in space.spaces.items():
            yield from faults_in(inner, value[key], f"{name}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple) or len(value) != len(space.spaces):
            yield f"{name}: {short(value)} is no tuple of {len(space.spaces)}", "give all parts"
            return
        for index, inner in enumerate(space.spaces):
            yield from faults_in(inner, value[index], f"{name}[{index}]")
    elif isinstance(space, spaces.Discrete):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        whole = whole or (isinstance(value, np.ndarray) and value.shape == ())
        if not whole or not space.contains(int(value)):
            yield f"{name}: {short(value)} is not in {space}", "count from the space's start"
    elif isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        yield from faults_in_array(space, value, name)
    elif not space.contains(value):
        yield f"{name}: {short(value)} is not in {space}", "correct one of them"


def faults_in_array(space: Any, value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The same as `faults_in`, for spaces of arrays."""
    if not isinstance(value, np.ndarray | np.generic):
        advice = f"return np.array(..., np.{space.dtype})"
        yield f"{name}: {type(value).__name__} instead of an array", advice
        return
    if value.shape != space.shape:
        yield f"{name}: shape {value.shape}, the space says {space.shape}", "correct one of them"
        return
    numbers = np.asarray(value)
    if not np.can_cast(numbers.dtype, space.dtype):
        advice = f"return it .astype(np.{space.dtype}), or give the space its dtype"
        yield f"{name}: dtype {numbers.dtype}, the space says {space.dtype}", advice
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        yield f"{name}: {spotted(numbers, ~np.isfinite(numbers))}", "no network learns from that"
    if space.contains(value):
        return
    if hasattr(space, "low"):
        out = (numbers < space.low) | (numbers > space.high)
        if out.any():
            at = tuple(np.argwhere(out)[0])
            bounds = f"the space says {space.low[at]:g} to {space.high[at]:g}"
            yield f"{name}: {spotted(numbers, out)}, {bounds}", "clip it, or widen the space"
    yield f"{name}: {short(value)} is not in {space}", "correct one of them"


def spotted(value: npt.NDArray[Any], bad: npt.NDArray[np.bool_]) -> str:
    """Name the first bad number."""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    index = f"[{', '.join(map(str, at))}]" if at else ""
    return f"number{index} is {np.asarray(value)[at]}"


def draw_action(space: Any, mask: Any, rng: np.random.Generator) -> Any:
    """Draw a legal action of the env; `space` is a copy, which is seeded."""
    spaces = library("gymnasium").spaces
    if isinstance(space, spaces.Discrete):
        legal = np.arange(space.n) if mask is None else np.flatnonzero(mask)
        return int(space.start) + int(legal[rng.integers(len(legal))])
    space.seed(int(rng.integers(2**31)))
    action = space.sample()
    if isinstance(space, spaces.Box) and space.is_bounded() and space.dtype.kind == "f":
        action = np.where(rng.random(action.shape) < CORNERS / 2, space.low, action)
        action = np.where(rng.random(action.shape) < CORNERS / 2, space.high, action)
        action = action.astype(space.dtype)
    return action
