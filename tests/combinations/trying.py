"""Trying a cell: what planning says of it, and whether it makes updates."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from queue import Queue
from typing import Any

import numpy as np
import torch

from cluster.supervisors import LocalSupervisor
from combinations.cells import FUNCTION, Cell, Game
from sparring.cluster.actors.learner import DistributedLearner, check_distributed
from sparring.cluster.replicas.learner import ReplicatedPPO, check_replicas
from sparring.cluster.replicas.process_group import LOOPBACK
from sparring.cluster.replicas.replica import Replica, ReplicaShare
from sparring.config import NetConfig, TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.games.rules import Rules
from sparring.learn.learner import Learner, closing_learner
from sparring.learn.plan import Plan
from sparring.messages import Message
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.schedule import Moment
from sparring.training.curriculum import check_overridable
from sparring.training.imitation.imitate import add_kl_penalty, imitate, set_weights
from sparring.training.leagues import league_learner
from sparring.training.planning.custom import rules_of
from sparring.training.planning.participants import opponent_texts
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of, merged, written
from sparring.training.planning.training import TrainingPlan, plan_training

RUNS, SLOWER, ABSENT = "runs", "slower", "absent"
UNTRIED = "accepted"
"""By planning; no update was made."""
REFUSED, LATE = "refused", "refused late"
"""Late: not by planning, only when the learner is made."""
BROKEN = "broken"
ACCEPTED = (RUNS, SLOWER, UNTRIED)
TINY: dict[str, Any] = {
    "threads": 1,
    "minutes": 1.0,
    "net": {"hidden": (16, 16)},
    "collect": {"games": 4, "steps": 8},
    "eval": {"off": True},
    "tensorboard": False,
}
LIMIT_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """What came of a cell."""

    state: str
    line: str = ""
    """Why it is refused, slower or broken."""


def settings_of(cell: Cell, game: Game) -> dict[str, Any]:
    """The settings of a cell; those of a game's own words are filled in."""
    found: dict[str, Any] = {"game": game.name, "device": cell.place.device}
    for choice in (game, cell.learner, cell.place, cell.network, *cell.features):
        for key, value in choice.settings.items():
            add(found, *spelled(key, value, cell, game))
    if cell.learner.name in ("sac", "redq", "td3") and "box" in game.offers:
        add(found, "net", {"std": "predicted", "squash": True})
    if "opponents" in found:
        found["opponents"] = ("self=1", *found["opponents"])
    return found


def spelled(key: str, value: Any, cell: Cell, game: Game) -> tuple[str, Any]:
    """A setting as a game or a learner spells it."""
    if key == "win bonus":
        return cell.learner.name, {"win_bonus": value}
    words: dict[tuple[str, Any], Any] = {
        ("rewards", "by role"): game.by_role,
        ("rewards", "schedule"): (f"{game.part}=0%:1,100%:0.5",),
        ("starts", "starts"): game.starts,
        ("vary", "vary"): (game.vary,),
        ("phases", "part"): (
            json.dumps({"name": "one", "decisions": 1}),
            json.dumps({"name": "two", "rewards": {game.part: 2}}),
        ),
    }
    return key, words.get((key, value), value) if isinstance(value, str) else value


def add(settings: dict[str, Any], key: str, value: Any) -> None:
    """Put a setting to the others: tables are joined, and so are opponents and rewards."""
    before = settings.get(key)
    if isinstance(value, Mapping):
        settings[key] = {**(before or {}), **value}
    elif key in ("opponents", "given", "rewards"):
        settings[key] = (*(before or ()), *([value] if isinstance(value, str) else value))
    else:
        settings[key] = value


@dataclass
class Asked:
    """What a cell asks for: configurations, and opponents that are objects."""

    configs: Sequence[TrainConfig]
    opponents: Sequence[Any] = ()

    @classmethod
    def of(cls, cell: Cell, game: Game) -> Asked:
        """Read the settings of a cell."""
        settings = settings_of(cell, game)
        given = settings.pop("given", ())
        config: TrainConfig = merged(tiny(), settings, "a cell")
        players: tuple[Any, ...] = ()
        if given:
            objects = (player_of(one, rules_of(config)) for one in given)
            players = (*config.opponents, *objects)
            config = replace(config, opponents=opponent_texts(players))
        several = config.population > 1 or config.vary
        return cls(members_of(config) if several else [config], players)

    @property
    def config(self) -> TrainConfig:
        """Of the first member."""
        return self.configs[0]

    def plan(self) -> Plan:
        """Plan it; nothing is made."""
        plan = resolve(self.configs, opponents=self.opponents, played=False)
        self.check_shares(plan)
        return plan

    def training(self) -> TrainingPlan:
        """Plan all of it, to be trained."""
        training = plan_training(self.configs, opponents=self.opponents)
        self.check_shares(training.learning)
        return training

    def check_shares(self, plan: Plan) -> None:
        """Refuse what does not fit into the processes that are asked for."""
        if self.config.replicas > 1:
            check_replicas(self.config, plan)
        elif self.config.actors:
            check_distributed(self.config, plan)


