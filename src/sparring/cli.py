"""The command line: finds a command, reads its options and runs it."""

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

SIMILAR = {"±": "+-", "…": "...", "–": "-", "—": "-", "×": "x", "│": "|", "┃": "|", "²": "2"}
SIMILAR |= dict.fromkeys("─━╭╮╰╯┌┐└┘├┤┬┴┼╞╡═╸╺", "-") | dict.fromkeys("█▇▆▅▄▃▂▁", "#")
"""What is printed where the output does not know a character."""
OK, USAGE, FAILED, INTERRUPTED = 0, 2, 3, 130
HELP_ALL = "--help-all"
HELP = ("-h", "--help", HELP_ALL)
TRUST_HELP = "--trust NAME, with any command: run this module:factory, which a file asks for."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    open_closed()
    print_anything()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return dispatch(trusted.allow_typed(args))
    except ConfigError as wrong:
        return complain(str(wrong), USAGE)
    except SparringError as wrong:
        return complain(str(wrong), FAILED)
    except MemoryError:
        return complain("memory ran out; play fewer games at once, or learn less", FAILED)
    except KeyboardInterrupt as wrong:
        print(file=sys.stderr)
        return complain("interrupted", getattr(wrong, "code", INTERRUPTED))
    except OSError as wrong:
        return give_up_output(wrong)


def give_up_output(wrong: OSError) -> int:
    """End after an error of the system: a full disk behind `>`, a reader that has seen enough."""
    with contextlib.suppress(OSError, ValueError):  # or Python flushes into it once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(wrong, BrokenPipeError):  # `| head`
        return OK
    place = f"{wrong.filename}: " if wrong.filename else ""
    return complain(f"{place}{wrong.strerror or wrong}", FAILED)


def open_closed() -> None:
    """Open what whoever started us has closed of stdin, stdout and stderr, on nothing.

    Otherwise the next files that are opened get their numbers, and what is printed goes into these.
    """
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115


def print_anything() -> None:
    """Let output that knows few characters get similar ones for the rest, instead of an error."""
    codecs.register_error("sparring", similar)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="sparring")


def similar(wrong: UnicodeError) -> tuple[str, int]:
    """Say what to write for characters that an encoding does not have."""
    assert isinstance(wrong, UnicodeEncodeError)
    missing = wrong.object[wrong.start : wrong.end]
    return "".join(SIMILAR.get(character, "?") for character in missing), wrong.end


UNEVALUATED = {"--dry-run", "--eval.off"}
"""Words of a training that nothing is evaluated beside."""


def dispatch(args: list[str]) -> int:
    """Find the command, read its options and run it."""
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"]
    if not args or args[0] in HELP:
        print(overview())
        return OK
    if len(args) == 2 and args[1] in HELP and (inner := second_words(args[0])):
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
    config = read_options(command, rest)
    opening = importlib.import_module("sparring.commands.shared.opening")
    config = opening.open_command(command.name, config)
    with loading_early(command, rest):
        return int(importlib.import_module(f"sparring.commands.{command.module}").run(config))


def loading_early(command: Command, args: list[str]) -> contextlib.AbstractContextManager[None]:
    """Let the process that evaluates a training load while this one does, where there will be one.

    Loading takes both of them seconds; one after the other, the first strength comes late.
    """
    if command.module != "train" or UNEVALUATED & set(args):
        return contextlib.nullcontext()
    found: contextlib.AbstractContextManager[None]
    found = importlib.import_module("sparring.training.evaluate").loading_early()
    return found


def overview(commands: Sequence[Command] = COMMANDS) -> str:
    """Return what there is to do, one line per command."""
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


def second_words(first: str) -> list[Command]:
    """Return the commands of two words that begin with this one."""
    return [command for command in COMMANDS if command.name.startswith(first + " ")]


def find(args: list[str]) -> tuple[Command, list[str]]:
    """Return the command that the first words name, and the words after them."""
    for command in COMMANDS:
        words = command.name.split()
        if args[: len(words)] == words:
            return command, args[len(words) :]
    inner = [command.name for command in second_words(args[0])]
    if inner and len(args) == 1:
        raise ConfigError(f"{args[0]!r} needs a second word: {', '.join(inner)}")
    typed = " ".join(args[:2]) if inner else args[0]
    names = inner or [c.name for c in COMMANDS]
    raise ConfigError(f"no command called {typed!r}{suggestion(typed, names)}")


def explain(command: Command, args: list[str]) -> str:
    """Return the help of a command; that of train has the values of the game that is named."""
    from sparring.commands.shared.helping import help_text

    config, words = words_of(command, [word for word in args if word not in HELP])
    default = None
    if command.name == "train":
        opening = importlib.import_module("sparring.commands.shared.opening")
        default = opening.shown_training(words)
    text = help_text(command.name, config, default, every=HELP_ALL in args)
    return f"{text}\n{TRUST_HELP}"


def words_of(command: Command, args: list[str]) -> tuple[Any, list[str]]:
    """Return the kind of a command's configuration, and its words as the parser takes them."""
    from sparring.config.arguments import game_first, split_lists

    config = command.settings
    if command.name == "train":
        args = ["--league.preset" if word == "--league" else word for word in args]
    return config, split_lists(game_first(args, config), config)


def read_options(command: Command, args: list[str]) -> Any:
    """Return the command's configuration."""
    config, words = words_of(command, args)
    if command.name != "train":
        return parse(command, config, words)
    opening = importlib.import_module("sparring.commands.shared.opening")
    return opening.read_training(words, partial(parse, command, config))


def parse(command: Command, config: Any, args: list[str], default: Any = None) -> Any:
    """Read the options of a command over a configuration, if it does not start from the usual."""
    import tyro

    from sparring.commands.shared.opening import check_options
    from sparring.config.arguments import invalid_value
    from sparring.config.ranges import NUMBERS

    check_options(command.name, config, args)

    markers: tuple[Any, ...] = (tyro.conf.PositionalMetavarFromFieldName,)
    if default is None:
        markers += (tyro.conf.UseAppendAction, tyro.conf.FlagCreatePairsOff)
    over = {} if default is None else {"default": default}
    shown = io.StringIO()
    try:
        with contextlib.redirect_stderr(shown):
            return tyro.cli(
                config,
                args=args,
                prog=f"sparring {command.name}",
                config=markers,
                registry=NUMBERS,
                **over,
            )
    except SystemExit as stop:
        refused = refusal_behind(stop)
        if refused:
            raise ConfigError(str(refused)) from None
        why = invalid_value(args, config) or one_line(shown.getvalue())
        raise ConfigError(f"{why}; see: sparring {command.name} --help") from None


def refusal_behind(stop: BaseException | None) -> ConfigError | None:
    """Return what a configuration said about its values, which tyro has put into a box."""
    while stop:
        if isinstance(stop, ConfigError):
            return stop
        stop = stop.__context__
    return None


def one_line(box: str) -> str:
    """Shorten tyro's error box: its first paragraph, and the option it would suggest."""
    rows = [row.strip()[1:-1] for row in box.splitlines() if row.strip()[:1] in ("│", "|")]
    if not rows:  # a terminal without such characters gets a title, a line and no frame
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
        print(f"sparring: warning: {printable(str(message))}", file=sys.stderr)
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        print(text, file=file or sys.stderr, end="")


if __name__ == "__main__":
    sys.exit(main())
