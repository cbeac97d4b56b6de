"""From what was seen to what to do about it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.speed.evidence import Evidence
from sparring.speed.rounds import has_replay, steady
from sparring.speed.timer import OpenSessions, Timer, TimerProcess, UnfitError
from sparring.speed.verdicts import around, settings, theirs
from sparring.speed.verdicts.case import Candidate, Case, Verdict, counted, percent
from sparring.training.planning.settings import merged
from sparring.training.utilization.advice import MIN_GAIN
from sparring.training.utilization.share import PHASE_NAMES

CANNOT_TELL = "cannot tell"
LEARNING = "the learning itself"
"""Nothing is wrong: the time goes into what a run is for."""
MAX_TRIES = 3
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
PAIRS, MORE_PAIRS = 3, 5
SEEMS = 1.1
"""A ratio that is worth two more pairs, where the first three disagree."""
WINDOW_S = 0.6
TRIALS_S = 15.0
"""After which no change is tried that was not begun."""
LONG_S = 0.9
"""A round that takes longer is timed with shorter rollouts: it is the same work, less of it."""
MIN_STEPS = 2
NOW, THEN = "now", "then"


def judge(evidence: Evidence, timer: TimerProcess | None = None) -> list[Verdict]:
    """Return what to do, the most worthwhile first; never nothing.

    timer: to time changes of settings before they are recommended; None: they are reckoned, as
        they are where no update was seen to end, since none would then either.
    """
    case = Case(evidence)
    wanted = distinct(settings.candidates(case))
    trials = None
    if timer and case.repeatable and wanted and evidence.decisions_per_s:
        rows = max(one.rows for one in hopeful(wanted))
        trials = Trials(timer, evidence.config, evidence.decisions_per_s, rows)
    changes, tried = weighed(wanted, trials if trials and trials.begin() else None)
    found = [*theirs.verdicts(case), *around.verdicts(case), *(one for _, one in changes)]
    found += slow_env(case, found)
    alters = {id(verdict) for one, verdict in changes if one.alters}
    found = [v for v in found if v.gain is None or v.gain >= MIN_GAIN]
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
    return sorted(wanted, key=lambda one: one.hope, reverse=True)[:MAX_TRIES]


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
    share = max(case.env_share(), case.phase("stepping") if case.custom_env else 0.0)
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
    known = {
        name: share for name, share in phases.items() if name in PHASE_NAMES and name != "other"
    }
    if sum(known.values()) < KNOWN:
        return unknown(case)
    name, share = max(known.items(), key=lambda one: one[1])
    text = f"{percent(share)} in {PHASE_NAMES[name]}{how(case, name)}: that is the learning itself"
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
    if name == "stepping" and not case.custom_env:
        return f", {games} on {counted(case.threads, 'thread')}"
    return ""


def unknown(case: Case) -> Verdict:
    evidence, facts = case.evidence, []
    if evidence.phases:
        most = max(evidence.phases.items(), key=lambda one: one[1])
        facts.append(f"{percent(most[1])} in {PHASE_NAMES.get(most[0], most[0])}")
    if evidence.cpu_cores:
        facts.append(f"{evidence.cpu_cores:.1f} of {evidence.cores} cores were busy")
    missing = "; ".join(evidence.blind) or "look for longer (--seconds)"
    known = ", ".join(facts) or "nothing was seen"
    return Verdict(CANNOT_TELL, f"cannot tell: {known}; {missing}", 0.0)


@dataclass(frozen=True)
class Timed:
    """A change beside what is."""

    ratios: tuple[float, ...]
    """Of decisions per second, one of each pair of windows."""

    @property
    def gain(self) -> float:
        """What may be promised: the worst, as what follows has to be at least half of it.

        Of five or more, one may have met a busy moment.
        """
        return sorted(self.ratios)[1 if len(self.ratios) >= MORE_PAIRS else 0] - 1

    @property
    def sure(self) -> bool:
        """Whether it was better every time, and by more than noise."""
        return self.gain >= MIN_GAIN

    @property
    def open_question(self) -> bool:
        """Whether it seems better, and more pairs would tell."""
        return not self.sure and len(self.ratios) < MORE_PAIRS and median(self.ratios) > SEEMS


class Trials:
    """Times changes of one configuration."""

    def __init__(
        self, timer: Timer, config: TrainConfig, decisions_per_s: float, samples: int
    ) -> None:
        """Open nothing yet.

        decisions_per_s: as it was seen, to know how long a round takes. samples: that a rollout
        has to hold for the changes to mean something.
        """
        self.sessions, self.config = OpenSessions(timer), steady(config)
        self._until, self._shorter = 0.0, 1.0
        rows = config.collect.games * config.collect.steps
        round_s = rows / decisions_per_s
        if round_s > LONG_S and not has_replay(config):
            least = max(2 * samples / rows, LONG_S / round_s, MIN_STEPS / config.collect.steps)
            self._shorter = min(least, 1.0)

    def begin(self) -> bool:
        """Open what is; False if it cannot be timed here."""
        try:
            self._rate(NOW, {}, 0.0)
        except (ConfigError, UnfitError):
            return False
        self._until = time.monotonic() + TRIALS_S
        return True

    @property
    def left(self) -> bool:
        return time.monotonic() < self._until

    def time(self, change: Mapping[str, Any]) -> Timed | None:
        """Time a change beside what is; None where it is refused or fails."""
        if not self.left:
            return None
        try:
            return self._pairs({NOW: {}, THEN: change})
        except (ConfigError, UnfitError):
            return None
        finally:
            self.sessions.close(THEN)

    def _pairs(self, changes: Mapping[str, Mapping[str, Any]]) -> Timed:
        """Both in turn; who goes first changes."""
        self._rate(THEN, changes[THEN], 0.0)  # opening it is no part of a window
        ratios: list[float] = []
        for pair in range(MORE_PAIRS):
            if pair == PAIRS and not Timed(tuple(ratios)).open_question:
                break
            order = (NOW, THEN) if pair % 2 else (THEN, NOW)
            rates = {name: self._rate(name, changes[name], WINDOW_S) for name in order}
            ratios.append(rates[THEN] / max(rates[NOW], 1e-9))
        return Timed(tuple(ratios))

    def _rate(self, name: str, change: Mapping[str, Any], seconds: float) -> float:
        """Decisions per second, with rollouts as much shorter as those of all others here."""
        config: TrainConfig = merged(self.config, change, "try")
        if self._shorter < 1:
            steps = max(round(config.collect.steps * self._shorter), 1)
            config = merged(config, {"collect": {"steps": steps}}, "try")
        return self.sessions.time(name, config, seconds).rate()
