"""Experience: the replay buffer of a learner, how it is filled, and how often it is learned from.

An update is a number of rounds. Each plays a rollout, stores its decisions, and asks for as many
optimizer steps as the replay ratio says: `ratio` samples per decision, however many games made
them. DQN and SAC own one of these.
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

from sparring.config import CollectConfig, DQNConfig, ReplayConfig, SACConfig
from sparring.learn.learner import DivergedError, Report, Segment, Snapshot
from sparring.learn.playing import SelfPlay, copied, update_normalizer
from sparring.learn.replay import ReplayBatch, ReplayBuffer
from sparring.learn.rollout import Episodes, Rollout
from sparring.learn.transitions import TERMINATED, TO_NEXT, Transitions
from sparring.pools.lineups import LEARNER
from sparring.schedule import Moment

Serials = npt.NDArray[np.int64]
Worth = Callable[[int], tuple[float, float]]
"""Bonus and discount of a game, by how many were finished before it."""


class WinBonus:
    """Pays a win backwards, as the original hockey project does (laser_hockey.md section 19.1).

    Once a seat has won, its decisions in that game are paid more: the last but one `win_bonus`, the
    one before it `win_bonus * win_discount`, and so on to the first. The last one, which the rules
    have paid, is left alone. Decisions lie in the replay already, and are changed there.
    """

    def __init__(self, replay: ReplayBuffer, since: int) -> None:
        """Look after decisions from a serial number on; older ones are never changed."""
        self.replay, self.since = replay, since
        self.before = np.full(replay.ring.capacity, -1, np.int64)
        """By place: the serial number of the same seat's decision before it, -1 without one."""
        self._link_stored()

    def _link_stored(self) -> None:
        ring, replay = self.replay.ring, self.replay
        stored = np.arange(max(replay.first, self.since), replay.head)
        stored = stored[ring["end"][self._places(stored)] == TO_NEXT]
        self.before[ring["next"][self._places(stored)]] = stored

    def _places(self, serials: Serials) -> Serials:
        return serials % self.replay.ring.capacity

    def serials_of(self, rollout: Rollout, transitions: Transitions) -> Serials:
        """Return the serial numbers that a rollout will have, by place; ask before it is pushed."""
        found = np.full(transitions.places, -1, np.int64)
        found[: transitions.max_pending] = self.replay.pending
        mine = (rollout.policy.reshape(-1) == LEARNER) & (rollout.seat.reshape(-1) >= 0)
        found[transitions.max_pending :][mine] = self.replay.head + np.arange(mine.sum())
        return found

    def pay(
        self,
        serials: Serials,
        rollout: Rollout,
        transitions: Transitions,
        ended: Sequence[Episodes],
        worth: Worth,
    ) -> None:
        """Link a rollout that was pushed, and pay the games that it has decided.

        serials: what `serials_of` said. ended: the rollout's finished games in order.
        """
        new = serials[transitions.max_pending :]
        self.before[self._places(new[new >= 0])] = -1
        goes_on = np.flatnonzero((transitions.end == TO_NEXT) & (serials >= self.since))
        follows = serials[transitions.next[goes_on]]
        self.before[self._places(follows)] = serials[goes_on]
        games = _by_game(ended)
        for place in np.flatnonzero(transitions.end == TERMINATED):
            step, game, seat = _where(int(place), rollout, transitions)
            over = rollout.terminated[:, game] | rollout.truncated[:, game]
            score, number = games[game][int(over[: max(step, 0)].sum())]
            others = np.delete(score, seat)
            if len(others) and score[seat] > others.max():
                self._pay_chain(int(serials[place]), *worth(number))

    def _pay_chain(self, serial: int, bonus: float, discount: float) -> None:
        paid, capacity = self.replay.ring["paid"], self.replay.ring.capacity
        while (serial := int(self.before[serial % capacity])) >= self.replay.first:
            paid[serial % capacity] += bonus
            bonus *= discount

    def unsettled(self) -> Serials:
        """Return the decisions of running games: what they are paid may still change."""
        still = [self.replay.pending[self.replay.pending >= 0]]
        while len(still[-1]):
            earlier = self.before[self._places(still[-1])]
            still.append(earlier[earlier >= self.replay.first])
        return np.concatenate(still)


