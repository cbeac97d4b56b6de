"""What a network is, how experience is collected and measured, who is met, and records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import UseAppendAction

from sparring.config.ranges import (
    Checked,
    Count,
    Scheduled,
    above,
    at_least,
    between,
    one_of,
)
from sparring.errors import ConfigError
from sparring.schedule import Schedule

MAX_LAYERS = 64


@dataclass(frozen=True)
class CollectConfig(Checked, section="collect"):
    """How experience is collected, whatever learns from it."""

    games: Annotated[int, at_least(1)] = 512
    """Games played at once. More gives more varied rollouts and slower updates."""
    steps: Annotated[int, at_least(1)] = 64
    """Steps per rollout. Longer looks further ahead and updates less often."""
    groups: Annotated[int, between(1, 64)] = 1
    """Groups of games. 2 lets one group step while a network on a GPU answers the other."""
    bf16: bool = True
    """On a GPU, compute in bfloat16; weights stay float32."""
    cpu: Annotated[str, one_of("auto", "bf16", "float32", "torch")] = "auto"
    """On a CPU, how a network is computed. float32: natively. bf16: natively with products in
    bfloat16, on CPUs with AMX. torch: the readable way, slower. auto: the best that there is."""
    mirror: bool = False
    """Learn from mirror images too, in games that are the same in a mirror (laser hockey, Shogi,
    tic-tac-toe)."""


@dataclass(frozen=True)
class EvaluationConfig(Checked, section="eval"):
    """How a run measures itself while it trains."""

    every_s: Annotated[float, at_least(0)] = 40.0
    """Seconds between evaluations, less in a short run. They run beside training."""
    every_decisions: Count = 0
    """Decisions of the learner between them instead; then a run repeats anywhere. 0: by seconds."""
    games: Annotated[int, at_least(2)] = 1024
    """Games against each opponent. More gives narrower intervals and takes longer."""
    final_games: Annotated[int, at_least(2)] = 8192
    """Games against each opponent after training."""
    against: tuple[str, ...] = ()
    """Bots to meet, unless the game has one seat. Left out: the two best, at the end all. A run's
    strength is the share won against the best one; without that it has none."""
    target: Annotated[tuple[float, ...], between(-1e9, 1e9)] = ()
    """Win shares against the hardest bot, or scores of one seat, whose times are noted: each
    counts as reached when the lower end of the 95 % interval is there."""
    patience: Annotated[int, at_least(0)] = 0
    """Stop after this many evaluations in a row without a new best. 0: never."""
    stop: tuple[str, ...] = ()
    """Stop when an evaluation finds all of these against every opponent: win=0.6, score=50, or a
    statistic of the game, as order_kept=0.9 (or more) and hosts_lost=..2 (or less). Of win and
    score the 95 % interval has to be inside."""
    timeout_s: Annotated[float, above(0, 86_400)] = 60.0
    """Of an environment of your own: seconds after which an evaluation begins no more episodes;
    those under way may take as long again, and what still hangs after three times as long is
    ended. At the end ten times as long."""
    off: bool = False
    """No evaluation while training, only at the end."""


@dataclass(frozen=True)
class LeagueConfig(Checked, section="league"):
    """The past selves of a run: when they are kept, and who is met how often.

    There is a league as soon as `opponents` names `past`, `best` or a saved policy.
    """

    preset: Annotated[str, one_of("", "generations")] = ""
    """generations: learn against everybody of the past, freeze, add, repeat. --league NAME for
    short."""
    every_decisions: Count = 0
    """Decisions of the learner between two snapshots. 0: those of twenty updates."""
    gate: Annotated[float, between(0, 1)] = 0.0
    """Keep a snapshot only when the learner has this share of the points against the past since the
    last one. 0: keep every one."""
    sampling: Annotated[
        str, one_of("uniform", "newest", "pfsp", "pfsp-even", "forgotten", "skill")
    ] = "uniform"
    """Who is met: uniform over the past; newest: the last one in 4 of 5 games; pfsp: those that are
    harder to beat; pfsp-even: those of equal strength; forgotten: those that were beaten once and
    are not any more; skill: those within a range of ratings."""
    slots: Annotated[int, between(1, 240)] = 16
    """Past selves that can be met at a time. More are more varied and cost more."""
    shared: bool = False
    """Members of a population meet each other's past selves too, not only their own."""
    role: Annotated[str, one_of("main", "exploiter")] = "main"
    """main: learns to beat everybody. exploiter: meets main agents alone, and starts anew whenever
    it wins or stalls."""
    gigabytes: Annotated[float, above(0)] = 4.0
    """Disk that snapshots may take; beyond it some are removed that resemble others."""


@dataclass(frozen=True)
class HierarchyConfig(Checked, section="hierarchy"):
    """A network of its own for every role of a game: a manager that bids, a worker that plays."""

    on: bool = False
    """Every role has a network of its own. Without it one network decides in all roles."""
    learn: str = "together"
    """Who learns: together, alternately, or one role by its name while the others stay."""
    turn: Annotated[int, at_least(1)] = 10
    """Of alternately: updates that a role learns before it is another's turn."""


