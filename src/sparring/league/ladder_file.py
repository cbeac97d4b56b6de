"""The ladder of a game: a round robin that is kept in a file and grows player by player.

The file has the game with its rules, the players, and what every pairing came to. Reading one runs
no code and opens nothing else; files of another version of the rules are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sparring.config.ranges import MAX_SEED
from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.league.outcomes import KeptPairing
from sparring.league.round_robin import RoundRobinResult, pairs_of, rate_pairings
from sparring.output_files import writing
from sparring.proof.validity import signature
from sparring.store.champions import CHAMPION
from sparring.store.files import write_atomic
from sparring.store.folders import RUNS
from sparring.store.schema import (
    any_value,
    integer,
    list_of,
    mapping_of,
    object_with,
    short_string,
    short_value,
    string_matching,
)
from sparring.store.text_files import read_json

FOLDER = RUNS / "ladders"
"""Folder of the ladders of all games."""
VERSION = 1
"""Of the file's format."""
MAX_PLAYERS = 64
"""The time of intervals grows with the cube."""
MAX_PAIRINGS = MAX_PLAYERS * (MAX_PLAYERS - 1)
MAX_BYTES = 64 * 2**20
MAX_DEALS = 10**9
"""With one outcome."""

BOT, POLICY = "bot", "policy"
HASH = string_matching(r"[0-9a-f]{64}", "a hash of 64 digits")


def name(value: Any, where: str) -> None:
    """Accept names that cannot steer a terminal."""
    short_string(value, where)
    if not value.isprintable() or not value:
        raise ValueError(f"{where} is {value!r}, not a name of printable letters")


PLAYER = object_with(
    {
        "name": name,
        "kind": string_matching(f"{BOT}|{POLICY}|{CHAMPION}", "bot, policy or champion"),
    },
    {"path": name, "style": name, "hash": HASH},
    closed=True,
)
PAIRING = object_with(
    {
        "one": name,
        "two": name,
        "seed": integer(0, MAX_SEED),
        "distinct_deals": integer(1, MAX_DEALS),
        "deals": list_of(any_value, 10**6),
    },
    closed=True,
)
OUTCOME = list_of(integer(0, 10**6), 10**3)
COUNT = integer(1, MAX_DEALS)
VERSIONED = object_with({"version": integer(1)})
LADDER = object_with(
    {
        "game": short_string,
        "rules_version": integer(),
        "signature": short_string,
        "game_config": mapping_of(short_value, short_string),
        "left_out": list_of(name, MAX_PLAYERS),
        "players": list_of(PLAYER, MAX_PLAYERS),
        "pairings": list_of(PAIRING, MAX_PAIRINGS),
    }
)


class LadderError(SparringError):
    """The file of a ladder is damaged, or of other rules."""


@dataclass(frozen=True)
class LadderPlayer:
    """A player of a ladder, by what it takes to find it again."""

    name: str
    kind: str = BOT
    path: str = ""
    """Of a policy: the folder or file of its weights."""
    style: str = ""
    """How a policy plays: @greedy, @64."""
    hash: str = ""
    """Of the weights; "" for a bot."""


