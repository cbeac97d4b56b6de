"""The command line: finds the command, reads its options, and runs it."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TextIO

from sparring import trusted
from sparring.commands.shared.table import COMMANDS, Command
from sparring.errors import ConfigError, SparringError, SparringWarning, printable, suggestion
from sparring.extras import has_torch, missing_package, needs_package

SIMILAR = {"±": "+-", "…": "...", "–": "-", "—": "-", "×": "x", "│": "|", "┃": "|", "²": "2"}
SIMILAR |= dict.fromkeys("─━╭╮╰╯┌┐└┘├┤┬┴┼╞╡═╸╺", "-") | dict.fromkeys("█▇▆▅▄▃▂▁", "#")
"""Replacements for characters that the output's encoding lacks."""
OK, USAGE, FAILED, INTERRUPTED = 0, 2, 3, 130
HELP_ALL = "--help-all"
HELP = ("-h", "--help", HELP_ALL)
TRUST_HELP = "--trust NAME, with any command: run this module:factory, which a file asks for."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    open_standard_streams()
    replace_unknown_characters()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return dispatch(trusted.allow_typed(args))
    except ConfigError as wrong:
        return complain(str(wrong), USAGE)
    except SparringError as wrong:
        return complain(str(wrong), FAILED)
    except MemoryError:
        return complain("out of memory; play fewer games at once, or use a smaller net", FAILED)
    except KeyboardInterrupt as wrong:
        print(file=sys.stderr)
        return complain("interrupted", getattr(wrong, "code", INTERRUPTED))
    except OSError as wrong:
        return end_after_os_error(wrong)


def end_after_os_error(wrong: OSError) -> int:
    """End after an error of the system, such as a full disk behind `>` or a closed pipe."""
    with contextlib.suppress(OSError, ValueError):  # otherwise Python flushes into it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(wrong, BrokenPipeError):  # `| head`
        return OK
    file = f"{wrong.filename}: " if wrong.filename else ""
    return complain(f"{file}{wrong.strerror or wrong}", FAILED)


def open_standard_streams() -> None:
    """Open stdin, stdout and stderr on /dev/null where the parent process has closed them.

    Otherwise the next files that are opened get their numbers, and output goes into these.
    """
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115


def replace_unknown_characters() -> None:
    """Print similar characters where the output's encoding lacks some, instead of an error."""
    codecs.register_error("sparring", similar_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="sparring")


def similar_characters(wrong: UnicodeError) -> tuple[str, int]:
    """Handler of encoding errors: returns replacements, and where to continue."""
    assert isinstance(wrong, UnicodeEncodeError)
    missing = wrong.object[wrong.start : wrong.end]
    return "".join(SIMILAR.get(character, "?") for character in missing), wrong.end


LEARNING = (
    *("train", "resume", "exploit", "profile", "tune", "sweep"),
    *("bench train", "bench scaling", "bench configs", "bench search"),
)
"""Commands that need torch whatever they are given."""
UNEVALUATED = {"--dry-run", "--eval.off"}
"""Options of a training without evaluation."""


def dispatch(args: list[str]) -> int:
    """Find the command, read its options and run it."""
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"]
    if not args or args[0] in HELP:
        print(overview())
        return OK
    if len(args) == 2 and args[1] in HELP and (inner := subcommands(args[0])):
        print(overview(inner))
        return OK
    if args[0] == "--version":
        from sparring import __version__

        print(f"sparring {__version__}")
        return OK
    command, rest = find(args)
    if set(rest) & set(HELP):
        print(explain(command, rest))
        return OK
    if command.name in ("train", "resume") and works_for_another():
        return int(importlib.import_module("sparring.cluster.replicas.torchrun").serve())
    if command.name in LEARNING and not has_torch():
        raise ConfigError(needs_package(f"sparring {command.name}", "torch"))
    config = read_options(command, rest)
    opening = importlib.import_module("sparring.commands.shared.opening")
    config = opening.open_command(command.name, config)
    with loading_early(command, rest):
        return run_command(command, config)


def run_command(command: Command, config: Any) -> int:
    """Run a command; raise with what to install if it needs a package that is missing."""
    try:
        return int(importlib.import_module(f"sparring.commands.{command.module}").run(config))
    except ModuleNotFoundError as missing:
        raise missing_package(missing, f"sparring {command.name}") from None


