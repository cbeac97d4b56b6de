"""Settings of tools: profile, tune, sweep, bench, render, replay, serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from sparring.config.commands import BenchOptions
from sparring.config.ranges import (
    MAX_SEED,
    Checked,
    Count,
    Seed,
    Threads,
    above,
    at_least,
    between,
    one_of,
)

Device = Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")]


@dataclass(frozen=True)
class ProfileConfig(Checked):
    """Train briefly and report where the time goes and what to change."""

    target: Positional[str] = "skull_king"
    """A game, a custom environment as module:factory or file.py:factory, or a run whose settings
    are used; a run that is training is profiled while it trains."""
    seconds: Annotated[float, above(0, 3600)] = 20.0
    """Seconds of sampling. More finds rarer causes."""
    updates: Count = 0
    """Sample for so many updates, at most an hour. 0: for `seconds`."""
    rate: Annotated[int, between(0, 1000)] = 0
    """Samples per second. More sees shorter calls and costs more. 0: 100 for Python stacks, 25 with
    native stacks, 20 for a run that is training."""
    native: Annotated[str, one_of("auto", "on", "off")] = "auto"
    """Sample native code too, where the system allows it: on, off, or auto (off for a run that is
    training, because it slows the run down)."""
    try_out: bool = True
    """Time settings before recommending them. --no-try-out: estimate their gains only."""
    config: str = ""
    """A TOML file with settings of `sparring train`."""
    algo: str = ""
    """The algorithm. Left out: as `sparring train` would."""
    threads: Threads = 0
    """Threads for games and network. 0: as `sparring train` would."""
    device: Device = "auto"
    """Device of the network: cpu, cuda, or auto."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    change: tuple[str, ...] = ()
    """Any other setting of `sparring train` as key=value, such as ppo.minibatch=64."""
    out: str = ""
    """Folder for the report, the flame graph and the speedscope file. Left out: profile-NAME."""
    json: bool = False
    """Print one JSON object instead of the report."""


@dataclass(frozen=True)
class CompletionConfig(Checked):
    """Print a script that completes commands, options, games and runs in your shell."""

    shell: Annotated[Positional[str], one_of("bash", "zsh", "fish")]
    """bash, zsh or fish."""


@dataclass(frozen=True)
class TuneConfig(Checked):
    """Find the settings with which this machine trains a game fastest, by measuring."""

    game: Positional[str] = "skull_king"
    """The game, or a custom environment as module:factory or file.py:factory."""
    minutes: Annotated[float, above(0, 1440)] = 5.0
    """Time for measuring. More tries more settings and is more precise."""
    gigabytes: Annotated[float, at_least(0)] = 0.0
    """Memory that training may use. 0: all free memory."""
    goal: Annotated[str, one_of("speed", "strength"), arg(name="for")] = "speed"
    """speed: decisions per second. strength: time to a target, in short trainings."""
    target: Annotated[float, between(-1e9, 1e9)] = 0.0
    """With strength: the mean win share, or the score in games with one seat, whose time is
    measured. 0: what the preset reaches in a quarter of the time."""
    only: tuple[str, ...] = ()
    """A setting to try, such as collect.games, optionally with values: collect.games=128,256,512;
    once per setting. Left out: all tunable settings."""
    same_learning: bool = False
    """Try only settings that do not change what is learned: threads, groups, workers, precision,
    pool and device."""
    config: str = ""
    """A TOML file with settings of `sparring train` to start from."""
    algo: str = ""
    """The algorithm. Left out: as `sparring train` would."""
    device: Device = "auto"
    """Device of the network: cpu, cuda, or auto, which tries all available."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    out: str = ""
    """The TOML file to write, for `sparring train --config`; the picture is written next to it.
    Left out: tuned-GAME.toml, numbered if it exists."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class SweepConfig(Checked):
    """Search over settings with complete trainings."""

    file: Positional[str]
    """A TOML file with settings, ranges under [sweep], and how to search; or the folder of a sweep
    to continue."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Time for all trials. 0: as the file says."""
    trials: Count = 0
    """Number of trials. 0: as the file says."""
    sampler: Annotated[str, one_of("", "random", "tpe", "gp")] = ""
    """How settings are chosen: random, tpe or gp. Left out: as the file says, or tpe."""
    at_once: Annotated[int, between(0, 1024)] = 0
    """Trials at the same time: members of a population on a GPU, processes on CPUs. 0: chosen
    automatically."""
    device: Device = "auto"
    """Device of the trials: cpu, cuda, or auto."""
    cluster: str = ""
    """Run trials as tasks in Ray: local, auto, or a cluster's address."""
    out: str = ""
    """Folder of the sweep. Left out: sweeps/NAME of the file."""
    dry_run: bool = False
    """Print the ranges and the cost, and do not train."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class BenchConfigsConfig(BenchOptions):
    """Train named configurations in turn and compare them."""

    file: Positional[str]
    """A TOML file with settings for all, and [configs.NAME] for each."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Time for each run. 0: as the file says."""
    seeds: Annotated[int, between(0, 64)] = 0
    """Runs per configuration. 0: as the file says, or 1."""
    games: Annotated[int, at_least(0)] = 2048
    """Games of each final match between the best policies. More gives narrower intervals. 0: no
    matches."""
    out: str = ""
    """Folder for the runs, bench.json and the pictures. Left out: bench-NAME of the file. Finished
    runs in it are not trained again."""
    together: Annotated[int, between(1, 64)] = 1
    """Runs that train at the same time, each in a process. They share the device, the cores and the
    memory, so speeds are those beside each other."""
    dry_run: bool = False
    """Check every configuration, print the cost, and do not train."""


