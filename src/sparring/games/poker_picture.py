"""Pictures of small poker games for two: open cards, chips and betting history."""

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
"""Height of the seats, seat 0 at the bottom."""
CARD = (50.0, 68.0)
FELT, RIM = "#e6efe6", "#a9bba9"
FRAME_S = 0.9
PAUSE = 3
"""Frames of the result."""
HISTORY_X = (110.0, 310.0)
"""Left edges of the betting history by round, beside the public card."""


class PokerPicture:
    """Draws games. read: function from a state to its position."""

    def __init__(self, read: Callable[[State], PokerPosition]) -> None:
        self.read = read

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games with one frame per decision."""
        frames: list[Shapes] = []
        for episode in episodes:
            frames += [tuple(self.scene(state)) for state in episode.states]
            last = tuple(self.scene(episode.states[-1]))
            frames += [(*last, result_text(episode))] * PAUSE
        return Film(VIEW, tuple(backdrop(episodes[0].names)), frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the last position, with the whole betting history."""
        shapes = (*backdrop(episode.names), *self.scene(episode.states[-1]), result_text(episode))
        return Drawing(VIEW, shapes)

    def scene(self, state: State) -> Iterator[Shape]:
        """Yield the moving shapes: cards, chips and betting history."""
        position = self.read(state)
        for seat, y in enumerate(SEAT_Y):
            edge = ACTIVE if state.seat == seat else FAINT
            yield from card((MIDDLE[0], y), position.cards[seat], edge, f"card {seat}")
            yield from chips(seat, position.chips[seat])
        if position.table:
            yield from card(MIDDLE, position.table, FAINT, "table")
        for number, actions in enumerate(position.rounds):
            for turn, action in enumerate(actions):
                corner = (HISTORY_X[number], MIDDLE[1] + 33 - 22 * turn)
                yield label(
                    corner, f"{turn % 2} {action}", 90, color=SOFT, key=f"said {number} {turn}"
                )


def backdrop(names: Sequence[str]) -> Iterator[Shape]:
    """Yield the static shapes: the table and the players."""
    yield oval(MIDDLE, (440, 250), FELT, RIM, 4)
    for seat, y in enumerate(SEAT_Y):
        yield from seat_disc((24, y), seat)
        yield label((42, y), names[seat], 160, size=17)


def card(at: Point, rank: str, edge: str, key: str) -> Iterator[Shape]:
    yield rounded_box(at, CARD, PANEL, edge=edge, edge_width=3, radius=6, key=key)
    yield label(at, rank, CARD[0] - 8, size=30, anchor="middle", key=f"{key} rank")


def chips(seat: int, count: int) -> Iterator[Shape]:
    """Yield the chips of a seat in the pot, and their number."""
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
    result = ""
    if last.over:
        won = int(max(last.scores))
        winner = episode.winners[0]
        result = (
            f"{last.end}: seat {winner} wins {count_chips(won)}" if won else "the pot is shared"
        )
    return label((MIDDLE[0], 18), result, 460, size=18, color=INK, anchor="middle", key="verdict")
