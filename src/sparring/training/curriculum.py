"""Curriculum of a run: advances phases before every update, restores them after a resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.curriculum.state import CurriculumState
from sparring.errors import ConfigError, StateError
from sparring.learn.learner import Learner, Overridable
from sparring.schedule import Moment
from sparring.store.checkpoint import Checkpoint
from sparring.training.member import Member
from sparring.training.records.run import PHASE


def check_overridable(learner: Learner) -> Overridable:
    """Return the learner if phases can change it; raise otherwise."""
    if isinstance(learner, Overridable):
        return learner
    raise ConfigError(
        f"phases and schedules of rewards, flags or opponents: {type(learner).__name__} cannot "
        "change while it learns; give it a method apply_overrides(overrides, member), see "
        "sparring.learn.learner, or leave them out"
    )


def restore_phase(learner: Learner, courses: Sequence[CurriculumState], resume: Checkpoint) -> None:
    """Let a learner stand where a checkpoint was made, before its games are loaded."""
    course, state = courses[0], resume.meta.get("course")
    if state is None:
        return  # it was made before there were phases: the run begins its first one here
    phases = course.curriculum.phases
    index = int(state["phase"])
    if index >= len(phases) or phases[index].name != state["name"]:
        raise StateError(
            f"checkpoint {resume.number} was made in phase {index + 1}, {state['name']!r}, which "
            "the run does not have any more; set phases as they were"
        )
    check_overridable(learner).apply_overrides(course.restore(state))


def moment_of(member: Member, progress: float) -> Moment:
    status = member.status
    return Moment(status.decisions, progress, status.episodes)


def advance_phase(learner: Overridable, index: int, member: Member, progress: float) -> None:
    """Before an update: begin the next phase if its time has come, and say what holds now."""
    course = member.course
    if course is None:
        return
    now = moment_of(member, progress)
    has_phases = len(course.curriculum.phases) > 1
    if has_phases and not member.has_event(PHASE):
        record_phase(member, course.phase_event("beginning"))
    change = course.advance(now, member.status.update)
    if change is not None:
        member.evaluations_since_best = 0  # what a new phase is good for is not known yet
        record_phase(member, change)
    overrides = course.overrides(now)
    if overrides is not None:
        learner.apply_overrides(overrides, index)


def record_phase(member: Member, change: Mapping[str, Any]) -> None:
    status = member.status
    counts = {name: getattr(status, name) for name in ("decisions", "episodes", "seconds")}
    member.record_event(PHASE, **change, **counts)
    text = f"phase {change['phase']}, {change['name']} ({change['why']})"
    member.metrics.add_text(status.update, "charts/phase_name", text, seconds=status.seconds)