@dataclass(frozen=True)
class BenchScalingConfig(BenchOptions):
    """Measure speed by number of games, threads and workers, and recommend values."""

    game: Positional[str] = "skull_king"
    """The game, or a custom environment as module:factory or file.py:factory."""
    games: Annotated[tuple[int, ...], at_least(1)] = ()
    """Numbers of games to measure, besides the preset's. Left out: powers of two around it; on a
    GPU upward."""
    threads: Annotated[tuple[int, ...], between(1, 1024)] = ()
    """Numbers of threads to measure. Left out: 1, 2, 4 and so on up to all cores."""
    workers: Annotated[tuple[int, ...], between(0, 1024)] = ()
    """Numbers of worker processes to measure, for a custom environment. Left out: 0, 1, 2, 4 and so
    on up to all cores."""
    seconds: Annotated[float, above(0, 86_400)] = 60.0
    """Time for measuring, shared by all numbers; setting up comes on top."""
    passes: Annotated[int, between(1, 100)] = 5
    """Rounds over all numbers, fewer if they take too long. More makes medians more precise."""
    algo: str = ""
    """The algorithm. Left out: as `sparring train` would."""
    config: str = ""
    """A TOML file with settings of `sparring train`."""
    device: Device = "auto"
    """Device of the network: cpu, cuda, or auto."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    seed: Seed = 0
    """Seed of the games and of the network's weights."""
    out: str = ""
    """A .png, .svg, .pdf or .html file, or a folder for scaling.png and scaling.html. Left out: no
    pictures."""


