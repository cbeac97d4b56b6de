"""Settings of a run, and of commands about runs: resume, plot, runs, compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, Suppress, UseAppendAction

from sparring.config.algorithms import (
    DQNConfig,
    GumbelConfig,
    PPOConfig,
    QRDQNConfig,
    REDQConfig,
    ReplayConfig,
    SACConfig,
    TD3Config,
)
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
from sparring.config.synonyms import ALGORITHMS


@dataclass(frozen=True)
class TrainConfig(Checked):
    """Train an agent by self-play and measure its strength."""

    game: Positional[str] = "skull_king"
    """The game to learn, or a custom environment as module:factory or file.py:factory, whose code
    is run."""
    minutes: Annotated[float, above(0)] = 5.0
    """Time for training. How many updates that makes depends on the machine; for a repeatable run
    set updates or decisions."""
    updates: Count = 0
    """Updates to make, instead of minutes. 0: as many as the minutes allow."""
    decisions: Count = 0
    """Decisions of the learner to make, instead of minutes. 0: as many as the minutes allow."""
    episodes: Count = 0
    """Games to finish, instead of minutes. 0: as many as the minutes allow."""
    name: str = ""
    """Name of the run's folder. Left out: game, algorithm, date and four letters."""
    init: str = ""
    """A run, checkpoint or saved policy whose weights initialize the network."""
    average: Annotated[float, between(0, 1)] = 0.0
    """Share of the training so far, such as 0.2, over which weights are averaged; the average is
    what plays, is evaluated and saved as the policy. Steadier than the newest weights, and harder
    to exploit. 0: the newest weights."""
    imitate: tuple[str, ...] = ()
    """Demonstrations to imitate before self-play: recorded games (.json of any game, .kif, .csa and
    .usi of Shogi; folders and patterns too), or bots, runs and policies, whose games are played for
    it."""
    imitate_minutes: Annotated[float, above(0)] = 5.0
    """Time for imitation, in addition to the time for training."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    device: Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")] = "auto"
    """Device of the network: cpu, cuda (the first GPU), cuda:1, or auto."""
    devices: str = ""
    """GPUs that train one run together, such as 0,1: a process on each plays its share of the
    games, and gradients are summed. Left out: one device."""
    pool: Annotated[str, one_of("cpu", "cuda", "auto")] = "auto"
    """Device of the games: cpu, cuda, or auto (the network's device)."""
    workers: Annotated[str, one_of("auto", pattern=r"\d{1,4}", placeholder="number")] = "0"
    """Processes that step a custom environment: a number, 0 for none, or auto, which measures
    whether they are faster."""
    actors: Annotated[int, between(0, 1024)] = 0
    """Processes that play for the learner asynchronously. 0: the learner plays itself."""
    cluster: str = ""
    """Run actors, runs and replicas in Ray: local (this machine), auto (the running cluster), or a
    cluster's address. Left out: processes on this machine."""
    replicas: Annotated[int, between(1, 1024)] = 1
    """Learners that share the games and gradients of every update, as processes on this machine or
    in Ray with cluster."""
    seeds: Annotated[int, between(1, 1024)] = 1
    """Number of runs with different seeds: one after the other, on a GPU at once as a population,
    in a cluster as tasks."""
    population: Annotated[int, between(1, 1024)] = 1
    """Runs that train at once on one GPU, each with a different seed."""
    vary: UseAppendAction[tuple[str, ...]] = ()
    """A setting that differs between several runs, for example ppo.lr=1e-3,3e-4, or a flag of the
    game, for example set.num_players=4,6 or set.order=[0,1,2],[2,1,0]."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """A flag of the game as key=value, for example num_players=6."""
    config: str = ""
    """A TOML file with any of these settings; options on the command line override it."""
    opponents: tuple[str, ...] = ("self=1",)
    """Opponents as WHO=WEIGHT. WHO is self (every seat learns), or for all other seats a bot
    (random with a custom environment), past (a past self), past:5 (one of the newest five), best, a
    run, a checkpoint or a saved policy; or one player per seat: self,captain,past,past. NAME@greedy
    plays a policy's most probable actions."""
    rewards: tuple[str, ...] = ()
    """Weights of reward parts as PART=WEIGHT or ROLE.PART=WEIGHT. Left out: the game's weights."""
    starts: tuple[str, ...] = ()
    """Start positions as WHAT=WEIGHT. WHAT is usual, random:6 (after 1 to 6 random moves), a file
    of positions, or a name that the game knows. Left out: the game's usual start."""
    curriculum: str = ""
    """A TOML or JSON file with phases, which change opponents, rewards and start positions during
    the run."""
    phases: Annotated[tuple[str, ...], Suppress] = ()
    """The phases themselves, each as JSON; a TOML file has them as [[phases]]."""
    algo: Annotated[
        str,
        one_of(*ALGORITHMS, pattern=r"(.*:.*)?", placeholder="module:factory", any_case=True),
    ] = "ppo"
    """The algorithm: ppo, dqn and qrdqn (discrete actions), sac and redq, td3 (continuous actions),
    gumbel (self-play with search), or a custom learner as module:factory."""
    algo_set: UseAppendAction[tuple[str, ...]] = ()
    """A setting of a custom learner as key=value."""
    roles: UseAppendAction[tuple[str, ...]] = ()
    """Settings of one role's network as ROLE.SETTING=VALUE, for example manager.ppo.epochs=25 or
    worker.net.hidden=512,512. Needs hierarchy.on."""
    hierarchy: HierarchyConfig = HierarchyConfig()
    hindsight: HindsightConfig = HindsightConfig()
    collect: CollectConfig = CollectConfig()
    net: NetConfig = NetConfig()
    heads: HeadsConfig = HeadsConfig()
    ppo: PPOConfig = PPOConfig()
    dqn: DQNConfig = DQNConfig()
    qrdqn: QRDQNConfig = QRDQNConfig()
    sac: SACConfig = SACConfig()
    redq: REDQConfig = REDQConfig()
    td3: TD3Config = TD3Config()
    gumbel: GumbelConfig = GumbelConfig()
    replay: ReplayConfig = ReplayConfig()
    eval: EvaluationConfig = EvaluationConfig()
    league: LeagueConfig = LeagueConfig()
    imitation: ImitationConfig = ImitationConfig()
    env: EnvConfig = EnvConfig()
    distributed: DistributedConfig = DistributedConfig()
    checkpoint_every_s: Annotated[float, at_least(0)] = 60.0
    """Seconds between checkpoints, which are written in the background."""
    checkpoint_every_decisions: Count = 0
    """Decisions between checkpoints, instead of seconds; this is the same on every machine. 0: use
    checkpoint_every_s."""
    keep: Annotated[int, at_least(1)] = 3
    """Number of latest checkpoints to keep, besides the best one."""
    runs: str = "runs"
    """Folder for run folders."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    csv: bool = False
    """Also write metrics to metrics.csv, one line per value."""
    episodes_csv: bool = False
    """Write every finished game to episodes.csv. Only with games on a CPU."""
    wandb: bool = False
    """Log to Weights & Biases (extra `track`)."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""
    dry_run: bool = False
    """Check all settings, print the timeline of the phases, and do not train."""


@dataclass(frozen=True)
class ResumeConfig(Checked):
    """Continue a run from its last checkpoint.

    Budgets are totals of the whole run, and are saved for later resumes.
    """

    run: Positional[str] = "latest"
    """The folder of the run, the beginning of its name, or `latest`."""
    checkpoint: Annotated[int, at_least(-1)] = -1
    """Number of the checkpoint; an older one starts a new run there. -1: the newest that is
    intact."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Train up to this many minutes in total. 0: up to the run's budget."""
    updates: Count = 0
    """Train up to this many updates in total, instead of minutes."""
    decisions: Count = 0
    """Train up to this many decisions of the learner in total, instead of minutes."""
    episodes: Count = 0
    """Train up to this many finished games in total, instead of minutes."""
    devices: str = ""
    """GPUs to go on with, such as 0 or 0,1. Left out: those of the run."""
    clear_replay: bool = False
    """Start with an empty replay buffer."""
    json: bool = False
    """Print one JSON object at the end instead of lines."""


@dataclass(frozen=True)
class PlotConfig(Checked):
    """Plot metrics of runs: strength, score, speed, time per phase, losses."""

    run: Positional[tuple[str, ...]] = ("latest",)
    """Runs, by folder, by the beginning of a name, or `latest`. Several share one picture."""
    by: Annotated[str, one_of("minutes", "decisions", "updates")] = "minutes"
    """The x axis: minutes, decisions or updates."""
    out: str = ""
    """A .png, .svg, .pdf or .html file, or a folder for plot.png and plot.html. Left out: the run's
    folder, or the folder of several runs."""
    csv: str = ""
    """A file for all values, one line each: update, seconds, decisions, name, value."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class RunsConfig(Checked):
    """List runs, newest first; remove runs, or set notes and tags."""

    names: Positional[tuple[str, ...]] = ()
    """Parts of names: list only runs that match. With --remove, --note, --tag and --untag: the runs
    to change."""
    game: str = ""
    """List only runs of this game."""
    tagged: str = ""
    """List only runs with all of these tags, a comma list."""
    sort: str = "date"
    """Sort by date (newest first), name, game, state, strength, minutes, decisions or size."""
    note: str | None = None
    """Set this note on the named runs; "" removes it."""
    tag: str = ""
    """Add these tags to the named runs, a comma list such as baseline,wide-net."""
    untag: str = ""
    """Remove these tags from the named runs."""
    remove: bool = False
    """Remove the named runs. Asks first; never removes a run that is training."""
    yes: bool = False
    """Remove without asking; needed without a terminal."""
    runs: str = "runs"
    """Folder with the run folders."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class CompareConfig(Checked):
    """Compare settings over seeds: strength with intervals, curves, and matches."""

    run: Positional[tuple[str, ...]]
    """Runs, by folder or name; the beginning of several names selects all of them."""
    by: str = ""
    """Settings that define the groups, a comma list such as ppo.lr or algo,net.hidden; run: each
    run alone. Left out: all settings that differ, except the seed."""
    games: Annotated[int, at_least(0)] = 2048
    """Games of each match between the best policies of two groups. More gives narrower intervals.
    0: no matches."""
    seed: Seed = 0
    """Seed of the bootstrap and of the matches."""
    threads: Threads = 0
    """Threads for the matches. 0: one per core."""
    out: str = ""
    """A .png, .svg, .pdf or .html file, or a folder for compare.png and compare.html. Left out: the
    folder of the runs."""
    json: bool = False
    """Print one JSON object instead of tables."""
