"""What all benches share: records held against earlier ones, and lines that are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import geometric_mean, mean
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
from sparring.speed.bench_records import Change, Figure, Record, changes, differences, since

SLOWER, INVALID = 1, 3
"""Exit codes: of --fail-slower, and of games that are not valid."""
MAX_TOLD = 4


class Keeps(Protocol):
    """Options of a bench that keeps records."""

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


class Ledger:
    """The record of one bench: begun before anything is measured, ended when all is known."""

    def __init__(self, options: Keeps, command: str, settings: Mapping[str, Any], device: str):
        """Read the earlier record, and refuse one that says nothing about this bench."""
        self.options = options
        if options.save:
            check_file(options.save, "--save", parents=True)
        facts = {**machine_info(), "device": device.partition(":")[0], **torch_facts(device)}
        self.now = Record(command, dict(settings), facts, {})
        self.then = Record.read(Path(options.record)) if options.record else None
        if (options.anyway or options.fail_slower) and not options.record:
            word = "--anyway" if options.anyway else "--fail-slower"
            raise ConfigError(f"{word} is for --record FILE, the record to hold this one against")
        self.apart = differences(self.now, self.then) if self.then else []
        if self.apart and not options.anyway:
            rest = len(self.apart) - MAX_TOLD
            more = f"; and {rest} more" if rest > 0 else ""
            raise ConfigError(
                f"--record {options.record} says nothing about this bench: "
                f"{'; '.join(self.apart[:MAX_TOLD])}{more}; measure the same, or add --anyway"
            )

    def end(self, figures: Mapping[str, Figure]) -> dict[str, Any]:
        """Keep the figures, and return what changed, as JSON has it; {} without a record."""
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
            **{word: [n for n in of if n not in both] for word, of in names.items()},
            "since": since(self.now, self.then),
            "apart": self.apart,
            "slower": sum(one.bad for one in found),
        }

    def code(self, told: Mapping[str, Any]) -> int:
        return SLOWER if self.options.fail_slower and told.get("slower") else 0

    def show(self, told: Mapping[str, Any]) -> None:
        if self.options.save:
            echo(f"record: {self.options.save}")
        if not told or not self.then:
            return
        found = [Change(**one) for one in told["changes"]]
        date = str(self.then.machine.get("date", "?"))[:10]
        table = make_table(("figure", "then", "now", f"against {date}"), numbers=("then", "now"))
        for one in found:
            cells = (
                middle(record.figures[one.name], ratio=one.ratio)
                for record in (self.then, self.now)
            )
            table.add_row(one.name, *cells, str(one))
        print_table(table)
        for word in ("only then", "only now"):
            if told[word]:
                echo(f"measured {word}: {', '.join(told[word])}")
        for line in told["apart"]:
            echo(f"not the same bench: {line}")
        for line in told["since"]:
            echo(f"since then: {line}")
        bad = [one.name for one in found if one.bad]
        echo(
            f"{len(bad)} of {len(found)} figures got slower or worse beyond their 95 % interval"
            f"{': ' + ', '.join(bad) if bad else ''}; by chance alone it is 1 of 40"
        )


def torch_facts(device: str) -> dict[str, Any]:
    """Return what learning depends on; torch is loaded where something learns."""
    if not device:
        return {}
    import torch

    gpu = torch.cuda.get_device_name() if device.startswith("cuda") else None
    return {"torch": torch.__version__, "gpu": gpu}


def middle(figure: Figure, *, ratio: bool) -> str:
    """Return the mean of a figure as it is shown; of logarithms, so that ratios are those shown."""
    value = geometric_mean(figure.rounds) if ratio else mean(figure.rounds)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {figure.unit}".strip()


def finish(
    ledger: Ledger, report: dict[str, Any], figures: Mapping[str, Figure], show: Callable[..., None]
) -> int:
    """Print what was proven and measured, keep the figures, and return the exit code."""
    if not report["valid"]:
        if ledger.options.json:
            print_json(report)
        else:
            show_problems(report)
        return INVALID
    report["against"] = ledger.end(figures)
    if ledger.options.json:
        print_json(report)
    else:
        show(report)
        ledger.show(report["against"])
    return ledger.code(report["against"])


def show_problems(report: dict[str, Any]) -> None:
    """Print why nothing was measured."""
    out = make_console()
    out.print(f"{title(report)}: not valid, so there is nothing to measure", style="bold red")
    for problem in report["proof"]["problems"]:
        out.print(f"  {problem}")
    out.print(f"next: sparring check {report['game']}")


def title(report: dict[str, Any]) -> str:
    """Return the game and the flags that are not the usual ones."""
    return " ".join([report["game"], *flags_as_options(report["flags"])])


def short(number: float) -> str:
    """Return a number with three digits and its unit."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            digits = 2 if number < 10 * size else 1 if number < 100 * size else 0
            return f"{number / size:.{digits}f}{unit}"
    return f"{number:.0f}"


def machine_line(facts: dict[str, Any]) -> str:
    """Say where and when this was measured."""
    commit = f" at {facts['commit']}" if facts["commit"] else ""
    return (
        f"machine: {facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, "
        f"sparring {facts['sparring']}{commit}, {facts['date']}"
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
