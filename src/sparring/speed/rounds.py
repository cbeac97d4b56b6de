"""Timed rounds of a learner: one rollout and its update each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import Learner, Report, SupportsDryRun
from sparring.learn.plan import Plan
from sparring.nets.make import make_net
from sparring.training.planning.algorithms import sections_of
from sparring.training.planning.settings import merged
from sparring.usage import cpu_s


def steady(config: TrainConfig) -> TrainConfig:
    """Return settings whose rounds all cost the same, as in the middle of a run.

    All epochs run, learning from replay has begun, exploration and simulations are at their final
    values.
    """
    by_algo: dict[str, dict[str, Any]] = {
        "ppo": {"target_kl": 0.0},
        "dqn": {"epsilon": config.dqn.epsilon.values[-1]},
        "qrdqn": {"epsilon": config.qrdqn.epsilon.values[-1]},
        "gumbel": {"simulations": config.gumbel.simulations.values[-1]},
    }
    changes: dict[str, Any] = {config.algo: by_algo[config.algo]} if config.algo in by_algo else {}
    if config.hierarchy.on and changes:  # overrides the settings of roles
        changes["roles"] = {role: dict(changes) for role in Rules(config.game).roles}
    if has_replay(config):
        changes["replay"] = {"warmup": 0}
    result: TrainConfig = merged(config, changes, "measuring")
    return result


def has_replay(config: TrainConfig) -> bool:
    """Whether the algorithm learns from a replay buffer."""
    return "replay" in sections_of(config.algo, config.dqn.mode)


@dataclass(frozen=True)
class Round:
    """A rollout and its update."""

    seconds: float
    decisions: int
    """Decisions of the learner; opponents, bots and forced moves do not count."""
    samples: int
    """Decisions in the minibatches."""
    forced: int
    """Moves of any seat with a single legal action, played without inference."""
    games: int
    optimizer_steps: int
    phases: dict[str, float]
    """Seconds by phase."""
    gpu_busy: float = 0.0
    """Share of the time that the GPU of a fused learner was busy."""
    cpu_s: float = 0.0
    """CPU time of this process and its helper processes, all threads."""
    opponent_rows: int = 0
    """Rows that frozen opponents decided."""


@dataclass(frozen=True)
class Measurement:
    """Timed rounds of one learner, and its memory."""

    rounds: tuple[Round, ...]
    memory_bytes: int
    """Memory of the process and its helpers, all open sessions together."""
    gpu_bytes: int = 0
    """Peak GPU memory, without other open sessions."""

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.rounds)

    def rate(self, unit: str = "decisions") -> float:
        """Units per second over all rounds together."""
        return float(sum(getattr(one, unit) for one in self.rounds)) / max(self.seconds, 1e-9)

    @property
    def decisions_per_s(self) -> float:
        """Median over the rounds, robust to short load on the machine."""
        return median(one.decisions / one.seconds for one in self.rounds)

    @property
    def samples_per_s(self) -> float:
        """Median over the rounds."""
        return median(one.samples / one.seconds for one in self.rounds)

    @property
    def cpu_cores(self) -> float:
        """Cores busy with this process and its helpers."""
        return self.rate("cpu_s")

    @property
    def gpu_busy(self) -> float:
        return median(one.gpu_busy for one in self.rounds)

    @property
    def phases(self) -> dict[str, float]:
        return phase_shares(self.rounds)


def phase_shares(rounds: Sequence[Round]) -> dict[str, float]:
    seconds = max(sum(one.seconds for one in rounds), 1e-9)
    names = {name: None for one in rounds for name in one.phases}
    return {name: sum(one.phases.get(name, 0.0) for one in rounds) / seconds for name in names}


def timed_round(
    learner: Learner, *, free: bool = False
) -> tuple[Sequence[Report], float, dict[str, float]]:
    """Collect and update once; return reports, seconds, and the seconds of every phase.

    free: replay recorded observations instead of stepping games, to measure learning alone.
    """
    learner.phases.take()
    started = time.perf_counter()
    if free:
        assert isinstance(learner, SupportsDryRun)
        reports = learner.dry_run()
    else:
        reports = learner.iterate(0.0)
    seconds, phases = time.perf_counter() - started, learner.phases.take()
    at_work = sum(phases.values())
    if free and at_work:
        seconds = at_work  # restoring the learner does not count
    phases["other"] = phases.get("other", 0.0) + max(seconds - at_work, 0.0)
    return reports, seconds, phases


def measure_round(learner: Learner, *, free: bool = False, helpers: Sequence[int] = ()) -> Round:
    """Collect and update once. helpers: pids of helper processes, whose CPU time counts."""
    opponent_rows, cpu = count_opponent_rows(learner), cpu_s(helpers)
    reports, seconds, phases = timed_round(learner, free=free)
    busy_s = cpu_s(helpers) - cpu

    def total(name: str) -> int:
        return int(sum(report.stats.get(name, 0.0) for report in reports))

    return Round(
        seconds,
        total("learning/decisions"),
        total("learning/samples"),
        total("charts/forced"),
        total("charts/games"),
        int(reports[0].stats.get("learning/optimizer_steps", 0)),
        phases,
        reports[0].stats.get("charts/gpu_busy", 0.0),
        busy_s,
        count_opponent_rows(learner) - opponent_rows,
    )


def count_opponent_rows(learner: Learner) -> int:
    """Return how many rows frozen opponents have decided so far, over all members."""
    counted = getattr(getattr(learner, "collector", learner), "opponent_rows", 0)
    return sum(counted) if isinstance(counted, list) else int(counted)


def fill_slots(learner: Learner, plan: Plan) -> None:
    """Put a different fresh network into every slot, all with equal weight."""
    if not isinstance(learner, TakesOpponents) or not isinstance(learner, SupportsDryRun):
        raise ConfigError("this learner takes no frozen opponents; leave past and best out")
    for slot in range(1, plan.participants.slots + 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1_000_000 + slot)
            weights = make_net(plan.rules, plan.net, roles=plan.role_nets).state_dict()
        for member in range(len(plan.seeds)):
            learner.put(slot, weights, greedy=plan.participants.greedy, member=member)
    weights_by_slot = dict.fromkeys(range(1, plan.participants.past_slots + 1), 1.0)
    for member in range(len(plan.seeds)):
        learner.set_mixes(dict.fromkeys(plan.participants.mixes, weights_by_slot), member)
    learner.pool.reset()


def spread(values: Sequence[float], digits: int) -> dict[str, Any]:
    """Return median, range and all values."""
    rounded = [round(value, digits or None) for value in values]
    middle = round(median(values), digits or None)
    return {"median": middle, "min": min(rounded), "max": max(rounded), "rounds": rounded}
