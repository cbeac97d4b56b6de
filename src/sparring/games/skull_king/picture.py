"""Pictures of Skull King: the table with open hands, and the score sheet of a game."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparring.games.picture import (
    Drawing,
    Film,
    Point,
    Polyline,
    RecordedEpisode,
    Shape,
    Shapes,
    ViewBox,
)
from sparring.games.rules import Rules
from sparring.games.skull_king import SUITS, has_ghost, headline
from sparring.games.skull_king.cards import (
    HAND_CARD,
    LEGEND,
    hand_card,
    table_card,
)
from sparring.games.skull_king.scenes import SkullKingScene, scenes_of, seat_notes
from sparring.games.skull_king.sheet import sheet, sheet_height
from sparring.games.table_shapes import (
    ACTIVE,
    BAD,
    FAINT,
    GOOD,
    INK,
    PANEL,
    PAPER,
    SOFT,
    label,
    oval,
    rounded_box,
    seat_disc,
)

WIDTH, MARGIN, GAP = 760.0, 10.0, 10.0
PANEL_W = (WIDTH - 2 * MARGIN - 2 * GAP) / 3
MIDDLE_H, HEAD_H, FOOT_H = 266.0, 46.0, 82.0
PER_ROW = 6
"""Cards beside each other in a hand."""
FELT, RIM = "#e6efe6", "#a9bba9"
FRAME_S = 0.6
PAUSES = {"decision": 1, "trick": 2, "scores": 4}
"""Frames for which each kind of scene is shown."""

SPOTS = {
    "B": (0, -1),
    "BL": (-1, -1),
    "L": (-1, 0),
    "TL": (-1, 1),
    "T": (0, 1),
    "TR": (1, 1),
    "R": (1, 0),
    "BR": (1, -1),
}
"""Panels of the seats, clockwise from below: column and row around the middle."""
SEAT_SPOTS = {
    2: "B T",
    3: "B TL TR",
    4: "B L T R",
    5: "B L TL TR R",
    6: "B BL TL T TR BR",
    7: "BL L TL T TR R BR",
    8: "B BL L TL T TR R BR",
}


@dataclass(frozen=True)
class TableLayout:
    """Positions of all parts of the picture."""

    names: tuple[str, ...]
    seats: int
    """Number of seats, the ghost's included."""
    cannonball: bool
    notes: bool
    """Whether seats need a line for loads, wagers and pirates."""
    below: float
    """Height of the score sheet below the table."""

    @property
    def panel_h(self) -> float:
        """Height of a seat's panel: name, numbers, notes, two rows of cards."""
        return 52 + 18 * self.notes + 2 * (HAND_CARD[1] + 4) + 4

    @property
    def view(self) -> ViewBox:
        height = FOOT_H + 2 * self.panel_h + MIDDLE_H + HEAD_H
        return ViewBox(0, -self.below, WIDTH, height, PAPER)

    @property
    def middle(self) -> Point:
        """The center of the trick."""
        return WIDTH / 2, FOOT_H + self.panel_h + MIDDLE_H / 2

    def spot(self, seat: int) -> tuple[int, int]:
        """Return column and row of a seat's panel."""
        return SPOTS[SEAT_SPOTS[self.seats].split()[seat]]

    def panel(self, seat: int) -> Point:
        """Return the center of a seat's panel."""
        column, row = self.spot(seat)
        x, y = self.middle
        return x + column * (PANEL_W + GAP), y + row * (MIDDLE_H + self.panel_h) / 2

    def corner(self, seat: int) -> Point:
        """Return the upper left corner of a seat's panel."""
        x, y = self.panel(seat)
        return x - PANEL_W / 2, y + self.panel_h / 2

    def card(self, seat: int) -> Point:
        """Return the position of a seat's card in the trick."""
        column, row = self.spot(seat)
        x, y = self.middle
        across, up = (66, 71) if column and row else (92, 94)
        return x + column * across, y + row * up


def make_layout(rules: Rules, names: tuple[str, ...], below: float = 0.0) -> TableLayout:
    flags = rules.config
    cannonball = bool(flags["cannonball"])
    notes = cannonball or bool(flags["abilities"])
    return TableLayout(names, rules.seats + has_ghost(rules), cannonball, notes, below)


