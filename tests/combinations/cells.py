"""All cells of learner x place x network x feature as data, and pairs of features.

A cell is played in the smallest game that offers what it needs; where no game does, it does not
arise. Nothing here knows what is refused: `trying` finds out, `record` writes it down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

Settings = Mapping[str, Any]
CPU, GPU = "cpu", "cuda"
OWN_GAME = "own_envs:make_table"
"""An environment of somebody's own: two seats take sticks in turn."""


@dataclass(frozen=True)
class Game:
    """A game, what it offers, and how features of it are asked for."""

    name: str
    offers: frozenset[str]
    part: str
    """Something that it pays."""
    settings: Settings = field(default_factory=dict)
    by_role: tuple[str, ...] = ()
    """Rewards that differ from role to role."""
    vary: str = ""
    """A flag that members of a population may have otherwise."""
    starts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """A value of one of the axes: its settings, and what it needs of a game."""

    name: str
    settings: Settings = field(default_factory=dict)
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Place(Choice):
    """Where games and networks are."""

    device: str = CPU
    own: bool = False
    """The game is an environment of somebody's own."""


def needing(*what: str) -> frozenset[str]:
    return frozenset(what)


GAMES = (
    Game("tic_tac_toe", needing("seats", "board", "mirror"), "result"),
    Game(
        "stairs",
        needing("roles", "goals"),
        "reached",
        by_role=("planner.step=0.5", "climber.step=1"),
    ),
    Game(
        "duel",
        needing("seats", "roles", "box"),
        "win",
        {"set": ("limit=5",)},
        by_role=("even.guess=0.5", "odd.guess=1"),
    ),
    Game(
        "laser_hockey_discrete",
        needing("seats", "mirror", "live", "starts"),
        "goal",
        vary="set.mode=NORMAL,TRAIN_SHOOTING",
        starts=("shooting=1",),
    ),
    Game(
        "laser_hockey",
        needing("seats", "mirror", "live", "starts", "box"),
        "goal",
        vary="set.mode=NORMAL,TRAIN_SHOOTING",
        starts=("shooting=1",),
    ),
    Game(
        "skull_king",
        needing("seats", "roles", "told", "goals", "hidden", "entities", "live", "starts"),
        "score_delta",
        {"set": ("num_players=3", "rounds=1,2")},
        by_role=("manager.rank=1", "worker.win=1"),
        vary="set.start_round=1,2",
        starts=("rounds:2=1",),
    ),
)
"""The smallest first."""
OWN = Game(OWN_GAME, needing("seats"), "reward", starts=("opening=1",))

