"""`sparring arena`: a round robin between players, with Elo ratings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.commands.shared.elsewhere import check_elsewhere, pairing_runner
from sparring.commands.shared.players import loaded_from, on_device, who_plays, with_search
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.commands.shared.ratings import (
    doubts,
    draw,
    folder_of,
    named,
    print_matrix,
    print_ratings,
    rating_notes,
    rating_values,
)
from sparring.commands.shared.results import kept_games
from sparring.config.commands import ArenaConfig
from sparring.errors import ConfigError
from sparring.extras import set_threads
from sparring.games.flags import changed_flags
from sparring.games.rules import Rules
from sparring.league.arena import check_plies, whole_rounds
from sparring.league.intervals import Sprt
from sparring.league.players import Player, name_of
from sparring.league.round_robin import (
    Pairing,
    RoundRobinResult,
    RoundRobinSettings,
    check_players,
    pairs_of,
    play_round_robin,
)
from sparring.machine import check_threads
from sparring.nets.policy import Policy


def run(config: ArenaConfig) -> int:
    out = folder_of(config.out)
    games_kept = kept_games(config.save_games, config.save_max)
    check_elsewhere(config.cluster, config.device, config.save_games)
    threads = check_threads(config.threads or os.cpu_count() or 1)
    set_threads(threads)
    if not config.players:
        raise ConfigError("an arena needs at least two players; name runs or bots")
    players, rules = who_plays(config.players, config.game, config.set, threads)
    players = with_search(players, config.search)
    on_device(players, config.device)
    check_policies(players)
    check_players(rules, players)
    settings = settings_of(config, rules, threads)
    if games_kept:
        settings = replace(settings, make_recorder=games_kept.match)
    anchors = read_anchors(config.anchor)
    total = len(pairs_of(rules, [name_of(p) for p in players])) * whole_rounds(rules, config.games)
    bar = ProgressBar(f"playing {rules.name}", total)
    runner = pairing_runner(config.cluster, rules, settings, threads=config.threads)
    with bar as steps, runner as elsewhere:
        found = play_round_robin(
            rules, players, settings, anchors=anchors, progress=steps.reach, runner=elsewhere
        )
    pictures = draw(found, out) if out else []
    files = games_kept.write() if games_kept else []
    if config.json:
        saved = {"saved": [str(file) for file in files]} if games_kept else {}
        print_json(described(config, found, players, pictures) | saved)
        return 0
    print_ratings(found)
    if len(found.names) > 2:
        print_matrix(found)
    if len(found.names) == 2 or config.sprt:
        print_pairings(found, decided=config.sprt)
    for line in notes(config, found):
        echo(line)
    if pictures:
        print(f"pictures: {', '.join(map(str, pictures))}")
    if games_kept:
        echo(games_kept.summary(files))
    return 0


def check_policies(players: Sequence[Player]) -> None:
    """Refuse one policy under two names, such as `latest` and its run."""
    known: dict[str, Any] = {}
    for player in players:
        origin = loaded_from(player)
        if origin is None or isinstance(player, str):
            continue
        other = known.setdefault(origin, player)
        weights = player.net.arrays(), other.net.arrays()
        same = all(np.array_equal(weights[0][key], weights[1][key]) for key in weights[0])
        if other.name != player.name and style_of(other) == style_of(player) and same:
            raise ConfigError(
                f"{other.name} and {player.name} are both {origin}; give each player once"
            )


def style_of(policy: Policy) -> tuple[Any, ...]:
    """Return what tells two players with one network apart."""
    return policy.greedy, policy.temperature, policy.budget


def settings_of(config: ArenaConfig, rules: Rules, threads: int) -> RoundRobinSettings:
    if config.opening_plies is not None:
        check_plies(rules, config.opening_plies, "--opening-plies ")
    sprt = None
    if not config.elo0 < config.elo1:
        raise ConfigError(f"--elo0 {config.elo0:g} must be below --elo1 {config.elo1:g}")
    if config.sprt:
        sprt = Sprt(config.elo0, config.elo1, config.alpha, config.beta, rules.seats)
    return RoundRobinSettings(
        games=config.games,
        seed=config.seed,
        threads=threads,
        greedy=not config.sampled,
        opening_plies=config.opening_plies,
        sprt=sprt,
    )


def read_anchors(pairs: Sequence[str]) -> dict[str, float] | None:
    anchors = {}
    for pair in pairs:
        name, _, value = pair.rpartition("=")
        try:
            anchors[name] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise ConfigError(f"--anchor {pair!r} is not NAME=ELO, for example random=0")
    return anchors or None


def print_pairings(found: RoundRobinResult[Pairing], *, decided: bool) -> None:
    numbers = ("win share", "95 %", "won", "tied", "lost")
    columns = ("pairing", *numbers, *(("verdict",) if decided else ()))
    table = make_table(columns, numbers=numbers, least=("tied", "won", "lost", "95 %"))
    for pairing in found.pairings:
        first = pairing.result.first
        low, high = first.win_interval
        counts = (f"{n:,}" for n in (first.wins, first.ties, first.losses))
        cells = (f"{first.win_share:.1%}", f"{low:.1%} .. {high:.1%}", *counts)
        verdict = (pairing.verdict or "open",) if decided else ()
        table.add_row(f"{pairing.one} - {pairing.two}", *cells, *verdict)
    print_table(table)


def notes(config: ArenaConfig, found: RoundRobinResult[Pairing]) -> list[str]:
    lines = rating_notes(found)
    if config.sprt:
        open_ones = [f"{p.one} - {p.two}" for p in found.pairings if not p.verdict]
        lines.append(
            f"sprt: weaker is elo {config.elo0:g} or less, stronger {config.elo1:g} or more; "
            f"errors at most {config.alpha:.2g} and {config.beta:.2g}; matches that stop early "
            "make intervals somewhat too narrow"
        )
        if open_ones:
            lines.append(f"not decided in {config.games:,} games: {named(open_ones)}")
    return [*lines, *doubts(found)]


def described(
    config: ArenaConfig,
    found: RoundRobinResult[Pairing],
    players: Sequence[Player],
    pictures: Sequence[Path],
) -> dict[str, Any]:
    origin = {name_of(player): loaded_from(player) for player in players}
    return {
        "game": found.rules.name,
        "flags": changed_flags(found.rules),
        "seats": found.rules.seats,
        "seed": config.seed,
        "sampled": config.sampled,
        "search": config.search,
        "games": found.games,
        "ratings": [
            {
                "player": row.player,
                "policy": origin[row.player],
                **rating_values(row),
            }
            for row in found.ratings
        ],
        "pairings": [pairing.plain() for pairing in found.pairings],
        "pictures": [str(path) for path in pictures],
    }
