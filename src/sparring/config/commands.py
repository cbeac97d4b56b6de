"""Settings of commands: games, bench, play, check, eval, exploit, arena, ladder, export, league."""

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
    """List every value of the observation: index, name, type, offset, divisor."""
    actions: bool = False
    """List every action with its name."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions(Checked):
    """Options of every benchmark; the help lists them last."""

    save: str = ""
    """A JSON file for the measurements and a description of the machine, to compare with later."""
    record: str = ""
    """A file that --save wrote on this machine: reports what became slower since, with
    intervals."""
    anyway: bool = False
    """Compare even if the record is of another machine or of other settings."""
    fail_slower: bool = False
    """Exit with code 1 if something became slower than in the record."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class BenchPoolConfig(BenchOptions):
    """Verify a game's pool, then measure decisions per second."""

    game: Positional[str]
    """The game to measure."""
    games: Annotated[int, at_least(1)] = 4096
    """Games in the pool. More hides the overhead of calls from Python and needs more memory."""
    seconds: Annotated[float, above(0, 86_400)] = 10.0
    """Time for measuring. More gives narrower spreads."""
    rounds: Annotated[int, at_least(1)] = 5
    """Rounds of measurements of every combination, in turn. The median is reported; more makes it
    more precise."""
    threads: Annotated[tuple[int, ...], between(1, MAX_THREADS)] = ()
    """Numbers of threads to measure. Left out: 1, 2, 4 and so on up to all cores."""
    device: Annotated[str, one_of("cpu", "cuda", pattern=r"cuda:\d+")] = "cpu"
    """Device of the games: cpu or cuda, which is first compared to the CPU's results."""
    bots: tuple[str, ...] = ()
    """A bot for all seats, or one for each: their decisions count. Left out: random actions."""
    seed: Seed = 0
    """Seed of the games. The signature does not depend on it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3."""


@dataclass(frozen=True)
class BenchSearchConfig(BenchOptions):
    """Measure simulations per second, and the share of time that the network takes of them."""

    player: Positional[str]
    """A run, checkpoint or saved policy; or a game, for an untrained network of its preset."""
    simulations: Annotated[tuple[int, ...], between(1, 1_048_575)] = ()
    """Simulations per decision, each measured. Left out: 16, 64, 200."""
    games: Annotated[int, at_least(0)] = 0
    """Decisions that are searched together. More makes larger batches for the network and needs
    more memory. 0: 256, on a GPU 16384."""
    device: Annotated[str, one_of("cpu", "cuda", pattern=r"cuda:\d+")] = "cpu"
    """Device of trees and network: cpu or cuda."""
    rule: Annotated[str, one_of("gumbel", "puct")] = "gumbel"
    """gumbel: sequential halving. puct: one leaf per game and batch."""
    rounds: Annotated[int, at_least(1)] = 5
    """Rounds in which search and network alone are measured in turn. The median is reported."""
    threads: Annotated[int, between(0, MAX_THREADS)] = 0
    """Threads of the trees and of the network. 0: all cores."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""


@dataclass(frozen=True)
class PlayConfig(Checked):
    """Play against bots or a trained agent in the terminal."""

    game: Positional[str]
    """The game to play, or a run or checkpoint whose agent takes the other seats."""
    seat: Annotated[int, between(0, 255)] = 0
    """Your seat."""
    against: str = ""
    """A bot, run or checkpoint for the other seats, or one per seat; NAME@sampled samples its
    actions, NAME@64 searches. Left out: the strongest bot."""
    level: Annotated[int, between(0, 9)] = 0
    """Strength of the others from 1 to 9: an agent draws its moves freely, then plays its best one,
    then searches further and further. In a game without an agent: the bots in order. 0: full."""
    search: str = ""
    """Tree search of agents at every decision: simulations (64), a time (2s), or with another rule
    (800/puct). The key w shows visits, values and the main line. Left out: no search."""
    seed: Annotated[int | None, between(0, MAX_SEED)] = None
    """Seed of the game. Left out: a new seed, which is printed."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value; skip_forced=1 plays forced moves for you."""
    save: str = ""
    """A file to record the game in, even if you quit early; `sparring replay` replays it."""


