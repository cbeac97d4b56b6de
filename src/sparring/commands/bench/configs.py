"""`sparring bench configs`: train named configurations in turn and compare them in one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from sparring.commands.bench.shared import BenchRecorder, machine_line, short
from sparring.commands.shared.comparing import make_page, matches_of, print_comparison
from sparring.commands.shared.curves import files_in, write_page
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.commands.shared.stopping import Interrupted, interruptible
from sparring.config.options import flat
from sparring.config.tools import BenchConfigsConfig
from sparring.draw.charts.axes import label
from sparring.draw.charts.page import check_matplotlib
from sparring.draw.columns import Columns
from sparring.errors import ConfigError
from sparring.games.rules import UNIVERSAL_FLAGS
from sparring.league.statistics import estimate, interquartile_mean
from sparring.machine import format_bytes
from sparring.output_files import check_folder
from sparring.speed.bench_records import Figure
from sparring.speed.configs import (
    BenchProgress,
    HaltedError,
    NamedConfigs,
    PlannedRun,
    cost,
    read_named,
)
from sparring.speed.run_processes import check_memory_together, train_runs
from sparring.training.planning.placement import choose_device
from sparring.training.planning.settings import written
from sparring.training.records.comparison import BOOKKEEPING, compare_named
from sparring.training.records.comparison_report import described, notes
from sparring.training.records.run import folder_word

MEDIANS = ("minutes", "decisions", "decisions_per_s", "samples_per_s", "cpu_cores", "gpu_busy")
GAINS = ("score_per_hour", "score_per_million")
FAILED = 3
RECORD = "bench.json"
RATIOS = {"decisions_per_s": "decisions/s", "samples_per_s": "samples/s"}
DIFFERENCES = {
    "strength": "",
    "score_per_hour": "score/h",
    "score_per_million": "score/M decisions",
}


def run(config: BenchConfigsConfig) -> int:
    """Check all settings, train all runs, compare."""
    check_matplotlib()
    named = read_named(config.file, minutes=config.minutes, seeds=config.seeds)
    folder = Path(config.out or f"bench-{folder_word(Path(config.file).stem) or 'configs'}")
    check_folder(folder, "--out" if config.out else "")
    progress = BenchProgress.read(folder)
    runs = named.runs(folder)
    for one in runs:
        progress.check_same(one)
    device = choose_device(next(iter(named.configs.values())).device)
    settings = measured_settings(named)
    if config.together > 1:
        check_memory_together(runs, config.together)
        settings["together"] = config.together
    recorder = BenchRecorder(config, "bench configs", settings, device)
    left = [one for one in runs if not progress.has_ended(one)]
    done = f"; {len(runs) - len(left)} are done already" if len(left) < len(runs) else ""
    amount = cost(left, config.together)
    plan = f"{len(named.configs)} configurations, seeds: {named.seeds}; {amount}{done}"
    print(plan, file=sys.stderr)
    if config.dry_run:
        return show_plan(config, named, runs, plan)
    try:
        with interruptible():
            train_all(left, progress, config.together)
            return report(config, named, runs, progress, recorder)
    except Interrupted as interrupt:
        print(f"{interrupt.name}; {RESUME}", file=sys.stderr)
        return interrupt.code
    except HaltedError as error:
        print(f"{error}; {RESUME}", file=sys.stderr)
        return FAILED


RESUME = "finished runs are saved: the same command continues"


def measured_settings(named: NamedConfigs) -> dict[str, Any]:
    return {
        f"{name}.{key}": value
        for name, config in named.configs.items()
        for key, value in flat(written(config)).items()
        if key not in BOOKKEEPING - {"game", "set", "curriculum", "roles"}
    }


def show_plan(
    config: BenchConfigsConfig, named: NamedConfigs, runs: Sequence[PlannedRun], plan: str
) -> int:
    names = [run.name for run in runs]
    if config.json:
        facts = {"command": "bench configs", "runs": names}
        print_json({**facts, "targets": named.targets, "cost": plan})
    else:
        order = f"{config.together} at a time" if config.together > 1 else "in turn"
        echo(f"{order}: {', '.join(names)}")
    return 0


def train_all(runs: Sequence[PlannedRun], progress: BenchProgress, together: int = 1) -> None:
    """Train the remaining runs; report a run that fails, and go on with the others."""
    doing: dict[str, str] = {}
    begun: set[str] = set()
    with ProgressBar("bench", len(runs)) as steps:

        def show_progress(run: PlannedRun, share: float, speed: float) -> None:
            state = f" {share:.0%}, {speed:,.0f} decisions/s" if share < 1 else " measuring"
            doing[run.name] = f"{run.name}{state if share else ''}"
            begun.add(run.name)
            steps.reach(len(begun), "; ".join(doing.values()))

        def ended(run: PlannedRun) -> None:
            del doing[run.name]
            if why := progress.runs[run.name].get("failed"):
                print(f"sparring: {run.name} failed: {why}", file=sys.stderr)

        train_runs(runs, progress, show_progress, ended, together=together)


def report(
    config: BenchConfigsConfig,
    named: NamedConfigs,
    runs: Sequence[PlannedRun],
    progress: BenchProgress,
    recorder: BenchRecorder,
) -> int:
    """Print one table of all runs, compare configurations, save the record."""
    facts = {
        name: [
            {"run": run.name, "seed": run.config.seed, **progress.runs[run.name]["facts"]}
            for run in runs
            if run.config_name == name and "facts" in progress.runs[run.name]
        ]
        for name in named.configs
    }
    failed = {r.name: known["failed"] for r in runs if "failed" in (known := progress.runs[r.name])}
    against = recorder.finish(figures(facts))
    recorder.now.write(progress.folder / RECORD)
    result: dict[str, Any] = {
        "command": "bench configs",
        "configs": summaries(facts, named.targets),
        "runs": facts,
        "failed": failed,
        "machine": recorder.now.machine,
        "against": against,
    }
    if not config.json:
        print_table(config_table(result["configs"], named.targets))
        for name, why in failed.items():
            echo(f"{name} failed: {why}")
    groups = groups_of_one_game(named, facts)
    result["comparisons"] = [
        compare_group(config, progress.folder, group, several=len(groups) > 1) for group in groups
    ]
    if config.json:
        print_json(result)
    else:
        recorder.show(against)
        if config.together > 1:
            echo(f"up to {config.together} runs trained at a time: speeds are beside each other")
        echo(f"runs and {RECORD}: {progress.folder}")
        echo(machine_line(recorder.now.machine))
    return FAILED if failed else recorder.exit_code(against)


def figures(facts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Figure]:
    found = {}
    for name, runs in facts.items():
        for key, unit in {**RATIOS, **DIFFERENCES}.items():
            values = tuple(run[key] for run in runs if run[key] is not None)
            if values and len(values) == len(runs):
                found[f"{name}: {unit or key}"] = Figure(values, unit, ratio=key in RATIOS)
    return found


def groups_of_one_game(
    named: NamedConfigs, facts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, list[str]]]:
    """Return groups of configurations that can be compared, with their runs."""
    groups: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for name, config in named.configs.items():
        if facts[name]:
            rules = [word for word in config.set if word.partition("=")[0] not in UNIVERSAL_FLAGS]
            key = config.game, *sorted(rules)
            groups.setdefault(key, {})[name] = [run["run"] for run in facts[name]]
    return [group for group in groups.values() if len(group) > 1]


def compare_group(
    config: BenchConfigsConfig, folder: Path, group: Mapping[str, Sequence[str]], *, several: bool
) -> dict[str, Any]:
    """Print what `sparring compare` prints about these runs, and return it as JSON."""
    try:
        found = compare_named({n: [folder / run for run in runs] for n, runs in group.items()})
    except ConfigError as error:
        if not config.json:
            echo(f"{', '.join(group)} are not compared: {error}")
        return {"configs": list(group), "why": str(error)}
    matches, why = matches_of(found, games=config.games)
    lines = notes(found) + why
    name = f"compare-{'-'.join(group)}"[:80] if several else "compare"
    png, html = write_page(make_page(found, matches), files_in(folder, name))
    if not config.json:
        echo("")
        print_comparison(found, matches, lines)
        echo(f"curves: {png}, {html}")
    return {**described(found, matches), "notes": lines, "png": str(png), "html": str(html)}


def summaries(
    facts: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[float]
) -> dict[str, dict[str, Any]]:
    return {name: summary(runs, targets) for name, runs in facts.items()}


def summary(runs: Sequence[Mapping[str, Any]], targets: Sequence[float]) -> dict[str, Any]:
    """Return medians of speeds, the largest memory, and gains of score."""
    if not runs:
        return {"runs": 0}
    gains: dict[str, float | None] = {}
    for name in GAINS:
        known = [run[name] for run in runs if run[name] is not None]
        gains[name] = float(interquartile_mean(known)) if len(known) == len(runs) else None
    return {
        "runs": len(runs),
        **{name: median(run[name] for run in runs) for name in MEDIANS},
        "memory_bytes": max(run["memory_bytes"] for run in runs),
        "gpu_bytes": max(run["gpu_bytes"] for run in runs),
        **gains,
        "strength": strength(runs),
        "targets": {str(target): time_to(runs, target) for target in targets},
    }


def strength(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the interquartile mean over runs; a single run has the interval over its games."""
    known = [run["strength"] for run in runs if run["strength"] is not None]
    if not known:
        return {"value": None, "low": None, "high": None, "over": "nothing"}
    if len(known) == 1:
        ends = {"low": runs[0]["strength_low"], "high": runs[0]["strength_high"]}
        return {"value": known[0], **ends, "over": "games"}
    return {**estimate(interquartile_mean, known).plain(), "over": "seeds"}


