"""The table of commands."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Command:
    """What a user types, and where it lives. Nothing is imported before it is asked for."""

    name: str
    help: str
    config: str
    module: str

    @property
    def settings(self) -> Any:
        """The class of its options, wherever it stands."""
        homes = (import_module(f"sparring.config.{file}") for file in ("runs", "commands", "tools"))
        return next(getattr(home, self.config) for home in homes if hasattr(home, self.config))


COMMANDS = (
    Command("train", "train an agent by self-play and measure it", "TrainConfig", "train"),
    Command("resume", "go on with a run where it stopped", "ResumeConfig", "train"),
    Command("games", "list the games, or one game's flags and sizes", "GamesConfig", "games"),
    Command("play", "play against bots or a trained agent in the terminal", "PlayConfig", "play"),
    Command("eval", "measure a policy or a bot over many games", "EvalConfig", "evaluate"),
    Command("exploit", "train against a policy: how much can it lose", "ExploitConfig", "exploit"),
    Command("arena", "let everybody meet everybody and rate them", "ArenaConfig", "arena"),
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
    Command("bench pool", "prove a pool valid, then measure it", "BenchPoolConfig", "bench.pool"),
    Command("bench train", "measure training end to end", "BenchTrainConfig", "bench.train"),
    Command(
        "bench configs", "train named configurations in turn", "BenchConfigsConfig", "bench.configs"
    ),
    Command(
        "bench scaling",
        "speed by games, threads and workers",
        "BenchScalingConfig",
        "bench.scaling",
    ),
    Command("profile", "say where a training's time goes", "ProfileConfig", "profile"),
    Command("tune", "find the fastest settings for this machine", "TuneConfig", "tune"),
    Command("sweep", "search over settings by whole trainings", "SweepConfig", "sweep"),
    Command("check", "run the conformance test on a game or an env", "CheckConfig", "check"),
    Command("new-game", "write the files of a new native game", "NewGameConfig", "new_game"),
    Command("port", "hold your env against a native game, step by step", "PortConfig", "port"),
    Command("completion", "complete words in your shell", "CompletionConfig", "completion"),
    Command("doctor", "look for what is missing on this machine", "DoctorConfig", "doctor"),
)
