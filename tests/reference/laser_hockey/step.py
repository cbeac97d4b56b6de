"""One physics step of laser hockey, continuous collision included (sections 12.1, 12.2, 12.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reference.laser_hockey.bodies import (
    REACHED,
    SKIN,
    SLOP,
    WALLS,
    Body,
    Contact,
    F,
    H,
    Vector,
    collide,
    dot,
    move,
    norm,
    rotate,
    solve_positions,
    solve_velocities,
)

TOLERANCE = F(0.00125)


@dataclass
class Sweep:
    """The rest of a body's way in this step."""

    body: Body
    start: Vector
    start_angle: np.float32

    def at(self, t: np.float32) -> Body:
        """A copy of the body on its way, t in 0..1."""
        rest = F(1) - t
        return replace(
            self.body,
            center=rest * self.start + t * self.body.center,
            angle=F(rest * self.start_angle + t * self.body.angle),
        )


def nearest_on(a: Vector, b: Vector, point: Vector) -> tuple[Vector, bool]:
    """The nearest point of an edge, and whether it lies inside the edge."""
    edge = b - a
    along, whole = dot(point - a, edge), dot(edge, edge)
    if along <= 0:
        return a, False
    if along >= whole:
        return b, False
    return a + along / whole * edge, True


def overlaps(a: Body, b: Body) -> bool:
    """Whether no face of either shape separates the two."""
    for one, two in ((a, b), (b, a)):
        if one.shape is None:
            continue
        for normal, corner in zip(one.shape.normals, one.corners(), strict=True):
            world = rotate(one.angle, normal)
            if min(dot(world, point - corner) for point in two.corners()) > 0:
                return False
    return True


Separation = Callable[[np.float32], tuple[np.float32, Callable[[np.float32], np.float32]]]


def separation_along(wall: Body, sweep: Sweep, t: np.float32) -> tuple[np.float32, Separation]:
    """Distance at a time, and how to measure along the axis between the nearest features.

    The measure gives for a time the smallest separation and, for its witnesses, the separation
    at any other time.
    """
    body = sweep.at(t)
    best: tuple[np.float32, str, int, Vector] | None = None
    for one, two, kind in ((wall, body, "wall face"), (body, wall, "body face")):
        if one.shape is None:
            continue
        corners = one.corners()
        for i, a in enumerate(corners):
            b = corners[(i + 1) % len(corners)]
            for point in two.corners():
                near, inside = nearest_on(a, b, point)
                gap = point - near if one is wall else near - point
                distance = norm(gap)
                if best is None or distance < best[0]:
                    best = (distance, kind if inside else "corners", i, gap)
    assert best is not None and wall.shape is not None
    distance, kind, face, gap = best
    if kind == "body face":
        assert body.shape is not None
        normal, middle = body.shape.normals[face], sum(body.shape.edge(face)) * F(0.5)

        def of_wall_corner(corner: Vector) -> Callable[[np.float32], np.float32]:
            def at(t: np.float32) -> np.float32:
                moved = sweep.at(t)
                return dot(rotate(moved.angle, normal), corner - moved.world(middle))

            return at

        measures = [of_wall_corner(corner) for corner in wall.corners()]
    else:
        if kind == "wall face":
            axis = wall.shape.normals[face]
            base = dot(axis, wall.world(sum(wall.shape.edge(face)) * F(0.5)))
        else:
            axis = F(1) / distance * gap
            base = max(dot(axis, corner) for corner in wall.corners())

        def of_body_corner(index: int) -> Callable[[np.float32], np.float32]:
            return lambda t: dot(axis, sweep.at(t).corners()[index]) - base

        measures = [of_body_corner(index) for index in range(len(body.corners()))]

    def measure(t: np.float32) -> tuple[np.float32, Callable[[np.float32], np.float32]]:
        gaps = [one(t) for one in measures]
        return min(gaps), measures[int(np.argmin(gaps))]

    return distance, measure


def time_of_impact(wall: Body, sweep: Sweep) -> np.float32 | None:
    """When the body comes near the wall, 0..1; None if it does not."""
    target = max(SLOP, SKIN + sweep.body.radius - 3 * SLOP)
    now = F(0)
    for _ in range(20):
        if overlaps(wall, sweep.at(now)):
            return None
        distance, measure = separation_along(wall, sweep, now)
        if distance < target + TOLERANCE:
            return now
        late = F(1)
        for _ in range(8):
            gap, witness = measure(late)
            if gap > target + TOLERANCE:
                return None
            if gap > target - TOLERANCE:
                now = late
                break
            early_gap = witness(now)
            if early_gap < target - TOLERANCE:
                return None
            if early_gap <= target + TOLERANCE:
                return now
            late = root(witness, now, early_gap, late, gap, target)
    return None


