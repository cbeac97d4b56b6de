"""`sparring bench scaling`: speed by number of games, threads and workers, with advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparring.commands.bench.scaling_picture import make_page
from sparring.commands.bench.shared import BenchRecorder, finish, machine_line, short, title
from sparring.commands.shared.curves import files_asked, write_page
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_table
from sparring.config import TrainConfig
from sparring.config.tools import BenchScalingConfig
from sparring.draw.columns import Columns
from sparring.errors import ConfigError, SparringError
from sparring.games.flags import changed_flags
from sparring.machine import cores, format_bytes, warn_if_busy
from sparring.pygames.registry import is_env
from sparring.speed.bench_records import Figure
from sparring.speed.rounds import spread, steady
from sparring.speed.scaling import ScalingPoint, ScalingRow, advise, measure_points, points
from sparring.speed.timer import OpenSessions, TimerProcess
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of, merged, with_preset, written

CAVEAT = (
    "speed alone: more games make larger rollouts, so fewer updates in the same time; compare "
    "learning with sparring bench configs or sparring compare"
)


def run(config: BenchScalingConfig) -> int:
    """Measure, advise, draw the charts."""
    files = files_asked(config.out, "scaling")
    settings = read_settings(config)
    plan = resolve(members_of(settings), played=False)
    usual = ScalingPoint(settings.threads, int(settings.workers), settings.collect.games)
    custom = is_env(settings.game)
    if config.workers and not custom:
        raise ConfigError(
            f"--workers: {settings.game} steps its games on threads; use --threads, or name a "
            "custom environment"
        )
    rows = [
        ScalingRow(point)
        for point in points(
            usual,
            games=config.games,
            threads=config.threads,
            workers=config.workers,
            cores=cores(),
            gpu=plan.fused,
            custom=custom,
        )
    ]
    recorder = BenchRecorder(config, "bench scaling", measured_settings(settings), plan.device)
    warn_if_busy(recorder.now.machine["load_average"])
    with (
        TimerProcess() as timer,
        ProgressBar(f"scaling {plan.rules.name}", len(rows) * config.passes + 1) as steps,
    ):
        measure_points(
            OpenSessions(timer), settings, rows, (config.seconds, config.passes), steps.next
        )
    check_some(rows)
    take, why = advise(rows, usual)
    report: dict[str, Any] = {
        "command": "bench scaling",
        "game": plan.rules.name,
        "flags": {} if custom else changed_flags(plan.rules),
        "options": {"seconds": config.seconds, "passes": config.passes, "seed": config.seed},
        "training": {"algo": settings.algo, "device": plan.device, "pool": plan.games_on},
        "passes": max(len(row.measurements) for row in rows),
        "usual": asdict(usual),
        "rows": [row_facts(row, rows) for row in rows],
        "advice": {"text": why, "take": take and asdict(take)},
        "machine": recorder.now.machine,
    }
    if config.out:
        page = make_page(report, rows, why)
        report["pictures"] = list(map(str, write_page(page, files)))
    return finish(recorder, report, figures(rows), show)


def read_settings(config: BenchScalingConfig) -> TrainConfig:
    """Return the settings of `sparring train`, as in the middle of a run."""
    gpu = uses_gpu(config.device)
    base = with_preset(config.game, config.config, gpu=gpu, algo=config.algo)
    changes: dict[str, Any] = {
        "seed": config.seed,
        "device": config.device,
        "set": (*base.set, *config.set),
        "threads": base.threads or cores(),
        "workers": base.workers if base.workers.isdecimal() else "0",
    }
    settings: TrainConfig = merged(base, changes, "bench scaling")
    if len(members_of(settings)) > 1:
        raise ConfigError("bench scaling measures one run; leave seeds, population and vary out")
    return steady(settings)


def measured_settings(settings: TrainConfig) -> dict[str, Any]:
    """Return the settings that must be equal in a record: all but those that vary."""
    table = written(settings)
    names = ("net", "opponents", "rewards", "set", "game", "algo", "hierarchy", settings.algo)
    found = {name: table[name] for name in names if name in table}
    return {**found, "collect": {k: v for k, v in table["collect"].items() if k != "games"}}


def check_some(rows: Sequence[ScalingRow]) -> None:
    if not any(row.measurements for row in rows):
        raise SparringError(f"nothing could be measured; {rows[0].point}: {rows[0].why}")


def figures(rows: Sequence[ScalingRow]) -> dict[str, Figure]:
    return {str(r.point): Figure(tuple(r.rates), "decisions/s") for r in rows if r.measurements}


def row_facts(row: ScalingRow, rows: Sequence[ScalingRow]) -> dict[str, Any]:
    facts: dict[str, Any] = {**asdict(row.point), "why": row.why}
    if not row.measurements or row.session is None:
        return facts
    smallest = next(other for other in rows if other.measurements)
    fewest = fewest_cores(row, rows)
    gpu = [measurement.gpu_busy for measurement in row.measurements]
    return {
        **facts,
        "decisions_per_s": spread(row.rates, 0),
        "samples_per_s": spread([r.rate("samples") for r in row.measurements], 0),
        "cpu_cores": round(sum(r.cpu_cores for r in row.measurements) / len(row.measurements), 2),
        "gpu_busy": round(sum(gpu) / len(gpu), 4),
        "memory_bytes": row.session.memory_bytes,
        "gpu_bytes": max(measurement.gpu_bytes for measurement in row.measurements),
        "to_smallest": round(row.rate / smallest.rate, 3),
        "efficiency": round(row.rate / fewest.rate / (row.point.cores / fewest.point.cores), 3),
    }


def fewest_cores(row: ScalingRow, rows: Sequence[ScalingRow]) -> ScalingRow:
    same = [o for o in rows if o.measurements and o.point.games == row.point.games]
    return min(same, key=lambda other: other.point.cores)


def show(report: dict[str, Any]) -> None:
    training = report["training"]
    echo(
        f"{title(report)}: {training['algo']}, network on {training['device']}, games on "
        f"{training['pool']}"
    )
    print_table(table_of(report))
    for row in report["rows"]:
        if row["why"]:
            echo(f"{row['games']:,} games on {row['threads']} threads: {row['why']}")
    echo(report["advice"]["text"])
    echo(CAVEAT)
    if "pictures" in report:
        echo(f"pictures: {', '.join(report['pictures'])}")
    echo(machine_line(report["machine"]))


def table_of(report: dict[str, Any]) -> Columns:
    rows = report["rows"]
    workers = any(row["workers"] for row in rows)
    gpu = any(row.get("gpu_bytes") for row in rows)
    rates = ("decisions/s", "range", "samples/s", "x", "efficiency", "CPU cores")
    numbers = ("games", "threads", *(("workers",) if workers else ()), *rates)
    numbers += ("GPU busy", "GPU memory", "memory") if gpu else ("memory",)
    caption = (
        f"median and range of {report['passes']} passes in turn; x: relative to the first line; "
        "efficiency: speed per thread and worker, relative to the fewest with as many games; "
        "memory: growth of the process"
    )
    least = ("memory", "samples/s", "range")
    table = make_table(numbers, numbers=numbers, least=least, caption=caption)
    for row in rows:
        head = [f"{row['games']:,}", str(row["threads"]), *([str(row["workers"])] * workers)]
        if row["why"]:
            table.add_row(*head, "–")
            continue
        rate = row["decisions_per_s"]
        cells = [
            short(rate["median"]),
            f"{short(rate['min'])}..{short(rate['max'])}",
            short(row["samples_per_s"]["median"]),
            f"{row['to_smallest']:.2f}",
            f"{row['efficiency']:.0%}",
            f"{row['cpu_cores']:.1f}",
        ]
        if gpu:
            cells += [f"{row['gpu_busy']:.0%}" if row["gpu_busy"] else "–"]
            cells += [format_bytes(row["gpu_bytes"])]
        table.add_row(*head, *cells, format_bytes(row["memory_bytes"]))
    return table
