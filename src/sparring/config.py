"""Every default value, as frozen dataclasses. The line under a field is its help text."""

from __future__ import annotations

from dataclasses import dataclass

from tyro.conf import Positional


@dataclass(frozen=True)
class GamesConfig:
    """List the games, or one game's flags, bots, rewards and observation."""

    game: Positional[str] = ""
    """A game to describe. Left out: all games in one table."""
    features: bool = False
    """List every number of the observation: index, name, type, offset, divisor."""
    actions: bool = False
    """List every action with its name."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class BenchPoolConfig:
    """Prove a game's pool valid, then measure decisions per second."""

    game: Positional[str]
    """The game to measure."""
    games: int = 4096
    """Games in the pool. More hide the cost of a call from Python and need more memory."""
    seconds: float = 10.0
    """Time for measuring. More gives narrower spreads."""
    rounds: int = 5
    """How often every combination is measured, in turn. The median is reported."""
    threads: tuple[int, ...] = ()
    """A number of threads to measure. Left out: 1, 2, 4 and so on up to all cores."""
    seed: int = 0
    """Which games are played. The signature does not depend on it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class PlayConfig:
    """Play against bots in the terminal."""

    game: Positional[str]
    """The game to play."""
    seat: int = 0
    """Where you sit."""
    against: str = ""
    """The bot in the other seats, or a comma list of one per seat. Left out: the best one."""
    seed: int | None = None
    """Which game is dealt. Left out: a new one, and the seed is shown."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value; skip_forced=1 plays your only move for you."""


@dataclass(frozen=True)
class CheckConfig:
    """Run the conformance test every game has to pass."""

    game: Positional[str]
    """The game to check."""
    games: int = 20
    """Games played per property. More find rarer faults."""
    seed: int = 0
    """Which games are played."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class DoctorConfig:
    """Look at this installation and say what is missing."""

    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class NetConfig:
    """The network of a policy."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers. Larger learns more per sample and costs more per second."""
    shared: bool = True
    """One trunk for policy and value. Off: two of them, twice the work."""
    activation: str = "relu"
    """relu, tanh or silu."""
    sparse: bool = True
    """On a CPU, skip observation features that are 0 in the first layer. The values are the same."""


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation."""

    games: int = 512
    """Games played at once. More gives more varied rollouts and slower updates."""
    steps: int = 64
    """Steps per rollout. Longer looks further ahead and updates less often."""
    epochs: int = 2
    """Passes over each rollout. More learns more per sample and costs more per second."""
    minibatch: int = 4096
    """Samples per gradient step. Smaller makes more and noisier steps."""
    lr: float = 1e-3
    """Learning rate at the start. Higher learns faster and breaks sooner."""
    lr_end: float = 0.1
    """Learning rate at the end, as a share of the first."""
    gamma: float = 1.0
    """Discount per decision. Below 1 prefers early rewards."""
    lambda_: float = 0.95
    """How far advantages look past the value estimate. Higher is less biased and noisier."""
    clip: float = 0.2
    """Largest change of an action's probability ratio per update. Higher learns faster and breaks sooner."""
    value_clip: float = 0.0
    """Largest change of a value per update, in value units. 0: no limit."""
    value_weight: float = 0.5
    """Weight of the value loss. Higher fits values faster at the policy's expense."""
    entropy: float = 0.01
    """Bonus for undecided policies at the start. Higher explores longer."""
    entropy_end: float = 0.1
    """The bonus at the end, as a share of the first."""
    max_grad_norm: float = 0.5
    """Longest gradient that is followed. Lower is calmer."""
    target_kl: float = 0.03
    """Stop the epochs of an update once the policy moved this far. 0: never."""