class SkullKingPicture:
    """Draws games of Skull King."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games: one frame per decision, several per trick and score."""
        table = make_layout(episodes[0].states[0].rules, episodes[0].names)
        frames: list[Shapes] = []
        for episode in episodes:
            scenes = list(scenes_of(episode))
            for number, scene in enumerate(scenes, 1):
                ends = number == len(scenes)
                event = result_text(episode) if ends else scene.event
                frames += [tuple(draw_scene(table, scene, event))] * (PAUSES[scene.kind] + 4 * ends)
        return Film(table.view, tuple(draw_table(table)), frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the trick with the most cards in hands, and the score sheet of the game."""
        scenes = list(scenes_of(episode))
        rounds = [scene for scene in scenes if scene.kind == "scores"]
        rules = episode.states[0].rules
        table = make_layout(rules, episode.names, sheet_height(rounds))
        tricks = [scene for scene in scenes if scene.kind == "trick"] or scenes
        fullest = max(reversed(tricks), key=lambda scene: sum(map(len, scene.at.hands)))
        shapes = [*draw_table(table), *draw_scene(table, fullest, fullest.event)]
        return Drawing(table.view, (*shapes, *sheet(rounds, episode.names, result_text(episode))))


PICTURE = SkullKingPicture()


def result_text(episode: RecordedEpisode) -> str:
    last, winners = episode.states[-1], episode.winners
    if not last.over:
        return ""
    if len(winners) > 1:
        seats = " and ".join(map(str, winners))
        return f"the game is over: seats {seats} share it with {last.scores[winners[0]]:g} points"
    return f"the game is over: seat {winners[0]} wins with {last.scores[winners[0]]:g} points"


def draw_table(table: TableLayout) -> Iterator[Shape]:
    """Yield the static shapes: the table, the panels with names, the legend."""
    width = WIDTH - 60
    yield oval(table.middle, (width, MIDDLE_H + 1.2 * table.panel_h), FELT, RIM, 4)
    for seat in range(table.seats):
        x, y = table.panel(seat)
        size = (PANEL_W, table.panel_h)
        yield rounded_box((x, y), size, PANEL, edge=FAINT, edge_width=1.5, radius=8)
        ghost = seat >= len(table.names)
        left, top = table.corner(seat)
        yield from seat_disc((left + 18, top - 18), seat, name="G" if ghost else "")
        name = "ghost" if ghost else table.names[seat]
        yield label((left + 34, top - 18), name, PANEL_W - 34 - 84, size=18)
    for line, y in zip(LEGEND, (32, 13), strict=True):
        yield label((WIDTH / 2, y), line, WIDTH - 20, size=15, color=SOFT, anchor="middle")


def draw_scene(table: TableLayout, scene: SkullKingScene, event: str) -> Iterator[Shape]:
    """Yield the shapes that change."""
    at = scene.at
    if at.actor >= 0:
        around = rounded_box(
            table.panel(at.actor), (PANEL_W, table.panel_h), PANEL, radius=8
        ).points
        yield Polyline(points=(*around, around[0]), color=ACTIVE, width=4, key="active")
    for seat in range(table.seats):
        yield from draw_numbers(table, scene, seat)
    for seat in range(table.seats):
        yield from draw_hand(table, scene, seat)
    yield label((MARGIN, table.view.top - 24), headline_of(scene), WIDTH - 20, size=21, key="head")
    yield from draw_trick(table, scene)
    y = FOOT_H - 22
    yield label((WIDTH / 2, y), event, WIDTH - 20, size=18, anchor="middle", key="event")


def headline_of(scene: SkullKingScene) -> str:
    if scene.kind == "scores":
        return f"Round {scene.at.round} of {scene.at.rounds} is over"
    return headline(scene.at)


def draw_numbers(table: TableLayout, scene: SkullKingScene, seat: int) -> Iterator[Shape]:
    """Yield score, bid, tricks, bonus, lead and notes of a seat."""
    left, top = table.corner(seat)
    right, y = left + PANEL_W - 10, top - 41
    won, notes = tricks_text(scene, seat), seat_notes(scene, seat, cannonball=table.cannonball)
    yield label((left + 10, y), won, PANEL_W - 90, size=17, color=SOFT, key=f"won {seat}")
    if notes:
        position = (left + 10, y - 19)
        yield label(position, notes, PANEL_W - 20, color=SOFT, key=f"notes {seat}")
    beside, color, person = "", ACTIVE, seat < scene.at.players
    if person:
        total = f"{scene.at.by_seat['total'][seat]} pts"
        yield label((right, top - 18), total, 70, anchor="end", key=f"total {seat}")
    if scene.points and person:
        points = scene.points[seat]
        beside, color = f"{points:+}", GOOD if points > 0 else BAD if points < 0 else INK
    elif seat == scene.at.leader:
        beside = "leads"
    if beside:
        key = f"beside {seat}"
        yield label((right, y), beside, 66, size=18, color=color, anchor="end", key=key)


def tricks_text(scene: SkullKingScene, seat: int) -> str:
    """Return bid and tricks of a seat as text."""
    at, per = scene.at, scene.at.by_seat
    won, bid = per["won"][seat], per["bid"][seat]
    if seat >= at.players:
        return f"won {won}"
    if bid < 0:
        return "no bid yet"
    if at.phase in ("bid", "cannon"):
        return f"bid {bid}"
    bonus = f", {per['bonus'][seat]:+}" if per["bonus"][seat] else ""
    return f"won {won} of {bid}{bonus}"


def draw_hand(table: TableLayout, scene: SkullKingScene, seat: int) -> Iterator[Shape]:
    at = scene.at
    left, top = table.corner(seat)
    high = top - 52 - 18 * table.notes - HAND_CARD[1] / 2 - 2
    across = (PANEL_W - 20 - HAND_CARD[0]) / (PER_ROW - 1)
    hand = at.hands[seat]
    for number, card in enumerate(hand[: 2 * PER_ROW]):
        row, column = divmod(number, PER_ROW)
        x = left + 10 + HAND_CARD[0] / 2 + column * across
        yield hand_card(card, (x, high - row * (HAND_CARD[1] + 4)))


def draw_trick(table: TableLayout, scene: SkullKingScene) -> Iterator[Shape]:
    """Yield the cards of the trick, the suit to follow, and Loot alliances."""
    at = scene.at
    for seat, token in at.trick:
        yield table_card(token, table.card(seat), wins=seat == scene.winner)
    if at.phase != "play":
        return
    x, y = table.middle
    lines = [f"trick {at.tricks_done + 1} of {at.cards}"]
    if at.trick and at.follow < len(SUITS):
        lines.append(f"{SUITS[at.follow]} led")
    for by, ally in at.loot:
        lines.append(f"loot: {by} + {ally}")
    for number, line in enumerate(lines):
        up = y + 10 * (len(lines) - 1) - 20 * number
        yield label((x, up), line, 120, size=16, anchor="middle", key=f"middle {number}")
