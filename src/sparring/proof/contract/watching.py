"""What can be seen in every single answer of an env, while it is played."""

from __future__ import annotations

import copy
from collections import Counter, deque
from typing import Any

import numpy as np

from sparring.pools.custom.encoding import MASK, library
from sparring.proof.contract.drivers import Driver, Moment
from sparring.proof.contract.findings import Ledger, Place
from sparring.proof.contract.playing import StuckError
from sparring.proof.contract.values import digest_of, fault_in, short

KEPT = 3
"""Observations of so many steps ago are looked at again."""


class Watch:
    """Looks at every answer and notes what is wrong with it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.seen = ledger, Counter[str]()
        self.place = Place()
        self._masked: bool | None = None
        self._kept: deque[tuple[int, Any, Any, str]] = deque(maxlen=KEPT)
        """Steps with their observations, copies of them and the copies' hashes."""
        self._spaces: dict[Any, Any] = {}

    def begin(self, seed: int, episode: int) -> None:
        self.place = Place(seed, episode, 0)
        self._kept.clear()
        self.seen["episodes"] += 1

    def see(self, driver: Driver, moment: Moment, step: int) -> None:
        """Look at an answer."""
        self.place = Place(self.place.seed, self.place.episode, step)
        self.seen["steps"] += step > 0
        for fault in moment.faults:
            self.ledger.wrong(*fault, self.place)
        self._look_back(moment, step)
        for who, obs in (*moment.obs.items(), *moment.last.items()):
            self._observation(driver, who, obs)
        for who, reward in moment.reward.items():
            self._reward(who, reward)
        self._flags(moment)
        for who in moment.asked:
            self._mask(driver, who, moment)

    def _look_back(self, moment: Moment, step: int) -> None:
        """See whether observations that were given before are still what they were."""
        if not self.ledger.is_wrong("kept observations"):
            for at, given, was, digest in self._kept:
                if digest_of(given) != digest:
                    self.ledger.wrong(
                        "kept observations",
                        f"the observation of step {at} was {short(was)} and has become "
                        f"{short(given)}: the env writes into an array that it has given away",
                        "return obs.copy()",
                        self.place,
                    )
                    break
        own = copy.deepcopy(moment.given)
        self._kept.append((step, moment.given, own, digest_of(own)))

    def _observation(self, driver: Driver, who: Any, obs: Any) -> None:
        if who not in self._spaces:  # PettingZoo may make a new one with every call
            self._spaces[who] = driver.observation_space(who)
        self.seen["observations"] += 1
        detail, advice = fault_in(self._spaces[who], obs, f"observation of {who}")
        if detail:
            self.ledger.wrong("observations", detail, advice, self.place)

    def _reward(self, who: Any, reward: Any) -> None:
        self.seen["rewards"] += 1
        try:
            good = bool(np.isfinite(np.asarray(reward, np.float64)).all() and np.size(reward) == 1)
        except (TypeError, ValueError):
            good = False
        if not good:
            detail = f"{who} is paid {short(reward)}"
            self.ledger.wrong("rewards", detail, "pay one finite number", self.place)

    def _flags(self, moment: Moment) -> None:
        for name in ("terminated", "truncated"):
            for who, flag in getattr(moment, name).items():
                if not isinstance(flag, bool | np.bool_):
                    detail = f"{name} of {who} is {short(flag)} ({type(flag).__name__})"
                    self.ledger.wrong("ends", detail, "return a bool", self.place)
        for who, flag in moment.terminated.items():
            self.seen["terminated"] += bool(flag)
            self.seen["truncated"] += bool(moment.truncated.get(who))
            self.seen["both"] += bool(flag) and bool(moment.truncated.get(who))

    def _mask(self, driver: Driver, who: Any, moment: Moment) -> None:
        space = driver.own_action_space(who)
        if not isinstance(space, library("gymnasium").spaces.Discrete):
            return
        mask = moment.mask.get(who)
        if self._masked is None:
            self._masked = mask is not None
        if self._masked != (mask is not None):
            had = "none before" if mask is not None else "one before"
            now = "an" if mask is not None else "no"
            advice = f"give an {MASK} with every reset and step, or never"
            self.ledger.wrong(
                "masks", f"{who} has {now} {MASK}, there was {had}", advice, self.place
            )
        if mask is None:
            return
        self.seen["masks"] += 1
        shape, count = np.shape(mask), int(space.n)
        if shape != (count,):
            detail = f"the mask of {who} has shape {shape}, there are {count} actions"
            self.ledger.wrong("masks", detail, f"give one of shape ({count},)", self.place)
            raise StuckError
        numbers = np.asarray(mask)
        if not np.isin(numbers, (0, 1)).all():
            self.ledger.wrong(
                "masks", f"the mask of {who} is {short(numbers)}", "use 0 and 1 alone", self.place
            )
        if not numbers.any():
            detail = f"the mask of {who}, who is to decide, allows nothing"
            advice = "end the episode there, or allow an action that passes"
            self.ledger.wrong("masks", detail, advice, self.place)
            raise StuckError

    def conclude(self) -> None:
        """Say of what held how often it was looked at."""
        seen, ledger = self.seen, self.ledger
        ledger.ok("reset and step", f"{seen['episodes']} episodes, {seen['steps']:,} steps")
        ledger.ok("observations", f"{seen['observations']:,} in their space")
        ledger.ok("kept observations", "none changed after it was given")
        if seen["rewards"]:
            ledger.ok("rewards", f"{seen['rewards']:,} finite")
            ledger.ok("legal actions", f"{seen['steps']:,} steps, none refused")
        masks = f"{seen['masks']:,}, each with a legal action" if seen["masks"] else "none"
        ledger.ok("masks", masks)
        both = f", {seen['both']} times both at once: taken as terminated" if seen["both"] else ""
        if seen["terminated"] or seen["truncated"]:
            ends = f"terminated {seen['terminated']:,}, truncated {seen['truncated']:,}{both}"
            ledger.ok("ends", ends)
