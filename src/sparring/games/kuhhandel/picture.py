"""Pictures of Kuhhandel: animals and money of all seats around the auction or trade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparring.games.kuhhandel import KINDS, VALUES, count_noun, headline, pile_value
from sparring.games.kuhhandel.scenes import KuhhandelScene, scenes_of, status
from sparring.games.kuhhandel.wares import TILE, animal_card, farm, money
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
from sparring.games.table_shapes import (
    ACTIVE,
    FAINT,
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
PANEL_H = 96 + 2 * (TILE[1] + 4) + 4
MIDDLE_H, HEAD_H, MARKET_H = 240.0, 44.0, 84.0
VIEW = ViewBox(0, 0, WIDTH, MARKET_H + 2 * PANEL_H + MIDDLE_H + HEAD_H, PAPER)
MIDDLE = (WIDTH / 2, MARKET_H + PANEL_H + MIDDLE_H / 2)
CARD_Y = MIDDLE[1] + 48
EVENTS_Y, EVENTS_STEP = MIDDLE[1] - 36, 22.0
MAX_EVENTS = 4
FELT, RIM = "#f3ead8", "#c4b08a"
FRAME_S = 0.5
PAUSE = 10
"""Frames for which the result is shown."""
SEAT_POSITIONS = {
    3: ((0, -1), (-1, 1), (1, 1)),
    4: ((-1, -1), (-1, 1), (1, 1), (1, -1)),
    5: ((-1, -1), (-1, 1), (0, 1), (1, 1), (1, -1)),
}
"""Column and row of the seats' panels around the middle, clockwise."""


