"""Table of what combines with what.

A run has components: a learner, a network, a game, a place (the devices of games and network) and
passes (the code that computes networks). Each component *offers* abilities. A feature that a user
can request *needs* abilities and *forbids* other features. Error messages and the choice of
components (`refusals.py`) and docs/reference/what-combines.md are computed from this table alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LEARNER: Final = "learner"
NETWORK: Final = "network"
GAME: Final = "game"
PLACE: Final = "place"
PASSES: Final = "passes"


@dataclass(frozen=True)
class Ability:
    """An ability that a feature may need."""

    what: str
    """As an error message names it: X needs `what`."""
    add: str = ""
    """The option that adds it, if another component is not the answer."""


@dataclass(frozen=True)
class Component:
    """A learner, a network, a place or a kind of passes."""

    shown: str
    """Its name in messages."""
    offers: frozenset[str]
    typed: str = ""
    """The option that selects it."""
    feature: str = ""
    """The feature that selecting it requests, if it needs something of other components."""


@dataclass(frozen=True)
class FeatureSpec:
    """Requirements of a feature that a user can request."""

    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Abilities by the part that has to offer them."""
    forbids: Mapping[str, str] = field(default_factory=dict)
    """Features that do not combine with it, and why."""


ABILITIES: Mapping[str, Mapping[str, Ability]] = {
    LEARNER: {
        "discrete": Ability("a learner of discrete actions"),
        "continuous": Ability("a learner of continuous actions"),
        "roles": Ability("a learner with a network for every role"),
        "terms": Ability("a learner whose loss takes further terms"),
        "magnet": Ability("a learner whose policy follows a magnet"),
        "average": Ability("a learner that averages its weights"),
        "pixels": Ability("a learner of convolutions over pixels"),
        "critic": Ability("a learner with a critic that sees what is hidden"),
        "seeing": Ability("a learner whose rows may hold what is hidden"),
        "records": Ability("a learner that imitates demonstrations"),
        "memory": Ability("a learner of networks with memory"),
        "sequences": Ability("a learner with backpropagation through time"),
        "hindsight": Ability("a learner that relabels decisions in hindsight"),
        "mirror": Ability("a learner that mirrors decisions"),
        "groups": Ability("a learner that acts while other games step"),
        "rollouts": Ability("a learner that takes rollouts of other processes"),
        "late decisions": Ability("a learner that weighs late decisions (V-trace)"),
        "gradients": Ability("a learner that sums its gradients with those of others"),
        "population": Ability("a learner of several runs at once"),
    },
    NETWORK: {
        "arguments": Ability("a custom network", "set --net.kind module:Class"),
        "tokens": Ability("a network over tokens", "add --net.kind attention"),
        "layers": Ability("an mlp with shared layers", "set --net.kind mlp and --net.shared"),
        "norm": Ability("a network with layer norm", "set --net.kind mlp"),
        "normalize": Ability("a network that normalizes", "set --net.kind mlp"),
        "inputs": Ability("a network with selectable inputs", "set --net.kind mlp"),
        "memory": Ability("a network with memory", "set --net.kind mlp"),
        "cell": Ability("a network that may be recurrent", "set --net.kind mlp"),
        "state": Ability("a recurrent memory", "add --net.memory gru"),
        "frames": Ability("a memory of stacked observations", "add --net.memory stack"),
        "hidden": Ability("a network with a head for what is hidden", "set --net.kind mlp"),
        "trunk": Ability("one trunk for policy and value", "set --net.shared"),
        "critic": Ability("a critic that sees what is hidden", "add --net.critic full"),
        "quantiles": Ability("a network with a head for quantiles", "set --net.kind mlp"),
        "squash": Ability("squashed actions", "set --net.squash"),
        "predicted spread": Ability(
            "a standard deviation that the network predicts", "set --net.std predicted"
        ),
    },
    GAME: {
        "discrete": Ability("a game with discrete actions"),
        "roles": Ability("a game with several roles"),
        "goals": Ability("a game with goals"),
        "mirror": Ability("a game that declares a mirror image"),
        "hidden": Ability("a game that provides hidden information"),
        "board": Ability("a game with a board"),
        "pixels": Ability("a game whose observations are pixels"),
        "entities": Ability("a game that declares entities (docs/guides/networks.md)"),
        "opponents": Ability("a game with more than one seat"),
        "repeats": Ability("a bundled game"),
        "hides": Ability("a game whose seats hide something from each other"),
        "open": Ability("a game without hidden cards"),
    },
    PLACE: {
        "population": Ability(
            "games and networks on one GPU", "use --seeds for runs one after the other"
        ),
        "shared league": Ability("games and networks on one device", "use --device cpu"),
        "replicas": Ability("games and networks on CPUs", "use --device cpu"),
        "devices": Ability("graphs on a GPU"),
        "seeing": Ability("games and network on the CPU", "use --device cpu"),
        "playouts in worlds": Ability("games on the CPU", "use --device cpu"),
        "trees of rules in Python": Ability("games on the CPU", "use --device cpu"),
    },
}
"""Abilities by part, as error messages describe them."""

