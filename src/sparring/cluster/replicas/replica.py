"""One of several data-parallel learners: it plays a share of the games and handles messages.

As a process it ends with the run's learner, the first replica.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sparring.errors import SparringError, SparringWarning, StateError
from sparring.messages import Message, error_reply
from sparring.processes import Parent

if TYPE_CHECKING:
    from sparring.learn.learner import Report, Snapshot
    from sparring.learn.ppo import PPO

JOIN, ITERATE, STATE, RESTORE = "join", "iterate", "state", "restore"
MIXES = "mixes"
"""Messages to replicas, besides those of `game_messages`."""
SUMMED = ("learning/samples", "learning/decisions", "charts/forced")
"""Metrics that are summed over all replicas; losses and means are those of all already."""


@dataclass(frozen=True)
class ReplicaShare:
    """The part of a run's games and threads that a replica has."""

    rank: int
    size: int
    games: int
    threads: int
    lr_factor: float = 1.0
    """Factor of learning rates, below 1 in a run that has diverged."""
    gpu: int = -1
    """Index of its GPU; -1: none."""

    @property
    def first_game(self) -> int:
        return self.rank * self.games


class Replica:
    """A PPO with a share of the games, controlled by messages."""

    def __init__(self, settings: Mapping[str, Any], share: Mapping[str, Any]) -> None:
        """settings: of the run, as in its file."""
        import torch

        from sparring.cluster.game_messages import process_config
        from sparring.learn.algos import make_ppo
        from sparring.training.planning.gpus import use_gpu
        from sparring.training.planning.plan import resolve
        from sparring.training.planning.settings import read_config

        self.share = ReplicaShare(**share)
        if self.share.gpu >= 0:
            use_gpu(self.share.gpu)
        torch.set_num_threads(self.share.threads)
        config = read_config(settings, "the run's settings")
        config = process_config(config, self.share.games, self.share.threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparringWarning)  # the first replica has shown it
            plan = resolve(
                [config],
                first_game=self.share.first_game,
                lr_factor=self.share.lr_factor,
                replicas=self.share.size,
            )
        self.learner = cast("PPO", make_ppo(plan))
        self.fused = plan.fused

    def handle_bytes(self, raw: bytes) -> bytes:
        """Handle a message; an error becomes a reply."""
        try:
            return self.handle(Message.unpack(raw)).pack()
        except SparringError as wrong:
            return error_reply(wrong).pack()

    def handle(self, message: Message) -> Message:
        from sparring.cluster import game_messages
        from sparring.cluster.replicas import snapshots
        from sparring.learn.learner import Overrides

        payload, learner = message.payload, self.learner
        if message.name == JOIN:
            self._join(payload)
        elif message.name == ITERATE:
            (report,) = learner.iterate(payload["progress"])
            return Message("report") if self.fused else report_message(learner, report)
        elif message.name == STATE:
            return packed(STATE, snapshots.state_of(learner) if self.fused else state_of(learner))
        elif message.name == RESTORE:
            learner.restore(unpacked(message))
        elif message.name == game_messages.SETTINGS:
            learner.apply_overrides(Overrides(settings=game_messages.read_settings(message)))
        elif message.name == MIXES:
            mixes = {name: dict(map(tuple, players)) for name, players in payload["filled"]}
            learner.set_mixes(mixes)
        elif message.name == game_messages.PUT:
            weights = game_messages.read_weights(message.arrays)
            learner.put(payload["key"], weights, greedy=payload["greedy"])
        elif message.name == game_messages.SEATED:
            return Message("reply", arrays={"seated": learner.seated()})
        elif not game_messages.apply_message(learner.pool, message):
            raise StateError(f"a replica received an unknown message {message.name!r}")
        return Message("reply")

    def _join(self, payload: Mapping[str, Any]) -> None:
        from sparring.cluster.replicas import process_group

        host, port, share = payload["host"], payload["port"], self.share
        options: dict[str, Any] = {
            "timeout_s": payload["timeout_s"],
            "nccl": payload["nccl"],
            "device": str(self.learner.device),
        }
        options["host"] = process_group.own_address(host, port)
        self.learner.process_group = process_group.TorchProcessGroup(
            process_group.find_store(host, port), share.rank, share.size, **options
        )


# Contents of messages


def report_message(learner: PPO, report: Report) -> Message:
    """What one replica adds to the report of all."""
    payload = {
        "decisions": report.decisions,
        "samples": report.samples,
        "opponent_rows": report.opponent_rows,
        "stats": {name: report.stats[name] for name in SUMMED},
    }
    arrays = {"counts": np.asarray(learner.pool.counts(), np.int64)}
    if report.episodes is not None:
        arrays |= {f"end.{name}": array for name, array in vars(report.episodes).items()}
    return Message("report", payload, arrays)


def state_of(learner: PPO) -> Snapshot:
    """The part of a checkpoint that only this replica has: its games and counts."""
    from sparring.learn.learner import Snapshot

    collector = learner.collector
    rows, blobs = collector.state()
    counts = {
        "decisions": collector.decisions,
        "samples": learner.samples,
        "opponent_rows": collector.opponent_rows,
    }
    return Snapshot({"carried": rows}, blobs, counts)


def packed(name: str, snapshot: Snapshot) -> Message:
    arrays = {
        f"tensor.{group}/{name}": value.detach().cpu().contiguous().numpy()
        for group, tensors in snapshot.tensors.items()
        for name, value in tensors.items()
    }
    blobs = {f"blob.{name}": np.frombuffer(raw, np.uint8) for name, raw in snapshot.blobs.items()}
    return Message(name, {"meta": snapshot.meta}, {**arrays, **blobs})


def unpacked(message: Message) -> Snapshot:
    import torch

    from sparring.learn.learner import Snapshot

    tensors: dict[str, dict[str, Any]] = {}
    blobs: dict[str, bytes] = {}
    for key, array in message.arrays.items():
        kind, _, name = key.partition(".")
        if kind == "blob":
            blobs[name] = array.tobytes()
        else:
            group, _, name = name.partition("/")
            tensors.setdefault(group, {})[name] = torch.from_numpy(array.copy())
    return Snapshot(tensors, blobs, dict(message.payload["meta"]))


def responder() -> Callable[[Message], Message]:
    """Return what handles messages: the first makes the replica."""
    started: list[Replica] = []

    def respond(message: Message) -> Message:
        if started:
            return started[0].handle(message)
        started.append(Replica(message.payload["settings"], message.payload["share"]))
        return Message("ready")

    return respond


def main() -> None:
    """Handle messages until the first replica closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first replica decides when to end
    Parent().serve(responder())


if __name__ == "__main__":
    main()
