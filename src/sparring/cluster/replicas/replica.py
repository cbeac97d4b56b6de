"""One of several learners that learn as one: it has a share of the games and does what it is told.

As a process it ends with the learner of the run, the first of them. Anywhere else it is a `Replica`
that is handed bytes.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparring.errors import SparringError, SparringWarning, StateError
from sparring.messages import Message, refusal
from sparring.processes import Parent

if TYPE_CHECKING:
    from sparring.learn.learner import Report, Snapshot
    from sparring.learn.ppo import PPO

JOIN, ITERATE, STATE, RESTORE = "join", "iterate", "state", "restore"
SETTINGS, MIXES = "settings", "mixes"
"""What it is told, besides what `seats` has."""
SUMMED = ("learning/samples", "learning/decisions", "charts/forced")
"""What curves show of all of them together; losses and means are everybody's already."""


@dataclass(frozen=True)
class Share:
    """Which part of a run a learner has."""

    rank: int
    size: int
    games: int
    threads: int
    lr_factor: float = 1.0
    """What learning rates are multiplied with, in a run that has diverged."""

    @property
    def first_game(self) -> int:
        """Games of others that go before its own."""
        return self.rank * self.games


class Replica:
    """Plays and learns its share."""

    def __init__(self, settings: Mapping[str, Any], share: Mapping[str, Any]) -> None:
        """Make games and network. settings: of the run, as its file has them."""
        import torch

        from sparring.cluster.seats import part_of
        from sparring.learn.algos import host_options
        from sparring.learn.ppo import PPO
        from sparring.training.planning.plan import resolve
        from sparring.training.planning.settings import read_config

        self.share = Share(**share)
        torch.set_num_threads(self.share.threads)
        config = read_config(settings, "the run's settings")
        config = part_of(config, self.share.games, self.share.threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparringWarning)  # the first has said it already
            plan = resolve(
                [config], first_game=self.share.first_game, lr_factor=self.share.lr_factor
            )
        self.learner: PPO = PPO(
            plan.host_pool(), plan.collect, plan.settings[0], plan.net, **host_options(plan)
        )

    def hear(self, raw: bytes) -> bytes:
        """Do what a message says; what is wrong with it is an answer, too."""
        try:
            return self.answer(Message.unpack(raw)).pack()
        except SparringError as wrong:
            return refusal(wrong).pack()

    def answer(self, message: Message) -> Message:
        from sparring.cluster import seats
        from sparring.learn.learner import Overrides

        facts, learner = message.facts, self.learner
        if message.name == JOIN:
            self._join(facts)
        elif message.name == ITERATE:
            (report,) = learner.iterate(facts["progress"])
            return told(learner, report)
        elif message.name == STATE:
            return packed(STATE, state_of(learner))
        elif message.name == RESTORE:
            learner.restore(unpacked(message))
        elif message.name == SETTINGS:
            learner.apply_overrides(Overrides(settings=read_settings(facts["settings"])))
        elif message.name == MIXES:
            learner.set_mixes({name: dict(map(tuple, inside)) for name, inside in facts["filled"]})
        elif message.name == seats.PUT:
            weights = seats.heard_weights(message.arrays)
            learner.put(facts["key"], weights, greedy=facts["greedy"])
        elif message.name == seats.SEATED:
            return Message("answer", arrays={"seated": learner.seated()})
        elif not seats.hear_games(learner.pool, message):
            raise StateError(f"a replica was told {message.name!r}, which it does not know")
        return Message("answer")

    def _join(self, facts: Mapping[str, Any]) -> None:
        from sparring.cluster.replicas.process_group import (
            TorchProcessGroup,
            find_store,
            own_address,
        )

        host, port, share = facts["host"], facts["port"], self.share
        place: dict[str, Any] = {
            "timeout_s": facts["timeout_s"],
            "device": str(self.learner.device),
        }
        place["host"] = own_address(host, port)
        self.learner.process_group = TorchProcessGroup(
            find_store(host, port), share.rank, share.size, **place
        )


# What goes to and fro


def plain_settings(settings: Any) -> dict[str, Any]:
    """The settings of PPO as JSON has them."""
    from sparring.training.planning.settings import as_plain

    plain: dict[str, Any] = as_plain(asdict(settings))
    return plain


def read_settings(plain: Mapping[str, Any]) -> Any:
    """The same as a learner takes them."""
    from sparring.config import PPOConfig
    from sparring.training.planning.settings import merged

    return merged(PPOConfig(), plain, "the run's settings")


def told(learner: PPO, report: Report) -> Message:
    """What one learner adds to the report of all."""
    facts = {
        "decisions": report.decisions,
        "samples": report.samples,
        "opponent_rows": report.opponent_rows,
        "stats": {name: report.stats[name] for name in SUMMED},
    }
    arrays = {"counts": np.asarray(learner.pool.counts(), np.int64)}
    if report.episodes is not None:
        arrays |= {f"end.{name}": array for name, array in vars(report.episodes).items()}
    return Message("report", facts, arrays)


def state_of(learner: PPO) -> Snapshot:
    """What a checkpoint needs of one learner besides what all of them have: its games."""
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
    return Snapshot(tensors, blobs, dict(message.facts["meta"]))


def main() -> None:
    """Learn until the first learner is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it decides when to end
    begun: list[Replica] = []

    def answer(message: Message) -> Message:
        if begun:
            return begun[0].answer(message)
        begun.append(Replica(message.facts["settings"], message.facts["share"]))
        return Message("ready")

    Parent().serve(answer)


if __name__ == "__main__":
    main()