def works_for_another() -> bool:
    """Whether torchrun has started this process as another than the first."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


def loading_early(command: Command, args: list[str]) -> contextlib.AbstractContextManager[None]:
    """Start loading the evaluation process while this one loads, if the command will need it.

    Loading takes seconds in both; one after the other, the first evaluation would come late.
    """
    if command.module != "train" or UNEVALUATED & set(args):
        return contextlib.nullcontext()
    loading: contextlib.AbstractContextManager[None]
    loading = importlib.import_module("sparring.training.evaluate").loading_early()
    return loading


def overview(commands: Sequence[Command] = COMMANDS) -> str:
    """Return the list of commands, one line each."""
    width = max(len(command.name) for command in commands)
    lines = [f"  {command.name:{width}}  {command.help}" for command in commands]
    return "\n".join(
        [
            "usage: sparring COMMAND [options]",
            "",
            *lines,
            "",
            "sparring help COMMAND explains it, COMMAND --help-all with every option;",
            "sparring --version prints the version.",
            TRUST_HELP,
        ]
    )


def subcommands(first: str) -> list[Command]:
    """Return the commands of two words that begin with this word."""
    return [command for command in COMMANDS if command.name.startswith(first + " ")]


def find(args: list[str]) -> tuple[Command, list[str]]:
    """Return the command that the arguments begin with, and the other arguments."""
    for command in COMMANDS:
        words = command.name.split()
        if args[: len(words)] == words:
            return command, args[len(words) :]
    inner = [command.name for command in subcommands(args[0])]
    if inner and len(args) == 1:
        raise ConfigError(f"{args[0]!r} needs a second word: {', '.join(inner)}")
    typed = " ".join(args[:2]) if inner else args[0]
    names = inner or [c.name for c in COMMANDS]
    raise ConfigError(f"no command called {typed!r}{suggestion(typed, names)}")


def explain(command: Command, args: list[str]) -> str:
    """Return the help of a command; that of train shows the defaults of the given game."""
    from sparring.commands.shared.helping import help_text

    config, words = words_of(command, [word for word in args if word not in HELP])
    default = None
    if command.name == "train":
        opening = importlib.import_module("sparring.commands.shared.opening")
        default = opening.shown_training(words)
    text = help_text(command.name, config, default, every=HELP_ALL in args)
    return f"{text}\n{TRUST_HELP}"


def words_of(command: Command, args: list[str]) -> tuple[Any, list[str]]:
    """Return the config class of a command, and its arguments as the parser takes them."""
    from sparring.config.arguments import game_first, split_lists

    config = command.settings
    if command.name == "train":
        args = ["--league.preset" if word == "--league" else word for word in args]
    return config, split_lists(game_first(args, config), config)


def read_options(command: Command, args: list[str]) -> Any:
    """Return the configuration of a command."""
    config, words = words_of(command, args)
    if command.name != "train":
        return parse(command, config, words)
    opening = importlib.import_module("sparring.commands.shared.opening")
    return opening.read_training(words, partial(parse, command, config))


def parse(command: Command, config: Any, args: list[str], default: Any = None) -> Any:
    """Read the options of a command into its configuration, over `default` if there is one."""
    import tyro

    from sparring.commands.shared.opening import check_options
    from sparring.config.arguments import comma_error, invalid_value
    from sparring.config.ranges import NUMBERS

    check_options(command.name, config, args)

    markers: tuple[Any, ...] = (tyro.conf.PositionalMetavarFromFieldName,)
    if default is None:
        markers += (tyro.conf.UseAppendAction, tyro.conf.FlagCreatePairsOff)
    over = {} if default is None else {"default": default}
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return tyro.cli(
                config,
                args=args,
                prog=f"sparring {command.name}",
                config=markers,
                registry=NUMBERS,
                **over,
            )
    except SystemExit as stop:
        refused = find_config_error(stop)
        if refused:
            raise ConfigError(str(refused)) from None
        said = one_line(printed.getvalue())
        why = invalid_value(args, config) or comma_error(said, args, config) or said
        raise ConfigError(f"{why}; see: sparring {command.name} --help") from None


def find_config_error(stop: BaseException | None) -> ConfigError | None:
    """Return the error that a configuration raised, which tyro has turned into an exit."""
    while stop:
        if isinstance(stop, ConfigError):
            return stop
        stop = stop.__context__
    return None


def one_line(box: str) -> str:
    """Shorten tyro's error box to its first paragraph and the option it suggests."""
    rows = [row.strip()[1:-1] for row in box.splitlines() if row.strip()[:1] in ("│", "|")]
    if not rows:  # a terminal without box characters gets a title, a line and no frame
        rows = box.splitlines()[2:]
    text = [row.strip(" ─-") if set(row) <= set(" ─-") else row for row in rows]
    paragraphs = "\n".join(" ".join(row.split()) for row in text).split("\n\n")
    first = " ".join(paragraphs[0].split()).rstrip(".").removeprefix("Error parsing ")
    for paragraph in paragraphs[1:]:
        title, _, options = paragraph.partition("\n")
        if title.startswith("Perhaps you meant") and options:
            return f"{first}; did you mean {options.split()[0]}?"
    return first or "the options could not be read"


def complain(message: str, code: int) -> int:
    """Print one line on stderr and return the exit code."""
    print(f"sparring: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


def show_warning(  # noqa: PLR0917  (Python's signature)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print sparring's warnings as one line, others as Python does."""
    if issubclass(category, SparringWarning):
        print(f"sparring: warning: {printable(str(message))}", file=sys.stderr)
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        print(text, file=file or sys.stderr, end="")


if __name__ == "__main__":
    sys.exit(main())
