"""Experience of learners with a replay buffer: fills it, and makes steps at the replay ratio.

An update has several rounds. Each collects a rollout, stores its transitions, and makes optimizer
steps until `replay.ratio` samples per decision were learned from.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sparring.config import (
    CollectConfig,
    DQNConfig,
    QRDQNConfig,
    ReplayConfig,
    SACConfig,
    TD3Config,
)
from sparring.learn.averaging import trained_weights
from sparring.learn.learner import DivergedError, Report, Segment, Snapshot
from sparring.learn.playing import SelfPlay, copied, update_normalizer
from sparring.learn.replay import ReplayBatch, ReplayBuffer
from sparring.learn.rollout import Episodes, Rollout
from sparring.learn.transitions import TERMINATED, TO_NEXT, Transitions
from sparring.pools.lineups import LEARNER
from sparring.schedule import Moment

Settings = DQNConfig | QRDQNConfig | SACConfig | TD3Config
Serials = npt.NDArray[np.int64]
BonusOf = Callable[[int], tuple[float, float]]
"""Returns bonus and discount of a game, by the number of games finished before it."""


class WinBonus:
    """Adds a bonus to all rewards of a won game, as in laser_hockey.md section 19.1.

    When a seat wins, its last but one decision gets `win_bonus`, the one before it `win_bonus *
    win_discount`, and so on back to the first. The last one, which the rules reward, stays. The
    decisions are in the replay buffer already and change there.
    """

    def __init__(self, replay: ReplayBuffer, since: int) -> None:
        """Change decisions from serial number `since` on; older ones never change."""
        self.replay, self.since = replay, since
        self.before = np.full(replay.ring.capacity, -1, np.int64)
        """By place: serial number of the seat's previous decision, -1 if there is none."""
        self._link_stored()

    def _link_stored(self) -> None:
        ring, replay = self.replay.ring, self.replay
        stored = np.arange(max(replay.first, self.since), replay.head)
        stored = stored[ring["end"][self._places(stored)] == TO_NEXT]
        self.before[ring["next"][self._places(stored)]] = stored

    def _places(self, serials: Serials) -> Serials:
        return serials % self.replay.ring.capacity

    def serials_of(self, rollout: Rollout, transitions: Transitions) -> Serials:
        """Return the serial numbers that a rollout will get, by place; call before `push`."""
        result = np.full(transitions.places, -1, np.int64)
        result[: transitions.max_pending] = self.replay.pending
        is_learner = (rollout.policy.reshape(-1) == LEARNER) & (rollout.seat.reshape(-1) >= 0)
        result[transitions.max_pending :][is_learner] = self.replay.head + np.arange(
            is_learner.sum()
        )
        return result

    def add_bonuses(
        self,
        serials: Serials,
        rollout: Rollout,
        transitions: Transitions,
        ended: Sequence[Episodes],
        bonus_of: BonusOf,
    ) -> None:
        """Link a pushed rollout, and add bonuses for the games that ended in it.

        serials: of `serials_of`. ended: the rollout's finished games in order.
        """
        new = serials[transitions.max_pending :]
        self.before[self._places(new[new >= 0])] = -1
        continuing = np.flatnonzero((transitions.end == TO_NEXT) & (serials >= self.since))
        follows = serials[transitions.next[continuing]]
        self.before[self._places(follows)] = serials[continuing]
        games = _by_game(ended)
        for place in np.flatnonzero(transitions.end == TERMINATED):
            step, game, seat = _where(int(place), rollout, transitions)
            over = rollout.terminated[:, game] | rollout.truncated[:, game]
            score, number = games[game][int(over[: max(step, 0)].sum())]
            others = np.delete(score, seat)
            if len(others) and score[seat] > others.max():
                self._add_bonus(int(serials[place]), *bonus_of(number))

    def _add_bonus(self, serial: int, bonus: float, discount: float) -> None:
        paid, capacity = self.replay.ring["paid"], self.replay.ring.capacity
        while (serial := int(self.before[serial % capacity])) >= self.replay.first:
            paid[serial % capacity] += bonus
            bonus *= discount

    def changeable(self) -> Serials:
        """Return the decisions of running games, whose rewards may still change."""
        running = [self.replay.pending[self.replay.pending >= 0]]
        while len(running[-1]):
            earlier = self.before[self._places(running[-1])]
            running.append(earlier[earlier >= self.replay.first])
        return np.concatenate(running)


def _by_game(ended: Sequence[Episodes]) -> dict[int, list[tuple[npt.NDArray[np.float32], int]]]:
    """Return the final scores of every game in order, each with the number of games before it."""
    result = defaultdict(list)
    number = 0
    for episodes in ended:
        for game, score in zip(episodes.game.tolist(), episodes.score, strict=True):
            result[game].append((score, number))
            number += 1
    return result


