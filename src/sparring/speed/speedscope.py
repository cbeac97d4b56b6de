"""Stacks as speedscope has them: a format that py-spy writes and that browsers show.

The format is documented at https://github.com/jlfwong/speedscope/wiki; of its two kinds of
profiles the sampled one is read and written.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparring.errors import SparringError
from sparring.speed.evidence import Frame, Stack, Stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
THREAD = re.compile(r'(?:Process (\d+) )?Thread (0x[0-9a-f]+|\d+)(?: "(.*)")?$')
"""What py-spy calls a profile."""
ABOVE = re.compile(r"(?:process|thread) .*")
"""Frames that are no functions: py-spy puts processes and threads in front of the stacks."""
UNKNOWN = re.compile(r"0x[0-9a-f]+$")
NO_SYMBOL = "(no symbol)"
KEPT = re.compile(r"\(anonymous namespace\)|operator(?:\(\)|<=>|<<=?|>>=?|<=?|>=?|->\*?)")
"""What looks like types and is part of a name."""
STANDS_FOR = 0xE000
"""Letters from here on belong to nobody, and stand for what is kept."""
TYPES = re.compile(r"<[^<>()]*>|\([^<>()]*\)")


def read_stacks(plain: Mapping[str, Any], rate: int, *, process: int = 0) -> Stacks:
    """Return the stacks of a file, equal ones together.

    process: of profiles that do not name theirs.
    """
    try:
        frames = [frame_of(one) for one in plain["shared"]["frames"]]
        found: Counter[tuple[tuple[Frame, ...], str, int]] = Counter()
        for profile in plain["profiles"]:
            named = THREAD.match(profile["name"])
            thread = (named[3] or "") if named else profile["name"]
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


def at_work(
    plain: Mapping[str, Any], used: Mapping[tuple[int, int], float], pid: int, rate: int
) -> dict[str, Any]:
    """Leave out samples of threads that waited; the main thread of process `pid` keeps all.

    used: CPU seconds by process and thread. A thread has no more samples than these allow, and
    waits where it is met most often.
    """
    kept = []
    for profile in plain["profiles"]:
        named = THREAD.match(profile["name"])
        number = int(named[2], 0) if named else pid
        process = int(named[1] or pid) if named else pid
        if (process, number) != (pid, pid):
            allowed = math.ceil(used.get((process, number), 0.0) * rate)
            samples = without_waiting(profile["samples"], allowed)
            weights = [1 / rate] * len(samples)
            kept.append({**profile, "samples": samples, "weights": weights})
        else:
            kept.append(profile)
    return {**plain, "profiles": kept}


def without_waiting(samples: Sequence[Sequence[int]], allowed: int) -> list[Sequence[int]]:
    """Keep no more than so many; of the stacks that are met most often the others are left out."""
    over = max(len(samples) - allowed, 0)
    waits: Counter[tuple[int, ...]] = Counter()
    for stack, times in Counter(map(tuple, samples)).most_common():
        waits[stack] = min(times, over)
        over -= waits[stack]
    kept = []
    for sample in samples:
        if waits[tuple(sample)]:
            waits[tuple(sample)] -= 1
        else:
            kept.append(sample)
    return kept


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
    kept: list[str] = []

    def keep(part: re.Match[str]) -> str:
        kept.append(part[0])
        return chr(STANDS_FOR + len(kept) - 1)

    short, before = KEPT.sub(keep, name), ""
    while short != before:
        before, short = short, TYPES.sub("", short)
    for number, part in enumerate(kept):
        short = short.replace(chr(STANDS_FOR + number), part)
    return short.strip() or name


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
