"""From what was seen to what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.speed.evidence import Evidence
from sparring.speed.stand import Gauge
from sparring.speed.verdicts import around, bound, own_env, players, settings, unusual
from sparring.speed.verdicts.case import Candidate, Case
from sparring.speed.verdicts.told import CANNOT_TELL, LEARNING, Verdict, expected, typed
from sparring.speed.verdicts.trying import WORTH, Bench, Timed

__all__ = ["CANNOT_TELL", "LEARNING", "Verdict", "judge"]

MOST_TRIES = 3
ALTERS = 0.7
"""What a gain counts for in the order, if it is paid for with other learning."""
PLAIN = 0.15
"""From such a gain on nobody has to be told what the learning itself costs."""
LAST = -1.0
"""What has nothing to do with the training is never first, whatever it brings."""


def judge(evidence: Evidence, gauge: Gauge | None = None) -> list[Verdict]:
    """Return what to do, the most worthwhile first; never nothing.

    gauge: to time changes of settings before they are recommended; None: they are reckoned, as
        they are where no update was seen to end, since none would then either.
    """
    case = Case(evidence)
    wanted = distinct(
        [*players.candidates(case), *settings.candidates(case), *unusual.candidates(case)]
    )
    bench = None
    if gauge and case.repeatable and wanted and evidence.decisions_per_s:
        bench = Bench(gauge, evidence.config, evidence.decisions_per_s)
    changes, tried = weighed(wanted, bench)
    code = [*own_env.verdicts(case), *players.verdicts(case), *around.verdicts(case)]
    found = [*code, *(verdict for _, verdict in changes)]
    found += slow_env(case, found)
    alters = {id(verdict) for one, verdict in changes if one.alters}
    found = [v for v in found if v.gain is None or v.gain >= WORTH]
    found.sort(key=lambda v: worth(case, v, found, altering=id(v) in alters), reverse=True)
    if found and (found[0].gain or 0.0) >= PLAIN:
        return found
    return [*found, bound.verdict(case, tried, found=bool(found))]


def distinct(wanted: Sequence[Candidate]) -> list[Candidate]:
    """Every change once, for the cause that named it first."""
    found: list[Candidate] = []
    for one in wanted:
        if all(one.change != other.change for other in found):
            found.append(one)
    return found


def weighed(
    wanted: Sequence[Candidate], bench: Bench | None
) -> tuple[list[tuple[Candidate, Verdict]], int]:
    """Candidates that are worth it, timed where that is possible, and how many were tried."""
    first = sorted(wanted, key=lambda one: one.hope, reverse=True)[:MOST_TRIES]
    rows = max((one.rows for one in first), default=0)
    if bench is None or not bench.begin(samples=rows):
        sure = [one for one in wanted if one.reckoned is not None]
        return best_of([(one, told(one, None)) for one in sure]), 0
    better, tried = [], 0
    for one in first:
        late = not bench.left
        timed = bench.time(one.change)
        tried += timed is not None
        if timed is not None and timed.sure:
            better.append((one, told(one, timed)))
        elif late and one.reckoned is not None:
            better.append((one, told(one, None)))
    return best_of(better), tried


def best_of(found: Sequence[tuple[Candidate, Verdict]]) -> list[tuple[Candidate, Verdict]]:
    """The best change for every cause."""
    best: dict[str, tuple[Candidate, Verdict]] = {}
    for one, verdict in found:
        before = best.get(one.cause)
        if before is None or (verdict.gain or 0.0) > (before[1].gain or 0.0):
            best[one.cause] = one, verdict
    return list(best.values())


def told(one: Candidate, timed: Timed | None) -> Verdict:
    """A candidate as a verdict."""
    gain = timed.gain if timed else one.reckoned
    hope = f"; {expected(gain, timed=timed is not None)}" if gain is not None else ""
    return Verdict(
        one.cause,
        f"{one.why}: {one.advice}{hope}",
        one.share,
        gain,
        timed is not None,
        typed(one.change),
        one.change,
    )


def slow_env(case: Case, found: Sequence[Verdict]) -> list[Verdict]:
    """A step that takes long, where no setting helps and nothing special is known of it."""
    share = max(case.places.env_share(), case.phase("stepping") if case.own_env else 0.0)
    named = {settings.SLOW_ENV, settings.WAITING_ENV, settings.FEW_WORKERS}
    if share < 0.3 or any(v.cause in named for v in found):
        return []
    return [own_env.slow(case, share - min(special(case, found), share))]


def special(case: Case, found: Sequence[Verdict]) -> float:
    """Share of the time that is known to be something else than playing in the environment."""
    causes = {one.cause for one in own_env.WASTE.values()} | {own_env.NETWORK_INSIDE}
    return sum(v.share for v in found if v.cause in causes)


def worth(case: Case, verdict: Verdict, found: Sequence[Verdict], *, altering: bool) -> float:
    """What a verdict counts for in the order.

    Where most of a step is something that it can do without, that comes first: processes would
    only share it out.
    """
    gain = verdict.gain or 0.0
    inside = max(case.places.env_share(), 1e-9)
    if verdict.cause == settings.SLOW_ENV and special(case, found) > 0.5 * inside:
        return min(gain, 0.0)
    if verdict.cause == around.BUSY:
        return LAST
    return gain * (ALTERS if altering else 1.0)
