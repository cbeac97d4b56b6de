"""What the commands take that show games and runs, or say what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from sparring.config.ranges import Checked, Count, Seed, Threads, above, at_least, between, one_of

Device = Annotated[str, one_of("cpu", "cuda", "auto", pattern=r"cuda:\d+")]


@dataclass(frozen=True)
class ProfileConfig(Checked):
    """Train for a moment and say where the time goes, and what to do about it."""

    target: Positional[str] = "skull_king"
    """A game, an environment of your own as module:factory or file.py:factory, or a run: its
    settings; one that is going on is looked at while it trains."""
    seconds: Annotated[float, above(0, 3600)] = 20.0
    """How long stacks are sampled. More find rarer things."""
    updates: Count = 0
    """Sample for so many updates, however long they take, an hour at most. 0: for `seconds`."""
    rate: Annotated[int, between(0, 1000)] = 0
    """Samples per second. More see shorter things and cost more. 0: 100 of Python, 25 where native
    code is looked into, which takes longer, 20 of a run that is going on."""
    native: Annotated[str, one_of("auto", "on", "off")] = "auto"
    """Look into native code too, where the system allows it: on, off, or auto, which leaves it out
    for a run that is going on, because it slows that down."""
    try_out: bool = True
    """Settings are timed before they are recommended. --no-try-out: they are only reckoned."""
    config: str = ""
    """A TOML file with settings of `sparring train`."""
    algo: str = ""
    """What learns. Left out: as `sparring train` would."""
    threads: Threads = 0
    """Threads for games and network. 0: as `sparring train` would."""
    device: Device = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    change: tuple[str, ...] = ()
    """Any other setting of `sparring train` as key=value, such as ppo.minibatch=64."""
    out: str = ""
    """The folder of the report, the flame graph and the speedscope file. Left out: profile-NAME."""
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
    """The game, or an environment of your own as module:factory or file.py:factory."""
    minutes: Annotated[float, above(0, 1440)] = 5.0
    """Time for measuring. More tries more and is surer."""
    gigabytes: Annotated[float, at_least(0)] = 0.0
    """Memory that a training may take. 0: what is free."""
    goal: Annotated[str, one_of("speed", "strength"), arg(name="for")] = "speed"
    """speed: decisions per second. strength: short trainings, time to a target."""
    target: Annotated[float, between(-1e9, 1e9)] = 0.0
    """Of strength: the mean win share, or the score of one seat, whose time counts. 0: what the
    preset reaches in a quarter of the time."""
    only: tuple[str, ...] = ()
    """A setting to try, such as collect.games, with values of your own if you like:
    collect.games=128,256,512; once for each. Left out: all that there are."""
    same_learning: bool = False
    """Leave alone what changes what is learned (games, steps, minibatch): only threads, slots,
    workers, precision, pool and device are tried."""
    config: str = ""
    """A TOML file with settings of `sparring train` to begin with."""
    algo: str = ""
    """What learns. Left out: as `sparring train` would."""
    device: Device = "auto"
    """Where the network may live: cpu, cuda, or auto, which tries what there is."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    seed: Seed = 0
    """Which games are played and where the network starts."""
    out: str = ""
    """The TOML file for `sparring train --config`; the picture stands beside it. Left out:
    tuned-GAME.toml, or the next number where that is there."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class SweepConfig(Checked):
    """Search over settings by whole trainings."""

    file: Positional[str]
    """A TOML file with the settings, the ranges under [sweep], and how to search; or the folder of
    a sweep that is to go on."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Time for all trials. 0: as the file says."""
    trials: Count = 0
    """Trials to make. 0: as the file says."""
    sampler: Annotated[str, one_of("", "random", "tpe", "gp")] = ""
    """random, tpe or gp. Left out: as the file says, or tpe."""
    at_once: Annotated[int, between(0, 1024)] = 0
    """Trials at the same time: members of a population on a GPU, processes on CPUs. 0: as many as
    pay."""
    device: Device = "auto"
    """Where trials are trained: cpu, cuda, or auto."""
    cluster: str = ""
    """Trials as tasks of Ray: local, auto, or its address."""
    out: str = ""
    """The folder of the sweep. Left out: sweeps/NAME of the file."""
    dry_run: bool = False
    """Show ranges and what it would cost, and train nothing."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class BenchConfigsConfig(Checked):
    """Train named configurations in turn and compare them."""

    file: Positional[str]
    """A TOML file: settings for all, and [configs.NAME] for each."""
    minutes: Annotated[float, at_least(0)] = 0.0
    """Time for each run. 0: as the file says."""
    seeds: Annotated[int, between(0, 64)] = 0
    """Runs of each configuration. 0: as the file says, or 1."""
    save: str = ""
    """A JSON file for what is measured, with the machine: a record for later."""
    record: str = ""
    """A record of an earlier bench on this machine: what got slower since, with intervals."""
    anyway: bool = False
    """Compare with a record of another machine or of other settings all the same."""
    fail_slower: bool = False
    """Exit code 1 if something got slower than in the record."""
    games: Annotated[int, at_least(0)] = 2048
    """Games of each match between the best policies at the end. 0: no matches."""
    out: str = ""
    """The folder of the runs, of bench.json and of the pictures. Left out: bench-NAME of the file.
    Runs that are finished there are not trained again."""
    dry_run: bool = False
    """Check every configuration, say what it would cost, and train nothing."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True)
