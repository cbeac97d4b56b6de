"""What was found: as JSON, as a page to keep, and the folder of all files."""

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
from sparring.errors import ConfigError
from sparring.speed.evidence import EVALUATION, TRAINING, Evidence
from sparring.speed.functions import Function, costliest, costs, flame, write_stacks
from sparring.speed.looking import Seen
from sparring.speed.verdicts.case import Verdict
from sparring.store.files import remove_folder, temp_name
from sparring.targets import check_folder
from sparring.training.planning.settings import written
from sparring.training.records.run import finite, word_of

FORMAT = "sparring profile 1"
"""What makes a JSON file a profile."""
MOST = 20
"""So many functions and kernels are listed."""
EVERYWHERE = 0.95
"""A function on so many of the stacks is the way into the program, and no news."""
CODE_LIMIT = 72
REPORT, FLAME = "report.md", "flame.html"
SPEEDSCOPE, NUMBERS = "profile.speedscope.json", "profile.json"


@dataclass(frozen=True)
class Profile:
    """Everything about one look at a training."""

    target: str
    """As it was asked for."""
    seen: Seen
    verdicts: Sequence[Verdict]
    machine: Mapping[str, Any]

    @property
    def evidence(self) -> Evidence:
        return self.seen.evidence

    @property
    def functions(self) -> list[Function]:
        return costs(self.evidence.stacks)


def plain(profile: Profile) -> dict[str, Any]:
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
        "seconds": evidence.seconds,
        "cpu_cores": evidence.cpu_cores,
        "cores": evidence.cores,
        "load": evidence.load,
        "gpu": dict(evidence.gpu),
        "kernels": [asdict(kernel) for kernel in evidence.kernels],
        "functions": {
            by: [one.plain() for one in listed(functions, by)] for by in ("own", "total")
        },
        "blind": list(evidence.blind),
        "sampling": {
            "rate": profile.seen.rate,
            "native": profile.seen.native,
            "updates": profile.seen.updates,
            "cost": profile.seen.cost,
            "samples": evidence.stacks.samples,
            "beside": evidence.beside.samples,
        },
        "machine": dict(profile.machine),
        "config": written(evidence.config),
        "processes": {str(pid): does for pid, does in evidence.processes.items()},
        "stacks": evidence.everything.plain("place"),
    }


def listed(functions: Sequence[Function], by: str, most: int = MOST) -> list[Function]:
    """Return the costliest functions; by their total time without those that are on all stacks."""
    if by == "total":
        functions = [one for one in functions if one.total < EVERYWHERE]
    return costliest(functions, most, by=by)


