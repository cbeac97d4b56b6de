"""`sparring compare`: which settings are stronger over seeds, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparring.commands.shared.comparing import make_page, matches_of, print_comparison
from sparring.commands.shared.curves import files_asked, files_by_kind, files_in, write_page
from sparring.commands.shared.printing import echo, print_json
from sparring.config.runs import CompareConfig
from sparring.draw.charts.page import check_matplotlib
from sparring.errors import ConfigError
from sparring.store.folders import LATEST, RUNS, sorted_runs
from sparring.store.lookup import find_run, has_policy
from sparring.training.records.comparison import EACH_RUN, compare
from sparring.training.records.comparison_report import described, notes
from sparring.training.records.run import Run

MIN_GAMES = 4


def run(config: CompareConfig) -> int:
    check_numbers(config)
    check_matplotlib()
    files = files_asked(config.out, "compare")
    paths = runs_meant(config.run)
    found = compare(paths, config.by, seed=config.seed)
    said = notes(found)
    matches, why = matches_of(found, games=config.games, seed=config.seed, threads=config.threads)
    said += why
    usual = files_in(paths[0].absolute().parent, "compare")
    files = write_page(make_page(found, matches), files or usual)
    if config.json:
        told = described(found, matches)
        print_json({**told, "notes": said, **files_by_kind(files)})
        return 0
    print_comparison(found, matches, said)
    for group in found.groups if found.by != (EACH_RUN,) else ():
        echo(f"{group.name}: {', '.join(entry.run.name for entry in group.entries)}")
    print(f"curves: {', '.join(map(str, files))}")
    return 0


def check_numbers(config: CompareConfig) -> None:
    if config.games and config.games < MIN_GAMES:
        raise ConfigError(f"--games {config.games} must be 0 or at least {MIN_GAMES}")


def runs_meant(words: Sequence[str]) -> list[Path]:
    """Return the runs; a common prefix names all runs that have it."""
    paths: list[Path] = []
    for word in words:
        for path in folders_of(word):
            Run.open(path)  # raises if it is no run
            if path.absolute() not in [known.absolute() for known in paths]:
                paths.append(path)
    if len(paths) < 2:
        known = f": {paths[0]}" if paths else ""
        raise ConfigError(f"compare needs at least two runs, this is {len(paths)}{known}")
    return paths


def folders_of(word: str) -> list[Path]:
    """Return the folders that one argument means, sorted by name."""
    path = Path(word)
    if path.name == LATEST or any(map(has_policy, (path, RUNS / path))):
        return [find_run(word)]
    within = path.parent if len(path.parts) > 1 else RUNS
    many = sorted(run for run in sorted_runs(within) if run.name.startswith(path.name))
    return many or [find_run(word)]
