"""Checks an environment by random legal actions against the contract of its kind."""

from __future__ import annotations

import gc
import mmap
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparring import trusted
from sparring.errors import ConfigError
from sparring.factories import factory_name, load_factory
from sparring.pools.custom.encoding import ActionNamesError, encoding_of
from sparring.pools.custom.make import make_env
from sparring.pools.custom.seats import read_agents
from sparring.pools.workers.auto import duration
from sparring.proof.contract import ends, replays
from sparring.proof.contract.drivers import Driver, EnvRaisedError
from sparring.proof.contract.findings import EnvReport, FindingLog
from sparring.proof.contract.playing import (
    EpisodeStuckError,
    Script,
    TimeBudget,
    driver_of,
    play,
    seed_globals,
)
from sparring.proof.contract.tables import TableDriver
from sparring.proof.contract.watching import StepWatcher

REFERENCES = 4
"""Episodes that are replayed in all ways, each first played in a new object."""
MAX_REPLAY_STEPS = 2000
"""Longest episode that is replayed."""
FOR_REFERENCES, FOR_PLAYING = 0.1, 0.5
"""Shares of the time for the episodes that are replayed, and for all first plays."""
MIN_FOR_MEMORY = 6


def check_env(
    factory: str | Callable[..., Any],
    *,
    games: int = 20,
    seconds: float = 30.0,
    steps: int = 10_000,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> EnvReport:
    """Play an environment and report which properties hold.

    factory: makes a gymnasium.Env, a VectorEnv, a PettingZoo AECEnv or ParallelEnv; or its name.
    games: random episodes, each with its own seed.
    seconds: approximate time limit; slow envs play fewer and shorter episodes.
    steps: an episode that lasts longer is reported as endless.
    settings: keyword arguments of the factory.
    """
    if isinstance(factory, str):
        trusted.allow(factory)
    function = load_factory(factory, "game") if isinstance(factory, str) else factory
    word = factory if isinstance(factory, str) else factory_name(function)
    check = Check(function, word, dict(settings or {}), TimeBudget(seconds), games, steps, seed)
    before = random.getstate(), np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return check.run(progress or (lambda _: None))
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


@dataclass
class Check:
    """The check of one factory."""

    function: Callable[..., Any]
    word: str
    settings: dict[str, Any]
    budget: TimeBudget
    games: int
    steps: int
    seed: int
    step_s: list[float] = field(default_factory=list)
    endless: list[int] = field(default_factory=list)
    """Seeds of episodes that did not end."""
    cut: int = 0
    """Episodes that were stopped by the time limit."""
    sizes: list[int] = field(default_factory=list)
    """Memory of this process after each episode, in bytes."""

    def __post_init__(self) -> None:
        self.what = self.word or getattr(self.function, "__name__", "the factory")
        self.log = FindingLog()
        self.watch = StepWatcher(self.log)

    def make(self) -> Driver:
        env = make_env(lambda: self.function(**self.settings), f"game {self.what!r}")
        return driver_of(env, f"game {self.what!r}")

    def run(self, progress: Callable[[str], None]) -> EnvReport:
        progress("spaces")
        driver = self.make()
        ends.skip_missing_properties(driver, self.log)
        check_spaces(driver, self.log)
        progress("episodes")
        scripts = self.references()
        if scripts:
            self.play_on(driver, len(scripts))
            self.conclude_play(driver)
            self.play_again(driver, scripts, progress)
        replays.closing(driver, self.log)
        seen = self.watch.seen
        return EnvReport(
            self.what, driver.kind, seen["episodes"], seen["steps"], self.log.findings()
        )

    def references(self) -> list[Script]:
        """Play some episodes in new objects; [] if one fails."""
        scripts: list[Script] = []
        for number in range(min(REFERENCES, self.games)):
            if number > 1 and self.budget.used() > FOR_REFERENCES:
                break
            seed_globals(11)
            driver = self.make()
            part = FOR_REFERENCES * (number + 1) / 2
            script = self.episode(driver, number, min(self.steps, MAX_REPLAY_STEPS), part)
            if script is None:
                return []
            scripts.append(script)
            driver.close_quietly()
        return scripts

    def play_on(self, driver: Driver, first: int) -> None:
        """Play the other episodes in one object."""
        number = first
        while number < self.games and self.budget.used() < FOR_PLAYING:
            if self.episode(driver, number, self.steps, FOR_PLAYING) is None:
                return
            number += 1
            self.sizes.append(memory_in_use())

    def episode(self, driver: Driver, number: int, steps: int, part: float) -> Script | None:
        """Play and watch an episode; None if the env fails."""
        seed = self.seed + number
        self.watch.begin(seed, number)
        advice = "an error that the mask does not explain; allow what is legal and nothing else"
        with self.noted("legal actions", advice):
            late = lambda: self.budget.used() > part  # noqa: E731
            keep = number < REFERENCES
            script = play(driver, seed, steps=steps, see=self.watch.see, until=late, keep=keep)
            self.step_s += driver.step_s
            driver.step_s = []
            if not script.over:
                if len(script.actions) >= steps:
                    self.endless.append(seed)
                else:
                    self.cut += 1
            return script
        return None

    @contextmanager
    def noted(self, name: str, advice: str) -> Iterator[None]:
        """Record an exception of the env."""
        try:
            yield
        except EnvRaisedError as raised:
            location = self.watch.location
            if isinstance(raised.error, str) or raised.call != "step()":
                name, advice = "reset and step", ""
            self.log.wrong(name, str(raised), advice, location)
        except EpisodeStuckError:
            pass

    def conclude_play(self, driver: Driver) -> None:
        """Record what all episodes have shown."""
        self.watch.conclude()
        log, episodes = self.log, self.watch.seen["episodes"]
        if "agents" not in log.skipped:
            log.ok("agents", ", ".join(map(str, driver.all_agents()[:8])))
        log.ok("autoreset", str(getattr(driver, "mode", "")))
        if self.endless:
            detail = f"{len(self.endless)} of {episodes} episodes did not end within {self.steps:,}"
            advice = "truncate long ones (gymnasium.wrappers.TimeLimit), or raise --steps"
            log.unsure("ends", f"{detail} steps, the first with seed {self.endless[0]}", advice)
        elif self.cut:
            detail = f"{self.cut} of {episodes} episodes took longer than the time for them"
            log.unsure("ends", detail, "raise --seconds")
        report_times(self.step_s, log)
        report_memory(self.sizes, log)

    def play_again(
        self, driver: Driver, scripts: list[Script], progress: Callable[[str], None]
    ) -> None:
        """Replay the first episodes in every way."""
        make, log = self.make, self.log
        if log.is_wrong("legal actions") or log.is_wrong("reset and step"):
            return
        ways: Sequence[tuple[str, Callable[[], Any]]] = (
            ("same object", lambda: replays.same_object(driver, scripts, log)),
            ("reset twice", lambda: replays.reset_twice(driver, scripts, log)),
            ("seeds", lambda: replays.seeds_differ(make, scripts, log)),
            ("fresh object", lambda: self.play_elsewhere(scripts)),
            ("after the end", lambda: ends.after_the_end(make, scripts, log)),
            ("forbidden actions", lambda: ends.forbidden_actions(make, scripts, log)),
            ("last observation", lambda: ends.last_observations(make, scripts, log)),
        )
        for name, way in ways:
            progress(name)
            with self.noted(name, ""):
                way()

    def play_elsewhere(self, scripts: list[Script]) -> None:
        """Replay in other objects; a difference makes the checks that build on it meaningless."""
        log, names = self.log, ("global random numbers", "other process", "independence")
        if not replays.fresh_object(self.make, scripts, log):
            for name in names:
                log.unsure(name, "a fresh object plays differently anyway")
            return
        if not replays.global_numbers(self.make, scripts, log):
            for name in names[1:]:
                log.unsure(name, "global random numbers have a part in it")
            return
        replays.independence(self.make, scripts, log)
        replays.other_process(self.word, self.settings, scripts, log, self.budget)


def check_spaces(driver: Driver, log: FindingLog) -> None:
    """Record whether sparring supports the spaces."""
    try:
        if isinstance(driver, TableDriver):
            read_agents(driver.env)
        else:
            who = driver.all_agents()[0]
            observed, done = driver.observation_space(who), driver.action_space(who)
            encoding_of(observed, done, driver.kind, driver.env)
    except ActionNamesError as refused:
        log.wrong("spaces", str(refused), "give one name per action")
        return
    except ConfigError as refused:
        log.wrong("spaces", str(refused), "change the space, or wrap the env")
        return
    who = driver.all_agents()[0]
    seen, done = driver.observation_space(who), driver.action_space(who)
    log.ok("spaces", f"observations {seen}, actions {done}")


def report_times(step_s: Sequence[float], log: FindingLog) -> None:
    if not step_s:
        return
    median, high = np.quantile(step_s, (0.5, 0.95))
    text = f"median {duration(median)}, 95 % within {duration(high)}"
    log.ok("time", f"a step: {text}, at most {duration(max(step_s))}")


def report_memory(sizes: Sequence[int], log: FindingLog) -> None:
    """Record how much memory grows per episode; the first third fills caches."""
    if not any(sizes):
        log.unsure("memory", "no figures on this machine" if sizes else "no episode was over")
        return
    later = sizes[len(sizes) // 3 :]
    if len(sizes) < MIN_FOR_MEMORY:
        log.unsure("memory", f"{len(sizes)} episodes in one object are too few", "raise --games")
        return
    grown = (later[-1] - later[0]) / 1024
    each = grown / (len(later) - 1)
    log.ok("memory", f"{grown:,.0f} KiB more over {len(later) - 1} episodes, {each:,.1f} each")


def memory_in_use() -> int:
    """Resident bytes of this process, 0 where /proc is missing."""
    gc.collect(0)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
