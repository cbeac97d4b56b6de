"""The table of commands."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Command:
    """A command: its name, help, class of options and module, which is imported when it runs."""

    name: str
    help: str
    config: str
    module: str

    @property
    def settings(self) -> Any:
        """The class of its options."""
        files = ("runs", "commands", "tools")
        modules = (import_module(f"sparring.config.{file}") for file in files)
        return next(getattr(one, self.config) for one in modules if hasattr(one, self.config))


COMMANDS = (
    Command("train", "train an agent by self-play and measure it", "TrainConfig", "train"),
    Command("resume", "continue a run where it stopped", "ResumeConfig", "resume"),
    Command("games", "list the games, or one game's flags and sizes", "GamesConfig", "games"),
    Command("play", "play against bots or a trained agent in the terminal", "PlayConfig", "play"),
    Command("eval", "measure a policy or a bot over many games", "EvalConfig", "evaluate"),
    Command("exploit", "train a best response to a policy", "ExploitConfig", "exploit"),
    Command("arena", "play a round robin and rate the players", "ArenaConfig", "arena"),
    Command("ladder", "keep a rated table of bots and runs of a game", "LadderConfig", "ladder"),
    Command("demo", "watch a champion play, and see how strong it is", "DemoConfig", "demo"),
    Command("zoo", "list the champions that come along", "ZooConfig", "zoo"),
    Command("serve", "show runs and play games in a browser", "ServeConfig", "serve"),
    Command("usi", "play Shogi as an engine of other programs", "UsiConfig", "usi"),
    Command("render", "draw a game as a film or a picture", "RenderConfig", "render"),
    Command("replay", "step through a recorded game, or film it", "ReplayFileConfig", "replay"),
    Command("runs", "list the runs with their strength, or remove some", "RunsConfig", "runs"),
    Command("plot", "draw the curves of runs as a picture and a page", "PlotConfig", "plot"),
    Command("compare", "compare settings over seeds, with intervals", "CompareConfig", "compare"),
    Command(
        "league", "show the past selves of a run: ratings, results", "LeagueShowConfig", "league"
    ),
    Command("export", "write an agent as ONNX, or as a page that plays", "ExportConfig", "export"),
    Command("bench pool", "check a pool, then measure its speed", "BenchPoolConfig", "bench.pool"),
    Command("bench train", "measure the speed of training", "BenchTrainConfig", "bench.train"),
    Command(
        "bench configs", "train and compare configurations", "BenchConfigsConfig", "bench.configs"
    ),
    Command(
        "bench scaling",
        "measure speed by games, threads and workers",
        "BenchScalingConfig",
        "bench.scaling",
    ),
    Command(
        "bench search", "measure the simulations of a search", "BenchSearchConfig", "bench.search"
    ),
    Command("profile", "show where the time of a training goes", "ProfileConfig", "profile"),
    Command("tune", "find the fastest settings for this machine", "TuneConfig", "tune"),
    Command("sweep", "search settings by training with them", "SweepConfig", "sweep"),
    Command("check", "run the conformance test on a game or an env", "CheckConfig", "check"),
    Command("new-game", "write the files of a new native game", "NewGameConfig", "new_game"),
    Command("port", "compare your env with a native game, step by step", "PortConfig", "port"),
    Command(
        "completion", "print a completion script for your shell", "CompletionConfig", "completion"
    ),
    Command("doctor", "check the installation and this machine", "DoctorConfig", "doctor"),
)