@dataclass(frozen=True)
class CheckConfig(Checked):
    """Run the conformance test of a game, or check a custom environment."""

    game: Positional[str]
    """The game to check, or a custom environment as module:factory or file.py:factory."""
    games: Annotated[int, at_least(1)] = 20
    """Games per property. More finds rarer faults."""
    seconds: Annotated[float, at_least(0, 86_400)] = 0.0
    """For a custom environment: about how long the check may take; slow environments play fewer
    games. 0: 30."""
    steps: Annotated[int, at_least(0)] = 0
    """For a custom environment: longer episodes count as unbounded. 0: 10,000."""
    seed: Seed = 0
    """Seed of the games."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6 or rounds=1,2,3; for a custom
    environment: a keyword argument of its factory."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class NewGameConfig(Checked):
    """Write a small, complete game: header, folder, test, list; or one file of Python.

    With --python it is NAME.py here, and needs no compiler of C++.
    """

    name: Positional[str]
    """Name of the game, such as connect_four: a valid identifier in C++ and Python."""
    into: str = ""
    """The checkout of sparring. Left out: the one that this command runs from. With --python the
    folder of the file."""
    python: bool = False
    """Write rules in Python, which Numba compiles."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class PortConfig(Checked):
    """Play a custom environment and a native game side by side and report the first difference."""

    env: Positional[str]
    """The environment, as module:factory or file.py:factory."""
    game: Positional[str]
    """The native game that should behave the same."""
    games: Annotated[int, at_least(1)] = 200
    """Games played side by side with random legal actions. More finds rarer differences."""
    seconds: Annotated[float, above(0, 86_400)] = 30.0
    """About how long it may take; half of it goes to shortening a difference once one is found."""
    seed: Seed = 0
    """Seed of the games."""
    set: tuple[str, ...] = ()
    """A flag of the native game as key=value."""
    same_seed: bool = False
    """Both sides draw the same from the same seed, so chance needs no `load`."""
    load: Annotated[str, one_of("start", "step")] = "start"
    """When the game's position is loaded into the environment by its method `load`: at the start of
    each game, or before every step."""
    ignore: tuple[str, ...] = ()
    """Parts not to compare: seat, mask, reward, end, score, obs, or final-mask (the mask after the
    end)."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class DoctorConfig(Checked):
    """Check this installation and report what is missing."""

    measure: bool = False
    """Measure this machine's peak speed of matrix products and memory again."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class EvalConfig(Checked):
    """Measure a trained policy or a bot over thousands of games, each deal from every seat."""

    challenger: Positional[str]
    """A run, a checkpoint, a saved policy, or a bot or model of Stable-Baselines3 (PATH.zip), which
    need --game; bot:NAME too."""
    against: str = ""
    """Opponents, a comma list of bots, runs or checkpoints; NAME@sampled samples actions,
    NAME@greedy takes the most probable, NAME@64 searches. Left out: the strongest bot."""
    search: str = ""
    """Tree search of the challenger at every decision: simulations (64), a time (2s), or with
    another rule (800/puct). Left out: no search."""
    games: Annotated[int, at_least(0)] = 0
    """Games against each opponent; four times as many halve the intervals. 0: 4,096, 100 against an
    engine or with a search by time, or the protocol's number."""
    protocol: str = ""
    """A published protocol: cage2, the nine settings of its challenge."""
    engine: str | None = None
    """A USI engine as opponent in Shogi, as a command line: "fairy-stockfish"."""
    engine_limit: str = "movetime=100"
    """The engine's limit per move: movetime or byoyomi in milliseconds, nodes, or depth."""
    engine_option: tuple[str, ...] = ()
    """An option of the engine as NAME=VALUE."""
    engine_timeout_s: Annotated[float, above(0, 86_400)] = 30.0
    """Seconds to start or to answer; after that the engine loses the game."""
    opening_plies: Annotated[int | None, between(0, 100)] = None
    """Random decisions before a game. More gives more varied and less even games. Left out: 6
    against an engine; up to 6 where a game without chance would repeat itself; otherwise none."""
    openings: str = ""
    """A file of positions to start from instead, one SFEN per line."""
    seed: Seed = 0
    """Seed of the deals."""
    game: str = ""
    """The game, if the challenger is a bot or a model of Stable-Baselines3."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: the flags of the training."""
    sampled: bool = False
    """Sample actions as in training instead of taking the most probable one."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "cpu"
    """Device of the players' networks: cpu, cuda, or auto. Games, bots and trees stay on the CPU; a
    GPU pays for convolutions and attention, above all with a search."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    cluster: str = ""
    """Play the opponents' matches as tasks in Ray: local (this machine), auto (the running
    cluster), or a cluster's address. Threads are then per match; 0: an equal share."""
    save_games: str = ""
    """A folder for recorded games of every match, for `sparring replay`. Left out: none are
    saved."""
    save_max: Annotated[int, between(1, 4096)] = 100
    """With --save-games: games to save per match, the first deals from every seat."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class ExploitConfig(Checked):
    """Train best responses against a frozen policy, to measure how exploitable it is."""

    policy: Positional[str]
    """A run, a checkpoint, a saved policy, or a bot or model of Stable-Baselines3 (PATH.zip), which
    need --game; bot:NAME too."""
    kinds: Annotated[tuple[str, ...], one_of("scratch", "own", "sees")] = ()
    """Kinds of responses: scratch has random weights at first, own those of the policy. The
    strongest counts. Left out: both, against a bot scratch. sees reads what is hidden from its
    seat: no legal opponent and no bound, but a measure of what seeing is worth."""
    seeds: Annotated[int, between(1, 64)] = 1
    """Responses of each kind, with seeds from --seed on. More find more weaknesses."""
    minutes: Annotated[float, above(0)] = 2.0
    """Time for training each response. More finds more weaknesses."""
    decisions: Count = 0
    """Decisions of each response to make, instead of minutes. 0: as many as the minutes allow."""
    exact: bool = False
    """Compute the exact exploitability instead, in games small enough; nothing is trained."""
    games: Annotated[int, at_least(0)] = 0
    """Games of each match; four times as many halve the interval. 0: 8,192, in a custom environment
    128."""
    greedy: bool = False
    """The policy takes its most probable actions. Left out: it samples them, as in its training; a
    policy trained by dqn, qrdqn or td3 is always greedy."""
    search: str = ""
    """Tree search of the exploited policy at every decision, as simulations: 16. The responses are
    trained against it, and do not search themselves. Left out: no search."""
    algo: str = ""
    """Algorithm of the responses, as in `sparring train`: ppo, dqn, sac and others, or a custom
    learner as module:factory. Left out: that of --config, or ppo."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Device of the network: cpu, cuda, or auto."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    game: str = ""
    """The game, if the policy is a bot or a model of Stable-Baselines3."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: the flags of the policy's training."""
    config: str = ""
    """A TOML file with settings of `sparring train` for the responses; options on the command line
    override it."""
    name: str = ""
    """What the names of the responses' runs begin with. The name of a command that was stopped
    continues it. Left out: exploit, the policy, date and four letters."""
    runs: str = "runs"
    """Folder for the runs' folders."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class ArenaConfig(Checked):
    """Play all players against each other over many games: ratings and a matrix, with intervals."""

    players: Positional[tuple[str, ...]]
    """Runs, checkpoints, saved policies, models of Stable-Baselines3 (PATH.zip) and bots (bot:NAME
    too), at least two in any mix; NAME@64 searches."""
    search: str = ""
    """Tree search of all agents that have none behind their name: simulations (64), a time (2s), or
    with another rule (800/puct). Left out: no search."""
    game: str = ""
    """The game, if no player is a run, a checkpoint or a saved policy."""
    games: Annotated[int, at_least(2)] = 2048
    """Games of each pairing; four times as many halve the intervals. With --sprt: the maximum."""
    sprt: bool = False
    """Stop a pairing as soon as it is decided, by a sequential probability ratio test."""
    elo0: Annotated[float, between(-2000, 2000)] = -10.0
    """With --sprt: Elo difference up to which a player counts as not stronger."""
    elo1: Annotated[float, between(-2000, 2000)] = 10.0
    """With --sprt: Elo difference from which on a player counts as stronger. The closer to elo0,
    the more games it takes."""
    alpha: Annotated[float, between(0.0001, 0.49)] = 0.05
    """With --sprt: probability of calling a player stronger whose difference is elo0."""
    beta: Annotated[float, between(0.0001, 0.49)] = 0.05
    """With --sprt: probability of calling a player weaker whose difference is elo1."""
    anchor: tuple[str, ...] = ()
    """A player with a fixed rating, as NAME=ELO; the others are rated relative to it. Left out:
    random=0, or the weakest bot that plays, or the first player."""
    opening_plies: Annotated[int | None, between(0, 100)] = None
    """Random decisions before a game. Left out: up to 6 where a game without chance would repeat
    itself, otherwise none."""
    seed: Seed = 0
    """Seed of the deals."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: the flags of the training."""
    sampled: bool = False
    """Sample actions as in training instead of taking the most probable one."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "cpu"
    """Device of the players' networks: cpu, cuda, or auto. Games, bots and trees stay on the CPU; a
    GPU pays for convolutions and attention, above all with a search."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    cluster: str = ""
    """Play pairings as tasks in Ray: local (this machine), auto (the running cluster), or a
    cluster's address. Threads are then per pairing; 0: an equal share."""
    out: str = ""
    """A folder for payoff.png and ladder.png, or x.svg, x.pdf or x.png for x-payoff.svg and
    x-ladder.svg. Left out: no pictures."""
    save_games: str = ""
    """A folder for recorded games of every match, for `sparring replay`. Left out: none are
    saved."""
    save_max: Annotated[int, between(1, 4096)] = 100
    """With --save-games: games to save per match, the first deals from every seat."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class LadderConfig(Checked):
    """Keep a table of a game's bots, champion and your runs, with ratings, in a file that grows."""

    game: Positional[str] = ""
    """The game. Left out: all ladders are listed."""
    submit: tuple[str, ...] = ()
    """A player to add: a run, a checkpoint, a saved policy, a bot; NAME@64 searches, NAME@level3
    has a level. It meets every player of the ladder. Once per player."""
    replace: bool = False
    """With --submit: the earlier checkpoints of that run, or the policy that lay in that folder,
    leave the ladder. Otherwise they stay, and a name that is taken becomes NAME#2."""
    remove: tuple[str, ...] = ()
    """A player to take off, with its results, by its name in the table. Once per player."""
    crown: str = ""
    """A run or a checkpoint to become the game's champion, if a sequential test shows that it is
    stronger than the one that is, or than the strongest bot. Exit code 1 if not."""
    games: Annotated[int, between(0, 1_000_000)] = 0
    """Games of each pairing; four times as many halve the intervals. 0: 2,048, and at most 40,000
    with --crown."""
    file: str = ""
    """The file of the ladder. Left out: runs/ladders/GAME.json."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for a new ladder. Left out: the defaults."""
    seed: Seed = 0
    """Seed of the deals."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    out: str = ""
    """A folder for payoff.png and ladder.png, or x.svg, x.pdf or x.png for x-payoff.svg and
    x-ladder.svg. Left out: no pictures."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class UsiConfig(Checked):
    """Play Shogi as a USI engine, started by a graphical board or a match runner."""

    player: Positional[str]
    """A run, a checkpoint or a saved policy, or a bot: random, greedy (ab1), ab2, ab3."""
    search: str = ""
    """Tree search at every move, within the time that the program gives: simulations (64), a time
    (2s), or with another rule (800/puct). Left out: as the `go` command says, none without a limit
    (option Simulations)."""
    sampled: bool = False
    """Sample actions as in training instead of taking the most probable one (option Sampled)."""
    seed: Annotated[int, between(0, 2**31 - 1)] = 0
    """Seed of the player's random choices; each new game uses another (option Seed)."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: the flags of the training."""


