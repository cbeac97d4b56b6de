"""`sparring compare`: which settings are better, over seeds, with what can be known about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.commands.compare_picture import (
    BUDGETS,
    Match,
    budget_name,
    form_of,
    make_page,
    notes,
    pairs_shown,
    shown,
)
from sparring.commands.curves import write_page
from sparring.commands.printing import ProgressBar, make_table, print_json, print_table, say
from sparring.config import CompareConfig
from sparring.errors import ConfigError, SparringError
from sparring.games.flags import changed_flags
from sparring.league.intervals import wilson
from sparring.league.statistics import Found
from sparring.store.folders import LATEST, RUNS, find, sorted_runs
from sparring.training.records.comparison import EACH_RUN, Comparison, Group, compare
from sparring.training.records.run import Run

LEAST_GAMES = 4


def run(config: CompareConfig) -> int:
    """Compare the runs and say what was found."""
    check_numbers(config)
    paths = runs_meant(config.run)
    found = compare(paths, config.by, seed=config.seed)
    said = notes(found)
    matches: list[Match] = []
    if config.games and len(found.groups) > 1:
        if found.rules.seats == 1:
            said.append(f"{found.rules.name} has one seat: no matches between the groups")
        else:
            matches, why = play(found, config)
            said += why
    out = Path(config.out) if config.out else paths[0].absolute().parent
    png, html = write_page(make_page(found, matches), out, "compare")
    if config.json:
        told = described(found, matches)
        print_json({**told, "notes": said, "png": str(png), "html": str(html)})
        return 0
    print_groups(found)
    print_pairs(found, matches)
    for line in said:
        say(line)
    for group in found.groups if found.by != (EACH_RUN,) else ():
        say(f"{group.name}: {', '.join(entry.run.name for entry in group.entries)}")
    print(f"curves: {png}, {html}")
    return 0


def check_numbers(config: CompareConfig) -> None:
    """Refuse what cannot be compared or played."""
    if config.games and config.games < LEAST_GAMES:
        raise ConfigError(f"--games {config.games} must be 0 or at least {LEAST_GAMES}")


def runs_meant(words: Sequence[str]) -> list[Path]:
    """Return the runs; the beginning of several names means all of them."""
    paths: list[Path] = []
    for word in words:
        for path in folders_of(Path(word)):
            Run.open(path)  # says what is missing if it is no run
            if path.absolute() not in [known.absolute() for known in paths]:
                paths.append(path)
    if len(paths) < 2:
        known = f": {paths[0]}" if paths else ""
        raise ConfigError(f"compare needs at least two runs, this is {len(paths)}{known}")
    return paths


def folders_of(word: Path) -> list[Path]:
    """Return the folders that one word means, in the order of their names."""
    within = word.parent if len(word.parts) > 1 else RUNS
    if word.is_dir() or word.name == LATEST or (within / word.name).is_dir():
        return [find(word, RUNS)]
    many = sorted(run for run in sorted_runs(within) if run.name.startswith(word.name))
    return many or [find(word, RUNS)]


def play(found: Comparison, config: CompareConfig) -> tuple[list[Match], list[str]]:
    """Let the best policies of the groups meet; returns the matches, and why there are none."""
    import torch

    from sparring.league.pairs import share_of_wins
    from sparring.store.policies import load_policy

    threads = config.threads or os.cpu_count() or 1
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
            seed = config.seed + 1_000_003 * at
            share, games, deals = share_of_wins(
                found.rules, ours, theirs, games=config.games, seed=seed, threads=threads
            )
            matches.append(Match(one, two, games, share, *wilson(share, deals)))
    how = "the strongest run of each group, actions drawn, every deal from every seat"
    return matches, [f"matches: {how}"]


def print_groups(found: Comparison) -> None:
    """Print one line per group."""
    form = form_of(found)
    late = [by for by in BUDGETS if found.differs(by)]
    at = [f"at {budget_name(found, by)}" for by in late]
    numbers = ("runs", "strength (IQM)", "95 %", *at, "score/h")
    least = ("score/h", *at, "settings", "runs")
    table = make_table(("group", "settings", *numbers), numbers=numbers, least=least)
    for group in found.groups:
        common = (shown(found.strength_at_common(group, by), form)[0] for by in late)
        rate = shown(found.score_per_hour(group), "number")[0]
        strength = shown(found.strength(group), form)
        table.add_row(group.name, group.label, str(len(group.entries)), *strength, *common, rate)
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


def described(found: Comparison, matches: Sequence[Match]) -> dict[str, Any]:
    """Return everything that was found, as JSON has it."""
    return {
        "game": found.rules.name,
        "flags": changed_flags(found.rules),
        "by": list(found.by),
        "opponents": list(found.opponents),
        "measured": "after training" if found.measured_at_end else "last evaluation",
        "common": {by: found.common(by) for by in BUDGETS},
        "groups": [described_group(found, group) for group in found.groups],
        "improvement": [
            {"one": one.name, "two": two.name, **p.plain()} for one, two, p in found.pairs()
        ],
        "matches": [match.plain() for match in matches],
    }


def described_group(found: Comparison, group: Group) -> dict[str, Any]:
    """Return one group."""
    at = {by: found.strength_at_common(group, by) for by in BUDGETS}
    rate = found.score_per_hour(group)
    return {
        "group": group.name,
        "settings": group.settings,
        "label": group.label,
        "runs": [
            {
                "run": str(entry.run.path),
                "seed": entry.seed,
                "strength": strength,
                "minutes": entry.run.minutes,
                "decisions": entry.run.decisions,
            }
            for entry, strength in zip(group.entries, found.strengths(group), strict=True)
        ],
        "strength": found.strength(group).plain(),
        "strength_at_common": {by: value and value.plain() for by, value in at.items()},
        "score_per_hour": rate and rate.plain(),
    }