def markdown(profile: Profile) -> str:
    evidence = profile.evidence
    parts = [
        f"# Profile of {profile.target}",
        "\n".join(f"- {verdict_line(verdict)}" for verdict in profile.verdicts),
        "## Where the time goes",
        *filter(None, [evidence.path]),
        f"{pace_line(evidence)} {looked_line(profile.seen)}",
        table(("phase", "share"), [(n, f"{s:.1%}") for n, s in by_size(evidence.phases)]),
    ]
    for by, words in (("own", "their own time"), ("total", "all that they call")):
        rows = [function_row(one) for one in listed(profile.functions, by)]
        if rows:
            parts.append(f"## The {len(rows)} costliest functions by {words}")
            parts.append(table(("function", "where", "own", "total"), rows))
    parts += gpu_parts(evidence)
    parts += beside_parts(evidence)
    parts.append("## What could not be seen")
    parts.append("\n".join(f"- {text}" for text in evidence.blind) or "Nothing that is known.")
    parts.append("## Machine")
    parts.append(table(("", ""), [(n, str(v)) for n, v in profile.machine.items()]))
    parts += ["## Settings", f"```toml\n{tomlkit.dumps(written(evidence.config)).strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def verdict_line(verdict: Verdict) -> str:
    line = f"**{verdict.cause}**: {verdict.text}"
    return f"{line}. Do: `{verdict.do}`" if verdict.do else line


def pace_line(evidence: Evidence) -> str:
    measured = EVALUATION in evidence.processes.values()
    whom = "evaluations and others" if measured else "others"
    others = f", {evidence.load:.1f} by {whom}" if evidence.load >= 0.1 else ""
    return (
        f"{evidence.decisions_per_s:,.0f} decisions/s, {evidence.samples_per_s:,.0f} samples/s; "
        f"{evidence.cpu_cores:.1f} of {evidence.cores} cores are used by it{others}."
    )


def looked_line(seen: Seen) -> str:
    stacks = seen.evidence.stacks
    kind = "Python and native stacks" if seen.native else "Python stacks"
    whose = "a run that was going on" if seen.evidence.attached else "a training of its own"
    cost = "what that has cost is not known"
    if seen.cost is not None:
        less = "fewer" if seen.cost > 0 else "more"
        cost = f"meanwhile it made {abs(seen.cost):.0%} {less} decisions/s, give or take noise"
    return (
        f"{kind} of {whose}, {seen.rate} times a second for {seen.evidence.seconds:.0f} s "
        f"({seen.updates:,} updates): {stacks.samples:,} samples; {cost}."
    )


def function_row(one: Function) -> tuple[str, str, str, str]:
    where = f"{one.place}:{one.line}" if one.line else one.place
    name = one.name if len(one.name) <= CODE_LIMIT else f"{one.name[: CODE_LIMIT - 1]}…"
    return f"`{name}`", where, f"{one.own:.1%}", f"{one.total:.1%}"


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
            for kernel in evidence.kernels[:MOST]
        ]
        heads = ("kernel", "work", "share of its work", "launches", "us each")
        parts.append(table(heads, rows))
    return parts


def beside_parts(evidence: Evidence) -> list[str]:
    if not evidence.beside.samples:
        return []
    parts = ["## Processes beside it"]
    kinds = {does for does in evidence.processes.values() if does != TRAINING}
    for does in sorted(kinds):
        pids = {pid for pid, what in evidence.processes.items() if what == does}
        found = evidence.beside.of_processes(pids)
        if not found.samples:
            continue
        busy = found.samples / found.rate / max(evidence.seconds, 1e-9)
        parts.append(f"{does} ({len(pids)}): {busy:.2f} threads at work on average.")
        rows = [function_row(one) for one in listed(costs(found), "own", 5)]
        parts.append(table(("function", "where", "own", "total"), rows))
    return parts


def by_size(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda pair: -pair[1])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    safe = [[cell.replace("|", "/") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in safe)


def choose_folder(asked: str, target: str) -> Path:
    """Return where a profile is to lie; one that is there already is only replaced if asked for."""
    if asked:
        folder = Path(asked)
        if folder.exists() and not (folder.is_dir() and may_replace(folder)):
            raise ConfigError(
                f"--out {asked}: there is something else that is not a profile; choose another name"
            )
    else:
        name = f"profile-{word_of(target) or 'training'}"
        tries = itertools.chain([name], (f"{name}-{again}" for again in itertools.count(2)))
        folder = next(Path(one) for one in tries if not Path(one).exists())
    return check_folder(folder, "--out")


def may_replace(folder: Path) -> bool:
    """Whether a folder is empty, or a profile and nothing else."""
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
    """Write all files; the folder is there whole or not at all."""
    evidence = profile.evidence
    everything = evidence.everything
    title = f"Profile of {profile.target}"
    facts = [pace_line(evidence), f"{everything.samples:,} samples", str(profile.machine["date"])]
    texts = {
        REPORT: markdown(profile),
        FLAME: draw_flame(flame(evidence), title, facts),
        SPEEDSCOPE: as_json(write_stacks(everything, title, evidence.processes)),
        NUMBERS: as_json(plain(profile)),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.with_name(temp_name(folder.name))
    try:
        made.mkdir()
        for name, text in texts.items():
            (made / name).write_text(text, "utf-8")
        if folder.exists():
            remove_folder(folder)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return [folder / name for name in texts]


def as_json(value: object) -> str:
    return json.dumps(finite(value), allow_nan=False, separators=(",", ":")) + "\n"
