"""Differential test of a port: a Python environment and a native game, side by side."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from sparring import trusted
from sparring.errors import ConfigError, suggestion
from sparring.factories import load_factory
from sparring.games.rules import Rules
from sparring.games.state import State, new_state
from sparring.pools.custom.make import make_env
from sparring.proof.contract.drivers import EnvRaisedError
from sparring.proof.contract.playing import TimeBudget, driver_of, seed_globals
from sparring.proof.port_env import EnvSide
from sparring.proof.random_games import random_action

CLOSE = 1e-5
"""Tolerance of rewards, scores and observations: one side may compute in float64."""
AFTER_THE_END = "after the end"

Mismatch = tuple[str, Any, Any]
"""What is compared, its value in the native game, and in the env."""


@dataclass(frozen=True)
class PortDifference:
    """The first difference in a game, with all actions before it."""

    seed: int
    step: int
    """Decisions before it; 0 is the start."""
    what: str
    native: str
    env: str
    actions: tuple[str, ...]
    """Names in the native game."""
    numbers: tuple[Any, ...]
    """The same actions as numbers of the native game."""
    native_before: str
    native_after: str
    env_after: str
    env_before: str = ""
    native_legal: list[int] = field(default_factory=list)
    env_legal: list[int] | None = None
    native_rewards: list[float] = field(default_factory=list)
    env_rewards: dict[int, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"seed {self.seed}, step {self.step}: {self.what}: {self.native} and {self.env}"


@dataclass
class PortReport:
    """Result of `port`."""

    env: str
    game: str
    games: int = 0
    decisions: int = 0
    compared: dict[str, int] = field(default_factory=dict)
    """Number of comparisons of each kind."""
    difference: PortDifference | None = None

    @property
    def passed(self) -> bool:
        return self.difference is None

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}


def port(
    factory: str | Callable[..., Any],
    rules: Rules,
    *,
    games: int = 200,
    seconds: float = 30.0,
    seed: int = 0,
    same_seed: bool = False,
    load: str = "start",
    ignore: Sequence[str] = (),
    tries: int = 200,
) -> PortReport:
    """Play random games side by side until something differs.

    same_seed: both draw the same chance from the same seed, so that no `load` is needed.
    load: when to call the env's method `load`: "start", or "step".
    ignore: names of COMPARISONS to leave out.
    tries: games that search for a shorter difference, once there is one.
    """
    for word in ignore:
        if word not in COMPARISONS:
            raise ConfigError(f"ignore {word!r} is not a comparison{suggestion(word, COMPARISONS)}")
    if isinstance(factory, str):
        trusted.allow(factory)
    function = load_factory(factory, "env") if isinstance(factory, str) else factory
    word = factory if isinstance(factory, str) else getattr(function, "__name__", "the factory")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        what = f"env {word!r}"
        env = EnvSide(driver_of(make_env(function, what), what), rules, what)
        check_common_chance(env, same_seed=same_seed, load=load)
        compared = [one for one in COMPARISONS if one not in ignore]
        pair = SideBySide(env, load=load, compared=compared, budget=TimeBudget(seconds))
        try:
            return pair.run(PortReport(word, rules.name), games, seed, tries)
        finally:
            env.driver.close_quietly()


def check_common_chance(env: EnvSide, *, same_seed: bool, load: str) -> None:
    """Refuse a game with chance if the env cannot follow the native game's draws."""
    if load == "step" and not env.hook("load"):
        raise ConfigError(f"load 'step': {env.what} has no method load(state)")
    if env.rules.chance and not same_seed and not env.hook("load"):
        raise ConfigError(
            f"{env.rules.name} has chance, and {env.what} has no method load(state) that sets it "
            "to a native position: the two would draw differently. Write one, or use "
            "--same-seed if both draw the same from a seed"
        )


