"""PPO on a GPU: the kernel launches of `learn.ppo`, for all members of a population at once.

A rollout is one CUDA graph and an update one or a few; Python runs once per update. Every role has
a network and an `Update`; a shared network has the role "". All networks run on all rows of a step,
and each acts on those of its role; transitions are linked once, and every role learns from its
decisions. tests/cuda/test_fused_update.py, test_fused_learner.py and test_fused_hierarchy.py
compare it with `learn.ppo`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from sparring.config import CollectConfig, HeadsConfig, HindsightConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.advantages import discounts_of
from sparring.learn.backends.torch import optimizer_state
from sparring.learn.fused.examples import HindsightRecords, room_for
from sparring.learn.fused.games import Games
from sparring.learn.fused.graphs import Figures, rollout_figures
from sparring.learn.fused.heads import fused_heads
from sparring.learn.fused.kernels import blocks_of
from sparring.learn.fused.magnet import FusedMagnet
from sparring.learn.fused.minibatches import check_configs, restored_after
from sparring.learn.fused.playing import FusedSelfPlay, RoleActing
from sparring.learn.fused.replicas import FigureTotals, ReplicaSums
from sparring.learn.fused.rollout import RoleDiscounts, keep_pending, links_view, rollout_view
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.fused.update import Update
from sparring.learn.learner import Overrides, Report, Snapshot
from sparring.learn.magnet import MAGNET
from sparring.learn.plan import PPOHparams, RolePlan, Turns
from sparring.learn.process_group import SINGLE, ProcessGroup
from sparring.learn.role_learners import COPIED, group_of, has_value_scale, magnet_in
from sparring.learn.transforms import mirrors_of
from sparring.nets.critic_rows import CriticRows
from sparring.schedule import Moment


class FusedPPO:
    """The learner of one run or of all members of a population."""

    def __init__(
        self,
        games: Games,
        collect: CollectConfig,
        configs: PPOConfig | Sequence[PPOConfig],
        net: NetConfig,
        *,
        roles: Sequence[RolePlan] = (),
        turns: Turns | None = None,
        by_role: bool = False,
        slots: int = 0,
        hindsight: HindsightConfig | None = None,
        graphs: bool = True,
        heads: HeadsConfig | None = None,
        average: float = 0.0,
        replicas: int = 1,
        first_game: int = 0,
    ) -> None:
        """Play and learn from games; their seeds are those of the members.

        configs: one for all members, or one each, with equal shapes.
        roles: networks and settings by role, in the order of the game's roles, instead of those.
        turns: which roles learn when; None: all in every update.
        hindsight: relabeling of decisions.
        replicas: GPUs that learn as one, see `process_group`. first_game: of these games among all.
        by_role, slots, graphs, heads, average: see `FusedSelfPlay`.
        """
        if roles and not games.captures:
            raise ConfigError("a hierarchy on a GPU needs games on the GPU; use --pool auto")
        given = [configs] * len(games.seeds) if isinstance(configs, PPOConfig) else list(configs)
        self.roles, self.turns = tuple(roles), turns or Turns()
        self.configs = {plan.role: list(plan.settings) for plan in roles} or {"": given}
        """Settings by role and member; every update reads them."""
        for configs_of_role in self.configs.values():
            check_configs(games, configs_of_role)
        critic = net if net.full_critic and not roles else None
        relabeling = hindsight if hindsight and hindsight.relabels else None
        rows = collect.steps * games.each * games.rules.rows
        self.playing = playing = self.make_playing(
            games,
            collect,
            roles[-1].net if roles else net.played,
            roles={plan.role: plan.net for plan in roles},
            by_role=by_role or bool(roles),
            slots=slots,
            graphs=graphs,
            examples=len(games.seeds) * room_for(rows, relabeling.share) if relabeling else 0,
            heads=heads,
            average=average,
            truth=CriticRows(games.rules).state_field if critic else None,
            first_row=first_game * games.rules.rows,
        )
        assert not (playing.config.recurrent and playing.rollout.chains > 1), "the plan refuses"
        self.games, self.pool, self.rules = games, games.pool, games.rules
        self.net, self.rollout, self.phases = playing.net, playing.rollout, playing.phases
        self.members, self.device, self.exact = playing.members, playing.device, playing.exact
        self.slots, self.put, self.set_mixes = playing.slots, playing.put, playing.set_mixes
        self.seated, self.policy = playing.seated, playing.policy
        self.records = HindsightRecords(games, self.rollout, relabeling) if relabeling else None
        mirrors = mirrors_of(self.rules, collect, self.device, memory=self.pool.memory_bytes)
        self.bf16, self.mirrors = collect.bf16, mirrors
        self.learners: dict[str, Update] = {
            role: self.make_update(
                acting_net,
                self.configs[role],
                records=self.records,
                mirrors=mirrors,
                critic=critic,
                replicas=replicas,
            )
            for role, acting_net in playing.acting.items()
        }
        """The update of every role."""
        self.replicas, self.sums = replicas, cast("ReplicaSums | None", None)
        self.discounts = RoleDiscounts(self.rollout) if roles else None
        self._make_figures()
        self.magnets: dict[str, FusedMagnet] = {}
        """The magnets of every role; empty until settings give one weight."""
        if terms := fused_heads(self.net, self.rollout, playing.formulas):
            self.put_terms(terms)
        self.use_magnets()

    def make_playing(self, *args: Any, **options: Any) -> FusedSelfPlay:
        return FusedSelfPlay(*args, **options)

    def make_update(
        self, acting_net: RoleActing, configs: Sequence[PPOConfig], **options: Any
    ) -> Update:
        return Update(self.playing, acting_net, configs, **options)

    @property
    def process_group(self) -> ProcessGroup:
        """The replicas with which this one learns, each with its share of the games."""
        return self.sums.group if self.sums else SINGLE

    @process_group.setter
    def process_group(self, group: ProcessGroup) -> None:
        assert group.size == self.replicas, "minibatches are made for another number"
        graphs = self.playing.graphs
        self.sums = ReplicaSums(group, graphs.between)
        for update in self.learners.values():
            update.join(self.sums)
        self._make_figures()
        graphs.errors = "thread_local"  # threads of NCCL look at events at any time
        graphs.forget()

    @property
    def updates(self) -> int:
        return self.playing.updates

    @property
    def update(self) -> Update:
        """The update of a shared network."""
        return self.learners[""]

    @property
    def terms(self) -> Sequence[FusedTerm]:
        """Loss terms besides PPO's."""
        return tuple(self.update.terms.list)

    def use_magnets(self, *, saved: bool = False) -> None:
        """Make the magnets if any settings give them weight. saved: a snapshot has some."""
        weights = (one.magnet.values for configs in self.configs.values() for one in configs)
        if self.magnets or not (saved or any(map(any, weights))):
            return
        nets: Any = self.playing.make_nets(bf16=self.bf16)
        for role, update in self.learners.items():
            net = nets.roles[role] if self.roles else nets
            magnet = FusedMagnet(update.net, net, self.rollout, self.configs[role], self.mirrors)
            self.magnets[role] = magnet
            self.put_terms([*update.terms.list, magnet], role)

    def put_terms(self, terms: Sequence[FusedTerm], role: str = "") -> None:
        """Replace the loss terms besides PPO's."""
        self.learners[role].terms.put(terms)
        self._make_figures()
        self.playing.graphs.forget()

    def _make_figures(self) -> None:
        self._measured = list(next(iter(self.learners.values())).measure())
        self.figures = Figures(self._measure, self.members)
        self.totals: FigureTotals | None = None
        if self.sums:
            self.totals = FigureTotals(self.sums, self.figures, self.rollout.met)

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        self.games.apply_overrides(overrides, member)
        changed = (overrides.role_settings or {}) if self.roles else {"": overrides.settings}
        for role, settings in changed.items():
            if settings is not None:
                self.configs[role][member] = settings
        self.use_magnets()
        if overrides.clear_replay:
            raise ConfigError("clear_replay: PPO has no replay; leave it out")

    def iterate(self, progress: float) -> list[Report]:
        """Collect a rollout and learn from it; return one report per member."""
        playing = self.playing
        playing.check_filled()
        shown = self.set_hparams([Moment(made, progress) for made in playing.decisions])
        self._work(playing.graph_name, playing.play, whole=self.games.captures)
        busy = playing.watch.busy()
        playing.updates += 1
        playing.met = self.rollout.met.cpu().numpy().astype(np.int64)
        reports = []
        for member, hparams in enumerate(shown):
            self._count(member, max(value for name, value in hparams.items() if "/lr" in name))
            stats: dict[str, float] = {}
            if not playing.diverged[member]:
                stats = self._stats(member) | hparams
                if self.games.gpu_alone:  # else the events include CPU time
                    stats["charts/gpu_busy"] = busy
            reports.append(playing.report(member, stats))
        return reports

    def set_hparams(self, moments: Sequence[Moment]) -> list[dict[str, float]]:
        """Copy scheduled values to the device; return their metrics by member."""
        shown: list[dict[str, float]] = [{} for _ in moments]
        hparams: list[dict[str, PPOHparams]] = [{} for _ in moments]
        for magnet in self.magnets.values():
            magnet.follow(self.updates, moments)
        for role, update in self.learners.items():
            for member, mine in enumerate(update.set_hparams(self.updates, moments)):
                hparams[member][role] = mine
                shown[member][metric_name("learning/lr", role)] = mine.lr
                shown[member][metric_name("learning/entropy_weight", role)] = mine.entropy
        if self.discounts:
            found = [discounts_of(self.roles, mine, member) for member, mine in enumerate(hparams)]
            self.discounts.send(found)
        return shown

    def _work(self, name: str, rollout: Callable[[], None], *, whole: bool) -> None:
        """Run rollout and update, and synchronize. whole: the rollout is one graph."""
        run, watch = self.playing.graphs.run, self.playing.watch
        watch.clear()
        watch.start()
        if whole:
            run(name, rollout)
        else:
            rollout()
        # Most rollouts truncate games never or once: synchronizing costs less than empty passes.
        for number in range(self.rollout.cut_layers()):
            run(f"cuts {number}", partial(self.bootstrap_truncated, number))
        watch.middle()
        self.learn()
        watch.end()
        self.figures.fetch()
        torch.cuda.current_stream().synchronize()
        self.process_group.check()
        watch.add()

    def bootstrap_truncated(self, number: int) -> None:
        """Compute bootstrap values of layer `number` of truncations.

        With several roles each value belongs to the role in which the seat was to move.
        """
        role = final_role = None
        if self.discounts:
            role, final_role = self.discounts.role_at(number), self.discounts.final_role
        for update in self.learners.values():
            update.bootstrap_truncated(number, role, final_role)

    def learn(self) -> None:
        """Compute advantages, run the epochs, keep pending transitions.

        This is one graph if every row is a sample. Otherwise the host reads the number of samples
        before the epochs, and sets the number of minibatches.
        """
        run, turn = self.playing.graphs.run, self.learning()
        if self.roles:
            names = " ".join(turn)
            run(f"advantages {names}", self.begin)
            for role, update in turn.items():
                run(f"update {role} {update.fit()}", update.run_epochs)
            run(f"end {names}", self.end)
        elif self.playing.frozen:
            run("advantages", self.begin)
            run(f"update {self.update.fit()}", self.finish)
        else:
            run("update", self.learn_all)

    def learn_all(self) -> None:
        """The whole update."""
        self.begin()
        self.finish()

    def learning(self) -> dict[str, Update]:
        """The roles that learn in this update."""
        names = list(self.learners)
        turn = [role for role in names if self.turns.learns(role, names, self.updates)]
        return {role: self.learners[role] for role in turn}

    def begin(self) -> None:
        """Compute advantages and list the samples of every role that learns."""
        turn = self.learning().values()
        for update in turn:
            update.save_before()
        self.rollout.fill_columns()
        self.estimate_advantages()
        for update in turn:
            update.terms.fill()

    def estimate_advantages(self) -> None:
        """Link transitions, compute advantages, list samples, update value scales."""
        kernels, rollout = self.playing.kernels, self.rollout
        for critic in (update.critic for update in self.learners.values() if update.critic):
            critic.fill()
        final_role = self.discounts.final_role if self.discounts else None
        kernels.estimate_advantages(
            *(blocks_of(rollout.games, 64), 64),
            rollout_view(kernels, rollout, final_role),
            links_view(kernels, rollout),
            self.discounts.view(kernels) if self.discounts else self.update.discounts(),
        )
        turn = self.learning()
        for role, update in self.learners.items():
            if role in turn:
                update.list_samples()
            else:
                update.sample_counts.zero_()

    def finish(self) -> None:
        """Run the epochs, and keep pending transitions."""
        for update in self.learning().values():
            update.run_epochs()
        self.end()

    def end(self) -> None:
        """Restore members that diverged, in every role, and keep pending transitions."""
        diverged = self._diverged()
        for update in self.learning().values():
            update.restore_diverged(diverged)
        keep_pending(self.playing.kernels, self.rollout)
        self.figures.take()
        if self.totals:
            self.totals.take()

    def undo(self) -> None:
        """Restore all members to their state before an update that did not end."""
        for update in self.learning().values():
            update.restore_diverged(torch.ones_like(update.diverged))

    def _diverged(self) -> Tensor:
        found = [update.diverged for update in self.learners.values()]
        return torch.stack(found).amax(0) if self.roles else found[0]

    def dry_run(self) -> list[Report]:
        rollout, front = self.rollout, slice(0, self.rollout.max_pending)
        kept = [
            *(tensor for update in self.learners.values() for tensor in update.kept()),
            rollout.open,
            *(rollout.obs[front], rollout.legal[front], rollout.action[front]),
            *(rollout.log_prob[front], rollout.value[front]),
            *(column.by_place[front] for column in rollout.columns),
        ]
        with restored_after(kept):
            self._work(f"free {self.playing.graph_name}", self.playing.act_again, whole=True)
        torch.cuda.synchronize()
        playing, found = self.playing, []
        for member in range(self.members):
            samples = playing.samples[member] + self.sampled(member)
            counts = playing.decisions[member], samples, playing.opponent_rows[member]
            found.append(Report(self._stats(member), *counts))
        return found

    # Reports

    def _measure(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for role, update in self.learners.items():
            found |= {measured_of(name, role): value for name, value in update.measure().items()}
        found["diverged"] = self._diverged()
        return {**found, **rollout_figures(self.rollout, self.games)}

    def _count(self, member: int, lr: float) -> None:
        """Update the counts of a member; raise errors of the device."""
        found, samples = self.figures.of(member), self.sampled(member)
        if found["diverged"]:
            self.playing.give_up(member, lr)
            return
        self.playing.count(member, found)
        if not samples:
            raise ConfigError("the rollout completed no decision; raise collect.steps")
        self.playing.samples[member] += samples

    def sampled(self, member: int) -> int:
        """Samples of the last update."""
        found = self.figures.of(member)
        return int(sum(found[measured_of("samples", role)] for role in self.learners))

    def _stats(self, member: int) -> dict[str, float]:
        found = self.figures.of(member)
        stats: dict[str, float] = {}
        for role, update in self.learners.items():
            of_role = {name: found[measured_of(name, role)] for name in self._measured}
            if of_role["samples"] or not role:  # else the role did not learn
                stats |= {
                    metric_name(name, role): value for name, value in update.stats(of_role).items()
                }
        for name in ("learning/samples", "learning/optimizer_steps"):
            stats[name] = sum(stats.get(metric_name(name, role), 0.0) for role in self.learners)
        return stats | {"learning/decisions": found["decisions"]} | self.playing.earned(found)

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        saved = self.playing.snapshot(member)
        tensors, units = dict(saved.tensors), {}
        for role, update in self.learners.items():
            tensors[group_of(role)] = update.adam.state(member, update.net)
            units[role] = bool(update.has_value_scale[member])
            tensors |= update.critic.state(member) if update.critic else {}
        meta = {**saved.meta, "has_value_scale": units if self.roles else units[""]}
        for role, magnet in self.magnets.items():
            weights, copied_at = magnet.state(member)
            if weights:
                tensors[group_of(role, MAGNET)] = weights
                meta.setdefault(COPIED, {})[role] = copied_at
        return replace(saved, tensors=tensors, meta=meta)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        self.playing.restore(snapshot, member)
        self.use_magnets(saved=COPIED in snapshot.meta)
        for role, magnet in self.magnets.items():
            magnet.load(member, *magnet_in(snapshot, role))
        for role, update in self.learners.items():
            update.adam.load_state(member, update.net, optimizer_state(snapshot, group_of(role)))
            update.diverged[member] = 0
            update.has_value_scale[member] = int(has_value_scale(snapshot, role))
            if update.critic:
                update.critic.load(member, snapshot)


def metric_name(name: str, role: str) -> str:
    """What curves call something of a role."""
    return f"{name}/{role}" if role else name


def measured_of(name: str, role: str) -> str:
    """What figures call something of a role."""
    return f"{role}/{name}" if role else name