EVERY_LEARNER = frozenset({"discrete", "continuous", "memory", "mirror", "groups", "average"})
LEARNERS: Mapping[str, Component] = {
    "ppo": Component(
        "algo ppo",
        EVERY_LEARNER
        | {"terms", "records", "sequences", "hindsight", "rollouts", "gradients", "population"}
        | {"magnet", "critic", "pixels", "seeing", "late decisions"},
        "--algo ppo",
    ),
    "ppo by role": Component(
        "hierarchy.on",
        frozenset({"discrete", "continuous", "roles", "hindsight", "mirror", "groups", "rollouts"})
        | {"population", "magnet", "average", "pixels", "late decisions"},
    ),
    "dqn": Component(
        "algo dqn",
        frozenset({"discrete", "memory", "mirror", "groups", "hindsight", "population", "average"})
        | {"pixels", "rollouts"},
        "--algo dqn",
    ),
    "qrdqn": Component(
        "algo qrdqn",
        frozenset({"discrete", "memory", "mirror", "groups", "hindsight", "average", "rollouts"}),
        "--algo qrdqn",
        feature="algo qrdqn",
    ),
    "pqn": Component(
        "dqn.mode rollouts",
        frozenset({"discrete", "memory", "mirror", "groups", "population", "average", "pixels"})
        | {"rollouts"},
        "--algo dqn --dqn.mode rollouts",
    ),
    "sac": Component("algo sac", EVERY_LEARNER | {"population", "rollouts"}, "--algo sac"),
    "redq": Component("algo redq", EVERY_LEARNER | {"rollouts"}, "--algo redq"),
    "td3": Component(
        "algo td3",
        EVERY_LEARNER - {"discrete"} | {"rollouts"},
        "--algo td3",
        feature="algo td3",
    ),
    "gumbel": Component(
        "algo gumbel",
        frozenset({"discrete", "mirror", "population", "terms", "average", "rollouts"}),
        "--algo gumbel",
        feature="algo gumbel",
    ),
    "own": Component(
        "a custom learner", EVERY_LEARNER - {"average"} | {"sequences", "hindsight", "pixels"}
    ),
}
NETWORKS: Mapping[str, Component] = {
    "mlp": Component(
        "net.kind mlp",
        frozenset(
            {"layers", "norm", "normalize", "inputs", "memory", "cell", "hidden", "quantiles"}
        ),
    ),
    "residual": Component("net.kind residual", frozenset()),
    "attention": Component("net.kind attention", frozenset({"tokens", "hidden"})),
    "nature": Component("net.kind nature", frozenset({"memory"})),
    "impala": Component("net.kind impala", frozenset({"memory"})),
    "own": Component("a custom network", frozenset({"arguments", "hidden", "inputs"})),
}
"""By net.kind. `layers`: where net.shared is on. State and frames come with net.memory, squash and
spread with the settings of that name."""

