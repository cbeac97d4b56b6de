"""PPO on a GPU: games, rollout, advantages and update as two CUDA graphs.

The same algorithm as `learn.ppo`, which stays the readable one and the one for CPUs; tests hold
the two equal. Nothing waits for the device inside an update, nothing is allocated, and Python
runs once per update. Several members of a population learn side by side in the same arrays.
Games may also live on CPU threads (`learn.host_games`); then their rollout is no graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.kernels import i64
from sparring.learn.host_games import HostGames
from sparring.learn.learner import DivergedError
from sparring.learn.phases import Phases
from sparring.learn.ppo import SCALE_MEMORY, Knobs
from sparring.nets.flat import VALUE_WIDTH, FlatNet, Pass
from sparring.nets.fused_mlp import FusedPerceptron
from sparring.nets.fused_residual import FusedResidual
from sparring.nets.make import make_net
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment

BETAS, EPSILON = (0.9, 0.999), 1e-5
"""Adam's, as in `learn.ppo`."""
KNOBS = tuple(field.name for field in fields(Knobs))
"""What members may have of their own, in the order of `Knobs` in csrc/cuda/learn.cuh."""
SHARED = ("epochs", "minibatch")
"""What all members of a population have in common: the shapes."""
MOMENT_BLOCKS, SQUARE_BLOCKS = 256, 128


Games = CudaPool | HostGames


class FusedRollout:
    """The arrays of a rollout, as `learn.rollout.Rollout` has them, on the device.

    Rows lie behind the places of decisions carried over from the rollout before. Masks are bits.
    """

    def __init__(self, pool: Games, steps: int) -> None:
        rules, games, device = pool.rules, pool.num_games, pool.device
        rows, seats, words = games * rules.rows, rules.seats, rules.legal_words
        self.rows, self.carried = rows, games * seats
        self.places = self.carried + steps * rows
        with torch.device(device):
            self.obs = torch.zeros(self.places, rules.obs_bytes, dtype=torch.uint8)
            self.legal = torch.zeros(self.places, words, dtype=torch.int64)
            self.action = torch.zeros(self.places, dtype=torch.int32)
            if rules.box:  # as drawn, before bounds or squashing
                self.action = torch.zeros(self.places, rules.box)
            self.played = torch.zeros(rows, rules.box)
            """What the games are given in a step, if that is not what was drawn."""
            self.log_prob = torch.zeros(self.places)
            self.value = torch.zeros(self.places)
            self.seat = torch.zeros(steps, rows, dtype=torch.int8)
            self.role = torch.zeros(steps, rows, dtype=torch.int8)
            self.policy = torch.zeros(steps, rows, dtype=torch.int16)
            self.reward = torch.zeros(steps, games, seats, len(rules.roles))
            self.skipped = torch.zeros(steps, games, seats, dtype=torch.uint16)
            self.terminated = torch.zeros(steps, games, dtype=torch.bool)
            self.truncated = torch.zeros(steps, games, dtype=torch.bool)
            self.final_value = torch.zeros(steps, games, seats)
            # Games that ended: sums, and what is seen where they were cut (one room per game).
            members, room = len(pool.seeds), pool.each * rules.rows
            self.earned = torch.zeros(games, 4)
            self.cut_obs = torch.zeros(members, room, rules.obs_bytes, dtype=torch.uint8)
            self.cut_at = torch.zeros(members, room, dtype=torch.int32)
            self.cut_count = torch.zeros(members, dtype=torch.int32)
            # Links and advantages, and decisions that wait for the same seat's next one.
            self.open = torch.zeros(self.carried, 4, dtype=torch.int32)
            self.open[:, 0] = -1
            self.link = torch.zeros(self.places, dtype=torch.uint8)
            self.next = torch.zeros(self.places, dtype=torch.int32)
            self.paid = torch.zeros(self.places)
            self.discount = torch.zeros(self.places)
            self.tail = torch.zeros(self.places)
            self.advantage = torch.zeros(self.places)

    def at(self, step: int) -> slice:
        """The places of a step's rows."""
        first = self.carried + step * self.rows
        return slice(first, first + self.rows)

    def rows_of(self, step: int) -> tuple[Tensor, ...]:
        """Where the rows of a step are written."""
        at = self.at(step)
        rows = self.seat[step], self.role[step], self.policy[step]
        return self.obs[at], self.legal[at], *rows

    def outcome_of(self, step: int) -> tuple[Tensor, ...]:
        """Where what a step brought is written."""
        ends = self.terminated[step], self.truncated[step]
        return self.reward[step], self.skipped[step], *ends


