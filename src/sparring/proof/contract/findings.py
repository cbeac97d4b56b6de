"""What came out of looking at an environment: properties, verdicts, places that show them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

OK, TOLD, UNSURE, WRONG = "ok", "told", "cannot tell", "wrong"
"""Verdicts. Told: good or bad depends on what was meant."""

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
"""What is looked at, in the order in which it is told."""


@dataclass(frozen=True)
class Place:
    """Where something was seen: the seed of the reset, the episode of the check and its step."""

    seed: int | None = None
    episode: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        named = (("seed", self.seed), ("episode", self.episode), ("step", self.step))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


NOWHERE = Place()


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
        place = str(Place(self.seed, self.episode, self.step))
        told = f"{place}: {self.detail}" if place else self.detail
        hint = f"; {self.advice}" if self.advice else ""
        return f"{self.verdict} {self.name}: {told}{hint}"


@dataclass
class EnvReport:
    """What `check_env` found."""

    env: str
    kind: str
    episodes: int = 0
    steps: int = 0
    findings: list[EnvFinding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong; what cannot be told does not count."""
        return not any(finding.verdict == WRONG for finding in self.findings)

    def __getitem__(self, name: str) -> EnvFinding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def plain(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {**asdict(self), "passed": self.passed}

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return "\n".join([f"{self.env} ({self.kind}): {verdict}", *map(str, self.findings)])


class Ledger:
    """Collects what is seen of an env; of every property the first fault is kept."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], EnvFinding] = {}
        self._count: dict[tuple[str, str], int] = {}
        self.skipped: set[str] = set()
        """Properties that this kind of env does not have."""

    def add(self, name: str, verdict: str, detail: str, advice: str, place: Place) -> None:
        """Note something about a property."""
        key = (name, verdict)
        self._count[key] = self._count.get(key, 0) + 1
        if key not in self._first:
            at = (place.seed, place.episode, place.step)
            self._first[key] = EnvFinding(name, verdict, detail, advice, *at)

    def wrong(self, name: str, detail: str, advice: str = "", place: Place = NOWHERE) -> None:
        """Note that a property does not hold."""
        self.add(name, WRONG, detail, advice, place)

    def unsure(self, name: str, detail: str, advice: str = "", place: Place = NOWHERE) -> None:
        """Note that it cannot be told whether a property holds."""
        self.add(name, UNSURE, detail, advice, place)

    def tell(self, name: str, detail: str, advice: str = "", place: Place = NOWHERE) -> None:
        """Note something that may be meant or not."""
        self.add(name, TOLD, detail, advice, place)

    def ok(self, name: str, detail: str) -> None:
        """Note that a property holds."""
        self.add(name, OK, detail, "", NOWHERE)

    def is_wrong(self, name: str) -> bool:
        """Whether something speaks against a property."""
        return (name, WRONG) in self._count

    def findings(self) -> list[EnvFinding]:
        """Return the worst that is known about every property."""
        found = []
        for name in PROPERTIES:
            if name in self.skipped:
                continue
            verdict = next((v for v in (WRONG, UNSURE, TOLD, OK) if (name, v) in self._first), "")
            if not verdict:
                found.append(EnvFinding(name, UNSURE, "the env did not get that far"))
                continue
            first, more = self._first[name, verdict], self._count[name, verdict] - 1
            told = f" (and {more:,} more)" if more and verdict == WRONG else ""
            found.append(EnvFinding(**{**asdict(first), "detail": first.detail + told}))
        return found
