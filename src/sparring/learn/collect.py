"""Collecting: a pool is played with policies, and every row is kept for whoever learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from sparring import _native
from sparring.config import CollectConfig
from sparring.errors import ConfigError
from sparring.games.stats import stat_matrices
from sparring.learn.acting import Actor, ActorOutput, Bytes, GroupedActor, PerGameActor, RngKeys
from sparring.learn.forward import Forward
from sparring.learn.learner import Report, Timing
from sparring.learn.rollout import (
    RECORD,
    FinishedEpisodes,
    GameGroup,
    Rollout,
    Truncations,
    groups_of,
)
from sparring.learn.transitions import Transitions
from sparring.nets.distribution import ActionSampler, squash_actions, unsquash_actions
from sparring.nets.net import POLICY, VALUE
from sparring.phases import phase
from sparring.pools.lineups import LEARNER, check_answered
from sparring.pools.protocol import EXACT, FIRST_READY, GamePool, WaitsForAny

UNKNOWN = np.uint32(_native.UNKNOWN_RECORD).astype(np.int32)
"""In place of a record that may have come or not."""


Asks = Sequence[tuple[int, GameGroup]]
"""Groups of games that are asked together, each at a step of its own."""


class Sampling:
    """Draws actions from a network's policy head; keeps log-probabilities, and values if any."""

    def __init__(self, forward: Forward, seed: int) -> None:
        self.forward, self.sampler = forward, ActionSampler(seed)

    @torch.no_grad()
    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row: one batched forward."""
        native = self.forward.native
        if native and isinstance(keys.step, int) and VALUE in native.net.heads:
            where: dict[str, Any] = {"rows": keys.rows, "rollout": keys.rollout}
            drawn = native.draw(obs, mask, seed=self.sampler.seed, step=keys.step, **where)
            kept = {"log_prob": drawn[1], "value": drawn[2]}
            memory = self.forward.memory(obs, {}) if self.forward.remembers else None
            return ActorOutput(drawn[0], kept, memory)
        heads = self.forward(torch.from_numpy(obs))
        action, log_prob = keys.draw(self.sampler, heads[POLICY], mask)
        columns = {"log_prob": log_prob}
        if VALUE in heads:
            columns["value"] = self.forward.net.unscaled_values(heads).cpu().numpy()
        return ActorOutput(action, columns, self.forward.memory(obs, heads))


class Collector:
    """Plays a pool and fills a rollout.

    With several slots the games of one step while the network answers those of another; where the
    pool tells which are ready, those are answered, each at its own step of the rollout.
    """

    def __init__(
        self,
        pool: GamePool,
        config: CollectConfig,
        actor: Actor,
        columns: Sequence[str],
        phases: Timing,
        *,
        squash: bool = False,
        pinned: bool = False,
        by_role: bool = False,
        first_row: int = 0,
    ) -> None:
        """Take over a pool and start its games.

        actor: answers the learner's rows. columns: what it says besides actions.
        by_role: a decision's next one is the seat's next in the same role.
        squash: continuous actions pass through tanh on their way to the games.
        first_row: rows of other pools that go before these, so that each has draws of its own.
        """
        if pool.num_games != config.games:
            raise ConfigError(f"the pool has {pool.num_games} games, the config {config.games}")
        self.pool, self.steps, self.phases, self.squash = pool, config.steps, phases, squash
        self.transitions = Transitions(
            pool.rules, config.games, config.steps, learner=LEARNER, by_role=by_role
        )
        self.rollout = Rollout(pool, self.transitions, config.steps, columns, pinned=pinned)
        self.first_row = first_row
        self.actors: dict[int, Actor] = {LEARNER: actor}
        """Who answers, by policy id."""
        self.slots: GroupedActor | None = None
        """Who answers policies 1 to `slots.slots`, all of them at once."""
        self.decisions = 0
        """The learner's own."""
        self.opponent_rows = 0
        self.finished = FinishedEpisodes()
        pool.reset()
        self.groups = groups_of(pool)
        self._stats, *self._counted = stat_matrices(pool.rules.stats, len(pool.counts()))
        self.any_order = FIRST_READY in pool.can
        """Whether slots are played as each is ready."""

    @property
    def answered(self) -> set[int]:
        """The policies whose rows somebody answers."""
        return {*self.actors, *range(1, self.slots.slots + 1 if self.slots else 1)}

    def met(self) -> npt.NDArray[np.int64] | None:
        """What the learner won, drew and lost against others; None where there are none."""
        rules, episodes = self.pool.rules, self.finished.episodes()
        if episodes is None or (episodes.policy[:, : rules.seats] == LEARNER).all():
            return None
        return episodes.met(max(self.answered) + 1, len(rules.bots))

    @property
    def exact(self) -> bool:
        """Whether the games can be saved."""
        return EXACT in self.pool.can

    def report(self, stats: dict[str, float], samples: int) -> Report:
        """What was earned and learned. samples: trained so far."""
        counts = self.decisions, samples, self.opponent_rows
        return Report(stats, *counts, episodes=self.finished.episodes(), met=self.met())

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        """Play rollout `number` and store every row; return what was earned, and how it was played.

        anew: forget the games that finished in rollouts before, and what was counted.
        """
        if not self.answered.issuperset(self.pool.policies):
            check_answered(self.pool.policies, self.answered)
        self.rollout.final_value.fill(np.nan)
        self.rollout.truncations = Truncations()
        if reset_stats:
            self.finished = FinishedEpisodes()
            self.pool.clear_counts()
        if self.any_order:
            self._play_as_ready(number)
        else:
            self._play_in_turn(number)
        counts = self.pool.counts()
        sums = zip(self._stats, *((part @ counts).tolist() for part in self._counted), strict=True)
        counted = {name: above / below for name, above, below in sums if below}
        fare = cast(WaitsForAny, self.pool).stats() if self.any_order else {}
        return {**self.finished.stats(), **counted, **fare}

    def _play_in_turn(self, number: int) -> None:
        for step in range(self.steps):
            for group in self.groups:
                if step:
                    self._receive(step - 1, group)
                self._ask(number, [(step, group)])
        for group in self.groups:
            self._receive(self.steps - 1, group)

    def _play_as_ready(self, number: int) -> None:
        """Ask whichever slots are ready, those that are so at once together."""
        pool = cast(WaitsForAny, self.pool)
        asks: list[tuple[int, GameGroup]] = [(0, group) for group in self.groups]
        waiting: dict[int, int] = {}
        while asks or waiting:
            if asks:
                self._ask(number, asks)
                waiting |= {group.slot: step for step, group in asks}
            with self.phases("stepping"):
                ready = pool.ready(waiting)
            asks = []
            for slot in ready:
                step, group = waiting.pop(slot), self.groups[slot]
                self._receive(step, group)
                if step + 1 < self.steps:
                    asks.append((step + 1, group))

    def dry_run(self, number: int) -> None:
        """Answer the rows of the last rollout once more, without games."""
        for step in range(self.steps):
            for group in self.groups:
                with self.phases("inference"):
                    self._answer(number, [(step, group)], played=False)

    def _ask(self, number: int, asks: Asks) -> None:
        rollout = self.rollout
        with self.phases("stepping"):
            for step, group in asks:
                batch, rows, at = group.batch, group.rows, self._places(step, group)
                rollout.keep_truth(self.pool, group.games, at)
                rollout.obs[at], rollout.mask[at] = batch.obs, batch.mask
                rollout.seat[step, rows], rollout.role[step, rows] = batch.seat, batch.role
                rollout.policy[step, rows] = policy = batch.policy
                self.decisions += int((policy == LEARNER).sum())
                self.opponent_rows += int((policy > LEARNER).sum())
        with self.phases("inference"):
            self._answer(number, asks)
        if self.by_slot:
            with self.phases("stepping"):
                for step, group in asks:
                    self.pool.send(self._played(self._places(step, group)), group.slot)

    @property
    def by_slot(self) -> bool:
        """Whether slots are sent and received, rather than all games stepped together."""
        return self.any_order or len(self.groups) > 1

    def _answer(self, number: int, asks: Asks, *, played: bool = True) -> None:
        """Choose an action for every row: one call for all slots, one for each other policy.

        played: games go on from here; what is remembered lies behind the seats' next rows then.
        """
        rollout, policy = self.rollout, self._policies(asks)
        mine = policy == LEARNER
        if mine.any():
            places, asked = self._asked(number, asks, mine)
            output = self.actors[LEARNER].act(*asked)
            rollout.action[places] = output.action
            for name, kept in rollout.columns.items():
                kept[places] = output.columns[name]
            if played:
                self._remember(output, asked[2])
        if policy.max() <= LEARNER:  # as a rule; sorting costs as much as all else here
            return
        grouped = (policy > LEARNER) & (policy <= (self.slots.slots if self.slots else 0))
        for one in np.unique(policy[(policy > LEARNER) & ~grouped]):
            check_answered({int(one)}, self.answered)  # it may have sat down under other line-ups
            self._answer_other(number, int(one), asks, played=played)
        if self.slots and grouped.any():
            places, (obs, mask, keys) = self._asked(number, asks, grouped)
            output = self.slots.act(obs, mask, policy[grouped], keys)
            rollout.action[places] = output.action
            if played:
                self._remember(output, keys)

    @phase("opponents")
    def _answer_other(self, number: int, one: int, asks: Asks, *, played: bool) -> None:
        """Ask another policy group by group: its chances may depend on what is asked at once."""
        for ask in asks:
            mine = self._policies([ask]) == one
            if mine.any():
                places, asked = self._asked(number, [ask], mine)
                output = self.actors[one].act(*asked)
                self.rollout.action[places] = unsquash_actions(output.action, squash=self.squash)
                if played:
                    self._remember(output, asked[2])

    def _remember(self, output: ActorOutput, keys: RngKeys) -> None:
        if output.memory is None:
            return
        rows = keys.rows - self.first_row
        seat = self.rollout.seat[keys.step, rows]
        game, size = rows // self.pool.rules.rows, output.memory.shape[1]
        self.pool.memory[game, seat, :size] = output.memory

    def _policies(self, asks: Asks) -> npt.NDArray[np.int16]:
        found = [self.rollout.policy[step, group.rows] for step, group in asks]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _asked(
        self, number: int, asks: Asks, chosen: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.intp] | slice, tuple[Any, Any, RngKeys]]:
        """Where some rows of groups lie, and what their policy is asked."""
        rollout, everyone = self.rollout, bool(chosen.all())
        if len(asks) == 1:
            ((step, group),) = asks
            at = self._places(step, group)
            rows = np.arange(len(chosen)) if everyone else np.flatnonzero(chosen)
            obs = rollout.obs[at] if everyone else rollout.obs[at][rows]
            mask = rollout.mask[at] if everyone else rollout.mask[at][rows]
            numbers = self.first_row + group.rows.start + rows
            places = at if everyone else at.start + rows
            return places, (obs, mask, RngKeys(number, step, numbers))
        rows = np.concatenate([np.arange(g.rows.start, g.rows.stop) for _, g in asks])[chosen]
        lengths = [group.rows.stop - group.rows.start for _, group in asks]
        steps = np.repeat([step for step, _ in asks], lengths)[chosen]
        places = self.transitions.max_pending + steps * (self.pool.num_games * self.pool.rules.rows)
        places += rows
        keys = RngKeys(number, steps, self.first_row + rows)
        return places, (rollout.obs[places], rollout.mask[places], keys)

    def _receive(self, step: int, group: GameGroup) -> None:
        rollout, games = self.rollout, group.games
        with self.phases("stepping"):
            if self.by_slot:
                batch = self.pool.recv(group.slot)
            else:
                batch = self.pool.step(self._played(self._places(step, group)))
            group.batch = batch
            rollout.reward[step, games], rollout.skipped[step, games] = batch.reward, batch.skipped
            rollout.terminated[step, games] = batch.terminated
            rollout.truncated[step, games] = batch.truncated
            if rollout.record is not None:
                rollout.record[step, games] = cast(Any, batch).record
            self.finished.add(batch, games.start)
            self._tell_begun(batch, games.start)
            if batch.truncated.any():
                rollout.truncations.add(self.pool.rules, step, games.start, batch, rollout)

    def _tell_begun(self, batch: Any = None, first: int = 0) -> None:
        """Tell actors which games of a batch ended, and so begin anew; without a batch all.

        first: the number in the pool of the batch's first game.
        """
        for actor in self.actors.values():
            if isinstance(actor, PerGameActor):
                if batch is None:
                    actor.begin()
                    continue
                first_game = self.first_row // self.pool.rules.rows + first
                ended = np.flatnonzero(batch.terminated | batch.truncated)
                actor.begin((first_game + ended).tolist())

    def _played(self, at: slice) -> npt.NDArray[Any]:
        action = self.rollout.action[at]
        return squash_actions(action, squash=True) if self.squash else action

    def _places(self, step: int, group: GameGroup) -> slice:
        """Where the rows of a group lie in the rollout."""
        first = self.transitions.max_pending + step * self.pool.num_games * self.pool.rules.rows
        return slice(first + group.rows.start, first + group.rows.stop)

    def link(
        self,
        gamma: float,
        gamma_into: Sequence[float] = (),
        *,
        gamma_of: Sequence[float] = (),
        ended_by: Sequence[int] = (),
        by_final_role: bool = False,
        required: bool = True,
    ) -> npt.NDArray[np.intp]:
        """Turn the rows into transitions; return the places that can be learned from.

        gamma_of, ended_by: by role, see `Transitions.link`.
        by_final_role: what a cut game would still have paid is known for one role of each seat.
        demand: there have to be some.
        """
        rollout = self.rollout
        self.transitions.link(
            seat=rollout.seat,
            role=rollout.role,
            policy=rollout.policy,
            reward=rollout.reward,
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            final_value=rollout.final_value,
            skipped=rollout.skipped,
            gamma=gamma,
            gamma_into=gamma_into,
            gamma_of=gamma_of,
            ended_by=ended_by,
            final_role=rollout.final_role if by_final_role else None,
        )
        rollout.find_records(self.transitions)
        samples = self.transitions.samples()
        if required and not len(samples):
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        return samples

    def keep_pending(self) -> None:
        """Keep the decisions that are still open for the next rollout."""
        self.rollout.keep_pending(self.transitions)

    def pending_state(self) -> tuple[dict[str, torch.Tensor], bytes]:
        """Copy the decisions that are still open, and their rows."""
        max_pending, rows = self.transitions.max_pending, self.rollout.kept().items()
        kept = {name: torch.from_numpy(array[:max_pending].copy()) for name, array in rows}
        return kept, self.transitions.pending.tobytes()

    def load_pending_rows(self, rows: Mapping[str, torch.Tensor], pending: bytes) -> None:
        """Go on with the open decisions of another moment."""
        self.transitions.load_pending(pending, rows["action"].numpy())
        for name, array in self.rollout.kept().items():
            # Saved without records, nobody knows whether goals were settled before.
            known = rows[name].numpy() if name != RECORD or name in rows else UNKNOWN
            array[: self.transitions.max_pending] = known

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, bytes]]:
        """Return the rows of open decisions, and the games in flight if they can be saved."""
        rows, pending = self.pending_state()
        if not self.exact:
            return rows, {}
        return rows, {"games.bin": self.pool.state(), "open.bin": pending}

    def load_state(
        self, rows: Mapping[str, torch.Tensor], blobs: Mapping[str, bytes], meta: Mapping[str, Any]
    ) -> None:
        """Continue from `state`, and with its counts."""
        self.decisions = int(meta["decisions"])
        self.opponent_rows = int(meta.get("opponent_rows", 0))
        if "games.bin" not in blobs:
            return
        self.load_pending_rows(rows, blobs["open.bin"])
        self.pool.load_state(blobs["games.bin"])
        self.groups = groups_of(self.pool)
        self._tell_begun()

    def begin(self, seed: int) -> None:
        """Begin other games than those that the pool was made with."""
        self.pool.reset(seed=seed)
        self.groups = groups_of(self.pool)
        self._tell_begun()
