"""Starts of laser hockey: situations by name, or positions from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.errors import ConfigError, suggestion
from sparring.games.laser_hockey import HockeyPosition, RigidBody, set_position
from sparring.games.rules import Rules
from sparring.games.starts import Start, saved_position
from sparring.games.state import State, new_state

POSITIONS_PER_SITUATION = 32
"""Half of them for either side."""


def face_off(rng: np.random.Generator) -> HockeyPosition:
    """The puck lies on the middle line, equally far from both players."""
    return HockeyPosition(puck=RigidBody(y=rng.uniform(-2, 2)))


def shooting(rng: np.random.Generator) -> HockeyPosition:
    """The left player is behind a puck at rest; the other guards the goal from one side."""
    x, y = rng.uniform(-2.5, -1), rng.uniform(-1.5, 1.5)
    guard = RigidBody(x=rng.uniform(2.2, 3.2), y=rng.uniform(-1.5, 1.5))
    return HockeyPosition(left=RigidBody(x=x, y=y), right=guard, puck=RigidBody(x=x + 1, y=y))


def defense(rng: np.random.Generator) -> HockeyPosition:
    """A puck flies toward the left goal."""
    x, y = rng.uniform(0, 2), rng.uniform(-2, 2)
    way = np.array([-4.25 - x, rng.uniform(-0.7, 0.7) - y])
    vx, vy = way / np.linalg.norm(way) * rng.uniform(6, 12)
    left = RigidBody(x=-3.0, y=rng.uniform(-1, 1))
    return HockeyPosition(left=left, puck=RigidBody(x=x, y=y, vx=vx, vy=vy))


def puck_behind(rng: np.random.Generator) -> HockeyPosition:
    """The puck lies between the left player and the left goal."""
    x, y = rng.uniform(-2, -1), rng.uniform(-1.5, 1.5)
    return HockeyPosition(
        left=RigidBody(x=x, y=y), puck=RigidBody(x=x - 1.2, y=y + rng.uniform(-0.4, 0.4))
    )


SITUATIONS: dict[str, Callable[[np.random.Generator], HockeyPosition]] = {
    "face_off": face_off,
    "shooting": shooting,
    "defense": defense,
    "puck_behind": puck_behind,
}
START_FORMATS = f"{', '.join(SITUATIONS)} or a .json file of positions in meters"
"""Accepted names of starts, for error messages."""


def read_starts(rules: Rules, word: str) -> list[Start] | None:
    """Return the starts that `word` names, None if it names none of this game."""
    if word in SITUATIONS:
        positions = [(word, position) for position in situation(word)]
    elif word.endswith(".json"):
        positions = read_file(Path(word).expanduser())
    else:
        return None
    state = new_state(rules)
    return [start_at(state, position, name) for name, position in positions]


def situation(name: str) -> list[HockeyPosition]:
    """Return the fixed positions of a situation; every second one is for the right player."""
    rng = np.random.default_rng(sorted(SITUATIONS).index(name))
    drawn = [SITUATIONS[name](rng) for _ in range(POSITIONS_PER_SITUATION // 2)]
    return [at for position in drawn for at in (position, turned(position))]


def turned(position: HockeyPosition) -> HockeyPosition:
    """Return the position rotated by 180 degrees.

    Angles of rackets stay: they are relative to the racket's direction.
    """
    left, right, puck = map(opposite, (position.right, position.left, position.puck))
    kept = (position.keep[1], position.keep[0])
    return replace(position, left=left, right=right, puck=puck, keep=kept)


def opposite(body: RigidBody) -> RigidBody:
    """Return a body rotated by 180 degrees around the center."""
    return replace(body, x=-body.x, y=-body.y, vx=-body.vx, vy=-body.vy)


def start_at(state: State, position: HockeyPosition, name: str) -> Start:
    """Return a position as a start; `state` is overwritten."""
    try:
        set_position(state, position)
    except (ConfigError, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"{name}: {error}") from None
    return Start(saved_position(state), name=name)


def read_file(path: Path) -> list[tuple[str, HockeyPosition]]:
    """Read a list of objects with the fields of `HockeyPosition`; bodies as `RigidBody`."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no file {str(path)!r}") from None
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: a list of positions is needed")
    return [
        (f"{path}[{at}]", read_entry(entry, f"{path}[{at}]")) for at, entry in enumerate(entries)
    ]


def read_entry(entry: Any, where: str) -> HockeyPosition:
    """Read one position; missing fields are those of `HockeyPosition()`."""
    known = {field.name for field in fields(HockeyPosition)} - {"winner", "server", "phase"}
    defaults = HockeyPosition()
    given: dict[str, Any] = {}
    for key, value in checked(entry, known, where).items():
        if key in ("left", "right", "puck"):
            numbers = checked(value, {f.name for f in fields(RigidBody)}, f"{where}.{key}")
            for name, number in numbers.items():
                check_number(number, f"{where}.{key}.{name}")
            given[key] = replace(getattr(defaults, key), **numbers)
        elif key in ("keep", "kick"):
            if not isinstance(value, list) or len(value) != 2:
                raise ConfigError(f"{where}.{key}: a list of two numbers is needed")
            for number in value:
                check_number(number, f"{where}.{key}")
            given[key] = tuple(value)
        else:
            given[key] = value
    return replace(defaults, **given)


def checked(entry: Any, known: set[str], where: str) -> Mapping[str, Any]:
    """Return an object after checking its keys."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: an object is needed, not {entry!r}")
    for key in entry:
        if key not in known:
            raise ConfigError(f"{where}: no field {key!r}{suggestion(str(key), sorted(known))}")
    return entry


def check_number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: {value!r} is not a number")
