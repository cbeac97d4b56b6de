"""Games as pictures: simple shapes that any of the writers in `sparring.draw` can draw.

A game that can be drawn has a `picture.py` with a `PICTURE` in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules, game_names
from sparring.games.state import State
from sparring.games.text_width import text_width, truncate_text

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What all shapes have. Lengths are in units of the game, x to the right and y upwards.

    key: names a thing that moves, the same in every frame of a film. What comes later in a frame
    lies on top, in the same order in all frames.
    """

    key: str = ""
    opacity: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Polygon(Shape):
    """An area between corners."""

    points: tuple[Point, ...]
    fill: str
    edge: str = ""
    edge_width: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Circle(Shape):
    """A disc, a circle, or both."""

    at: Point
    radius: float
    fill: str = ""
    edge: str = ""
    edge_width: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Arc(Shape):
    """A part of a circle, clockwise from the top: all of it with share 1, half with 0.5."""

    at: Point
    radius: float
    share: float
    color: str
    width: float


@dataclass(frozen=True, kw_only=True)
class Polyline(Shape):
    """A line through two or more points. Its ends are round or cut off."""

    points: tuple[Point, ...]
    color: str
    width: float
    round: bool = False


@dataclass(frozen=True, kw_only=True)
class Text(Shape):
    """One line of text, vertically centered at its place."""

    at: Point
    text: str
    size: float
    color: str
    anchor: Literal["start", "middle", "end"] = "middle"


@dataclass(frozen=True, kw_only=True)
class ShapeGroup(Shape):
    """Shapes that move as one: around a place, turned counter-clockwise by an angle in radians."""

    parts: tuple[Shape, ...]
    at: Point = (0.0, 0.0)
    angle: float = 0.0


Shapes = tuple[Shape, ...]


@dataclass(frozen=True)
class ViewBox:
    """The part of the plane that is shown, and its color."""

    left: float
    bottom: float
    right: float
    top: float
    paper: str = "#ffffff"

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom


@dataclass(frozen=True)
class Drawing:
    """A picture that does not move."""

    view: ViewBox
    shapes: Shapes


@dataclass(frozen=True)
class Film:
    """A picture that moves."""

    view: ViewBox
    backdrop: Shapes
    """What is the same in all frames."""
    frames: Sequence[Shapes]
    """What is drawn on top of it. Shapes that move have keys."""
    frame_s: float
    """Seconds from one frame to the next, at the game's own speed."""


@dataclass(frozen=True)
class RecordedEpisode:
    """A game that was played."""

    states: Sequence[State]
    """The start, and what followed each decision."""
    names: tuple[str, ...]
    """Who sat where."""
    wins: tuple[int, ...]
    """Games that each seat had won before this one."""

    @property
    def winners(self) -> tuple[int, ...]:
        """The seats with the most points; all of them after a draw."""
        scores = self.states[-1].scores
        return tuple(seat for seat, score in enumerate(scores) if score == max(scores))

    @property
    def wins_after(self) -> tuple[int, ...]:
        """Games that each seat has won with this one; a draw counts for nobody."""
        alone = self.winners if len(self.winners) == 1 else ()
        return tuple(wins + (seat in alone) for seat, wins in enumerate(self.wins))


MIN_TEXT_SCALE = 0.72
"""How far text shrinks before something is left out."""


def fit_text(text: Text, room: float) -> Text:
    """Return a text that is no wider than its room: smaller, and then with its middle left out."""
    width = text_width(text.text, text.size)
    size = text.size * min(1.0, max(MIN_TEXT_SCALE, room / width)) if width else text.size
    return replace(text, size=size, text=truncate_text(text.text, size, room))


class Picture(Protocol):
    """Draws the games of one kind with shapes, which become any kind of file."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return all episodes, one after the other."""

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return one picture that tells the whole episode."""


@dataclass(frozen=True)
class SvgPicture:
    """Draws the games of one kind as complete SVG documents, one per state."""

    svg: Callable[[State], str]
    frame_s: float
    """Seconds for which a state is shown."""


def picture_of(rules: Rules) -> Picture | SvgPicture:
    """Return what draws a game."""
    module = game_module(rules.name, "picture")
    if module is None:
        drawn = [name for name in game_names() if game_module(name, "picture")]
        raise ConfigError(
            f"{rules.name} has no picture, only text: sparring play {rules.name}; "
            f"games with a picture: {', '.join(drawn)}"
        )
    picture: Picture | SvgPicture = module.PICTURE
    return picture
