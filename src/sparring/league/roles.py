"""Roles in a league: the opponents of each, and when an exploiter restarts.

A main agent meets all policies. An exploiter looks for weaknesses of the main agents and meets only
them. A league exploiter looks for weaknesses of the whole league: it meets everybody's past, those
of exploiters too, more often whom it does not beat. When an exploiter of either kind wins or
stalls, it is archived, where main agents meet it, and starts again, from fresh weights or those of
the newest main agent (`league.restart`). What a run does for each verdict:

| verdict | |
|---|---|
| go on | nothing |
| won | archive a snapshot with its role, then restart |
| stalled | the same, if it wins at least WORTH_KEEPING |

A restart gives the learner these weights and a fresh optimizer, clears its results and begins a new
`Attempt` at the current number of decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sparring.errors import SparringError
from sparring.league.matchmaking import ArchivedPolicy, WinDrawLoss

MAIN, EXPLOITER, LEAGUE_EXPLOITER = "main", "exploiter", "league-exploiter"
EXPLOITERS = (EXPLOITER, LEAGUE_EXPLOITER)
FIXED = "fixed"
"""Role of policies that line-ups name; no mix contains them."""

WON = 0.7
"""Share of the points against the newest main agent (of a league exploiter: against everybody) at
which an exploiter has won."""
HOPELESS = 0.2
"""Below this share the newest main agent is too strong to learn from; its past is met as well."""
WORTH_KEEPING = 0.3
"""Share at which a stalled attempt is archived: below it, it has found no weakness."""
VERDICT_GAMES = 400
"""Games that count before a verdict: by chance an equal player would win 70 % of
this many once in 10**15 times."""
GAIN = 0.02
"""Increase over the best share that counts as progress."""

Verdict = Literal["go on", "won", "stalled"]


@dataclass(frozen=True)
class AttemptLimits:
    """Decisions after which an attempt of an exploiter has stalled."""

    limit: int
    """In all."""
    patience: int
    """Without progress."""


@dataclass(frozen=True)
class Attempt:
    """Progress of an exploiter since its last restart; saved in checkpoints."""

    began: int = 0
    """Decisions of the run at its start."""
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

    def restarted(self, decisions: int) -> Attempt:
        return Attempt(began=decisions, best_at=decisions, number=self.number + 1)


def default_limits(every: int) -> AttemptLimits:
    """Return the limits in terms of the snapshot interval: 40 of them, 10 without progress."""
    return AttemptLimits(limit=40 * every, patience=10 * every)


def allowed_opponents(role: str, policies: Sequence[ArchivedPolicy]) -> list[ArchivedPolicy]:
    """Return the policies that a role may meet: an exploiter meets main agents only."""
    if role == EXPLOITER:
        return [policy for policy in policies if policy.role not in EXPLOITERS]
    return list(policies)


def sampling_for(role: str, sampling: str, against_newest: WinDrawLoss) -> str:
    """Return how the opponents of an agent are sampled: as configured, except for exploiters.

    A league exploiter meets whom it does not beat.

    An exploiter mostly meets the newest main agent. While it always loses to that policy, it meets
    past ones of equal strength instead: losing alone teaches nothing.
    """
    if role != EXPLOITER:
        return "pfsp" if role == LEAGUE_EXPLOITER else sampling
    few = against_newest.games < VERDICT_GAMES
    return "newest" if few or point_share(against_newest) >= HOPELESS else "pfsp-even"


def judge(
    attempt: Attempt, judged: WinDrawLoss, decisions: int, limits: AttemptLimits
) -> tuple[Verdict, Attempt]:
    """Return the verdict on an attempt, and the attempt with its best share updated.

    judged: results of this attempt against the newest main agent, of a league exploiter against
    everybody, old ones decayed.
    decisions: of the run so far.
    """
    enough = judged.games >= VERDICT_GAMES
    share = point_share(judged)
    if enough and share >= WON:
        return "won", replace(attempt, best_share=share, best_at=decisions)
    if enough and share >= attempt.best_share + GAIN:
        attempt = replace(attempt, best_share=share, best_at=decisions)
    over_limit = decisions - attempt.began >= limits.limit
    no_progress = decisions - attempt.best_at >= limits.patience
    return ("stalled" if over_limit or no_progress else "go on"), attempt


def worth_keeping(verdict: Verdict, attempt: Attempt) -> bool:
    """Whether a finished attempt goes into the archive."""
    return verdict == "won" or (verdict == "stalled" and attempt.best_share >= WORTH_KEEPING)


def point_share(results: WinDrawLoss) -> float:
    """Return the share of the points without a prior; 0 before the first game."""
    return results.points / results.games if results.games else 0.0
