"""Settings of networks, collection, evaluation, opponents, workers, actors and imitation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from tyro.conf import Suppress, UseAppendAction

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
    """How experience is collected, for any algorithm."""

    games: Annotated[int, at_least(1)] = 512
    """Games played at once. More makes rollouts more varied and updates slower."""
    steps: Annotated[int, at_least(1)] = 64
    """Steps of every game per rollout. More looks further ahead and updates less often."""
    groups: Annotated[int, between(1, 64)] = 1
    """Groups of games that step in turn. With 2, one group steps on the CPU while the GPU computes
    the actions of the other."""
    bf16: bool = True
    """On a GPU, compute in bfloat16, which is faster; weights stay float32."""
    cpu: Annotated[str, one_of("auto", "bf16", "float32", "torch")] = "auto"
    """How the CPU computes the network. float32: native code. bf16: native code with products in
    bfloat16, on CPUs with AMX. torch: plain PyTorch, slower. auto: the fastest available."""
    mirror: bool = False
    """Also train on mirrored positions, in games with a mirror symmetry (Connect Four, laser
    hockey, Shogi, tic-tac-toe)."""


@dataclass(frozen=True)
class EvaluationConfig(Checked, section="eval"):
    """How a run measures its strength while it trains."""

    every_s: Annotated[float, at_least(0)] = 40.0
    """Seconds between evaluations, fewer in a short run. They run in parallel to training."""
    every_decisions: Count = 0
    """Decisions of the learner between evaluations, instead of seconds; this makes a run repeatable
    on any machine. 0: use eval.every_s."""
    games: Annotated[int, at_least(2)] = 1024
    """Games against each opponent. More gives narrower confidence intervals and takes longer."""
    final_games: Annotated[int, at_least(2)] = 8192
    """Games against each opponent after training."""
    against: tuple[str, ...] = ()
    """Bots to evaluate against; not used in games with one seat. Left out: the two strongest bots,
    and all bots at the end. A run's strength is its win share against the strongest bot."""
    target: Annotated[tuple[float, ...], between(-1e9, 1e9)] = ()
    """Targets whose times are recorded: win shares against the strongest bot, or scores in games
    with one seat. A target is reached when the lower end of the 95 % interval reaches it."""
    patience: Annotated[int, at_least(0)] = 0
    """Stop after this many evaluations in a row without a new best. 0: never stop early."""
    stop: tuple[str, ...] = ()
    """Stop when one evaluation meets all these conditions against every opponent: win=0.6,
    score=50, or a statistic of the game, such as order_kept=0.9 (at least) and hosts_lost=..2 (at
    most). For win and score the whole 95 % interval has to meet it."""
    timeout_s: Annotated[float, above(0, 86_400)] = 60.0
    """For a custom environment: seconds after which an evaluation starts no more episodes. Running
    episodes get the same time again, and after three times as long they are aborted. The final
    evaluation has ten times as long."""
    exploitability: Annotated[str, one_of("auto", "on", "off")] = "auto"
    """Exact exploitability of every evaluated checkpoint, in the games of exploit --exact. auto: in
    those with a small tree, while it takes less than 2 % of the time. on: always."""
    off: bool = False
    """Evaluate only at the end, not while training."""


