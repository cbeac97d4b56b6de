"""What a network is, what it is asked besides, and how it learns from records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import UseAppendAction

from sparring.config.ranges import Checked, Count, Scheduled, above, at_least, between, one_of
from sparring.errors import ConfigError
from sparring.schedule import Schedule

MOST_LAYERS = 64


@dataclass(frozen=True)
class NetConfig(Checked, section="net"):
    """The network of a policy."""

    kind: Annotated[
        str, one_of("mlp", "residual", "attention", pattern=r".+:.+", besides="module:Class")
    ] = "mlp"
    """mlp: layers over all features. residual: convolutions, for games on a board. attention: over
    cards, players and other things, for games that name them. Or a torch module of your own, as
    module:Class or file.py:Class, whose code is run."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """Of a network of your own: an argument of its class as key=value."""
    channels: Annotated[int, between(1, 1024)] = 64
    """Of a residual net: channels per square. More see more kinds of things."""
    blocks: Annotated[int, between(1, 128)] = 6
    """Of a residual net: blocks of two convolutions. More look farther ahead and across."""
    hidden: Annotated[tuple[int, ...], between(1, 8192)] = (256, 256)
    """Of an mlp: widths of the hidden layers. Larger learns more per sample and costs more."""
    shared: bool = True
    """Of an mlp: one trunk for policy and value. Off: two of them, twice the work."""
    activation: Annotated[str, one_of("relu", "tanh", "silu")] = "relu"
    """Of an mlp: relu, tanh or silu."""
    sparse: bool = True
    """On a CPU, our own first layer (skips features that are 0), convolutions and tanh."""
    spread: Annotated[str, one_of("shared", "predicted")] = "shared"
    """Of continuous actions: one for all situations (shared), or predicted from each."""
    squash: bool = False
    """Continuous actions pass through tanh. Off: they are cut off at their bounds."""
    inputs: tuple[str, ...] = ()
    """Of an mlp: the blocks of the observation that it sees. Left out: all of them."""
    normalise: bool = False
    """Of an mlp: observations are centred and scaled by what was seen so far, which is saved with
    the network. For environments whose numbers are far from 1."""
    norm: bool = False
    """Of an mlp: layer norm in front of every activation. Calms learning without a target net."""

    policy_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Of an mlp: widths of layers that the policy has for itself, behind the shared ones."""
    value_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """The same of the value."""
    token_width: Annotated[int, between(8, 1024)] = 64
    """Of attention: numbers that stand for each thing."""
    token_layers: Annotated[int, between(1, 64)] = 2
    """Of attention: layers of the encoder."""
    token_heads: Annotated[int, between(1, 64)] = 4
    """Of attention: heads of each layer; they divide token_width."""
    memory: Annotated[str, one_of("", "gru", "stack")] = ""
    """What is remembered from one decision of a seat to its next: nothing, a state that the network
    writes itself (gru), or the observations before (stack)."""
    memory_width: Annotated[int, between(4, 4096)] = 128
    """Of memory gru: numbers of the state."""
    frames: Annotated[int, between(2, 64)] = 4
    """Of memory stack: observations that are seen, the newest included."""
    segment: Annotated[int, between(1, 1024)] = 16
    """Of memory gru: decisions in a row through which a gradient goes back."""

    @property
    def perceptron(self) -> bool:
        """Whether it is layers over all features, with a state or without."""
        return self.kind == "mlp"

    @property
    def recurrent(self) -> bool:
        """Whether it writes a state, which is learned through decisions in a row."""
        return self.memory == "gru"

    def __post_init__(self) -> None:
        """Refuse a network without layers, or with too many of them."""
        super().__post_init__()
        for name, least in (("hidden", 1), ("policy_hidden", 0), ("value_hidden", 0)):
            layers = len(getattr(self, name))
            if not least <= layers <= MOST_LAYERS:
                raise ConfigError(
                    f"net.{name} has {layers} layers; give the widths of {least} to {MOST_LAYERS}"
                )


@dataclass(frozen=True)
class HeadsConfig(Checked, section="heads"):
    """What a network is asked besides policy and value. Weights of 0 leave a head out."""

    wdl: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Weight of the loss of win, draw and loss: how likely each is."""
    score: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Weight of the loss of the final score."""
    hidden: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Weight of the loss of what the seat does not see, such as the others' cards, in games that
    tell it."""
    blend: Annotated[float, between(0, 1)] = 0.0
    """Share of win, draw and loss in the value of a position. 0: the value head alone."""

    @property
    def asked(self) -> bool:
        """Whether there is any head beside policy and value."""
        return any(any(one.values) for one in (self.wdl, self.score, self.hidden))


@dataclass(frozen=True)
class CloningConfig(Checked, section="cloning"):
    """How a run learns from records before it plays, see --teach."""

    games: Annotated[int, at_least(1)] = 2000
    """Games that bots play, where --teach names bots; of several each has its share."""
    epochs: Count = 0
    """Passes over all positions instead of minutes. 0: as many as the minutes allow."""
    minibatch: Annotated[int, at_least(1)] = 1024
    """Positions of a step."""
    lr: Annotated[Scheduled, above(0, 1)] = Schedule.line(1e-3, 1e-4)
    """Adam's learning rate. Progress is that of cloning, decisions are the positions that were
    learned from."""
    value_weight: Annotated[float, between(0, 1000)] = 0.5
    """Weight of the squared error of values beside the moves' cross-entropy."""
    held_out: Annotated[float, between(0, 0.5)] = 0.05
    """Share of the games that is not learned from but measured."""
    anchor: Annotated[Scheduled, between(0, 1000)] = Schedule.line(0.5, 0.0)
    """Weight of the divergence from what was cloned, while the run plays on. 0: it may forget."""