@dataclass(frozen=True)
class RenderConfig(Checked):
    """Draw a game between policies or bots as a film or a picture."""

    players: Positional[str]
    """A run, checkpoint, policy or bot (bot:NAME too) for seat 0, or one per seat: latest,weak."""
    out: str = "game.gif"
    """The file: .gif, .mp4 (needs ffmpeg), .svg (animated in any browser) or .png (one picture)."""
    game: str = ""
    """The game, if all players are bots."""
    against: str = ""
    """Player of the other seats, if one player is given. Left out: the strongest bot."""
    episodes: Annotated[int, between(1, 100)] = 1
    """Number of games, one after the other."""
    seed: Seed = 0
    """Seed of the first game; the next games use the following numbers."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: the flags of the training."""
    sampled: bool = False
    """Sample actions as in training instead of taking the most probable one."""
    still: bool = False
    """One picture of the whole game, as a .png always is."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """Speed of the film. 0.5: half as fast as the game."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """Frames per second of a .gif or .mp4. More is smoother and larger. 0: 25 and 50."""
    width: Annotated[int, between(160, 3840)] = 760
    """Width in pixels."""
    save: str = ""
    """A file for the recorded game, for `sparring replay`; further games get -2, -3."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class ReplayFileConfig(Checked):
    """Show a recorded game step by step, as text or as a film, or verify its result."""

    file: Positional[str]
    """A file that play, render, eval, arena or the browser saved."""
    seat: Annotated[int, between(-1, 255)] = -1
    """Show only what this seat could see. -1: everything."""
    text: bool = False
    """Print the whole game instead of stepping through it."""
    check: bool = False
    """Only verify that the game ends as the file says; exit code 3 if not."""
    out: str = ""
    """Write a film or picture instead: .gif, .mp4, .svg or .png; for Shogi also .kif, .csa or
    .usi."""
    still: bool = False
    """With --out: one picture of the whole game, as a .png always is."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """With --out: speed of the film. 0.5: half as fast as the game."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """With --out: frames per second of a .gif or .mp4. More is smoother and larger. 0: 25 and
    50."""
    width: Annotated[int, between(160, 3840)] = 760
    """With --out: width in pixels."""
    json: bool = False
    """Print the facts as one JSON object."""


@dataclass(frozen=True)
class ServeConfig(Checked):
    """Show runs live in a browser, and play against their agents there."""

    folder: Positional[str] = ""
    """Folder with the runs. Left out: that of --runs."""
    runs: str = "runs"
    """The same, as in other commands. Files outside of it are never shown."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0: all networks. Visitors from other machines need the token."""
    port: Annotated[int, between(0, 65_535)] = 8000
    """Port to listen on. 0: any free port."""
    token: str = ""
    """Token that visitors need. Other users of this machine can see it in the list of processes:
    use --token-file or SPARRING_TOKEN to hide it. Left out: a new token at every start."""
    token_file: str = ""
    """A file with the token, which other users should not be able to read."""
    open: bool = False
    """Open the page in a browser once the server is ready."""
    api: bool = False
    """Let programs request actions from agents: POST /api/act, described in /openapi.json."""
    agent: str = ""
    """With --api: agent for requests that name none: a run, RUN/40, RUN/past/12 or a folder."""
    fallback: str = ""
    """With --api: bot that answers if an agent is missing or damaged. Left out: an error."""
    states: bool = False
    """With --api: accept states as bytes, which are validated before use."""
    batch: Annotated[int, between(1, 4096)] = 64
    """With --api: largest number of requests in one forward pass. Higher answers more requests per
    second."""
    search: str = ""
    """With --api: tree search behind every action: simulations (64), a time (500ms), or with
    another rule (800/puct). Requests need a state or a replay then. Left out: as requests ask."""
    max_search: Annotated[int, between(0, 1_000_000)] = 1600
    """With --api: most simulations that a request may ask for. 0: none."""
    wait_ms: Annotated[float, between(0.0, 1000.0)] = 1.0
    """With --api: how long a request waits for others to share a forward pass, once several arrive
    at a time. Higher makes larger batches and slower answers."""
    json: bool = False
    """Print the address as one JSON object instead of lines."""


@dataclass(frozen=True)
class ZooConfig(Checked):
    """List the champions that come along: strength, training, command; measure them again."""

    game: Positional[str] = ""
    """A game, for its champion with recipe and past champions. Left out: all champions."""
    verify: bool = False
    """Measure again. Exit code 1 if a champion is outside of what is stated."""
    seed: Annotated[int | None, between(0, MAX_SEED)] = None
    """With --verify: seed of other deals. Left out: the deals of the stated measurements."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class DemoConfig(Checked):
    """Watch a champion play for a minute, and see how strong it is."""

    game: Positional[str] = ""
    """A game with a champion. Left out: skull_king."""
    seconds: Annotated[float, above(0, 3600)] = 30.0
    """Longest time for the game that is shown."""
    games: Annotated[int, at_least(2)] = 400
    """Games against each bot."""
    seed: Seed = 0
    """Seed of the deals."""
    threads: Threads = 0
    """Threads for games and network. 0: one per core."""
    json: bool = False
    """Print one JSON object with the results instead; no game is shown."""
