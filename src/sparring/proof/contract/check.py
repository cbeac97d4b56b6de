"""Plays an environment by random legal actions and says which promises of its kind it keeps."""

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
from sparring.proof.contract import again, ends
from sparring.proof.contract.drivers import Driver, EnvRaisedError
from sparring.proof.contract.findings import EnvReport, Ledger
from sparring.proof.contract.playing import (
    Clock,
    Script,
    StuckError,
    driver_of,
    play,
    seed_globals,
)
from sparring.proof.contract.tables import TableDriver
from sparring.proof.contract.watching import Watch

REFERENCES = 4
"""Episodes that are played again in all ways, each first in an object of its own."""
LONGEST_AGAIN = 2000
"""Steps of an episode that are played again at most."""
FOR_REFERENCES, FOR_PLAYING = 0.1, 0.5
"""Parts of the time for the episodes that are played again, and for all that are played once."""
FEWEST_FOR_MEMORY = 6


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
    """Play an environment and say which properties hold, with what shows it.

    factory: makes a gymnasium.Env, a VectorEnv, a PettingZoo AECEnv or ParallelEnv; or its name.
    games: episodes by random legal actions, each with a seed of its own.
    seconds: about how long it may take; slow envs play fewer episodes, and shorter ones.
    steps: an episode that lasts longer is taken for endless.
    settings: keyword arguments of the factory.
    """
    if isinstance(factory, str):
        trusted.allow(factory)
    function = load_factory(factory, "game") if isinstance(factory, str) else factory
    word = factory if isinstance(factory, str) else factory_name(function)
    checked = Check(function, word, dict(settings or {}), Clock(seconds), games, steps, seed)
    kept = random.getstate(), np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return checked.run(progress or (lambda _: None))
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])


@dataclass
class Check:
    """One check of one factory."""

    function: Callable[..., Any]
    word: str
    settings: dict[str, Any]
    clock: Clock
    games: int
    steps: int
    seed: int
    step_s: list[float] = field(default_factory=list)
    endless: list[int] = field(default_factory=list)
    """Seeds of episodes that did not end."""
    cut: int = 0
    """Episodes that the time did not suffice for."""
    sizes: list[int] = field(default_factory=list)
    """Memory of this process after each episode, in bytes."""

    def __post_init__(self) -> None:
        self.what = self.word or getattr(self.function, "__name__", "the factory")
        self.ledger = Ledger()
        self.watch = Watch(self.ledger)

    def make(self) -> Driver:
        """Make another env."""
        env = make_env(lambda: self.function(**self.settings), f"game {self.what!r}")
        return driver_of(env, f"game {self.what!r}")

    def run(self, progress: Callable[[str], None]) -> EnvReport:
        """Look at everything."""
        progress("spaces")
        driver = self.make()
        ends.skip_what_is_not_there(driver, self.ledger)
        look_at_spaces(driver, self.ledger)
        progress("episodes")
        scripts = self.references()
        if scripts:
            self.play_on(driver, len(scripts))
            self.conclude_play(driver)
            self.play_again(driver, scripts, progress)
        again.closing(driver, self.ledger)
        seen = self.watch.seen
        return EnvReport(
            self.what, driver.kind, seen["episodes"], seen["steps"], self.ledger.findings()
        )

    def references(self) -> list[Script]:
        """Play some episodes in fresh objects; those that could be played are returned."""
        scripts: list[Script] = []
        for number in range(min(REFERENCES, self.games)):
            if number > 1 and self.clock.used() > FOR_REFERENCES:
                break
            seed_globals(11)
            driver = self.make()
            part = FOR_REFERENCES * (number + 1) / 2
            script = self.episode(driver, number, min(self.steps, LONGEST_AGAIN), part)
            if script is None:
                return []
            scripts.append(script)
            driver.dismiss()
        return scripts

    def play_on(self, driver: Driver, first: int) -> None:
        """Play the other episodes in one object."""
        number = first
        while number < self.games and self.clock.used() < FOR_PLAYING:
            if self.episode(driver, number, self.steps, FOR_PLAYING) is None:
                return
            number += 1
            self.sizes.append(memory_in_use())

    def episode(self, driver: Driver, number: int, steps: int, part: float) -> Script | None:
        """Play an episode and watch it; None if it came to nothing."""
        seed = self.seed + number
        self.watch.begin(seed, number)
        advice = "an error that the mask does not explain; allow what is legal and nothing else"
        with self.noted("legal actions", advice):
            late = lambda: self.clock.used() > part  # noqa: E731
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
        """Note what the env raises."""
        try:
            yield
        except EnvRaisedError as raised:
            place = self.watch.place
            if isinstance(raised.error, str) or raised.call != "step()":
                name, advice = "reset and step", ""
            self.ledger.wrong(name, str(raised), advice, place)
        except StuckError:
            pass

    def conclude_play(self, driver: Driver) -> None:
        """Say what all those episodes have shown."""
        self.watch.conclude()
        ledger, episodes = self.ledger, self.watch.seen["episodes"]
        if "agents" not in ledger.skipped:
            ledger.ok("agents", ", ".join(map(str, driver.everyone()[:8])))
        ledger.ok("autoreset", str(getattr(driver, "mode", "")))
        if self.endless:
            detail = f"{len(self.endless)} of {episodes} episodes did not end within {self.steps:,}"
            advice = "truncate long ones (gymnasium.wrappers.TimeLimit), or raise --steps"
            ledger.unsure("ends", f"{detail} steps, the first with seed {self.endless[0]}", advice)
        elif self.cut:
            detail = f"{self.cut} of {episodes} episodes took longer than the time for them"
            ledger.unsure("ends", detail, "raise --seconds")
        tell_times(self.step_s, ledger)
        tell_memory(self.sizes, ledger)

    def play_again(
        self, driver: Driver, scripts: list[Script], progress: Callable[[str], None]
    ) -> None:
        """Play the first episodes again in every way."""
        make, ledger = self.make, self.ledger
        if ledger.is_wrong("legal actions") or ledger.is_wrong("reset and step"):
            return
        ways: Sequence[tuple[str, Callable[[], Any]]] = (
            ("same object", lambda: again.same_object(driver, scripts, ledger)),
            ("reset twice", lambda: again.reset_twice(driver, scripts, ledger)),
            ("seeds", lambda: again.seeds_differ(make, scripts, ledger)),
            ("fresh object", lambda: self.play_elsewhere(scripts)),
            ("after the end", lambda: ends.after_the_end(make, scripts, ledger)),
            ("forbidden actions", lambda: ends.forbidden_actions(make, scripts, ledger)),
            ("last observation", lambda: ends.last_observations(make, scripts, ledger)),
        )
        for name, way in ways:
            progress(name)
            with self.noted(name, ""):
                way()

    def play_elsewhere(self, scripts: list[Script]) -> None:
        """Play episodes in other objects, where what differs anyway tells nothing more."""
        ledger, names = self.ledger, ("global random numbers", "other process", "independence")
        if not again.fresh_object(self.make, scripts, ledger):
            for name in names:
                ledger.unsure(name, "a fresh object plays differently anyway")
            return
        if not again.global_numbers(self.make, scripts, ledger):
            for name in names[1:]:
                ledger.unsure(name, "global random numbers have a part in it")
            return
        again.independence(self.make, scripts, ledger)
        again.other_process(self.word, self.settings, scripts, ledger, self.clock)


