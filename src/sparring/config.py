"""Every default value, as frozen dataclasses. The line under a field is its help text."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any

from tyro.conf import Positional, UseAppendAction
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
    device: str = "cpu"
    """Where the games live: cpu or cuda, which is held equal to the CPU first."""
    bots: tuple[str, ...] = ()
    """A bot for all seats, or one for each: their decisions count. Left out: random actions."""
    seed: int = 0
    """Which games are played. The signature does not depend on it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class PlayConfig:
    """Play against bots or a trained agent in the terminal."""

    game: Positional[str]
    """The game to play, or a run or checkpoint: its agent sits in the other seats."""
    seat: int = 0
    """Where you sit."""
    against: str = ""
    """A bot, run or checkpoint for the other seats, or one per seat. Left out: the best bot."""
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
    """Seconds between evaluations. They run beside training at low priority."""
    games: int = 1024
    """Games against each opponent. More gives narrower intervals and takes longer."""
    final_games: int = 8192
    """Games against each opponent after training."""
    against: tuple[str, ...] = ()
    """Bots to meet, unless the game has one seat. Left out: the two best, at the end all."""
    target: float = 0.0
    """Win share against the hardest bot, or score of one seat, whose time is noted. 0: none."""
    patience: int = 0
    """Stop after this many evaluations without progress. 0: never."""
    off: bool = False
    """No evaluation while training, only at the end."""


@dataclass(frozen=True)
class TrainConfig:
    """Train an agent by self-play and measure its strength."""

    game: Positional[str] = "skull_king"
    """The game to learn."""
    minutes: float = 5.0
    """Time for training. The clock decides how many updates that is; to repeat a run, set those."""
    updates: int = 0
    """Updates to make. 0: as many as the minutes allow."""
    seed: int = 0
    """Which games are played and where the network starts."""
    threads: int = 0
    """Threads for games and network. 0: one per core."""
    device: str = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    pool: str = "auto"
    """Where the games live: cpu, cuda, or auto, which is with the network."""
    population: int = 1
    """Runs that are trained at once on one GPU, with seeds of their own."""
    vary: UseAppendAction[tuple[str, ...]] = ()
    """A setting that members of a population have otherwise, for example ppo.lr=1e-3,3e-4."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """A flag of the game as key=value, for example num_players=6."""
    config: str = ""
    """A TOML file with any of these settings; the command line goes before it."""
    opponents: tuple[str, ...] = ("self=1",)
    """Line-ups as NAME=WEIGHT: self (every seat learns) or a bot in all other seats."""
    algo: str = "ppo"
    """What learns: ppo, or a learner of your own as module:factory."""
    algo_set: UseAppendAction[tuple[str, ...]] = ()
    """A setting of a learner of your own as key=value."""
    collect: CollectConfig = CollectConfig()
    net: NetConfig = NetConfig()
    ppo: PPOConfig = PPOConfig()
    eval: EvaluationConfig = EvaluationConfig()
    checkpoint_every_s: float = 60.0
    """Seconds between checkpoints. They are written in the background."""
    keep: int = 3
    """Checkpoints that are kept besides the best one."""
    runs: str = "runs"
    """The folder in which run folders are made."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    wandb: bool = False
    """Log to Weights & Biases (extra `track`)."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""


@dataclass(frozen=True)
class ResumeConfig:
    """Go on with a run exactly where its last checkpoint stands."""

    run: Positional[str] = "latest"
    """The folder of the run, or `latest`."""
    checkpoint: int = -1
    """Which checkpoint. -1: the newest that is whole."""
    updates: int = 0
    """Train up to this update. 0: to the end the run had planned."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""