HOST = frozenset(
    {"continuous actions", "dqn.mode rollouts", "hindsight", "host rollouts", "host updates"}
    | {"networks by role", "normalized observations", "opponents with other networks"}
    | {"past selves by role", "playouts in worlds", "replay", "replay in hindsight"}
    | {"tree search", "trees of rules in Python", "win bonus"}
)
"""Abilities with games on the CPU. `host rollouts`: those of custom environments and learners, and
those of other processes."""
PLACES: Mapping[str, Component] = {
    "cpu": Component(
        "games and network on the CPU", HOST | {"replicas", "seeing", "shared league"}
    ),
    "graphs": Component(
        "graphs on the GPU",
        frozenset({"population", "replay", "hindsight", "continuous actions", "networks by role"})
        | {"tree search", "shared league", "devices"},
    ),
    "graphs beside": Component("graphs on the GPU, games on the CPU", frozenset({"devices"})),
    "apart": Component("games on the CPU, network on the GPU", HOST),
}
"""Devices of games and network, in order: the first that offers all needed abilities is used."""

EVERY_NETWORK = frozenset(
    {"attention", "board memory", "convolutions", "critic norm", "heads", "layer norm", "memory"}
    | {
        "odd widths",
        "other modules",
        "perceptron",
        "pixels",
        "policy layers",
        "recurrent states",
        "silu",
    }
    | {"value layers"}
)
PASSES_OF: Mapping[str, Component] = {
    "native": Component(
        "native passes", frozenset({"perceptron", "heads", "silu", "odd widths", "memory"})
    ),
    "torch": Component("torch", EVERY_NETWORK | {"normalized observations", "dqn.mode rollouts"}),
    "kernels": Component("kernels", frozenset({"perceptron", "convolutions", "memory"})),
    "grouped": Component(
        "grouped kernels",
        frozenset({"perceptron", "convolutions", "silu", "value layers", "memory"}),
    ),
    "captured": Component("graphs", EVERY_NETWORK),
    "browser": Component(
        "passes in a browser",
        frozenset({"perceptron", "convolutions", "heads", "silu", "odd widths", "layer norm"})
        | {"normalized observations"},
    ),
}
"""Code that computes networks and gradients: native code on a CPU, torch, GPU kernels (of the
learner, or grouped for many frozen opponents), torch in a CUDA graph, or code in a browser."""

