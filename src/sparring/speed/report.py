"""Report of a profile: JSON, Markdown, and the folder with all files."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tomlkit

from sparring.draw.charts.flame import draw_flame
from sparring.draw.text_charts import shorten_middle
from sparring.errors import ConfigError
from sparring.output_files import check_folder
from sparring.speed.evidence import EVALUATION, TRAINING, Evidence
from sparring.speed.functions import (
    Function,
    costliest,
    flame_blocks,
    function_costs,
    to_speedscope,
)
from sparring.speed.profiling import ProfileResult
from sparring.speed.verdicts.profiled_run import Verdict
from sparring.store.files import remove_folder, temp_name
from sparring.training.planning.settings import written
from sparring.training.records.run import finite, folder_word

FORMAT = "sparring profile 1"
"""Format marker of profile.json."""
MAX_LISTED = 20
"""Functions and kernels that are listed."""
ENTRY_SHARE = 0.95
"""A function on more of the stacks is the entry into the program, and not listed."""
CODE_LIMIT = 72
FUNCTION_HEADS = ("function", "where", "self", "total")
REPORT, FLAME = "report.md", "flame.html"
SPEEDSCOPE, NUMBERS = "profile.speedscope.json", "profile.json"


@dataclass(frozen=True)
class Profile:
    """A profile with its verdicts."""

    target: str
    """Game, environment or run, as the user named it."""
    result: ProfileResult
    verdicts: Sequence[Verdict]
    machine: Mapping[str, Any]

    @property
    def evidence(self) -> Evidence:
        return self.result.evidence

    @property
    def functions(self) -> list[Function]:
        return function_costs(self.evidence.stacks)


def to_json(profile: Profile) -> dict[str, Any]:
    evidence = profile.evidence
    functions = profile.functions
    return {
        "format": FORMAT,
        "target": profile.target,
        "attached": evidence.attached,
        "path": evidence.path,
        "verdicts": [asdict(verdict) for verdict in profile.verdicts],
        "phases": dict(evidence.phases),
        "decisions_per_s": evidence.decisions_per_s,
        "samples_per_s": evidence.samples_per_s,
        "simulations_per_s": evidence.simulations_per_s,
        "seconds": evidence.seconds,
        "cpu_cores": evidence.cpu_cores,
        "cores": evidence.cores,
        "load": evidence.load,
        "gpu": dict(evidence.gpu),
        "kernels": [asdict(kernel) for kernel in evidence.kernels],
        "functions": {
            by: [one.plain() for one in top_functions(functions, by)] for by in ("self", "total")
        },
        "not_seen": list(evidence.not_seen),
        "sampling": {
            "rate": profile.result.rate,
            "native": profile.result.native,
            "updates": profile.result.updates,
            "cost": profile.result.cost,
            "samples": evidence.stacks.samples,
            "child_samples": evidence.child_stacks.samples,
        },
        "machine": dict(profile.machine),
        "config": written(evidence.config),
        "processes": {str(pid): kind for pid, kind in evidence.processes.items()},
        "stacks": evidence.all_stacks.plain("short_file"),
    }


def top_functions(functions: Sequence[Function], by: str, most: int = MAX_LISTED) -> list[Function]:
    """Return the costliest functions; by total time without those that are on all stacks."""
    if by == "total":
        functions = [one for one in functions if one.total_share < ENTRY_SHARE]
    return costliest(functions, most, by=by)


def markdown(profile: Profile) -> str:
    evidence = profile.evidence
    parts = [
        f"# Profile of {profile.target}",
        "\n".join(f"- {verdict_line(verdict)}" for verdict in profile.verdicts),
        "## Where the time goes",
        *filter(None, [evidence.path]),
        f"{speed_line(evidence)} {sampling_line(profile.result)}",
        table(("phase", "share"), [(n, f"{s:.1%}") for n, s in by_size(evidence.phases)]),
    ]
    for by in ("self", "total"):
        rows = [function_row(one) for one in top_functions(profile.functions, by)]
        if rows:
            parts.append(f"## The {len(rows)} costliest functions by {by} time")
            parts.append(table(FUNCTION_HEADS, rows))
    parts += gpu_parts(evidence)
    parts += child_parts(evidence)
    parts.append("## Not seen")
    parts.append("\n".join(f"- {text}" for text in evidence.not_seen) or "Nothing is missing.")
    parts.append("## Machine")
    parts.append(table(("", ""), [(n, str(v)) for n, v in profile.machine.items()]))
    parts += ["## Settings", f"```toml\n{tomlkit.dumps(written(evidence.config)).strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def verdict_line(verdict: Verdict) -> str:
    line = f"**{verdict.cause}**: {verdict.text}"
    return f"{line}. Do: `{verdict.do}`" if verdict.do else line


def speed_line(evidence: Evidence) -> str:
    measured = EVALUATION in evidence.processes.values()
    others = "evaluations and other programs" if measured else "other programs"
    load = f", {evidence.load:.1f} by {others}" if evidence.load >= 0.1 else ""
    made = evidence.simulations_per_s
    searched = f", {made:,.0f} simulations/s" if made else ""
    return (
        f"{evidence.decisions_per_s:,.0f} decisions/s, "
        f"{evidence.samples_per_s:,.0f} samples/s{searched}; "
        f"the training uses {evidence.cpu_cores:.1f} of {evidence.cores} cores{load}."
    )


def sampling_line(result: ProfileResult) -> str:
    evidence = result.evidence
    kind = "Python and native stacks" if result.native else "Python stacks"
    source = "a run in progress" if evidence.attached else "a training started for this profile"
    cost = "the cost of sampling is unknown"
    if result.cost is not None:
        less = "fewer" if result.cost > 0 else "more"
        cost = f"{abs(result.cost):.0%} {less} decisions/s during sampling, give or take noise"
    return (
        f"{kind} of {source}, {result.rate} times a second for {evidence.seconds:.0f} s "
        f"({result.updates:,} updates): {evidence.stacks.samples:,} samples; {cost}."
    )


def function_cells(one: Function, name_cells: int) -> tuple[str, str, str, str]:
    where = f"{one.file}:{one.line}" if one.line else one.file
    name = shorten_middle(one.name, name_cells)
    return name, where, f"{one.self_share:.1%}", f"{one.total_share:.1%}"


def function_row(one: Function) -> tuple[str, ...]:
    name, *rest = function_cells(one, CODE_LIMIT)
    return f"`{name}`", *rest


def gpu_parts(evidence: Evidence) -> list[str]:
    if not evidence.gpu:
        return []
    shares = [(name, f"{share:.1%}") for name, share in by_size(evidence.gpu)]
    parts = ["## The GPU", table(("work", "share of the time"), shares)]
    if evidence.kernels:
        whole = sum(kernel.seconds for kernel in evidence.kernels)
        rows = [
            (
                f"`{kernel.name[:CODE_LIMIT]}`",
                kernel.kind,
                f"{kernel.seconds / max(whole, 1e-9):.1%}",
                f"{kernel.launches:,}",
                f"{1e6 * kernel.seconds / kernel.launches:,.1f}",
            )
            for kernel in evidence.kernels[:MAX_LISTED]
        ]
        heads = ("kernel", "work", "share of its work", "launches", "us each")
        parts.append(table(heads, rows))
    return parts


def child_parts(evidence: Evidence) -> list[str]:
    if not evidence.child_stacks.samples:
        return []
    parts = ["## Child processes"]
    kinds = set(evidence.processes.values()) - {TRAINING}
    for kind in sorted(kinds):
        pids = {pid for pid, other in evidence.processes.items() if other == kind}
        stacks = evidence.child_stacks.of_processes(pids)
        if not stacks.samples:
            continue
        busy = stacks.samples / stacks.rate / max(evidence.seconds, 1e-9)
        parts.append(f"{kind} ({len(pids)}): {busy:.2f} busy threads on average.")
        rows = [function_row(one) for one in top_functions(function_costs(stacks), "self", 5)]
        parts.append(table(FUNCTION_HEADS, rows))
    return parts


def by_size(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda pair: -pair[1])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    safe = [[cell.replace("|", "/") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in safe)


def choose_folder(out: str, target: str) -> Path:
    """Return the folder of a profile. Only a profile that `--out` names is replaced."""
    if out:
        folder = Path(out)
        if folder.exists() and not (folder.is_dir() and may_replace(folder)):
            raise ConfigError(f"--out {out} exists and is not a profile; choose another name")
    else:
        name = f"profile-{folder_word(target) or 'training'}"
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        folder = next(Path(one) for one in names if not Path(one).exists())
    return check_folder(folder, "--out")


def may_replace(folder: Path) -> bool:
    """Whether a folder is empty, or contains a profile and nothing else."""
    names = {path.name for path in folder.iterdir()}
    if not names:
        return True
    if names - {REPORT, FLAME, SPEEDSCOPE, NUMBERS}:
        return False
    try:
        return bool(json.loads((folder / NUMBERS).read_text()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def write_folder(folder: Path, profile: Profile) -> list[Path]:
    """Write all files; the folder appears complete or not at all."""
    evidence = profile.evidence
    stacks = evidence.all_stacks
    title = f"Profile of {profile.target}"
    facts = [speed_line(evidence), f"{stacks.samples:,} samples", str(profile.machine["date"])]
    texts = {
        REPORT: markdown(profile),
        FLAME: draw_flame(flame_blocks(evidence), title, facts),
        SPEEDSCOPE: as_json(to_speedscope(stacks, title, evidence.processes)),
        NUMBERS: as_json(to_json(profile)),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(temp_name(folder.name))
    try:
        temporary.mkdir()
        for name, text in texts.items():
            (temporary / name).write_text(text, "utf-8")
        if folder.exists():
            remove_folder(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return [folder / name for name in texts]


def as_json(value: object) -> str:
    return json.dumps(finite(value), allow_nan=False, separators=(",", ":")) + "\n"
