"""Champions: trained agents that come along, at most one per game. Imports no torch.

zoo/GAME.safetensors holds the weights in 16 bits and the policy's metadata, as a snapshot does;
zoo/GAME.toml its hash, recipe and measured strength, and the recipes of past champions.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules, game_names
from sparring.store.files import read_regular, write_atomic
from sparring.store.folders import SNAPSHOT, is_file
from sparring.store.schema import (
    boolean,
    finite_number,
    integer,
    list_of,
    object_with,
    parse_json,
    short_string,
    string,
    string_matching,
)
from sparring.store.snapshots import POLICY
from sparring.store.tensors import metadata_of

CHAMPION = "champion"
"""Its name as a player; of another game GAME:champion."""
ZOO = Path(__file__).parents[1] / "zoo"
MAX_WEIGHTS, MAX_ENTRY = 5 * 2**20, 2**18
"""Bytes of the two files of a champion."""
MATCH, SCORE = "win share", "score"
"""What a match measures: games won, or what a seat wins per game."""
EXPLOITABILITY, CHALLENGE = "exploitability", "challenge"
"""What else is measured: the gain of exact best responses, the total of CAGE-2's nine settings."""

SHA256 = string_matching("[0-9a-f]{64}", "a SHA-256 in hexadecimal digits")
RECIPE = object_with(
    {"command": string, "machine": short_string, "minutes": finite_number, "commit": short_string},
    {"decisions": integer(), "seed": integer(), "date": short_string, "note": string},
)
MEASUREMENT = object_with(
    {"of": short_string, "value": finite_number},
    {
        "against": short_string,
        "style": short_string,
        "sampled": boolean,
        "games": integer(1),
        "seed": integer(),
        "low": finite_number,
        "high": finite_number,
    },
)
EXPLOITED = object_with(
    {"value": finite_number, "kind": short_string, "decisions": integer()},
    {"low": finite_number, "high": finite_number, "games": integer(1), "minutes": finite_number},
)
ENTRY = object_with(
    {
        "sha256": SHA256,
        "rules_version": integer(),
        "recipe": RECIPE,
        "strength": list_of(MEASUREMENT, 64),
    },
    {
        "plays": short_string,
        "exploited": EXPLOITED,
        "rating": object_with(
            {"elo": finite_number, "low": finite_number, "high": finite_number},
            {"anchor": short_string},
        ),
        "past": list_of(object_with({"sha256": SHA256, "recipe": RECIPE}), 1000),
    },
)


