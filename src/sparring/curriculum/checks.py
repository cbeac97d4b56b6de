"""Checks across phases: no gaps or overlaps, every phase ends, every phase has opponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.curriculum.files import locate_errors
from sparring.curriculum.phases import Phase
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.schedule import Moment, Schedule


def check_phases(phases: Sequence[Phase], spans: Sequence[tuple[int, int] | None]) -> None:
    """Refuse phases with gaps, overlaps, equal names or without an end.

    spans: (`from`, `to`) of each phase, None without either. from -1: end of the previous phase;
    to 0: not given.
    """
    names: list[str] = []
    end: int | None = 0
    for index, phase in enumerate(phases):
        last = index == len(phases) - 1
        with locate_errors(index, phase.name, "name"):
            if phase.name in names:
                raise ConfigError(
                    f"phase {names.index(phase.name) + 1} has the same name; rename one"
                )
        names.append(phase.name)
        span = spans[index]
        with locate_errors(index, phase.name, "from"):
            check_from(span, end, index)
        with locate_errors(index, phase.name, "until"):
            check_threshold(phase, last=last)
        with locate_errors(index, phase.name):
            if not last and not phase.has_end:
                raise ConfigError(
                    "the phase never ends, so the next one never begins; give decisions, "
                    "episodes or until"
                )
        is_fixed = phase.decisions and not phase.episodes and phase.until is None
        end = end + phase.decisions if end is not None and is_fixed else None


def check_from(span: tuple[int, int] | None, end: int | None, index: int) -> None:
    if span is None:
        return
    begin, _ = span
    if end is None:
        raise ConfigError(
            f"from and to count decisions of the run, and phase {index} ends by games or by "
            "strength; give decisions"
        )
    if begin >= 0 and begin != end:
        problem = "overlaps with" if begin < end else "leaves a gap after"
        before = f"phase {index}, which ends at {end:,}" if index else "the start of the run"
        raise ConfigError(f"from {begin:,} {problem} {before}; write from = {end} or leave it out")


def check_threshold(phase: Phase, *, last: bool) -> None:
    if phase.until is None:
        return
    if last:
        raise ConfigError("until: nothing follows the last phase; leave it out")
    if not phase.decisions and not phase.episodes:
        raise ConfigError(
            "until: the agent may never be that strong; give decisions or episodes after which the "
            "phase ends anyway"
        )


def check_weights(weights: Sequence[Schedule], where: str = "opponents") -> None:
    """Refuse weights of line-ups that are all 0 at the same moment."""
    if any(min(one.values) > 0 for one in weights):
        return
    units = {one.by for one in weights if one.changes}
    if len(units) > 1:
        raise ConfigError(
            f"{where}: schedules count in different units (decisions, percent, games); keep one "
            "weight above 0 all the time"
        )
    for moment in schedule_points(weights):
        if all(one.at(moment) <= 0 for one in weights):
            raise ConfigError(
                f"{where}: at {moment.decisions or moment.episodes or moment.progress:g} every "
                "weight is 0, so no opponent is left; raise one"
            )


def check_flags(rules: Rules, flags: Mapping[str, Any]) -> None:
    """Refuse flags that the game rejects at some point of their schedules."""
    if not flags:
        return
    members = [one for value in flags.values() for one in as_list(value)]
    for moment in schedule_points([one for one in members if isinstance(one, Schedule)]):
        rules.changed({name: flag_at(rules, name, value, moment) for name, value in flags.items()})


def as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def flag_at(rules: Rules, name: str, value: Any, moment: Moment) -> Any:
    """Return the value of a flag at a moment; integer flags are rounded."""
    if isinstance(value, list | tuple):
        return [flag_at(rules, name, one, moment) for one in value]
    if not isinstance(value, Schedule):
        return value
    number, field = value.at(moment), rules.fields.get(name)
    return number if field is None or field.dtype == "float32" else round(number)


def schedule_points(schedules: Sequence[Schedule]) -> list[Moment]:
    """Return the moments of all points of the schedules, in any unit."""
    points = [Moment(0, 0.0)]
    for one in schedules:
        for place in one.positions:
            points.append(Moment(round(place), min(place, 1.0), round(place)))
    return points


def check_phase_length(phase: Phase, schedule: Schedule, where: str, *, of_learner: bool) -> None:
    """Refuse a schedule in percent of a phase whose length is unknown.

    of_learner: a setting of the learner, which counts decisions but no games.
    """
    if schedule.by != "progress" or phase.decisions or (phase.episodes and not of_learner):
        return
    reason = (
        "the phase ends by games, which the learner does not count"
        if phase.episodes
        else "the phase has no length to take a percentage of"
    )
    raise ConfigError(
        f"{where} {schedule}: {reason}; give points in decisions, or the phase decisions"
    )
