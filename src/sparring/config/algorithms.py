"""What every algorithm can be told: PPO, DQN, SAC, and the replay that the last two learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sparring.config.ranges import Checked, Count, Scheduled, above, at_least, between, one_of
from sparring.schedule import Schedule

RATES = ("lr", "critic_lr", "temperature_lr")
"""Learning rates, by the names that they have in any algorithm."""


@dataclass(frozen=True)
class PPOConfig(Checked, section="ppo"):
    """Proximal policy optimization."""

    epochs: Annotated[int, between(1, 100)] = 2
    """Passes over each rollout. More learns more per sample and costs more per second."""
    minibatch: Annotated[int, at_least(1)] = 4096
    """Samples per optimizer step. Smaller makes more and noisier steps."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(1e-3, 1e-4)
    """Learning rate. Higher learns faster and breaks sooner."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(1.0)
    """Discount per decision. Below 1 prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discount of a step into each of the game's roles, where it differs from gamma."""
    gae_lambda: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.95)
    """How far advantages look past the value estimate. Higher is less biased and noisier."""
    clip: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.2)
    """Largest change of an action's probability ratio. Higher learns faster and breaks sooner."""
    value_clip: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Largest change of a value per update, in value units. 0: no limit."""
    value_weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.5)
    """Weight of the value loss. Higher fits values faster at the policy's expense."""
    entropy: Annotated[Scheduled, at_least(0)] = Schedule.line(0.01, 0.001)
    """Bonus for undecided policies. Higher explores longer."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(0.5)
    """Longest gradient that is followed. Lower is calmer."""
    target_kl: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.03)
    """Stop the epochs of an update once the policy moved this far. 0: never."""


@dataclass(frozen=True)
class ReplayConfig(Checked, section="replay"):
    """What is remembered, and how often it is learned from. Of DQN and SAC."""

    ratio: Annotated[float, above(0, 65_536)] = 8.0
    """Samples trained per decision of the learner, however many games are played: the replay
    ratio. Higher learns more per decision and costs more per second."""
    batch: Annotated[int, between(1, 1_048_576)] = 256
    """Samples per optimizer step."""
    capacity: Annotated[Count, at_least(1)] = 1_000_000
    """Decisions that are remembered; the oldest give way."""
    warmup: Count = 5_000
    """Decisions that are remembered before learning begins."""
    warmup_by: Annotated[str, one_of("random", "policy")] = "random"
    """Who makes them: random (any legal action) or policy (the untrained network)."""
    n_step: Annotated[int, between(1, 64)] = 1
    """Decisions of the same seat whose payments are summed before an estimate takes over."""
    prioritized: bool = False
    """Sample by how wrong the estimate was, instead of uniformly."""
    priority_exponent: Annotated[float, between(0, 1)] = 0.6
    """How much a larger error is preferred. 0: not at all."""
    priority_correction: Annotated[Scheduled, between(0, 1)] = Schedule.line(0.4, 1.0)
    """How much of that preference weights take back."""
    save: bool = True
    """Save what is remembered with checkpoints. Off: a resumed run remembers anew."""


@dataclass(frozen=True)
class DQNConfig(Checked, section="dqn"):
    """Deep Q-learning: double, dueling, n-step, with masks; for discrete actions."""

    mode: Annotated[str, one_of("replay", "rollouts")] = "replay"
    """replay: learns from what is remembered. rollouts: from fresh ones alone, without a target
    network, for very many games (PQN; wants net.norm)."""
    lr: Annotated[Scheduled, at_least(0)] = Schedule.line(5e-4, 1e-4)
    """Learning rate. Higher learns faster and breaks sooner."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Below 1 prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discount of a step into each of the game's roles, where it differs from gamma."""
    double: bool = True
    """The network chooses the next action and the target network values it."""
    dueling: bool = True
    """Values of states and advantages of actions apart."""
    huber: Annotated[float, at_least(0)] = 1.0
    """Errors beyond this count linearly. 0: all are squared."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target network follows at every optimizer step."""
    target_every: Annotated[int, at_least(0)] = 0
    """Optimizer steps after which the target network is replaced instead. 0: it follows by tau."""
    epsilon: Annotated[Scheduled, between(0, 1)] = Schedule.read("0%:1.0,20%:0.05")
    """Share of random legal actions while training; evaluations have none."""
    epsilon_spread: Annotated[float, between(0, 100)] = 0.0
    """Every game has an epsilon of its own, from epsilon to epsilon^(1 + this). 0: all the same."""
    max_grad_norm: Annotated[Scheduled, above(0)] = Schedule.constant(10.0)
    """Longest gradient that is followed. Lower is calmer."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, by_games=True)] = Schedule.constant(0.0)
    """Paid backwards to the decisions before a win, the last but one first, as the original hockey
    project does. On a CPU, from replay. 0: nothing."""
    win_discount: Annotated[Scheduled, between(0, 1, by_games=True)] = Schedule.constant(0.92)
    """What is left of it from one decision to the one before."""
    q_lambda: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.65)
    """Of mode rollouts: how far returns look past the estimate."""
    epochs: Annotated[int, between(1, 100)] = 2
    """Of mode rollouts: passes over each rollout."""
    minibatch: Annotated[int, at_least(1)] = 4096
    """Of mode rollouts: samples per optimizer step."""


@dataclass(frozen=True)
class SACConfig(Checked, section="sac"):
    """Soft actor-critic: two critics, and a temperature that finds itself; for any actions."""

    lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the policy."""
    critic_lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of the critics."""
    critic_hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Widths of the critics' hidden layers. Left out: those of net.hidden."""
    critic_norm: bool = False
    """Layer norm in the critics: calmer at high replay ratios."""
    gamma: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.99)
    """Discount per decision. Below 1 prefers early rewards."""
    gamma_into: Annotated[tuple[float, ...], between(0, 1)] = ()
    """Discount of a step into each of the game's roles, where it differs from gamma."""
    tau: Annotated[Scheduled, between(0, 1)] = Schedule.constant(0.005)
    """Share by which the target critics follow at every optimizer step."""
    temperature: Annotated[float, at_least(0)] = 0.0
    """Worth of entropy. 0: it finds itself."""
    temperature_lr: Annotated[Scheduled, at_least(0)] = Schedule.constant(3e-4)
    """Learning rate of a temperature that finds itself."""
    initial_temperature: Annotated[float, above(0)] = 1.0
    """Where it begins."""
    target_entropy: Annotated[float, between(-1000, 1000)] = 0.0
    """Entropy that it aims at. 0: minus the numbers of an action; of discrete actions a share of
    the largest there is, target_entropy_share."""
    target_entropy_share: Annotated[float, between(0, 1)] = 0.3
    """Of discrete actions: share of the entropy of uniform play over the legal ones."""
    max_grad_norm: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.0)
    """Longest gradient that is followed. 0: any."""
    win_bonus: Annotated[Scheduled, between(-1e6, 1e6, by_games=True)] = Schedule.constant(0.0)
    """Paid backwards to the decisions before a win, the last but one first, as the original hockey
    project does. On a CPU, from replay. 0: nothing."""
    win_discount: Annotated[Scheduled, between(0, 1, by_games=True)] = Schedule.constant(0.92)
    """What is left of it from one decision to the one before."""