@dataclass(frozen=True)
class Champion:
    """The champion of a game."""

    game: str
    weights: Path
    entry: Mapping[str, Any]
    """What GAME.toml says, see `ENTRY`."""

    @property
    def plays(self) -> str:
        """Style of play where its name has none, such as sampled; "": that of the caller."""
        return str(self.entry.get("plays", ""))

    @property
    def recipe(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.entry["recipe"]
        return found

    @property
    def strength(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.entry["strength"]
        return found


def share_text(value: float) -> str:
    """Return a share in percent; nearly all is not all."""
    return f"{value:.1%}" if value == 1 or value < 0.9995 else f"{math.floor(value * 1e4) / 100}%"


def champion_games(zoo: Path | None = None) -> list[str]:
    """Return the games that have a champion, in the order of the games."""
    zoo = zoo or ZOO
    return [game for game in game_names() if is_file(zoo / f"{game}.toml")]


def champion_of(game: str, zoo: Path | None = None) -> Champion:
    """Return the champion of a game; raises if there is none, or if its weights are damaged."""
    zoo = zoo or ZOO
    version = Rules(game).rules_version  # raises for an unknown game
    if game not in champion_games(zoo):
        known = ", ".join(champion_games(zoo)) or "none"
        raise ConfigError(f"{game} has no champion; games with one: {known}")
    champion = Champion(game, zoo / f"{game}{SNAPSHOT}", read_entry(zoo / f"{game}.toml"))
    try:
        data = read_regular(champion.weights, MAX_WEIGHTS)
    except OSError as error:
        raise SparringError(f"the champion of {game} cannot be read: {error}") from None
    if hashlib.sha256(data).hexdigest() != champion.entry["sha256"]:
        raise SparringError(
            f"{champion.weights} is damaged: its hash differs from the one in {game}.toml; install "
            "sparring anew"
        )
    if version != champion.entry["rules_version"]:
        raise SparringError(
            f"the champion of {game} plays version {champion.entry['rules_version']} of its rules, "
            f"this is version {version}; train another: sparring train {game}"
        )
    return champion


def champion_rules(game: str) -> Rules:
    """Return the game of a champion, with the flags of its training."""
    data = read_regular(champion_of(game).weights, MAX_WEIGHTS)
    meta = parse_json(metadata_of(data)[POLICY])
    return Rules(meta["game"], meta["game_config"])


def read_entry(file: Path) -> dict[str, Any]:
    """Read GAME.toml; raises in one line if it is none."""
    try:
        entry = tomllib.loads(read_regular(file, MAX_ENTRY).decode())
        ENTRY(entry, "")
    except (OSError, ValueError) as error:
        raise SparringError(f"{file} describes no champion: {error}") from None
    return entry


def named_champion(word: str, rules: Rules | None = None) -> str:
    """Return the game whose champion a word names, "" for other words.

    rules: the game, if it is known; without it, the word has to name it.
    """
    game, _, name = word.rpartition(":")
    if name != CHAMPION or (game and game not in game_names()):
        return ""
    if rules and game and game != rules.name:
        raise ConfigError(f"{word} is a player of {game}; the game here is {rules.name}")
    known = rules.name if rules and rules.name in champion_games() else ""
    return game or known


def telling_words(words: Sequence[str]) -> list[str]:
    """Return the players but those called champion alone, whose game the others tell."""
    return [word for word in words if word.partition("@")[0] != CHAMPION] or list(words)


def full_name(word: str, game: str) -> str:
    """Return a player's word with the game of a champion: skull_king:champion@64."""
    name, at, style = word.partition("@")
    return f"{game}:{name}{at}{style}" if name == CHAMPION and game in game_names() else word


def write_champion(
    game: str, weights: bytes, entry: Mapping[str, Any], zoo: Path | None = None
) -> Champion:
    """Put a champion into the zoo; one that is there becomes a past champion.

    weights: a snapshot with numbers of 16 bits, see `pack_champion`.
    entry: what `ENTRY` asks for, without hash and past champions.
    """
    check_size(weights)
    past, zoo = [], zoo or ZOO
    file = zoo / f"{game}.toml"
    sha256 = hashlib.sha256(weights).hexdigest()
    if is_file(file):
        old = read_entry(file)
        past = list(old.get("past", []))
        if old["sha256"] != sha256:
            past.append({"sha256": old["sha256"], "recipe": old["recipe"]})
    whole = {"sha256": sha256, **entry, **({"past": past} if past else {})}
    ENTRY(whole, "")
    text = f"# The champion of {game}, measured again by: sparring zoo {game} --verify\n\n"
    zoo.mkdir(parents=True, exist_ok=True)
    write_atomic(zoo / f"{game}{SNAPSHOT}", weights)
    write_atomic(file, (text + tomlkit.dumps(whole)).encode())
    return Champion(game, zoo / f"{game}{SNAPSHOT}", whole)


def check_size(weights: bytes) -> None:
    """Refuse weights that are too large to come along."""
    if len(weights) > MAX_WEIGHTS:
        raise ConfigError(
            f"a champion has at most {MAX_WEIGHTS / 2**20:.0f} MiB of weights in 16 bits, this one "
            f"{len(weights) / 2**20:.1f}; train a smaller network"
        )


def today() -> str:
    return date.today().isoformat()
