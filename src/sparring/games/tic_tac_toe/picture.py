"""Pictures of tic-tac-toe; also the example of how to draw a game."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparring.games.picture import (
    Circle,
    Drawing,
    Film,
    Point,
    Polyline,
    RecordedEpisode,
    Shape,
    Shapes,
    Text,
    ViewBox,
    fit_text,
)
from sparring.games.state import State

VIEW = ViewBox(-0.3, -0.75, 3.3, 3.75, "#f4f6f9")
COLORS = ("#2563eb", "#d9650d")
INK, GRID = "#16191f", "#c3cad4"
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
FRAME_S = 0.7
NAME_WIDTH = 1.42
"""Width of a name: half of the picture, less a gap."""
PAUSE = 3
"""Frames for which the result is shown."""


class BoardPicture:
    """Draws games of tic-tac-toe."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        backdrop = (*grid(), *nameplates(episodes[0].names))
        frames: list[Shapes] = []
        for episode in episodes:
            frames += [tuple(stones(state)) for state in episode.states]
            frames += [(*stones(episode.states[-1]), *result_text(episode))] * PAUSE
        return Film(VIEW, backdrop, frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the last board, with the moves numbered."""
        last = episode.states[-1]
        shapes = (*grid(), *nameplates(episode.names), *stones(last), *numbers(episode))
        return Drawing(VIEW, (*shapes, *result_text(episode)))


PICTURE = BoardPicture()


def grid() -> Iterator[Shape]:
    for at in (1, 2):
        yield Polyline(points=((at, 0), (at, 3)), color=GRID, width=0.05, round=True)
        yield Polyline(points=((0, at), (3, at)), color=GRID, width=0.05, round=True)


def nameplates(names: Sequence[str]) -> Iterator[Shape]:
    """Yield the names of both players with their marks."""
    cross, circle = names
    left = Text(at=(0, 3.4), text=f"X  {cross}", size=0.22, color=COLORS[0], anchor="start")
    right = Text(at=(3, 3.4), text=f"{circle}  O", size=0.22, color=COLORS[1], anchor="end")
    yield from (fit_text(left, NAME_WIDTH), fit_text(right, NAME_WIDTH))


def middle(cell: int) -> Point:
    return cell % 3 + 0.5, 2.5 - cell // 3


def cells(state: State) -> list[set[int]]:
    """Return the cells that each seat has taken."""
    taken = state.fields()["stones"]
    return [{cell for cell in range(9) if int(bits) >> cell & 1} for bits in taken]


def stones(state: State) -> Iterator[Shape]:
    crosses, circles = cells(state)
    for cell in sorted(crosses | circles):
        x, y = middle(cell)
        if cell in circles:
            yield Circle(
                at=(x, y), radius=0.28, edge=COLORS[1], edge_width=0.1, key=f"circle {cell}"
            )
            continue
        for lean in (-1, 1):
            ends = ((x - 0.27, y - 0.27 * lean), (x + 0.27, y + 0.27 * lean))
            key = f"cross {cell} {lean}"
            yield Polyline(points=ends, color=COLORS[0], width=0.1, round=True, key=key)


def numbers(episode: RecordedEpisode) -> Iterator[Shape]:
    """Yield the order of the moves, small in the corner of each cell."""
    before: set[int] = set()
    for number, state in enumerate(episode.states):
        now = set.union(*cells(state))
        for cell in now - before:
            x, y = middle(cell)
            yield Text(at=(x - 0.38, y + 0.36), text=str(number), size=0.15, color=INK)
        before = now


def result_text(episode: RecordedEpisode) -> Iterator[Shape]:
    """Yield the winning line and the winner."""
    result = "a draw"
    for seat, mine in enumerate(cells(episode.states[-1])):
        for line in LINES:
            if mine.issuperset(line):
                result = f"{episode.names[seat]} wins"
                ends = (middle(line[0]), middle(line[2]))
                yield Polyline(points=ends, color=INK, width=0.04, round=True, key=f"line {line}")
    yield fit_text(
        Text(at=(1.5, -0.4), text=result, size=0.26, color=INK, key="verdict"), VIEW.width - 0.2
    )
