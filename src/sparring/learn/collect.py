"""Collection of rollouts: steps the games of a pool with policies and stores every row."""

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
from sparring.learn.acting import (
    Actor,
    ActorOutput,
    Bytes,
    CountingActor,
    GroupedActor,
    PerGameActor,
    RngKeys,
)
from sparring.learn.forward import Forward
from sparring.learn.learner import GAMES, PENDING, Report
from sparring.learn.rollout import (
    RECORD,
    Columns,
    FinishedGames,
    GameGroup,
    Rollout,
    Truncations,
    groups_of,
)
from sparring.learn.transitions import Transitions
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import POLICY, VALUE
from sparring.nets.sampling import ActionSampler, squash_actions, unsquash_actions
from sparring.phases import Timing, phase
from sparring.pools.lineups import LEARNER, check_answered
from sparring.pools.protocol import EXACT, FIRST_READY, GamePool, WaitsForAny

UNKNOWN = np.uint32(_native.UNKNOWN_GOAL_RESULT).astype(np.int32)
"""Marks a goal result that is not known."""


GroupSteps = Sequence[tuple[int, GameGroup]]
"""Groups of games whose rows are batched, each with its step of the rollout."""


class Sampling:
    """Samples actions from the policy head; stores log-probabilities, and values if there are."""

    def __init__(self, forward: Forward, seed: int) -> None:
        self.forward, self.sampler = forward, ActionSampler(seed)

    @torch.no_grad()
    def act(self, obs: Bytes, mask: Bytes, keys: RngKeys) -> ActorOutput:
        """Choose an action for every row in one batched forward pass."""
        native = self.forward.native
        if native and isinstance(keys.step, int) and VALUE in native.net.heads:
            where: dict[str, Any] = {"rows": keys.rows, "rollout": keys.rollout}
            drawn = native.draw(obs, mask, seed=self.sampler.seed, step=keys.step, **where)
            stored = {"log_prob": drawn[1], "value": drawn[2]}
            memory = self.forward.memory(obs, {}) if self.forward.has_memory else None
            return ActorOutput(drawn[0], stored, memory)
        heads = self.forward(torch.from_numpy(obs))
        action, log_prob = keys.draw(self.sampler, heads[POLICY], mask)
        columns = {"log_prob": log_prob}
        if VALUE in heads:
            columns["value"] = self.forward.net.unscaled_values(heads).cpu().numpy()
        return ActorOutput(action, columns, self.forward.memory(obs, heads))


