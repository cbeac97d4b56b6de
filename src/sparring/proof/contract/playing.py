"""Episodes by random legal actions: they can be played again and held against each other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparring.pools.custom.make import AEC, PARALLEL, SINGLE, VECTOR, kind_of
from sparring.proof.contract.drivers import Actions, Driver, EnvRaisedError, Moment
from sparring.proof.contract.findings import Place
from sparring.proof.contract.gym import SoloDriver, VectorDriver
from sparring.proof.contract.tables import ParallelDriver, TurnDriver
from sparring.proof.contract.values import Fact, draw_action

SAME_GLOBALS, OTHER_GLOBALS = 1, 2
"""Seeds of Python's and NumPy's global random numbers, which an env should not use."""

FEWEST = 5
"""Steps of an episode that are played however long they take: without any, nothing is shown."""

Facts = dict[str, Fact]
See = Callable[[Driver, Moment, int], None]
"""Called with every answer of an env and its step; the reset is step 0."""


DRIVERS: dict[str, type[Driver]] = {
    SINGLE: SoloDriver,
    VECTOR: VectorDriver,
    AEC: TurnDriver,
    PARALLEL: ParallelDriver,
}


def driver_of(env: Any, what: str) -> Driver:
    """Return the driver for an env of any kind that is known."""
    return DRIVERS[kind_of(env, what)](env)


class StuckError(Exception):
    """An episode cannot go on, for a reason that has been noted."""


@dataclass
class Script:
    """An episode: its seed, what was done, and what came of it."""

    seed: int
    actions: list[Actions] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    """One more than actions; the first are of the reset."""
    masks: list[dict[Any, Any]] = field(default_factory=list)
    over: bool = False


class Clock:
    """The time that a check may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.monotonic()

    def used(self) -> float:
        """Return the part of the time that has gone by."""
        return (time.monotonic() - self.began) / self.seconds


def seed_globals(seed: int) -> None:
    """Seed the random numbers that all code of a process shares."""
    random.seed(seed)
    np.random.seed(seed)


def play(
    driver: Driver,
    seed: int,
    *,
    steps: int,
    see: See | None = None,
    until: Callable[[], bool] = lambda: False,
    keep: bool = True,
) -> Script:
    """Play an episode at random, of at most so many steps; what is drawn depends on the seed.

    keep: write down what comes, so that it can be played again.
    """
    rng = np.random.default_rng([seed, 77])
    script = Script(seed)
    seed_globals(SAME_GLOBALS)
    moment = driver.reset(seed)
    if keep:
        note(script, moment)
    if see:
        see(driver, moment, 0)
    while not moment.over and len(script.actions) < steps:
        if len(script.actions) >= FEWEST and until():
            break
        actions = draw(driver, moment, rng)
        script.actions.append(actions)
        moment = driver.step(actions)
        if keep:
            note(script, moment)
        if see:
            see(driver, moment, len(script.actions))
    script.over = moment.over
    return script


def draw(driver: Driver, moment: Moment, rng: np.random.Generator) -> Actions:
    """Draw a legal action for everyone who is asked."""
    return {
        who: draw_action(driver.own_action_space(who), moment.mask.get(who), rng)
        for who in moment.asked
    }


def note(script: Script, moment: Moment) -> None:
    """Write down an answer."""
    script.facts.append(moment.facts())
    script.masks.append({who: np.array(mask) for who, mask in moment.mask.items()})


@dataclass(frozen=True)
class Difference:
    """Where two plays of the same episode part."""

    seed: int
    step: int
    what: str
    before: str
    now: str

    @property
    def place(self) -> Place:
        """Where that is."""
        return Place(self.seed, None, self.step)

    def __str__(self) -> str:
        return f"{self.what} was {self.before}, now it is {self.now}"


def difference(script: Script, step: int, facts: Facts) -> Difference | None:
    """Hold an answer against that of the first play."""
    known = script.facts[step]
    for what in (*known, *(extra for extra in facts if extra not in known)):
        before, now = known.get(what), facts.get(what)
        if before is None or now is None or before.digest != now.digest:
            nothing = "missing"
            first, second = (one.text if one else nothing for one in (before, now))
            return Difference(script.seed, step, what, first, second)
    return None


class Replay:
    """An episode that is played again, a step at a time."""

    def __init__(
        self, driver: Driver, script: Script, *, seed: int | None = None, shared: int = SAME_GLOBALS
    ) -> None:
        """Begin it; `seed`: another one than it had, `shared`: that of the global numbers."""
        self.driver, self.script, self.step = driver, script, 0
        self.found: Difference | None = None
        seed_globals(shared)
        self._answer(lambda: driver.reset(script.seed if seed is None else seed))

    @property
    def done(self) -> bool:
        """Whether all was played, or a difference was found."""
        return self.found is not None or self.step >= len(self.script.actions)

    def next(self) -> None:
        """Play the next step."""
        actions = self.script.actions[self.step]
        self.step += 1
        self._answer(lambda: self.driver.step(actions))

    def _answer(self, call: Callable[[], Moment]) -> None:
        try:
            self.found = difference(self.script, self.step, call().facts())
        except EnvRaisedError as raised:
            what, told = "the answer", "as in the other play"
            self.found = Difference(self.script.seed, self.step, what, told, str(raised))

    def rest(self) -> Difference | None:
        """Play to the end."""
        while not self.done:
            self.next()
        return self.found
