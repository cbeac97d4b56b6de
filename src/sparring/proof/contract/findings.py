"""Results of checking an environment: properties, verdicts, and where they were seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

OK, NOTE, UNSURE, WRONG = "ok", "note", "cannot tell", "wrong"
"""Verdicts. A note is right or wrong depending on what the author intends."""

PROPERTIES = (
    "spaces",
    "reset and step",
    "observations",
    "kept observations",
    "masks",
    "legal actions",
    "forbidden actions",
    "rewards",
    "agents",
    "autoreset",
    "ends",
    "after the end",
    "last observation",
    "reset twice",
    "same object",
    "fresh object",
    "global random numbers",
    "other process",
    "seeds",
    "independence",
    "close",
    "time",
    "memory",
)
"""Properties that are checked, in the order of the report."""


@dataclass(frozen=True)
class Location:
    """Where something was seen: the seed of the reset, the episode of the check, and its step."""

    seed: int | None = None
    episode: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        named = (("seed", self.seed), ("episode", self.episode), ("step", self.step))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


NO_LOCATION = Location()


@dataclass(frozen=True)
class EnvFinding:
    """One property of an environment."""

    name: str
    verdict: str
    detail: str
    advice: str = ""
    seed: int | None = None
    episode: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        location = str(Location(self.seed, self.episode, self.step))
        where = f"{location}: {self.detail}" if location else self.detail
        hint = f"; {self.advice}" if self.advice else ""
        return f"{self.verdict} {self.name}: {where}{hint}"


@dataclass
class EnvReport:
    """Result of `check_env`."""

    env: str
    kind: str
    episodes: int = 0
    steps: int = 0
    findings: list[EnvFinding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether no property is wrong; unknown ones do not count."""
        return not any(finding.verdict == WRONG for finding in self.findings)

    def __getitem__(self, name: str) -> EnvFinding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return "\n".join([f"{self.env} ({self.kind}): {verdict}", *map(str, self.findings)])


class FindingLog:
    """Collects findings; of every property the first fault is reported."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], EnvFinding] = {}
        self._count: dict[tuple[str, str], int] = {}
        self.skipped: set[str] = set()
        """Properties that this kind of environment does not have."""

    def add(self, name: str, verdict: str, detail: str, advice: str, location: Location) -> None:
        key = (name, verdict)
        self._count[key] = self._count.get(key, 0) + 1
        if key not in self._first:
            at = (location.seed, location.episode, location.step)
            self._first[key] = EnvFinding(name, verdict, detail, advice, *at)

    def wrong(
        self, name: str, detail: str, advice: str = "", location: Location = NO_LOCATION
    ) -> None:
        self.add(name, WRONG, detail, advice, location)

    def unsure(
        self, name: str, detail: str, advice: str = "", location: Location = NO_LOCATION
    ) -> None:
        self.add(name, UNSURE, detail, advice, location)

    def note(
        self, name: str, detail: str, advice: str = "", location: Location = NO_LOCATION
    ) -> None:
        self.add(name, NOTE, detail, advice, location)

    def ok(self, name: str, detail: str) -> None:
        self.add(name, OK, detail, "", NO_LOCATION)

    def is_wrong(self, name: str) -> bool:
        return (name, WRONG) in self._count

    def findings(self) -> list[EnvFinding]:
        """Return the worst verdict of every property."""
        found = []
        for name in PROPERTIES:
            if name in self.skipped:
                continue
            verdict = next((v for v in (WRONG, UNSURE, NOTE, OK) if (name, v) in self._first), "")
            if not verdict:
                found.append(EnvFinding(name, UNSURE, "the env did not get that far"))
                continue
            first, more = self._first[name, verdict], self._count[name, verdict] - 1
            others = f" (and {more:,} more)" if more and verdict == WRONG else ""
            found.append(EnvFinding(**{**asdict(first), "detail": first.detail + others}))
        return found
