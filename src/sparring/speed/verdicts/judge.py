"""From what was seen to what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from sparring.speed.evidence import Evidence
from sparring.speed.stand import Gauge
from sparring.speed.verdicts import around, settings, theirs
from sparring.speed.verdicts.case import Candidate, Case, Verdict, counted, percent
from sparring.speed.verdicts.trials import Trials
from sparring.training.meter.share import LEAST_GAIN, WORDS

CANNOT_TELL = "cannot tell"
LEARNING = "the learning itself"
"""Nothing is wrong: the time goes into what a run is for."""
MOST_TRIES = 3
ALTERS = 0.7
"""What a gain counts for in the order, if it is paid for with other learning."""
PLAIN = 0.15
"""From such a gain on nobody has to be told what the learning itself costs."""
LAST = -1.0
"""What has nothing to do with the training is never first, whatever it brings."""
KNOWN = 0.5
"""Share of the time that has to be explained for a word about the whole."""
OF_ENVS = {theirs.SLOW_ENV, settings.WAITING_ENV, settings.FEW_WORKERS}
"""Causes that a step which takes long has by other names."""


def judge(evidence: Evidence, gauge: Gauge | None = None) -> list[Verdict]:
    """Return what to do, the most worthwhile first; never nothing.

    gauge: to time changes of settings before they are recommended; None: they are reckoned, as
        they are where no update was seen to end, since none would then either.
    """
    case = Case(evidence)
    wanted = distinct(settings.candidates(case))
    trials = None
    if gauge and case.repeatable and wanted and evidence.decisions_per_s:
        rows = max(one.rows for one in hopeful(wanted))
        trials = Trials(gauge, evidence.config, evidence.decisions_per_s, rows)
    changes, tried = weighed(wanted, trials if trials and trials.begin() else None)
    found = [*theirs.verdicts(case), *around.verdicts(case), *(one for _, one in changes)]
    found += slow_env(case, found)
    alters = {id(verdict) for one, verdict in changes if one.alters}
    found = [v for v in found if v.gain is None or v.gain >= LEAST_GAIN]
    found.sort(key=lambda v: worth(case, v, found, altering=id(v) in alters), reverse=True)
    if found and (found[0].gain or 0.0) >= PLAIN:
        return found
    return [*found, bound(case, tried, found=bool(found))]


def distinct(wanted: Sequence[Candidate]) -> list[Candidate]:
    """Every change once, for the cause that named it first."""
    found: list[Candidate] = []
    for one in wanted:
        if all(one.change != other.change for other in found):
            found.append(one)
    return found


def hopeful(wanted: Sequence[Candidate]) -> list[Candidate]:
    """Those that are worth timing."""
    return sorted(wanted, key=lambda one: one.hope, reverse=True)[:MOST_TRIES]


def weighed(
    wanted: Sequence[Candidate], trials: Trials | None
) -> tuple[list[tuple[Candidate, Verdict]], int]:
    """Candidates that are worth it, timed where that is possible, and how many were tried."""
    if trials is None:
        sure = [one for one in wanted if one.reckoned is not None]
        return best_of([(one, one.verdict(one.reckoned, timed=False)) for one in sure]), 0
    better, tried = [], 0
    for one in hopeful(wanted):
        late = not trials.left
        timed = trials.time(one.change)
        tried += timed is not None
        if timed is not None and timed.sure:
            better.append((one, one.verdict(timed.gain, timed=True)))
        elif late and one.reckoned is not None:
            better.append((one, one.verdict(one.reckoned, timed=False)))
    return best_of(better), tried


def best_of(found: Sequence[tuple[Candidate, Verdict]]) -> list[tuple[Candidate, Verdict]]:
    best: dict[str, tuple[Candidate, Verdict]] = {}
    for one, verdict in found:
        before = best.get(one.cause)
        if before is None or (verdict.gain or 0.0) > (before[1].gain or 0.0):
            best[one.cause] = one, verdict
    return list(best.values())


def slow_env(case: Case, found: Sequence[Verdict]) -> list[Verdict]:
    """A step that takes long, where no setting helps and nothing special is known of it."""
    share = max(case.env_share(), case.phase("stepping") if case.own_env else 0.0)
    if share < 0.3 or any(v.cause in OF_ENVS for v in found):
        return []
    return [theirs.slow(case, share - min(special(found), share))]


def special(found: Sequence[Verdict]) -> float:
    """Share of the time that is known to be something else than playing in the environment."""
    causes = {one.cause for one in theirs.WASTE.values()} | {theirs.NETWORK_INSIDE}
    return sum(v.share for v in found if v.cause in causes)


def worth(case: Case, verdict: Verdict, found: Sequence[Verdict], *, altering: bool) -> float:
    """What a verdict counts for in the order.

    Where most of a step is something that it can do without, that comes first: processes would
    only share it out.
    """
    gain = verdict.gain or 0.0
    if verdict.cause == theirs.SLOW_ENV and special(found) > 0.5 * max(case.env_share(), 1e-9):
        return min(gain, 0.0)
    if verdict.cause == around.BUSY:
        return LAST
    return gain * (ALTERS if altering else 1.0)


def bound(case: Case, tried: int, *, found: bool) -> Verdict:
    """Say where the time goes, and that nothing of what was tried is faster.

    tried: changes that were timed. found: something better has been named already.
    """
    phases = case.evidence.phases
    known = {name: share for name, share in phases.items() if name in WORDS and name != "other"}
    if sum(known.values()) < KNOWN:
        return unknown(case)
    name, share = max(known.items(), key=lambda one: one[1])
    text = f"{percent(share)} in {WORDS[name]}{how(case, name)}: that is the learning itself"
    if not found and tried:
        which = "the one other setting" if tried == 1 else f"none of {tried} other settings"
        text += f"; {which} that was timed is {'no ' * (tried == 1)}faster"
    elif not found:
        text += "; no setting stands out"
    return Verdict(LEARNING, text, share)


def how(case: Case, name: str) -> str:
    config = case.config
    games = counted(config.collect.games, "game")
    if name == "update" and config.algo == "ppo":
        epochs = counted(config.ppo.epochs, "epoch")
        return f", {epochs} in minibatches of {config.ppo.minibatch}"
    if name in ("update", "sampling") and case.remembers:
        return f", {config.replay.ratio:g} samples per decision in batches of {config.replay.batch}"
    if name == "inference":
        return f", {games} at once"
    if name == "stepping" and not case.own_env:
        return f", {games} on {counted(case.threads, 'thread')}"
    return ""


def unknown(case: Case) -> Verdict:
    evidence, facts = case.evidence, []
    if evidence.phases:
        most = max(evidence.phases.items(), key=lambda one: one[1])
        facts.append(f"{percent(most[1])} in {WORDS.get(most[0], most[0])}")
    if evidence.cpu_cores:
        facts.append(f"{evidence.cpu_cores:.1f} of {evidence.cores} cores were busy")
    missing = "; ".join(evidence.blind) or "look for longer (--seconds)"
    known = ", ".join(facts) or "nothing was seen"
    return Verdict(CANNOT_TELL, f"cannot tell: {known}; {missing}", 0.0)