@dataclass(frozen=True)
class HindsightConfig(Checked, section="hindsight"):
    """Decisions seen once more, as if what came out had been the goal."""

    on: bool = False
    """Learn from them too: out of the replay, or beside PPO as examples, never in its ratio."""
    share: Annotated[float, between(0, 1)] = 0.5
    """Share of the decisions that could be seen so which are."""
    weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.1)
    """Of PPO: weight of the examples' loss."""

    @property
    def sees(self) -> bool:
        """Whether anything is seen so; a share of 0 changes nothing at all."""
        return self.on and self.share > 0


@dataclass(frozen=True)
class EnvConfig(Checked, section="env"):
    """How an environment of your own is stepped in worker processes."""

    groups: Annotated[int, between(0, 4096)] = 0
    """Groups of games, each stepped on as soon as it is answered. More wait less for slow games and
    ask the network in smaller batches. 0: two for every worker."""
    step_timeout_s: Annotated[float, above(0, 86_400)] = 60.0
    """Seconds after which a step, or a reset, is taken to hang: its worker is killed and started
    again. A measurement fails then."""
    start_timeout_s: Annotated[float, above(0, 86_400)] = 120.0
    """Seconds that a worker may take to make its environments."""
    max_restarts: Annotated[int, at_least(0)] = 100
    """Workers that may die in a run before it gives up."""
    max_restarts_in_a_row: Annotated[int, at_least(1)] = 10
    """Times that one worker may die without having ended a single episode in between before the run
    gives up. Higher bears long episodes of a fragile simulator."""


@dataclass(frozen=True)
class DistributedConfig(Checked, section="distributed"):
    """How actors, processes that play, work for the learner (`actors`)."""

    lockstep: bool = False
    """Everybody waits for everybody: the same run as in one process, bit for bit."""
    actors_per_update: Annotated[int, at_least(0)] = 0
    """Actors whose rollouts an update waits for, whichever come first. 0: half of them."""
    queue: Annotated[int, between(0, 16)] = 0
    """Rollouts that an actor may have finished and play on before they are taken. More wait less,
    lag more. 0: it plays while the learner learns from its last one."""
    max_lag: Annotated[int, at_least(0)] = 4
    """Updates that the weights of a rollout may be behind; the learner waits for it rather."""
    rho_clip: Annotated[float, above(0, 1000)] = 1.0
    """Of V-trace: most that a decision weighs which the present policy would make more often than
    the one that played. Higher is less biased and more noisy."""
    c_clip: Annotated[float, between(0, 1000)] = 1.0
    """Of V-trace: most that what came after it weighs, rho at most. Lower looks less far ahead."""
    whole_episodes: bool = False
    """A rollout is one whole game in each place, played by the same weights from beginning to end;
    collect.steps is the longest that it may take."""
    threads: Annotated[int, between(1, 256)] = 1
    """Threads of every actor."""
    trusted_network: bool = False
    """Replicas on other machines: their sums travel through torch.distributed, which knows no token
    and listens on the machines' addresses. Only in a network of your own."""
    timeout_s: Annotated[float, above(0, 86_400)] = 300.0
    """Seconds without a rollout after which an actor is ended and started again."""
    max_restarts: Annotated[int, at_least(0)] = 100
    """Actors that may die in a run before it gives up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.c_clip > self.rho_clip:
            raise ConfigError(
                f"distributed.c_clip {self.c_clip:g} is above distributed.rho_clip "
                f"{self.rho_clip:g}; give {self.rho_clip:g} at most, or raise distributed.rho_clip"
            )


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
    std: Annotated[str, one_of("shared", "predicted")] = "shared"
    """Of continuous actions: one for all situations (shared), or predicted from each."""
    squash: bool = False
    """Continuous actions pass through tanh. Off: they are cut off at their bounds."""
    inputs: tuple[str, ...] = ()
    """Of an mlp: the blocks of the observation that it sees. Left out: all of them."""
    normalize: bool = False
    """Of an mlp: observations are centered and scaled by what was seen so far, which is saved with
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
    bptt_steps: Annotated[int, between(1, 1024)] = 16
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
        super().__post_init__()
        for name, least in (("hidden", 1), ("policy_hidden", 0), ("value_hidden", 0)):
            layers = len(getattr(self, name))
            if not least <= layers <= MAX_LAYERS:
                raise ConfigError(
                    f"net.{name} has {layers} layers; give the widths of {least} to {MAX_LAYERS}"
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
        return any(any(one.values) for one in (self.wdl, self.score, self.hidden))


@dataclass(frozen=True)
class ImitationConfig(Checked, section="imitation"):
    """How a run learns from records before it plays, see --imitate."""

    games: Annotated[int, at_least(1)] = 2000
    """Games that bots play, where --imitate names bots; of several each has its share."""
    epochs: Count = 0
    """Passes over all positions instead of minutes. 0: as many as the minutes allow."""
    minibatch: Annotated[int, at_least(1)] = 1024
    """Positions of a step."""
    lr: Annotated[Scheduled, above(0, 1)] = Schedule.line(1e-3, 1e-4)
    """Adam's learning rate. Progress is that of imitation, decisions are the positions that were
    learned from."""
    value_weight: Annotated[float, between(0, 1000)] = 0.5
    """Weight of the squared error of values beside the moves' cross-entropy."""
    held_out: Annotated[float, between(0, 0.5)] = 0.05
    """Share of the games that is not learned from but measured."""
    kl_weight: Annotated[Scheduled, between(0, 1000)] = Schedule.line(0.5, 0.0)
    """Weight of the KL penalty toward the imitated policy during self-play. 0: it may forget."""
