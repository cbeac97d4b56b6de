"""Laser hockey as a picture: the rink from above, seat 0 at the left in red, seat 1 in blue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparring.games.laser_hockey import STEP_S, TIME_LIMIT, HockeyPosition, RigidBody, read
from sparring.games.picture import (
    Arc,
    Circle,
    Drawing,
    Film,
    Point,
    Polygon,
    Polyline,
    RecordedEpisode,
    Shape,
    ShapeGroup,
    Shapes,
    Text,
    ViewBox,
    fit_text,
)
from sparring.games.text_width import text_width, truncate_text

PAPER, ICE, INK, SOFT, FAINT = "#f4f6f9", "#ffffff", "#16191f", "#5d6572", "#d5dae1"
SEAT_COLORS = ("#eb6235", "#5d9ec7")
SEAT_OUTLINE_COLORS = ("#a83d18", "#336f96")
"""Outline and text colors of the seats."""
LIGHT = ("#fbdfd5", "#dcebf4")
CENTER_DISC, CREASE, GOAL, WALL, PUCK = "#cccccc", "#efcb8a", "#808080", "#16191f", "#000000"
CREASE_EDGE, NET = "#d9a94f", "#a5a5a5"
FILM_VIEW = ViewBox(-4.75, -3.95, 4.75, 4.95, PAPER)
STILL_VIEW = ViewBox(-4.75, -4.75, 4.75, 4.95, PAPER)

INNER_X, INNER_Y = 235 / 60, 200 / 60
"""Half length and half width of the ice."""
OUTER_X, OUTER_Y = 255 / 60, 220 / 60
MOUTH, GOAL_HALF_WIDTH = 82 / 60, 75 / 60
"""Half of a goal's opening, at the ice and behind it."""
GOAL_X = (245 / 60, 265 / 60)
RACKET = (
    (0.1, -0.4),
    (0.1, 0.4),
    (-0.2, 0.4),
    (-0.36, 0.2),
    (-0.42, 0),
    (-0.36, -0.2),
    (-0.2, -0.4),
)
"""Outline of seat 0's racket; that of seat 1 is mirrored."""
PLATE = ((0.1, -0.4), (0.1, 0.4), (0.01, 0.4), (0.01, -0.4))
PUCK_RADIUS = 13 / 60
NAME_X, SCORE_SIZE = 3.82, 0.62
MIN_LABEL_DISTANCE = 0.27
"""Labels of moments closer than this are left out."""
MAX_HOLD_STEPS = 15
"""Steps for which a caught puck can be kept."""

TRAIL = (10, 8, 6, 4, 2)
"""Lengths of the trail's lines, in steps."""
BLINK_FRAMES, BLINK_COUNT = 8, 4
"""Frames of half a blink after a goal, and number of blinks."""
PAUSE = 60
"""Frames for which the result is shown after that."""
GHOSTS = 5
"""Earlier moments that a still shows."""


class HockeyPicture:
    """Draws matches of laser hockey."""

    def film(self, episodes: Sequence[RecordedEpisode]) -> Film:
        """Return all matches, one after the other, each with its result."""
        backdrop = (*rink(), *nameplates(episodes[0].names, episodes[-1].wins_after))
        frames = [frame for episode in episodes for frame in match_frames(episode)]
        return Film(FILM_VIEW, backdrop, frames, STEP_S)

    def still(self, episode: RecordedEpisode) -> Drawing:
        """Return the path of the puck, colored by the last racket to touch it, and some moments."""
        match = [read(state) for state in episode.states]
        shapes = (
            *rink(),
            *nameplates(episode.names, episode.wins_after),
            *score_board(episode.wins_after, match[-1]),
            *ghosts(match),
            *puck_path(match),
            *moment_labels(match),
            *bodies(match[-1]),
            *caption(match, episode.names),
        )
        return Drawing(STILL_VIEW, shapes)


PICTURE = HockeyPicture()


