"""`sparring ladder`: bots, the champion and runs of a game in one table, kept in a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.commands.shared.opening import announce
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.commands.shared.ratings import (
    doubts,
    draw,
    folder_of,
    print_ratings,
    rating_notes,
    rating_values,
)
from sparring.config.commands import LadderConfig
from sparring.errors import ConfigError, SparringError, printable, suggestion
from sparring.extras import set_threads
from sparring.games.flags import changed_flags, flags_as_options, read_rules
from sparring.games.rules import Rules
from sparring.league.arena import whole_rounds
from sparring.league.ladder_file import (
    FOLDER,
    POLICY,
    Ladder,
    LadderPlayer,
    ladder_files,
    new_ladder,
    read_ladder,
    write_ladder,
)
from sparring.league.ladder_growth import BusyError, alone, grow, plan_growth
from sparring.league.ladder_players import exists, own_players
from sparring.league.outcomes import KeptPairing
from sparring.league.round_robin import RoundRobinResult, RoundRobinSettings
from sparring.machine import check_threads
from sparring.output_files import check_file
from sparring.pygames.registry import is_env
from sparring.store.champions import champion_games, champion_rules
from sparring.store.folders import CHECKPOINTS
from sparring.store.lookup import find_player

GAMES = 2048
"""Of a pairing."""
INTERRUPTED = 130


def run(config: LadderConfig) -> int:
    check_together(config)
    if not config.game:
        return list_ladders(config)
    out = folder_of(config.out)
    rules = game_of(config)
    if config.crown:
        return crown(config, rules)
    file = Path(config.file) if config.file else FOLDER / f"{rules.name}.json"
    rules = open_ladder(file, rules, config).rules
    for word in config.submit:
        find_player(word, rules)
    if config.remove:
        ladder, notes = remove(file, rules, config), list[str]()
    else:
        try:
            ladder, notes = add(file, rules, config)
        except KeyboardInterrupt:
            kept = len(open_ladder(file, rules, config).pairings)
            text = f"{kept:,} pairing{' is' if kept == 1 else 's are'} kept in {file}"
            print(f"\nsparring: interrupted; {text}, the same command goes on", file=sys.stderr)
            return INTERRUPTED
        except BusyError as error:
            ladder, notes = open_ladder(file, rules, config), [str(error)]
            if config.submit or not ladder.players:
                raise
    return report(ladder, notes, file, config, out)


def threads_of(config: LadderConfig) -> int:
    return check_threads(config.threads or os.cpu_count() or 1)


def crown(config: LadderConfig, rules: Rules) -> int:
    find_player(config.crown, rules)
    announce(f"ladder {rules.name}", quiet=config.json)
    from sparring.commands.shared.challenge import run_challenge

    return run_challenge(config, rules, threads_of(config))


def check_together(config: LadderConfig) -> None:
    """Refuse options that have no effect together."""
    named = ("submit", "remove", "crown", "set", "file", "out")
    if not config.game and (given := [name for name in named if getattr(config, name)]):
        raise ConfigError(f"--{given[0]} needs a game: sparring ladder GAME --{given[0]} ...")
    if config.replace and not config.submit:
        raise ConfigError("--replace goes with --submit RUN")
    given = [name for name in named[:3] if getattr(config, name)]
    if config.crown and (more := [name for name in named[3:] if getattr(config, name)]):
        given += more
    if len(given) > 1:
        raise ConfigError(f"--{given[0]} and --{given[1]} do not go together; give one at a time")


def game_of(config: LadderConfig) -> Rules:
    if is_env(config.game):
        raise ConfigError(
            f"{config.game} is a custom environment, which has no ladder; sparring arena rates "
            "players in it"
        )
    rules = read_rules(config.game, config.set)
    if not config.set and rules.name in champion_games():
        rules = champion_rules(rules.name)  # which may not fit other flags
    if rules.seats == 1:
        raise ConfigError(f"{rules.name} has one seat and no opponents; use sparring eval")
    return rules


def open_ladder(file: Path, rules: Rules, config: LadderConfig) -> Ladder:
    """Return the ladder of a file, a new one if there is none; it has to be of this game."""
    try:
        ladder = read_ladder(file)
    except FileNotFoundError:
        return new_ladder(rules)
    if ladder.rules.name != rules.name:
        raise ConfigError(f"{file} is a ladder of {ladder.rules.name}, not {rules.name}")
    if config.set and ladder.rules.config != rules.config:
        flags = " ".join(flags_as_options(changed_flags(ladder.rules))) or "the default flags"
        raise ConfigError(
            f"{file} is a ladder with {flags}; leave --set out, or name another with --file"
        )
    return ladder


def remove(file: Path, rules: Rules, config: LadderConfig) -> Ladder:
    ladder, names = open_ladder(file, rules, config), list(dict.fromkeys(config.remove))
    for name in names:
        if name not in ladder.names:
            raise ConfigError(f"no player {name!r} on {file}{suggestion(name, ladder.names)}")
    with alone(file):
        ladder = open_ladder(file, rules, config).without(names, left_out=True)
        write_ladder(file, ladder)
    return ladder


def add(file: Path, rules: Rules, config: LadderConfig) -> tuple[Ladder, list[str]]:
    """Play what a ladder misses; return it, and what is to be said about its players."""
    ladder = open_ladder(file, rules, config)
    known = {*ladder.left_out, *ladder.players}
    new = [one for one in own_players(rules) if not known & {one, one.name}]
    able = [one.name for one in ladder.players if exists(one, rules)]
    if not (config.submit or new or ladder.missing(able)):
        return ladder, []
    check_file(file, "--file" if config.file else "", parents=True)
    threads = threads_of(config)
    if config.submit or any(one.hash for one in (*ladder.players, *new)):
        announce(f"ladder {rules.name}", quiet=config.json)
        set_threads(threads)
    with alone(file):
        ladder = open_ladder(file, rules, config)  # another process may have played meanwhile
        growth = plan_growth(ladder, config.submit, threads=threads, replaces=config.replace)
        settings = RoundRobinSettings(
            games=max(config.games or GAMES, 2), seed=config.seed, threads=threads
        )
        total = len(growth.missing) * whole_rounds(rules, settings.games)
        with ProgressBar(f"playing {rules.name}", total) as steps:
            ladder = grow(growth, file, settings, steps.reach)
    return ladder, list(growth.notes)


def report(
    ladder: Ladder, notes: Sequence[str], file: Path, config: LadderConfig, out: Path | None
) -> int:
    found = ladder.result(seed=config.seed)
    pictures = draw(found, out) if out and found.pairings else []
    if config.json:
        print_json(described(ladder, found, notes, file, pictures))
        return 0
    origins = {player.name: origin_of(player, ladder.rules) for player in ladder.players}
    if ladder.players:
        print_ratings(found, origins)
    lines = [*rating_notes(found), *doubts(found)] if found.pairings else []
    if ladder.left_out:
        lines.append(f"left out: {', '.join(ladder.left_out)}; --submit NAME takes one in again")
    for line in (*notes, *lines):
        echo(line)
    if pictures:
        print(f"pictures: {', '.join(map(str, pictures))}")
    echo(f"kept in {file}")
    return 0


def origin_of(player: LadderPlayer, rules: Rules) -> str:
    """Return where a player comes from."""
    there = exists(player, rules)
    if player.kind != POLICY:
        return player.kind if there else f"past {player.kind}"
    path = Path(player.path)
    run = path.parent.parent if path.parent.name == CHECKPOINTS else path
    return f"{run}{'' if there else ' (gone)'}"


def described(
    ladder: Ladder,
    found: RoundRobinResult[KeptPairing],
    notes: Sequence[str],
    file: Path,
    pictures: Sequence[Path],
) -> dict[str, Any]:
    players = {player.name: player for player in ladder.players}
    return {
        "game": ladder.rules.name,
        "flags": changed_flags(ladder.rules),
        "seats": ladder.rules.seats,
        "file": str(file),
        "games": found.games,
        "ratings": [
            {
                "player": row.player,
                "kind": players[row.player].kind,
                "path": players[row.player].path or None,
                "hash": players[row.player].hash or None,
                "there": exists(players[row.player], ladder.rules),
                **rating_values(row),
            }
            for row in found.ratings
        ],
        "pairings": [pairing.plain() for pairing in found.pairings],
        "left_out": list(ladder.left_out),
        "notes": list(notes),
        "pictures": [str(path) for path in pictures],
    }


def list_ladders(config: LadderConfig) -> int:
    rows: list[dict[str, Any]] = []
    for file in ladder_files():
        row: dict[str, Any] = {"file": str(file), "trouble": ""}
        try:
            ladder = read_ladder(file)
        except (OSError, SparringError) as error:
            rows.append({**row, "trouble": str(error)})
            continue
        found = ladder.result(seed=config.seed)
        best = found.ratings[0] if found.ratings else None
        row |= {"game": ladder.rules.name, "flags": changed_flags(ladder.rules)}
        row |= {"players": len(ladder.players), "games": found.games}
        rows.append({**row, "first": best and best.player, "elo": best and best.elo})
    if config.json:
        print_json({"ladders": rows})
        return 0
    numbers = ("players", "games", "Elo")
    table = make_table(("ladder", *numbers, "first", "file"), numbers=numbers, least=("games",))
    for row in rows:
        if not row["trouble"]:
            elo, first = (f"{row['elo']:.0f}", row["first"]) if row["first"] else ("-", "-")
            counts = f"{row['players']}", f"{row['games']:,}", elo
            table.add_row(row["game"], *counts, first, row["file"])
    if table.row_count:
        print_table(table)
    for row in rows:
        if row["trouble"]:
            echo(printable(row["trouble"]))
    if not rows:
        echo(f"{FOLDER} holds no ladder; `sparring ladder GAME` begins one")
    return 0
