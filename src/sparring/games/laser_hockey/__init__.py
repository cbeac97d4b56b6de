"""Laser hockey: names of features and actions, positions, and the rink as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, suggestion
from sparring.games.state import State, new_state

SHARES = ("keep_time",)
"""Statistics that are shares, from 0 to 1."""
MODES = ("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")
ACTION_NAMES = ("forward", "left", "torque", "shoot")
"""The four numbers of an action, in the player's frame; "left" is positive y."""
FEATURE_NAMES = tuple(
    [
        f"{who}.{what}"
        for who in ("own", "other")
        for what in ("x", "y", "angle", "vx", "vy", "spin")
    ]
    + [f"puck.{what}" for what in ("x", "y", "vx", "vy")]
    + ["keep.own", "keep.other"]
)
"""The numbers of an observation; without keep mode the last two are missing."""
MIRRORED_FEATURES = (1, 2, 4, 5, 7, 8, 10, 11, 13, 15)
"""Features that change their sign in a mirror image."""
MIRRORED_ACTIONS = (1, 2)
CENTER_OF_MASS = 0.1223755
"""Meters from a racket's origin back to its center of mass."""
CENTER = (5.0, 4.0)
"""Center of the rink in the coordinates of the native core; the origin of all others."""
STEP_S = 0.02
TIME_LIMIT = {"NORMAL": 250, "TRAIN_SHOOTING": 80, "TRAIN_DEFENSE": 80}
HALF_LENGTH, HALF_WIDTH = 4.25, 3.5
MAX_KEEP_STEPS = 15
"""Steps for which a racket can keep a puck after catching it."""
UNSET = ("fineness",)
"""Members of the header's Config that only the game with discrete actions can set."""


@dataclass(frozen=True)
class RigidBody:
    """A racket or the puck. Meters from the center of the rink, radians, seconds.

    The position of a racket is its origin, the velocity that of its center of mass.
    """

    x: float = 0.0
    y: float = 0.0
    angle: float = 0.0
    vx: float = 0.0
    vy: float = 0.0
    spin: float = 0.0

    @property
    def numbers(self) -> tuple[float, ...]:
        """The six numbers in order."""
        return tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True)
class HockeyPosition:
    """Complete position of a match."""

    left: RigidBody = RigidBody(x=-3.0)
    """The racket of seat 0."""
    right: RigidBody = RigidBody(x=3.0)
    puck: RigidBody = RigidBody(x=-1.5)
    keep: tuple[int, int] = (0, 0)
    """Steps for which the left and the right player can keep the puck; 15 when it was caught."""
    time: int = 0
    mode: str = "NORMAL"
    touching: int = 0
    """What the puck touches: 1 left racket, 2 right racket, 4 left goal, 8 right goal."""
    server: int = 0
    kick: tuple[float, float] = (0.0, 0.0)
    """Velocity that the puck gets in the next step."""
    phase: tuple[float, float] = field(default=(0.0, 0.0))
    """Phases of the rotation of the scripted players."""
    winner: int = 0
    """1 if the left player scored, -1 if the right one did. Ignored when a position is set."""


def load_position(
    position: HockeyPosition,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
    game: str = "laser_hockey",
) -> State:
    state = new_state(game, seed=seed, config=config)
    set_position(state, position)
    return state


def set_position(state: State, position: HockeyPosition) -> None:
    """Continue a match from a position. A bad one changes nothing."""
    if position.mode not in MODES:
        raise ConfigError(
            f"mode={position.mode!r} is unknown{suggestion(str(position.mode), MODES)}"
        )
    whole = [
        MODES.index(position.mode),
        position.time,
        *position.keep,
        position.touching,
        position.server,
    ]
    numbers = [
        *position.left.numbers,
        *position.right.numbers,
        *position.puck.numbers,
        *position.kick,
        *position.phase,
    ]
    bits = np.array(numbers, np.float64).view(np.int64)
    error = state.set_up([int(n) for n in whole] + [int(b) for b in bits])
    if error:
        raise ConfigError(f"{state.rules.name}: {error}")


