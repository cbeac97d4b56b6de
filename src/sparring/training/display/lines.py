"""A run in words: what plain lines and the panel share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparring.curriculum.phases import PhaseProgress
from sparring.training.status import SIMULATIONS_PER_S, Status

EXACT = 100_000
"""RunCounts below this are written out."""
UNITS = "kMGT"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some."""
    total = max(int(seconds), 0)
    minutes, hours = total // 60 % 60, total // 3600
    return f"{hours}:{minutes:02d}:{total % 60:02d}" if hours else f"{minutes}:{total % 60:02d}"


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


def time_left(status: Status) -> str:
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


def is_alone(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of a seat without opponents: then the score counts."""
    return bool(result["parity"] == 1)


def shown_strength(result: Mapping[str, Any]) -> str:
    """The win share, or the score where a seat plays alone."""
    return f"{result['score']:.1f}" if is_alone(result) else f"{result['win']:.3f}"


def interval(result: Mapping[str, Any]) -> str:
    """The 95 % interval of the win share, or of the score."""
    if is_alone(result):
        low, high = result.get("score_low"), result.get("score_high")
        return "" if low is None or high is None else f"{low:.1f}..{high:.1f}"
    return f"{result['low']:.2f}..{result['high']:.2f}"


def learning_texts(learning: Mapping[str, float]) -> list[str]:
    """How a learner from replay learns, and how its workers fare: in words, where there are any."""
    parts = dict(learning)
    texts = []
    if "replay_ratio" in parts:
        steps = (
            f" ({parts['steps_per_decision']:.3g} steps)" if "steps_per_decision" in parts else ""
        )
        texts.append(f"replay ratio {parts['replay_ratio']:.3g}{steps}")
    if "replay_fill" in parts:
        age = f", {count(parts['replay_age'])} decisions old" if "replay_age" in parts else ""
        texts.append(f"replay {parts['replay_fill']:.0%} full{age}")
    texts += [f"{name} {parts[name]:.3g}" for name in ("epsilon", "temperature") if name in parts]
    if SIMULATIONS_PER_S in parts:
        rate = f", {count(parts[SIMULATIONS_PER_S])}/s"
        texts.append(f"{parts['simulations']:.0f} simulations{rate}")
    if "workers/memory_mib" in parts:
        texts.append(workers_text(parts))
    if "distributed/lag_mean" in parts:
        texts.append(distributed_text(parts))
    return texts


def distributed_text(parts: Mapping[str, float]) -> str:
    failed = int(parts.get("distributed/restarts", 0))
    again = f", {failed} died and started again" if failed else ""
    actors, learner = parts["distributed/actor_idle"], parts["distributed/learner_idle"]
    idle = f"actors {actors:.0%} idle, learner {learner:.0%}"
    return f"{idle}, lag {parts['distributed/lag_mean']:.1f}{again}"


def workers_text(parts: Mapping[str, float]) -> str:
    failed = int(parts.get("workers/restarts", 0))
    again = f", {failed} failed and started again" if failed else ""
    idle = f", {parts['workers/idle']:.0%} idle" if "workers/idle" in parts else ""
    return f"workers {size(parts['workers/memory_mib'] * 2**20)}{idle}{again}"


def phase_texts(progress: PhaseProgress | None) -> list[str]:
    """Where a run stands in its curriculum: the phase, how far it is, and what comes next."""
    if progress is None or progress.num_phases == 1:
        return []
    share = "" if progress.fraction is None else f", {progress.fraction:.0%}"
    texts = [f"phase {progress.phase}/{progress.num_phases} {progress.name}{share}"]
    if progress.next_phase:
        texts.append(f"until {progress.until}, then {progress.next_phase}")
    return texts


def line(status: Status) -> str:
    total = f"/{status.total_updates}" if status.total_updates else ""
    parts = [
        f"{clock(status.seconds)} update {status.update}{total}",
        f"{status.decisions_per_s:,.0f} decisions/s",
        f"{status.samples_per_s:,.0f} samples/s",
    ]
    parts += phase_texts(status.phase_progress)[:1]
    parts += learning_texts(status.learning)
    parts += [status.utilization.line] if status.utilization else []
    if not math.isnan(status.score):
        parts.append(f"score {status.score:.1f}")
    if status.wins:
        alone = any(map(is_alone, status.wins.values()))
        what = "evaluated" if alone else "win share of"
        whose = (
            f"{what} {evaluated_weights(status)}"
            if status.evaluated >= 0
            else what.removesuffix(" of")
        )
        wins = " ".join(f"{name} {shown_strength(one)}" for name, one in status.wins.items())
        parts.append(f"{whose}: {wins}")
    if status.league:
        parts.append(status.league)
    return ", ".join([*parts, time_left(status)])


def phase_line(status: Status, progress: PhaseProgress) -> str:
    until = f", until {progress.until}" if progress.until else ""
    number = f"{progress.phase}/{progress.num_phases}"
    return f"{clock(status.seconds)} phase {number} {progress.name}{until}"


def evaluation_line(status: Status) -> str:
    """What the last evaluation found, in one line."""
    result = ", ".join(
        f"{name} {shown_strength(one)}" + (f" ({parts})" if (parts := interval(one)) else "")
        for name, one in status.wins.items()
    )
    if status.exploitability is not None:
        result += f", exploitability {status.exploitability:.4f}"
    best = ", the best so far" if status.best == status.evaluated else ""
    return f"{clock(status.seconds)} evaluated {evaluated_weights(status)}{best}: {result}"


def evaluated_weights(status: Status) -> str:
    """Which weights the last evaluation measured, and how old they are by now."""
    ago = status.update - status.evaluated
    age = f" ({ago:,} update{'s' * (ago > 1)} ago)" if ago > 0 else ""
    return f"update {status.evaluated:,}{age}"


def next_evaluation(status: Status) -> str:
    """When the next evaluation comes."""
    if status.after:
        return ""
    if status.evaluating:
        return "an evaluation is under way"
    return f"next evaluation in {clock(status.next_eval_s)}" if status.next_eval_s >= 0 else ""


def last_saved(status: Status, *, over: bool = False) -> str:
    """What was saved last, and how long ago if training continues."""
    if status.saved < 0:
        return ""
    ago = "" if over else f", {clock(status.seconds - status.saved_s)} ago"
    return f"saved update {status.saved:,}{ago}"
