"""Settings of algorithms: PPO, Gumbel AlphaZero, and those with a replay buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sparring.config.ranges import Checked, Count, Scheduled, above, at_least, between, one_of
from sparring.errors import ConfigError
from sparring.schedule import Schedule

RATES = ("lr", "critic_lr", "temperature_lr")
"""Names of learning rates in all algorithms."""


@dataclass(frozen=True)
class PPOConfig(Checked, section="ppo"):
    """Proximal policy optimization."""

    epochs: Annotated[int, between(1, 100)] = 2
    """Epochs over each rollout. More learns more per sample and takes longer."""
    minibatch: Annotated[int, at_least(1)] = 4096
    """Samples per optimizer step. Smaller makes more and noisier steps."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(1e-3, 1e-4)
    """Learning rate. Higher learns faster and becomes unstable sooner."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(1.0)
    """Discount per decision. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discounts by role of the next decision, in the order of the game's roles. Left out: gamma for
    all."""
    gae_lambda: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.95)
    """Lambda of generalized advantage estimation. Higher is less biased and noisier."""
    clip: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.2)
    """Largest change of an action's probability ratio. Higher learns faster and becomes unstable
    sooner."""
    value_clip: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Largest change of a value per update, in units of the values. 0: no limit."""
    value_weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.5)
    """Weight of the value loss. Higher fits values faster at the policy's expense."""
    entropy: Annotated[Scheduled, at_least(0)] = Schedule.line(0.01, 0.001)
    """Entropy bonus. Higher explores longer."""
    magnet: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Weight of the KL divergence of the policy from the magnet, an earlier copy of itself. Higher
    moves slower and cycles less, in games with hidden information. 0: no magnet."""
    magnet_period: Annotated[Scheduled, at_least(0)] = Schedule.constant(1.0)
    """Updates until the policy becomes the magnet again. 1: it is the policy that has just played.
    0: it is uniform over legal actions."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(0.5)
    """Gradients are clipped to this norm. Lower is more stable and slower."""
    target_kl: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.03)
    """Stop the epochs of an update once the KL divergence from the old policy exceeds this. 0:
    never."""


