"""Verdicts of a profile: bottlenecks and remedies, ordered by expected gain."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sparring.config import TrainConfig
from sparring.errors import ConfigError
from sparring.phases import SEARCHING
from sparring.speed.evidence import Evidence
from sparring.speed.rounds import has_replay, steady
from sparring.speed.timer import OpenSessions, Timer, TimerProcess, UnfitError
from sparring.speed.verdicts import overhead, searching, settings, user_code
from sparring.speed.verdicts.profiled_run import Candidate, ProfiledRun, Verdict, counted, percent
from sparring.training.planning.settings import merged
from sparring.training.utilization.advice import MIN_GAIN
from sparring.training.utilization.share import PHASE_NAMES

CANNOT_TELL = "cannot tell"
LEARNING = "the learning itself"
"""Verdict where nothing is wrong: the time goes into learning."""
MAX_TIMED = 3
ALTERING_WEIGHT = 0.7
"""Weight in the order of a gain that changes what is learned."""
CLEAR_GAIN = 0.15
"""With such a gain there is no verdict about the learning itself."""
LAST = -1.0
"""Rank of verdicts about other programs: never first."""
MIN_KNOWN = 0.5
"""Share of the time that phases must explain for a verdict about the whole."""
ENV_CAUSES = {user_code.SLOW_ENV, settings.WAITING_ENV, settings.FEW_WORKERS}
"""Causes that already name a slow step."""
PAIRS, MORE_PAIRS = 3, 5
PROMISING = 1.1
"""Median ratio from which two more pairs are timed if the first three disagree."""
WINDOW_S = 0.6
TRIALS_S = 15.0
"""Time after which no further change is timed."""
MAX_ROUND_S = 0.9
"""Longer rounds are timed with shorter rollouts."""
MIN_STEPS = 2
CURRENT, CHANGED = "current", "changed"


def judge(evidence: Evidence, timer: TimerProcess | None = None) -> list[Verdict]:
    """Return verdicts, the most worthwhile first; at least one.

    timer: times changes of settings before they are recommended. Without one, or where no update
        ended during the profile, gains are estimated.
    """
    run = ProfiledRun(evidence)
    candidates = distinct(settings.candidates(run))
    trials = None
    if timer and run.repeatable and candidates and evidence.decisions_per_s:
        rows = max(one.rows for one in most_hopeful(candidates))
        trials = Trials(timer, evidence.config, evidence.decisions_per_s, rows)
    changes, tried = evaluate(candidates, trials if trials and trials.begin() else None)
    found = [*user_code.verdicts(run), *overhead.verdicts(run), *(one for _, one in changes)]
    found += slow_env(run, found)
    alters = {id(verdict) for one, verdict in changes if one.alters}
    found = [v for v in found if v.gain is None or v.gain >= MIN_GAIN]
    found.sort(key=lambda v: rank(run, v, found, altering=id(v) in alters), reverse=True)
    if found and (found[0].gain or 0.0) >= CLEAR_GAIN:
        return found
    return [*found, learning_verdict(run, tried, found=bool(found))]


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return every change once, with the cause that named it first."""
    found: list[Candidate] = []
    for one in candidates:
        if all(one.change != other.change for other in found):
            found.append(one)
    return found


