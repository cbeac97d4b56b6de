"""What an agent of a league is for, whom it meets, and when an exploiter begins anew.

A main agent meets everybody. An exploiter looks for weaknesses of the main agents: it meets them
alone, and as soon as it wins, or stalls, it is frozen into the archive, where main agents meet it,
and starts again from fresh weights. What a run has to do about a verdict:

| verdict | |
|---|---|
| go on | nothing |
| won | keep a snapshot with the role `exploiter`, then begin anew |
| stalled | the same: what it has found so far is worth meeting, if it wins anything at all |

To begin anew is to give the learner fresh weights and a fresh optimizer, to forget its results, and
to start an `Attempt` at the decisions made so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sparring.errors import SparringError
from sparring.league.matchmaking import ArchivedPolicy, WinDrawLoss

MAIN, EXPLOITER = "main", "exploiter"
FIXED = "fixed"
"""The role of policies that line-ups name. Nobody draws them from a mix."""

WON = 0.7
"""Share of the points against the newest main agent with which an exploiter has won."""
HOPELESS = 0.2
"""Below this share the newest is too strong to learn from; its past is met as well."""
WORTH_KEEPING = 0.3
"""Share from which an attempt that stalled is kept: less is no weakness of anybody."""
VERDICT_GAMES = 400
"""Games against the newest main agent before there is a verdict: by chance an equal would have 70 %
of so many once in 10**15 times."""
GAIN = 0.02
"""How much more than the best share counts as progress."""

Verdict = Literal["go on", "won", "stalled"]


@dataclass(frozen=True)
class AttemptLimits:
    """How long an attempt may take, in decisions of the exploiter."""

    limit: int
    """After so many it has stalled in any case."""
    patience: int
    """After so many without progress, too."""


@dataclass(frozen=True)
class Attempt:
    """How an exploiter has done since it began; plain values, for a checkpoint."""

    began: int = 0
    """Decisions of the run when it did."""
    best_share: float = 0.0
    best_at: int = 0
    """Decisions of the run at the last progress."""
    number: int = 1

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Attempt:
        try:
            return cls(**state)
        except TypeError as wrong:
            raise SparringError(f"the attempt of an exploiter cannot be read: {wrong}") from None

    def state(self) -> dict[str, Any]:
        return asdict(self)

    def anew(self, decisions: int) -> Attempt:
        return Attempt(began=decisions, best_at=decisions, number=self.number + 1)


def default_limits(every: int) -> AttemptLimits:
    """Return the terms for snapshots every so many decisions: 40 of them, 10 without progress."""
    return AttemptLimits(limit=40 * every, patience=10 * every)


def allowed_opponents(role: str, known: Sequence[ArchivedPolicy]) -> list[ArchivedPolicy]:
    """Return whom an agent of a role may meet: a main agent all, an exploiter main agents alone."""
    if role == EXPLOITER:
        return [one for one in known if one.role != EXPLOITER]
    return list(known)


def sampling_for(role: str, choose: str, against_newest: WinDrawLoss) -> str:
    """Return how the opponents of an agent are chosen: as it is set, but for an exploiter.

    An exploiter meets the newest in most games. As long as that is hopeless it meets those of the
    past that it can hold, as there is nothing to learn from losing alone.
    """
    if role != EXPLOITER:
        return choose
    few = against_newest.games < VERDICT_GAMES
    return "newest" if few or point_share(against_newest) >= HOPELESS else "pfsp-even"


def judge(
    attempt: Attempt, against_newest: WinDrawLoss, decisions: int, terms: AttemptLimits
) -> tuple[Verdict, Attempt]:
    """Return the verdict on an attempt, and the attempt with what is its best share now.

    against_newest: results of this attempt against the newest main agent, old ones decayed.
    decisions: of the run so far.
    """
    enough = against_newest.games >= VERDICT_GAMES
    share = point_share(against_newest)
    if enough and share >= WON:
        return "won", replace(attempt, best_share=share, best_at=decisions)
    if enough and share >= attempt.best_share + GAIN:
        attempt = replace(attempt, best_share=share, best_at=decisions)
    late = decisions - attempt.began >= terms.limit
    tired = decisions - attempt.best_at >= terms.patience
    return ("stalled" if late or tired else "go on"), attempt


def worth_keeping(verdict: Verdict, attempt: Attempt) -> bool:
    """Whether an attempt that has ended goes into the archive."""
    return verdict == "won" or (verdict == "stalled" and attempt.best_share >= WORTH_KEEPING)


def point_share(results: WinDrawLoss) -> float:
    """The share of the points, without any prior; 0 before the first game."""
    return results.points / results.games if results.games else 0.0