@dataclass(frozen=True)
class LeagueConfig(Checked, section="league"):
    """Past selves of a run as opponents: when they are saved, and how often each is met.

    A league exists if `opponents` names `past`, `best` or a saved policy.
    """

    preset: Annotated[str, one_of("", "generations")] = ""
    """generations: train against all past selves, freeze the policy, add it to them, repeat. Short:
    --league NAME."""
    every_decisions: Count = 0
    """Decisions of the learner between two snapshots. 0: the decisions of twenty updates."""
    gate: Annotated[float, between(0, 1)] = 0.0
    """Win share against the past since the last snapshot that the learner needs for a new snapshot.
    0: save every one."""
    sampling: Annotated[
        str, one_of("uniform", "newest", "pfsp", "pfsp-even", "forgotten", "skill")
    ] = "uniform"
    """How opponents are chosen. uniform: all with equal probability. newest: the latest in 4 of 5
    games. pfsp: mostly those that are hard to beat. pfsp-even: mostly those of equal strength.
    forgotten: those that used to lose and now win. skill: those within a range of ratings."""
    slots: Annotated[int, between(1, 240)] = 16
    """Past selves that can be met at a time. More makes opponents more varied and costs more time
    and memory."""
    shared: bool = False
    """Members of a population also meet each other's past selves; on a CPU they take turns."""
    role: Annotated[str, one_of("main", "exploiter", "league-exploiter")] = "main"
    """main: learns to beat all opponents. exploiter: meets main agents only, and restarts whenever
    it wins or stalls. league-exploiter: the same against everybody, exploiters too."""
    restart: Annotated[str, one_of("random", "main")] = "random"
    """Weights with which an exploiter restarts. main: those of the newest main agent, so that it
    soon finds what beats that one, and never what is far from it."""
    gigabytes: Annotated[float, above(0)] = 4.0
    """Disk space for snapshots; beyond it, snapshots that resemble others are removed."""


@dataclass(frozen=True)
class HierarchyConfig(Checked, section="hierarchy"):
    """A separate network for every role of a game: a manager that bids, a worker that plays."""

    on: bool = False
    """Give every role a separate network. Off: one network decides in all roles."""
    learn: str = "together"
    """Which networks learn: together, alternately, or the name of one role while the others stay
    fixed."""
    turn: Annotated[int, at_least(1)] = 10
    """With alternately: updates of one role before the next role's turn."""


@dataclass(frozen=True)
class HindsightConfig(Checked, section="hindsight"):
    """Hindsight: decisions relabeled as if the result that was reached had been the goal."""

    on: bool = False
    """Also train on relabeled decisions: from the replay buffer, or with PPO as extra examples in a
    separate loss."""
    share: Annotated[float, between(0, 1)] = 0.5
    """Share of the decisions that are relabeled, among those that can be. Higher learns more from
    failed attempts."""
    weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.1)
    """With PPO: weight of the loss on relabeled examples."""

    @property
    def relabels(self) -> bool:
        """Whether anything is seen so; a share of 0 changes nothing at all."""
        return self.on and self.share > 0


@dataclass(frozen=True)
class EnvConfig(Checked, section="env"):
    """How a custom environment is stepped in worker processes."""

    groups: Annotated[int, between(0, 4096)] = 0
    """Groups of games; each steps as soon as its actions are computed. More waits less for slow
    games and evaluates the network in smaller batches. 0: two per worker."""
    step_timeout_s: Annotated[float, above(0, 86_400)] = 60.0
    """Seconds after which a step or reset counts as hanging: its worker is killed and restarted. A
    benchmark fails instead."""
    start_timeout_s: Annotated[float, above(0, 86_400)] = 120.0
    """Seconds that a worker may take to create its environments."""
    max_restarts: Annotated[int, at_least(0)] = 100
    """Worker restarts in a run before it gives up."""
    max_restarts_in_a_row: Annotated[int, at_least(1)] = 10
    """Restarts of one worker without a finished episode in between before the run gives up. Raise
    it for long episodes of a simulator that crashes."""