@dataclass(frozen=True)
class Ladder:
    """Players, and the pairings that they have played."""

    rules: Rules
    signature: str
    """Of the games: it changes with the rules, also without a new version."""
    players: tuple[LadderPlayer, ...] = ()
    pairings: tuple[KeptPairing, ...] = ()
    left_out: tuple[str, ...] = ()
    """Players that were removed and are not taken in again by themselves."""

    @property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    def result(self, *, seed: int = 0) -> RoundRobinResult[KeptPairing]:
        return rate_pairings(self.rules, self.names, self.pairings, seed=seed)

    def check_room(self, names: Sequence[str]) -> None:
        """Refuse more players than a ladder holds."""
        if len(names) > MAX_PLAYERS:
            raise ConfigError(
                f"the ladder has {len(self.players)} players, at most {MAX_PLAYERS} fit; take "
                "some off with --remove NAME, or begin another with --file"
            )

    def missing(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the pairs of players that have not met."""
        met = {(pairing.one, pairing.two) for pairing in self.pairings}
        met |= {(two, one) for one, two in met} if self.rules.seats == 2 else set()
        return [pair for pair in pairs_of(self.rules, names) if pair not in met]

    def with_pairing(self, players: Sequence[LadderPlayer], pairing: KeptPairing) -> Ladder:
        """Return the ladder with a pairing more, and its players if they are new."""
        new = [player for player in players if player.name not in self.names]
        left_out = tuple(one for one in self.left_out if one not in (pairing.one, pairing.two))
        return replace(
            self,
            players=(*self.players, *new),
            pairings=(*self.pairings, pairing),
            left_out=left_out,
        )

    def without(self, names: Sequence[str], *, left_out: bool = False) -> Ladder:
        """Return the ladder without players. left_out: they do not come back by themselves."""
        gone = set(names)
        pairings = [p for p in self.pairings if not gone & {p.one, p.two}]
        own = {one.name for one in self.players if one.kind == BOT or one.name == CHAMPION}
        stay_out = [one for one in names if left_out and one in own]
        return replace(
            self,
            players=tuple(player for player in self.players if player.name not in gone),
            pairings=tuple(pairings),
            left_out=(*self.left_out, *stay_out),
        )

    def renamed(self, old: str, new: str) -> Ladder:
        def name(one: str) -> str:
            return new if one == old else one

        players = [replace(player, name=name(player.name)) for player in self.players]
        pairings = [replace(p, one=name(p.one), two=name(p.two)) for p in self.pairings]
        return replace(self, players=tuple(players), pairings=tuple(pairings))


def new_ladder(rules: Rules) -> Ladder:
    return Ladder(rules, signature(rules, 1, 1))


def ladder_files(folder: Path = FOLDER) -> list[Path]:
    return sorted(folder.glob("*.json"))


def read_ladder(file: Path) -> Ladder:
    """Read a ladder; raises LadderError with what to do, FileNotFoundError if there is none."""
    try:
        saved = read_json(file, MAX_BYTES)
        VERSIONED(saved, "")
        check_version(file, saved["version"])
        LADDER(saved, "")
        new = new_ladder(Rules(saved["game"], saved["game_config"]))
        check_rules(file, saved, new)
        ladder = replace(
            new,
            players=tuple(LadderPlayer(**player) for player in saved["players"]),
            pairings=tuple(read_pairings(new.rules, saved["pairings"])),
            left_out=tuple(saved["left_out"]),
        )
        check_names(ladder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise LadderError(
            f"{file} is no ladder that can be read: {why}; move it away to begin anew, or name "
            "another with --file"
        ) from error
    return ladder


def check_version(file: Path, version: int) -> None:
    if version > VERSION:
        raise LadderError(
            f"{file} was written by a later version of sparring (format {version}, this reads "
            f"{VERSION}); use that version, or name another file with --file"
        )


def check_rules(file: Path, saved: Mapping[str, Any], now: Ladder) -> None:
    """Refuse a ladder that was played under other rules than today's."""
    rules, before = now.rules, saved["rules_version"]
    if (before, saved["signature"]) == (rules.rules_version, now.signature):
        return
    versions = f"version {before}, this is {rules.rules_version}"
    if before == rules.rules_version:
        versions = f"also version {before}, but games come out differently"
    raise LadderError(
        f"{file} was played under other rules of {rules.name} ({versions}), so its results do "
        f"not count; move it away and play anew: sparring ladder {rules.name}"
    )


def read_pairings(rules: Rules, saved: Sequence[Mapping[str, Any]]) -> Iterator[KeptPairing]:
    for at, one in enumerate(saved):
        outcomes = []
        for number, deal in enumerate(one["deals"]):
            where = f"pairings[{at}].deals[{number}]"
            if not isinstance(deal, list) or len(deal) != 2:
                raise ValueError(f"{where} is not the games of a deal and a count")
            OUTCOME(deal[0], where)
            COUNT(deal[1], where)
            outcomes.append((tuple(deal[0]), deal[1]))
        facts = rules.seats, one["distinct_deals"], tuple(outcomes), one["seed"]
        pairing = KeptPairing(one["one"], one["two"], *facts)
        try:
            pairing.check()
        except ValueError as error:
            raise ValueError(f"pairings[{at}]: {error}") from None
        yield pairing


def check_names(ladder: Ladder) -> None:
    """Raise ValueError unless every player and pairing is there once, with its players."""
    names = ladder.names
    if len(set(names)) < len(names):
        raise ValueError("a player is there twice")
    if unknown := [one.name for one in ladder.players if one.kind != BOT and not one.hash]:
        raise ValueError(f"{unknown[0]} has no hash")
    pairs = [(pairing.one, pairing.two) for pairing in ladder.pairings]
    known = pairs_of(ladder.rules, names)
    known += [(two, one) for one, two in known]
    if len({frozenset(p) if ladder.rules.seats == 2 else p for p in pairs}) < len(pairs):
        raise ValueError("a pairing is there twice")
    if wrong := set(pairs) - set(known):
        raise ValueError(f"{' - '.join(min(wrong))} is no pairing of its players")


def write_ladder(file: Path, ladder: Ladder) -> None:
    """Write a ladder atomically, with a line for every player and pairing."""
    rules = ladder.rules
    facts = {
        "version": VERSION,
        "game": rules.name,
        "rules_version": rules.rules_version,
        "signature": ladder.signature,
        "game_config": rules.config,
        "left_out": ladder.left_out,
    }
    players = [{k: v for k, v in asdict(player).items() if v} for player in ladder.players]
    pairings = [
        {
            **{"one": one.one, "two": one.two, "seed": one.seed},
            **{"distinct_deals": one.distinct_deals, "deals": one.outcomes},
        }
        for one in ladder.pairings
    ]
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    for key, rows in (("players", players), ("pairings", pairings)):
        lines = ",\n".join(f"  {json.dumps(row, separators=(',', ':'))}" for row in rows)
        parts.append(f' "{key}": [\n{lines}\n ]')
    with writing(file, "--file"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, ("{\n" + ",\n".join(parts) + "\n}\n").encode())