def match_frames(episode: RecordedEpisode) -> Iterator[Shapes]:
    """Yield a frame for the start, one for every step, and those that show the result."""
    match = [read(state) for state in episode.states]
    for step, at in enumerate(match):
        puck = [past.puck for past in match[max(0, step - TRAIL[0]) : step + 1]]
        yield (*score_board(episode.wins, at), *trail(puck), *bodies(at))
    last = match[-1]
    board = tuple(score_board(episode.wins_after, last))
    dark = (*board, *bodies(last))
    if last.winner:
        light = (*board, *goal_light(last.winner), *bodies(last))
        yield from ([light] * BLINK_FRAMES + [dark] * BLINK_FRAMES) * BLINK_COUNT
    yield from [(*dark, *result_banner(last, episode.names))] * PAUSE


def rink() -> Iterator[Shape]:
    """Yield the static shapes: walls, ice, markings and goals."""
    yield Polygon(points=rounded(OUTER_X, OUTER_Y, 0.3), fill=WALL)
    yield box(-INNER_X, -INNER_Y, INNER_X, INNER_Y, ICE)
    yield Circle(at=(0, 0), radius=100 / 60, fill=CENTER_DISC, opacity=0.45)
    yield Circle(at=(0, 0), radius=100 / 60, edge=CENTER_DISC, edge_width=0.05)
    yield Polyline(points=((0, -INNER_Y), (0, INNER_Y)), color=CENTER_DISC, width=0.05)
    yield Circle(at=(0, 0), radius=0.09, fill="#aaaaaa")
    for side in (-1, 1):
        yield from goal(side)


def rounded(x: float, y: float, radius: float) -> tuple[Point, ...]:
    """Return a rectangle around the middle with round corners."""
    turns = [math.radians(degrees) for degrees in range(0, 91, 15)]
    corner = [(x - radius * (1 - math.cos(t)), y - radius * (1 - math.sin(t))) for t in turns]
    upper = [*corner, *((-x, y) for x, y in reversed(corner))]
    return (*upper, *((-x, -y) for x, y in upper))


def goal(side: int) -> Iterator[Shape]:
    """Yield a goal: the opening in the wall, the area before it, and the net."""
    middle, near, far = (side * x for x in (250 / 60, *GOAL_X))
    half = ((INNER_X - 0.1, MOUTH), (INNER_X, MOUTH), (OUTER_X, GOAL_HALF_WIDTH))
    mouth = [*half, *((x, -y) for x, y in reversed(half))]
    yield Polygon(points=tuple((side * x, y) for x, y in mouth), fill=ICE)
    turns = [math.radians(degrees) for degrees in range(-90, 91, 6)]
    round_ = tuple(
        (middle - side * GOAL_HALF_WIDTH * math.cos(t), GOAL_HALF_WIDTH * math.sin(t))
        for t in turns
    )
    yield Polygon(points=round_, fill=CREASE, opacity=0.75)
    yield Polyline(points=round_, color=CREASE_EDGE, width=0.04)
    yield box(near, -GOAL_HALF_WIDTH, far, GOAL_HALF_WIDTH, GOAL)
    for step in range(1, 10):
        y = -GOAL_HALF_WIDTH + step * GOAL_HALF_WIDTH / 5
        yield Polyline(points=((near, y), (far, y)), color=NET, width=0.02)
    for share in (0.25, 0.5, 0.75):
        x = near + share * (far - near)
        yield Polyline(points=((x, -GOAL_HALF_WIDTH), (x, GOAL_HALF_WIDTH)), color=NET, width=0.02)


def box(x0: float, y0: float, x1: float, y1: float, fill: str) -> Polygon:
    return Polygon(points=((x0, y0), (x1, y0), (x1, y1), (x0, y1)), fill=fill)


def nameplates(names: Sequence[str], wins: Sequence[int]) -> Iterator[Shape]:
    """Yield the players' names in the colors of their rackets, beside the score."""
    width = NAME_X - text_width(score_of(wins), SCORE_SIZE) / 2 - 0.25
    for side, name, color, dark in zip(
        (-1, 1), names, SEAT_COLORS, SEAT_OUTLINE_COLORS, strict=True
    ):
        yield Circle(at=(side * 4.1, 4.42), radius=0.14, fill=color, edge=dark, edge_width=0.04)
        plate = Text(
            at=(side * NAME_X, 4.42),
            text=name,
            size=0.36,
            color=dark,
            anchor="start" if side < 0 else "end",
        )
        yield fit_text(plate, width)


def score_of(wins: Sequence[int]) -> str:
    return f"{wins[0]} : {wins[1]}"


