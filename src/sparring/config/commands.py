"""What the commands around a run take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional

from sparring.config.ranges import (
    MAX_SEED,
    MAX_THREADS,
    Checked,
    Count,
    Seed,
    Threads,
    above,
    at_least,
    between,
    one_of,
)


@dataclass(frozen=True)
class GamesConfig(Checked):
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
class BenchPoolConfig(Checked):
    """Prove a game's pool valid, then measure decisions per second."""

    game: Positional[str]
    """The game to measure."""
    games: Annotated[int, at_least(1)] = 4096
    """Games in the pool. More hide the cost of a call from Python and need more memory."""
    seconds: Annotated[float, above(0, 86_400)] = 10.0
    """Time for measuring. More gives narrower spreads."""
    rounds: Annotated[int, at_least(1)] = 5
    """How often every combination is measured, in turn. The median is reported."""
    threads: Annotated[tuple[int, ...], between(1, MAX_THREADS)] = ()
    """A number of threads to measure. Left out: 1, 2, 4 and so on up to all cores."""
    device: Annotated[str, one_of("cpu", "cuda", pattern=r"cuda:\d+")] = "cpu"
    """Where the games live: cpu or cuda, which is held equal to the CPU first."""
    bots: tuple[str, ...] = ()
    """A bot for all seats, or one for each: their decisions count. Left out: random actions."""
    seed: Seed = 0
    """Which games are played. The signature does not depend on it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    save: str = ""
    """A JSON file for what is measured, with the machine: a record for later."""
    record: str = ""
    """A record of an earlier bench on this machine: what got slower since, with intervals."""
    anyway: bool = False
    """Compare with a record of another machine or of other settings all the same."""
    fail_slower: bool = False
    """Exit code 1 if something got slower than in the record."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class PlayConfig(Checked):
    """Play against bots or a trained agent in the terminal."""

    game: Positional[str]
    """The game to play, or a run or checkpoint: its agent sits in the other seats."""
    seat: Annotated[int, between(0, 255)] = 0
    """Where you sit."""
    against: str = ""
    """A bot, run or checkpoint for the other seats, or one per seat; NAME@sampled draws its moves.
    Left out: the best bot."""
    seed: Annotated[int | None, between(0, MAX_SEED)] = None
    """Which game is dealt. Left out: a new one, and the seed is shown."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value; skip_forced=1 plays your only move for you."""
    save: str = ""
    """A file for the game, also if you leave early; `sparring replay` plays it again."""