class Collector:
    """Steps a pool and fills a rollout.

    With several groups of games, one group steps while the network computes actions of another. If
    the pool can tell which groups are ready, groups may be at different steps of the rollout.
    """

    def __init__(
        self,
        pool: GamePool,
        config: CollectConfig,
        actor: Actor,
        columns: Columns,
        phases: Timing,
        *,
        squash: bool = False,
        pinned: bool = False,
        by_role: bool = False,
        first_row: int = 0,
        seeing: CriticRows | None = None,
    ) -> None:
        """Reset the pool's games.

        actor: acts for the learner. columns: arrays that it stores besides actions.
        by_role: link a decision with the seat's next one in the same role.
        squash: continuous actions pass through tanh before games get them.
        first_row: index of the pool's first row among all pools, for random numbers.
        seeing: the learner's rows, if they also hold what is hidden; others get the pool's.
        """
        if pool.num_games != config.games:
            raise ConfigError(f"the pool has {pool.num_games} games, the config {config.games}")
        self.pool, self.steps, self.phases, self.squash = pool, config.steps, phases, squash
        self.transitions = Transitions(
            pool.rules, config.games, config.steps, learner=LEARNER, by_role=by_role
        )
        self.seeing, row_bytes = seeing, seeing.row_bytes if seeing else pool.row_bytes
        self.rollout = Rollout(
            pool, self.transitions, config.steps, columns, pinned=pinned, row_bytes=row_bytes
        )
        self.first_row = first_row
        self.actors: dict[int, Actor] = {LEARNER: actor}
        """Actors by policy id."""
        self.slots: GroupedActor | None = None
        """Acts for policies 1 to `slots.slots` in one batch."""
        self.work = dict.fromkeys(actor.counted if isinstance(actor, CountingActor) else (), 0.0)
        """Work of the learner's actor in the last rollout, such as simulations, by metric."""
        self.decisions = 0
        """Decisions of the learner."""
        self.opponent_rows = 0
        self.finished = FinishedGames()
        pool.reset()
        self.groups = groups_of(pool)
        self._stats, *self._counted = stat_matrices(pool.rules.stats, len(pool.counts()))
        self.any_order = FIRST_READY in pool.can
        """Whether groups step as soon as each is ready."""

    @property
    def answered(self) -> set[int]:
        """Ids of the policies that have an actor."""
        return {*self.actors, *range(1, self.slots.slots + 1 if self.slots else 1)}

    def met(self) -> npt.NDArray[np.int64] | None:
        """Games won, drawn and lost against each opponent; None in pure self-play."""
        rules, episodes = self.pool.rules, self.finished.episodes()
        if episodes is None or (episodes.policy[:, : rules.seats] == LEARNER).all():
            return None
        return episodes.met(max(self.answered) + 1, len(rules.bots))

    @property
    def exact(self) -> bool:
        """Whether the games can be saved."""
        return EXACT in self.pool.can

    def report(self, stats: dict[str, float], samples: int) -> Report:
        """Make the report of an update. samples: learned from since the run began."""
        counts = self.decisions, samples, self.opponent_rows
        return Report(stats, *counts, episodes=self.finished.episodes(), met=self.met())

    def collect(self, number: int, *, reset_stats: bool = True) -> dict[str, float]:
        """Collect rollout `number`; return stats of finished games and of the pool.

        reset_stats: leave out games that finished in earlier rollouts.
        """
        if not self.answered.issuperset(self.pool.policies):
            check_answered(self.pool.policies, self.answered)
        self.rollout.final_value.fill(np.nan)
        self.rollout.truncations = Truncations()
        if reset_stats:
            self.finished = FinishedGames()
            self.pool.clear_counts()
        if self.any_order:
            self._collect_as_ready(number)
        else:
            self._collect_in_order(number)
        counts = self.pool.counts()
        sums = zip(self._stats, *((part @ counts).tolist() for part in self._counted), strict=True)
        counted = {name: above / below for name, above, below in sums if below}
        waiting = cast(WaitsForAny, self.pool).stats() if self.any_order else {}
        return {**self.finished.stats(), **counted, **waiting, **self.count_work()}

    def count_work(self) -> dict[str, float]:
        """Read what the learner's actor has counted since the last call, by metric."""
        actor = self.actors[LEARNER]
        if isinstance(actor, CountingActor):
            self.work = dict(zip(actor.counted, map(float, actor.pop_counts()), strict=True))
        return self.work

    def _collect_in_order(self, number: int) -> None:
        for step in range(self.steps):
            for group in self.groups:
                if step:
                    self._receive(step - 1, group)
                self._act_and_send(number, [(step, group)])
        for group in self.groups:
            self._receive(self.steps - 1, group)

    def _collect_as_ready(self, number: int) -> None:
        """Act for groups that are ready; those ready at once form one batch."""
        pool = cast(WaitsForAny, self.pool)
        group_steps: list[tuple[int, GameGroup]] = [(0, group) for group in self.groups]
        waiting: dict[int, int] = {}
        while group_steps or waiting:
            if group_steps:
                self._act_and_send(number, group_steps)
                waiting |= {group.slot: step for step, group in group_steps}
            with self.phases("stepping"):
                ready = pool.ready(waiting)
            group_steps = []
            for slot in ready:
                step, group = waiting.pop(slot), self.groups[slot]
                self._receive(step, group)
                if step + 1 < self.steps:
                    group_steps.append((step + 1, group))

    def dry_run(self, number: int) -> None:
        """Act on the rows of the last rollout again, without stepping games."""
        for step in range(self.steps):
            for group in self.groups:
                with self.phases("inference"):
                    self._act(number, [(step, group)], played=False)

    def _act_and_send(self, number: int, group_steps: GroupSteps) -> None:
        rollout = self.rollout
        with self.phases("stepping"):
            for step, group in group_steps:
                batch, rows, at = group.batch, group.rows, self._places(step, group)
                rollout.store_truth(self.pool, group.games, at)
                rollout.obs[at], rollout.mask[at] = self._rows_of(group), batch.mask
                rollout.seat[step, rows], rollout.role[step, rows] = batch.seat, batch.role
                rollout.policy[step, rows] = policy = batch.policy
                self.decisions += int((policy == LEARNER).sum())
                self.opponent_rows += int((policy > LEARNER).sum())
        with self.phases("inference"):
            self._act(number, group_steps)
        if self.by_slot:
            with self.phases("stepping"):
                for step, group in group_steps:
                    self.pool.send(self._env_actions(self._places(step, group)), group.slot)

    def _rows_of(self, group: GameGroup) -> Bytes:
        """Return the rows that are stored: the pool's, or those of a learner that sees."""
        if self.seeing is None:
            return group.batch.obs
        rows = np.arange(group.rows.start, group.rows.stop)
        return self.seeing.of_pool(self.pool, rows, group.batch.obs, group.batch.seat)

    def _as_seen(self, inputs: tuple[Bytes, Bytes, RngKeys]) -> tuple[Bytes, Bytes, RngKeys]:
        """Return the arguments of `Actor.act` for others than the learner: they see no more."""
        if self.seeing is None:
            return inputs
        obs, mask, keys = inputs
        return np.ascontiguousarray(obs[:, self.seeing.width :]), mask, keys

    @property
    def by_slot(self) -> bool:
        """Whether groups are sent and received one by one, instead of `pool.step`."""
        return self.any_order or len(self.groups) > 1

    def _act(self, number: int, group_steps: GroupSteps, *, played: bool = True) -> None:
        """Choose an action for every row: one batch for all slots, one per other policy.

        played: games step with these actions, so that memory is written to the pool.
        """
        rollout, policy = self.rollout, self._policies(group_steps)
        selected = policy == LEARNER
        if selected.any():
            places, inputs = self._actor_inputs(number, group_steps, selected)
            output = self.actors[LEARNER].act(*inputs)
            rollout.action[places] = output.action
            for name, stored in rollout.columns.items():
                stored[places] = output.columns[name]
            if played:
                self._store_memory(output, inputs[2])
        if policy.max() <= LEARNER:  # usually; np.unique costs as much as all else here
            return
        grouped = (policy > LEARNER) & (policy <= (self.slots.slots if self.slots else 0))
        for policy_id in np.unique(policy[(policy > LEARNER) & ~grouped]):
            check_answered({int(policy_id)}, self.answered)  # line-ups may have changed since
            self._act_for_other(number, int(policy_id), group_steps, played=played)
        if self.slots and grouped.any():
            places, inputs = self._actor_inputs(number, group_steps, grouped)
            obs, mask, keys = self._as_seen(inputs)
            output = self.slots.act(obs, mask, policy[grouped], keys)
            rollout.action[places] = output.action
            if played:
                self._store_memory(output, keys)

    @phase("opponents")
    def _act_for_other(
        self, number: int, policy_id: int, group_steps: GroupSteps, *, played: bool
    ) -> None:
        """Act for one other policy group by group: its results may depend on the batch."""
        for group_step in group_steps:
            selected = self._policies([group_step]) == policy_id
            if selected.any():
                places, inputs = self._actor_inputs(number, [group_step], selected)
                output = self.actors[policy_id].act(*self._as_seen(inputs))
                self.rollout.action[places] = unsquash_actions(output.action, squash=self.squash)
                if played:
                    self._store_memory(output, inputs[2])

    def _store_memory(self, output: ActorOutput, keys: RngKeys) -> None:
        if output.memory is None:
            return
        rows = keys.rows - self.first_row
        seat = self.rollout.seat[keys.step, rows]
        game, size = rows // self.pool.rules.rows, output.memory.shape[1]
        self.pool.memory[game, seat, :size] = output.memory

    def _policies(self, group_steps: GroupSteps) -> npt.NDArray[np.int16]:
        policies = [self.rollout.policy[step, group.rows] for step, group in group_steps]
        return policies[0] if len(policies) == 1 else np.concatenate(policies)

    def _actor_inputs(
        self, number: int, group_steps: GroupSteps, chosen: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.intp] | slice, tuple[Any, Any, RngKeys]]:
        """Return the places of some rows of groups, and the arguments of `Actor.act`."""
        rollout, all_rows = self.rollout, bool(chosen.all())
        if len(group_steps) == 1:
            ((step, group),) = group_steps
            at = self._places(step, group)
            rows = np.arange(len(chosen)) if all_rows else np.flatnonzero(chosen)
            obs = rollout.obs[at] if all_rows else rollout.obs[at][rows]
            mask = rollout.mask[at] if all_rows else rollout.mask[at][rows]
            numbers = self.first_row + group.rows.start + rows
            places = at if all_rows else at.start + rows
            return places, (obs, mask, RngKeys(number, step, numbers))
        rows = np.concatenate([np.arange(g.rows.start, g.rows.stop) for _, g in group_steps])[
            chosen
        ]
        lengths = [group.rows.stop - group.rows.start for _, group in group_steps]
        steps = np.repeat([step for step, _ in group_steps], lengths)[chosen]
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
                batch = self.pool.step(self._env_actions(self._places(step, group)))
            group.batch = batch
            rollout.reward[step, games], rollout.skipped[step, games] = batch.reward, batch.skipped
            rollout.terminated[step, games] = batch.terminated
            rollout.truncated[step, games] = batch.truncated
            if rollout.record is not None:
                rollout.record[step, games] = cast(Any, batch).record
            self.finished.add(batch, games.start)
            self._notify_reset(batch, games.start)
            # Games restart in the step that ends them: what was hidden there is not known, and the
            # last decisions of who sees are left out.
            if batch.truncated.any() and self.seeing is None:
                rollout.truncations.add(self.pool.rules, step, games.start, batch, rollout)

    def _notify_reset(self, batch: Any = None, first: int = 0) -> None:
        """Notify actors of games that ended in a batch; without a batch, of all games.

        first: index in the pool of the batch's first game.
        """
        for actor in self.actors.values():
            if isinstance(actor, PerGameActor):
                if batch is None:
                    actor.begin()
                    continue
                first_game = self.first_row // self.pool.rules.rows + first
                ended = np.flatnonzero(batch.terminated | batch.truncated)
                actor.begin((first_game + ended).tolist())

    def _env_actions(self, at: slice) -> npt.NDArray[Any]:
        action = self.rollout.action[at]
        return squash_actions(action, squash=True) if self.squash else action

    def _places(self, step: int, group: GameGroup) -> slice:
        """Places of the rows of a group in the rollout."""
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
        """Link rows into transitions; return the places of complete ones.

        gamma_of, ended_by: by role, see `Transitions.link`.
        by_final_role: the value after a truncation belongs to one role of each seat.
        required: raise if there is none.
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
        """Move pending transitions to the front of the rollout, for the next one."""
        self.rollout.keep_pending(self.transitions)

    def pending_state(self) -> tuple[dict[str, torch.Tensor], bytes]:
        """Copy the rows of pending transitions, and the transitions as bytes."""
        max_pending, rows = self.transitions.max_pending, self.rollout.pending_arrays().items()
        stored = {name: torch.from_numpy(array[:max_pending].copy()) for name, array in rows}
        return stored, self.transitions.pending.tobytes()

    def load_pending_rows(self, rows: Mapping[str, torch.Tensor], pending: bytes) -> None:
        """Restore `pending_state`."""
        self.transitions.load_pending(pending, rows["action"].numpy())
        for name, array in self.rollout.pending_arrays().items():
            # A checkpoint without hindsight has no goal results.
            known = rows[name].numpy() if name != RECORD or name in rows else UNKNOWN
            array[: self.transitions.max_pending] = known

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, bytes]]:
        """Return the rows of pending transitions, and the running games if they can be saved."""
        rows, pending = self.pending_state()
        if not self.exact:
            return rows, {}
        return rows, {GAMES: self.pool.state(), PENDING: pending}

    def load_state(
        self, rows: Mapping[str, torch.Tensor], blobs: Mapping[str, bytes], meta: Mapping[str, Any]
    ) -> None:
        """Restore `state` and the counts in `meta`."""
        self.decisions = int(meta["decisions"])
        self.opponent_rows = int(meta.get("opponent_rows", 0))
        if GAMES not in blobs:
            return
        self.load_pending_rows(rows, blobs[PENDING])
        self.pool.load_state(blobs[GAMES])
        self.groups = groups_of(self.pool)
        self._notify_reset()

    def begin(self, seed: int) -> None:
        """Reset the pool with another seed."""
        self.pool.reset(seed=seed)
        self.groups = groups_of(self.pool)
        self._notify_reset()