def score_board(wins: Sequence[int], at: HockeyPosition) -> Iterator[Shape]:
    """Yield the score and the time left."""
    yield Text(at=(0, 4.46), text=score_of(wins), size=SCORE_SIZE, color=INK, key="score")
    limit = TIME_LIMIT[at.mode]
    steps_left = max(0, limit - at.time)
    yield Polyline(points=((-0.9, 3.98), (0.9, 3.98)), color=FAINT, width=0.08, key="clock")
    ends = ((-0.9, 3.98), (-0.9 + 1.8 * steps_left / limit, 3.98))
    yield Polyline(points=ends, color=SOFT, width=0.08, key="time left")
    seconds = f"{math.ceil(steps_left * STEP_S)} s"
    yield Text(at=(1.05, 3.98), text=seconds, size=0.22, color=SOFT, anchor="start", key="seconds")


def bodies(at: HockeyPosition) -> Iterator[Shape]:
    """Yield rackets, puck, and the remaining keep time."""
    for seat, body in enumerate((at.left, at.right)):
        yield racket(seat, body, key=f"racket {seat}")
    for seat, body in enumerate((at.left, at.right)):
        if at.keep[seat]:
            yield aim(seat, body, at.puck)
    yield ShapeGroup(
        at=(at.puck.x, at.puck.y),
        parts=(
            Circle(at=(0, 0), radius=PUCK_RADIUS, fill=PUCK),
            Circle(at=(0, 0), radius=0.6 * PUCK_RADIUS, edge="#4a4f59", edge_width=0.03),
        ),
        key="puck",
    )
    for seat in (0, 1):
        if at.keep[seat]:
            yield Arc(
                at=(at.puck.x, at.puck.y),
                radius=PUCK_RADIUS + 0.1 + 0.1 * (seat == 1 and at.keep[0] > 0),
                share=at.keep[seat] / MAX_HOLD_STEPS,
                color=SEAT_OUTLINE_COLORS[seat],
                width=0.08,
                key=f"keep {seat}",
            )


def racket(seat: int, body: RigidBody, *, key: str = "", opacity: float = 1.0) -> ShapeGroup:
    """Return a racket with its front plate."""
    side = 1 if seat == 0 else -1
    whole = tuple((side * x, y) for x, y in RACKET)
    front = tuple((side * x, y) for x, y in PLATE)
    parts = (
        Polygon(
            points=whole, fill=SEAT_COLORS[seat], edge=SEAT_OUTLINE_COLORS[seat], edge_width=0.04
        ),
        Polygon(points=front, fill=SEAT_OUTLINE_COLORS[seat]),
    )
    return ShapeGroup(parts=parts, at=(body.x, body.y), angle=body.angle, key=key, opacity=opacity)


def aim(seat: int, body: RigidBody, puck: RigidBody) -> Polyline:
    """Return the direction in which a kept puck would be shot."""
    side = 1 if seat == 0 else -1
    way = (side * math.cos(body.angle), side * math.sin(body.angle))
    ends = tuple((puck.x + far * way[0], puck.y + far * way[1]) for far in (0.3, 1.7))
    return Polyline(
        points=ends, color=SEAT_COLORS[seat], width=0.05, opacity=0.7, key=f"aim {seat}"
    )


def trail(pucks: Sequence[RigidBody]) -> Iterator[Shape]:
    """Yield the puck's trail: overlapping lines of different lengths, so that it fades."""
    now = [(puck.x, puck.y) for puck in reversed(pucks)]
    points = now + now[-1:] * (TRAIL[0] + 1 - len(now))
    for at, steps in enumerate(TRAIL):
        yield Polyline(
            points=tuple(points[: steps + 1]),
            color=SOFT,
            width=2 * PUCK_RADIUS * (0.3 + 0.6 * at / len(TRAIL)),
            round=True,
            opacity=0.1,
            key=f"trail {steps}",
        )


def goal_light(winner: int) -> Iterator[Shape]:
    """Yield the light of a goal: the ice and the net in the scorer's color."""
    color = SEAT_COLORS[0 if winner > 0 else 1]
    near, far = (winner * x for x in GOAL_X)
    ice = box(-INNER_X, -INNER_Y, INNER_X, INNER_Y, color)
    yield replace(ice, opacity=0.22, key="light")
    yield replace(box(near, -GOAL_HALF_WIDTH, far, GOAL_HALF_WIDTH, color), opacity=0.85, key="net")


