"""Several learners that learn as one, seen from the first of them, which is the run's.

It saves, is measured and shown; the others have a share of the games each and are told what it is
told. What an update computes from all samples is summed over them, see `learn.process_group`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.cluster import seats
from sparring.cluster.replicas.process_group import TorchProcessGroup, open_store
from sparring.cluster.replicas.replica import (
    ITERATE,
    JOIN,
    MIXES,
    RESTORE,
    SETTINGS,
    STATE,
    SUMMED,
    Share,
    packed,
    plain_settings,
    state_of,
    unpacked,
)
from sparring.cluster.seats import check_equal_shares
from sparring.config import TrainConfig
from sparring.errors import ConfigError, StateError
from sparring.games.stats import stat_metrics
from sparring.learn.algos import host_options
from sparring.learn.learner import DivergedError, LostError, Overrides, Report, Snapshot
from sparring.learn.plan import CPU, Plan
from sparring.learn.ppo import PPO
from sparring.learn.rollout import Episodes, FinishedEpisodes
from sparring.messages import REFUSED, Message, checked
from sparring.pools.lineups import Mixes
from sparring.processes import CLOSE_S, Child, GoneError

REPLICAS = "replicas"
"""Where snapshots have the counts of every learner."""
COUNTS = ("decisions", "samples", "opponent_rows")


class Other(Protocol):
    """One of the other learners, wherever it is."""

    def tell(self, message: Message) -> None:
        """Have it do something; it does one thing after the other."""

    def answer(self) -> Message:
        """Wait for what it says to that. `LostError` says that it is gone, and how."""

    def end(self) -> None:
        """Let it go."""


def check_replicas(config: TrainConfig, plan: Plan) -> None:
    """Refuse numbers of learners that do not fit."""
    size = config.replicas
    if config.cluster not in ("", "local") and not config.distributed.trusted_network:
        raise ConfigError(
            f"replicas {size}: on other machines their sums travel by torch.distributed, which "
            "listens without a token; in a network of your own add "
            "--distributed.trusted_network, or use --cluster local"
        )
    check_equal_shares(config, "replicas", size)


class ReplicaProcess(Child):
    """Another learner as a process of this machine."""

    def __init__(self, settings: Mapping[str, Any], share: Share, timeout_s: float) -> None:
        """Start it; it says when it is ready. timeout_s: how long an answer may take."""
        self.share, self.timeout_s = share, timeout_s
        super().__init__("sparring.cluster.replicas.replica", threads=share.threads)
        self.tell(Message("begin", {"settings": settings, "share": asdict(share)}))

    def answer(self, timeout_s: float = 0.0) -> Message:
        """Wait for what it says."""
        try:
            return super().answer(timeout_s or self.timeout_s)
        except TimeoutError:
            raise LostError(
                f"replica {self.share.rank} sent nothing for {self.timeout_s:g} s "
                "(distributed.timeout_s)"
            ) from None
        except GoneError as gone:
            raise LostError(f"replica {self.share.rank} has died: {gone}") from None

    def end(self, patience_s: float = CLOSE_S) -> None:
        """Let it go; nothing of it is left."""
        super().end(patience_s)


class ReplicatedPPO:
    """PPO that sums with others; whatever the first of them is told, the others are told, too."""

    def __init__(
        self, others: Sequence[Other], share: Share, plan: Plan, *, host: str, timeout_s: float
    ) -> None:
        """Take its own share of the games, and meet the others."""
        self.others, self._broken = list(others), ""
        self.ending = contextlib.ExitStack()
        """How the others end."""
        plan = replace(
            plan,
            collect=replace(plan.collect, games=share.games),
            threads=share.threads,
            games_on=CPU,
        )
        torch.set_num_threads(share.threads)
        ppo = self.ppo = PPO(
            plan.host_pool(), plan.collect, plan.settings[0], plan.net, **host_options(plan)
        )
        self.pool, self.rules, self.net = ppo.pool, ppo.rules, ppo.net
        self.forward, self.collector, self.phases = ppo.forward, ppo.collector, ppo.phases
        self.terms, self.slots, self.exact = ppo.terms, ppo.slots, ppo.exact
        self.policy, self.dry_run = ppo.policy, ppo.dry_run
        self._answers()  # they are ready
        store, port = open_store(host)
        self._say(Message(JOIN, {"host": host, "port": port, "timeout_s": timeout_s}))
        place: dict[str, Any] = {"host": host, "timeout_s": timeout_s, "device": str(ppo.device)}
        ppo.process_group = TorchProcessGroup(store, share.rank, share.size, **place)
        self._answers()

    @property
    def updates(self) -> int:
        return self.ppo.updates

    # The others

    def _say(self, message: Message) -> None:
        for other in self.others:
            other.tell(message)

    def _answers(self) -> list[Message]:
        """What they say to that, in their order; what is wrong with one of them is raised."""
        return list(map(checked, [other.answer() for other in self.others]))

    def ask(self, message: Message) -> list[Message]:
        """Tell all others something and wait until it is done."""
        self._say(message)
        return self._answers()

    def close(self) -> None:
        self.ending.close()

    # Learning

    def iterate(self, progress: float) -> list[Report]:
        """Play and learn once, all together."""
        try:
            self._say(Message(ITERATE, {"progress": progress}))
            (report,) = self.ppo.iterate(progress)
            return [self._merged(report, self._answers())]
        except DivergedError:
            for other in self.others:
                other.answer()  # it found the same
            raise
        except LostError as wrong:
            self._broken = self._who_is_gone() or str(wrong)
            raise LostError(
                f"{self._broken}; the run has ended at update {self.updates} and is saved with "
                "games that begin anew: sparring train --resume goes on with it"
            ) from None

    def _who_is_gone(self) -> str:
        """Say which of the others is not there any more, and what it said at last."""
        for other in self.others:
            try:
                said = other.answer()
            except LostError as wrong:
                return str(wrong)
            if said.name == REFUSED and said.facts["kind"] != LostError.__name__:
                return str(said.facts["text"])
        return ""

    def _merged(self, report: Report, answers: Sequence[Message]) -> Report:
        finished = FinishedEpisodes([] if report.episodes is None else [report.episodes])
        counts = np.asarray(self.pool.counts(), np.int64).copy()
        for rank, answer in enumerate(answers, 1):
            counts += answer.arrays["counts"]
            ended = {name[4:]: array for name, array in answer.arrays.items() if name[:4] == "end."}
            if ended:
                game = ended["game"] + np.int32(rank * self.pool.num_games)
                finished.batches.append(Episodes(**{**ended, "game": game}))
        facts = [answer.facts for answer in answers]
        stats = {
            **report.stats,
            **finished.stats(),
            **stat_metrics(self.rules.stats, counts.tolist()),
        }
        for name in SUMMED:
            stats[name] += sum(fact["stats"][name] for fact in facts)
        totals = {
            name: getattr(report, name) + sum(int(fact[name]) for fact in facts) for name in COUNTS
        }
        self.collector.finished = finished  # whom all of them met
        return Report(stats, **totals, episodes=finished.episodes(), met=self.collector.met())

    # What is changed on the way

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Go on under other overrides, all together."""
        self.ppo.apply_overrides(overrides)
        if overrides.lineups is not None:
            self.ask(seats.tables(overrides.lineups, self.pool.mixes, {}))
        if overrides.flags:
            self.ask(Message(seats.FLAGS, {"flags": dict(overrides.flags)}))
        if overrides.starts is not None:
            self.ask(seats.starts(self.rules, overrides.starts))
        if overrides.rewards is not None:
            weights = {part: list(each) for part, each in overrides.rewards.items()}
            self.ask(Message(seats.REWARDS, {"rewards": weights}))
        if overrides.settings is not None:
            self.ask(Message(SETTINGS, {"settings": plain_settings(overrides.settings)}))

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network of the learner's own kind into a slot of everybody."""
        self.ppo.put(slot, weights, greedy=greedy)
        self.ask(seats.put(slot, weights, greedy=greedy))

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.ppo.set_mixes(mixes)
        filled = [[name, list(inside.items())] for name, inside in mixes.items()]
        self.ask(Message(MIXES, {"filled": filled}))

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in everybody's games."""
        own = self.ppo.seated()
        for answer in self.ask(Message(seats.SEATED)):
            own = own + answer.arrays["seated"]
        return own

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """What all learners are, and the games of each.

        After one of them is gone, its games are not there, and an update was perhaps not finished:
        then the games of all begin anew.
        """
        saved, states = self.ppo.snapshot(), [state_of(self.ppo)]
        if not self._broken:
            states += map(unpacked, self.ask(Message(STATE)))
        totals = {name: sum(int(state.meta[name]) for state in states) for name in COUNTS}
        meta = {**saved.meta, **totals, REPLICAS: [state.meta for state in states]}
        if self._broken:
            return replace(saved, blobs={}, meta={**meta, REPLICAS: []})
        tensors, blobs = dict(saved.tensors), dict(saved.blobs)
        for rank, state in enumerate(states[1:], 1):
            tensors[f"carried.{rank}"] = state.tensors.get("carried", {})
            blobs |= {f"{rank}.{name}": one for name, one in state.blobs.items()}
        return replace(saved, tensors=tensors, blobs=blobs, meta=meta)

    def restore(self, snapshot: Snapshot, member: int = 0) -> None:
        """Put all learners where the snapshot was taken."""
        counts: list[Mapping[str, int]] = list(snapshot.meta.get(REPLICAS, [{}]))
        size = len(self.others) + 1
        if counts and len(counts) != size:
            raise StateError(
                f"the checkpoint was made by {len(counts)} learners, and there are {size}; set "
                f"replicas {len(counts)}"
            )
        for rank, other in enumerate(self.others, 1):
            other.tell(packed(RESTORE, share_of(snapshot, rank, counts)))
        self.ppo.restore(share_of(snapshot, 0, counts))
        self._answers()


def share_of(snapshot: Snapshot, rank: int, counts: Sequence[Mapping[str, int]]) -> Snapshot:
    """The snapshot of one learner. Where nobody's games were saved, the first has all counts."""
    none = dict.fromkeys(COUNTS, 0) if rank else {}
    own = dict(counts[rank]) if counts else none
    tensors = {name: group for name, group in snapshot.tensors.items() if "carried." not in name}
    blobs = {name: raw for name, raw in snapshot.blobs.items() if not name[0].isdigit()}
    if rank:
        tensors["carried"] = snapshot.tensors.get(f"carried.{rank}", tensors["carried"])
        mine = f"{rank}."
        blobs = {
            name.removeprefix(mine): raw
            for name, raw in snapshot.blobs.items()
            if name.startswith(mine)
        }
    meta = {name: value for name, value in snapshot.meta.items() if name != REPLICAS}
    return replace(snapshot, tensors=tensors, blobs=blobs, meta={**meta, **own})