ALONE = "imitation runs in one process"
OF_WORLDS = tuple(
    f"gumbel.{name}" for name in ("least", "horizon", "eta", "alpha", "caution", "gamma_into")
)
"""Settings of `--algo gumbel` that searches over worlds have alone; trees have c_scale."""
FEATURES: Mapping[str, FeatureSpec] = {
    # Of the game.
    "discrete actions": FeatureSpec({LEARNER: ("discrete",)}),
    "continuous actions": FeatureSpec({LEARNER: ("continuous",), PLACE: ("continuous actions",)}),
    # Of the learner.
    "dqn.mode rollouts": FeatureSpec(
        {PLACE: ("dqn.mode rollouts",), PASSES: ("dqn.mode rollouts",)}
    ),
    "algo gumbel": FeatureSpec({GAME: ("repeats",), PLACE: ("tree search",)}),
    "algo qrdqn": FeatureSpec({NETWORK: ("quantiles",), PLACE: ("host updates",)}),
    "algo td3": FeatureSpec({NETWORK: ("squash",), PLACE: ("host updates",)}),
    "playouts in worlds": FeatureSpec({PLACE: ("playouts in worlds",)}),
    "trees of rules in Python": FeatureSpec({PLACE: ("trees of rules in Python",)}),
    **dict.fromkeys(OF_WORLDS, FeatureSpec({GAME: ("hides",)})),
    "gumbel.c_scale": FeatureSpec({GAME: ("open",)}),
    "replay": FeatureSpec({PLACE: ("replay",)}),
    "win bonus": FeatureSpec({PLACE: ("win bonus",)}),
    "hierarchy.on": FeatureSpec(
        {LEARNER: ("roles",), GAME: ("roles",), PLACE: ("networks by role",)}
    ),
    "hindsight.on": FeatureSpec({LEARNER: ("hindsight",), GAME: ("goals",)}),
    "seen in hindsight": FeatureSpec({PLACE: ("hindsight",)}),
    "replay in hindsight": FeatureSpec({PLACE: ("replay in hindsight",)}),
    "squashed actions": FeatureSpec({NETWORK: ("squash", "predicted spread")}),
    "collect.mirror": FeatureSpec({LEARNER: ("mirror",), GAME: ("mirror",)}),
    "collect.groups": FeatureSpec({LEARNER: ("groups",)}),
    "sac.critics": FeatureSpec({PLACE: ("host updates",)}),
    "sac.critic_norm": FeatureSpec({PASSES: ("critic norm",)}),
    "average": FeatureSpec({LEARNER: ("average",)}),
    "heads": FeatureSpec({LEARNER: ("terms",), PASSES: ("heads",)}),
    "heads.wdl": FeatureSpec({GAME: ("opponents",)}),
    "heads.hidden": FeatureSpec({GAME: ("hidden",), NETWORK: ("hidden",)}),
    "heads.opponents": FeatureSpec(
        {GAME: ("opponents", "discrete"), NETWORK: ("hidden",)},
        {"collect.mirror": "the others' actions are not mirrored"},
    ),
    "ppo.value_clip": FeatureSpec(),
    "ppo.magnet": FeatureSpec({LEARNER: ("magnet",)}),
    "ppo.magnet_period 0": FeatureSpec({GAME: ("discrete",)}),
    "imitate": FeatureSpec(
        {LEARNER: ("records",), GAME: ("repeats",)},
        {
            "net.memory": "imitation trains on single decisions",
            **dict.fromkeys(("replicas", "devices"), ALONE),
        },
    ),
    # Of the network.
    "net.critic full": FeatureSpec(
        {LEARNER: ("critic",), GAME: ("hidden",)},
        {
            "collect.mirror": "hidden information has no mirror image",
            "ppo.value_clip": "the old values are the critic's, not those of the network",
        },
    ),
    "net.critic_hidden": FeatureSpec({NETWORK: ("critic",)}),
    "net.sees": FeatureSpec(
        {LEARNER: ("seeing",), GAME: ("hidden",), PLACE: ("seeing",)},
        {
            "collect.mirror": "hidden information has no mirror image",
            "heads": "their targets read rows of finished games, where what was hidden is gone",
            "hindsight.on": "relabeled rows hold what was seen",
            "imitate": "demonstrations hold what was seen",
            "net.critic full": "its own values see what is hidden",
            **dict.fromkeys(
                ("actors", "cluster", "replicas"), "what is hidden is read where the games run"
            ),
        },
    ),
    "net.kind residual": FeatureSpec({GAME: ("board",)}),
    "net.kind attention": FeatureSpec({GAME: ("entities",)}),
    **dict.fromkeys(
        ("net.kind nature", "net.kind impala"),
        FeatureSpec({LEARNER: ("pixels",), GAME: ("pixels",)}),
    ),
    "net.memory": FeatureSpec(
        {LEARNER: ("memory",), NETWORK: ("memory",), PASSES: ("memory",)},
        {
            "collect.mirror": "a memory has no mirror image",
            "hindsight.on": "the memory holds observations under another goal",
        },
    ),
    "net.memory gru": FeatureSpec(
        {LEARNER: ("sequences",), NETWORK: ("cell", "trunk"), PASSES: ("recurrent states",)},
        {
            **dict.fromkeys(
                ("net.policy_hidden", "net.value_hidden"),
                "the heads read the recurrent state directly",
            ),
            "rewards by role": "a recurrent state runs through all decisions of a seat, and with "
            "rewards by role each role has a separate chain of decisions (net.memory stack works)",
        },
    ),
    # Of the place.
    "population": FeatureSpec(
        {LEARNER: ("population",), PLACE: ("population",)},
    ),
    "shared league": FeatureSpec(
        {LEARNER: ("population",), PLACE: ("shared league",)},
        {
            "players apart": "its members share one set of opponents",
            **dict.fromkeys(
                ("actors", "replicas", "devices"), "its members take turns in one process"
            ),
        },
    ),
    "actors": FeatureSpec(
        {LEARNER: ("rollouts",), PLACE: ("host rollouts",)},
        {
            "population": "a population is trained on one GPU",
            "pool cuda": "actors play on CPUs",
        },
    ),
    "replicas": FeatureSpec(
        {LEARNER: ("gradients",), PLACE: ("replicas",)},
        {
            "actors": "actors play for one learner",
            "seen in hindsight": "relabeled decisions stay with their learner",
            "population": "a population is trained on one GPU",
        },
    ),
    "late decisions": FeatureSpec({LEARNER: ("late decisions",)}),
    "devices": FeatureSpec(
        {LEARNER: ("gradients",), GAME: ("repeats",), PLACE: ("devices",)},
        {
            "actors": "actors play for one learner",
            "replicas": "both say how many learners there are",
            "cluster": "its processes are of this machine",
            "heads": "the scales of their targets would differ from one GPU to the next",
            "seen in hindsight": "relabeled decisions stay with their learner",
            "population": "a population is trained on one GPU",
        },
    ),
    "cluster": FeatureSpec({PLACE: ("host rollouts",)}),
    "own environment": FeatureSpec(
        {PLACE: ("host rollouts",)},
        dict.fromkeys(
            ("population", "shared league"), "its games are stepped where it was created"
        ),
    ),
    "own learner": FeatureSpec({PLACE: ("host rollouts",)}),
    "pool cuda": FeatureSpec(),
    "rewards by role": FeatureSpec(),
    # Of the opponents.
    "players apart": FeatureSpec({PLACE: ("opponents with other networks",)}),
    "past selves by role": FeatureSpec({PLACE: ("past selves by role",)}),
}
"""Features that can be requested, besides settings of networks (`NET_SETTINGS`)."""