def result_banner(at: HockeyPosition, names: Sequence[str]) -> Iterator[Shape]:
    """Yield the result, across the ice."""
    seat = scorer(at)
    band, ink = ("#e6e9ee", INK) if seat is None else (LIGHT[seat], SEAT_OUTLINE_COLORS[seat])
    ends = ((-INNER_X, 0), (INNER_X, 0))
    yield Polyline(points=ends, color=band, width=1.9, opacity=0.93, key="band")
    title = "Time is up" if seat is None else "Goal!"
    yield Text(at=(0, 0.26), text=title, size=0.95, color=ink, key="title")
    text = result(at, names, 0.36, 2 * INNER_X - 0.3)
    yield Text(at=(0, -0.52), text=text, size=0.36, color=ink, key="result")


def scorer(at: HockeyPosition) -> int | None:
    return {1: 0, -1: 1}.get(at.winner)


def result(at: HockeyPosition, names: Sequence[str], size: float, width: float) -> str:
    """Return the result of a match; long names are truncated."""
    seat, played = scorer(at), f"after {at.time * STEP_S:.2f} s"
    if seat is None:
        return f"no goal {played}"
    side = (" on the left", " on the right")[seat] if names[0] == names[1] else ""
    rest = f"{side} scores {played}"
    return truncate_text(names[seat], size, width - text_width(rest, size)) + rest


def puck_path(match: Sequence[HockeyPosition]) -> Iterator[Shape]:
    """Yield the puck's path, colored by the last racket to touch it."""
    points: list[Point] = []
    color = SOFT
    for at in match:
        points.append((at.puck.x, at.puck.y))
        touched = next(
            (SEAT_OUTLINE_COLORS[seat] for seat in (0, 1) if at.touching >> seat & 1), color
        )
        if touched != color:
            yield Polyline(points=tuple(points), color=color, width=0.05, round=True)
            points, color = points[-1:], touched
    if len(points) > 1:
        yield Polyline(points=tuple(points), color=color, width=0.05, round=True)


def ghosts(match: Sequence[HockeyPosition]) -> Iterator[Shape]:
    """Yield the rackets of earlier moments; older ones are fainter."""
    for number, at in enumerate(moments(match)):
        fresh = 0.15 + 0.35 * number / GHOSTS
        for seat, body in enumerate((at.left, at.right)):
            yield racket(seat, body, opacity=fresh)


def moments(match: Sequence[HockeyPosition]) -> list[HockeyPosition]:
    """Return `GHOSTS` positions at equal intervals."""
    return [match[(len(match) - 1) * number // GHOSTS] for number in range(GHOSTS)]


def moment_labels(match: Sequence[HockeyPosition]) -> Iterator[Shape]:
    """Yield the number of every moment beside puck and rackets."""
    written: list[Point] = []
    for number, at in enumerate(moments(match), 1):
        marks = [((at.puck.x, at.puck.y), ICE)]
        for seat, body in enumerate((at.left, at.right)):
            behind = -0.2 if seat == 0 else 0.2
            place = (body.x + behind * math.cos(body.angle), body.y + behind * math.sin(body.angle))
            marks.append((place, SEAT_OUTLINE_COLORS[seat]))
        for place, color in marks:
            if all(math.dist(place, other) >= MIN_LABEL_DISTANCE for other in written):
                if color == ICE:
                    yield Circle(at=place, radius=0.15, fill=SOFT, edge=ICE, edge_width=0.03)
                yield Text(at=place, text=str(number), size=0.2, color=color)
                written.append(place)


def caption(match: Sequence[HockeyPosition], names: Sequence[str]) -> Iterator[Shape]:
    apart = f"; the numbers are {(len(match) - 1) / GHOSTS * STEP_S:.2f} s apart"
    width = STILL_VIEW.width - 0.4 - text_width(apart, 0.24)
    lines = (
        result(match[-1], names, 0.24, width) + apart,
        "the puck's way has the color of the racket that touched it last",
    )
    for y, line in zip((-4.05, -4.4), lines, strict=True):
        yield Text(at=(0, y), text=line, size=0.24, color=SOFT)
