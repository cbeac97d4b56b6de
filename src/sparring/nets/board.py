"""Boards of residual networks: what the bytes of an observation mean on them. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from sparring.errors import ConfigError
from sparring.games.rules import Rules

CHANNEL_STEP = 4
"""The native convolutions need a multiple of this many channels."""
VALUE_CHANNELS, VALUE_HIDDEN = 8, 64
"""The value head: a 1x1 convolution to a few channels, then one hidden layer."""
POLICY_CHANNELS = 8
"""A dense policy head: a 1x1 convolution to a few channels, then one layer to all actions."""


@dataclass(frozen=True)
class BoardLayout:
    """Layout of the observation's bytes as a board."""

    height: int
    width: int
    planes: int
    """Planes of `squares` bytes each, one after the other."""
    numbers: int
    """Features after the planes that describe the whole board."""
    divisors: tuple[float, ...]
    """Divisors of the planes, then of the numbers."""
    actions: int
    """Actions per square: action a * squares + s belongs to square s. 0: actions belong to no
    squares, such as columns or a pass, and the policy head is dense."""

    @property
    def squares(self) -> int:
        return self.height * self.width


def board_layout(rules: Rules) -> BoardLayout:
    """Return the board layout of a game's observation; raise if it has none."""
    if len(rules.board) != 2:
        raise ConfigError(
            f"net.kind 'residual' needs a game with a board; {rules.name} has none: "
            "use --net.kind mlp"
        )
    height, width = rules.board
    squares = height * width
    is_plane = [len(b.columns) * b.rows == squares for b in rules.blocks]
    planes = is_plane.index(False) if False in is_plane else len(is_plane)
    features = rules.features
    first = [features[plane * squares] for plane in range(planes)]
    numbers = features[planes * squares :]
    in_order = [f.offset for f in features] == list(range(len(features)))
    same_divisors = all(
        f.divisor == first[i // squares].divisor for i, f in enumerate(features[: planes * squares])
    )
    only_bytes = all(f.dtype == "uint8" for f in features)
    if any(is_plane[planes:]) or not (in_order and same_divisors and only_bytes):
        raise ConfigError(
            f"net.kind 'residual' reads bytes, planes first; {rules.name} has another layout"
        )
    if rules.box:
        raise ConfigError(
            f"net.kind 'residual' needs discrete actions; {rules.name} has continuous ones: "
            "use --net.kind mlp"
        )
    divisors = tuple(f.divisor for f in [*first, *numbers])
    actions = 0 if rules.actions % squares else rules.actions // squares
    return BoardLayout(height, width, planes, len(numbers), divisors, actions)