def look_at_spaces(driver: Driver, ledger: Ledger) -> None:
    """See whether something could be learned in these spaces."""
    try:
        if isinstance(driver, TableDriver):
            read_agents(driver.env)
        else:
            who = driver.everyone()[0]
            observed, done = driver.observation_space(who), driver.action_space(who)
            encoding_of(observed, done, driver.kind, driver.env)
    except ActionNamesError as refused:
        ledger.wrong("spaces", str(refused), "give one name per action")
        return
    except ConfigError as refused:
        ledger.wrong("spaces", str(refused), "change the space, or wrap the env")
        return
    who = driver.everyone()[0]
    seen, done = driver.observation_space(who), driver.action_space(who)
    ledger.ok("spaces", f"observations {seen}, actions {done}")


def tell_times(step_s: Sequence[float], ledger: Ledger) -> None:
    """Say how long steps took."""
    if not step_s:
        return
    middle, most_of_them = np.quantile(step_s, (0.5, 0.95))
    told = f"median {duration(middle)}, 95 % within {duration(most_of_them)}"
    ledger.ok("time", f"a step: {told}, at most {duration(max(step_s))}")


def tell_memory(sizes: Sequence[int], ledger: Ledger) -> None:
    """Say how much memory episodes leave behind; the first third fills caches."""
    if not any(sizes):
        ledger.unsure("memory", "no figures on this machine" if sizes else "no episode was over")
        return
    later = sizes[len(sizes) // 3 :]
    if len(sizes) < FEWEST_FOR_MEMORY:
        ledger.unsure("memory", f"{len(sizes)} episodes in one object are too few", "raise --games")
        return
    grown = (later[-1] - later[0]) / 1024
    each = grown / (len(later) - 1)
    ledger.ok("memory", f"{grown:,.0f} KiB more over {len(later) - 1} episodes, {each:,.1f} each")


def memory_in_use() -> int:
    """Return the bytes that this process holds now."""
    gc.collect(0)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:  # only Linux tells
        return 0