@cache
def tiny() -> TrainConfig:
    """Settings of a run that is over at once."""
    config: TrainConfig = merged(TrainConfig(), TINY, "a cell")
    return config


def player_of(kind: str, rules: Rules) -> Any:
    """An opponent that is an object: a function, or a network of another kind."""
    if kind != FUNCTION:
        return Policy(rules, make_net(rules, NetConfig(hidden=(8,))))

    def first_legal(obs: Any, mask: Any, rng: np.random.Generator) -> Any:
        return np.zeros((len(obs), rules.box), np.float32) if rules.box else mask.argmax(axis=1)

    return first_legal


@contextmanager
def warned() -> Iterator[list[str]]:
    """What is said about slower places meanwhile."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SparringWarning)
        yield lines
    lines += [str(one.message) for one in caught if issubclass(one.category, SparringWarning)]


def planned(cell: Cell) -> Outcome:
    """What planning says of a cell; nothing is made."""
    return outcome_of(cell, lambda asked: asked.plan())


def updated(cell: Cell) -> Outcome:
    """What comes of a cell that is planned, made and updated."""
    return outcome_of(cell, lambda asked: update(cell, asked))


def tried(cell: Cell) -> Outcome:
    """What comes of a cell, with updates where planning accepts it."""
    plan = planned(cell)
    if plan.state not in ACCEPTED:
        return plan
    found = updated(cell)
    return replace(found, state=LATE) if found.state == REFUSED else found


def outcome_of(cell: Cell, what: Any) -> Outcome:
    """What comes of doing something with what a cell asks for."""
    game = cell.game
    if game is None:
        return Outcome(ABSENT)
    with warned() as lines:
        try:
            what(Asked.of(cell, game))
        except ConfigError as wrong:
            return Outcome(REFUSED, str(wrong))
        except Exception as wrong:
            return Outcome(BROKEN, f"{type(wrong).__name__}: {wrong}".splitlines()[0])
    return Outcome(SLOWER, lines[0]) if lines else Outcome(RUNS)


def update(cell: Cell, asked: Asked) -> None:
    """Make a learner and two updates; the second under what a course says then."""
    config, training = asked.config, asked.training()
    plan, courses = training.learning, training.courses()
    learner = learner_of(config, plan)
    with closing_learner(learner), closing_games(plan):
        if config.imitate:
            policy, _ = imitate(plan, training.first, learner, quiet=True)
            set_weights(learner, policy, len(asked.configs))
            add_kl_penalty(plan, learner, policy, config.imitation.kl_weight)
        league = league_learner(learner, plan.participants)
        if plan.participants.past_slots:
            meet_the_past(league, len(asked.configs))
        check_learned(learner.iterate(0.0))
        for member, course in enumerate(courses):
            course.advance(Moment(1000, 0.5, 10), 1)
            overrides = course.overrides(Moment(1000, 0.5, 10))
            if overrides is not None:
                check_overridable(learner).apply_overrides(overrides, member)
        check_learned(learner.iterate(0.5))


@contextmanager
def closing_games(plan: Plan) -> Iterator[None]:
    """End the workers of games of somebody's own."""
    try:
        yield
    finally:
        close = getattr(plan.custom, "close", None)
        if close is not None:
            close()


def learner_of(config: TrainConfig, plan: Plan) -> Learner:
    """The learner of a plan; actors and replicas are in this process."""
    torch.set_num_threads(1)
    if config.actors:
        return DistributedLearner(LocalSupervisor(config), config.distributed, plan)
    if config.replicas > 1:
        games = config.collect.games // config.replicas
        shares = [ReplicaShare(rank, config.replicas, games, 1) for rank in range(config.replicas)]
        others = [LocalReplica(written(config), share) for share in shares[1:]]
        return ReplicatedPPO(others, shares[0], plan, host=LOOPBACK, timeout_s=LIMIT_S)
    return make_learner(config, plan)


class LocalReplica:
    """Another learner as a thread."""

    def __init__(self, settings: Mapping[str, Any], share: ReplicaShare) -> None:
        self.replica = Replica(settings, asdict(share))
        self.heard: Queue[bytes | None] = Queue()
        self.said: Queue[bytes] = Queue()
        self.said.put(Message("ready").pack())
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while (raw := self.heard.get()) is not None:
            self.said.put(self.replica.handle_bytes(raw))

    def send(self, message: Message) -> None:
        self.heard.put(message.pack())

    def next_message(self) -> Message:
        return Message.unpack(self.said.get(timeout=LIMIT_S))

    def end(self) -> None:
        self.heard.put(None)
        self.thread.join(LIMIT_S)


def meet_the_past(learner: Any, members: int) -> None:
    """Seat what the learner is now as its past self."""
    for member in range(members):
        learner.put(1, learner.snapshot(member).tensors["net"], member=member)
        learner.set_mixes({"past": {1: 1.0}}, member)


def check_learned(reports: Sequence[Any]) -> None:
    """Refuse reports of nothing, and numbers that are none."""
    for report in reports:
        if not report.decisions:
            raise AssertionError("nothing was decided")
        wrong = [name for name, value in report.stats.items() if np.isinf(value)]
        if wrong:
            raise AssertionError(f"{wrong[0]} is infinite")