class KuhhandelPicture:
    """Draws games of Kuhhandel."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return the games with one frame per event."""
        frames: list[Shapes] = []
        for episode in episodes:
            for scene in scenes_of(episode):
                frames += [tuple(draw_scene(scene, scene.events))] * min(
                    len(scene.events), MAX_EVENTS
                )
            frames += [tuple(draw_scene(scene, (result_text(episode),)))] * PAUSE
        return Film(VIEW, tuple(draw_table(episodes[0].names)), frames, FRAME_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the final table, and the quartets in the order of their completion."""
        scenes = list(scenes_of(episode))
        done = [line for scene in scenes for line in scene.events if " completes the " in line]
        shapes = [
            *draw_table(episode.names),
            *draw_scene(without_open_deal(scenes[-1]), ()),
            *quartets(done, result_text(episode)),
        ]
        return Drawing(VIEW, tuple(shapes))


PICTURE = KuhhandelPicture()


def result_text(episode: RecordedEpisode) -> str:
    last, winners = episode.states[-1], episode.winners
    if last.truncated:
        return "the game was cut"
    points = f"{last.scores[winners[0]]:g} points"
    if len(winners) > 1:
        return f"the game is over: seats {' and '.join(map(str, winners))} share it with {points}"
    return f"the game is over: seat {winners[0]} wins with {points}"


def without_open_deal(scene: KuhhandelScene) -> KuhhandelScene:
    """Return a scene without the auction or trade that a cut may have interrupted."""
    return replace(scene, at=replace(scene.at, lot=-1, target=-1))


def corner(players: int, seat: int) -> Point:
    """Return the upper left corner of a seat's panel."""
    column, row = SEAT_POSITIONS[players][seat]
    x = MIDDLE[0] + column * (PANEL_W + GAP) - PANEL_W / 2
    return x, MIDDLE[1] + row * (MIDDLE_H + PANEL_H) / 2 + PANEL_H / 2


def draw_table(names: Sequence[str]) -> Iterator[Shape]:
    """Yield the static shapes: the table, the panels with names, the values of animals."""
    yield oval(MIDDLE, (WIDTH - 40, MIDDLE_H + PANEL_H), FELT, RIM, 4)
    for seat, name in enumerate(names):
        left, top = corner(len(names), seat)
        middle = (left + PANEL_W / 2, top - PANEL_H / 2)
        yield rounded_box(middle, (PANEL_W, PANEL_H), PANEL, edge=FAINT, edge_width=1.5, radius=8)
        yield from seat_disc((left + 18, top - 18), seat)
        yield label((left + 34, top - 18), name, PANEL_W - 34 - 84, size=18)
    yield Polyline(points=((MARGIN, 72), (WIDTH - MARGIN, 72)), color=FAINT, width=1.5)
    for text, y in (("animal", 56), ("value", 35), ("in deck", 14)):
        yield label((MARGIN, y), text, 62, color=SOFT)
    for kind, name in enumerate(KINDS):
        x = market_x(kind)
        yield label((x, 56), name, 64, anchor="middle")
        yield label((x, 35), str(VALUES[kind]), 64, anchor="middle", color=SOFT)


def market_x(kind: int) -> float:
    """Return the x of a kind's column below the table."""
    return 110 + kind * (WIDTH - MARGIN - 110) / (len(KINDS) - 0.5)


def draw_scene(scene: KuhhandelScene, events: Sequence[str]) -> Iterator[Shape]:
    """Yield the shapes that change."""
    at = scene.at
    if at.actor >= 0 and at.phase != "done":
        left, top = corner(at.players, at.actor)
        middle = (left + PANEL_W / 2, top - PANEL_H / 2)
        around = rounded_box(middle, (PANEL_W, PANEL_H), PANEL, radius=8).points
        yield Polyline(points=(*around, around[0]), color=ACTIVE, width=4, key="active")
    for seat in range(at.players):
        yield from draw_seat(scene, seat)
    yield label((MARGIN, VIEW.top - 23), headline(at), WIDTH - 20, size=21, key="head")
    for kind in range(len(KINDS)):
        left_over = at.deck.count(kind)
        color = INK if left_over else FAINT
        key = f"deck {kind}"
        yield label((market_x(kind), 14), str(left_over), 64, color=color, anchor="middle", key=key)
    yield from draw_middle(scene)
    for number, line in enumerate(events[-MAX_EVENTS:]):
        place = (MIDDLE[0], EVENTS_Y - number * EVENTS_STEP)
        yield label(place, line, WIDTH - 40, size=18, anchor="middle", key=f"event {number}")


def draw_seat(scene: KuhhandelScene, seat: int) -> Iterator[Shape]:
    """Yield points, status, money and animals of a seat."""
    at = scene.at
    left, top = corner(at.players, seat)
    right = left + PANEL_W - 10
    points = f"{scene.scores[seat]:g} pts"
    yield label((right, top - 18), points, 70, anchor="end", key=f"points {seat}")
    doing = status(at, seat)
    if doing:
        color = ACTIVE if seat in (at.high_bidder, at.turn) else SOFT
        yield label((left + 10, top - 41), doing, 146, size=17, color=color, key=f"doing {seat}")
    hand = at.money[seat]
    total = f"has {pile_value(hand)}"
    yield label((right, top - 41), total, 74, size=17, color=SOFT, anchor="end", key=f"sum {seat}")
    yield from money(hand, (left + 10, top - 54), PANEL_W - 20, key=f"money {seat}")
    yield from farm(at.animals[seat], (left + 8, top - 95), PANEL_W - 16, key=f"farm {seat}")


def draw_middle(scene: KuhhandelScene) -> Iterator[Shape]:
    """Yield the animal that is auctioned or traded, with bids or piles."""
    at = scene.at
    if at.lot >= 0:
        yield from animal_card(at.lot, 1, (MIDDLE[0], CARD_Y))
        yield from draw_auction(scene)
    elif at.target >= 0:
        yield from animal_card(at.traded, at.stake, (MIDDLE[0], CARD_Y))
        yield from draw_trade(scene)


def draw_auction(scene: KuhhandelScene) -> Iterator[Shape]:
    """Yield the auctioneer, the highest bid and its bidder."""
    at = scene.at
    right, left = MIDDLE[0] + 72, MIDDLE[0] - 72
    yield label((left, CARD_Y + 22), "auctioned by", 200, anchor="end", key="by")
    yield from seat_disc((left - 14, CARD_Y - 8), at.turn, radius=14, key=f"seller {at.turn}")
    if not at.high_bid:
        yield label((right, CARD_Y), "no bid yet", 200, size=20, key="none")
        return
    yield label((right, CARD_Y + 22), "highest bid by", 200, key="highest")
    yield from seat_disc(
        (right + 14, CARD_Y - 8), at.high_bidder, radius=14, key=f"high {at.high_bidder}"
    )
    yield label((right + 38, CARD_Y - 8), str(at.high_bid), 150, size=28, key="bid")


def draw_trade(scene: KuhhandelScene) -> Iterator[Shape]:
    """Yield both sides of a trade, and their piles."""
    at = scene.at
    piles = {at.turn: at.offer, at.target: scene.counter}
    for side, seat in ((-1, at.turn), (1, at.target)):
        x = MIDDLE[0] + side * 200
        role = "challenger" if side < 0 else "challenged"
        yield from seat_disc((x - 52, CARD_Y + 44), seat, radius=13, key=f"{role} {seat}")
        yield label((x - 32, CARD_Y + 44), role, 120, key=role)
        pile = piles[seat]
        if pile is None or not sum(pile):
            continue
        yield from money(pile, (x - 110, CARD_Y + 22), 220, key=f"pile {role}")
        summary = f"{count_noun(sum(pile), 'card')}, {pile_value(pile)}"
        yield label((x, CARD_Y - 32), summary, 220, anchor="middle", key=f"sum {role}")


def quartets(lines: Sequence[str], result: str) -> Iterator[Shape]:
    """Yield the quartets in the order of their completion, in two columns, and the result."""
    top = MIDDLE[1] + 100
    yield label((MIDDLE[0], top), result, WIDTH - 40, size=20, anchor="middle")
    for number, line in enumerate(lines):
        column, row = divmod(number, 5)
        place = (52 + column * 340, top - 40 - row * 32)
        short = line.replace(": ", ", ").replace(" completes the ", ": ")
        yield label(place, f"{number + 1}.  {short}", 320, size=17)