class FusedPPO:
    """The learner of one member or of a whole population."""

    def __init__(
        self,
        pool: Games,
        collect: CollectConfig,
        configs: PPOConfig | Sequence[PPOConfig],
        net: NetConfig,
        *,
        graphs: bool = True,
    ) -> None:
        """Take over a pool whose seeds are those of the members.

        configs: one for all members, or one each; they may differ in `KNOBS` and `gamma_into`.
        graphs: False launches every kernel from Python, for debugging.
        """
        self.members, self.pool = len(pool.seeds), pool
        given = [configs] * self.members if isinstance(configs, PPOConfig) else list(configs)
        self.configs, self.config, self.collect = given, given[0], collect
        check_configs(pool, collect, given)
        self.device, self.graphs = pool.device, graphs
        make: type[FusedResidual | FusedPerceptron] = (
            FusedResidual if net.kind == "residual" else FusedPerceptron
        )
        self.net: FlatNet = make(
            pool.rules, net, self.members, bf16=collect.bf16, device=self.device
        )
        for member, seed in enumerate(pool.seeds):
            torch.manual_seed(seed)
            self.net.load(member, make_net(pool.rules, net).state_dict())
        pool.reset()
        self._make_arrays()
        self.updates = 0
        self.decisions, self.samples = [0] * self.members, [0] * self.members
        self.phases = Phases()
        self._captured: dict[str, torch.cuda.CUDAGraph] = {}
        self._ran: set[str] = set()
        self._ended_at = time.perf_counter()

    def _make_arrays(self) -> None:
        """Everything that rollout and update write, once and for all."""
        config, pool, members = self.config, self.pool, self.members
        self.rollout = FusedRollout(pool, self.collect.steps)
        rows_each = pool.each * pool.rules.rows
        samples = self.collect.steps * rows_each
        self.parts = max(1, round(samples / config.minibatch))
        self.room = -(-samples // (8 * self.parts)) * 8
        answered = pool.slot_rows if isinstance(pool, HostGames) else rows_each
        self.acting = self.net.passing(answered, learn=False)
        self.cutting = self.acting
        if answered != rows_each:
            self.cutting = self.net.passing(rows_each, learn=False)
        self.learning = self.net.passing(self.room, learn=True)
        self.block_rows = 256 if pool.rules.box else 8  # a thread draws a row, or a warp does
        self.loss_blocks = -(-self.room // self.block_rows)
        places_each = self.rollout.places // members
        with torch.device(self.device):
            self.knobs = torch.zeros(members, len(KNOBS))
            self.clock = torch.zeros(1, dtype=torch.int32)
            # The bits of unsigned 64-bit seeds.
            seeds = np.array([seed % 2**64 for seed in pool.seeds], np.uint64)
            self.seeds = torch.from_numpy(seeds.view(np.int64)).to(self.device)
            self.gamma_into = torch.tensor([self._discounts(c) for c in self.configs])
            self.marks = torch.zeros(members, places_each, dtype=torch.int32)
            self.ranks = torch.zeros(members, places_each, dtype=torch.int32)
            self.list = torch.zeros(members, places_each, dtype=torch.int32)
            self.sample_counts = torch.zeros(members, dtype=torch.int32)
            self.moments = torch.zeros(members, MOMENT_BLOCKS, 4, dtype=torch.float64)
            self.aims = torch.zeros(members, 5)
            self.tallies = torch.zeros(members, 7)
            self.stopped = torch.zeros(members, dtype=torch.uint8)
            self.diverged = torch.zeros(members, dtype=torch.uint8)
            self.picked = torch.zeros(self.parts, members, self.room, dtype=torch.int32)
            self.losses = torch.zeros(members, self.loss_blocks, 5)
            self.means = torch.zeros(self.parts, members, 5)
            self.squares = torch.zeros(members, SQUARE_BLOCKS)
            self.plans = torch.zeros(members, 4)
            self.steps = torch.zeros(members, dtype=torch.int32)
            self.first_moment = torch.zeros_like(self.net.weight)
            self.second_moment = torch.zeros_like(self.net.weight)
            self.stats = torch.zeros(members, 19, dtype=torch.float64)
        self._stats_host = torch.zeros(self.stats.shape, dtype=torch.float64, pin_memory=True)
        self._knobs_host = torch.zeros(members, len(KNOBS), pin_memory=True)
        self._events: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(3)]  # type: ignore[no-untyped-call]

    def _discounts(self, config: PPOConfig) -> list[float]:
        """The discount of a step into each role."""
        roles = self.pool.rules.roles
        if len(config.gamma_into) not in (0, len(roles)):
            raise ConfigError(f"gamma_into needs one discount per role: {', '.join(roles)}")
        first = Knobs.at(config, Moment(0, 0.0))
        return [float(g) for g in config.gamma_into] or [first.gamma] * len(roles)

    def iterate(self, progress: float) -> list[dict[str, float]]:
        """Play a rollout and learn from it; returns what each member earned and learned."""
        self._turn_knobs(progress)
        took = self._work("rollout", self._play)
        now = time.perf_counter()
        busy = min(took / max(now - self._ended_at, 1e-9), 1.0)
        self._ended_at = now
        self.updates += 1
        reports = [self._report(member, busy) for member in range(self.members)]
        for member, report in enumerate(reports):
            self._count(member, report)
        return reports

    def rehearse(self) -> list[dict[str, float]]:
        """The same work with free games: the rows of the last rollout are answered once more.

        Weights and open decisions are put back, so that training goes on as if nothing had been.
        """
        net, rollout = self.net, self.rollout
        front = slice(0, rollout.carried)
        kept = [
            *(net.weight, net.compute, net.value_scale, rollout.open),
            *(self.first_moment, self.second_moment, self.steps),
            *(rollout.obs[front], rollout.legal[front], rollout.action[front]),
            *(rollout.log_prob[front], rollout.value[front]),
        ]
        before = [tensor.clone() for tensor in kept]
        self._work("free rollout", lambda: self._play(step_games=False))
        for tensor, old in zip(kept, before, strict=True):
            tensor.copy_(old)
        torch.cuda.synchronize()
        return [self._report(member, 1.0) for member in range(self.members)]

    def _work(self, name: str, rollout: Callable[[], None]) -> float:
        """Run rollout and update, wait for them, and return the device's seconds."""
        start, middle, end = self._events
        start.record()
        if isinstance(self.pool, HostGames) and name == "rollout":
            rollout()
        else:
            self._run(name, rollout)
        middle.record()
        self._run("update", self._learn)
        end.record()
        self._stats_host.copy_(self.stats, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        self.phases.seconds = {
            "rollout": start.elapsed_time(middle) / 1000,
            "update": middle.elapsed_time(end) / 1000,
        }
        return float(start.elapsed_time(end)) / 1000

    def counts(self) -> list[tuple[int, int]]:
        """Decisions made and samples learned from so far, by member."""
        return list(zip(self.decisions, self.samples, strict=True))

    def carried_of(self, member: int) -> slice:
        """The places of a member's decisions that wait for their seat's next one."""
        each = self.rollout.carried // self.members
        return slice(member * each, (member + 1) * each)

    def _turn_knobs(self, progress: float) -> None:
        """Send schedules and the update's number to the device."""
        for member, config in enumerate(self.configs):
            knobs = Knobs.at(config, Moment(self.decisions[member], progress))
            self._knobs_host[member] = torch.tensor([getattr(knobs, name) for name in KNOBS])
        self.knobs.copy_(self._knobs_host, non_blocking=True)
        self.clock.fill_(self.updates)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        """Replay a graph. The first time runs without one, which also wakes up every library."""
        if not self.graphs or name not in self._ran:
            self._ran.add(name)
            work()
            return
        if name not in self._captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                work()
            self._captured[name] = graph
        self._captured[name].replay()

    # Rollout

    def _play(self, *, step_games: bool = True) -> None:
        """Play `steps` steps. Without the games, the networks answer the rows of the last ones."""
        rollout, steps = self.rollout, self.collect.steps
        rollout.final_value.fill_(torch.nan)
        if isinstance(self.pool, HostGames):
            if step_games:
                self.pool.play(self)
            else:
                self._answer_all()
            return
        batch = self.pool.batch()
        if step_games:
            rollout.earned.zero_()
            rollout.cut_count.zero_()
            for to, fresh in zip(rollout.rows_of(0), batch.rows(), strict=True):
                to.copy_(fresh)
        ends = rollout.earned, rollout.cut_obs, rollout.cut_at, rollout.cut_count
        for step in range(steps):
            self._answer(step, slice(0, rollout.rows))
            if not step_games:
                continue
            last = step == steps - 1
            following = batch.rows() if last else rollout.rows_of(step + 1)
            at = rollout.at(step)
            self.pool.step_into(
                legal_before=rollout.legal[at],
                action=rollout.played if self.net.squash else rollout.action[at],
                rows=following,
                outcome=rollout.outcome_of(step),
                ends=ends,
                step=step,
            )

    def _answer_all(self) -> None:
        """Answer the rows of every step and slot, without games."""
        for step in range(self.collect.steps):
            for first in range(0, self.rollout.rows, self.acting.rows):
                self._answer(step, slice(first, first + self.acting.rows))

    def answer(self, step: int, rows: slice) -> None:
        """Answer some rows of a step, as a graph of their own once everything is warm."""
        self._run(f"answer {step} {rows.start}", lambda: self._answer(step, rows))

    def _answer(self, step: int, rows: slice) -> None:
        """One forward pass for rows of a step, and an action for each."""
        rollout, net = self.rollout, self.net
        first, count = rollout.at(step).start, rows.stop - rows.start
        at = slice(first + rows.start, first + rows.stop)
        self.acting.widen(rollout.obs[at])
        self.acting.forward()
        net.kernels.draw(
            -(-count // self.block_rows),
            256,
            *self._heads(self.acting),
            *(rollout.legal[at], rollout.policy[step, rows], self.seeds, self.clock),
            *(net.value_scale, count, count // self.members, rows.start, step),
            *(rollout.action[at], rollout.log_prob[at], rollout.value[at]),
            rollout.played if net.squash else None,
        )

    def _heads(self, at: Pass) -> tuple[object, ...]:
        """Logits and values of a pass with their biases, as the kernels take them."""
        net = self.net
        return (
            at.logits,
            at.value,
            VALUE_WIDTH,
            net.policy_bias,
            net.view(net.weight, "value_head.bias"),
            i64(net.size),
        )

    # Update

    def _learn(self) -> None:
        """Advantages, epochs over shuffled minibatches, and what is carried on."""
        self._value_cuts()
        self._weigh()
        for epoch in range(self.config.epochs):
            self._shuffle(epoch)
            for part in range(self.parts):
                self._descend(part)
            self.net.kernels.end_epoch(
                1, self.members, self.means, self.members, self.parts, self.knobs, self.stopped
            )
        rollout = self.rollout
        self.net.kernels.carry(
            -(-rollout.carried // 8),
            256,
            rollout.open,
            rollout.carried,
            *(rollout.obs, rollout.legal, rollout.action, rollout.log_prob, rollout.value),
        )
        self._gather_stats()

    def _value_cuts(self) -> None:
        """Estimate what games that were cut would still have paid the seats that were to move."""
        rollout, net = self.rollout, self.net
        room = rollout.cut_at.shape[1]
        self.cutting.widen(rollout.cut_obs)
        self.cutting.forward()
        net.kernels.place_cuts(
            -(-room * self.members // 256),
            256,
            self.cutting.value,
            VALUE_WIDTH,
            net.view(net.weight, "value_head.bias"),
            i64(net.size),
            rollout.cut_at,
            rollout.cut_count,
            room,
            self.members,
            net.value_scale,
            rollout.final_value,
        )

    def _weigh(self) -> None:
        """Link decisions, estimate advantages, list the samples, choose the value unit."""
        rollout, pool, net, steps = self.rollout, self.pool, self.net, self.collect.steps
        rules, members = pool.rules, self.members
        net.kernels.advantages(
            -(-pool.num_games // 64),
            64,
            *(steps, pool.num_games, pool.each, rules.rows, rules.seats, len(rules.roles), 1),
            *(self.knobs, self.gamma_into, rollout.seat, rollout.role, rollout.policy),
            *(rollout.value, rollout.reward, rollout.terminated, rollout.truncated),
            *(rollout.final_value, rollout.skipped, rollout.open, rollout.link, rollout.next),
            *(rollout.paid, rollout.discount, rollout.tail, rollout.advantage),
        )
        shape = members, rollout.carried // members, rollout.rows // members, steps
        blocks = -(-rollout.places // 256)
        net.kernels.mark_samples(blocks, 256, rollout.link, *shape, self.marks)
        torch.cumsum(self.marks, 1, out=self.ranks)
        net.kernels.list_samples(
            blocks, 256, rollout.link, self.ranks, *shape, self.list, self.sample_counts
        )
        net.kernels.moments(
            (MOMENT_BLOCKS, members),
            256,
            *(
                self.list,
                i64(self.list.shape[1]),
                self.sample_counts,
                rollout.advantage,
                rollout.value,
            ),
            self.moments,
        )
        net.kernels.take_aim(
            1,
            members,
            *(self.moments, MOMENT_BLOCKS, self.sample_counts, self.clock, SCALE_MEMORY),
            *(net.value_scale, self.aims, self.tallies, self.stopped),
        )
        head = net.pieces["value_head.weight"]
        count = net.size - head.offset
        net.kernels.rescale_values(
            (-(-count // 128), members),
            128,
            net.weight[:, head.offset :],
            net.compute[:, head.offset :],
            i64(net.size),
            count,
            self.aims,
        )

    def _shuffle(self, epoch: int) -> None:
        """Deal the samples to the minibatches of an epoch."""
        self.net.kernels.shuffle(
            -(-self.picked.numel() // 256),
            256,
            *(
                self.list,
                i64(self.list.shape[1]),
                self.sample_counts,
                self.seeds,
                self.clock,
                epoch,
            ),
            *(self.parts, self.members, self.room, self.picked),
        )

    def _descend(self, part: int) -> None:
        """One gradient step of every member."""
        net, rollout, at, members = self.net, self.rollout, self.learning, self.members
        slicing, picked = (part, self.parts, self.room), self.picked[part]
        at.widen(rollout.obs, picked)
        at.forward()
        net.kernels.loss(
            (self.loss_blocks, members),
            256,
            *self._heads(at),
            *(picked, rollout.legal, rollout.action, rollout.log_prob, rollout.value),
            *(rollout.advantage, self.sample_counts),
            *(*slicing, self.knobs, self.aims, self.block_rows),
            *(at.logits_grad, at.value_grad, self.losses),
        )
        at.backward()
        net.kernels.square(
            (SQUARE_BLOCKS, members), 256, net.grad, net.scale, net.size, self.squares
        )
        net.kernels.plan_step(
            members,
            256,
            *(
                self.squares,
                SQUARE_BLOCKS,
                self.losses,
                self.loss_blocks,
                self.sample_counts,
                *slicing,
            ),
            *(self.knobs, *BETAS, self.steps, self.stopped, self.diverged, self.means[part]),
            *(self.tallies, self.plans),
        )
        net.kernels.adam(
            (-(-net.size // 256), members),
            256,
            *(net.weight, net.compute, self.first_moment, self.second_moment, net.grad),
            *(net.scale, net.size, *BETAS, EPSILON, self.plans),
        )

    def _gather_stats(self) -> None:
        """What the host wants to know, in one array."""
        members, rollout = self.members, self.rollout
        asked = (rollout.policy >= 0).view(self.collect.steps, members, -1).sum((0, 2))
        forced = rollout.skipped.int().view(self.collect.steps, members, -1).sum((0, 2))
        frozen = (self.pool.frozen != 0).view(members, -1).sum(1)
        columns: tuple[Tensor, ...] = (
            *(self.sample_counts, asked, forced, frozen, self.diverged, rollout.cut_count),
            *self.tallies.unbind(1),
            *(self.aims[:, 4], self.net.value_scale),
        )
        earned = rollout.earned.double().view(members, -1, 4).sum(1)
        self.stats[:, :15].copy_(torch.stack([c.double() for c in columns], 1))
        self.stats[:, 15:].copy_(earned)

    def _report(self, member: int, busy: float) -> dict[str, float]:
        """Name the figures of an update."""
        samples, asked, forced, frozen, diverged, cuts, *rest = self._stats_host[member].tolist()
        policy, value, entropy, kl, clipped, norm, steps, explained, scale, *earned = rest
        games, length, seats, score = earned
        made = max(steps, 1.0)
        report = {
            "losses/policy_loss": policy / made,
            "losses/value_loss": value / made,
            "losses/entropy": entropy / made,
            "losses/approx_kl": kl / made,
            "losses/clipfrac": clipped / made,
            "losses/explained_variance": explained,
            "losses/grad_norm": norm / made,
            "learning/lr": float(self._knobs_host[member, KNOBS.index("lr")]),
            "learning/entropy_weight": float(self._knobs_host[member, KNOBS.index("entropy")]),
            "learning/value_scale": scale,
            "learning/optimiser_steps": steps,
            "learning/decisions": asked,
            "learning/samples": samples,
            "learning/left_out": max(samples - self.parts * self.room, 0.0),
            "learning/cuts_dropped": max(cuts - self.rollout.cut_at.shape[1], 0.0),
            "learning/diverged": diverged,
            "learning/frozen": frozen,
            "charts/games": games,
            "charts/forced": forced,
        }
        if not isinstance(self.pool, HostGames):  # else the time between events is the CPU's too
            report["charts/gpu_busy"] = busy
        if games:
            report["charts/length"] = length / games
        if seats:
            report["charts/score"] = score / seats
        return report

    def _count(self, member: int, report: dict[str, float]) -> None:
        """Add up what was done; raises what went wrong on the device."""
        if report.pop("learning/diverged"):
            raise DivergedError(
                f"update {self.updates - 1}: a loss or gradient of member {member} (seed "
                f"{self.pool.seeds[member]}) is not finite; resume from the last checkpoint with "
                f"a lower lr (now {report['learning/lr']:g})"
            )
        if report.pop("learning/frozen"):
            self.pool.check()
        if not report["learning/samples"]:
            raise ConfigError("the rollout completed no decision; raise steps")
        self.samples[member] += int(report["learning/samples"])
        self.decisions[member] += int(report["learning/decisions"])


def check_configs(pool: Games, collect: CollectConfig, configs: Sequence[PPOConfig]) -> None:
    """Refuse what cannot be trained in one set of arrays."""
    if len(configs) != len(pool.seeds):
        raise ConfigError(f"{len(configs)} configurations for {len(pool.seeds)} seeds")
    if pool.each != collect.games:
        raise ConfigError(f"the pool has {pool.each} games, the config {collect.games}")
    if pool.rules.box and isinstance(pool, HostGames):
        raise ConfigError(f"{pool.rules.name} has continuous actions: its games go with the GPU")
    for name in SHARED:
        if len({getattr(config, name) for config in configs}) > 1:
            raise ConfigError(f"members of a population share ppo.{name}; it decides the shapes")