@dataclass(frozen=True)
class DistributedConfig(Checked, section="distributed"):
    """How actors (processes that play) and several learners work together; see `actors`."""

    lockstep: bool = False
    """All processes wait for each other: the result is bit for bit that of one process."""
    actors_per_update: Annotated[int, at_least(0)] = 0
    """Rollouts of so many actors make an update; the first to finish count. 0: half of the
    actors."""
    queue: Annotated[int, between(0, 16)] = 0
    """Finished rollouts that an actor may have waiting while it plays on. More waits less and makes
    rollouts older. 0: the actor plays while the learner trains on its last rollout."""
    max_lag: Annotated[int, at_least(0)] = 4
    """Updates by which the weights of a rollout may be older than the learner's; otherwise the
    learner waits."""
    rho_clip: Annotated[float, above(0, 1000)] = 1.0
    """V-trace: largest importance weight of a decision. Higher is less biased and noisier."""
    c_clip: Annotated[float, between(0, 1000)] = 1.0
    """V-trace: largest importance weight of later decisions, at most rho_clip. Lower looks less far
    ahead."""
    whole_episodes: bool = False
    """A rollout is one whole episode per game, played with the same weights throughout;
    collect.steps is the longest episode allowed."""
    threads: Annotated[int, between(1, 256)] = 1
    """Threads of each actor."""
    gpus: Annotated[float, above(0, 1)] = 1.0
    """Share of a GPU that each of several runs in a cluster asks for; 0.5: two share one. Runs with
    device cpu ask for none."""
    trusted_network: bool = False
    """Allow replicas on other machines: they use torch.distributed, which has no authentication and
    listens on the machines' addresses. Only for a private network."""
    shared_gpu: bool = False
    """Allow one GPU twice in devices, for tests: sums then go through the CPU, which is slow."""
    timeout_s: Annotated[float, above(0, 86_400)] = 300.0
    """Seconds without a rollout after which an actor is killed and restarted."""
    max_restarts: Annotated[int, at_least(0)] = 100
    """Actor restarts in a run before it gives up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.c_clip > self.rho_clip:
            raise ConfigError(
                f"distributed.c_clip {self.c_clip:g} is above distributed.rho_clip "
                f"{self.rho_clip:g}; give {self.rho_clip:g} at most, or raise distributed.rho_clip"
            )


NATURE_LEAST = 36
"""The smallest height and width of pixels that net.kind nature's convolutions can read."""


@dataclass(frozen=True)
class NetConfig(Checked, section="net"):
    """The network of a policy."""

    kind: Annotated[
        str,
        one_of(
            *("mlp", "residual", "attention", "nature", "impala"),
            pattern=r".+:.+",
            placeholder="module:Class",
        ),
    ] = "mlp"
    """mlp: fully connected layers over all features. residual: convolutions, for board games.
    attention: over entities such as cards and players, for games that declare them. nature, impala:
    convolutions over pixels, for custom environments; nature is small, impala has residual blocks.
    Or a custom torch module, as module:Class or file.py:Class, whose code is run."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """For a custom network: an argument of its class as key=value."""
    channels: Annotated[int, between(1, 1024)] = 64
    """Residual network: channels per square. More represents more and costs more."""
    blocks: Annotated[int, between(1, 128)] = 6
    """Residual network: blocks of two convolutions. More connects distant squares and costs
    more."""
    hidden: Annotated[tuple[int, ...], between(1, 8192)] = (256, 256)
    """mlp: widths of the hidden layers. Wider learns more per sample and costs more."""
    shared: bool = True
    """mlp: policy and value share one trunk. Off: two trunks, twice the work."""
    activation: Annotated[str, one_of("relu", "tanh", "silu")] = "relu"
    """mlp: activation function."""
    sparse: bool = True
    """On a CPU, use the native first layer (skips features that are 0), convolutions and tanh."""
    std: Annotated[str, one_of("shared", "predicted")] = "shared"
    """Standard deviation of continuous actions: one for all states (shared), or computed by the
    network for each (predicted)."""
    squash: bool = False
    """Squash continuous actions by tanh. Off: clip them at their bounds."""
    inputs: tuple[str, ...] = ()
    """mlp: blocks of the observation to use as input. Left out: all of them."""
    normalize: bool = False
    """mlp: normalize observations by their running mean and variance, which are saved with the
    network. For environments whose values are far from 1."""
    norm: bool = False
    """mlp: layer norm before every activation. Stabilizes learning without a target network."""

    policy_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """mlp: widths of extra layers of the policy, after the shared trunk."""
    value_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """mlp: widths of extra layers of the value, after the shared trunk."""
    critic: Annotated[str, one_of("own", "full")] = "own"
    """Whose values the advantages are computed from: the network's own (own), or those of a second
    network that also reads what is hidden from the seat, while training alone (full)."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Full critic: widths of its hidden layers. Left out: those of net.hidden."""
    token_width: Annotated[int, between(8, 1024)] = 64
    """Attention: width of each entity's embedding. Wider represents more and costs more."""
    token_layers: Annotated[int, between(1, 64)] = 2
    """Attention: encoder layers."""
    token_heads: Annotated[int, between(1, 64)] = 4
    """Attention: heads per layer; must divide token_width."""
    memory: Annotated[str, one_of("", "gru", "stack")] = ""
    """Memory between the decisions of a seat: none (left out), a recurrent state (gru), or the last
    observations (stack)."""
    memory_width: Annotated[int, between(4, 4096)] = 128
    """GRU memory: width of the state."""
    frames: Annotated[int, between(2, 64)] = 4
    """Stacked memory: number of observations, including the current one."""
    bptt_steps: Annotated[int, between(1, 1024)] = 16
    """GRU memory: decisions through which gradients flow back (truncated BPTT). More learns longer
    dependencies and costs more."""
    sees: Annotated[bool, Suppress] = False
    """Rows hold what is hidden from the seat. Set by `sparring exploit --kinds sees` alone; no such
    policy plays."""

    @property
    def perceptron(self) -> bool:
        """Whether it is layers over all features, with a state or without."""
        return self.kind == "mlp"

    @property
    def reads_pixels(self) -> bool:
        """Whether it is convolutions over pixels."""
        return self.kind in ("nature", "impala")

    @property
    def recurrent(self) -> bool:
        """Whether it writes a state, which is learned through decisions in a row."""
        return self.memory == "gru"

    @property
    def full_critic(self) -> bool:
        """Whether a critic reads what is hidden."""
        return self.critic == "full"

    @property
    def played(self) -> NetConfig:
        """The same without the critic, which never plays."""
        return replace(self, critic="own", critic_hidden=())

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "policy_hidden", "value_hidden", "critic_hidden"):
            low = int(name == "hidden")
            layers = len(getattr(self, name))
            if not low <= layers <= MAX_LAYERS:
                raise ConfigError(
                    f"net.{name} has {layers} layers; give the widths of {low} to {MAX_LAYERS}"
                )


