"""The table of commands."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from sparring.errors import ConfigError, SparringError, SparringWarning, nearest

OK, USAGE, FAILED, INTERRUPTED = 0, 2, 3, 130


@dataclass(frozen=True)
class Command:
    """What a user types, and where it lives. Nothing is imported before it is asked for."""

    name: str
    help: str
    config: str
    module: str


COMMANDS = (
    Command("train", "train an agent by self-play and measure it", "TrainConfig", "train"),
    Command("resume", "go on with a run where it stopped", "ResumeConfig", "train"),
    Command("games", "list the games, or one game's flags and sizes", "GamesConfig", "games"),
    Command("play", "play against bots or a trained agent in the terminal", "PlayConfig", "play"),
    Command("eval", "measure a policy or a bot over many games", "EvalConfig", "eval.command"),
    Command("usi", "play Shogi as an engine of other programs", "UsiConfig", "usi"),
    Command("render", "draw a game as a film or a picture", "RenderConfig", "render"),
    Command("runs", "list the runs with their strength, or remove some", "RunsConfig", "runs"),
    Command("plot", "draw the curves of runs as a picture and a page", "PlotConfig", "plot"),
    Command("compare", "compare settings over seeds, with intervals", "CompareConfig", "compare"),
    Command("export", "write a trained network as an ONNX file", "ExportConfig", "export"),
    Command("bench pool", "prove a pool valid, then measure it", "BenchPoolConfig", "bench.pool"),
    Command("bench train", "measure training end to end", "BenchTrainConfig", "bench.train"),
    Command("check", "run the conformance test on a game", "CheckConfig", "check"),
    Command("doctor", "look for what is missing on this machine", "DoctorConfig", "doctor"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return dispatch(args)
    except ConfigError as wrong:
        return complain(str(wrong), USAGE)
    except SparringError as wrong:
        return complain(str(wrong), FAILED)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough (`| head`); keep Python from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def dispatch(args: list[str]) -> int:
    """Find the command, read its options and run it."""
    if not args or args[0] in ("-h", "--help", "help"):
        print(overview())
        return OK
    if args[0] == "--version":
        from sparring import __version__

        print(f"sparring {__version__}")
        return OK
    command, rest = find(args)
    config = read_options(command, rest)
    if config is None:
        return OK
    return int(importlib.import_module(f"sparring.commands.{command.module}").run(config))


def overview() -> str:
    """Return what there is to do, one line per command."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:{width}}  {command.help}" for command in COMMANDS]
    return "\n".join(
        [
            "usage: sparring COMMAND [options]",
            "",
            *lines,
            "",
            "sparring COMMAND --help lists the options; sparring --version prints the version.",
        ]
    )


def find(args: list[str]) -> tuple[Command, list[str]]:
    """Return the command that the first words name, and the words after them."""
    for command in COMMANDS:
        words = command.name.split()
        if args[: len(words)] == words:
            return command, args[len(words) :]
    inner = [c.name for c in COMMANDS if c.name.startswith(args[0] + " ")]
    if inner and len(args) == 1:
        raise ConfigError(f"{args[0]!r} needs a second word: {', '.join(inner)}")
    typed = " ".join(args[:2]) if inner else args[0]
    names = inner or [c.name for c in COMMANDS]
    raise ConfigError(f"no command called {typed!r}{nearest(typed, names)}")


def read_options(command: Command, args: list[str]) -> Any:
    """Return the command's configuration, or None if only its help was asked for."""
    import tyro

    config = getattr(importlib.import_module("sparring.config"), command.config)
    markers: tuple[Any, ...] = (
        tyro.conf.PositionalMetavarFromFieldName,
        tyro.conf.FlagCreatePairsOff,
    )
    options: dict[str, Any] = {}
    if command.name == "train":  # starts from the game's preset and the file it is given
        train = importlib.import_module("sparring.commands.train")
        options["default"] = train.prepare(args)
    else:
        markers += (tyro.conf.UseAppendAction,)
    shown = io.StringIO()
    try:
        with contextlib.redirect_stderr(shown):
            return tyro.cli(
                config, args=args, prog=f"sparring {command.name}", config=markers, **options
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            return None
        moved = importlib.import_module("sparring.training.moved").moved_option(args)
        why = moved or one_line(shown.getvalue())
        raise ConfigError(f"{why}; see: sparring {command.name} --help") from None


def one_line(box: str) -> str:
    """Shorten tyro's error box: its first paragraph, and the option it would suggest."""
    rows = [row.strip()[1:-1] for row in box.splitlines() if row.strip()[:1] in ("│", "|")]
    if not rows:  # a terminal without such characters gets a title, a line and no frame
        rows = box.splitlines()[2:]
    text = [row.strip(" ─-") if set(row) <= set(" ─-") else row for row in rows]
    paragraphs = "\n".join(" ".join(row.split()) for row in text).split("\n\n")
    first = " ".join(paragraphs[0].split()).rstrip(".")
    for paragraph in paragraphs[1:]:
        title, _, options = paragraph.partition("\n")
        if title.startswith("Perhaps you meant") and options:
            return f"{first}; did you mean {options.split()[0]}?"
    return first or "the options could not be read"


def complain(message: str, code: int) -> int:
    """Print one line on stderr and return the exit code."""
    print(f"sparring: {' '.join(message.split())}", file=sys.stderr)
    return code


def show_warning(  # noqa: PLR0917  (the signature is Python's)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings as one line, others as Python does."""
    if issubclass(category, SparringWarning):
        print(f"sparring: warning: {message}", file=sys.stderr)
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        print(text, file=file or sys.stderr, end="")


if __name__ == "__main__":
    sys.exit(main())
