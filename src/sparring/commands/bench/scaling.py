"""`sparring bench scaling`: speed by number of games, threads and workers, and what to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparring.commands.bench.scaling_picture import make_page
from sparring.commands.bench.shared import Ledger, machine_line, short, title
from sparring.commands.shared.curves import files_asked, write_page
from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_json, print_table
from sparring.config import TrainConfig
from sparring.config.tools import BenchScalingConfig
from sparring.draw.columns import Columns
from sparring.errors import ConfigError, SparringError
from sparring.factories import is_factory
from sparring.games.flags import changed_flags
from sparring.machine import cores, format_bytes, machine_info, warn_if_busy
from sparring.speed.bench_records import Figure
from sparring.speed.rounds import spread, steady
from sparring.speed.scaling import Point, Row, advise, measure_points, points
from sparring.speed.timer import OpenSessions, TimerProcess
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of, merged, with_preset, written

CAVEAT = (
    "speed alone: more games make larger rollouts, so fewer updates in the same time; what is "
    "learned, sparring bench configs and sparring compare say"
)


def run(config: BenchScalingConfig) -> int:
    """Measure, advise, draw."""
    files = files_asked(config.out, "scaling")
    settings = read_settings(config)
    plan = resolve(members_of(settings), played=False)
    usual = Point(settings.threads, int(settings.workers), settings.collect.games)
    own = is_factory(settings.game)
    if config.workers and not own:
        raise ConfigError(
            f"--workers: {settings.game} steps its games on threads; use --threads, or give an "
            "environment of your own"
        )
    rows = [
        Row(point)
        for point in points(
            usual,
            games=config.games,
            threads=config.threads,
            workers=config.workers,
            cores=cores(),
            gpu=plan.fused,
            own=own,
        )
    ]
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    ledger = Ledger(config, "bench scaling", measured_settings(settings), plan.device)
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
        "flags": {} if own else changed_flags(plan.rules),
        "options": {"seconds": config.seconds, "passes": config.passes, "seed": config.seed},
        "training": {"algo": settings.algo, "device": plan.device, "pool": plan.games_on},
        "passes": max(len(row.measurements) for row in rows),
        "usual": described_point(usual),
        "rows": [described(row, rows) for row in rows],
        "advice": {"text": why, "take": take and described_point(take)},
        "machine": ledger.now.machine,
        "against": ledger.end(figures(rows)),
    }
    if config.out:
        page = make_page(report, rows, why)
        report["pictures"] = list(map(str, write_page(page, files)))
    if config.json:
        print_json(report)
    else:
        show(report, ledger)
    return ledger.code(report["against"])


def read_settings(config: BenchScalingConfig) -> TrainConfig:
    """Return what `sparring train` would train with, as it is well under way."""
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
    """Return what has to be the same in a record: all but what is varied, and how a run is kept."""
    table = written(settings)
    kept = ("net", "opponents", "rewards", "set", "game", "algo", "hierarchy", settings.algo)
    found = {name: table[name] for name in kept if name in table}
    return {**found, "collect": {k: v for k, v in table["collect"].items() if k != "games"}}


def check_some(rows: Sequence[Row]) -> None:
    if any(row.measurements for row in rows):
        return
    raise SparringError(f"nothing could be measured; {rows[0].point}: {rows[0].why}")


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    return {str(r.point): Figure(tuple(r.rates), "decisions/s") for r in rows if r.measurements}


def described_point(point: Point) -> dict[str, int]:
    return {"games": point.games, "threads": point.threads, "workers": point.workers}


def described(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    told: dict[str, Any] = {**described_point(row.point), "why": row.why}
    if not row.measurements or row.opened is None:
        return told
    smallest = next(other for other in rows if other.measurements)
    least = fewest_cores(row, rows)
    gpu = [measurement.gpu_busy for measurement in row.measurements]
    return {
        **told,
        "decisions_per_s": spread(row.rates, 0),
        "samples_per_s": spread([r.rate("samples") for r in row.measurements], 0),
        "cpu_cores": round(sum(r.cpu_cores for r in row.measurements) / len(row.measurements), 2),
        "gpu_busy": round(sum(gpu) / len(gpu), 4),
        "memory_bytes": row.opened.memory_bytes,
        "gpu_bytes": max(measurement.gpu_bytes for measurement in row.measurements),
        "to_smallest": round(row.rate / smallest.rate, 3),
        "efficiency": round(row.rate / least.rate / (row.point.cores / least.point.cores), 3),
    }


def fewest_cores(row: Row, rows: Sequence[Row]) -> Row:
    same = [o for o in rows if o.measurements and o.point.games == row.point.games]
    return min(same, key=lambda other: other.point.cores)


def show(report: dict[str, Any], ledger: Ledger) -> None:
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
    echo(machine_line(report["machine"]) + f", torch {report['machine']['torch']}")
    ledger.show(report["against"])


def table_of(report: dict[str, Any]) -> Columns:
    rows = report["rows"]
    workers = any(row["workers"] for row in rows)
    gpu = any(row.get("gpu_bytes") for row in rows)
    rates = ("decisions/s", "range", "samples/s", "x", "efficiency", "CPU cores")
    numbers = ("games", "threads", *(("workers",) if workers else ()), *rates)
    numbers += ("GPU busy", "GPU memory", "memory") if gpu else ("memory",)
    table = make_table(numbers, numbers=numbers, least=("memory", "samples/s", "range"))
    table.caption = (
        f"median and range of {report['passes']} passes in turn; x: to the first line; "
        "efficiency: speed per thread and worker, to the fewest with as many games; memory: what "
        "the process grew by"
    )
    table.caption_justify = "left"
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
