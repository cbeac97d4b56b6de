"""Pictures of games as shapes, which the writers in `sparring.draw` turn into files.

A game with a picture has `picture.py` with a `PICTURE` in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from sparring.errors import ConfigError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules, game_names
from sparring.games.state import State
from sparring.games.text_width import text_width, truncate_text
from sparring.pygames.registry import is_registered

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Base of all shapes. Lengths are in units of the game, x to the right and y upwards.

    key: identifies a moving shape across the frames of a film. Later shapes of a frame are on top,
    in the same order in all frames.
    """

    key: str = ""
    opacity: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Polygon(Shape):
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str
    edge: str = ""
    edge_width: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Circle(Shape):
    """A circle, filled or outlined."""

    at: Point
    radius: float
    fill: str = ""
    edge: str = ""
    edge_width: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Arc(Shape):
    """An arc, clockwise from the top. share: fraction of the full circle."""

    at: Point
    radius: float
    share: float
    color: str
    width: float


@dataclass(frozen=True, kw_only=True)
class Polyline(Shape):
    """A line through two or more points, with round or flat ends."""

    points: tuple[Point, ...]
    color: str
    width: float
    round: bool = False


@dataclass(frozen=True, kw_only=True)
class Text(Shape):
    """One line of text, vertically centered at `at`."""

    at: Point
    text: str
    size: float
    color: str
    anchor: Literal["start", "middle", "end"] = "middle"


@dataclass(frozen=True, kw_only=True)
class ShapeGroup(Shape):
    """Shapes that move together: shifted to `at`, rotated counter-clockwise by radians."""

    parts: tuple[Shape, ...]
    at: Point = (0.0, 0.0)
    angle: float = 0.0


Shapes = tuple[Shape, ...]


@dataclass(frozen=True)
class ViewBox:
    """Visible part of the plane, and its background color."""

    left: float
    bottom: float
    right: float
    top: float
    paper: str = "#ffffff"

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(frozen=True)
class Drawing:
    """A still picture."""

    view: ViewBox
    shapes: Shapes


@dataclass(frozen=True)
class Film:
    """An animation."""

    view: ViewBox
    backdrop: Shapes
    """Shapes of all frames."""
    frames: Sequence[Shapes]
    """Shapes of each frame, drawn on top. Moving shapes have keys."""
    frame_s: float
    """Seconds between frames at normal speed."""


@dataclass(frozen=True)
class RecordedEpisode:
    """States of a finished game, with names of its players."""

    states: Sequence[State]
    """The start, and the state after every decision."""
    names: tuple[str, ...]
    """Player of each seat."""
    wins: tuple[int, ...]
    """Wins of each seat before this game."""

    @property
    def winners(self) -> tuple[int, ...]:
        """Seats with the highest score; several after a draw."""
        scores = self.states[-1].scores
        return tuple(seat for seat, score in enumerate(scores) if score == max(scores))

    @property
    def wins_after(self) -> tuple[int, ...]:
        """Wins of each seat with this game; a draw adds none."""
        winner = self.winners if len(self.winners) == 1 else ()
        return tuple(wins + (seat in winner) for seat, wins in enumerate(self.wins))


MIN_TEXT_SCALE = 0.72
"""Smallest factor by which text shrinks before it is truncated."""


def fit_text(text: Text, max_width: float) -> Text:
    """Return a text of at most `max_width`: first smaller, then truncated."""
    width = text_width(text.text, text.size)
    size = text.size * min(1.0, max(MIN_TEXT_SCALE, max_width / width)) if width else text.size
    return replace(text, size=size, text=truncate_text(text.text, size, max_width))


class Picture(Protocol):
    """Draws a game with shapes."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return an animation of all episodes."""

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return one picture of the whole episode."""


@dataclass(frozen=True)
class SvgPicture:
    """Draws a game as SVG documents, one per state."""

    svg: Callable[[State], str]
    frame_s: float
    """Seconds per state."""


class TextPicture:
    """Draws a game by its text, for rules in Python."""

    frame_s = 0.6
    size = 0.9
    advance = 0.6
    """Width of a column of text, in lines."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games, a frame for every decision."""
        texts = [state.text() for episode in episodes for state in episode.states]
        frames = [tuple(self.letters(text)) for text in texts]
        return Film(self.view(texts), (), frames, self.frame_s)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the last position."""
        text = episode.states[-1].text()
        return Drawing(self.view([text]), tuple(self.letters(text)))

    def view(self, texts: Sequence[str]) -> ViewBox:
        rows = [text.rstrip().splitlines() for text in texts]
        width = max((len(line) for lines in rows for line in lines), default=1)
        height = max(len(lines) for lines in rows)
        return ViewBox(-1.0, -height - 0.5, width * self.advance + 1.0, 0.5)

    def letters(self, text: str) -> Iterator[Text]:
        """Yield every letter at its place: columns stand below each other in any font."""
        for row, line in enumerate(text.rstrip().splitlines()):
            for column, letter in enumerate(line):
                at = ((column + 0.5) * self.advance, -row - 0.5)
                if letter != " ":
                    yield Text(at=at, text=letter, size=self.size, color="#16191f")


def picture_of(rules: Rules) -> Picture | SvgPicture:
    """Return the picture of a game; raises ConfigError if it has none."""
    if is_registered(rules.name):
        return TextPicture()
    module = game_module(rules.name, "picture")
    if module is None:
        drawn = [name for name in game_names() if game_module(name, "picture")]
        raise ConfigError(
            f"{rules.name} has no picture, only text: sparring play {rules.name}; "
            f"games with a picture: {', '.join(drawn)}"
        )
    picture: Picture | SvgPicture = module.PICTURE
    return picture
