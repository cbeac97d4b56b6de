"""`--help`: the main options, with examples; `--help-all`: all options, in groups."""

from __future__ import annotations

import inspect
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any

from sparring.config import TrainConfig
from sparring.config.options import Option, options_of, shown_default
from sparring.training.planning.algorithms import OF_ALGORITHMS, SECTIONS, sections_of

WIDTH, MIN_WIDTH = 100, 60
"""Width without a terminal, and the smallest width."""
NAME_CELLS = 26
"""Columns of an option's name; a longer name gets a separate line."""
SHORT: dict[str, tuple[str, ...]] = {
    "train": (
        *("minutes", "updates", "decisions", "name", "algo", "set", "opponents", "net.hidden"),
        *("ALGO.lr", "collect.games", "ppo.minibatch", "replay.batch", "threads", "device"),
        *("seed", "init", "config", "json"),
    ),
    "eval": ("against", "games", "game", "set", "sampled", "threads", "seed", "json"),
    "arena": ("game", "games", "set", "threads", "seed", "json"),
    "ladder": (
        "submit",
        "replace",
        "remove",
        "crown",
        "games",
        "file",
        "out",
        "threads",
        "seed",
        "json",
    ),
    "bench train": ("games", "steps", "rounds", "threads", "device", "algo", "save", "json"),
}
"""Options in `--help` of commands with many; ALGO. is the table of the algorithm."""
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "train": (
        ("sparring train skull_king", "five minutes, with the preset of the game"),
        ("sparring train tic_tac_toe --minutes 1 --name first", "a run called runs/first"),
        ("sparring train laser_hockey --algo sac --net.hidden 256 256", "another algorithm"),
        ("sparring train CartPole-v1 --decisions 100000", "a Gymnasium id, or module:factory"),
    ),
    "eval": (
        ("sparring eval latest", "the newest run against the best bot"),
        ("sparring eval latest --against captain,rule_hard --games 2048", "against two bots"),
        ("sparring eval captain --game skull_king", "a bot"),
    ),
    "arena": (("sparring arena latest captain rule_hard --games 2048", "a run and two bots"),),
    "ladder": (
        ("sparring ladder skull_king", "the table; the first time, the bots play for it"),
        ("sparring ladder skull_king --submit latest", "the newest run joins it"),
        ("sparring ladder skull_king --submit latest@64", "the same with a search"),
        ("sparring ladder", "all ladders"),
    ),
    "bench train": (("sparring bench train skull_king --threads 2", "decisions per second"),),
}


def help_text(command: str, config: Any, default: Any = None, *, every: bool = False) -> str:
    """Return the help of a command. default: a configuration whose values are shown."""
    options = options_of(config, default)
    named = [option for option in options if not option.positional]
    relevant = relevant_options(named, default)
    words = [option for option in options if option.positional]
    short = SHORT.get(command, ()) if not every else ()
    usage = " ".join(f"[{w.metavar}]" if has_default(w) else w.metavar for w in words)
    usage = " ".join(filter(None, (command, usage, "[options]" if named else "")))
    lines = [f"usage: sparring {usage}", ""]
    lines += [*wrapped(inspect.cleandoc(config.__doc__ or "").split("\n\n")[0]), ""]
    lines += rows(words, brief=bool(short))
    if short:
        lines += ["", *rows(short_options(relevant, short, default), brief=True)]
    else:
        lines += groups(relevant, config)
    if examples := EXAMPLES.get(command, ()):
        width = max(len(typed) for typed, _ in examples)
        lines += ["", "examples:", *(f"  {typed:{width}}  {why}" for typed, why in examples)]
    lines += ["", *closing(command, len(relevant), short=bool(short), default=default)]
    return "\n".join(lines)


def closing(command: str, count: int, *, short: bool, default: Any) -> Iterator[str]:
    if short:
        yield f"sparring {command} --help-all lists all {count} options, in groups."
    if isinstance(default, TrainConfig):
        others = [f"--algo {name}" for name in SECTIONS if name != default.algo]
        yield f"With {' or '.join(others)} the help shows the settings of that algorithm."


def relevant_options(options: Iterable[Option], default: Any) -> list[Option]:
    """Leave out the options of other algorithms."""
    if not isinstance(default, TrainConfig):
        return list(options)
    others = set(OF_ALGORITHMS) - set(sections_of(default.algo, default.dqn.mode))
    return [option for option in options if option.section not in others]


def short_options(options: Sequence[Option], paths: Sequence[str], default: Any) -> list[Option]:
    """Return the options of the short help, in its order."""
    algo = default.algo if isinstance(default, TrainConfig) else ""
    known = {option.path: option for option in options}
    wanted = [path.replace("ALGO.", f"{algo}.") for path in paths]
    return [known[path] for path in wanted if path in known]


def groups(options: Sequence[Option], config: Any) -> Iterator[str]:
    """Yield all options, by table of settings."""
    tables = {field.name: type(field.default) for field in fields(config)}
    for section in dict.fromkeys(option.section for option in options):
        heading = (inspect.getdoc(tables[section]) or "").partition("\n\n")[0] if section else ""
        yield ""
        if section:
            yield f"{section}: {' '.join(heading.split())}"
        yield from rows([option for option in options if option.section == section], brief=False)


def rows(options: Iterable[Option], *, brief: bool) -> Iterator[str]:
    """Yield every option with its help. brief: only the first sentence, with the default."""
    for option in options:
        flags = option.flags[:1] if brief else option.flags
        name = option.metavar if option.positional else ", ".join(flags)
        if not option.positional and option.metavar:
            name += f" {option.metavar}{' ...' if option.is_list else ''}"
        text = option.help.partition(". ")[0].rstrip(".") if brief else option.help
        text = f"{text} {ending(option, brief=brief)}".strip()
        yield from row(name, text)


def row(name: str, text: str) -> Iterator[str]:
    lines = wrapped(text, NAME_CELLS + 4)
    if len(name) <= NAME_CELLS:
        first, *rest = lines or [""]
        yield f"  {name:{NAME_CELLS}}  {first.lstrip()}".rstrip()
        yield from rest
    else:
        yield f"  {name}"
        yield from lines


def ending(option: Option, *, brief: bool) -> str:
    """Return the range and the default of an option, in parentheses."""
    default = shown_default(option)
    if not has_default(option):
        return "(required)"
    if brief and (option.kind is bool or default in ("", "0")):
        return ""
    if brief or option.kind is bool:
        return f"(default: {default})"
    if option.limit is not None:
        return option.limit(default)
    return f"(default: {default or 'none'})"


def has_default(option: Option) -> bool:
    return option.default is not MISSING


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Wrap a text at blanks, as wide as the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    space = " " * indent
    return textwrap.wrap(
        " ".join(text.split()),
        max(min(width, WIDTH), MIN_WIDTH),
        initial_indent=space,
        subsequent_indent=space,
        break_long_words=False,
        break_on_hyphens=False,
    )