def root(
    gap_at: Callable[[np.float32], np.float32],
    early: np.float32,
    early_gap: np.float32,
    late: np.float32,
    late_gap: np.float32,
    target: np.float32,
) -> np.float32:
    """Bisection and secant in turn."""
    t = late
    for count in range(50):
        if count % 2:
            t = early + (target - early_gap) * (late - early) / (late_gap - early_gap)
        else:
            t = F(0.5) * (early + late)
        gap = gap_at(t)
        if abs(gap - target) < TOLERANCE:
            break
        if gap > target:
            early, early_gap = t, gap
        else:
            late, late_gap = t, gap
    return t


def stop_at_walls(body: Body, start: Vector, start_angle: np.float32, passes: int) -> None:
    """Events in the order of time until the body's way is free."""
    part = F(0)
    disabled: set[str] = set()
    events = dict.fromkeys(REACHED[body.name], 0)
    while True:
        sweep = Sweep(body, start, start_angle)
        times = {}
        for name in REACHED[body.name]:
            if name in disabled or events[name] > 8:
                continue
            t = time_of_impact(WALLS[name], sweep)
            if t is not None:
                times[name] = part + (1 - part) * t
        if not times or min(times.values()) > 1 - F(1.2e-6):
            return
        hit = min(times, key=lambda name: times[name])
        end, end_angle = body.center, body.angle
        share = (times[hit] - part) / (1 - part)
        body.center = start + share * (end - start)
        body.angle = F(start_angle + share * (end_angle - start_angle))
        events[hit] += 1
        touched = collide(WALLS[hit], body)
        if touched is None:
            disabled.add(hit)
            body.center, body.angle = end, end_angle
            continue
        others = [collide(WALLS[name], body) for name in REACHED[body.name] if name != hit]
        contacts: list[Contact] = [touched, *(contact for contact in others if contact)]
        solve_positions(contacts, 20, 0.75, 0.0075)
        start, start_angle, part = body.center, body.angle, times[hit]
        solve_velocities(contacts, passes)
        move(body, (1 - part) * H)


def islands(contacts: list[Contact]) -> list[list[Contact]]:
    """Contacts of bodies that hang together through contacts; walls connect nothing."""
    groups: list[tuple[set[str], list[Contact]]] = []
    for contact in contacts:
        names = {body.name for body in (contact.a, contact.b) if body.mass}
        joined = [contact]
        for group in [g for g in groups if g[0] & names]:
            groups.remove(group)
            names |= group[0]
            joined = group[1] + joined
        groups.append((names, joined))
    return [[c for c in contacts if c in group] for _, group in groups]


def find_contacts(left: Body, right: Body, puck: Body) -> list[Contact]:
    """In the order of section 12.1."""
    pairs = [(left, puck), (right, puck)]
    pairs += [(WALLS[name], puck) for name in REACHED["puck"]]
    pairs += [(left, right)]
    pairs += [(WALLS[name], racket) for racket in (left, right) for name in REACHED[racket.name]]
    found = [collide(a, b) for a, b in pairs]
    return [contact for contact in found if contact]


def advance(bodies: list[Body], contacts: list[Contact], profile: str) -> None:
    """Sections 12.2 to 12.6 for [left, right, puck]."""
    exact = profile == "EXACT"
    velocity_passes, position_passes = (180, 60) if exact else (20, 20)
    start = {body.name: (body.center, body.angle) for body in bodies}
    for body in bodies:
        kept = max(F(0), min(F(1), 1 - H * body.damping))
        body.velocity = kept * (body.velocity + H * body.inverse_mass * body.force)
        kept = max(F(0), min(F(1), 1 - H * body.spin_damping))
        body.spin = F(kept * (body.spin + H * body.inverse_inertia * body.torque))
    groups = islands(contacts)
    for group in groups:
        solve_velocities(group, velocity_passes)
    for body in bodies:
        move(body, H)
    for group in groups:
        solve_positions(group, position_passes, 0.2, 0.015)
    for body in bodies:
        if exact or body.name == "puck":
            stop_at_walls(body, *start[body.name], velocity_passes)