REPLAY: Settings = {
    "replay": {"warmup": 16, "batch": 16, "ratio": 0.06, "capacity": 4096},
    "collect": {"games": 64},
}
"""An update is of a thousand decisions or more, whatever is collected."""
LEARNERS = (
    Choice("ppo", {"algo": "ppo", "ppo": {"epochs": 1, "minibatch": 64}}),
    Choice(
        "by role",
        {"algo": "ppo", "hierarchy": {"on": True}, "ppo": {"epochs": 1, "minibatch": 64}},
        needing("roles", "told"),
    ),
    Choice("dqn", {"algo": "dqn", **REPLAY}),
    Choice("pqn", {"algo": "dqn", "dqn": {"mode": "rollouts", "epochs": 1, "minibatch": 64}}),
    Choice("sac", {"algo": "sac", **REPLAY}),
    Choice(
        "gumbel",
        {"algo": "gumbel", "gumbel": {"simulations": 2, "epochs": 1, "minibatch": 64}},
    ),
    Choice("own", {"algo": "learn.reinforce:make"}),
)
VARIANTS = (
    ("dqn", Choice("qrdqn", {"algo": "qrdqn", "qrdqn": {"quantiles": 3}, **REPLAY})),
    ("sac", Choice("redq", {"algo": "redq", "redq": {"critics": 3}, **REPLAY})),
    ("sac", Choice("td3", {"algo": "td3", **REPLAY}, needing("box"))),
)
"""Learners that combine with what another one does, by its name."""
PLACES = (
    Place("native", {"collect": {"cpu": "float32"}}),
    Place("torch", {"collect": {"cpu": "torch"}}),
    Place("actors", {"actors": 2}),
    Place("replicas", {"replicas": 2}),
    Place("population", {"population": 2}),
    Place("own env", own=True),
    Place("workers", {"workers": "1"}, own=True),
    Place("gpu", device=GPU),
    Place("gpu, games on cpu", {"pool": "cpu"}, device=GPU),
    Place("gpu actors", {"actors": 2}, device=GPU),
    Place("gpu replicas", {"replicas": 2}, device=GPU),
    Place("gpu population", {"population": 2, "collect": {"games": 32}}, device=GPU),
    Place("gpu own env", device=GPU, own=True),
)
NETWORKS = (
    Choice("mlp"),
    Choice("towers", {"net": {"shared": False}}),
    Choice("odd widths", {"net": {"hidden": (17, 5)}}),
    Choice("norm", {"net": {"norm": True}}),
    Choice("normalize", {"net": {"normalize": True}}),
    Choice("policy_hidden", {"net": {"policy_hidden": (8,)}}),
    Choice("gru", {"net": {"memory": "gru", "memory_width": 8, "bptt_steps": 3}}),
    Choice("stack", {"net": {"memory": "stack", "frames": 2}}),
    Choice("residual", {"net": {"kind": "residual", "channels": 8, "blocks": 1}}, needing("board")),
    Choice(
        "attention",
        {"net": {"kind": "attention", "token_width": 8, "token_layers": 1, "token_heads": 2}},
        needing("entities"),
    ),
    Choice("own perceptron", {"net": {"kind": "own_nets:Plain"}}),
    Choice("own", {"net": {"kind": "own_nets:Squared"}}),
)
FUNCTION, POLICY = "function", "policy"
"""Opponents that are objects of a program."""
FEATURES = (
    Choice("box", needs=needing("box")),
    Choice("mirror", {"collect": {"mirror": True}}, needing("mirror")),
    Choice("hindsight", {"hindsight": {"on": True}}, needing("goals")),
    Choice("wdl", {"heads": {"wdl": 0.1}}, needing("seats")),
    Choice("score", {"heads": {"score": 0.1}}),
    Choice("hidden", {"heads": {"hidden": 0.1}}, needing("hidden")),
    Choice(
        "imitate",
        {"imitate": ("random",), "imitation": {"games": 4, "epochs": 1, "kl_weight": 0.0}},
    ),
    Choice(
        "anchor",
        {"imitate": ("random",), "imitation": {"games": 4, "epochs": 1, "kl_weight": 0.5}},
    ),
    Choice("phases", {"phases": "part"}),
    Choice("schedule", {"rewards": "schedule"}),
    Choice("past", {"opponents": ("past=1",), "league": {"slots": 2}}, needing("seats")),
    Choice("bot", {"opponents": ("random=1",)}, needing("seats")),
    Choice("function", {"given": FUNCTION}, needing("seats")),
    Choice("policy", {"given": POLICY}, needing("seats")),
    Choice("pay by role", {"rewards": "by role"}, needing("roles")),
    Choice("starts", {"starts": "starts"}, needing("starts")),
    Choice("slots", {"collect": {"groups": 2}}),
    Choice("prioritized", {"replay": {"prioritized": True}}),
    Choice("win bonus", {"win bonus": 1.0}, needing("seats")),
    Choice("vary", {"vary": "vary"}, needing("live")),
)
ALONE = "-"
"""The name of no feature at all."""
PAIRED_WITH = ("mlp", "gru")
"""Networks with which pairs of features are tried."""
LIKE_ANOTHER = ("torch", "workers")
"""FeatureTable that are planned as another one is: pairs are not tried in them."""
REPLAYS = ("dqn", "sac", "qrdqn", "redq", "td3")


@dataclass(frozen=True)
class Cell:
    """One combination."""

    learner: Choice
    place: Place
    network: Choice
    features: tuple[Choice, ...] = ()

    @property
    def feature(self) -> str:
        """The name of its features."""
        return " + ".join(one.name for one in self.features) or ALONE

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Its name."""
        return self.learner.name, self.place.name, self.network.name, self.feature

    def __str__(self) -> str:
        return " | ".join(self.key)

    @property
    def game(self) -> Game | None:
        """The smallest game that offers what it needs; None where it does not arise."""
        names = {one.name for one in self.features}
        if "vary" in names and not self.place.name.endswith("population"):
            return None  # elsewhere these are runs one after the other
        if names & {"prioritized", "win bonus"} and self.learner.name not in REPLAYS:
            return None  # settings that the learner does not have
        if self.place.own:
            return None if names & {"box", "pay by role"} else OWN
        needs = self.learner.needs.union(
            self.network.needs, *(feature.needs for feature in self.features)
        )
        unasked = frozenset({"box"}) - needs
        fit = (game for game in GAMES if needs <= game.offers and not unasked & game.offers)
        return next(fit, None)


def rows(device: str) -> Iterator[Cell]:
    """Every learner, place and network of a device, without a feature."""
    for learner in LEARNERS:
        for place in PLACES:
            for network in NETWORKS if place.device == device else ():
                yield Cell(learner, place, network)


def singles(device: str) -> Iterator[Cell]:
    """Every cell with one feature or none."""
    for row in rows(device):
        yield row
        for feature in FEATURES:
            yield Cell(row.learner, row.place, row.network, (feature,))


def pairs(device: str) -> Iterator[Cell]:
    """Every cell with two features."""
    for row in rows(device):
        if row.network.name in PAIRED_WITH and row.place.name not in LIKE_ANOTHER:
            for two in combinations(FEATURES, 2):
                yield Cell(row.learner, row.place, row.network, two)


def settings_words(cell: Cell) -> set[str]:
    """The settings that a cell asks for, as messages name them."""
    words = set()
    for choice in (cell.learner, cell.place, cell.network, *cell.features):
        for key, value in choice.settings.items():
            named = [f"{key}.{inner}" for inner in value] if isinstance(value, Mapping) else [key]
            words.update(named)
    aliases = {"given": "opponents", "win bonus": "win_bonus"}
    words = {aliases.get(word, word) for word in words}
    return words | ({"your own environment", OWN_GAME} if cell.place.own else set())
