"""Checks of every single result of an env while it is played."""

from __future__ import annotations

import copy
from collections import Counter, deque
from typing import Any

import numpy as np

from sparring.pools.custom.encoding import MASK, library
from sparring.proof.contract.drivers import Driver, StepResult
from sparring.proof.contract.findings import FindingLog, Location
from sparring.proof.contract.playing import EpisodeStuckError
from sparring.proof.contract.values import digest_of, fault_in, short

REMEMBERED = 3
"""Steps whose observations are compared again later."""


class StepWatcher:
    """Checks every result and records faults."""

    def __init__(self, log: FindingLog) -> None:
        self.log, self.seen = log, Counter[str]()
        self.location = Location()
        self._masked: bool | None = None
        self._remembered: deque[tuple[int, Any, Any, str]] = deque(maxlen=REMEMBERED)
        """Steps with their observations, copies of them and the copies' hashes."""
        self._spaces: dict[Any, Any] = {}

    def begin(self, seed: int, episode: int) -> None:
        self.location = Location(seed, episode, 0)
        self._remembered.clear()
        self.seen["episodes"] += 1

    def see(self, driver: Driver, result: StepResult, step: int) -> None:
        """Check a result."""
        self.location = Location(self.location.seed, self.location.episode, step)
        self.seen["steps"] += step > 0
        for fault in result.faults:
            self.log.wrong(*fault, self.location)
        self._look_back(result, step)
        for who, obs in (*result.obs.items(), *result.last.items()):
            self._observation(driver, who, obs)
        for who, reward in result.reward.items():
            self._reward(who, reward)
        self._flags(result)
        for who in result.deciding:
            self._mask(driver, who, result)

    def _look_back(self, result: StepResult, step: int) -> None:
        """Check whether earlier observations are still what they were."""
        if not self.log.is_wrong("kept observations"):
            for at, given, was, digest in self._remembered:
                if digest_of(given) != digest:
                    self.log.wrong(
                        "kept observations",
                        f"the observation of step {at} was {short(was)} and has become "
                        f"{short(given)}: the env writes into an array that it has given away",
                        "return obs.copy()",
                        self.location,
                    )
                    break
        copied = copy.deepcopy(result.raw)
        self._remembered.append((step, result.raw, copied, digest_of(copied)))

    def _observation(self, driver: Driver, who: Any, obs: Any) -> None:
        if who not in self._spaces:  # PettingZoo may make a new one with every call
            self._spaces[who] = driver.observation_space(who)
        self.seen["observations"] += 1
        detail, advice = fault_in(self._spaces[who], obs, f"observation of {who}")
        if detail:
            self.log.wrong("observations", detail, advice, self.location)

    def _reward(self, who: Any, reward: Any) -> None:
        self.seen["rewards"] += 1
        try:
            good = bool(np.isfinite(np.asarray(reward, np.float64)).all() and np.size(reward) == 1)
        except (TypeError, ValueError):
            good = False
        if not good:
            detail = f"the reward of {who} is {short(reward)}"
            self.log.wrong("rewards", detail, "return one finite number", self.location)

    def _flags(self, result: StepResult) -> None:
        for name in ("terminated", "truncated"):
            for who, flag in getattr(result, name).items():
                if not isinstance(flag, bool | np.bool_):
                    detail = f"{name} of {who} is {short(flag)} ({type(flag).__name__})"
                    self.log.wrong("ends", detail, "return a bool", self.location)
        for who, flag in result.terminated.items():
            self.seen["terminated"] += bool(flag)
            self.seen["truncated"] += bool(result.truncated.get(who))
            self.seen["both"] += bool(flag) and bool(result.truncated.get(who))

    def _mask(self, driver: Driver, who: Any, result: StepResult) -> None:
        space = driver.private_action_space(who)
        if not isinstance(space, library("gymnasium").spaces.Discrete):
            return
        mask = result.mask.get(who)
        if self._masked is None:
            self._masked = mask is not None
        if self._masked != (mask is not None):
            had = "none before" if mask is not None else "one before"
            now = "an" if mask is not None else "no"
            advice = f"give an {MASK} with every reset and step, or never"
            self.log.wrong(
                "masks", f"{who} has {now} {MASK}, there was {had}", advice, self.location
            )
        if mask is None:
            return
        self.seen["masks"] += 1
        shape, count = np.shape(mask), int(space.n)
        if shape != (count,):
            detail = f"the mask of {who} has shape {shape}, there are {count} actions"
            self.log.wrong("masks", detail, f"give one of shape ({count},)", self.location)
            raise EpisodeStuckError
        numbers = np.asarray(mask)
        if not np.isin(numbers, (0, 1)).all():
            self.log.wrong(
                "masks",
                f"the mask of {who} is {short(numbers)}",
                "use 0 and 1 alone",
                self.location,
            )
        if not numbers.any():
            detail = f"the mask of {who}, which has to decide, allows nothing"
            advice = "end the episode there, or allow an action that passes"
            self.log.wrong("masks", detail, advice, self.location)
            raise EpisodeStuckError

    def conclude(self) -> None:
        """Record the properties that held, and how often they were checked."""
        seen, log = self.seen, self.log
        log.ok("reset and step", f"{seen['episodes']} episodes, {seen['steps']:,} steps")
        log.ok("observations", f"{seen['observations']:,} in their space")
        log.ok("kept observations", "none changed after it was given")
        if seen["rewards"]:
            log.ok("rewards", f"{seen['rewards']:,} finite")
            log.ok("legal actions", f"{seen['steps']:,} steps, none refused")
        masks = f"{seen['masks']:,}, each with a legal action" if seen["masks"] else "none"
        log.ok("masks", masks)
        both = f", {seen['both']} times both at once: taken as terminated" if seen["both"] else ""
        if seen["terminated"] or seen["truncated"]:
            ends = f"terminated {seen['terminated']:,}, truncated {seen['truncated']:,}{both}"
            log.ok("ends", ends)