TOKENS = FeatureSpec({NETWORK: ("tokens",)})
STATE = FeatureSpec({NETWORK: ("state",)})
NET_SETTINGS: Mapping[str, FeatureSpec] = {
    "net.set": FeatureSpec({NETWORK: ("arguments",)}),
    **dict.fromkeys(("net.token_width", "net.token_layers", "net.token_heads"), TOKENS),
    "net.policy_hidden": FeatureSpec({NETWORK: ("layers",), PASSES: ("policy layers",)}),
    "net.value_hidden": FeatureSpec({NETWORK: ("layers",), PASSES: ("value layers",)}),
    **dict.fromkeys(("net.memory_width", "net.bptt_steps"), STATE),
    "net.frames": FeatureSpec({NETWORK: ("frames",)}),
    "net.norm": FeatureSpec({NETWORK: ("norm",), PASSES: ("layer norm",)}),
    "net.normalize": FeatureSpec(
        {
            NETWORK: ("normalize",),
            PASSES: ("normalized observations",),
            PLACE: ("normalized observations",),
        }
    ),
    "net.inputs": FeatureSpec({NETWORK: ("inputs",)}),
}
"""Settings of `net` that not every network uses."""
UNHEARD = (
    *("net.set", "net.token_width", "net.token_layers", "net.token_heads", "net.memory_width"),
    *("net.bptt_steps", "net.frames"),
)
"""Settings that are ignored if they come from a preset: a user who chooses another kind of network
has not requested them."""