@dataclass(frozen=True)
class GumbelConfig(Checked, section="gumbel"):
    """Gumbel AlphaZero: self-play with search; where cards are hidden, in worlds."""

    simulations: Annotated[Scheduled, between(2, 65_536)] = Schedule.read(
        "0%:4,15%:16,50%:64 stepped"
    )
    """Simulations of a full search. More find better targets and take longer: start with few, as
    values are poor at first."""
    full_share: Annotated[float, above(0, 1)] = 0.25
    """Share of decisions that are searched fully and give a policy target (playout cap
    randomization). Higher has more policy targets, lower more outcomes for values."""
    fast_simulations: Annotated[int, between(1, 65_536)] = 4
    """Simulations of all other decisions, at most those of a full search."""
    considered: Annotated[int, between(2, 4096)] = 16
    """Actions that a full search considers at its root. Fewer are looked at more closely."""
    c_scale: Annotated[float, above(0)] = 0.3
    """Trees: weight of values against the policy. Higher makes improved policies sharper, and
    trusts the value head more. Where a game is not zero-sum, values are rescaled to 0..1."""
    least: Annotated[int, between(1, 65_536)] = 8
    """Hidden cards: worlds in which each action is tried; where the simulations do not suffice,
    fewer actions are."""
    horizon: Annotated[int, between(0, 1_000_000)] = 12
    """Hidden cards: own decisions after which the network's value counts. 0: games are played to
    their end."""
    eta: Annotated[Scheduled, above(0)] = Schedule.constant(2.0)
    """Hidden cards: step size of mirror descent, per unit of return. Smaller steps average over
    more searches, and are harder to exploit."""
    alpha: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.05)
    """Hidden cards: pull of a step toward the uniform policy. Higher cycles less, and stays farther
    from the best play."""
    caution: Annotated[float, at_least(0)] = 1.0
    """Hidden cards: how much smaller a step is where worlds disagree. 0: not at all."""
    epochs: Annotated[int, between(1, 100)] = 4
    """Epochs over each rollout. More learns more per sample and takes longer."""
    minibatch: Annotated[int, at_least(1)] = 512
    """Samples per optimizer step. Smaller makes more and noisier steps."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(2e-3, 2e-4)
    """Learning rate. Higher learns faster and becomes unstable sooner."""
    gamma: Annotated[float, between(0, 1)] = 1.0
    """Discount per decision, in searches as well. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Hidden cards: discounts by role of the next decision, in the order of the game's roles. Left
    out: gamma for all."""
    td_lambda: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.7)
    """Lambda of value targets. 1: outcomes alone; lower mixes in more of the searches' values."""
    value_weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(1.0)
    """Weight of the value loss. Higher fits values faster at the policy's expense."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(1.0)
    """Gradients are clipped to this norm. Lower is more stable and slower."""


@dataclass(frozen=True)
class ReplayConfig(Checked, section="replay"):
    """The replay buffer, and how often it is trained on. For DQN, QR-DQN, SAC, TD3 and REDQ."""

    ratio: Annotated[float, above(0, 65_536)] = 8.0
    """Replay ratio: samples trained per decision of the learner. Higher learns more per decision
    and takes longer."""
    batch: Annotated[int, between(1, 1_048_576)] = 256
    """Samples per optimizer step."""
    capacity: Annotated[Count, at_least(1)] = 1_000_000
    """Decisions in the buffer; the oldest are overwritten."""
    warmup: Count = 5_000
    """Decisions collected before training starts."""
    warmup_by: Annotated[str, one_of("random", "policy")] = "random"
    """How warm-up actions are chosen: random (any legal action) or policy (the untrained
    network)."""
    n_step: Annotated[int, between(1, 64)] = 1
    """Decisions of a seat whose rewards are summed before bootstrapping (n-step returns)."""
    prioritized: bool = False
    """Sample by TD error instead of uniformly."""
    priority_exponent: Annotated[float, between(0, 1)] = 0.6
    """Exponent of priorities. Higher prefers large errors more. 0: uniform."""
    priority_correction: Annotated[Scheduled, between(0, 1)] = Schedule.line(0.4, 1.0)
    """Exponent of the importance weights that correct for priorities. 1: full correction."""
    save: bool = True
    """Save the buffer with checkpoints. Off: a resumed run starts with an empty buffer."""


@dataclass(frozen=True)
class DQNConfig(Checked, section="dqn"):
    """Deep Q-learning (double, dueling, n-step, with action masks), for discrete actions."""

    mode: Annotated[str, one_of("replay", "rollouts")] = "replay"
    """replay: train from a replay buffer. rollouts: train from fresh rollouts only, without a
    target network, for very many games (PQN; set net.norm)."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(5e-4, 1e-4)
    """Learning rate. Higher learns faster and becomes unstable sooner."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discounts by role of the next decision, in the order of the game's roles. Left out: gamma for
    all."""
    double: bool = True
    """Double DQN: the network chooses the next action, the target network evaluates it."""
    dueling: bool = True
    """Dueling heads: state values and action advantages are separate."""
    huber: Annotated[float, at_least(0)] = 1.0
    """Huber loss: errors beyond this count linearly. 0: squared loss."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target network follows at every optimizer step. Higher follows faster."""
    target_every: Annotated[int, at_least(0)] = 0
    """Copy the network to the target network every so many optimizer steps, instead of tau. 0: use
    tau."""
    epsilon: Annotated[Scheduled, between(0, 1)] = Schedule.read("0%:1.0,20%:0.05")
    """Share of random legal actions while training. Evaluations use none."""
    epsilon_spread: Annotated[float, between(0, 100)] = 0.0
    """Each game has a different epsilon, from epsilon to epsilon^(1 + this). 0: all have the
    same."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(10.0)
    """Gradients are clipped to this norm. Lower is more stable and slower."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, episodes_ok=True)] = Schedule.constant(0.0)
    """Reward added backward from a win to the decisions before it, starting with the last but one,
    as in the original hockey project. Needs a CPU and a replay buffer. 0: none."""
    win_discount: Annotated[Scheduled, between(0, 1, episodes_ok=True)] = Schedule.constant(0.92)
    """Factor of win_bonus from one decision to the decision before."""
    q_lambda: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.65)
    """Mode rollouts: lambda of the returns. Higher is less biased and noisier."""
    epochs: Annotated[int, between(1, 100)] = 2
    """Mode rollouts: epochs over each rollout."""
    minibatch: Annotated[int, at_least(1)] = 4096
    """Mode rollouts: samples per optimizer step."""


@dataclass(frozen=True)
class QRDQNConfig(Checked, section="qrdqn"):
    """Quantile DQN (QR-DQN): the distribution of returns, for discrete actions."""

    quantiles: Annotated[int, between(1, 1024)] = 50
    """Quantiles of every action's return. More describe it in more detail and cost more."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(5e-4, 1e-4)
    """Learning rate. Higher learns faster and becomes unstable sooner."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discounts by role of the next decision, in the order of the game's roles. Left out: gamma for
    all."""
    double: bool = False
    """The network chooses the next action, the target network evaluates it. Off: the target network
    does both, as in the paper."""
    huber: Annotated[float, at_least(0)] = 1.0
    """Errors up to this count quadratically, others linearly. 0: all linearly."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target network follows at every optimizer step. Higher follows faster."""
    target_every: Annotated[int, at_least(0)] = 0
    """Copy the network to the target network every so many optimizer steps, instead of tau. 0: use
    tau."""
    epsilon: Annotated[Scheduled, between(0, 1)] = Schedule.read("0%:1.0,20%:0.05")
    """Share of random legal actions while training. Evaluations use none."""
    epsilon_spread: Annotated[float, between(0, 100)] = 0.0
    """Each game has a different epsilon, from epsilon to epsilon^(1 + this). 0: all have the
    same."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(10.0)
    """Gradients are clipped to this norm. Lower is more stable and slower."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, episodes_ok=True)] = Schedule.constant(0.0)
    """Reward added backward from a win to the decisions before it, starting with the last but one,
    as in the original hockey project. Needs a CPU. 0: none."""
    win_discount: Annotated[Scheduled, between(0, 1, episodes_ok=True)] = Schedule.constant(0.92)
    """Factor of win_bonus from one decision to the decision before."""