class BenchScalingConfig(Checked):
    """Measure speed by number of games, threads and workers, and say what to take."""

    game: Positional[str] = "skull_king"
    """The game, or an environment of your own as module:factory or file.py:factory."""
    games: Annotated[tuple[int, ...], at_least(1)] = ()
    """Numbers of games to measure, beside the preset's. Left out: powers of two around it; on a
    GPU upwards."""
    threads: Annotated[tuple[int, ...], between(1, 1024)] = ()
    """Numbers of threads. Left out: 1, 2, 4 and so on up to all cores."""
    workers: Annotated[tuple[int, ...], between(0, 1024)] = ()
    """Numbers of worker processes, of an environment of your own. Left out: 0, 1, 2, 4 and so on
    up to all cores."""
    seconds: Annotated[float, above(0, 86_400)] = 60.0
    """Time for measuring, shared by all numbers; making what is measured comes on top."""
    passes: Annotated[int, between(1, 100)] = 5
    """How often everything is measured in turn, less where that takes longer. More give surer
    medians."""
    algo: str = ""
    """What learns. Left out: as `sparring train` would."""
    config: str = ""
    """A TOML file with settings of `sparring train`."""
    device: Device = "auto"
    """Where the network lives: cpu, cuda, or auto."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value."""
    seed: Seed = 0
    """Which games are played and where the network starts."""
    out: str = ""
    """A file, .png, .svg, .pdf or .html, or a folder for scaling.png and scaling.html. Left out: no
    pictures."""
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
class RenderConfig(Checked):
    """Draw a game between policies or bots as a film or a picture."""

    players: Positional[str]
    """A run, checkpoint, policy or bot (bot:NAME too) for seat 0, or one per seat: latest,weak."""
    out: str = "game.gif"
    """The file: .gif, .mp4 (needs ffmpeg), .svg (moves in any browser) or .png (a still)."""
    game: str = ""
    """The game, where all players are bots."""
    against: str = ""
    """Who sits in the other seats, where one player is given. Left out: the best bot."""
    episodes: Annotated[int, between(1, 100)] = 1
    """Games, one after the other."""
    seed: Seed = 0
    """Which game is dealt; the next ones have the numbers after it."""
    set: tuple[str, ...] = ()
    """A flag of the game as key=value. Left out: those of the training."""
    sampled: bool = False
    """Draw actions as in training instead of taking the most probable one."""
    still: bool = False
    """One picture of the whole game. A .png is always that."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """How fast the film runs. 0.5: half as fast as the game."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """Frames per second of a .gif or .mp4. More are smoother and larger. 0: 25 and 50."""
    width: Annotated[int, between(160, 3840)] = 760
    """Pixels from left to right."""
    save: str = ""
    """A file for the game itself, which `sparring replay` plays again; -2, -3 for further ones."""
    json: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class ReplayFileConfig(Checked):
    """Look at a recorded game: step by step, as text, as a film, or only whether it comes out."""

    file: Positional[str]
    """A file that play, render, eval, arena or a page has saved."""
    seat: Annotated[int, between(-1, 255)] = -1
    """Whose eyes: what this seat knew. -1: everything."""
    text: bool = False
    """Print the whole game instead of stepping through it."""
    check: bool = False
    """Only say whether it comes out as the file says; another result is exit code 3."""
    out: str = ""
    """A film or picture instead: .gif, .mp4, .svg or .png; of Shogi .kif, .csa or .usi too."""
    still: bool = False
    """Of --out: one picture of the whole game. A .png is always that."""
    speed: Annotated[float, between(0.01, 100)] = 1.0
    """Of --out: how fast the film runs."""
    fps: Annotated[float, between(0, 240)] = 0.0
    """Of --out: frames per second of a .gif or .mp4. 0: 25 and 50."""
    width: Annotated[int, between(160, 3840)] = 760
    """Of --out: pixels from left to right."""
    json: bool = False
    """Print the facts as one JSON object."""


@dataclass(frozen=True)
class ServeConfig(Checked):
    """Show runs in a browser, live, and play against their agents there."""

    folder: Positional[str] = ""
    """The folder with the runs. Left out: that of --runs."""
    runs: str = "runs"
    """The same, as other commands take it. Files outside of it are never shown."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0: in every network. Whoever comes from elsewhere needs the token."""
    port: Annotated[int, between(0, 65_535)] = 8000
    """The port to listen at. 0: any that is free."""
    token: str = ""
    """What a visitor has to show, for everything. Other users of this machine see it among the
    processes: --token-file or SPARRING_TOKEN hides it. Left out: a new one each time."""
    token_file: str = ""
    """A file with the token in it, which nobody else should be able to read."""
    open: bool = False
    """Open the page in a browser as soon as it answers."""
    api: bool = False
    """Let programs ask agents for actions: POST /api/act, described in /openapi.json."""
    agent: str = ""
    """With --api: who answers requests that name nobody; a run, RUN/40, RUN/past/12 or a folder."""
    fallback: str = ""
    """With --api: the bot that answers for an agent that is missing or damaged. None: an error."""
    states: bool = False
    """With --api: take states as bytes, which are checked whole before anything is played."""
    batch: Annotated[int, between(1, 4096)] = 64
    """With --api: most requests that share a forward pass. Higher answers more a second."""
    wait_ms: Annotated[float, between(0.0, 1000.0)] = 1.0
    """With --api: how long requests wait for others, once several come at a time."""
    json: bool = False
    """Print the address as one JSON object instead of lines."""
