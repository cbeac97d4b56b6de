"""Runs held against each other: the matches and the tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sparring.commands.compare_picture import form_of, pairs_shown, shown
from sparring.commands.shared.printing import ProgressBar, make_table, print_table, say
from sparring.errors import SparringError
from sparring.league.intervals import wilson
from sparring.league.statistics import Found
from sparring.training.records.compared import Match, budget_name
from sparring.training.records.comparison import Comparison


def matches_of(
    found: Comparison, *, games: int, seed: int = 0, threads: int = 0
) -> tuple[list[Match], list[str]]:
    """Let the best policies of the groups meet, if there are games; return what to say about it."""
    if not games or len(found.groups) < 2:
        return [], []
    if found.rules.seats == 1:
        return [], [f"{found.rules.name} has one seat: no matches between the groups"]
    return play(found, games, seed, threads or os.cpu_count() or 1)


def play(found: Comparison, games: int, seed: int, threads: int) -> tuple[list[Match], list[str]]:
    """Let the best policies of the groups meet; returns the matches, and why there are none."""
    import torch

    from sparring.league.arena import share_of_wins
    from sparring.store.policies import load_policy

    torch.set_num_threads(threads)
    try:
        policies = {
            group.name: load_policy(found.best(group).run.path, name=group.name, threads=threads)
            for group in found.groups
        }
    except SparringError as wrong:
        return [], [f"no matches between the groups: {wrong}"]
    pairs = pairs_shown(found)
    matches = []
    with ProgressBar(f"playing {found.rules.name}", len(pairs)) as steps:
        for at, (one, two, _) in enumerate(pairs):
            steps.next(f"{one.name} against {two.name}")
            ours, theirs = policies[one.name], policies[two.name]
            share, played, deals = share_of_wins(
                found.rules,
                ours,
                theirs,
                games=games,
                seed=seed + 1_000_003 * at,
                threads=threads,
            )
            matches.append(Match(one, two, played, share, *wilson(share, deals)))
    how = "the strongest run of each group, actions drawn, every deal from every seat"
    return matches, [f"matches: {how}"]


def print_comparison(found: Comparison, matches: Sequence[Match], said: Sequence[str]) -> None:
    """Print the groups, who is better than whom, and what has to be said about it."""
    print_groups(found)
    print_pairs(found, matches)
    for line in said:
        say(line)


def print_groups(found: Comparison) -> None:
    """Print one line per group."""
    form = form_of(found)
    at = [f"at {budget_name(found, by)}" for by in found.uneven]
    name = f"{found.measure} (IQM)"
    rates = [found.score_per_hour(group) for group in found.groups]
    gained = ("score/h",) if any(rates) else ()
    numbers = ("runs", name, "95 %", *at, *gained)
    least = (*gained, *at, "settings", "runs")
    table = make_table(("group", "settings", *numbers), numbers=numbers, least=least)
    for group, rate in zip(found.groups, rates, strict=True):
        common = (shown(found.strength_at_common(group, by), form)[0] for by in found.uneven)
        last = [shown(rate, "number")[0]] if gained else []
        strength = shown(found.strength(group), form)
        table.add_row(group.name, group.label, str(len(group.entries)), *strength, *common, *last)
    print_table(table)


def print_pairs(found: Comparison, matches: Sequence[Match]) -> None:
    """Print who is better than whom, by seeds and by matches."""
    met = {(match.one.name, match.two.name): match for match in matches}
    pairs = pairs_shown(found)
    if not pairs:
        return
    numbers = ("stronger", "95 %", *(("wins in matches", "95 % of wins") if matches else ()))
    table = make_table(("pair", *numbers), numbers=numbers)
    for one, two, chance in pairs:
        match = met.get((one.name, two.name))
        share = Found(match.share, match.low, match.high) if match else None
        cells: tuple[str, ...] = shown(chance if chance.low is not None else None, "percent")
        cells += shown(share, "percent") if matches else ()
        table.add_row(f"{one.name} over {two.name}", *cells)
    print_table(table)
