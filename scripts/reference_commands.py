"""The page of commands: what `sparring COMMAND --help` says, in groups, with links to guides."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from reference_tables import default, flag, table, text, values

from sparring.commands.shared.helping import (
    EXAMPLES,
    SHORT,
    has_default,
    relevant_options,
    short_options,
)
from sparring.commands.shared.table import COMMANDS, Command
from sparring.config import TrainConfig
from sparring.config.options import Option, options_of

HEAD = """# Commands

Every command of `sparring`, with what `sparring COMMAND --help` shows of its options. This page is
written from the same tables as the help (`make docs`); `sparring COMMAND --help-all` and
[Settings](settings.md) have every option of a training.

`sparring --version` prints the version, `sparring help COMMAND` the help of a command. Commands
that report take `--json`. A run is named by its folder, its name, the beginning of its name, or
`latest`; a player is a bot, a run, a checkpoint or a saved policy. With any command, `--trust NAME`
[runs code that a file asks for](trust.md#naming-code).

For completion in bash: `eval "$(sparring completion bash)"` in `~/.bashrc`; in zsh the same with
`zsh` in `~/.zshrc`; for fish write the script to `~/.config/fish/completions/sparring.fish`.

[Exit codes](files.md#exit-codes): 0 done, 2 an invalid word or setting, 3 a failure, 130 or 143
stopped. Some commands answer with a code of their own, which stands below them.
"""
GROUPS = {
    "Train": ("train", "resume", "sweep"),
    "Look at runs": ("runs", "plot", "compare", "league", "serve"),
    "Play": ("play", "demo", "usi", "render", "replay", "games"),
    "Measure strength": ("eval", "arena", "ladder", "zoo", "exploit"),
    "Take an agent along": ("export",),
    "Measure speed": (
        *("profile", "tune", "bench train", "bench scaling"),
        *("bench configs", "bench pool", "bench search"),
    ),
    "Games and environments": ("check", "new-game", "port"),
    "This machine": ("doctor", "completion"),
}
OWN_ENV = "[Your own environment](../start/your-own-env.md)"
ADD_A_GAME = "[Add a game](../inside/add-a-game.md)"
GUIDES = {
    "train": "[Training](../guides/training.md), [every setting](settings.md)",
    "resume": "[Runs](../guides/runs.md)",
    "sweep": "[Sweeps](../guides/sweeps.md)",
    "runs": "[Runs](../guides/runs.md)",
    "plot": "[Runs](../guides/runs.md), [every metric](metrics.md)",
    "compare": "[Runs](../guides/runs.md)",
    "league": "[Opponents and the league](../guides/opponents.md)",
    "serve": "[In a browser](../guides/browser.md)",
    "demo": "[Champions](../guides/champions.md)",
    "zoo": "[Champions](../guides/champions.md)",
    "usi": "[Shogi](../games/shogi.md)",
    "render": "[Recorded games and pictures](../guides/replays.md)",
    "replay": "[Recorded games and pictures](../guides/replays.md)",
    "eval": "[Training](../guides/training.md)",
    "arena": "[Opponents and the league](../guides/opponents.md)",
    "ladder": "[Opponents and the league](../guides/opponents.md)",
    "exploit": "[Opponents and the league](../guides/opponents.md)",
    "export": "[In a browser](../guides/browser.md), [Networks](../guides/networks.md)",
    "profile": "[Speed](../guides/speed.md)",
    "tune": "[Speed](../guides/speed.md)",
    **dict.fromkeys(
        ("bench train", "bench scaling", "bench configs", "bench pool", "bench search"),
        "[Benchmarks](../inside/benchmarks.md)",
    ),
    "check": f"{OWN_ENV}, {ADD_A_GAME}",
    "new-game": f"[Your own game](../start/your-own-game.md), {ADD_A_GAME}",
    "port": OWN_ENV,
    "doctor": "[Install](../start/install.md)",
}
FASTER = (
    "1 with `--fail-slower` if something became slower than in the record, 3 if games are not valid"
)
EXITS = {
    "train": "3 if the run could not be saved or measured.",
    "resume": "3 if the run could not be saved or measured.",
    "sweep": "3 if no trial finished.",
    "replay": "with `--check`, 3 if the game has another result than the file.",
    "ladder": "with `--crown`, 1 if the player is not shown to be stronger.",
    "zoo": "with `--verify`, 1 if a champion is not as strong as stated.",
    "check": "3 if something is wrong.",
    "port": "3 if there is a difference.",
    "doctor": "3 if something that is needed is missing or broken.",
    "bench configs": "1 with `--fail-slower` if something became slower, 3 if one failed.",
    **dict.fromkeys(("bench train", "bench scaling", "bench pool", "bench search"), f"{FASTER}."),
}


def commands_page() -> str:
    """Return the page. Raises if a command has no group."""
    known = {command.name: command for command in COMMANDS}
    missing = set(known) ^ {name for names in GROUPS.values() for name in names}
    if missing:
        raise SystemExit(f"scripts/reference_commands.py: GROUPS and commands differ: {missing}")
    return "\n".join([HEAD, *overview(known), *lines(known)])


def overview(known: dict[str, Command]) -> Iterator[str]:
    rows = []
    for group, names in GROUPS.items():
        listed = ", ".join(f"[`{name}`](#{anchor(name)})" for name in names)
        rows.append((group, listed))
    yield from table(("to", "commands"), rows)
    yield ""


def anchor(name: str) -> str:
    return f"sparring-{name.replace(' ', '-')}"


def lines(known: dict[str, Command]) -> Iterator[str]:
    for group, names in GROUPS.items():
        yield f"## {group}\n"
        for name in names:
            yield from described(known[name])


def described(command: Command) -> Iterator[str]:
    """Yield the passage of a command: what it does, usage, options, examples, exit codes."""
    config, name = command.settings, command.name
    options = options_of(config)
    named = [option for option in options if not option.positional]
    brief = name in SHORT
    training = config() if config is TrainConfig else None
    shown = (
        short_options(relevant_options(named, training), SHORT[name], training) if brief else named
    )
    words = [option for option in options if option.positional]
    yield f"### sparring {name}\n"
    about = " ".join(inspect.cleandoc(config.__doc__ or "").split())
    yield f"{text(about)}{f' Guide: {GUIDES[name]}.' if name in GUIDES else ''}\n"
    usage = [f"[{one.metavar}]" if has_default(one) else one.metavar for one in words]
    more = ["[options]"] if named else []
    yield "```sh"
    yield " ".join(["sparring", name, *usage, *more])
    yield from (f"{typed}  # {why}" for typed, why in EXAMPLES.get(name, ()))
    yield "```\n"
    rows = [row(option, brief=brief) for option in (*words, *shown)]
    if rows:
        yield from table(("option", "takes", "default", ""), rows)
        yield ""
    if brief:
        yield f"`sparring {name} --help-all` lists all {len(options)} options.\n"
    if name in EXITS:
        yield f"Exit code: {EXITS[name]}\n"


def row(option: Option, *, brief: bool) -> tuple[str, ...]:
    about = option.help.partition(". ")[0].rstrip(".") + "." if brief else option.help
    required = option.positional and not has_default(option)
    return flag(option), values(option), "required" if required else default(option), text(about)
