"""Laser hockey in plain Python, from the specification: slow, obvious, the judge of the native one.

`Match` keeps positions in the original's coordinates; `observe` counts from the center of the rink.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reference.laser_hockey import bodies as physics
from reference.laser_hockey.bodies import CENTER, PUCK_RADIUS, RACKETS, SKIN, WALLS, F, H, vec
from reference.laser_hockey.step import advance, find_contacts
from reference.philox import Philox

TIME_LIMIT = {"NORMAL": 250, "TRAIN_SHOOTING": 80, "TRAIN_DEFENSE": 80}
MODES = tuple(TIME_LIMIT)
RACKET_MASS, RACKET_INERTIA, RACKET_CENTER = physics.weight_of(RACKETS[0], 200 / 1.2)
PUCK_MASS = 7 * np.pi * (13 / 60) ** 2
SIDES = (F(1), F(-1))


@dataclass
class Flags:
    mode: str = "NORMAL"
    mixture: tuple[float, ...] = (1, 1, 1)
    keep_mode: int = 1
    profile: str = "EXACT"
    serve: str = "DRAWN"
    clear_keep_on_reset: int = 1
    safe_spawn: int = 1
    timeout_as_terminated: int = 0


@dataclass
class Outcome:
    """What a step gives to (left, right)."""

    parts: dict[str, tuple[float, float]] = field(default_factory=dict)
    terminated: bool = False
    truncated: bool = False


def new_racket(name: str) -> physics.Body:
    seat = 0 if name == "left" else 1
    center = vec(SIDES[seat] * RACKET_CENTER[0], 0)
    return physics.Body(name, RACKETS[seat], RACKET_MASS, RACKET_INERTIA, center)


def touches_goal(puck: physics.Body, goal: str) -> bool:
    corners = np.array(WALLS[goal].corners())
    nearest = np.clip(puck.center, corners.min(axis=0), corners.max(axis=0))
    return bool(physics.norm(puck.center - nearest) <= PUCK_RADIUS + SKIN)


class Match:
    def __init__(self, flags: Flags, chance: Philox) -> None:
        self.flags, self.chance = flags, chance
        self.keep, self.server, self.phase = [0, 0], 0, [F(0), F(0)]
        self.reset()

    def uniform(self, low: float, high: float) -> np.float32:
        unit = F((self.chance.u32() >> 8) / 2**24)
        return F(F(low) + (F(high) - F(low)) * unit)

    def reset(self) -> None:
        """Section 7."""
        flags = self.flags
        self.left, self.right = new_racket("left"), new_racket("right")
        inertia = PUCK_MASS * (13 / 60) ** 2 / 2
        self.puck = physics.Body("puck", None, PUCK_MASS, inertia)
        self.kick, self.touching = vec(0, 0), set[str]()
        self.time = self.winner = 0
        if flags.clear_keep_on_reset:
            self.keep = [0, 0]
        self.mode = self.draw_mode()
        if self.mode == "NORMAL":
            if flags.serve == "DRAWN":
                self.server = self.chance.below(2)
            else:
                self.server = {"ALTERNATING": 1 - self.server, "LEFT": 0, "RIGHT": 1}[flags.serve]
        self.left.place(CENTER + vec(-3, 0))
        spawn = vec(3, 0)
        if self.mode != "NORMAL":
            x, y = F(3) + self.uniform(-10 / 3, 10 / 6), self.uniform(-2, 2)
            spawn = vec(min(x, F(3.4)) if flags.safe_spawn else x, y)
        self.right.place(CENTER + spawn)
        if self.mode == "TRAIN_DEFENSE":
            at = vec(self.uniform(0, 10 / 3), F(0.8) * self.uniform(-4, 4))
            way = vec(-5, F(0.6) * self.uniform(-1.25, 1.25)) - at
            self.kick = F(60) / physics.norm(way) * way
        else:
            at = vec(self.uniform(1, 2), self.uniform(-1, 1))
            if self.mode == "TRAIN_SHOOTING" or self.server == 0:
                at[0] = -at[0]
        self.puck.center = CENTER + at
        self.phase = [p if p else self.uniform(0, np.pi) for p in self.phase]

    def draw_mode(self) -> str:
        if self.flags.mode != "MIXTURE":
            return self.flags.mode
        weights = [F(weight) for weight in self.flags.mixture]
        at = self.uniform(0, 1) * sum(weights, F(0))
        for mode, weight in zip(MODES, weights, strict=True):
            if at < weight:
                return mode
            at = at - weight
        return MODES[-1]

    @property
    def rackets(self) -> tuple[physics.Body, physics.Body]:
        return self.left, self.right

    def step(self, actions: np.ndarray) -> Outcome:
        """Section 4. Actions are [2, 4]."""
        given = np.clip(np.asarray(actions, F), -1, 1)
        for seat, racket in enumerate(self.rackets):
            self.push(seat, racket, given[seat])
            self.turn(racket, given[seat, 2])
        self.puck.damping = F(10) if physics.norm(self.puck.velocity) > 25 else F(0.05)
        self.puck.force = F(PUCK_MASS) / H * self.kick
        self.kick = vec(0, 0)
        if self.flags.keep_mode:
            for seat in (0, 1):
                self.hold(seat, given[seat, 3])
        contacts = find_contacts(self.left, self.right, self.puck)
        self.notice(contacts)
        advance([self.left, self.right, self.puck], contacts, self.flags.profile)
        self.phase = [F(p + self.uniform(0, 0.2)) for p in self.phase]
        self.phase = [F(p - 2 * F(np.pi)) if p > F(np.pi) else p for p in self.phase]
        outcome = self.rewards()
        late = self.time >= TIME_LIMIT[self.mode]
        self.time += 1
        outcome.terminated = self.winner != 0 or (late and bool(self.flags.timeout_as_terminated))
        outcome.truncated = late and not outcome.terminated
        return outcome

    def push(self, seat: int, racket: physics.Body, action: np.ndarray) -> None:
        """Section 5.1."""
        side, x = SIDES[seat], racket.origin[0] - CENTER[0]
        force = side * F(6000) * action[:2]
        m_h = F(RACKET_MASS) / H
        if side * x > -0.5:
            vx = racket.velocity[0]
            force[0] = -2 * vx * m_h if side * vx > 0 else F(0)
            force[0] -= side * x * vx * m_h
            racket.damping = F(20)
            racket.force = self.bounded(seat, racket, force)
            return
        speed = physics.norm(racket.velocity)
        if speed < 10:
            racket.damping = F(5)
            racket.force = self.bounded(seat, racket, force)
            return
        racket.damping = F(20)
        slower = physics.norm(racket.velocity + F(1) / m_h * force) < speed
        racket.force = self.bounded(seat, racket, force) if slower else vec(0, 0)

    def bounded(self, seat: int, racket: physics.Body, force: np.ndarray) -> np.ndarray:
        """Section 5.1 c: no force beyond the limits, and no speed along that axis."""
        side = SIDES[seat]
        x, y = racket.origin - CENTER
        ahead, push = side * x, side * force[0]
        velocity, force = racket.velocity.copy(), force.copy()
        if (ahead < -3.5 and push < 0) or (ahead > 0 and push > 0):
            velocity[0] = force[0] = 0
        if (y > F(2.8) and force[1] > 0) or (y < F(-2.8) and force[1] < 0):
            velocity[1] = force[1] = 0
        racket.velocity = velocity
        return force

    def turn(self, racket: physics.Body, action: np.float32) -> None:
        """Section 5.2."""
        back = F(0.1) * F(RACKET_MASS) / H
        if abs(racket.angle) <= F(np.pi / 3):
            racket.torque, racket.spin_damping = F(400) * action, F(2)
            return
        racket.torque, racket.spin_damping = -back * racket.angle, F(10)
        if racket.angle * racket.spin > 0:
            racket.torque -= back * racket.spin

    def hold(self, seat: int, shoot: np.float32) -> None:
        """Section 6.3."""
        if self.keep[seat] <= 1:
            return
        racket = self.rackets[seat]
        self.puck.center, self.puck.velocity = racket.origin, racket.velocity.copy()
        self.keep[seat] -= 1
        if self.keep[seat] == 1 or shoot > 0.5:
            self.keep[seat] = 0
            front = physics.rotate(racket.angle, vec(SIDES[seat], 0))
            self.puck.force = self.puck.force + F(60) * (F(PUCK_MASS) / H) * front

    def notice(self, contacts: list[physics.Contact]) -> None:
        """Section 6.2 and the goals: what begins at this contact update."""
        touching = {contact.a.name for contact in contacts if contact.b is self.puck}
        touching = {name for name in touching if name in ("left", "right")}
        touching |= {goal for goal in ("left goal", "right goal") if touches_goal(self.puck, goal)}
        begun, self.touching = touching - self.touching, touching
        for seat, name in enumerate(("left", "right")):
            slow = SIDES[seat] * self.puck.velocity[0] < F(0.1)
            if self.flags.keep_mode and name in begun and slow and self.keep[seat] == 0:
                self.keep[seat] = 15
        if "right goal" in begun:
            self.winner = 1
        if "left goal" in begun:
            self.winner = -1

    def rewards(self) -> Outcome:
        """Section 10."""
        limit = TIME_LIMIT[self.mode]
        per_meter = -30 / ((250 / 60) * limit / 2)
        puck, vx = self.puck.center - CENTER, self.puck.velocity[0]
        closeness, touch, direction, goal = [], [], [], []
        for seat, racket in enumerate(self.rackets):
            side = SIDES[seat]
            threatens = side * puck[0] < 0 and side * vx <= 0
            distance = physics.norm(racket.origin - CENTER - puck)
            closeness.append(per_meter * float(distance) if threatens else 0.0)
            touch.append(float(self.keep[seat] == 15))
            direction.append(float(side * vx) / (25 * limit))
            goal.append(float(side * self.winner))
        named = {"goal": goal, "closeness": closeness, "touch": touch, "direction": direction}
        return Outcome({name: (pair[0], pair[1]) for name, pair in named.items()})

    def observe(self, seat: int) -> np.ndarray:
        """Section 8."""
        side = SIDES[seat]
        numbers: list[np.float32] = []
        for racket in (self.rackets[seat], self.rackets[1 - seat]):
            numbers += [*(side * (racket.origin - CENTER)), racket.angle]
            numbers += [*(side * racket.velocity), racket.spin]
        numbers += [*(side * (self.puck.center - CENTER)), *(side * self.puck.velocity)]
        if self.flags.keep_mode:
            numbers += [F(self.keep[seat]), F(self.keep[1 - seat])]
        return np.array(numbers, F)


def scripted(obs: np.ndarray, phase: float, *, weak: bool) -> np.ndarray:
    """Section 11.1. The phase is the one inside the sine."""
    kp, kd = (0.5 if weak else 10.0), 0.5
    own, velocity = np.array(obs[0:3], float), np.array(obs[3:6], float)
    puck, puck_velocity = np.array(obs[12:14], float), np.array(obs[14:16], float)
    target = np.array([-3.5, 0.0, np.pi / 3 * np.sin(phase)])
    if puck_velocity[0] < 0.5:
        distance = np.hypot(*(own[:2] - puck))
        if own[0] < puck[0] and abs(own[1] - puck[1]) < 0.5:
            target[:2] = puck[0] + 0.2, puck[1] + 0.1 * puck_velocity[1] * distance
        else:
            target[1] = puck[1]
    error = target - own
    with np.errstate(all="ignore"):
        brake = np.abs(error / (velocity + 0.01)) < [0.1, 0.1, 1.0]
    action = np.clip(error * [kp, kp / 5, kp / 2] - brake * kd * velocity, -1, 1)
    shoot = float(len(obs) > 16 and 0 < obs[16] < 7)
    return np.array([*action, shoot])
