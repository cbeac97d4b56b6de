"""Self and total time of functions, flame graph blocks, and speedscope files, from stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from sparring.draw.charts.flame import FlameBlock
from sparring.speed.code import LOOP, phase_of
from sparring.speed.evidence import CallStack, CallStacks, Evidence, Frame

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
Key = tuple[str, str]
"""A function: (name, file)."""
ENTRY_FILES = ("runpy.py", "<frozen runpy>")
"""Files through which Python enters a program; they are on every stack."""
NATIVE_TORCH = ("libtorch", "libc10", "libgomp", "libmkl", "libcudnn", "libcublas", "libcaffe")


@dataclass(frozen=True)
class Function:
    """Cost of a function, as shares of all samples."""

    name: str
    file: str
    line: int
    """Line of most of its samples."""
    self_share: float
    """Time in the function itself."""
    total_share: float
    """Time in the function and its callees; a recursive function counts once."""
    native: bool

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def function_costs(stacks: CallStacks) -> list[Function]:
    """Return every sampled function, largest self time first."""
    self_samples: Counter[Key] = Counter()
    total: Counter[Key] = Counter()
    lines: dict[Key, Counter[tuple[bool, int]]] = {}
    native: dict[Key, bool] = {}
    for stack in stacks.stacks:
        last = stack.frames[-1]
        self_samples[key_of(last)] += stack.samples
        innermost = {key_of(frame): frame for frame in stack.frames}
        for key, frame in innermost.items():
            total[key] += stack.samples
            native[key] = frame.native
            lines.setdefault(key, Counter())[frame is last, frame.line] += stack.samples
    samples = max(stacks.samples, 1)
    functions = [
        Function(
            *key, line_of(lines[key]), self_samples[key] / samples, count / samples, native[key]
        )
        for key, count in total.items()
    ]
    return sorted(functions, key=lambda one: (-one.self_share, -one.total_share, one.name))


def line_of(lines: Counter[tuple[bool, int]]) -> int:
    """Return the line of most samples: in the function itself if it has any, else in its calls."""
    inside = any(is_last for is_last, _ in lines)
    return next(line for (is_last, line), _ in lines.most_common() if is_last == inside)


def costliest(functions: Iterable[Function], most: int, *, by: str) -> list[Function]:
    share = attrgetter(f"{by}_share")
    found = [one for one in functions if share(one) > 0]
    return sorted(found, key=lambda one: (-share(one), -one.self_share, one.name))[:most]


def key_of(frame: Frame) -> Key:
    return frame.name, frame.short_file


def flame_blocks(evidence: Evidence) -> FlameBlock:
    """Return all stacks as a tree of blocks: processes and threads, then calls."""
    root = FlameBlock("all", "", "root")
    for stack in evidence.all_stacks.stacks:
        name = title(evidence.processes, stack.process, stack.thread)
        block = root.inner(name, "", "root")
        add_stack(block, stack)
    root.total = sum(block.total for block in root.blocks.values())
    return root


def add_stack(block: FlameBlock, stack: CallStack) -> None:
    block.total += stack.samples
    for frame in without_entry(stack.frames):
        block = block.inner(frame.name, frame.short_file, kind_of(frame))
        block.total += stack.samples
        block.lines[frame.line] = block.lines.get(frame.line, 0) + stack.samples


def without_entry(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Leave out the frames up to the training loop, which are the same on every stack."""
    for at, frame in enumerate(frames):
        if phase_of(frame) == LOOP:
            return frames[at:]
    first = 0
    for at, frame in enumerate(frames[:-1]):
        file = frame.short_file
        enters = frame.native and file.startswith(("libc.", "libpython", "python"))
        if enters or file in ENTRY_FILES:
            first = at + 1
        else:
            break
    return frames[first:]


def kind_of(frame: Frame) -> str:
    file = frame.short_file
    if frame.native:
        if file.startswith("_native"):
            return "sparring native"
        return "torch native" if file.startswith(NATIVE_TORCH) else "native"
    package = file.partition("/")[0]
    if package == "sparring":
        return "sparring"
    if package == "torch":
        return "torch"
    if file.startswith("<") or any(mark in frame.file for mark in ("-packages/", "/lib/python3")):
        return "libraries"
    return "yours"


def to_speedscope(stacks: CallStacks, name: str, processes: Mapping[int, str]) -> dict[str, Any]:
    """Return the content of a speedscope file: one profile per thread."""
    numbers: dict[Frame, int] = {}
    threads: dict[tuple[int, str], list[CallStack]] = {}
    for stack in stacks.stacks:
        threads.setdefault((stack.process, stack.thread), []).append(stack)
    profiles = [
        thread_profile(title(processes, process, thread), found, stacks.rate, numbers)
        for (process, thread), found in threads.items()
    ]
    frames = [{"name": f.name, "file": f.short_file, "line": f.line} for f in numbers]
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "sparring",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


def thread_profile(
    name: str, stacks: Sequence[CallStack], rate: int, numbers: dict[Frame, int]
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
    kind = processes.get(process, "training")
    number = f" {process}" if list(processes.values()).count(kind) > 1 else ""
    return f"{kind}{number}, {thread}" if thread else f"{kind}{number}"