def time_to(runs: Sequence[Mapping[str, Any]], target: float) -> dict[str, Any]:
    """Return the median time until a target was reached, and how many runs reached it."""
    times = [run["targets"][key] for run in runs if (key := str(float(target))) in run["targets"]]
    return {"seconds": median(times) if times else None, "reached": len(times), "runs": len(runs)}


def config_table(found: Mapping[str, Mapping[str, Any]], targets: Sequence[float]) -> Columns:
    gpu = any(one.get("gpu_bytes") for one in found.values())
    goals = {str(target): f"to {target:g}" for target in targets}
    numbers = (
        *("runs", "decisions/s", "samples/s", "CPU cores"),
        *(("GPU busy", "GPU memory") if gpu else ()),
        *("memory", "strength", "95 %", *goals.values(), "score/h", "score/M"),
    )
    least = ("samples/s", "memory", "CPU cores", "score/M", "runs")
    caption = (
        "medians over runs; memory: peak of the training process; strength: interquartile mean "
        "over runs, its interval over seeds, or over games of a single run; to X: time until the "
        "lower end of the interval reached X; score/h, score/M: score gained from the first "
        "evaluation to the last, per hour and per million decisions"
    )
    table = make_table(("configuration", *numbers), numbers=numbers, least=least, caption=caption)
    for name, one in found.items():
        if not one["runs"]:
            table.add_row(name, "0", "–")
            continue
        table.add_row(name, str(one["runs"]), *cells(one, goals, gpu=gpu))
    return table


