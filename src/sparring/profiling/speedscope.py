"""Stacks as speedscope has them: a format that py-spy writes and that browsers show.

The format is documented at https://github.com/jlfwong/speedscope/wiki; of its two kinds of
profiles the sampled one is read and written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparring.errors import SparringError
from sparring.profiling.evidence import Frame, Stack, Stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
THREAD = re.compile(r'(?:Process (\d+) )?Thread (?:0x[0-9a-f]+|\d+)(?: "(.*)")?$')
"""What py-spy calls a profile."""
ABOVE = re.compile(r"(?:process|thread) .*")
"""Frames that are no functions: py-spy puts processes and threads in front of the stacks."""
UNKNOWN = re.compile(r"0x[0-9a-f]+$")
NO_SYMBOL = "(no symbol)"
MARKS = "<>()"


def read_stacks(plain: Mapping[str, Any], rate: int, *, process: int = 0) -> Stacks:
    """Return the stacks of a file, equal ones together.

    process: of profiles that do not name theirs.
    """
    try:
        frames = [frame_of(one) for one in plain["shared"]["frames"]]
        found: Counter[tuple[tuple[Frame, ...], str, int]] = Counter()
        for profile in plain["profiles"]:
            named = THREAD.match(profile["name"])
            thread = (named[2] or "") if named else profile["name"]
            where = int(named[1] or process) if named else process
            counted = Counter(map(tuple, profile["samples"]))
            for numbers, samples in counted.items():
                stack = tuple(one for one in (frames[at] for at in numbers) if one is not None)
                if stack:
                    found[stack, thread, where] += samples
    except (KeyError, IndexError, TypeError, ValueError) as wrong:
        raise SparringError(f"the sampled stacks cannot be read: {wrong!r}") from wrong
    stacks = (Stack(stack, samples, *of) for (stack, *of), samples in found.items())  # type: ignore[arg-type]
    return Stacks(tuple(sorted(stacks, key=lambda one: -one.samples)), rate)


def frame_of(plain: Mapping[str, Any]) -> Frame | None:
    """Return a function; None for what is none."""
    name, file = str(plain["name"]), str(plain.get("file") or "")
    if not file and ABOVE.fullmatch(name):
        return None
    if not file.endswith(".py") and not file.startswith("<"):
        file = file.rpartition("/")[2]
        name = NO_SYMBOL if UNKNOWN.match(name) else short_name(name)
    return Frame(name, file, int(plain.get("line") or 0))


def short_name(name: str) -> str:
    """A native function's name without the types that it was made for: they fill pages."""
    kept, depth, opened = [], 0, 0
    operator = name.find("operator")
    for at, mark in enumerate(name):
        # The marks of operator<, operator() and (anonymous namespace) belong to the name.
        if mark in MARKS and not 0 <= at - operator - len("operator") <= 1:
            if mark in "<(" and not name.startswith("(anonymous", at):
                depth += 1
            elif mark in ">)" and depth:
                depth -= 1
                opened = at
                continue
        if not depth:
            kept.append(mark)
    short = "".join(kept).strip()
    return short if short and not depth else name[: max(opened, 80)]


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
    """Return the stacks of a thread; each is one sample as long as it was met."""
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
    """Say which thread it is, and what its process does."""
    does = processes.get(process, "training")
    number = f" {process}" if list(processes.values()).count(does) > 1 else ""
    return f"{does}{number}, {thread}" if thread else f"{does}{number}"
