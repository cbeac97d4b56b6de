"""A run: what is trained for how long, and what is done with it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, Suppress, UseAppendAction

from sparring.config.algorithms import DQNConfig, PPOConfig, ReplayConfig, SACConfig
from sparring.config.learning import (
    CollectConfig,
    DistributedConfig,
    EnvConfig,
    EvaluationConfig,
    HeadsConfig,
    HierarchyConfig,
    HindsightConfig,
    ImitationConfig,
    LeagueConfig,
    NetConfig,
)
from sparring.config.ranges import (
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
class TrainConfig(Checked):
    """Train an agent by self-play and measure its strength."""

    game: Positional[str] = "skull_king"
    """The game to learn, or an environment of your own as module:factory or file.py:factory, whose
    code is run."""
    minutes: Annotated[float, above(0)] = 5.0
    """Time for training. The clock decides how many updates that is; to repeat a run, set those."""
    updates: Count = 0
    """Updates to make instead. 0: as many as the minutes allow."""
    decisions: Count = 0
    """Decisions of the learner to make instead. 0: as many as the minutes allow."""
    episodes: Count = 0
    """Games to finish instead. 0: as many as the minutes allow."""
    name: str = ""
    """The name of the run's folder. Left out: game, algorithm, date and four letters."""
    init: str = ""
    """A run, checkpoint or saved policy whose weights the network starts with."""
    imitate: tuple[str, ...] = ()
    """What is learned from before the run plays: records of games (of Shogi .kif, .csa and .usi, of
    any game recorded ones as .json; folders and patterns too), or bots, whose games are played for
    that."""
    imitate_minutes: Annotated[float, above(0)] = 5.0
    """Time for learning from them, besides that for training."""
    seed: Seed = 0
    """Which games are played and where the network starts."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    pool: Annotated[str, one_of("cpu", "cuda", "auto")] = "auto"
    """Where the games live: cpu, cuda, or auto, which is with the network."""
    workers: Annotated[str, one_of("auto", pattern=r"\d{1,4}", besides="number")] = "0"
    """Processes that step an environment of your own: a number, 0 for none, or auto, which
    measures whether they pay."""
    actors: Annotated[int, between(0, 1024)] = 0
    """Processes that play for the learner, asynchronously. 0: it plays itself."""
    cluster: str = ""
    """Actors, runs and replicas in Ray: local (this machine), auto (the cluster that is there), or
    its address. Left out: processes of this machine."""
    replicas: Annotated[int, between(1, 1024)] = 1
    """Learners that share games and work of every update and learn as one: processes of this
    machine, or with cluster in Ray."""
    seeds: Annotated[int, between(1, 1024)] = 1
    """Runs with this many seeds: one after the other, on a GPU at once as a population, in a
    cluster each as a task."""
    population: Annotated[int, between(1, 1024)] = 1
    """Runs that are trained at once on one GPU, with seeds of their own."""
    vary: UseAppendAction[tuple[str, ...]] = ()
    """A setting that several runs have otherwise, for example ppo.lr=1e-3,3e-4, or a flag of the
    game, for example set.num_players=4,6 or set.order=[0,1,2],[2,1,0]."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """A flag of the game as key=value, for example num_players=6."""
    config: str = ""
    """A TOML file with any of these settings; the command line goes before it."""
    opponents: tuple[str, ...] = ("self=1",)
    """Tables as WHO=WEIGHT. WHO is self (every seat learns), or in all other seats a bot (of your
    own environment: random), past (an earlier self), past:5 (of the newest five), best, a run, a
    checkpoint or a saved policy; or a player per seat: self,captain,past,past. Behind a policy,
    @greedy for its most probable actions."""
    rewards: tuple[str, ...] = ()
    """What is paid, as PART=WEIGHT or ROLE.PART=WEIGHT. Left out: what the game itself pays."""
    starts: tuple[str, ...] = ()
    """Where games begin, as WHAT=WEIGHT. WHAT is usual, a file of positions, or what the game
    knows by name. Left out: as the rules say."""
    curriculum: str = ""
    """A TOML or JSON file with phases: who is met, what is paid and how games begin, one stretch
    of the run after the other."""
    phases: Annotated[tuple[str, ...], Suppress] = ()
    """The phases themselves, each as JSON; a file of settings has them as [[phases]]."""
    algo: Annotated[
        str, one_of("ppo", "dqn", "sac", pattern=r"(.*:.*)?", besides="module:factory")
    ] = "ppo"
    """What learns: ppo, dqn (discrete actions), sac, or a learner of your own as module:factory."""
    algo_set: UseAppendAction[tuple[str, ...]] = ()
    """A setting of a learner of your own as key=value."""
    roles: UseAppendAction[tuple[str, ...]] = ()
    """Settings of one role's network as ROLE.SETTING=VALUE, for example manager.ppo.epochs=25 or
    worker.net.hidden=512,512. Of hierarchy.on."""
    hierarchy: HierarchyConfig = HierarchyConfig()
    hindsight: HindsightConfig = HindsightConfig()
    collect: CollectConfig = CollectConfig()
    net: NetConfig = NetConfig()
    heads: HeadsConfig = HeadsConfig()
    ppo: PPOConfig = PPOConfig()
    dqn: DQNConfig = DQNConfig()
    sac: SACConfig = SACConfig()
    replay: ReplayConfig = ReplayConfig()
    eval: EvaluationConfig = EvaluationConfig()
    league: LeagueConfig = LeagueConfig()
    imitation: ImitationConfig = ImitationConfig()
    env: EnvConfig = EnvConfig()
    distributed: DistributedConfig = DistributedConfig()
    checkpoint_every_s: Annotated[float, at_least(0)] = 60.0
    """Seconds between checkpoints. They are written in the background."""
    checkpoint_every_decisions: Count = 0
    """Decisions between checkpoints instead, the same on every machine. 0: by seconds."""
    keep: Annotated[int, at_least(1)] = 3
    """Checkpoints that are kept besides the best one."""
    runs: str = "runs"
    """The folder in which run folders are made."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    csv: bool = False
    """Write the curves to metrics.csv too, a line per value."""
    episodes_csv: bool = False
    """Write every finished game to episodes.csv. Only where games are stepped on a CPU."""
    wandb: bool = False
    """Log to Weights & Biases (extra `track`)."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""
    dry_run: bool = False
    """Check every setting, show the timeline of the phases, and train nothing."""


@dataclass(frozen=True)
class ResumeConfig(Checked):
    """Go on with a run exactly where its last checkpoint stands.

    Budgets are totals over the life of the run, and are kept for the next time.
    """

    run: Positional[str] = "latest"
    """The folder of the run, the beginning of its name, or `latest`."""
    checkpoint: Annotated[int, at_least(-1)] = -1
    """Which checkpoint; an older one begins a new run there. -1: the newest that is whole."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Train up to this many minutes in all. 0: to the end the run had planned."""
    updates: Count = 0
    """Train up to this update instead."""
    decisions: Count = 0
    """Train up to this many decisions of the learner instead."""
    episodes: Count = 0
    """Train up to this many finished games instead."""
    clear_replay: bool = False
    """Forget what is remembered and begin the replay anew."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""


@dataclass(frozen=True)
class PlotConfig(Checked):
    """Draw the curves of runs: strength, score, speed, where the time goes, losses."""

    run: Positional[tuple[str, ...]] = ("latest",)
    """Runs, by folder, by the beginning of a name, or `latest`. Several share one picture."""
    by: Annotated[str, one_of("minutes", "decisions", "updates")] = "minutes"
    """What the curves are drawn over: minutes, decisions or updates."""
    out: str = ""
    """A file, .png, .svg, .pdf or .html, or a folder for plot.png and plot.html. Left out: the
    run's folder, or that of several runs."""
    csv: str = ""
    """A file for all numbers, a line each: update, seconds, decisions, name, value."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class RunsConfig(Checked):
    """List the runs, the newest first; remove some, or write a note and tags to them."""

    names: Positional[tuple[str, ...]] = ()
    """Parts of names: only these are listed. With --remove, --note, --tag and --untag: the runs,
    as other commands take them."""
    game: str = ""
    """Only runs of this game."""
    tagged: str = ""
    """Only runs that have all of these tags, a comma list."""
    sort: str = "date"
    """What comes first: date (the newest), name, game, state, strength, minutes, decisions,
    size."""
    note: str | None = None
    """Write this note to the runs that are named; "" removes it."""
    tag: str = ""
    """Give the runs that are named these tags, a comma list such as baseline,wide-net."""
    untag: str = ""
    """Take these tags from the runs that are named."""
    remove: bool = False
    """Remove the runs that are named. Asks before; never touches one that is going on."""
    yes: bool = False
    """Remove without asking; needed where there is no terminal."""
    runs: str = "runs"
    """The folder in which run folders are."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class CompareConfig(Checked):
    """Compare settings over seeds: strength with intervals, curves, and matches."""

    run: Positional[tuple[str, ...]]
    """Runs, by folder or by name; the beginning of several names means all of them."""
    by: str = ""
    """Settings that make the groups, a comma list such as ppo.lr or algo,net.hidden; run: each
    run alone. Left out: everything that differs but the seed."""
    games: Annotated[int, at_least(0)] = 2048
    """Games of each match between the best policies of two groups. 0: no matches."""
    seed: Seed = 0
    """Of the bootstrap and of the matches."""
    threads: Threads = 0
    """Threads for the matches. 0: one per core."""
    out: str = ""
    """A file, .png, .svg, .pdf or .html, or a folder for compare.png and compare.html. Left out:
    beside the runs."""
    json: bool = False
    """Print one JSON object instead of tables."""
