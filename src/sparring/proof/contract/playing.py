"""Random episodes that can be replayed and compared."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparring.pools.custom.make import AEC, PARALLEL, SINGLE, VECTOR, kind_of
from sparring.proof.contract.drivers import Actions, Driver, EnvRaisedError, StepResult
from sparring.proof.contract.findings import Location
from sparring.proof.contract.gym import SoloDriver, VectorDriver
from sparring.proof.contract.tables import ParallelDriver, TurnDriver
from sparring.proof.contract.values import Fact, draw_action

SAME_GLOBALS, OTHER_GLOBALS = 1, 2
"""Seeds of Python's and NumPy's global random numbers, which an env should not use."""

MIN_STEPS = 5
"""Steps of an episode that are played however long they take: without any, nothing is checked."""

Facts = dict[str, Fact]
See = Callable[[Driver, StepResult, int], None]
"""Called with every result of an env and its step; the reset is step 0."""


DRIVERS: dict[str, type[Driver]] = {
    SINGLE: SoloDriver,
    VECTOR: VectorDriver,
    AEC: TurnDriver,
    PARALLEL: ParallelDriver,
}


def driver_of(env: Any, what: str) -> Driver:
    """Return the driver for an env."""
    return DRIVERS[kind_of(env, what)](env)


class EpisodeStuckError(Exception):
    """An episode cannot continue, for a fault that has been recorded."""


@dataclass
class Script:
    """A recorded episode: its seed, actions and results."""

    seed: int
    actions: list[Actions] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    """One more than actions; the first is that of the reset."""
    masks: list[dict[Any, Any]] = field(default_factory=list)
    over: bool = False


class TimeBudget:
    """Time budget of a check."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.monotonic()

    def used(self) -> float:
        """Return the share of the time that has passed."""
        return (time.monotonic() - self.began) / self.seconds


def seed_globals(seed: int) -> None:
    """Seed the global random numbers of Python and NumPy."""
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
    """Play a random episode of at most `steps` steps; actions depend on the seed.

    keep: record the results, so that it can be replayed.
    """
    rng = np.random.default_rng([seed, 77])
    script = Script(seed)
    seed_globals(SAME_GLOBALS)
    result = driver.reset(seed)
    if keep:
        note(script, result)
    if see:
        see(driver, result, 0)
    while not result.over and len(script.actions) < steps:
        if len(script.actions) >= MIN_STEPS and until():
            break
        actions = draw(driver, result, rng)
        script.actions.append(actions)
        result = driver.step(actions)
        if keep:
            note(script, result)
        if see:
            see(driver, result, len(script.actions))
    script.over = result.over
    return script


def draw(driver: Driver, result: StepResult, rng: np.random.Generator) -> Actions:
    """Draw a legal action for every agent that decides."""
    return {
        who: draw_action(driver.private_action_space(who), result.mask.get(who), rng)
        for who in result.deciding
    }


def note(script: Script, result: StepResult) -> None:
    script.facts.append(result.facts())
    script.masks.append({who: np.array(mask) for who, mask in result.mask.items()})


@dataclass(frozen=True)
class Difference:
    """The first difference between two plays of the same episode."""

    seed: int
    step: int
    what: str
    before: str
    now: str

    @property
    def location(self) -> Location:
        return Location(self.seed, None, self.step)

    def __str__(self) -> str:
        return f"{self.what} was {self.before}, now it is {self.now}"


def difference(script: Script, step: int, facts: Facts) -> Difference | None:
    """Compare a result with that of the first play."""
    known = script.facts[step]
    for what in (*known, *(extra for extra in facts if extra not in known)):
        before, now = known.get(what), facts.get(what)
        if before is None or now is None or before.digest != now.digest:
            nothing = "missing"
            first, second = (one.text if one else nothing for one in (before, now))
            return Difference(script.seed, step, what, first, second)
    return None


class EpisodeReplay:
    """An episode that is played again, step by step."""

    def __init__(
        self, driver: Driver, script: Script, *, seed: int | None = None, shared: int = SAME_GLOBALS
    ) -> None:
        """Start it. seed: another one than the script's. shared: seed of global random numbers."""
        self.driver, self.script, self.step = driver, script, 0
        self.found: Difference | None = None
        seed_globals(shared)
        self._answer(lambda: driver.reset(script.seed if seed is None else seed))

    @property
    def done(self) -> bool:
        """Whether all steps were played, or a difference was found."""
        return self.found is not None or self.step >= len(self.script.actions)

    def next(self) -> None:
        """Play the next step."""
        actions = self.script.actions[self.step]
        self.step += 1
        self._answer(lambda: self.driver.step(actions))

    def _answer(self, call: Callable[[], StepResult]) -> None:
        try:
            self.found = difference(self.script, self.step, call().facts())
        except EnvRaisedError as raised:
            what, before = "the answer", "as in the other play"
            self.found = Difference(self.script.seed, self.step, what, before, str(raised))

    def rest(self) -> Difference | None:
        """Play to the end."""
        while not self.done:
            self.next()
        return self.found