class SideBySide:
    """An env and a native game, played with the same actions."""

    def __init__(
        self, env: EnvSide, *, load: str, compared: Sequence[str], budget: TimeBudget
    ) -> None:
        self.env, self.rules, self.compared, self.budget = env, env.rules, compared, budget
        self.late = 1.0
        """Share of the time after which no step is played."""
        self.loads_at_start = env.hook("load") is not None
        self.loads_at_steps = load == "step"
        self.counts = dict.fromkeys(compared, 0)

    def run(self, report: PortReport, games: int, seed: int, tries: int) -> PortReport:
        """Play until something differs, then search for a shorter difference."""
        for number in range(games):
            if self.budget.used() > self.late:
                break
            found, decisions = self.play(seed + number)
            report.games, report.decisions = number + 1, report.decisions + decisions
            report.compared = dict(self.counts)
            if found:
                self.late = self.budget.used() + 0.5
                found = self.shorten(found, seed + number + 1, tries)
                report.difference = self.with_text_before(found)
                break
        return report

    def shorten(self, found: PortDifference, seed: int, tries: int) -> PortDifference:
        """Play other games, each shorter than the best difference so far."""
        for number in range(tries):
            if found.step <= 1 or self.budget.used() > self.late:
                break
            other, _ = self.play(seed + number, most=found.step - 1)
            found = other or found
        return found

    def with_text_before(self, found: PortDifference) -> PortDifference:
        """Replay up to the last action to add the env's position, which is not stored before."""
        if not found.step:
            return found
        self.late = math.inf
        self.play(found.seed, most=found.step - 1)
        return replace(found, env_before=text_of(self.env))

    def play(self, seed: int, most: int | None = None) -> tuple[PortDifference | None, int]:
        """Play one game of at most `most` decisions; return its difference, and its length."""
        rng, env = np.random.default_rng([seed, 13]), self.env
        state = new_state(self.rules, seed=seed)
        seed_globals(seed % 2**32)
        played: list[Any] = []
        before, mover = state.clone(), -1
        try:
            env.start(seed, state, load=self.loads_at_start)
            while True:
                wrong = next(self.mismatches(state, mover), None)
                if wrong:
                    break
                if state.over or len(played) == most or self.budget.used() > self.late:
                    return None, len(played)
                if self.loads_at_steps:
                    env.load(state)
                before, mover = state.clone(), state.seat
                action = random_action(state, rng)
                played.append(action)
                state.apply(action)
                env.step(before, action, state)
        except EnvRaisedError as raised:
            wrong = ("the env's answer", "the action is legal", str(raised))
        return self.make_difference(seed, wrong, played, before=before, state=state), len(played)

    def mismatches(self, state: State, mover: int) -> Iterator[Mismatch]:
        """Yield differences after a step, or at the start (mover -1)."""
        for name in self.compared:
            for what, native, env in COMPARISONS[name](self.env, state, mover):
                self.counts[name] += 1
                if not alike(native, env):
                    yield what, native, env

    def make_difference(
        self,
        seed: int,
        wrong: Mismatch,
        played: Sequence[Any],
        *,
        before: State,
        state: State,
    ) -> PortDifference:
        env = self.env
        mover = max(before.seat, 0)
        legal = None if state.over else env.legal(state.seat)
        return PortDifference(
            seed=seed,
            step=len(played),
            what=wrong[0],
            native=str(wrong[1]),
            env=str(wrong[2]),
            actions=tuple(self._name(action) for action in played),
            numbers=tuple(np.asarray(action).tolist() for action in played),
            native_before=str(before) if played else "",
            native_after=str(state),
            env_after=text_of(env),
            native_legal=[] if self.rules.box else list(state.legal()),
            env_legal=legal,
            native_rewards=[float(one) for one in state.rewards],
            env_rewards=env.rewards(mover) if played and env.result.reward else {},
        )

    def _name(self, action: Any) -> str:
        if self.rules.box:
            return str(np.asarray(action).tolist())
        each = np.atleast_1d(action)
        return " and ".join(self.rules.action_name(int(one)) for one in each)


def text_of(env: EnvSide) -> str:
    """The env's position as text, or its error."""
    try:
        return env.text()
    except EnvRaisedError as raised:
        return str(raised)


def alike(native: Any, env: Any) -> bool:
    if isinstance(native, float):
        return math.isclose(native, env, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(native, np.ndarray):
        if native.shape != env.shape:
            return False
        return np.array_equal(native, env) or np.allclose(native, env, rtol=CLOSE, atol=CLOSE)
    return bool(native == env)


def compare_seat(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    if not env.alone and not state.over:
        yield "who is to move", sorted(state.seats_to_act), env.seats_to_act()


def compare_mask(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    if env.rules.box or state.over or env.result.over:
        return
    for row in range(env.rules.rows):
        seat = state.native.seat(row)
        legal = env.legal(seat) if seat >= 0 else None
        if legal is not None:
            yield f"legal actions of seat {seat}", list(state.legal(row)), legal


def compare_reward(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    if env.result.reward:
        for seat, paid in env.rewards(mover).items():
            yield f"reward of seat {seat}", float(state.rewards[seat]), paid


def compare_end(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    terminated, truncated = env.ended()
    yield "terminated", state.terminated, terminated
    yield "truncated", state.truncated, truncated and not terminated


def compare_score(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    scores = env.scores() if state.over else None
    if scores is not None:
        yield "scores", np.array(state.scores), np.array(scores)


def compare_obs(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    """Observations of the seats to move; the first feature that differs is named."""
    for seat in [] if state.over or env.result.over else state.seats_to_act:
        observed = env.observation(seat)
        if observed is None:
            continue
        native = state.observe(seat)
        if observed.shape == native.shape and not alike(native, observed):
            differs = ~np.isclose(native, observed, rtol=CLOSE, atol=CLOSE)
            index = int(np.flatnonzero(differs)[0])
            what = f"observation of seat {seat}, {state.rules.features[index].name}"
            yield what, float(native[index]), float(observed[index])
        else:
            yield f"observation of seat {seat}", native, observed


def compare_final_mask(env: EnvSide, state: State, mover: int) -> Iterator[Mismatch]:
    """No action is legal after the end."""
    if state.over:
        for seat, legal in env.last_legal().items():
            yield f"legal actions of seat {seat} {AFTER_THE_END}", [], legal


COMPARISONS: Mapping[str, Callable[[EnvSide, State, int], Iterator[Mismatch]]] = {
    "end": compare_end,
    "reward": compare_reward,
    "seat": compare_seat,
    "mask": compare_mask,
    "obs": compare_obs,
    "score": compare_score,
    "final-mask": compare_final_mask,
}
"""Comparisons in this order; `ignore` leaves some of them out."""
