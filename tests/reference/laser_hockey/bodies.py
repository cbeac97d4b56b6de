"""Rigid bodies of laser hockey, slow and plain (sections 3 and 12 of the specification).

All arithmetic is in float32, as in the original. Coordinates are those of the original too: the
center of the rink is at (5, 4). Vectors are arrays of two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

F = np.float32
Vector = Any  # an array of two float32
ZERO, H = F(0), F(0.02)
SLOP, SKIN, PUCK_RADIUS = F(0.005), F(0.01), F(13 / 60)
EPSILON = F(1.1920929e-7)
CENTER = np.array([5, 4], F)


def vec(x: float, y: float) -> Vector:
    return np.array([x, y], F)


def dot(a: Vector, b: Vector) -> np.float32:
    return F(a[0] * b[0] + a[1] * b[1])


def cross(a: Vector, b: Vector) -> np.float32:
    return F(a[0] * b[1] - a[1] * b[0])


def spun(spin: np.float32, arm: Vector) -> Vector:
    """Velocity of a point of a spinning body."""
    return np.array([-spin * arm[1], spin * arm[0]], F)


def norm(a: Vector) -> np.float32:
    return F(np.sqrt(dot(a, a)))


@lru_cache(64)
def direction(angle: np.float32) -> tuple[np.float32, np.float32]:
    return F(np.cos(angle)), F(np.sin(angle))


def rotate(angle: np.float32, a: Vector) -> Vector:
    c, s = direction(angle)
    return np.array([c * a[0] - s * a[1], s * a[0] + c * a[1]], F)


class Polygon:
    """Corners counter-clockwise around the origin of a body, with the outward normals of edges."""

    def __init__(self, corners: list[tuple[float, float]]) -> None:
        self.corners = [vec(x, y) for x, y in corners]
        self.normals = []
        for a, b in zip(self.corners, self.corners[1:] + self.corners[:1], strict=True):
            edge = b - a
            outward = np.array([edge[1], -edge[0]], F)
            self.normals.append(outward * (F(1) / norm(outward)))

    def edge(self, i: int) -> tuple[Vector, Vector]:
        return self.corners[i], self.corners[(i + 1) % len(self.corners)]


@dataclass(eq=False)
class Body:
    name: str
    shape: Polygon | None
    """None: the puck, a circle."""
    mass: float = 0.0
    """0: a wall, which nothing moves."""
    inertia: float = 0.0
    local_center: Vector = field(default_factory=lambda: vec(0, 0))
    center: Vector = field(default_factory=lambda: vec(0, 0))
    angle: np.float32 = ZERO
    velocity: Vector = field(default_factory=lambda: vec(0, 0))
    spin: np.float32 = ZERO
    force: Vector = field(default_factory=lambda: vec(0, 0))
    torque: np.float32 = ZERO
    damping: np.float32 = ZERO
    spin_damping: np.float32 = ZERO

    @property
    def radius(self) -> np.float32:
        return PUCK_RADIUS if self.shape is None else SKIN

    @property
    def inverse_mass(self) -> np.float32:
        return F(1 / self.mass) if self.mass else F(0)

    @property
    def inverse_inertia(self) -> np.float32:
        return F(1 / self.inertia) if self.mass else F(0)

    @property
    def origin(self) -> Vector:
        return self.center - rotate(self.angle, self.local_center)

    def place(self, origin: Vector, angle: float = 0.0) -> None:
        self.angle = F(angle)
        self.center = np.array(origin, F) + rotate(self.angle, self.local_center)

    def world(self, local: Vector) -> Vector:
        return rotate(self.angle, local) + self.origin

    def local(self, world: Vector) -> Vector:
        return rotate(-self.angle, world - self.origin)

    def corners(self) -> list[Vector]:
        if self.shape is None:
            return [self.center]
        origin = self.origin
        return [rotate(self.angle, corner) + origin for corner in self.shape.corners]


def weight_of(shape: Polygon, density: float) -> tuple[float, float, Vector]:
    """Mass, inertia about the center of mass, and the center of mass of a polygon."""
    area = inertia = 0.0
    middle = np.zeros(2)
    for i in range(len(shape.corners)):
        a, b = (corner.astype(float) for corner in shape.edge(i))
        twice = a[0] * b[1] - a[1] * b[0]
        area += twice / 2
        middle += twice * (a + b) / 6
        inertia += twice * (a @ a + a @ b + b @ b) / 12
    middle /= area
    inertia -= area * float(middle @ middle)
    return density * area, density * inertia, middle.astype(F)


RACKET = [
    (0.1, -0.4),
    (0.1, 0.4),
    (-0.2, 0.4),
    (-0.36, 0.2),
    (-0.42, 0),
    (-0.36, -0.2),
    (-0.2, -0.4),
]
RACKETS = (
    Polygon(RACKET),
    Polygon(
        [(-x, y) for x, y in [RACKET[4], RACKET[3], *RACKET[2:0:-1], RACKET[0], *RACKET[:4:-1]]]
    ),
)


def wall(name: str, origin: tuple[float, float], corners: list[tuple[float, float]]) -> Body:
    """A wall from pixels: 60 are a meter."""
    shape = Polygon([(x / 60, y / 60) for x, y in corners])
    return Body(name, shape, center=vec(5 + origin[0] / 60, 4 + origin[1] / 60))


FLAT = [(250, -10), (250, 10), (-250, 10), (-250, -10)]
GOAL = [(10, -75), (10, 75), (-10, 75), (-10, -75)]
WALLS = {
    body.name: body
    for body in (
        wall("right lower", (245, -210), [(10, -5), (10, 135), (-10, 128), (-10, -5)]),
        wall("right upper", (245, 210), [(10, -135), (10, 5), (-10, 5), (-10, -128)]),
        wall("left lower", (-245, -210), [(10, -5), (10, 128), (-10, 135), (-10, -5)]),
        wall("left upper", (-245, 210), [(10, -128), (10, 5), (-10, 5), (-10, -135)]),
        wall("bottom", (0, -210), FLAT),
        wall("top", (0, 210), FLAT),
        wall("left goal", (-255, 0), GOAL),
        wall("right goal", (255, 0), GOAL),
    )
}
REACHED = {
    "puck": ("right lower", "right upper", "left lower", "left upper", "bottom", "top"),
    "left": ("left goal", "left lower", "left upper", "bottom", "top"),
    "right": ("right goal", "right lower", "right upper", "bottom", "top"),
}
"""The walls that a body can meet, in the order of the solver."""


def mixed(a: Body, b: Body) -> tuple[np.float32, np.float32]:
    """Friction and restitution of a pair."""
    friction = {"puck": 0.1, "left": 1.0, "right": 1.0}
    bounces = 0.95 if "puck" in (a.name, b.name) else 0.0
    return F(np.sqrt(friction.get(a.name, 0.1) * friction.get(b.name, 0.1))), F(bounces)


@dataclass(eq=False)
class Contact:
    """Body `a` is a polygon. The reference face belongs to `owner`, the points to the other one."""

    a: Body
    b: Body
    owner: Body
    normal: Vector
    plane: Vector
    points: list[Vector]

    @property
    def other(self) -> Body:
        return self.b if self.owner is self.a else self.a

    def overlap(self, point: Vector) -> tuple[Vector, Vector, np.float32]:
        """World normal from a to b, world point, distance between the core shapes."""
        normal = rotate(self.owner.angle, self.normal)
        at = self.other.world(point)
        distance = dot(at - self.owner.world(self.plane), normal)
        return (normal if self.owner is self.a else -normal), at, distance


def collide(a: Body, b: Body) -> Contact | None:
    return collide_circle(a, b) if b.shape is None else collide_polygons(a, b)


def collide_circle(a: Body, puck: Body) -> Contact | None:
    """Section 12.1, polygon and circle."""
    assert a.shape is not None
    reach = SKIN + PUCK_RADIUS
    center = a.local(puck.center)
    gaps = [
        dot(normal, center - corner)
        for normal, corner in zip(a.shape.normals, a.shape.corners, strict=True)
    ]
    if max(gaps) > reach:
        return None
    face = int(np.argmax(gaps))
    first, second = a.shape.edge(face)
    if gaps[face] >= EPSILON:
        for corner, end in ((first, second), (second, first)):
            away = center - corner
            if dot(away, end - corner) <= 0:
                if dot(away, away) > reach * reach:
                    return None
                return Contact(a, puck, a, away * (F(1) / norm(away)), corner, [vec(0, 0)])
    return Contact(a, puck, a, a.shape.normals[face], F(0.5) * (first + second), [vec(0, 0)])


def widest_gap(a: Body, b: Body) -> tuple[int, np.float32]:
    """The face of a that keeps b farthest away."""
    assert a.shape is not None
    corners = [a.local(corner) for corner in b.corners()]
    gaps = [
        min(dot(normal, corner - start) for corner in corners)
        for normal, start in zip(a.shape.normals, a.shape.corners, strict=True)
    ]
    return int(np.argmax(gaps)), max(gaps)


def collide_polygons(a: Body, b: Body) -> Contact | None:
    """Section 12.1, two polygons."""
    reach = 2 * SKIN
    face_a, gap_a = widest_gap(a, b)
    face_b, gap_b = widest_gap(b, a)
    if gap_a > reach or gap_b > reach:
        return None
    flip = gap_b > F(0.98) * gap_a + F(0.001)
    owner, other, face = (b, a, face_b) if flip else (a, b, face_a)
    assert owner.shape is not None and other.shape is not None
    normal = rotate(owner.angle, owner.shape.normals[face])
    opposed = [dot(normal, rotate(other.angle, n)) for n in other.shape.normals]
    segment = [other.world(corner) for corner in other.shape.edge(int(np.argmin(opposed)))]
    first, second = owner.shape.edge(face)
    along = np.array([-normal[1], normal[0]], F)
    for line, end in ((-along, first), (along, second)):
        segment = clip(segment, line, reach + dot(line, owner.world(end)))
        if len(segment) < 2:
            return None
    front = dot(normal, owner.world(first))
    points = [other.local(p) for p in segment if dot(normal, p) - front <= reach]
    if not points:
        return None
    return Contact(a, b, owner, owner.shape.normals[face], F(0.5) * (first + second), points)


def clip(segment: list[Vector], normal: Vector, offset: np.float32) -> list[Vector]:
    """The part of a segment behind a line; an end that is kept comes first."""
    beyond = [dot(normal, end) - offset for end in segment]
    kept = [end for end, far in zip(segment, beyond, strict=True) if far <= 0]
    if len(kept) == 1:
        share = beyond[0] / (beyond[0] - beyond[1])
        kept.append(segment[0] + share * (segment[1] - segment[0]))
    return kept


class Point:
    """One contact point while velocities are solved."""

    def __init__(self, contact: Contact, local: Vector) -> None:
        a, b = contact.a, contact.b
        self.a, self.b = a, b
        self.normal, at, distance = contact.overlap(local)
        outward = self.normal if contact.owner is a else -self.normal
        on_owner = at + (contact.owner.radius - distance) * outward
        on_other = at - contact.other.radius * outward
        at = F(0.5) * (on_owner + on_other)
        self.arm_a, self.arm_b = at - a.center, at - b.center
        self.tangent = np.array([self.normal[1], -self.normal[0]], F)
        self.normal_mass = F(1) / self.coupling(self.normal, self)
        self.tangent_mass = F(1) / self.coupling(self.tangent, self)
        approach = dot(self.normal, self.slip())
        self.bias = -mixed(a, b)[1] * approach if approach < -1 else F(0)
        self.pressed, self.rubbed = F(0), F(0)

    def coupling(self, direction: Vector, other: Point) -> np.float32:
        """Speed along the direction here for a unit impulse at the other point."""
        turn_a = cross(self.arm_a, direction) * cross(other.arm_a, direction)
        turn_b = cross(self.arm_b, direction) * cross(other.arm_b, direction)
        return F(
            self.a.inverse_mass
            + self.b.inverse_mass
            + self.a.inverse_inertia * turn_a
            + self.b.inverse_inertia * turn_b
        )

    def slip(self) -> Vector:
        return (
            self.b.velocity
            + spun(self.b.spin, self.arm_b)
            - self.a.velocity
            - spun(self.a.spin, self.arm_a)
        )

    def push(self, impulse: Vector) -> None:
        self.a.velocity = self.a.velocity - self.a.inverse_mass * impulse
        self.a.spin = F(self.a.spin - self.a.inverse_inertia * cross(self.arm_a, impulse))
        self.b.velocity = self.b.velocity + self.b.inverse_mass * impulse
        self.b.spin = F(self.b.spin + self.b.inverse_inertia * cross(self.arm_b, impulse))

    def rub(self, friction: np.float32) -> float:
        wanted = self.rubbed - self.tangent_mass * dot(self.slip(), self.tangent)
        limit = friction * self.pressed
        total = F(min(max(wanted, -limit), limit))
        change, self.rubbed = total - self.rubbed, total
        self.push(change * self.tangent)
        return abs(float(change))

    def press(self, total: np.float32) -> float:
        change, self.pressed = total - self.pressed, total
        self.push(change * self.normal)
        return abs(float(change))

    def solve(self) -> float:
        left = dot(self.slip(), self.normal) - self.bias
        return self.press(F(max(self.pressed - self.normal_mass * left, F(0))))


def solve_pair(one: Point, two: Point) -> float:
    """Two points of a contact at once: the first of the four cases that fits."""
    n = one.normal
    k11, k12, k22 = one.coupling(n, one), one.coupling(n, two), two.coupling(n, two)
    left1 = dot(one.slip(), n) - one.bias - (k11 * one.pressed + k12 * two.pressed)
    left2 = dot(two.slip(), n) - two.bias - (k12 * one.pressed + k22 * two.pressed)
    scale = F(1) / (k11 * k22 - k12 * k12)
    both = (-scale * (k22 * left1 - k12 * left2), -scale * (k11 * left2 - k12 * left1))
    first = -left1 / k11
    second = -left2 / k22
    if both[0] >= 0 and both[1] >= 0:
        new = both
    elif first >= 0 and k12 * first + left2 >= 0:
        new = (first, F(0))
    elif second >= 0 and k12 * second + left1 >= 0:
        new = (F(0), second)
    elif left1 >= 0 and left2 >= 0:
        new = (F(0), F(0))
    else:
        return 0.0
    return max(one.press(F(new[0])), two.press(F(new[1])))


def solve_velocities(contacts: list[Contact], passes: int) -> None:
    """Section 12.3."""
    solved = []
    for contact in contacts:
        points = [Point(contact, local) for local in contact.points]
        if len(points) == 2:
            n = points[0].normal
            k11, k12 = points[0].coupling(n, points[0]), points[0].coupling(n, points[1])
            k22 = points[1].coupling(n, points[1])
            if k11 * k11 >= 1000 * (k11 * k22 - k12 * k12):
                points = points[:1]
        solved.append((points, mixed(contact.a, contact.b)[0]))
    for _ in range(passes):
        change = 0.0
        for points, friction in solved:
            for point in points:
                change = max(change, point.rub(friction))
            change = max(change, points[0].solve() if len(points) == 1 else solve_pair(*points))
        if change < 1e-5:
            return


def move(body: Body, seconds: np.float32) -> None:
    """Section 12.4."""
    way = norm(seconds * body.velocity)
    if way > 2:
        body.velocity = F(2) / way * body.velocity
    turn = abs(seconds * body.spin)
    if turn > np.pi / 2:
        body.spin = F(body.spin * (F(np.pi / 2) / turn))
    body.center = body.center + seconds * body.velocity
    body.angle = F(body.angle + seconds * body.spin)


def solve_positions(contacts: list[Contact], passes: int, share: float, allowed: float) -> None:
    """Section 12.5, and with other numbers 12.6."""
    for _ in range(passes):
        worst = F(0)
        for contact in contacts:
            a, b = contact.a, contact.b
            for local in contact.points:
                normal, at, distance = contact.overlap(local)
                gap = distance - a.radius - b.radius
                worst = min(worst, gap)
                correction = min(max(F(share) * (gap + SLOP), F(-0.2)), F(0))
                arm_a, arm_b = at - a.center, at - b.center
                turn_a, turn_b = cross(arm_a, normal), cross(arm_b, normal)
                resists = (
                    a.inverse_mass
                    + b.inverse_mass
                    + a.inverse_inertia * turn_a * turn_a
                    + b.inverse_inertia * turn_b * turn_b
                )
                impulse = (-correction / resists) * normal
                a.center = a.center - a.inverse_mass * impulse
                a.angle = F(a.angle - a.inverse_inertia * cross(arm_a, impulse))
                b.center = b.center + b.inverse_mass * impulse
                b.angle = F(b.angle + b.inverse_inertia * cross(arm_b, impulse))
        if worst >= -F(allowed):
            return
