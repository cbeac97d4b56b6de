"""What `--teach` names: files with games, folders and patterns of them, and bots."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparring.errors import ConfigError, nearest
from sparring.games.lessons import file_kinds
from sparring.games.rules import Rules

MAGIC = "*?["


@dataclass(frozen=True)
class Sources:
    """Where games come from."""

    files: tuple[Path, ...]
    bots: tuple[str, ...]
    """Each plays in all seats of a share of the games."""


def read_sources(rules: Rules, words: Sequence[str]) -> Sources:
    """Find what the words of --teach mean; what is nothing is refused."""
    files: dict[Path, None] = {}
    bots: dict[str, None] = {}
    for word in words:
        if bot := rules.bot_called(word):
            bots[str(rules.bots.called(bot))] = None
        else:
            files |= dict.fromkeys(files_called(rules, word))
    return Sources(tuple(files), tuple(bots))


def files_called(rules: Rules, word: str) -> list[Path]:
    """Return the files that a word means: one, those of a folder and below it, or of a pattern."""
    path, kinds = Path(word).expanduser(), file_kinds(rules)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [one for one in path.rglob("*") if one.suffix.lower() in kinds and one.is_file()]
    elif any(sign in word for sign in MAGIC):
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207  (it may be absolute)
        found = [one for one in map(Path, names) if one.suffix.lower() in kinds and one.is_file()]
    else:
        raise ConfigError(
            f"teach: {word!r} is neither a bot of {rules.name} nor a file or folder"
            f"{nearest(word, rules.bots)}"
        )
    if not found:
        raise ConfigError(f"teach: {word} has no files that end in {', '.join(kinds)}")
    return sorted(found)


def lasting(rules: Rules, word: str) -> str:
    """The same word with whole paths, for whoever reads it from another folder."""
    return word if rules.bot_called(word) else str(Path(word).expanduser().absolute())
