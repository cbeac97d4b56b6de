"""`sparring doctor`: check the installation and this machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.text import Text

import sparring
from sparring import _native
from sparring.commands.shared.printing import ProgressBar, make_console, print_facts, print_json
from sparring.config.commands import DoctorConfig
from sparring.errors import ConfigError
from sparring.games import Rules, game_names
from sparring.machine import MAX_THREADS, cores, cpu_model, git_commit, load_average, run_program
from sparring.proof.conformance import check
from sparring.proof.validity import SIGNATURE_WAYS, signature
from sparring.web.description import MODULES

GIB = 2**30
MIN_DISK, LITTLE_DISK = 1 * GIB, 10 * GIB
UNITS = {"products": "multiply-adds/s", "memory": "B/s", "stepping": "decisions/s"}
"""Units of ceilings."""
STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@dataclass(frozen=True)
class Diagnosis:
    """Result of one check."""

    status: str
    """ok, note (works, could be better) or problem."""
    name: str
    detail: str
    todo: str = ""


def run(config: DoctorConfig) -> int:
    """Run all checks; 3 if there is a problem."""
    parts = (
        check_versions,
        check_machine,
        check_native,
        check_torch,
        measure_ceilings if config.measure else show_ceilings,
        check_extras,
        check_browser,
        check_terminal,
    )
    findings: list[Diagnosis] = []
    with ProgressBar("doctor", len(parts)) as steps:
        for part in parts:
            steps.next(part.__name__.replace("_", " "))
            findings += part()
    healthy = all(finding.status != "problem" for finding in findings)
    if config.json:
        print_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        show(findings)
    return 0 if healthy else 3


def show(findings: list[Diagnosis]) -> None:
    facts: list[tuple[str | Text, str]] = []
    for finding in findings:
        status = Text(finding.status, style=STYLES[finding.status])
        facts.append((status, f"{finding.name}: {finding.detail}"))
        if finding.todo:
            facts.append(("", f"-> {finding.todo}"))
    print_facts(facts, label=7)
    problems = sum(finding.status == "problem" for finding in findings)
    notes = sum(finding.status == "note" for finding in findings)
    print(f"{problems} problems, {notes} notes")


def check_versions() -> Iterator[Diagnosis]:
    commit = git_commit()
    yield Diagnosis("ok", "sparring", sparring.__version__ + (f" at {commit}" if commit else ""))
    build = f"{platform.python_implementation()} {platform.python_version()}"
    yield Diagnosis("ok", "python", f"{build} on {platform.platform()}")
    yield Diagnosis("ok", "numpy", np.__version__)
    built = Path(str(_native.__file__))
    yield Diagnosis("ok", "native core", f"{built.name}, {built.stat().st_size / 1e6:.1f} MB")
    compiler = run_program(os.environ.get("CXX", "c++"), "--version")
    if compiler:
        yield Diagnosis("ok", "compiler", compiler.splitlines()[0])
    else:
        yield Diagnosis("note", "compiler", "no c++ found", "only needed to build from source")


def check_machine() -> Iterator[Diagnosis]:
    load = load_average()
    usable = f"{cpu_model()}, {cores()} of {os.cpu_count()} cores usable"
    yield Diagnosis("ok", "processor", usable)
    if load is not None and load > 0.5 * cores():
        yield Diagnosis("note", "load", f"load average {load:g}", "measure when nothing else runs")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield Diagnosis("ok", "memory", f"{memory / GIB:.1f} GiB")
    free = shutil.disk_usage(Path.cwd()).free
    detail = f"{free / GIB:.1f} GiB free in this folder"
    if free < MIN_DISK:
        yield Diagnosis("problem", "disk", detail, "free at least 1 GiB; runs write checkpoints")
    elif free < LITTLE_DISK:
        yield Diagnosis("note", "disk", detail, "long runs write several GiB of checkpoints")
    else:
        yield Diagnosis("ok", "disk", detail)


def check_native() -> Iterator[Diagnosis]:
    """Check that any number of threads plays the same games, and that a small game conforms."""
    started = time.perf_counter()
    rebuild = "reinstall: pip install --force-reinstall --no-cache-dir sparring"
    for name in game_names():
        rules = Rules(name)
        found = {signature(rules, *way) for way in SIGNATURE_WAYS}
        if len(found) == 1:
            yield Diagnosis("ok", f"{name} signature", f"{found.pop()} on 1, 2 and 4 threads")
        else:
            yield Diagnosis("problem", f"{name} signature", f"{sorted(found)} differ", rebuild)
    report = check("tic_tac_toe", games=5)
    failed = [finding.name for finding in report.findings if not finding.passed]
    seconds = f"{time.perf_counter() - started:.1f} s"
    if failed:
        yield Diagnosis("problem", "self-test", f"failed: {', '.join(failed)}", rebuild)
    else:
        yield Diagnosis("ok", "self-test", f"tic_tac_toe passes; {seconds} in all")
    names = ", ".join(_native.kernel_names())
    tiles = "AMX for bfloat16 (collect.cpu bf16)" if _native.has_amx() else "no AMX"
    try:
        yield Diagnosis(
            "ok", "kernels", f"{_native.kernels_used()} for networks, of {names}; {tiles}"
        )
    except ConfigError as error:
        yield Diagnosis("problem", "kernels", str(error), "unset SPARRING_KERNELS")


def check_torch() -> Iterator[Diagnosis]:
    """Check torch, and whether it sees a GPU."""
    try:
        import torch
    except (ImportError, OSError) as missing:
        todo = "playing and measuring work without it; for training: pip install 'sparring[train]'"
        yield Diagnosis("note", "torch", f"cannot be imported: {missing}", todo)
        return
    yield Diagnosis("ok", "torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield Diagnosis("ok", "cuda", f"{torch.version.cuda}: {', '.join(names)}")
    else:
        yield Diagnosis("note", "cuda", "no GPU seen", "training runs on the CPU")


def measure_ceilings() -> Iterator[Diagnosis]:
    """Measure the peak rates of this machine; those of games and networks come with training."""
    try:
        import torch
    except (ImportError, OSError):
        yield Diagnosis("note", "ceilings", "cannot be measured without torch")
        return
    from sparring.training.utilization.cache import MeasurementCache
    from sparring.training.utilization.peaks import ComputeDevice, measure_peaks

    kept = MeasurementCache()
    kept.drop(list(kept.entries))
    for device in ("cpu", *["cuda"] * torch.cuda.is_available()):
        measure_peaks(ComputeDevice(device, min(os.cpu_count() or 1, MAX_THREADS)), kept)
    yield from show_ceilings()


def show_ceilings() -> Iterator[Diagnosis]:
    """Show the measured peak rates of this machine."""
    from sparring.training.utilization.cache import MeasurementCache

    kept = MeasurementCache()
    found = {name: kept.numbers(name, "rate") for name in sorted(kept.entries)}
    rates = {name: numbers[0] for name, numbers in found.items() if numbers}
    if not rates:
        todo = "sparring doctor --measure, or train for a minute: it is measured once, then kept"
        yield Diagnosis("note", "ceilings", f"not measured yet ({kept.path})", todo)
        return
    for name, rate in rates.items():
        what, _, where = name.partition("; ")
        unit = next((u for word, u in UNITS.items() if what.startswith(word)), "")
        yield Diagnosis("ok", f"ceiling of {what}", f"{scaled(rate)}{unit} ({where})")
    yield Diagnosis("ok", "ceilings", f"kept in {kept.path}")


def scaled(rate: float) -> str:
    for prefix in ("", "k", "M", "G"):
        if rate < 1000:
            return f"{rate:.3g} {prefix}"
        rate /= 1000
    return f"{rate:,.3g} T"


def check_extras() -> Iterator[Diagnosis]:
    """Check the optional dependencies, read from the package metadata."""
    try:
        known = extras()
    except importlib.metadata.PackageNotFoundError:
        todo = "pip install sparring, or pip install -e . in its folder"
        yield Diagnosis("note", "extras", "unknown: sparring runs without being installed", todo)
        return
    for extra, packages in sorted(known.items()):
        lacking = [name for name in packages if not installed(name)]
        if lacking:
            todo = f"pip install 'sparring[{extra}]'"
            yield Diagnosis("note", f"extra {extra}", f"without {', '.join(lacking)}", todo)
        else:
            versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
            yield Diagnosis("ok", f"extra {extra}", ", ".join(versions))


def check_browser() -> Iterator[Diagnosis]:
    """Check what `sparring serve` needs: its server, and the games as WebAssembly."""
    missing = [name for name in ("starlette", "uvicorn") if not installed(name)]
    if missing:
        todo = "pip install 'sparring[web]'"
        yield Diagnosis("note", "web", f"sparring serve lacks {' and '.join(missing)}", todo)
    else:
        yield Diagnosis("ok", "web", "sparring serve can run")
    games = game_names()
    lacking = [name for name in games if not (MODULES / f"{name}.wasm").is_file()]
    if lacking:
        which = "no game" if len(lacking) == len(games) else f"no {', '.join(lacking)}"
        todo = "install a wheel, or in a checkout: make web"
        yield Diagnosis("note", "wasm", f"{which} for a browser", todo)
    else:
        yield Diagnosis("ok", "wasm", f"all {len(games)} games play in a browser")


def extras() -> dict[str, list[str]]:
    """Return the packages of every extra for users."""
    found: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("sparring") or ():
        match = re.match(r"([\w.-]+).*extra == [\"']([\w-]+)[\"']", line)
        if match and match[2] != "dev" and match[1] != "sparring":
            found.setdefault(match[2], []).append(match[1])
    return found


def installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def check_terminal() -> Iterator[Diagnosis]:
    encoding = (sys.stdout.encoding or "unknown").lower()
    if not encoding.startswith("utf"):
        todo = "set LANG to a UTF-8 locale for tables with lines"
        yield Diagnosis("note", "terminal", f"encoding {encoding}", todo)
        return
    if not sys.stdout.isatty():
        yield Diagnosis("ok", "terminal", f"none, plain text in {encoding}")
        return
    out = make_console()
    size = f"{out.width} x {out.height}"
    colors = out.color_system or "no"
    yield Diagnosis("ok", "terminal", f"{size}, {colors} colors, {encoding}")