def most_hopeful(candidates: Sequence[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda one: one.hope, reverse=True)[:MAX_TIMED]


def evaluate(
    candidates: Sequence[Candidate], trials: Trials | None
) -> tuple[list[tuple[Candidate, Verdict]], int]:
    """Return candidates that are faster, timed where possible, and how many were timed."""
    if trials is None:
        sure = [one for one in candidates if one.estimated is not None]
        return best_of([(one, one.verdict(one.estimated, timed=False)) for one in sure]), 0
    better, tried = [], 0
    for one in most_hopeful(candidates):
        late = not trials.has_time
        timed = trials.time(one.change)
        tried += timed is not None
        if timed is not None and timed.sure:
            better.append((one, one.verdict(timed.gain, timed=True)))
        elif late and one.estimated is not None:
            better.append((one, one.verdict(one.estimated, timed=False)))
    return best_of(better), tried


def best_of(found: Sequence[tuple[Candidate, Verdict]]) -> list[tuple[Candidate, Verdict]]:
    best: dict[str, tuple[Candidate, Verdict]] = {}
    for one, verdict in found:
        before = best.get(one.cause)
        if before is None or (verdict.gain or 0.0) > (before[1].gain or 0.0):
            best[one.cause] = one, verdict
    return list(best.values())


def slow_env(run: ProfiledRun, found: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdict about a slow step, where no setting helps and no waste was found."""
    share = max(run.env_share(), run.phase("stepping") if run.custom_env else 0.0)
    if share < 0.3 or any(v.cause in ENV_CAUSES for v in found):
        return []
    return [user_code.slow_step(run, share - min(waste_share(found), share))]


def waste_share(found: Sequence[Verdict]) -> float:
    """Share of the time in work that a step of an environment can do without."""
    causes = {one.cause for one in user_code.WASTE.values()} | {user_code.NETWORK_INSIDE}
    return sum(v.share for v in found if v.cause in causes)


def rank(run: ProfiledRun, verdict: Verdict, found: Sequence[Verdict], *, altering: bool) -> float:
    """Return the sort key of a verdict.

    Where most of a step is waste, removing that comes first: workers would only spread it.
    """
    gain = verdict.gain or 0.0
    mostly_waste = waste_share(found) > 0.5 * max(run.env_share(), 1e-9)
    if verdict.cause == user_code.SLOW_ENV and mostly_waste:
        return min(gain, 0.0)
    if verdict.cause == overhead.BUSY:
        return LAST
    return gain * (ALTERING_WEIGHT if altering else 1.0)


def learning_verdict(run: ProfiledRun, tried: int, *, found: bool) -> Verdict:
    """Return where the time of learning goes, and that no timed setting is faster.

    tried: number of timed changes. found: whether other verdicts come before.
    """
    phases = run.evidence.phases
    known = {name: phases[name] for name in PHASE_NAMES if name in phases and name != "other"}
    if sum(known.values()) < MIN_KNOWN:
        return unknown(run)
    shares = dict[str, float]()
    for name, share in known.items():  # both stages of trees have one name
        shares[PHASE_NAMES[name]] = shares.get(PHASE_NAMES[name], 0.0) + share
    doing, share = max(shares.items(), key=lambda one: one[1])
    name = next(name for name in known if PHASE_NAMES[name] == doing)
    text = f"{percent(share)} in {doing}{details(run, name)}: that is the learning itself"
    if not found and tried:
        which = "the one other setting" if tried == 1 else f"none of {tried} other settings"
        text += f"; {which} that was timed is {'no ' * (tried == 1)}faster"
    elif not found:
        text += "; no setting stands out"
    if is_searching(run, name):
        text += searching.remedy(run, name)
    return Verdict(LEARNING, text, share)


def is_searching(run: ProfiledRun, name: str) -> bool:
    """Whether a phase consists of the learner's searches; on a GPU they are in the rollout."""
    return name in SEARCHING or (name == "rollout" and run.config.algo == "gumbel")


def details(run: ProfiledRun, name: str) -> str:
    config = run.config
    games = counted(config.collect.games, "game")
    if is_searching(run, name):
        return searching.details(run)
    if name == "update" and config.algo == "ppo":
        epochs = counted(config.ppo.epochs, "epoch")
        return f", {epochs} in minibatches of {config.ppo.minibatch}"
    if name in ("update", "sampling") and run.has_replay:
        return f", {config.replay.ratio:g} samples per decision in batches of {config.replay.batch}"
    if name == "inference":
        return f", {games} at once"
    if name == "stepping" and not run.custom_env:
        return f", {games} on {counted(run.threads, 'thread')}"
    return ""


def unknown(run: ProfiledRun) -> Verdict:
    evidence, facts = run.evidence, []
    if evidence.phases:
        most = max(evidence.phases.items(), key=lambda one: one[1])
        facts.append(f"{percent(most[1])} in {PHASE_NAMES.get(most[0], most[0])}")
    if evidence.cpu_cores:
        facts.append(f"{evidence.cpu_cores:.1f} of {evidence.cores} cores were busy")
    missing = "; ".join(evidence.not_seen) or "profile for longer (--seconds)"
    known = ", ".join(facts) or "no samples"
    return Verdict(CANNOT_TELL, f"cannot tell: {known}; {missing}", 0.0)


@dataclass(frozen=True)
class TimedChange:
    """Timings of a changed configuration against the current one."""

    ratios: tuple[float, ...]
    """Ratio of decisions per second, one per pair of windows."""

    @property
    def gain(self) -> float:
        """The lowest ratio, so that the promise is kept.

        Of five or more, the second lowest: one may have met load on the machine.
        """
        return sorted(self.ratios)[1 if len(self.ratios) >= MORE_PAIRS else 0] - 1

    @property
    def sure(self) -> bool:
        """Whether it was faster every time, and by more than noise."""
        return self.gain >= MIN_GAIN

    @property
    def needs_more(self) -> bool:
        """Whether it seems faster, and more pairs would decide."""
        return not self.sure and len(self.ratios) < MORE_PAIRS and median(self.ratios) > PROMISING


class Trials:
    """Times changes of one configuration."""

    def __init__(
        self, timer: Timer, config: TrainConfig, decisions_per_s: float, samples: int
    ) -> None:
        """decisions_per_s: of the profile, which gives the length of a round.

        samples: what a rollout must hold for the changes to have an effect.
        """
        self.sessions, self.config = OpenSessions(timer), steady(config)
        self._until, self._shorter = 0.0, 1.0
        rows = config.collect.games * config.collect.steps
        round_s = rows / decisions_per_s
        if round_s > MAX_ROUND_S and not has_replay(config):
            steps = config.collect.steps
            shorter = max(2 * samples / rows, MAX_ROUND_S / round_s, MIN_STEPS / steps)
            self._shorter = min(shorter, 1.0)

    def begin(self) -> bool:
        """Open the current configuration; False if it cannot be timed here."""
        try:
            self._rate(CURRENT, {}, 0.0)
        except (ConfigError, UnfitError):
            return False
        self._until = time.monotonic() + TRIALS_S
        return True

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self._until

    def time(self, change: Mapping[str, Any]) -> TimedChange | None:
        """Time a change against the current configuration; None if it is refused or fails."""
        if not self.has_time:
            return None
        try:
            return self._time_pairs({CURRENT: {}, CHANGED: change})
        except (ConfigError, UnfitError):
            return None
        finally:
            self.sessions.close(CHANGED)

    def _time_pairs(self, changes: Mapping[str, Mapping[str, Any]]) -> TimedChange:
        """Time both in turn; the order alternates."""
        self._rate(CHANGED, changes[CHANGED], 0.0)  # opening it is not part of a window
        ratios: list[float] = []
        for pair in range(MORE_PAIRS):
            if pair == PAIRS and not TimedChange(tuple(ratios)).needs_more:
                break
            order = (CURRENT, CHANGED) if pair % 2 else (CHANGED, CURRENT)
            rates = {name: self._rate(name, changes[name], WINDOW_S) for name in order}
            ratios.append(rates[CHANGED] / max(rates[CURRENT], 1e-9))
        return TimedChange(tuple(ratios))

    def _rate(self, name: str, change: Mapping[str, Any], seconds: float) -> float:
        """Return decisions per second, with rollouts shortened alike for all."""
        config: TrainConfig = merged(self.config, change, "try")
        if self._shorter < 1:
            steps = max(round(config.collect.steps * self._shorter), 1)
            config = merged(config, {"collect": {"steps": steps}}, "try")
        return self.sessions.time(name, config, seconds).rate()
