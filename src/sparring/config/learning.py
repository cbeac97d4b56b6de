"""What a policy is, how experience is collected, learned from and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any

from tyro.constructors import PrimitiveConstructorSpec

from sparring.errors import ConfigError
from sparring.schedule import Schedule

Scheduled = Annotated[
    Schedule,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="NUMBER|SCHEDULE",
        instance_from_str=lambda words: Schedule.read(words[0]),
        is_instance=lambda given: isinstance(given, Schedule),
        str_from_instance=lambda schedule: [str(schedule)],
    ),
]
"""A number that may change on the way: 1e-3, 0:1e-3,2e6:1e-4 (decisions), 0%:1e-3,100%:1e-4."""


def demand_least(config: Any, where: str, **least: int) -> None:
    """Refuse settings that are too small."""
    for name, bound in least.items():
        if getattr(config, name) < bound:
            raise ConfigError(f"{where}.{name} {getattr(config, name)} must be at least {bound}")


@dataclass(frozen=True)
class NetConfig:
    """The network of a policy."""

    kind: str = "mlp"
    """mlp: layers over all features. residual: convolutions, for games on a board."""
    channels: int = 64
    """Of a residual net: channels per square. More see more kinds of things."""
    blocks: int = 6
    """Of a residual net: blocks of two convolutions. More look farther ahead and across."""
    hidden: tuple[int, ...] = (256, 256)
    """Of an mlp: widths of the hidden layers. Larger learns more per sample and costs more."""
    shared: bool = True
    """Of an mlp: one trunk for policy and value. Off: two of them, twice the work."""
    activation: str = "relu"
    """Of an mlp: relu, tanh or silu."""
    sparse: bool = True
    """On a CPU, our own first layer (skips features that are 0), convolutions and tanh."""
    spread: str = "shared"
    """Of continuous actions: one for all situations (shared), or predicted from each."""
    squash: bool = False
    """Continuous actions pass through tanh. Off: they are cut off at their bounds."""

    def __post_init__(self) -> None:
        """Refuse layers of no width."""
        if not self.hidden or min(self.hidden) < 1:
            raise ConfigError(f"net.hidden {self.hidden}: give widths of at least 1")


@dataclass(frozen=True)
class CollectConfig:
    """How experience is collected, whatever learns from it."""

    games: int = 512
    """Games played at once. More gives more varied rollouts and slower updates."""
    steps: int = 64
    """Steps per rollout. Longer looks further ahead and updates less often."""
    slots: int = 1
    """Groups of games. 2 lets one group step while a network on a GPU answers the other."""
    bf16: bool = True
    """On a GPU, compute in bfloat16; weights stay float32."""
    compile: bool = False
    """On a GPU, compile the network with torch.compile. Pays off in long runs."""

    def __post_init__(self) -> None:
        """Refuse sizes that nothing can be collected with."""
        demand_least(self, "collect", games=1, steps=1, slots=1)


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation."""

    epochs: int = 2
    """Passes over each rollout. More learns more per sample and costs more per second."""
    minibatch: int = 4096
    """Samples per optimiser step. Smaller makes more and noisier steps."""
    lr: Scheduled = Schedule.line(1e-3, 1e-4)
    """Learning rate. Higher learns faster and breaks sooner."""
    gamma: Scheduled = Schedule.constant(1.0)
    """Discount per decision. Below 1 prefers early rewards."""
    gamma_into: tuple[float, ...] = ()
    """Discount of a step into each of the game's roles, where it differs from gamma."""
    gae_lambda: Scheduled = Schedule.constant(0.95)
    """How far advantages look past the value estimate. Higher is less biased and noisier."""
    clip: Scheduled = Schedule.constant(0.2)
    """Largest change of an action's probability ratio. Higher learns faster and breaks sooner."""
    value_clip: Scheduled = Schedule.constant(0.0)
    """Largest change of a value per update, in value units. 0: no limit."""
    value_weight: Scheduled = Schedule.constant(0.5)
    """Weight of the value loss. Higher fits values faster at the policy's expense."""
    entropy: Scheduled = Schedule.line(0.01, 0.001)
    """Bonus for undecided policies. Higher explores longer."""
    max_grad_norm: Scheduled = Schedule.constant(0.5)
    """Longest gradient that is followed. Lower is calmer."""
    target_kl: Scheduled = Schedule.constant(0.03)
    """Stop the epochs of an update once the policy moved this far. 0: never."""

    def __post_init__(self) -> None:
        """Take plain numbers for schedules, as Python code gives them."""
        for field in fields(self):
            if isinstance(field.default, Schedule):
                given = Schedule.read(getattr(self, field.name), f"ppo.{field.name}")
                object.__setattr__(self, field.name, given)
                most = 1.0 if field.name in ("gamma", "gae_lambda") else math.inf
                if not all(0 <= value <= most for value in given.values):
                    upper = f" and at most {most:g}" if most < math.inf else ""
                    raise ConfigError(f"ppo.{field.name} {given} must be at least 0{upper}")
        demand_least(self, "ppo", epochs=1, minibatch=1)


@dataclass(frozen=True)
class EvaluationConfig:
    """How a run measures itself while it trains."""

    every_s: float = 40.0
    """Seconds between evaluations, less in a short run. They run beside training."""
    every_decisions: int = 0
    """Decisions of the learner between them instead; then a run repeats anywhere. 0: by seconds."""
    games: int = 1024
    """Games against each opponent. More gives narrower intervals and takes longer."""
    final_games: int = 8192
    """Games against each opponent after training."""
    against: tuple[str, ...] = ()
    """Bots to meet, unless the game has one seat. Left out: the two best, at the end all."""
    target: tuple[float, ...] = ()
    """Win shares against the hardest bot, or scores of one seat, whose times are noted: each
    counts as reached when the lower end of the 95 % interval is there."""
    patience: int = 0
    """Stop after this many evaluations in a row without a new best. 0: never."""
    off: bool = False
    """No evaluation while training, only at the end."""