@dataclass(frozen=True)
class EvalConfig:
    """Measure a trained policy or a bot over thousands of seat-fair games."""

    challenger: Positional[str]
    """A run, a checkpoint, a saved policy, or a bot (then --game says of what); bot:NAME too."""
    against: str = ""
    """Opponents, a comma list of bots, runs or checkpoints. Left out: the best bot."""
    games: int = 0
    """Games against each opponent; four times as many halve the intervals. 0: 4,096, 100 against
    an engine, or as many as the protocol says."""
    protocol: str = ""
    """A published way to measure: cage2, the nine settings of its challenge."""
    engine: str = ""
    """A USI engine to play Shogi against, as a command line: "fairy-stockfish"."""
    engine_limit: str = "movetime=100"
    """What the engine may use for a move: movetime or byoyomi in milliseconds, nodes, depth."""
    engine_option: tuple[str, ...] = ()
    """An option of the engine as NAME=VALUE."""
    engine_timeout_s: float = 30.0
    """Seconds without an answer after which the engine has lost the game."""
    opening_plies: int = 6
    """Moves by lot before a game against an engine. More give more varied, less even games."""
    openings: str = ""
    """A file of positions to begin from instead, one SFEN per line."""
    seed: int = 0
    """Which games are dealt."""
    game: str = ""
    """The game, where a bot is evaluated."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    threads: int = 0
    """Threads for games and network. 0: one per core."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class UsiConfig:
    """Play Shogi as a USI engine: a graphical board or a match runner starts this command."""

    player: Positional[str]
    """A run, a checkpoint or a saved policy, or a bot: random, greedy (ab1), ab2, ab3."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one (option Sampled)."""
    seed: int = 0
    """What a player's chances depend on; every new game has its own (option Seed)."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""


@dataclass(frozen=True)
class ExportConfig:
    """Write a trained network as an ONNX file and prove that it computes the same."""

    policy: Positional[str]
    """A run, a checkpoint or a saved policy."""
    onnx: str
    """The file to write."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class BenchTrainConfig:
    """Measure training end to end, and how far it is from what free games would allow."""

    game: Positional[str]
    """The game to train on."""
    rounds: int = 7
    """Rounds that are measured, a rollout and its update each. More gives surer medians."""
    warm_up: int = 2
    """Rounds before that, not measured."""
    games: int = 0
    """Games played at once. 0: as `sparring train` would."""
    steps: int = 0
    """Steps per rollout. 0: as `sparring train` would."""
    epochs: int = 0
    """Passes over each rollout. 0: as `sparring train` would."""
    minibatch: int = 0
    """Samples per gradient step. 0: as `sparring train` would."""
    hidden: tuple[int, ...] = ()
    """Width of a hidden layer, once per layer. Left out: as `sparring train` would."""
    shared: bool | None = None
    """One trunk for policy and value. None: as `sparring train` would."""
    channels: int = 0
    """Of a residual net: channels per square. 0: as `sparring train` would."""
    blocks: int = 0
    """Of a residual net: blocks of two convolutions. 0: as `sparring train` would."""
    sparse: bool | None = None
    """On a CPU, our own layers where there are any. None: as `sparring train` would."""
    threads: int = 0
    """Threads for games and network. 0: one per core."""
    device: str = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    pool: str = "auto"
    """Where the games live: cpu, cuda, or auto, which is with the network."""
    population: int = 1
    """Runs that are trained at once on one GPU."""
    opponents: tuple[str, ...] = ()
    """A line-up as NAME=WEIGHT, once per line-up. Left out: as `sparring train` would."""
    seed: int = 0
    """Which games are played and where the network starts."""
    config: str = ""
    """A TOML file with settings of `sparring train`; the options here go before it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class PlotConfig:
    """Draw a run's curves: strength, score, speed, where the time goes, losses."""

    run: Positional[str] = "latest"
    """The run's folder, the beginning of its name, or `latest`."""
    out: str = ""
    """Where plot.png and plot.html go. Left out: into the run's folder."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class RenderConfig:
    """Draw a game between policies or bots as a film or a picture."""

    players: Positional[str]
    """A run, checkpoint, policy or bot (bot:NAME too) for seat 0, or one per seat: latest,weak."""
    out: str = "game.gif"
    """The file: .gif, .mp4 (needs ffmpeg), .svg (moves in any browser) or .png (a still)."""
    game: str = ""
    """The game, where all players are bots."""
    against: str = ""
    """Who sits in the other seats, where one player is given. Left out: the best bot."""
    episodes: int = 1
    """Games, one after the other."""
    seed: int = 0
    """Which game is dealt; the next ones have the numbers after it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    still: bool = False
    """One picture of the whole game. A .png is always that."""
    speed: float = 1.0
    """How fast the film runs. 0.5: half as fast as the game."""
    fps: float = 0.0
    """Frames per second of a .gif or .mp4. More are smoother and larger. 0: 25 and 50."""
    width: int = 760
    """Pixels from left to right."""
    json: bool = False
    """Print one JSON object instead of lines."""
