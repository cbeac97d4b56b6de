"""`sparring league`: the past selves of a run, their ratings and results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from sparring.commands.shared.curves import drawn, file_at, place_asked, write_pages
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.config.commands import LeagueShowConfig
from sparring.draw.charts.axes import label
from sparring.draw.charts.chart import Series
from sparring.draw.charts.league import Rung, ladder_page, past_page, payoff_page
from sparring.draw.charts.page import ChartPage
from sparring.errors import ConfigError, SparringError
from sparring.league.ladder import describe_league, make_payoff
from sparring.store.standings import (
    LeagueStandings,
    Player,
    SnapshotMatch,
    spread_snapshots,
    standings_of,
)
from sparring.training.records.run import Run

MAX_LINES = 8
"""Maximum of lines in a chart of ratings."""


def run(config: LeagueShowConfig) -> int:
    out = place_asked(config.out) if config.out else None
    found = Run.open(config.run)
    if config.matches == 1:
        raise ConfigError("--matches 1 must be 0 or at least 2, or there is no interval")
    standings = standings_of(found.path)
    chosen = spread_snapshots(standings, config.max)
    pairs: list[SnapshotMatch] = []
    notes: list[str] = []
    if config.matches:
        pairs, notes = play(found, chosen, config)
    pictures = drawn(partial(write_pictures, standings, chosen, pairs, out or found.path))
    if config.json:
        league = describe_league(standings, pairs)
        print_json(
            {
                "run": str(found.path),
                **league,
                "notes": notes,
                "pictures": [str(path) for path in pictures],
            }
        )
        return 0
    print_standings(standings)
    print_pairs(pairs)
    for line in [*notes, *notes_of(standings)]:
        echo(line)
    if pictures:
        echo(f"pictures: {', '.join(map(str, pictures))}")
    if not config.matches and len(chosen) > 1:
        echo(f"next: sparring league {found.name} --matches 1000")
    return 0


def play(
    found: Run, chosen: Sequence[Player], config: LeagueShowConfig
) -> tuple[list[SnapshotMatch], list[str]]:
    """Play all pairs of snapshots; one that cannot be loaded is reported and left out."""
    import itertools
    import os

    from sparring.extras import set_threads
    from sparring.league.arena import games_between, share_of_wins
    from sparring.league.intervals import wilson
    from sparring.store.cache import cached_policy

    threads = config.threads or os.cpu_count() or 1
    set_threads(threads)
    policies, notes = {}, []
    for player in chosen:
        try:
            folder = found.path / "past" / str(player.number)
            policies[player.name] = cached_policy(folder, name=player.name, threads=threads)
        except SparringError as error:
            notes.append(f"{player.name} is left out of the matches: {error}")
    if len(policies) < 2:
        return [], [*notes, "fewer than two snapshots can play"]
    rules = next(iter(policies.values())).rules
    if rules.seats == 1:
        return [], [*notes, f"{rules.name} has one seat: no matches between snapshots"]
    meetings = list(itertools.combinations(policies, 2))
    pairs = []
    each = games_between(rules, config.matches)
    with ProgressBar(f"playing {rules.name}", len(meetings) * each) as steps:
        for at, (one, two) in enumerate(meetings):

            def show_progress(
                played: int, before: int = at * each, met: str = f"{one} - {two}"
            ) -> None:
                steps.reach(before + played, met)

            show_progress(0)
            share, games, deals = share_of_wins(
                rules,
                policies[one],
                policies[two],
                games=config.matches,
                seed=config.seed + 1_000_003 * at,
                threads=threads,
                greedy=not config.sampled,
                progress=show_progress,
            )
            pairs.append(SnapshotMatch(one, two, games, share, *wilson(share, deals)))
    how = "actions drawn" if config.sampled else "the most probable actions"
    return pairs, [*notes, f"matches: {how}, every deal from every seat, tables shared evenly"]


def print_standings(standings: LeagueStandings) -> None:
    numbers = ("decisions", "rating", "95 %", "trained on", "points", "in matches", "match points")
    least = ("in matches", "trained on", "decisions")
    table = make_table(("player", *numbers), numbers=numbers, least=least)
    for player in standings.players:
        rated = player.rated
        table.add_row(
            player.name + (" (removed)" if player.removed else ""),
            "-" if player.decisions is None else label(player.decisions, "rate"),
            f"{rated.rating:.0f}" if rated else "-",
            f"{rated.low:.0f} .. {rated.high:.0f}" if rated else "-",
            f"{player.training.games:,}" if player.training else "-",
            percent(player.training.share if player.training else None),
            f"{player.matches.games:,}" if player.matches else "-",
            percent(player.matches.share if player.matches else None),
        )
    print_table(table)


def print_pairs(pairs: Sequence[SnapshotMatch]) -> None:
    if not pairs:
        return
    numbers = ("games", "wins", "95 %")
    table = make_table(("match", *numbers), numbers=numbers)
    for pair in pairs:
        interval = f"{pair.low:.1%} .. {pair.high:.1%}"
        table.add_row(f"{pair.one} - {pair.two}", f"{pair.games:,}", f"{pair.share:.1%}", interval)
    print_table(table)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def notes_of(standings: LeagueStandings) -> list[str]:
    lines = ["points: the learner's share against that player, a draw being half a point"]
    if not any(player.rated for player in standings.players):
        lines.append("no player has been rated yet")
    return lines


def write_pictures(
    standings: LeagueStandings,
    chosen: Sequence[Player],
    pairs: Sequence[SnapshotMatch],
    folder: Path,
) -> list[Path]:
    pages = {"payoff": payoff(standings, chosen, pairs)}
    rungs = ladder(standings)
    if rungs:
        pages["ladder"] = ladder_page(rungs, title=f"{standings.run}: ladder")
        pages["ratings"] = past_page(past(standings), title=f"{standings.run}: ratings")
    return write_pages({file_at(folder, name, "league-"): page for name, page in pages.items()})


def ladder(standings: LeagueStandings) -> list[Rung]:
    return [
        Rung(
            player.name,
            player.rated.rating,
            player.rated.low,
            player.rated.high,
            fixed=player.rated.low == player.rated.high,
            bot=player.role == "bot",
        )
        for player in standings.players
        if player.rated
    ]


def past(standings: LeagueStandings) -> list[Series]:
    """Return ratings of snapshots over decisions, and of bots.

    All ratings are of the last time that all players were rated, on one scale.
    """
    rated = [player for player in standings.players if player.rated]
    lines = []
    for role in sorted({player.role for player in rated if player.decisions is not None}):
        points = sorted(
            (player.decisions, player.rated.rating, player.rated.low, player.rated.high)
            for player in rated
            if player.rated and player.role == role and player.decisions is not None
        )
        lines.append(Series(f"snapshots, {role}", 0, *np.array(points, np.float64).T))
    ends = np.array([0.0, max((float(line.x.max()) for line in lines), default=1.0)])
    bots = [player for player in rated if player.role == "bot"][: MAX_LINES - len(lines)]
    for bot in bots:
        assert bot.rated
        lines.append(Series(bot.name, 0, ends, np.full(2, bot.rated.rating)))
    return lines


def payoff(
    standings: LeagueStandings, chosen: Sequence[Player], pairs: Sequence[SnapshotMatch]
) -> ChartPage:
    """Return the payoff matrix: the learner against all, and matches of snapshots if any."""
    facts = ["self: the learner's games so far, a draw being half a point"]
    facts += [f"{pairs[0].games:,} games per match"] if pairs else ["--matches fills the rest"]
    made = make_payoff(standings, chosen, pairs)
    return payoff_page(made, title=f"{standings.run}: who beats whom", facts=facts)
