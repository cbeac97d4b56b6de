"""A ladder grows: new players meet all others, and every pairing is written when it is played."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparring.errors import ConfigError
from sparring.league.arena import whole_rounds
from sparring.league.ladder_file import Ladder, LadderPlayer, write_ladder
from sparring.league.ladder_players import GoneError, admit, enter, find_again, own_players
from sparring.league.outcomes import KeptPairing
from sparring.league.players import Player
from sparring.league.round_robin import Progress, RoundRobinSettings, play_pairing
from sparring.store.files import locked


class BusyError(ConfigError):
    """Another process plays for a ladder."""


@dataclass(frozen=True)
class Growth:
    """Pairings that a ladder misses, with their players."""

    ladder: Ladder
    entries: Mapping[str, LadderPlayer]
    players: Mapping[str, Player]
    """Those that have pairings to play."""
    missing: Sequence[tuple[str, str]]
    notes: Sequence[str]


def plan_growth(
    ladder: Ladder, words: Sequence[str] = (), *, threads: int = 1, replaces: bool = False
) -> Growth:
    """Find the players that enter a ladder, and the pairings that it misses.

    words: players that enter, as typed; bots and the champion enter by themselves.
    replaces: see `admit`.
    """
    rules, notes = ladder.rules, []
    entered: dict[str, LadderPlayer] = {}
    players: dict[str, Player] = {}
    for own in own_players(rules):
        if own.name not in ladder.left_out:
            ladder, entry = admit(ladder, own)
            entered[entry.name] = entry
    for word in words:
        typed, player = enter(word, rules, threads)
        ladder, entry = admit(ladder, typed, replaces=replaces)
        if entry.name in ladder.names:
            notes.append(f"{word} is on the ladder as {entry.name}")
        entered[entry.name], players[entry.name] = entry, player
    entries = {one.name: one for one in ladder.players} | entered
    ladder.check_room([*entries])
    for name in dict.fromkeys(name for pair in ladder.missing([*entries]) for name in pair):
        try:
            if name not in players:
                players[name] = find_again(entries[name], rules, threads)
        except GoneError as error:
            del entries[name]
            stays = f"{name} meets nobody new, {error}; --remove {name} takes it off"
            notes.append(stays if name in ladder.names else f"{name} stays out, {error}")
    return Growth(ladder, entries, players, ladder.missing([*entries]), notes)


def grow(growth: Growth, file: Path, settings: RoundRobinSettings, progress: Progress) -> Ladder:
    """Play the missing pairings, and write the ladder after each; return it.

    progress: called with the games of these pairings that are played, and the names of the pair.
    """
    ladder = growth.ladder
    games = whole_rounds(ladder.rules, settings.games)
    if not growth.missing:
        write_ladder(file, ladder)  # whose players may have moved
    for at, (one, two) in enumerate(growth.missing):
        table = [growth.players[one]] + [growth.players[two]] * (ladder.rules.seats - 1)

        def report(played: int, before: int = at * games, pair: str = f"{one} - {two}") -> None:
            progress(before + played, pair)

        number = zlib.crc32(f"{one}\n{two}".encode())  # in any order the same deals
        result, _ = play_pairing(ladder.rules, table, settings, number, report)
        pairing = KeptPairing.of(one, two, result, settings.seed)
        ladder = ladder.with_pairing([growth.entries[one], growth.entries[two]], pairing)
        write_ladder(file, ladder)
    return ladder


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Let no other process write a ladder meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(file.with_name(f".{file.name}.lock")):
            yield
    except BlockingIOError:
        raise BusyError(
            f"another process plays for {file}; wait for its end, or name another with --file"
        ) from None
