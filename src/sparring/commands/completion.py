"""`sparring completion`: a script that completes commands, options, games and runs in a shell.

The script holds every word itself, and looks runs up by their folders: no Tab starts Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sparring.commands.shared.table import COMMANDS
from sparring.config.options import Option, options_of
from sparring.config.tools import CompletionConfig
from sparring.games.rules import game_names

RUNS_TAKEN = ("run", "challenger", "policy", "players", "player", "names")
"""Positional arguments that may be a run."""
GAMES_TAKEN = ("game", "target")
"""Positional arguments that may be a game."""
RUN_OPTIONS = ("against", "crown", "init", "submit")
"""Options that may be a run."""
EITHER = ("play", "profile")
"""Commands whose first argument is a game or a run."""


def run(config: CompletionConfig) -> int:
    print({"bash": bash, "zsh": zsh, "fish": fish}[config.shell]())
    return 0


def commands() -> Iterator[tuple[str, list[Option]]]:
    for command in COMMANDS:
        yield command.name, options_of(command.settings)


def first_words() -> list[str]:
    return [*dict.fromkeys(name.split()[0] for name, _ in commands()), "help"]


def second_words(first: str) -> list[str]:
    names = [name.split() for name, _ in commands()]
    return [words[1] for words in names if len(words) > 1 and words[0] == first]


def flags_of(options: list[Option]) -> list[str]:
    return [*(flag for option in options for flag in option.flags), "--help", "--help-all"]


def values_of(option: Option) -> list[str]:
    """Return the words that an option may be, or the games where it takes one."""
    return game_names() if option.path == "game" else list(option.words)


def takes(name: str, options: list[Option]) -> tuple[bool, bool]:
    """Whether the first word of a command may be a game, and whether it may be a run."""
    positional = {option.path for option in options if option.positional}
    either = name in EITHER
    games = either or bool(positional & set(GAMES_TAKEN))
    return games, either or bool(positional & set(RUNS_TAKEN))


def bash() -> str:
    """The script for bash: a list of words for where the cursor is."""
    lines = [
        '# sparring: put this into ~/.bashrc:  eval "$(sparring completion bash)"',
        "_sparring_runs() {",
        "  local file",
        "  for file in runs/*/config.toml; do",
        '    [ -e "$file" ] && file=${file%/config.toml} && printf \'%s\\n\' "${file#runs/}"',
        "  done",
        "  echo latest",
        "}",
        "_sparring() {",
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= command=",
        "  local -i at=1",
        '  [ "${COMP_WORDS[1]}" = help ] && at=2',
        "  command=${COMP_WORDS[at]}",
        '  if [ "$COMP_CWORD" -le "$at" ]; then',
        f"    words={shlex.quote(' '.join(first_words()))}",
        "  else",
        '    case "$command" in',
        *(f'      {first}) command+=" ${{COMP_WORDS[at+1]}}" ;;' for first in two_worded()),
        "    esac",
        '    case "$command $before" in',
        *value_cases(),
        "    esac",
        '    [ -n "$words" ] || case "$command" in',
        *word_cases(),
        "    esac",
        "  fi",
        '  COMPREPLY=( $(compgen -W "$words" -- "$word") )',
        "}",
        "complete -o default -F _sparring sparring",
    ]
    return "\n".join(lines)


def two_worded() -> list[str]:
    return [first for first in first_words() if second_words(first)]


def value_cases() -> Iterator[str]:
    """Yield completions of option values, where the values are a list of words."""
    for name, options in commands():
        for option in options:
            if values := [] if option.positional else values_of(option):
                place = shlex.quote(f"{name} --{option.name}")
                yield f"      {place}) words='{' '.join(values)}' ;;"
            elif option.path in RUN_OPTIONS:
                place = shlex.quote(f"{name} --{option.name}")
                yield f'      {place}) words="$(_sparring_runs)" ;;'


def word_cases() -> Iterator[str]:
    """Yield completions after a command: its options, games and runs."""
    for name, options in commands():
        games, runs = takes(name, options)
        choices = [word for option in options if option.positional for word in option.words]
        words = " ".join([*choices, *(game_names() if games else ()), *flags_of(options)])
        more = " $(_sparring_runs)" if runs else ""
        yield f'      {shlex.quote(name)}) words="{words}{more}" ;;'
    for first in two_worded():  # the second word is still being typed
        yield f"      '{first} '*) words='{' '.join(second_words(first))}' ;;"


def zsh() -> str:
    return "\n".join(
        [
            '# sparring: put this into ~/.zshrc:  eval "$(sparring completion zsh)"',
            "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }",
            "autoload -Uz bashcompinit && bashcompinit",
            bash().partition("\n")[2],
        ]
    )


def fish() -> str:
    lines = [
        "# sparring: sparring completion fish > ~/.config/fish/completions/sparring.fish",
        "function __sparring_runs",
        "    for file in runs/*/config.toml",
        "        basename (dirname $file)",
        "    end",
        "    echo latest",
        "end",
        "complete -c sparring -f",
        f"complete -c sparring -n __fish_use_subcommand -a '{' '.join(first_words())}'",
    ]
    for name, options in commands():
        first, _, second = name.partition(" ")
        when = f"__fish_seen_subcommand_from {first}"
        if second:
            lines.append(f"complete -c sparring -n '{when}' -a {second}")
            when = f"__fish_seen_subcommand_from {second}; and {when}"
        games, runs = takes(name, options)
        begun = f"complete -c sparring -n '{when}'"
        if games:
            lines.append(f"{begun} -a '{' '.join(game_names())}'")
        if runs:
            lines.append(f"{begun} -a '(__sparring_runs)'")
        for option in options:
            if option.positional:
                lines += [f"{begun} -a '{' '.join(option.words)}'"] if option.words else []
                continue
            words = "(__sparring_runs)" if option.path in RUN_OPTIONS else ""
            words = " ".join(values_of(option)) or words
            values = f" -xa '{words}'" if words else ""
            needs = "" if option.kind is bool or values else " -r"
            lines += [f"{begun} -l {flag[2:]}{needs}{values}" for flag in option.flags]
    return "\n".join(lines)
