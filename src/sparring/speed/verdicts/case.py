"""What all causes look at: what was seen, read once, and the facts that settings decide."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sparring.config import TrainConfig
from sparring.speed.evidence import Evidence
from sparring.speed.verdicts.places import Places
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.casting import GIVEN
from sparring.training.planning.own import by_factory


@dataclass(frozen=True)
class Candidate:
    """A change of settings that might help, before it is timed."""

    cause: str
    share: float
    """Of the time that it bears on."""
    change: Mapping[str, Any]
    why: str
    """Where the time goes and why, the beginning of a sentence."""
    advice: str
    """What to do, its end."""
    reckoned: float | None = None
    """The gain to speak of where nothing can be timed; None: then it is not recommended."""
    hope: float = 0.0
    """How much it might bring: what is worth timing first."""
    alters: bool = False
    """It changes what is learned from a decision, not only how fast."""
    rows: int = 0
    """Samples that a rollout must hold for the change to mean something."""


@dataclass(frozen=True)
class Case:
    """A training that was looked at."""

    evidence: Evidence
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        """Read the stacks."""
        object.__setattr__(self, "places", Places(self.evidence))

    @property
    def config(self) -> TrainConfig:
        """Its settings."""
        return self.evidence.config

    def phase(self, *names: str) -> float:
        """Share of the time in some phases."""
        return sum(self.evidence.phases.get(name, 0.0) for name in names)

    @property
    def own_env(self) -> bool:
        """Whether an environment of somebody's own is trained on."""
        return by_factory(self.config) or bool(self.places.at("environment", "reset"))

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU was at work."""
        return bool(self.evidence.gpu)

    @property
    def workers(self) -> int:
        """Processes that step environments, -1 where the run decides itself."""
        word = self.config.workers
        return int(word) if word.isdigit() else -1

    @property
    def threads(self) -> int:
        """Threads that games and network have."""
        return self.config.threads or os.cpu_count() or 1

    @property
    def repeatable(self) -> bool:
        """Whether another process can play the same: nothing came from a program alone."""
        given = any(word.startswith(GIVEN) for word in self.config.opponents)
        return not given and not self.config.cluster

    @cached_property
    def batch(self) -> tuple[str, str, int]:
        """Where the size of an optimiser step is set, and what it is; 0 where nobody knows."""
        config = self.config
        sections = sections_of(config.algo, config.dqn.mode)
        if "replay" in sections:
            return "replay", "batch", config.replay.batch
        if config.algo == "ppo":
            return "ppo", "minibatch", config.ppo.minibatch
        if config.algo == "dqn":
            return "dqn", "minibatch", config.dqn.minibatch
        return "", "", 0

    @property
    def remembers(self) -> bool:
        """Whether it learns from a replay."""
        return self.batch[0] == "replay"
