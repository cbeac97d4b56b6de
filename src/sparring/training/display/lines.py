"""A run in words: what plain lines and the panel share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparring.curriculum.phases import PhaseProgress
from sparring.training.status import Status

EXACT = 100_000
"""RunCounts below this are written out."""
UNITS = "kMGT"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some."""
    whole = max(int(seconds), 0)
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def count(number: float) -> str:
    """Write a large number with about three digits."""
    if abs(number) < EXACT:
        return f"{number:,.0f}"
    thousands = min(int(math.log10(abs(number)) / 3), len(UNITS))
    value = number / 1000**thousands
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f} {UNITS[thousands - 1]}"


def size(memory: float) -> str:
    """Write a number of bytes."""
    mib = memory / 2**20
    return f"{mib:.0f} MiB" if mib < 1000 else f"{mib / 1024:.1f} GiB"


def left(status: Status) -> str:
    """How long it will still take: of the minutes, or by the pace since something is learned."""
    if status.after:
        return status.after
    if status.timeout_s:
        return f"{clock(status.timeout_s - status.seconds)} left"
    warm_up = status.warm_up
    if warm_up.progress and not status.learns:
        return "warming up"
    if status.progress <= warm_up.progress:
        return "? left"
    pace = (status.seconds - warm_up.seconds) / (status.progress - warm_up.progress)
    return f"{clock(pace * (1 - status.progress))} left"


def is_alone(found: Mapping[str, Any]) -> bool:
    """Whether a result is that of a seat without opponents: then the score counts."""
    return bool(found["parity"] == 1)


def shown_strength(found: Mapping[str, Any]) -> str:
    """The win share, or the score where a seat plays alone."""
    return f"{found['score']:.1f}" if is_alone(found) else f"{found['win']:.3f}"


def interval(found: Mapping[str, Any]) -> str:
    """The 95 % interval of the win share, or of the score."""
    if is_alone(found):
        low, high = found.get("score_low"), found.get("score_high")
        return "" if low is None or high is None else f"{low:.1f}..{high:.1f}"
    return f"{found['low']:.2f}..{found['high']:.2f}"


def learning_words(learning: Mapping[str, float]) -> list[str]:
    """How a learner from replay learns, and how its workers fare: in words, where there are any."""
    told = dict(learning)
    words = []
    if "replay_ratio" in told:
        steps = f" ({told['steps_per_decision']:.3g} steps)" if "steps_per_decision" in told else ""
        words.append(f"replay ratio {told['replay_ratio']:.3g}{steps}")
    if "replay_fill" in told:
        age = f", {count(told['replay_age'])} decisions old" if "replay_age" in told else ""
        words.append(f"replay {told['replay_fill']:.0%} full{age}")
    words += [f"{name} {told[name]:.3g}" for name in ("epsilon", "temperature") if name in told]
    if "workers/memory_mib" in told:
        words.append(workers_words(told))
    if "distributed/lag_mean" in told:
        words.append(distributed_words(told))
    return words


def distributed_words(told: Mapping[str, float]) -> str:
    failed = int(told.get("distributed/restarts", 0))
    again = f", {failed} died and started again" if failed else ""
    actors, learner = told["distributed/actor_idle"], told["distributed/learner_idle"]
    idle = f"actors {actors:.0%} idle, learner {learner:.0%}"
    return f"{idle}, lag {told['distributed/lag_mean']:.1f}{again}"


def workers_words(told: Mapping[str, float]) -> str:
    failed = int(told.get("workers/restarts", 0))
    again = f", {failed} failed and started again" if failed else ""
    idle = f", {told['workers/idle']:.0%} idle" if "workers/idle" in told else ""
    return f"workers {size(told['workers/memory_mib'] * 2**20)}{idle}{again}"


def phase_told(standing: PhaseProgress | None) -> list[str]:
    """Where a run stands in its curriculum: the phase, how far it is, and what comes next."""
    if standing is None or standing.num_phases == 1:
        return []
    share = "" if standing.fraction is None else f", {standing.fraction:.0%}"
    words = [f"phase {standing.phase}/{standing.num_phases} {standing.name}{share}"]
    if standing.next_phase:
        words.append(f"until {standing.until}, then {standing.next_phase}")
    return words


def line(status: Status) -> str:
    total = f"/{status.total_updates}" if status.total_updates else ""
    told = [
        f"{clock(status.seconds)} update {status.update}{total}",
        f"{status.decisions_per_s:,.0f} decisions/s",
        f"{status.samples_per_s:,.0f} samples/s",
    ]
    told += phase_told(status.standing)[:1]
    told += learning_words(status.learning)
    told += [status.utilization.line] if status.utilization else []
    if not math.isnan(status.score):
        told.append(f"score {status.score:.1f}")
    if status.wins:
        alone = any(map(is_alone, status.wins.values()))
        what = "evaluated" if alone else "win share of"
        whose = f"{what} {weights(status)}" if status.evaluated >= 0 else what.removesuffix(" of")
        wins = " ".join(f"{name} {shown_strength(one)}" for name, one in status.wins.items())
        told.append(f"{whose}: {wins}")
    if status.league:
        told.append(status.league)
    return ", ".join([*told, left(status)])


def phase_line(status: Status, standing: PhaseProgress) -> str:
    until = f", until {standing.until}" if standing.until else ""
    number = f"{standing.phase}/{standing.num_phases}"
    return f"{clock(status.seconds)} phase {number} {standing.name}{until}"


def evaluation_line(status: Status) -> str:
    """What the last evaluation found, in one line."""
    found = ", ".join(
        f"{name} {shown_strength(one)}" + (f" ({told})" if (told := interval(one)) else "")
        for name, one in status.wins.items()
    )
    best = ", the best so far" if status.best == status.evaluated else ""
    return f"{clock(status.seconds)} evaluated {weights(status)}{best}: {found}"


def weights(status: Status) -> str:
    """Which weights the last evaluation measured, and how old they are by now."""
    ago = status.update - status.evaluated
    age = f" ({ago:,} update{'s' * (ago > 1)} ago)" if ago > 0 else ""
    return f"update {status.evaluated:,}{age}"


def coming(status: Status) -> str:
    """When the next evaluation comes."""
    if status.after:
        return ""
    if status.evaluating:
        return "an evaluation is under way"
    return f"next evaluation in {clock(status.next_eval_s)}" if status.next_eval_s >= 0 else ""


def kept(status: Status, *, over: bool = False) -> str:
    """What was saved last, and how long ago if training goes on."""
    if status.saved < 0:
        return ""
    ago = "" if over else f", {clock(status.seconds - status.saved_s)} ago"
    return f"saved update {status.saved:,}{ago}"
