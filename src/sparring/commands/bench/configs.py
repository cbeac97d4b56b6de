"""`sparring bench configs`: named configurations trained in turn, side by side in one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparring.commands.bench.configs_table import config_table, summaries
from sparring.commands.bench.records import Ledger
from sparring.commands.bench.report import machine_line
from sparring.commands.compare_picture import make_page
from sparring.commands.comparing import matches_of, print_comparison
from sparring.commands.curves import files_in, write_page
from sparring.commands.shared.printing import ProgressBar, print_json, print_table, say
from sparring.commands.shared.stopping import Interrupted, interruptible
from sparring.config.options import flat
from sparring.config.tools import BenchConfigsConfig
from sparring.draw.charts.paper import check_matplotlib
from sparring.errors import ConfigError
from sparring.games.rules import UNIVERSAL_FLAGS
from sparring.speed.named import Named, Planned, cost, read_named
from sparring.speed.records import Figure
from sparring.speed.trained import HaltedError, Progress, train_run
from sparring.targets import check_folder
from sparring.training.planning.place import choose_device
from sparring.training.planning.settings import written
from sparring.training.records.compared import described, notes
from sparring.training.records.comparison import BOOKKEEPING, compare_named
from sparring.training.records.run import word_of

FAILED = 3
RECORD = "bench.json"
RATIOS = {"decisions_per_s": "decisions/s", "samples_per_s": "samples/s"}
DIFFERENCES = {
    "strength": "",
    "score_per_hour": "score/h",
    "score_per_million": "score/M decisions",
}


def run(config: BenchConfigsConfig) -> int:
    """Check all, train all, compare."""
    check_matplotlib()
    named = read_named(config.file, minutes=config.minutes, seeds=config.seeds)
    folder = Path(config.out or f"bench-{word_of(Path(config.file).stem) or 'configs'}")
    check_folder(folder, "--out" if config.out else "")
    progress = Progress.read(folder)
    runs = named.runs(folder)
    for one in runs:
        progress.demand_same(one)
    device = choose_device(next(iter(named.configs.values())).device)
    ledger = Ledger(config, "bench configs", measured_settings(named), device)
    left = [one for one in runs if not progress.ended(one)]
    kept = f"; {len(runs) - len(left)} are there already" if len(left) < len(runs) else ""
    told = f"{len(named.configs)} configurations, seeds: {named.seeds}; {cost(left)}{kept}"
    print(told, file=sys.stderr)
    if config.dry_run:
        return show_plan(config, named, runs, told)
    try:
        with interruptible():
            train_all(left, progress)
            return report(config, named, runs, progress, ledger)
    except Interrupted as wrong:
        print(f"{wrong.name}; {GO_ON}", file=sys.stderr)
        return wrong.code
    except HaltedError as wrong:
        print(f"{wrong}; {GO_ON}", file=sys.stderr)
        return FAILED


GO_ON = "what is trained is kept: the same command goes on from there"


def measured_settings(named: Named) -> dict[str, Any]:
    """Return what has to be the same in a record."""
    return {
        f"{name}.{key}": value
        for name, config in named.configs.items()
        for key, value in flat(written(config)).items()
        if key not in BOOKKEEPING - {"game", "set", "curriculum", "roles"}
    }


def show_plan(config: BenchConfigsConfig, named: Named, runs: Sequence[Planned], told: str) -> int:
    """Say what would be trained."""
    if config.json:
        names = [run.name for run in runs]
        print_json(
            {"command": "bench configs", "runs": names, "targets": named.targets, "cost": told}
        )
    else:
        say(f"in turn: {', '.join(run.name for run in runs)}")
    return 0


def train_all(runs: Sequence[Planned], progress: Progress) -> None:
    """Train what is left; a run that fails is said, and the others go on."""
    with ProgressBar("bench", len(runs)) as steps:
        for run in runs:
            steps.next(run.name)

            def tell(share: float, speed: float, name: str = run.name) -> None:
                steps.done -= 1
                doing = f"{share:.0%}, {speed:,.0f} decisions/s" if share < 1 else "measuring"
                steps.next(f"{name} {doing}")

            train_run(run, progress, tell)
            if why := progress.runs[run.name].get("failed"):
                print(f"sparring: {run.name} failed: {why}", file=sys.stderr)


def report(
    config: BenchConfigsConfig,
    named: Named,
    runs: Sequence[Planned],
    progress: Progress,
    ledger: Ledger,
) -> int:
    """Put everything into one table, compare, and keep it."""
    facts = {
        name: [
            {"run": run.name, "seed": run.config.seed, **progress.runs[run.name]["facts"]}
            for run in runs
            if run.config_name == name and "facts" in progress.runs[run.name]
        ]
        for name in named.configs
    }
    failed = {r.name: known["failed"] for r in runs if "failed" in (known := progress.runs[r.name])}
    against = ledger.end(figures(facts))
    ledger.now.write(progress.folder / RECORD)
    told: dict[str, Any] = {
        "command": "bench configs",
        "configs": summaries(facts, named.targets),
        "runs": facts,
        "failed": failed,
        "machine": ledger.now.machine,
        "against": against,
    }
    if not config.json:
        print_table(config_table(told["configs"], named.targets))
        for name, why in failed.items():
            say(f"{name} failed: {why}")
    told["comparisons"] = [
        compared(config, progress.folder, group, several=len(groups) > 1)
        for groups in [of_one_game(named, facts)]
        for group in groups
    ]
    if config.json:
        print_json(told)
    else:
        ledger.show(against)
        say(f"runs and {RECORD}: {progress.folder}")
        say(machine_line(ledger.now.machine) + f", torch {ledger.now.machine['torch']}")
    return FAILED if failed else ledger.code(against)


def figures(facts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Figure]:
    """Return the figures as a record has them, a round for each run."""
    found = {}
    for name, runs in facts.items():
        for key, unit in {**RATIOS, **DIFFERENCES}.items():
            values = tuple(run[key] for run in runs if run[key] is not None)
            if values and len(values) == len(runs):
                word = f"{name}: {unit or key}"
                found[word] = Figure(values, unit, ratio=key in RATIOS)
    return found


def of_one_game(
    named: Named, facts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, list[str]]]:
    """Return names and runs of configurations that can be compared: those of the same game."""
    groups: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for name, config in named.configs.items():
        if facts[name]:
            rules = [word for word in config.set if word.partition("=")[0] not in UNIVERSAL_FLAGS]
            key = config.game, *sorted(rules)
            groups.setdefault(key, {})[name] = [run["run"] for run in facts[name]]
    return [group for group in groups.values() if len(group) > 1]


def compared(
    config: BenchConfigsConfig, folder: Path, group: Mapping[str, Sequence[str]], *, several: bool
) -> dict[str, Any]:
    """Show what `sparring compare` shows of these runs, and return it as JSON has it."""
    try:
        found = compare_named({n: [folder / run for run in runs] for n, runs in group.items()})
    except ConfigError as wrong:
        if not config.json:
            say(f"{', '.join(group)} are not compared: {wrong}")
        return {"configs": list(group), "why": str(wrong)}
    matches, why = matches_of(found, games=config.games)
    said = notes(found) + why
    name = f"compare-{'-'.join(group)}"[:80] if several else "compare"
    png, html = write_page(make_page(found, matches), files_in(folder, name))
    if not config.json:
        say("")
        print_comparison(found, matches, said)
        say(f"curves: {png}, {html}")
    return {**described(found, matches), "notes": said, "png": str(png), "html": str(html)}