@dataclass(frozen=True)
class SACConfig(Checked, section="sac"):
    """Soft actor-critic: two critics and a tuned temperature, for any actions."""

    lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the policy."""
    critic_lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the critics."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Widths of the critics' hidden layers. Left out: net.hidden."""
    critic_norm: bool = False
    """Layer norm in the critics: more stable at most replay ratios."""
    critics: Annotated[int, between(2, 64)] = 2
    """Number of critics. More estimate values more exactly and cost more."""
    target_critics: Annotated[int, between(1, 64)] = 2
    """Critics of which the target takes the smallest, drawn anew for every optimizer step. More is
    more pessimistic."""
    actor_q: Annotated[str, one_of("min", "mean")] = "min"
    """What the policy raises: the smallest value of all critics (min), or the mean."""
    policy_every: Annotated[int, between(1, 1000)] = 1
    """Optimizer steps of the critics for every one of the policy."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discounts by role of the next decision, in the order of the game's roles. Left out: gamma for
    all."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target critics follow at every optimizer step. Higher follows faster."""
    temperature: Annotated[float, at_least(0)] = 0.0
    """Weight of the entropy (alpha). Higher explores more. 0: tuned automatically."""
    temperature_lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the tuned temperature."""
    initial_temperature: Annotated[float, above(0)] = 1.0
    """First value of the tuned temperature."""
    target_entropy: Annotated[float, between(-1000, 1000)] = 0.0
    """Entropy that the temperature is tuned to. 0: minus the action's dimension, or for discrete
    actions target_entropy_share of the largest possible."""
    target_entropy_share: Annotated[float, between(0, 1)] = 0.3
    """For discrete actions: target entropy as a share of that of uniform play over legal
    actions."""
    max_grad_norm: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Gradients are clipped to this norm. 0: no limit."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, episodes_ok=True)] = Schedule.constant(0.0)
    """Reward added backward from a win to the decisions before it, starting with the last but one,
    as in the original hockey project. Needs a CPU and a replay buffer. 0: none."""
    win_discount: Annotated[Scheduled, between(0, 1, episodes_ok=True)] = Schedule.constant(0.92)
    """Factor of win_bonus from one decision to the decision before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_critics > self.critics:
            raise ConfigError(
                f"{self._section}target_critics {self.target_critics} is above "
                f"{self._section}critics {self.critics}; give {self.critics} at most"
            )


@dataclass(frozen=True)
class REDQConfig(SACConfig, section="redq"):
    """Randomized ensembled double Q-learning (REDQ): SAC with many critics and optimizer steps."""

    critics: Annotated[int, between(2, 64)] = 10
    """Number of critics. More estimate values more exactly and cost more."""
    actor_q: Annotated[str, one_of("min", "mean")] = "mean"
    """What the policy raises: the smallest value of all critics (min), or the mean."""
    policy_every: Annotated[int, between(1, 1000)] = 20
    """Optimizer steps of the critics for every one of the policy."""


@dataclass(frozen=True)
class TD3Config(Checked, section="td3"):
    """Twin delayed deep deterministic policy gradient (TD3), for continuous actions."""

    lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the policy."""
    critic_lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the critics."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Widths of the critics' hidden layers. Left out: net.hidden."""
    critic_norm: bool = False
    """Layer norm in the critics: more stable at most replay ratios."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Lower prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discounts by role of the next decision, in the order of the game's roles. Left out: gamma for
    all."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target networks follow at every step of the policy. Higher follows
    faster."""
    policy_every: Annotated[int, between(1, 1000)] = 2
    """Optimizer steps of the critics for every one of the policy and the target networks."""
    noise: Annotated[Scheduled, between(0, 10)] = Schedule.constant(0.1)
    """Standard deviation of the noise on actions while training. Evaluations use none."""
    target_noise: Annotated[float, between(0, 10)] = 0.2
    """Standard deviation of the noise on the next action in targets. Higher smooths values more."""
    target_clip: Annotated[float, between(0, 2)] = 0.5
    """Largest absolute noise on the next action in targets."""
    max_grad_norm: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Gradients are clipped to this norm. 0: no limit."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, episodes_ok=True)] = Schedule.constant(0.0)
    """Reward added backward from a win to the decisions before it, starting with the last but one,
    as in the original hockey project. Needs a CPU. 0: none."""
    win_discount: Annotated[Scheduled, between(0, 1, episodes_ok=True)] = Schedule.constant(0.92)
    """Factor of win_bonus from one decision to the decision before."""


REPLAYED = (DQNConfig, QRDQNConfig, SACConfig, TD3Config)
"""Settings of algorithms with a replay buffer; DQN has a mode without one."""