@dataclass(frozen=True)
class HeadsConfig(Checked, section="heads"):
    """Auxiliary heads besides policy and value. A weight of 0 leaves a head out."""

    wdl: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Loss weight of the outcome head: probabilities of win, draw and loss."""
    score: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Loss weight of the final-score head."""
    hidden: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Loss weight of the head that predicts hidden information, such as opponents' cards, in games
    that provide it."""
    opponents: Annotated[Scheduled, between(0, 1000)] = Schedule.constant(0.0)
    """Loss weight of the head that predicts what the other seats do next."""
    blend: Annotated[float, between(0, 1)] = 0.0
    """Share of the outcome head in a position's value. 0: the value head alone."""

    @property
    def asked(self) -> bool:
        weights = (self.wdl, self.score, self.hidden, self.opponents)
        return any(any(one.values) for one in weights)


@dataclass(frozen=True)
class ImitationConfig(Checked, section="imitation"):
    """How a run imitates recorded games or bots before self-play, see --imitate."""

    games: Annotated[int, at_least(1)] = 2000
    """Games that the bots and policies in --imitate play to be imitated; several share them."""
    targets: Annotated[str, one_of("actions", "distribution")] = "actions"
    """What to imitate of policies: the actions that they drew, or the whole distribution, which
    tells more per position. Bots and recorded games have actions alone."""
    epochs: Count = 0
    """Epochs over all positions, instead of minutes. 0: as many as imitate_minutes allows."""
    minibatch: Annotated[int, at_least(1)] = 1024
    """Positions per optimizer step."""
    lr: Annotated[Scheduled, above(0, 1)] = Schedule.line(1e-3, 1e-4)
    """Learning rate. A schedule refers to the imitation phase; its decisions are the positions
    trained on."""
    value_weight: Annotated[float, between(0, 1000)] = 0.5
    """Weight of the value loss next to the likelihood of actions."""
    held_out: Annotated[float, between(0, 0.5)] = 0.05
    """Share of the games that is held out for validation."""
    kl_weight: Annotated[Scheduled, between(0, 1000)] = Schedule.line(0.5, 0.0)
    """Weight of the KL penalty toward the imitated policy during self-play. 0: no penalty, the
    policy may forget."""
