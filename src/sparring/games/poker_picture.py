"""Small poker games for two as a picture: both cards open, the chips, and what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sparring.games.picture import (
    Circle,
    Drawing,
    Film,
    Point,
    RecordedEpisode,
    Shape,
    Shapes,
    ViewBox,
)
from sparring.games.poker import PokerPosition, count_chips
from sparring.games.state import State
from sparring.games.table_shapes import (
    ACTIVE,
    FAINT,
    INK,
    PANEL,
    PAPER,
    SEAT_COLORS,
    SOFT,
    label,
    oval,
    rounded_box,
    seat_disc,
)

VIEW = ViewBox(0, 0, 480, 380, PAPER)
MIDDLE = (240.0, 205.0)
SEAT_Y = (75.0, 335.0)
"""How high the seats are: the first one sits below."""
CARD = (50.0, 68.0)
FELT, RIM = "#e6efe6", "#a9bba9"
FRAME_S = 0.9
PAUSE = 3
"""Frames for which the result is shown."""
HISTORY_X = (110.0, 310.0)
"""Where what was said in each round begins: left and right of the table's card."""


class PokerPicture:
    """Draws games from positions that `read` finds in states."""

    def __init__(self, read: Callable[[State], PokerPosition]) -> None:
        self.read = read

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games, a frame for every decision."""
        frames: list[Shapes] = []
        for episode in episodes:
            frames += [tuple(self.scene(state)) for state in episode.states]
            last = tuple(self.scene(episode.states[-1]))
            frames += [(*last, result_text(episode))] * PAUSE
        return Film(VIEW, tuple(backdrop(episodes[0].names)), frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the last position, which tells everything that was said."""
        shapes = (*backdrop(episode.names), *self.scene(episode.states[-1]), result_text(episode))
        return Drawing(VIEW, shapes)

    def scene(self, state: State) -> Iterator[Shape]:
        """Yield what changes: cards, chips, and what was said."""
        at = self.read(state)
        for seat, y in enumerate(SEAT_Y):
            edge = ACTIVE if state.seat == seat else FAINT
            yield from card((MIDDLE[0], y), at.cards[seat], edge, f"card {seat}")
            yield from chips(seat, at.chips[seat])
        if at.table:
            yield from card(MIDDLE, at.table, FAINT, "table")
        for number, said in enumerate(at.rounds):
            for turn, word in enumerate(said):
                place = (HISTORY_X[number], MIDDLE[1] + 33 - 22 * turn)
                yield label(
                    place, f"{turn % 2} {word}", 90, color=SOFT, key=f"said {number} {turn}"
                )


def backdrop(names: Sequence[str]) -> Iterator[Shape]:
    """Yield the table and who sits there."""
    yield oval(MIDDLE, (440, 250), FELT, RIM, 4)
    for seat, y in enumerate(SEAT_Y):
        yield from seat_disc((24, y), seat)
        yield label((42, y), names[seat], 160, size=17)


def card(at: Point, rank: str, edge: str, key: str) -> Iterator[Shape]:
    yield rounded_box(at, CARD, PANEL, edge=edge, edge_width=3, radius=6, key=key)
    yield label(at, rank, CARD[0] - 8, size=30, anchor="middle", key=f"{key} rank")


def chips(seat: int, count: int) -> Iterator[Shape]:
    """Yield the chips that a seat has put in, and their number."""
    y = SEAT_Y[seat]
    for number in range(count):
        at = (MIDDLE[0] + 44 + 9 * number, y)
        yield Circle(
            at=at,
            radius=8,
            fill=SEAT_COLORS[seat],
            edge=PANEL,
            edge_width=2,
            key=f"chip {seat} {number}",
        )
    yield label((VIEW.right - 10, y), count_chips(count), 60, anchor="end", key=f"chips {seat}")


def result_text(episode: RecordedEpisode) -> Shape:
    last = episode.states[-1]
    told = ""
    if last.over:
        won = int(max(last.scores))
        winner = episode.winners[0]
        told = f"{last.end}: seat {winner} wins {count_chips(won)}" if won else "the pot is shared"
    return label((MIDDLE[0], 18), told, 460, size=18, color=INK, anchor="middle", key="verdict")
