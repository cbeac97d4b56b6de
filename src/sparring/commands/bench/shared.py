"""Shared by all benches: records, comparison with an earlier record, printed lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any, Protocol

from sparring.commands.shared.printing import (
    echo,
    make_console,
    make_table,
    print_json,
    print_table,
)
from sparring.errors import ConfigError
from sparring.games.flags import flags_as_options
from sparring.machine import machine_info
from sparring.output_files import check_file
from sparring.speed.bench_records import (
    BenchRecord,
    Change,
    Figure,
    changes,
    differences,
    explanations,
)

SLOWER, INVALID = 1, 3
"""Exit codes: of --fail-slower, and of invalid games."""
MAX_DIFFERENCES = 4


class RecordOptions(Protocol):
    """Options of a bench about records."""

    @property
    def save(self) -> str: ...
    @property
    def record(self) -> str: ...
    @property
    def anyway(self) -> bool: ...
    @property
    def fail_slower(self) -> bool: ...
    @property
    def json(self) -> bool: ...


class BenchRecorder:
    """Record of one bench: started before anything is measured, then saved and compared."""

    def __init__(
        self, options: RecordOptions, command: str, settings: Mapping[str, Any], device: str
    ) -> None:
        """Read the earlier record, and refuse one that cannot be compared with this bench."""
        self.options = options
        if options.save:
            check_file(options.save, "--save", parents=True)
        facts = {**machine_info(), "device": device.partition(":")[0], **torch_facts(device)}
        self.now = BenchRecord(command, dict(settings), facts, {})
        self.then = BenchRecord.read(Path(options.record)) if options.record else None
        if (options.anyway or options.fail_slower) and not options.record:
            option = "--anyway" if options.anyway else "--fail-slower"
            raise ConfigError(f"{option} needs --record FILE, the record to compare with")
        self.apart = differences(self.now, self.then) if self.then else []
        if self.apart and not options.anyway:
            rest = len(self.apart) - MAX_DIFFERENCES
            listed = "; ".join(self.apart[:MAX_DIFFERENCES])
            more = f"; and {rest} more" if rest > 0 else ""
            raise ConfigError(
                f"--record {options.record} cannot be compared with this bench: {listed}{more}; "
                "measure the same, or add --anyway"
            )

    def finish(self, figures: Mapping[str, Figure]) -> dict[str, Any]:
        """Save the figures, and return the comparison as JSON; {} without an earlier record."""
        self.now.figures.update(figures)
        if self.options.save:
            self.now.write(Path(self.options.save))
        if not self.then:
            return {}
        found = changes(self.now, self.then)
        names = {"only now": self.now.figures, "only then": self.then.figures}
        both = {one.name for one in found}
        return {
            "record": self.options.record,
            "changes": [one.plain() for one in found],
            **{key: [n for n in of if n not in both] for key, of in names.items()},
            "since": explanations(self.now, self.then),
            "apart": self.apart,
            "slower": sum(one.bad for one in found),
        }

    def exit_code(self, comparison: Mapping[str, Any]) -> int:
        return SLOWER if self.options.fail_slower and comparison.get("slower") else 0

    def show(self, comparison: Mapping[str, Any]) -> None:
        if self.options.save:
            echo(f"record: {self.options.save}")
        if not comparison or not self.then:
            return
        found = [Change(**one) for one in comparison["changes"]]
        date = str(self.then.machine.get("date", "?"))[:10]
        table = make_table(("figure", "then", "now", f"against {date}"), numbers=("then", "now"))
        for one in found:
            cells = (
                middle(record.figures[one.name], ratio=one.ratio)
                for record in (self.then, self.now)
            )
            table.add_row(one.name, *cells, str(one))
        print_table(table)
        for key in ("only then", "only now"):
            if comparison[key]:
                echo(f"measured {key}: {', '.join(comparison[key])}")
        for line in comparison["apart"]:
            echo(f"not the same bench: {line}")
        for line in comparison["since"]:
            echo(f"since then: {line}")
        bad = [one.name for one in found if one.bad]
        echo(
            f"{len(bad)} of {len(found)} figures got slower or worse beyond their 95 % interval"
            f"{': ' + ', '.join(bad) if bad else ''}; by chance alone 1 of 40 does"
        )


def torch_facts(device: str) -> dict[str, Any]:
    """Return facts of torch, which is only loaded if the bench has a device."""
    if not device:
        return {}
    import torch

    gpu = torch.cuda.get_device_name() if device.startswith("cuda") else None
    return {"torch": torch.__version__, "gpu": gpu}


def middle(figure: Figure, *, ratio: bool) -> str:
    """Return the mean of a figure as text; the geometric mean where ratios are shown."""
    value = geometric_mean(figure.rounds) if ratio else mean(figure.rounds)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {figure.unit}".strip()


def finish(
    recorder: BenchRecorder,
    report: dict[str, Any],
    figures: Mapping[str, Figure],
    show: Callable[..., None],
) -> int:
    """Print the report, save the figures, and return the exit code."""
    is_valid = report.get("valid", True)
    if is_valid:
        report["against"] = recorder.finish(figures)
    if recorder.options.json:
        print_json(report)
    elif is_valid:
        show(report)
        recorder.show(report["against"])
    else:
        show_problems(report)
    return recorder.exit_code(report["against"]) if is_valid else INVALID


def rate_summary(rates: Sequence[float]) -> dict[str, Any]:
    """Return median, range and all rounds of decisions per second."""
    return {
        "decisions_per_s": round(median(rates)),
        "min": round(min(rates)),
        "max": round(max(rates)),
        "rounds": [round(rate) for rate in rates],
    }


def show_problems(report: dict[str, Any]) -> None:
    out = make_console()
    out.print(f"{title(report)}: not valid, so nothing was measured", style="bold red")
    for problem in report["proof"]["problems"]:
        out.print(f"  {problem}")
    out.print(f"next: sparring check {report['game']}")


def title(report: dict[str, Any]) -> str:
    """Return the game and its changed flags."""
    return " ".join([report["game"], *flags_as_options(report["flags"])])


def short(number: float) -> str:
    """Return a number with three digits and k, M or G."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            digits = 2 if number < 10 * size else 1 if number < 100 * size else 0
            return f"{number / size:.{digits}f}{unit}"
    return f"{number:.0f}"


def machine_line(facts: dict[str, Any]) -> str:
    commit = f" at {facts['commit']}" if facts["commit"] else ""
    torch = f", torch {facts['torch']}" if facts.get("torch") else ""
    return (
        f"machine: {facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, "
        f"sparring {facts['sparring']}{commit}, {facts['date']}{torch}"
    )


def proof_line(report: dict[str, Any]) -> str:
    proof = report["proof"]
    return f"{title(report)}: valid, signature {proof['signature']}"


def details(report: dict[str, Any]) -> str:
    proof = report["proof"]
    lengths = f"{proof['shortest']}..{proof['longest']} decisions, mean {proof['mean']:.1f}"
    if proof["shortest"] == proof["longest"]:
        lengths = f"{proof['longest']} decisions each"
    ends = ", ".join(f"{count} {end}" for end, count in proof["ends"].items())
    return (
        f"{proof['games']} games: {lengths}; ends: {ends}; {proof['audits']} audits clean; "
        "the same on 1, 2 and 4 threads and in two pools"
    )