def cells(one: Mapping[str, Any], goals: Mapping[str, str], *, gpu: bool) -> list[str]:
    strong = one["strength"]
    busy = [f"{one['gpu_busy']:.0%}" if one["gpu_busy"] else "–", format_bytes(one["gpu_bytes"])]
    return [
        short(one["decisions_per_s"]),
        short(one["samples_per_s"]),
        f"{one['cpu_cores']:.1f}",
        *(busy if gpu else ()),
        format_bytes(one["memory_bytes"]),
        number(strong["value"], 3),
        "–" if strong["low"] is None else f"{strong['low']:.3f} .. {strong['high']:.3f}",
        *(time_cell(one["targets"][goal]) for goal in goals),
        number(one["score_per_hour"]),
        number(one["score_per_million"]),
    ]


def number(value: float | None, digits: int | None = None) -> str:
    if value is None:
        return "–"
    return label(value, "number") if digits is None else f"{value:.{digits}f}"


def time_cell(found: Mapping[str, Any]) -> str:
    """Return the time to a target, and how many runs reached it if not all did."""
    if found["seconds"] is None:
        return "–"
    share = f" ({found['reached']} of {found['runs']})" if found["reached"] < found["runs"] else ""
    return f"{found['seconds'] / 60:.1f} min{share}"