@dataclass(frozen=True)
class ExportConfig(Checked):
    """Write a trained network as a verified ONNX file, or as a page that plays in a browser."""

    policy: Positional[str]
    """A run, a checkpoint, a saved policy, or a model of Stable-Baselines3 (needs --game)."""
    game: str = ""
    """The game of a model of Stable-Baselines3, which its file does not say."""
    onnx: str = ""
    """The ONNX file to write."""
    html: str = ""
    """The page to write: one file that plays in any browser, without a server."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class BenchTrainConfig(BenchOptions):
    """Measure training end to end, and compare it to training with games that take no time."""

    game: Positional[str]
    """The game to train on."""
    algo: str = ""
    """The algorithm, as in `sparring train`: ppo, dqn, sac and others. Left out: that of --config,
    or ppo."""
    rounds: Annotated[int, at_least(1)] = 7
    """Measured rounds, each a rollout and its update. More makes medians more precise."""
    warm_up: Annotated[int, at_least(1)] = 2
    """Rounds before the measured ones."""
    games: Annotated[int, at_least(0)] = 0
    """Games played at once. 0: as `sparring train` would."""
    steps: Annotated[int, at_least(0)] = 0
    """Steps per rollout. 0: as `sparring train` would."""
    epochs: Annotated[int, between(0, 100)] = 0
    """PPO: epochs over each rollout. 0: as `sparring train` would."""
    minibatch: Annotated[int, at_least(0)] = 0
    """PPO: samples per optimizer step. 0: as `sparring train` would."""
    ratio: Annotated[float, at_least(0)] = 0.0
    """With a replay buffer: samples trained per decision. 0: as `sparring train` would."""
    batch: Annotated[int, between(0, 1_048_576)] = 0
    """With a replay buffer: samples per optimizer step. 0: as `sparring train` would."""
    hidden: Annotated[tuple[int, ...], between(1, 8192)] = ()
    """Width of a hidden layer, once per layer. Left out: as `sparring train` would."""
    shared: bool | None = None
    """Policy and value share one trunk. None: as `sparring train` would."""
    channels: Annotated[int, between(0, 1024)] = 0
    """Residual network: channels per square. 0: as `sparring train` would."""
    blocks: Annotated[int, between(0, 128)] = 0
    """Residual network: blocks of two convolutions. 0: as `sparring train` would."""
    sparse: bool | None = None
    """On a CPU, use native layers. None: as `sparring train` would."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Device of the network: cpu, cuda, or auto."""
    pool: Annotated[str, one_of("cpu", "cuda", "auto")] = "auto"
    """Device of the games: cpu, cuda, or auto (the network's device)."""
    population: Annotated[int, between(1, 1024)] = 1
    """Runs that train at once on one GPU."""
    opponents: tuple[str, ...] = ()
    """Opponents as WHO=WEIGHT, once per line-up. With frozen policies among them (past), self-play
    with as many rows of the learner is measured as well. Left out: as `sparring train` would."""
    slots: Annotated[int, between(0, 240)] = 0
    """Past selves that can be met at a time. 0: as `sparring train` would."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    config: str = ""
    """A TOML file with settings of `sparring train`; options on the command line override it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value, for example num_players=6."""
    utilization: bool = True
    """Print the share of this machine's peak speed that training uses. The first time, the machine
    is measured, which takes about two seconds."""


@dataclass(frozen=True)
class LeagueShowConfig(Checked):
    """Show the league of a run: its past selves, the learner's results against them, ratings."""

    run: Positional[str] = "latest"
    """The run, by folder, by the beginning of its name, or `latest`; it may still be training."""
    matches: Annotated[int, at_least(0)] = 0
    """Games of each match between two snapshots, every deal from every seat. 0: no matches."""
    max: Annotated[int, between(2, 64)] = 12
    """Snapshots in the matrix and in the matches, spread over the run. More takes longer."""
    sampled: bool = False
    """Sample actions in the matches instead of taking the most probable one."""
    seed: Seed = 0
    """Seed of the deals in the matches."""
    threads: Threads = 0
    """Threads for the matches. 0: one per core."""
    out: str = ""
    """A folder for the pictures, or x.svg, x.pdf or x.png for x-payoff.svg and so on. Left out: the
    run's folder."""
    json: bool = False
    """Print one JSON object instead of tables."""
