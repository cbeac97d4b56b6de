"""Short names of agents, for charts and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

RUN = re.compile(
    r"(?P<game>\w+)-(?P<algo>[\w.:]+)-(?P<day>\d{8})-(?P<time>\d{6})(?:-(?P<more>[^/]+))?"
)


def short_name(name: str) -> str:
    """Return a short name: skull_king-ppo-20261115-214501/120 becomes ppo 214501/120.

    For a run with its own name, or any other folder, that is the last part of its path.
    """
    parts = [part for part in name.rstrip("/").split("/") if part]
    number = ""
    if len(parts) > 1 and parts[-1].isdecimal():
        number = f"/{int(parts.pop())}"
        if len(parts) > 1 and parts[-1] == "checkpoints":
            parts.pop()
    last = parts[-1] if parts else name
    match = RUN.fullmatch(last)
    return (f"{match['algo']} {match['more'] or match['time']}" if match else last) + number


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return short names; names whose short form is not unique stay unchanged."""
    short = {name: short_name(name) for name in names}
    used = list(short.values())
    return tuple(short[name] if used.count(short[name]) == 1 else name for name in names)