def _where(place: int, rollout: Rollout, transitions: Transitions) -> tuple[int, int, int]:
    """Return step, game and seat of a decision; the step of a pending one is -1."""
    rules = transitions.rules
    if place < transitions.max_pending:
        chain = place // transitions.chains
        return -1, chain // rules.seats, chain % rules.seats
    step, row = divmod(place - transitions.max_pending, transitions.games * rules.rows)
    return step, row // rules.rows, int(rollout.seat[step, row])


Losses = Mapping[str, Tensor | float]
"""Losses of an optimizer step by name."""
DECISIONS_PER_UPDATE = 1000
"""Approximate number of decisions between two reports."""


class Experience:
    """A replay buffer, with counts of decisions, samples and optimizer steps."""

    def __init__(self, playing: SelfPlay, collect: CollectConfig, config: ReplayConfig) -> None:
        self.playing, self.config = playing, config
        self.replay = ReplayBuffer(
            playing.rules,
            config,
            row_bytes=playing.pool.row_bytes,
            max_pending=playing.collector.transitions.max_pending,
            seed=playing.seed,
            squash=playing.net.config.squash,
            threads=playing.threads,
            relabeling=playing.transforms.relabeling,
        )
        rows = collect.games * collect.steps * playing.rules.rows
        self.rounds = max(1, round(DECISIONS_PER_UPDATE / rows))
        """Rollouts of an update."""
        self.rollouts = 0
        self.steps = 0
        """Optimizer steps."""
        self.owed = 0.0
        """Samples due by the replay ratio."""
        self.since = 0
        """Decisions made before the buffer was last empty."""
        self.episodes = 0
        """Finished games."""
        self.bonus: WinBonus | None = None

    @property
    def decisions(self) -> int:
        return self.playing.collector.decisions

    @property
    def samples(self) -> int:
        return self.steps * self.config.batch

    @property
    def warm(self) -> bool:
        """Whether the warmup is over."""
        return self.decisions - self.since >= self.config.warmup

    @property
    def is_random_warmup(self) -> bool:
        """Whether all actions of the next rollout are random."""
        return not (self.warm or self.since) and self.config.warmup_by == "random"

    def collect(
        self, moment: Moment, gamma: float, settings: Settings, *, reset_stats: bool
    ) -> dict[str, float]:
        """Collect a rollout and store it; return its stats.

        reset_stats: start the stats of a new update.
        """
        collector = self.playing.collector
        before, known = collector.decisions, 0 if reset_stats else len(collector.finished.batches)
        stats = collector.collect(self.rollouts, reset_stats=reset_stats)
        self.rollouts += 1
        with self.playing.phases("replay"):
            self.replay.mark_truncations(collector.rollout)
            collector.link(gamma, settings.gamma_into, required=False)
            ended = collector.finished.batches[known:]
            self._store(moment, settings, ended)
            self.episodes += sum(map(len, ended))
            update_normalizer(self.playing.net, collector)
            collector.keep_pending()
        if self.warm:
            self.owed += (collector.decisions - before) * self.config.ratio
        return stats

    def _store(self, moment: Moment, settings: Settings, ended: Sequence[Episodes]) -> None:
        rollout, transitions = self.playing.collector.rollout, self.playing.collector.transitions
        if self.bonus is None and any(settings.win_bonus.values):
            self._start_bonus(self.replay.head)
        if self.bonus is None:
            self.replay.push(rollout, transitions)
            return

        def bonus_of(number: int) -> tuple[float, float]:
            then = replace(moment, episodes=self.episodes + number)
            return settings.win_bonus.at(then), settings.win_discount.at(then)

        serials = self.bonus.serials_of(rollout, transitions)
        self.replay.push(rollout, transitions)
        self.bonus.add_bonuses(serials, rollout, transitions, ended, bonus_of)

    def _start_bonus(self, since: int) -> None:
        self.bonus = WinBonus(self.replay, since)
        self.replay.changeable = self.bonus.changeable

    def learn(
        self, moment: Moment, step: Callable[[ReplayBatch], tuple[Losses, Tensor]]
    ) -> list[Losses]:
        """Make the optimizer steps due by the replay ratio; return the losses of each."""
        all_losses = list[Losses]()
        while (samples := self.sample(moment)) is not None:
            with self.playing.phases("update"):
                losses, error = step(samples)
            self.finish_step(samples, error)
            all_losses.append(losses)
        return all_losses

    def sample(self, moment: Moment) -> ReplayBatch | None:
        """Sample the batch of the next optimizer step; None if no step is due."""
        if self.owed < self.config.batch or not len(self.replay):
            return None
        with self.playing.phases("sampling"):
            samples = self.replay.sample(self.steps, self.config.priority_correction.at(moment))
            for transform in self.playing.transforms.in_place:
                samples = transform.apply_to_batch(samples, self.steps)
        return samples

    def finish_step(self, samples: ReplayBatch, error: Tensor) -> None:
        """Update priorities and counts. error: absolute TD error per sample."""
        if self.config.prioritized:
            with self.playing.phases("sampling"):
                assert isinstance(samples.places, np.ndarray)
                self.replay.reprioritize(samples.places, error.detach().cpu().numpy())
        self.owed -= self.config.batch
        self.steps += 1

    def diverged(self, updates: int, losses: Losses) -> DivergedError:
        """Return the error to raise if a loss is not finite."""
        values = ", ".join(f"{name} {float(value):g}" for name, value in losses.items())
        return DivergedError(f"update {updates}, optimizer step {self.steps}: {values}")

    def stats(self, decisions: int, steps: int) -> dict[str, float]:
        """Return the metrics of an update that began at these counts."""
        decisions_made, steps_made = self.decisions - decisions, self.steps - steps
        samples = steps_made * self.config.batch
        return {
            "learning/optimizer_steps": float(steps_made),
            "learning/samples": float(samples),
            "learning/decisions": float(decisions_made),
            "learning/replay_ratio": samples / max(decisions_made, 1),
            "learning/steps_per_decision": steps_made / max(decisions_made, 1),
            **self.replay.stats(),
        }

    def dry_run(self, learner: Any) -> Report:
        """Make an update without stepping games, and restore everything.

        learner: has `set_hparams`, `step`, `learner_state` and `load_learner_state`.
        """
        saved = {"net": copied(learner.net), **learner.learner_state()}
        collector, phases = self.playing.collector, self.playing.phases
        steps, owed, weights = self.steps, self.owed, self.replay.weights()
        started = time.perf_counter()
        with self.playing.forward.best_matmul():
            for _ in range(self.rounds):
                collector.dry_run(self.rollouts)
                self.owed += collector.rollout.decisions() * self.config.ratio
                moment = Moment(self.decisions, 0.0)
                learner.set_hparams(moment)
                self.learn(moment, learner.step)
        other_s = time.perf_counter() - started - sum(phases.seconds.values())
        phases.seconds["other"] = max(other_s, 0.0)
        steps_made = self.steps - steps
        stats = {
            "learning/optimizer_steps": float(steps_made),
            "learning/samples": float(steps_made * self.config.batch),
            "learning/decisions": float(self.rounds * collector.rollout.decisions()),
        }
        report = self.playing.collector.report(stats, self.samples)
        self.steps, self.owed = steps, owed
        self.replay.load_weights(weights)
        learner.net.load_state_dict(trained_weights(saved))
        learner.load_learner_state(saved)
        return report

    def clear(self) -> None:
        """Empty the buffer; the network plays on while it fills again."""
        self.replay.clear()
        self.since, self.owed = self.decisions, 0.0

    def snapshot(self, updates: int, learner_state: Mapping[str, dict[str, Tensor]]) -> Snapshot:
        """Copy the state. learner_state: trained tensors besides the network."""
        saved = self.playing.snapshot(updates, self.samples)
        tensors, segments = {**saved.tensors, **learner_state}, dict[str, Segment]()
        meta = {
            **saved.meta,
            "rollouts": self.rollouts,
            "steps": self.steps,
            "owed": self.owed,
            "since": self.since,
            "finished": self.episodes,
            **({"bonus_since": self.bonus.since} if self.bonus else {}),
        }
        if self.config.save:
            tensors["replay"], segments, meta["replay"] = self.replay.state()
        return replace(saved, tensors=tensors, meta=meta, segments=segments)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore `snapshot`, after `SelfPlay.restore`."""
        meta = snapshot.meta
        self.rollouts, self.steps, self.owed = meta["rollouts"], meta["steps"], meta["owed"]
        self.episodes = int(meta.get("finished", 0))
        if "replay" in snapshot.tensors:
            self.since = meta.get("since", 0)
            segments = {name: read() for name, read in snapshot.segments.items()}
            self.replay.load_state(snapshot.tensors["replay"], segments, meta["replay"])
            if "bonus_since" in meta:
                self._start_bonus(int(meta["bonus_since"]))
        elif meta["update"]:  # not saved, or to be cleared: the network plays on
            self.since, self.owed = self.decisions, 0.0


def mean_losses(steps: Sequence[Losses]) -> dict[str, float]:
    """Return the mean of every loss over the steps that have it, by names of metrics."""
    values: dict[str, list[float]] = {}
    for losses in steps:
        for name, loss in losses.items():
            values.setdefault(f"losses/{name}", []).append(float(loss))
    return {name: fmean(each) for name, each in values.items()}
