"""Connect Four as a picture and a film."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparring.games.picture import (
    Circle,
    Drawing,
    Film,
    Point,
    Polygon,
    RecordedEpisode,
    Shape,
    Shapes,
    Text,
    ViewBox,
    fit_text,
)
from sparring.games.state import State

COLUMNS, HEIGHT = 7, 6
STRIDE = HEIGHT + 1
VIEW = ViewBox(-0.3, -1.0, COLUMNS + 0.3, HEIGHT + 1.0, "#f4f6f9")
COLORS = ("#d3382f", "#e8b10c")
NAME_COLORS = ("#b3261e", "#8f6a00")
BOARD, HOLE, INK = "#2c5aa0", "#f4f6f9", "#16191f"
RADIUS = 0.4
FRAME_S = 0.6
NAME_WIDTH = 3.3
PAUSE = 3
"""Frames for which the result stays."""


class ConnectFourPicture:
    """Draws games of Connect Four."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games, a frame for every move."""
        backdrop = (*board(), *nameplates(episodes[0].names))
        frames: list[Shapes] = []
        for episode in episodes:
            frames += [tuple(stones(state)) for state in episode.states]
            frames += [(*stones(episode.states[-1]), *outcome(episode))] * PAUSE
        return Film(VIEW, backdrop, frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the last board with the moves numbered."""
        last = episode.states[-1]
        shapes = (*board(), *nameplates(episode.names), *stones(last), *numbers(episode))
        return Drawing(VIEW, (*shapes, *outcome(episode)))


PICTURE = ConnectFourPicture()


def board() -> Iterator[Shape]:
    """Yield the frame, its holes and the letters of the columns."""
    corners = ((0, 0), (COLUMNS, 0), (COLUMNS, HEIGHT), (0, HEIGHT))
    yield Polygon(points=corners, fill=BOARD, edge=BOARD, edge_width=0.2)
    for cell in range(COLUMNS * HEIGHT):
        yield Circle(at=center(cell % COLUMNS, cell // COLUMNS), radius=RADIUS, fill=HOLE)
    for column in range(COLUMNS):
        yield Text(at=(column + 0.5, -0.3), text="abcdefg"[column], size=0.3, color=INK)


def nameplates(names: Sequence[str]) -> Iterator[Shape]:
    """Yield the players above the board, in their colors."""
    first, second = names
    left = Text(at=(0, HEIGHT + 0.5), text=first, size=0.4, color=NAME_COLORS[0], anchor="start")
    right = Text(
        at=(COLUMNS, HEIGHT + 0.5), text=second, size=0.4, color=NAME_COLORS[1], anchor="end"
    )
    yield from (fit_text(left, NAME_WIDTH), fit_text(right, NAME_WIDTH))


def center(column: int, row: int) -> Point:
    return column + 0.5, row + 0.5


def cells(state: State) -> list[set[tuple[int, int]]]:
    """Return the (column, row) of each seat's stones."""
    return [
        {
            (column, row)
            for column in range(COLUMNS)
            for row in range(HEIGHT)
            if int(bits) >> (column * STRIDE + row) & 1
        }
        for bits in state.fields()["stones"]
    ]


def stones(state: State) -> Iterator[Shape]:
    """Yield the stones."""
    for color, stones in zip(COLORS, cells(state), strict=True):
        for column, row in sorted(stones):
            key = f"stone {column} {row}"
            yield Circle(at=center(column, row), radius=RADIUS, fill=color, key=key)


def numbers(episode: RecordedEpisode) -> Iterator[Shape]:
    """Yield the number of each move on its stone."""
    before: set[tuple[int, int]] = set()
    for number, state in enumerate(episode.states):
        now = set.union(*cells(state))
        for column, row in now - before:
            yield Text(at=center(column, row), text=str(number), size=0.3, color=INK)
        before = now


def four_in_a_row(stones: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the cells of every four in a row."""
    found: set[tuple[int, int]] = set()
    for column, row in sorted(stones):
        for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
            line = [(column + step * right, row + step * up) for step in range(4)]
            if stones.issuperset(line):
                found.update(line)
    return found


def outcome(episode: RecordedEpisode) -> Iterator[Shape]:
    """Yield circles around the winning stones and the winner's name."""
    text = "a draw"
    for seat, stones in enumerate(cells(episode.states[-1])):
        for cell in sorted(four_in_a_row(stones)):
            text = f"{episode.names[seat]} wins"
            key = f"won {cell}"
            yield Circle(at=center(*cell), radius=RADIUS, edge=INK, edge_width=0.1, key=key)
    label = Text(at=(COLUMNS / 2, -0.75), text=text, size=0.36, color=INK, key="outcome")
    yield fit_text(label, VIEW.width - 0.4)
