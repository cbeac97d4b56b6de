"""What functions cost, how they call each other, and stacks in a format that browsers show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparring.draw.charts.flame import FlameBlock
from sparring.speed.code import LOOP, phase_of
from sparring.speed.evidence import Evidence, Frame, Stack, Stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
Key = tuple[str, str]
"""A function: its name and file."""
STARTS = ("runpy.py", "<frozen runpy>")
"""Python's own way into a program, which is on every stack and says nothing."""
NATIVE_TORCH = ("libtorch", "libc10", "libgomp", "libmkl", "libcudnn", "libcublas", "libcaffe")


@dataclass(frozen=True)
class Function:
    """What a function costs, in shares of all samples."""

    name: str
    place: str
    line: int
    """Where most of its samples were."""
    own: float
    """In itself."""
    total: float
    """In itself and in what it calls; a function that calls itself counts once."""
    native: bool

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def costs(stacks: Stacks) -> list[Function]:
    """Return every function that was met, the costliest by its own time first."""
    own: Counter[Key] = Counter()
    total: Counter[Key] = Counter()
    lines: dict[Key, Counter[tuple[bool, int]]] = {}
    native: dict[Key, bool] = {}
    for stack in stacks.stacks:
        last = stack.frames[-1]
        own[key_of(last)] += stack.samples
        met = {key_of(frame): frame for frame in stack.frames}  # the innermost of a recursion
        for key, frame in met.items():
            total[key] += stack.samples
            native[key] = frame.native
            lines.setdefault(key, Counter())[frame is last, frame.line] += stack.samples
    everything = max(stacks.samples, 1)
    found = [
        Function(*key, line_of(lines[key]), own[key] / everything, all_of / everything, native[key])
        for key, all_of in total.items()
    ]
    return sorted(found, key=lambda one: (-one.own, -one.total, one.name))


def line_of(lines: Counter[tuple[bool, int]]) -> int:
    """Where most of a function's samples were: in itself, if it was met there, or in its calls."""
    inside = any(own for own, _ in lines)
    return next(line for (own, line), _ in lines.most_common() if own == inside)


def costliest(functions: Iterable[Function], most: int, *, by: str) -> list[Function]:
    met = [one for one in functions if getattr(one, by) > 0]
    return sorted(met, key=lambda one: (-getattr(one, by), -one.own, one.name))[:most]


def key_of(frame: Frame) -> Key:
    return frame.name, frame.place


def flame(evidence: Evidence) -> FlameBlock:
    """Return all stacks as blocks on blocks: processes and threads, then calls."""
    root = FlameBlock("all", "", "root")
    for stack in evidence.everything.stacks:
        named = title(evidence.processes, stack.process, stack.thread)
        block = root.inner(named, "", "root")
        add(block, stack)
    root.total = sum(block.total for block in root.blocks.values())
    return root


def add(block: FlameBlock, stack: Stack) -> None:
    block.total += stack.samples
    for frame in within(stack.frames):
        block = block.inner(frame.name, frame.place, kind_of(frame))
        block.total += stack.samples
        block.lines[frame.line] = block.lines.get(frame.line, 0) + stack.samples


def within(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Leave out the way into a training, which is the same on every stack."""
    for at, frame in enumerate(frames):
        if phase_of(frame) == LOOP:
            return frames[at:]
    first = 0
    for at, frame in enumerate(frames[:-1]):
        begins = frame.native and frame.place.startswith(("libc.", "libpython", "python"))
        if begins or frame.place in STARTS:
            first = at + 1
        else:
            break
    return frames[first:]


def kind_of(frame: Frame) -> str:
    place = frame.place
    if frame.native:
        if place.startswith("_native"):
            return "sparring native"
        return "torch native" if place.startswith(NATIVE_TORCH) else "native"
    package = place.partition("/")[0]
    if package == "sparring":
        return "sparring"
    if package == "torch":
        return "torch"
    if place.startswith("<") or any(mark in frame.file for mark in ("-packages/", "/lib/python3")):
        return "libraries"
    return "yours"


def write_stacks(stacks: Stacks, name: str, processes: Mapping[int, str]) -> dict[str, Any]:
    """Return the content of a file: a profile for every thread."""
    numbers: dict[Frame, int] = {}
    threads: dict[tuple[int, str], list[Stack]] = {}
    for stack in stacks.stacks:
        threads.setdefault((stack.process, stack.thread), []).append(stack)
    profiles = [
        thread_profile(title(processes, process, thread), found, stacks.rate, numbers)
        for (process, thread), found in threads.items()
    ]
    frames = [{"name": f.name, "file": f.place, "line": f.line} for f in numbers]
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "sparring",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


def thread_profile(
    name: str, stacks: Sequence[Stack], rate: int, numbers: dict[Frame, int]
) -> dict[str, Any]:
    samples = [
        [numbers.setdefault(frame, len(numbers)) for frame in stack.frames] for stack in stacks
    ]
    weights = [round(stack.samples / rate, 6) for stack in stacks]
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": round(sum(weights), 6),
        "samples": samples,
        "weights": weights,
    }


def title(processes: Mapping[int, str], process: int, thread: str) -> str:
    does = processes.get(process, "training")
    number = f" {process}" if list(processes.values()).count(does) > 1 else ""
    return f"{does}{number}, {thread}" if thread else f"{does}{number}"