def _by_game(ended: Sequence[Episodes]) -> dict[int, list[tuple[npt.NDArray[np.float32], int]]]:
    """Final scores of every game in order, each with how many games had finished before it."""
    found = defaultdict(list)
    number = 0
    for episodes in ended:
        for game, score in zip(episodes.game.tolist(), episodes.score, strict=True):
            found[game].append((score, number))
            number += 1
    return found


def _where(place: int, rollout: Rollout, transitions: Transitions) -> tuple[int, int, int]:
    """Step, game and seat of a decision; the step of one that was carried is -1."""
    rules = transitions.rules
    if place < transitions.max_pending:
        chain = place // transitions.chains
        return -1, chain // rules.seats, chain % rules.seats
    step, row = divmod(place - transitions.max_pending, transitions.games * rules.rows)
    return step, row // rules.rows, int(rollout.seat[step, row])


Losses = Mapping[str, Tensor | float]
"""What curves show of an optimizer step, by name."""
DECISIONS_PER_UPDATE = 1000
"""About so many are made between two reports."""


class Experience:
    """Owns the replay buffer and the counts of what was played and learned."""

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
        """Samples that the replay ratio still asks for."""
        self.since = 0
        """Decisions that had been made when the replay was empty."""
        self.episodes = 0
        """Games that were finished."""
        self.bonus: WinBonus | None = None
        """Pays wins backwards, once there is something to pay."""

    @property
    def decisions(self) -> int:
        """Decisions made so far."""
        return self.playing.collector.decisions

    @property
    def samples(self) -> int:
        """Samples trained so far."""
        return self.steps * self.config.batch

    @property
    def warm(self) -> bool:
        """Whether learning has begun."""
        return self.decisions - self.since >= self.config.warmup

    @property
    def at_random(self) -> bool:
        """Whether all actions of the coming rollout are random."""
        return not (self.warm or self.since) and self.config.warmup_by == "random"

    # Playing

    def play(
        self, moment: Moment, gamma: float, settings: DQNConfig | SACConfig, *, reset_stats: bool
    ) -> dict[str, float]:
        """Play a rollout and store it; return what was earned. anew: the first of an update."""
        collector = self.playing.collector
        made, known = collector.decisions, 0 if reset_stats else len(collector.finished.batches)
        finished = collector.collect(self.rollouts, reset_stats=reset_stats)
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
            self.owed += (collector.decisions - made) * self.config.ratio
        return finished

    def _store(
        self, moment: Moment, settings: DQNConfig | SACConfig, ended: Sequence[Episodes]
    ) -> None:
        rollout, transitions = self.playing.collector.rollout, self.playing.collector.transitions
        if self.bonus is None and any(settings.win_bonus.values):
            self._pay_wins(self.replay.head)
        if self.bonus is None:
            self.replay.push(rollout, transitions)
            return

        def worth(number: int) -> tuple[float, float]:
            then = replace(moment, episodes=self.episodes + number)
            return settings.win_bonus.at(then), settings.win_discount.at(then)

        serials = self.bonus.serials_of(rollout, transitions)
        self.replay.push(rollout, transitions)
        self.bonus.pay(serials, rollout, transitions, ended, worth)

    def _pay_wins(self, since: int) -> None:
        self.bonus = WinBonus(self.replay, since)
        self.replay.unsettled = self.bonus.unsettled

    # Learning

    def learn(
        self, moment: Moment, step: Callable[[ReplayBatch], tuple[Losses, Tensor]]
    ) -> list[Losses]:
        """Make the optimizer steps that the replay ratio asks for; return the losses of each."""
        logged = list[Losses]()
        while (samples := self.sample(moment)) is not None:
            with self.playing.phases("update"):
                losses, error = step(samples)
            self.learned(samples, error)
            logged.append(losses)
        return logged

    def sample(self, moment: Moment) -> ReplayBatch | None:
        """Draw the batch of the next optimizer step; None: the replay ratio asks for no more."""
        if self.owed < self.config.batch or not len(self.replay):
            return None
        with self.playing.phases("sampling"):
            samples = self.replay.sample(self.steps, self.config.priority_correction.at(moment))
            for transform in self.playing.transforms.in_place:
                samples = transform.apply_to_batch(samples, self.steps)
        return samples

    def learned(self, samples: ReplayBatch, error: Tensor) -> None:
        """Count an optimizer step. error: by how much the value of every sample was off."""
        if self.config.prioritized:
            with self.playing.phases("sampling"):
                assert isinstance(samples.places, np.ndarray)
                self.replay.reprioritize(samples.places, error.detach().cpu().numpy())
        self.owed -= self.config.batch
        self.steps += 1

    def diverged(self, updates: int, losses: Losses) -> DivergedError:
        """What to raise instead of a step on losses that are not finite."""
        shown = ", ".join(f"{name} {float(value):g}" for name, value in losses.items())
        return DivergedError(f"update {updates}, optimizer step {self.steps}: {shown}")

    def stats(self, decisions: int, steps: int) -> dict[str, float]:
        """What curves show of an update that began after so many decisions and steps."""
        made, stepped = self.decisions - decisions, self.steps - steps
        samples = stepped * self.config.batch
        return {
            "learning/optimizer_steps": float(stepped),
            "learning/samples": float(samples),
            "learning/decisions": float(made),
            "learning/replay_ratio": samples / max(made, 1),
            "learning/steps_per_decision": stepped / max(made, 1),
            **self.replay.stats(),
        }

    def dry_run(self, learner: Any) -> Report:
        """Do the work of an update with games that cost nothing, and put everything back.

        learner: from replay; has `set_hparams`, `step`, `learned` and `put_learned`.
        """
        kept = {"net": copied(learner.net), **learner.learned()}
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
        left = time.perf_counter() - started - sum(phases.seconds.values())
        phases.seconds["other"] = max(left, 0.0)
        stepped = self.steps - steps
        stats = {
            "learning/optimizer_steps": float(stepped),
            "learning/samples": float(stepped * self.config.batch),
            "learning/decisions": float(self.rounds * collector.rollout.decisions()),
        }
        report = self.playing.collector.report(stats, self.samples)
        self.steps, self.owed = steps, owed
        self.replay.put_weights(weights)
        learner.net.load_state_dict(kept["net"])
        learner.put_learned(kept)
        return report

    # Saving

    def clear(self) -> None:
        """Forget all decisions. What is learned plays on while the replay fills again."""
        self.replay.clear()
        self.since, self.owed = self.decisions, 0.0

    def snapshot(self, updates: int, learned: Mapping[str, dict[str, Tensor]]) -> Snapshot:
        """Copy what the next update depends on. learned: all that learns besides the network."""
        saved = self.playing.snapshot(updates, self.samples)
        tensors, segments = {**saved.tensors, **learned}, dict[str, Segment]()
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
        """Go on from `snapshot`, after the games do."""
        meta = snapshot.meta
        self.rollouts, self.steps, self.owed = meta["rollouts"], meta["steps"], meta["owed"]
        self.episodes = int(meta.get("finished", 0))
        if "replay" in snapshot.tensors:
            self.since = meta.get("since", 0)
            segments = {name: read() for name, read in snapshot.segments.items()}
            self.replay.load_state(snapshot.tensors["replay"], segments, meta["replay"])
            if "bonus_since" in meta:
                self._pay_wins(int(meta["bonus_since"]))
        elif meta["update"]:  # it was not saved, or is to be forgotten: what is learned plays on
            self.since, self.owed = self.decisions, 0.0


def means(logged: Sequence[Losses]) -> dict[str, float]:
    """The mean of every loss over optimizer steps, as curves name it."""
    names = logged[0] if logged else ()
    return {f"losses/{name}": fmean(float(losses[name]) for losses in logged) for name in names}