def read(state: State) -> HockeyPosition:
    raw = state.fields()
    left, right, puck = raw["body"].reshape(3, 6).astype(float)
    turns = raw["turn"].reshape(2, 2).astype(float)
    bodies = [
        RigidBody(*(origin(body, turn, seat)), *body[2:])
        for seat, (body, turn) in enumerate(zip((left, right), turns, strict=True))
    ]
    keep, kick, phase = raw["keep"], raw["kick"], raw["phase"]
    return HockeyPosition(
        left=bodies[0],
        right=bodies[1],
        puck=RigidBody(puck[0] - CENTER[0], puck[1] - CENTER[1], *puck[2:]),
        keep=(int(keep[0]), int(keep[1])),
        time=int(raw["time"][0]),
        mode=MODES[int(raw["mode"][0])],
        touching=int(raw["touching"][0]),
        server=int(raw["server"][0]),
        kick=(float(kick[0]), float(kick[1])),
        phase=(float(phase[0]), float(phase[1])),
        winner=int(raw["winner"][0]),
    )


def origin(
    body: npt.NDArray[np.float64], turn: npt.NDArray[np.float64], seat: int
) -> tuple[float, float]:
    """Return a racket's origin from its center of mass and (sine, cosine) of its angle."""
    back = CENTER_OF_MASS if seat == 0 else -CENTER_OF_MASS
    return float(body[0] + back * turn[1]) - CENTER[0], float(body[1] + back * turn[0]) - CENTER[1]


def mirrored(observation: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return observations [..., 18 or 16] with left and right exchanged."""
    image = np.array(observation, np.float32)
    image[..., list(MIRRORED_FEATURES)] *= -1
    return image


def mirrored_action(action: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return continuous actions [..., 4] with left and right exchanged."""
    image = np.array(action, np.float32)
    image[..., list(MIRRORED_ACTIONS)] *= -1
    return image


def mirrored_discrete(action: int, fineness: int = 2) -> int:
    """Return a discrete action with left and right exchanged."""
    levels = fineness - 1
    direction, level = divmod(action - 1, levels)
    if action == 0 or direction in (0, 1) or direction == 6:
        return action
    return 1 + (direction ^ 1) * levels + level


def text_view(state: State, viewer: int | None = None) -> str:
    """Return the rink from above as text, seat 0 at the left. Nothing is hidden."""
    at = read(state)
    wide, high = 51, 15
    canvas = [[" "] * wide for _ in range(high)]

    def draw(x: float, y: float, letter: str) -> None:
        column = round((x / HALF_LENGTH + 1) / 2 * (wide - 1))
        line = round((1 - y / HALF_WIDTH) / 2 * (high - 1))
        if 0 <= column < wide and 0 <= line < high:
            canvas[line][column] = letter

    for step in range(7):
        draw(0.0, -3 + step, ":")
    draw(at.left.x, at.left.y, "]")
    draw(at.right.x, at.right.y, "[")
    draw(at.puck.x, at.puck.y, "o")
    goal = {line for line in range(high) if abs(1 - 2 * line / (high - 1)) * HALF_WIDTH < 1.25}
    rows = [
        ("(" if line in goal else "|") + "".join(row) + (")" if line in goal else "|")
        for line, row in enumerate(canvas)
    ]
    edge = "+" + "-" * wide + "+"
    return "\n".join([headline(at), edge, *rows, edge, *body_lines(at)])


def headline(at: HockeyPosition) -> str:
    """Return mode, step and keeper, or the result, as one line."""
    if at.winner:
        return f"Seat {0 if at.winner > 0 else 1} scored after {at.time} steps"
    kept = [seat for seat in (0, 1) if at.keep[seat]]
    keeps = "".join(f"; seat {seat} keeps the puck, {at.keep[seat]} left" for seat in kept)
    return f"{at.mode}, step {at.time} of {TIME_LIMIT[at.mode] + 1}{keeps}"


def body_lines(at: HockeyPosition) -> Sequence[str]:
    """Return one line per body with its numbers."""
    named = {"seat 0": at.left, "seat 1": at.right, "puck": at.puck}
    return [
        f"{name:6}  at {body.x:6.2f} {body.y:6.2f}  angle {body.angle:5.2f}  "
        f"speed {body.vx:6.2f} {body.vy:6.2f}  spin {body.spin:6.2f}"
        for name, body in named.items()
    ]
