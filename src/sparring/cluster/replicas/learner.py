"""Data-parallel PPO, seen from the first replica, which is the run's learner.

It saves checkpoints and reports metrics. The other replicas play a share of the games each and
receive the same changes. Gradients and statistics are summed over all, see `learn.process_group`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.cluster import game_messages
from sparring.cluster.game_messages import check_equal_shares
from sparring.cluster.replicas import replica
from sparring.cluster.replicas.process_group import TorchProcessGroup, open_store
from sparring.cluster.replicas.replica import ReplicaShare
from sparring.cluster.wrapper import LearnerWrapper
from sparring.config import TrainConfig
from sparring.errors import ConfigError, StateError
from sparring.games.stats import stat_metrics
from sparring.learn.algos import make_ppo
from sparring.learn.learner import DivergedError, LostError, Overrides, Report, Snapshot
from sparring.learn.plan import Plan
from sparring.learn.ppo import PPO
from sparring.learn.rollout import Episodes, FinishedGames
from sparring.messages import ERROR, Message, raise_if_error
from sparring.pools.lineups import Mixes
from sparring.processes import CLOSE_S, Child, ProcessEndedError
from sparring.training.planning.gpus import check_torchrun, gpus_of, limited_to

REPLICAS = "replicas"
"""Key of the counts of every replica in a snapshot."""
COUNTS = ("decisions", "samples", "opponent_rows")


class ReplicaHandle(Protocol):
    """Handle of one of the other replicas, a process or a Ray actor."""

    def send(self, message: Message) -> None:
        """Send a message; a replica handles them in order."""

    def next_message(self) -> Message:
        """Wait for the next reply. Raises `LostError` if the replica has ended."""

    def has_died(self) -> bool:
        """Whether it has ended by itself; may be asked in any thread."""

    def end(self) -> None:
        """End the replica."""


def check_replicas(config: TrainConfig, plan: Plan) -> None:
    """Refuse numbers of replicas that do not fit the run."""
    check_torchrun(config)
    gpus = gpus_of(config)
    size = len(gpus) or config.replicas
    if config.cluster not in ("", "local") and not config.distributed.trusted_network:
        raise ConfigError(
            f"replicas {size}: torch.distributed sends gradients to other machines and listens "
            "without a token; in a private network add "
            "--distributed.trusted_network, or use --cluster local"
        )
    typed = f"devices {config.devices}" if gpus else f"replicas {size}"
    check_equal_shares(config, typed, size)


class ReplicaProcess(Child):
    """A replica as a process of this machine."""

    def __init__(self, settings: Mapping[str, Any], share: ReplicaShare, timeout_s: float) -> None:
        """Start it; its first message says that it is ready. timeout_s: for every reply."""
        self.share, self.timeout_s = share, timeout_s
        module, sees = "sparring.cluster.replicas.replica", limited_to(share.gpu)
        super().__init__(module, threads=share.threads, variables=sees)
        self.send(Message("begin", {"settings": settings, "share": asdict(share)}))

    def next_message(self, timeout_s: float = 0.0) -> Message:
        try:
            return super().next_message(timeout_s or self.timeout_s)
        except TimeoutError:
            raise LostError(
                f"replica {self.share.rank} sent nothing for {self.timeout_s:g} s "
                "(distributed.timeout_s)"
            ) from None
        except ProcessEndedError as gone:
            raise LostError(f"replica {self.share.rank} has died: {gone}") from None

    def has_died(self) -> bool:
        return self.process.poll() is not None

    def end(self, patience_s: float = CLOSE_S) -> None:
        super().end(patience_s)


class ReplicatedPPO(LearnerWrapper):
    """The first of several data-parallel PPOs; every change is passed on to the others."""

    inner: PPO

    def __init__(
        self,
        others: Sequence[ReplicaHandle],
        share: ReplicaShare,
        plan: Plan,
        *,
        host: str,
        timeout_s: float,
        nccl: bool = True,
    ) -> None:
        """Make this replica's share of the games, and join the others.

        nccl: see `TorchProcessGroup`.
        """
        self.others, self._broken = list(others), ""
        self.cleanup = contextlib.ExitStack()
        """Ends the others."""
        plan = replace(
            plan,
            collect=replace(plan.collect, games=share.games),
            threads=share.threads,
            replicas=share.size,
        )
        torch.set_num_threads(share.threads)
        self.inner = cast("PPO", make_ppo(plan))
        self.pool, self.slots = self.inner.pool, self.inner.slots
        self._replies()  # "ready"
        store, port = open_store(host)
        options: dict[str, Any] = {"timeout_s": timeout_s, "nccl": nccl}
        self._send(Message(replica.JOIN, {"host": host, "port": port, **options}))
        options["device"] = str(self.inner.device)
        self.inner.process_group = TorchProcessGroup(
            store, share.rank, share.size, host=host, **options
        )
        self._replies()

    # The other replicas

    def _send(self, message: Message) -> None:
        for other in self.others:
            other.send(message)

    def _replies(self) -> list[Message]:
        """Wait for a reply of each, by rank; an error reply is raised."""
        return list(map(raise_if_error, [other.next_message() for other in self.others]))

    def call(self, message: Message) -> list[Message]:
        """Send a message to all others and wait for their replies."""
        self._send(message)
        return self._replies()

    def close(self) -> None:
        self.cleanup.close()

    # Learning

    def iterate(self, progress: float) -> list[Report]:
        """Play and learn once, in all replicas."""
        try:
            self._send(Message(replica.ITERATE, {"progress": progress}))
            (report,) = self.inner.iterate(progress)
            return [self._merged(report, self._replies())]
        except DivergedError:
            for other in self.others:
                other.next_message()  # the same error
            raise
        except LostError as wrong:
            self._broken = self._lost_reason() or str(wrong)
            self.abandon()
            raise LostError(
                f"{self._broken}; the run has ended at update {self.inner.updates} and is saved "
                "without its games: sparring resume continues it with new games"
            ) from None

    def abandon(self) -> None:
        """Do what an update needs that did not end because a replica was lost."""

    def _lost_reason(self) -> str:
        """Error of the first replica that has ended or failed; "" if none has."""
        for other in self.others:
            try:
                reply = other.next_message()
            except LostError as wrong:
                return str(wrong)
            if reply.name == ERROR and reply.payload["kind"] != LostError.__name__:
                return str(reply.payload["text"])
        return ""

    def _merged(self, report: Report, replies: Sequence[Message]) -> Report:
        finished = FinishedGames([] if report.episodes is None else [report.episodes])
        counts = np.asarray(self.inner.pool.counts(), np.int64).copy()
        for rank, reply in enumerate(replies, 1):
            counts += reply.arrays["counts"]
            ended = {name[4:]: array for name, array in reply.arrays.items() if name[:4] == "end."}
            if ended:
                game = ended["game"] + np.int32(rank * self.inner.pool.num_games)
                finished.batches.append(Episodes(**{**ended, "game": game}))
        reports = [reply.payload for reply in replies]
        stats = {
            **report.stats,
            **finished.stats(),
            **stat_metrics(self.inner.rules.stats, counts.tolist()),
        }
        for name in replica.SUMMED:
            stats[name] += sum(other["stats"][name] for other in reports)
        totals = {
            name: getattr(report, name) + sum(int(other[name]) for other in reports)
            for name in COUNTS
        }
        self.inner.collector.finished = finished  # games of all replicas
        return Report(stats, **totals, episodes=finished.episodes(), met=self.inner.collector.met())

    # Changes during the run

    def apply_overrides(self, overrides: Overrides, member: int = 0) -> None:
        """Apply the changes of a phase in all replicas."""
        self.inner.apply_overrides(overrides)
        if overrides.lineups is not None:
            self.call(game_messages.lineups_message(overrides.lineups, self.inner.pool.mixes, {}))
        if overrides.flags:
            self.call(Message(game_messages.FLAGS, {"flags": dict(overrides.flags)}))
        if overrides.starts is not None:
            self.call(game_messages.starts_message(self.inner.rules, overrides.starts))
        if overrides.rewards is not None:
            weights = {part: list(each) for part, each in overrides.rewards.items()}
            self.call(Message(game_messages.REWARDS, {"rewards": weights}))
        if overrides.settings is not None:
            self.call(game_messages.settings_message(overrides.settings))

    def put(
        self, slot: int, weights: Mapping[str, Tensor], *, greedy: bool = False, member: int = 0
    ) -> None:
        """Put a frozen network into a slot, in all replicas."""
        self.inner.put(slot, weights, greedy=greedy)
        self.call(game_messages.weights_message(slot, weights, greedy=greedy))

    def set_mixes(self, mixes: Mixes, member: int = 0) -> None:
        self.inner.set_mixes(mixes)
        filled = [[name, list(players.items())] for name, players in mixes.items()]
        self.call(Message(replica.MIXES, {"filled": filled}))

    def seated(self, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id holds in the games of all replicas."""
        seated = self.inner.seated()
        for reply in self.call(Message(game_messages.SEATED)):
            seated = seated + reply.arrays["seated"]
        return seated

    # Saving

    def snapshot(self, member: int = 0) -> Snapshot:
        """Save the learner, and the games of every replica.

        If a replica has ended, its games are lost and an update may be unfinished: then no games
        are saved.
        """
        saved, states = self.inner.snapshot(), [replica.state_of(self.inner)]
        if not self._broken:
            states += map(replica.unpacked, self.call(Message(replica.STATE)))
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
        """Restore all replicas from a snapshot."""
        counts: list[Mapping[str, int]] = list(snapshot.meta.get(REPLICAS, [{}]))
        size = len(self.others) + 1
        if counts and len(counts) != size:
            raise StateError(
                f"the checkpoint was made by {len(counts)} replicas, and there are {size}; set "
                f"replicas {len(counts)}"
            )
        for rank, other in enumerate(self.others, 1):
            other.send(replica.packed(replica.RESTORE, replica_snapshot(snapshot, rank, counts)))
        self.inner.restore(replica_snapshot(snapshot, 0, counts))
        self._replies()


def replica_snapshot(
    snapshot: Snapshot, rank: int, counts: Sequence[Mapping[str, int]]
) -> Snapshot:
    """The part of a snapshot for one replica. Without saved games, the first gets all counts."""
    zeros = dict.fromkeys(COUNTS, 0) if rank else {}
    mine = dict(counts[rank]) if counts else zeros
    tensors = {name: group for name, group in snapshot.tensors.items() if "carried." not in name}
    blobs = {name: raw for name, raw in snapshot.blobs.items() if not name[0].isdigit()}
    if rank:
        tensors["carried"] = snapshot.tensors.get(f"carried.{rank}", tensors["carried"])
        prefix = f"{rank}."
        blobs = {
            name.removeprefix(prefix): raw
            for name, raw in snapshot.blobs.items()
            if name.startswith(prefix)
        }
    meta = {name: value for name, value in snapshot.meta.items() if name != REPLICAS}
    return replace(snapshot, tensors=tensors, blobs=blobs, meta={**meta, **mine})