@dataclass(frozen=True)
class CheckConfig(Checked):
    """Run the conformance test every game has to pass, or hold an env of yours to its contract."""

    game: Positional[str]
    """The game to check, or an environment of your own as module:factory or file.py:factory."""
    games: Annotated[int, at_least(1)] = 20
    """Games played per property. More find rarer faults."""
    seconds: Annotated[float, at_least(0, 86_400)] = 0.0
    """Of an environment of your own: about how long it may take; slow ones play fewer games.
    0: 30."""
    steps: Annotated[int, at_least(0)] = 0
    """Of an environment of your own: a longer episode is taken for endless. 0: 10,000."""
    seed: Seed = 0
    """Which games are played."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3; of an
    environment of your own: a keyword argument of its factory."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class NewGameConfig(Checked):
    """Write a small whole game into a checkout: header, folder, test and its line in the list."""

    name: Positional[str]
    """What the game is called, such as connect_four: a name in C++ and in Python."""
    into: str = ""
    """The checkout of sparring. Left out: the one that this command runs from."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class PortConfig(Checked):
    """Play an environment of yours beside a native game and show where they first differ."""

    env: Positional[str]
    """The environment, as module:factory or file.py:factory."""
    game: Positional[str]
    """The native game that should be the same."""
    games: Annotated[int, at_least(1)] = 200
    """Games played side by side by random legal actions. More find rarer differences."""
    seconds: Annotated[float, above(0, 86_400)] = 30.0
    """About how long it may take, half of it for a shorter difference once there is one."""
    seed: Seed = 0
    """Which games are played."""
    set: tuple[str, ...] = ()
    """A flag of the native game as key=value."""
    same_seed: bool = False
    """Both draw the same from the same seed, so chance needs no `load`."""
    load: Annotated[str, one_of("start", "step")] = "start"
    """When the env is put into the game's position by its method `load`: when a game starts, or
    before every step."""
    ignore: tuple[str, ...] = ()
    """What is not compared: seat, mask, reward, end, score, obs, or final-mask, the mask after the
    end."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class DoctorConfig(Checked):
    """Look at this installation and say what is missing."""

    measure: bool = False
    """Measure again what this machine can do: matrix products and memory."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class EvalConfig(Checked):
    """Measure a trained policy or a bot over thousands of seat-fair games."""

    challenger: Positional[str]
    """A run, a checkpoint, a saved policy, or a bot (then --game says of what); bot:NAME too."""
    against: str = ""
    """Opponents, a comma list of bots, runs or checkpoints; NAME@sampled draws, NAME@greedy never
    does. Left out: the best bot."""
    games: Annotated[int, at_least(0)] = 0
    """Games against each opponent; four times as many halve the intervals. 0: 4,096, 100 against
    an engine, or as many as the protocol says."""
    protocol: str = ""
    """A published way to measure: cage2, the nine settings of its challenge."""
    engine: str | None = None
    """A USI engine to play Shogi against, as a command line: "fairy-stockfish"."""
    engine_limit: str = "movetime=100"
    """What the engine may use for a move: movetime or byoyomi in milliseconds, nodes, depth."""
    engine_option: tuple[str, ...] = ()
    """An option of the engine as NAME=VALUE."""
    engine_timeout_s: Annotated[float, above(0, 86_400)] = 30.0
    """Seconds without an answer after which the engine has lost the game. It has as long to
    start."""
    opening_plies: Annotated[int | None, between(0, 100)] = None
    """Decisions by lot before a game. More give more varied, less even games. Left out: 6 against
    an engine; up to 6 where a game without chance would repeat itself; otherwise none."""
    openings: str = ""
    """A file of positions to begin from instead, one SFEN per line."""
    seed: Seed = 0
    """Which games are dealt."""
    game: str = ""
    """The game, where a bot is evaluated."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    save_games: str = ""
    """A folder for games of every match, which `sparring replay` shows. Left out: none are kept."""
    save_max: Annotated[int, between(1, 4096)] = 100
    """Of --save-games: so many of each match, the first deals from every seat."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class ExploitConfig(Checked):
    """Train a best response against a frozen policy: how much can it be made to lose?"""

    policy: Positional[str]
    """A run, a checkpoint, a saved policy, or a bot (then --game says of what); bot:NAME too."""
    minutes: Annotated[float, above(0)] = 2.0
    """Time for training the response. More finds more."""
    decisions: Count = 0
    """Decisions of the response to make instead. 0: as many as the minutes allow."""
    games: Annotated[int, at_least(2)] = 8192
    """Games of the match at the end; four times as many halve the interval."""
    greedy: bool = False
    """The policy takes its most probable actions. Left out: it draws them, as in its training. One
    that was trained by dqn always takes its best."""
    from_policy: bool = False
    """The response starts with the policy's own weights. Left out: with fresh ones."""
    algo: str = ""
    """What trains the response: ppo, dqn, sac, or a learner of your own as module:factory. Left
    out: that of the file, or ppo."""
    seed: Seed = 0
    """Which games are played and where the network starts."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    game: str = ""
    """The game, where a bot is exploited."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the policy's training."""
    config: str = ""
    """A TOML file with settings of `sparring train` for the response; the options go before it."""
    name: str = ""
    """The name of the response's run. Left out: exploit, the policy, date and four letters."""
    runs: str = "runs"
    """The folder in which the run's folder is made."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class ArenaConfig(Checked):
    """Let everybody meet everybody over seat-fair games: ratings and a matrix, with intervals."""

    players: Positional[tuple[str, ...]]
    """Runs, checkpoints, saved policies and bots (bot:NAME too), at least two in any mix."""
    game: str = ""
    """The game, where all players are bots."""
    games: Annotated[int, at_least(2)] = 2048
    """Games of each pairing; four times as many halve the intervals. With --sprt the most."""
    sprt: bool = False
    """Stop a pairing as soon as it is decided, by a sequential probability ratio test."""
    elo0: Annotated[float, between(-2000, 2000)] = -10.0
    """Of --sprt: a player that is no more than this stronger is called weaker."""
    elo1: Annotated[float, between(-2000, 2000)] = 10.0
    """Of --sprt: a player that is at least this stronger is called stronger. Closer ones take
    longer to be told apart, with the square of the distance."""
    alpha: Annotated[float, between(0.0001, 0.49)] = 0.05
    """Of --sprt: how often a player of elo0 may be called stronger."""
    beta: Annotated[float, between(0.0001, 0.49)] = 0.05
    """Of --sprt: how often a player of elo1 may be called weaker."""
    anchor: tuple[str, ...] = ()
    """A player with a rating that is given, as NAME=ELO: the others are measured from it. Left out:
    random=0, or the weakest bot that plays, or the first player."""
    opening_plies: Annotated[int | None, between(0, 100)] = None
    """Decisions by lot before a game. Left out: up to 6 where a game without chance would repeat
    itself, otherwise none."""
    seed: Seed = 0
    """Which games are dealt."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    cluster: str = ""
    """Play pairings as tasks in Ray: local (this machine), auto (the cluster that is there), or its
    address. Threads are those of a pairing then; 0: an equal share."""
    out: str = ""
    """A folder for the pictures payoff.png and ladder.png, or x.svg, x.pdf or x.png: x-payoff.svg
    and x-ladder.svg. Left out: none are drawn."""
    save_games: str = ""
    """A folder for games of every match, which `sparring replay` shows. Left out: none are kept."""
    save_max: Annotated[int, between(1, 4096)] = 100
    """Of --save-games: so many of each match, the first deals from every seat."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class UsiConfig(Checked):
    """Play Shogi as a USI engine: a graphical board or a match runner starts this command."""

    player: Positional[str]
    """A run, a checkpoint or a saved policy, or a bot: random, greedy (ab1), ab2, ab3."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one (option Sampled)."""
    seed: Annotated[int, between(0, 2**31 - 1)] = 0
    """What a player's chances depend on; every new game has its own (option Seed)."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""


@dataclass(frozen=True)
class ExportConfig(Checked):
    """Write a trained network as an ONNX file that is proven equal, or as a page that plays."""

    policy: Positional[str]
    """A run, a checkpoint or a saved policy."""
    onnx: str = ""
    """The ONNX file to write."""
    html: str = ""
    """The page to write: one file that plays in any browser, without a server or a network."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class BenchTrainConfig(Checked):
    """Measure training end to end, and how far it is from what free games would allow."""

    game: Positional[str]
    """The game to train on."""
    algo: str = ""
    """What learns: ppo, dqn or sac. Left out: that of the file, or ppo."""
    rounds: Annotated[int, at_least(1)] = 7
    """Rounds that are measured, a rollout and its update each. More gives surer medians."""
    warm_up: Annotated[int, at_least(1)] = 2
    """Rounds before that, not measured."""
    games: Annotated[int, at_least(0)] = 0
    """Games played at once. 0: as `sparring train` would."""
    steps: Annotated[int, at_least(0)] = 0
    """Steps per rollout. 0: as `sparring train` would."""
    epochs: Annotated[int, between(0, 100)] = 0
    """Passes over each rollout, of PPO. 0: as `sparring train` would."""
    minibatch: Annotated[int, at_least(0)] = 0
    """Samples per gradient step, of PPO. 0: as `sparring train` would."""
    ratio: Annotated[float, at_least(0)] = 0.0
    """Samples trained per decision, of DQN and SAC. 0: as `sparring train` would."""
    batch: Annotated[int, between(0, 1_048_576)] = 0
    """Samples per gradient step, of DQN and SAC. 0: as `sparring train` would."""
    hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Width of a hidden layer, once per layer. Left out: as `sparring train` would."""
    shared: bool | None = None
    """One trunk for policy and value. None: as `sparring train` would."""
    channels: Annotated[int, between(0, 1024)] = 0
    """Of a residual net: channels per square. 0: as `sparring train` would."""
    blocks: Annotated[int, between(0, 128)] = 0
    """Of a residual net: blocks of two convolutions. 0: as `sparring train` would."""
    sparse: bool | None = None
    """On a CPU, our own layers where there are any. None: as `sparring train` would."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    pool: Annotated[str, one_of("cpu", "cuda", "auto")] = "auto"
    """Where the games live: cpu, cuda, or auto, which is with the network."""
    population: Annotated[int, between(1, 1024)] = 1
    """Runs that are trained at once on one GPU."""
    opponents: tuple[str, ...] = ()
    """A table as WHO=WEIGHT, once per table. With frozen policies among them (past), plain
    self-play with as many rows of the learner is measured beside. Left out: as `sparring train`
    would."""
    slots: Annotated[int, between(0, 240)] = 0
    """Past selves that can be met at a time. 0: as `sparring train` would."""
    seed: Seed = 0
    """Which games are played and where the network starts."""
    config: str = ""
    """A TOML file with settings of `sparring train`; the options here go before it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6."""
    utilization: bool = True
    """Print the share of this machine's peak speed that training uses. The first time, the machine
    is measured, which takes about two seconds."""
    save: str = ""
    """A JSON file for what is measured, with the machine: a record for later."""
    record: str = ""
    """A record of an earlier bench on this machine: what got slower since, with intervals."""
    anyway: bool = False
    """Compare with a record of another machine or of other settings all the same."""
    fail_slower: bool = False
    """Exit code 1 if something got slower than in the record."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class LeagueShowConfig(Checked):
    """Show the league of a run: its past selves, how the learner does against them, ratings."""

    run: Positional[str] = "latest"
    """The run, by its folder, by the beginning of its name, or `latest`; it may be going on."""
    matches: Annotated[int, at_least(0)] = 0
    """Games of each match between two snapshots, every deal from every seat. 0: no matches."""
    max: Annotated[int, between(2, 64)] = 12
    """Snapshots in the matrix and in the matches, spread over the run. More take longer."""
    sampled: bool = False
    """Draw actions in the matches instead of taking the most probable one."""
    seed: Seed = 0
    """Which games are dealt in the matches."""
    threads: Threads = 0
    """Threads for the matches. 0: one per core."""
    out: str = ""
    """The folder of the pictures, or x.svg, x.pdf or x.png: x-payoff.svg and so on. Left out: the
    run's folder."""
    json: bool = False
    """Print one JSON object instead of tables."""
