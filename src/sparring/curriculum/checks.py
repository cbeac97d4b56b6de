"""What phases have to be together: one after the other, each with an end, and never nobody met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.curriculum.files import locate_errors
from sparring.curriculum.phases import Phase
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.schedule import Moment, Schedule


def check_phases(phases: Sequence[Phase], spans: Sequence[tuple[int, int] | None]) -> None:
    """Refuse phases that do not follow one another.

    spans: `from` (-1: where the one before ends) and `to` (0: nothing is said) where they are
    given.
    """
    names: list[str] = []
    end: int | None = 0
    for index, phase in enumerate(phases):
        last = index == len(phases) - 1
        with locate_errors(index, phase.name, "name"):
            if phase.name in names:
                raise ConfigError(
                    f"phase {names.index(phase.name) + 1} has the same name; give each its own"
                )
        names.append(phase.name)
        span = spans[index]
        with locate_errors(index, phase.name, "from"):
            check_from(span, end, index)
        with locate_errors(index, phase.name, "until"):
            check_threshold(phase, last=last)
        with locate_errors(index, phase.name):
            if not last and not phase.ends:
                raise ConfigError(
                    "it never ends, and so overlaps with the phase after it; give decisions, "
                    "episodes or until"
                )
        plain = phase.decisions and not phase.episodes and phase.until is None
        end = end + phase.decisions if end is not None and plain else None


def check_from(span: tuple[int, int] | None, end: int | None, index: int) -> None:
    if span is None:
        return
    begin, _ = span
    if end is None:
        raise ConfigError(
            f"from and to count from the beginning of the run, and phase {index} ends by games or "
            "by strength; give decisions"
        )
    if begin >= 0 and begin != end:
        what = "overlaps with" if begin < end else "leaves a gap behind"
        before = f"phase {index}, which ends at {end:,}" if index else "the beginning of the run"
        raise ConfigError(f"from {begin:,} {what} {before}; write from = {end} or leave it out")


def check_threshold(phase: Phase, *, last: bool) -> None:
    if phase.until is None:
        return
    if last:
        raise ConfigError("until: nothing follows the last phase; leave it out")
    if not phase.decisions and not phase.episodes:
        raise ConfigError(
            "until: the run may never be that strong; give decisions or episodes after which the "
            "phase ends anyway"
        )


def check_weights(weights: Sequence[Schedule], where: str = "opponents") -> None:
    """Refuse line-ups of which at some moment all have weight 0."""
    if any(min(one.values) > 0 for one in weights):
        return
    units = {one.by for one in weights if one.changes}
    if len(units) > 1:
        raise ConfigError(
            f"{where}: one weight has to be above 0 all the time where some count in decisions, "
            "others in shares or games"
        )
    for moment in schedule_points(weights):
        if all(one.at(moment) <= 0 for one in weights):
            raise ConfigError(
                f"{where}: at {moment.decisions or moment.episodes or moment.progress:g} every "
                "weight is 0, so that nobody is met; raise one"
            )


def check_flags(rules: Rules, flags: Mapping[str, Any]) -> None:
    """Refuse flags that do not go together at a point of their schedules."""
    if not flags:
        return
    members = [one for value in flags.values() for one in as_list(value)]
    for moment in schedule_points([one for one in members if isinstance(one, Schedule)]):
        rules.changed({name: flag_at(rules, name, value, moment) for name, value in flags.items()})


def as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def flag_at(rules: Rules, name: str, value: Any, moment: Moment) -> Any:
    """A flag at some moment of its schedule; one of whole numbers is the nearest."""
    if isinstance(value, list | tuple):
        return [flag_at(rules, name, one, moment) for one in value]
    if not isinstance(value, Schedule):
        return value
    number, field = value.at(moment), rules.fields.get(name)
    return number if field is None or field.dtype == "float32" else round(number)


def schedule_points(schedules: Sequence[Schedule]) -> list[Moment]:
    """The moments of all points, whatever they count."""
    found = [Moment(0, 0.0)]
    for one in schedules:
        for place in one.places:
            found.append(Moment(round(place), min(place, 1.0), round(place)))
    return found


def check_phase_length(phase: Phase, schedule: Schedule, where: str, *, of_learner: bool) -> None:
    """Refuse shares (%) of a phase whose length is not known, or not known to a learner."""
    if schedule.by != "progress" or phase.decisions or (phase.episodes and not of_learner):
        return
    why = (
        "the phase ends by games, which learners do not count"
        if phase.episodes
        else "the phase has no length to take shares of"
    )
    raise ConfigError(
        f"{where} {schedule}: {why}; give points in decisions, or the phase decisions"
    )
