"""How a curriculum is shown: its phases in order before training, its curves on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.config.options import flat
from sparring.curriculum.curriculum import Curriculum
from sparring.curriculum.phases import Phase
from sparring.curriculum.state import CurriculumState
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.pools.lineups import LEARNER, Lineup, Mix
from sparring.schedule import Schedule, shown

UNITS = ("decisions", "episodes")
PHASE = "charts/phase"
"""The phase, counted from 1."""
METRIC_GROUP = "curriculum/"
MAX_LIST_METRICS = 16
"""Of a flag that is a list; longer ones are not drawn."""


TimelineEntry = dict[str, Any]
"""A phase: when it is (`from` and `to` are None where that depends on the run), its `length`, and
everything that holds in it. Schedules are as they were written."""


def timeline_of(curriculum: Curriculum, opponents: Sequence[str]) -> list[TimelineEntry]:
    """All phases. opponents: of the run, for phases that name nobody."""
    entries, own = [], curriculum.own
    begins: Mapping[str, int] | None = dict.fromkeys(UNITS, 0)
    for index, phase in enumerate(curriculum.phases):
        ends = end_of(phase, begins)
        entry = {
            "name": phase.name,
            "length": {key: getattr(phase, key) for key in UNITS if getattr(phase, key)},
            "until": until_of(phase),
            "opponents": opponents if phase.opponents is None else phase.opponents,
            "flags": to_plain({**own.flags, **phase.flags}),
            "rewards": to_plain({**own.rewards, **phase.rewards}),
            "settings": to_plain(flat(phase.settings)),
            "starts": curriculum.starts_of(index),
            "clear_replay": phase.clear_replay,
            "from": begins,
            "to": ends,
        }
        entries.append(entry)
        begins = ends
    return entries


def end_of(phase: Phase, begins: Mapping[str, int] | None) -> dict[str, int] | None:
    """Where a phase ends on the clock of the run, if that can be known before."""
    if begins is None or phase.until is not None:
        return None
    counted = [key for key in UNITS if getattr(phase, key)]
    if len(counted) != 1 or counted[0] not in begins:
        return None
    return {counted[0]: begins[counted[0]] + getattr(phase, counted[0])}


def until_of(phase: Phase) -> dict[str, Any] | None:
    if phase.until is None:
        return None
    kind = "score" if phase.until.score else "win"
    against = {"against": phase.until.against} if phase.until.against else {}
    return {kind: phase.until.value, **against}


def to_plain(value: Any) -> Any:
    """Schedules as they are written, everything else as it is."""
    if isinstance(value, Mapping):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, Schedule):
        return value.plain()
    return [to_plain(one) for one in value] if isinstance(value, list | tuple) else value


def moment_text(at: Mapping[str, int] | None, otherwise: str) -> str:
    """A place on the clock of the run in words."""
    if at is None:
        return otherwise
    if not any(at.values()):
        return "0"
    return ", ".join(f"{count:,} {unit}" for unit, count in at.items())


def end_text(entry: TimelineEntry, *, last: bool) -> str:
    """What ends a phase, in words."""
    if last:
        return "end of the run"
    until = entry["until"]
    length = " or ".join(f"{count:,} {unit}" for unit, count in entry["length"].items())
    if until is None:
        return moment_text(entry["to"], f"{length} later")
    kind = "score" if "score" in until else "win"
    against = f" against {until['against']}" if "against" in until else ""
    return f"{kind} {until[kind]:g}{against}, or {length} later"


def overrides_text(entry: TimelineEntry) -> str:
    """What holds in a phase besides who is met, in words."""
    groups = {"set": "flags", "rewards": "rewards", "settings": "settings"}
    told = [
        f"{what} {' '.join(f'{name}={value_text(value)}' for name, value in entry[key].items())}"
        for what, key in groups.items()
        if entry[key]
    ]
    if entry["starts"]:
        told.append(f"starts {' '.join(entry['starts'])}")
    if entry["clear_replay"]:
        told.append("the replay is cleared")
    return "; ".join(told) or "as in the run"


def value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return shown(value) if isinstance(value, float) else str(value)


def checks_of(entries: Sequence[TimelineEntry], budget: str, amount: float) -> list[str]:
    """What there is to say about a timeline and the budget of its run."""
    count = len(entries)
    several = f"{count} phases follow one another" if count > 1 else "one phase, the run itself"
    checks = [f"every setting fits; {several}"]
    begun = {entry["name"]: entry["from"] or {budget: -1} for entry in entries}
    late = [name for name, begins in begun.items() if begins.get(budget, 0) >= amount]
    if late:
        checks.append(f"never reached with {budget} {amount:,.10g}: {', '.join(late)}")
    elif count > 1 and budget not in (entries[-1]["from"] or ()):
        checks.append(f"how far {budget} {amount:,.10g} reach is not known before")
    return checks


def curriculum_metrics(course: CurriculumState) -> dict[str, float]:
    """What holds now, by the names of curves; of rewards and line-ups, those that ever change."""
    curriculum, holds = course.curriculum, course.holds
    found: dict[str, float] = {}
    if len(curriculum.phases) > 1:
        found[PHASE] = float(course.index + 1)
    if holds.get("rewards") is not None:
        found |= reward_metrics(curriculum, holds["rewards"])
    for name, value in holds.get("flags", {}).items():
        found |= flag_metrics(curriculum.rules, name, value)
    if changes_opponents(curriculum):
        everybody = [seating.lineup for phase in curriculum.seatings for seating in phase]
        found |= dict.fromkeys(
            (f"{METRIC_GROUP}opponents/{opponent_names(one)}" for one in everybody), 0.0
        )
        found |= opponent_metrics(holds["lineups"])
    return found


def reward_metrics(
    curriculum: Curriculum, rewards: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Weights of the parts that a phase or a schedule changes, role by role where they differ."""
    named = {name for phase in curriculum.phases for name in phase.rewards}
    named |= {name for name, one in curriculum.own.rewards.items() if one.changes}
    parts = {name.rpartition(".")[2] for name in named}
    found: dict[str, float] = {}
    for part, by_role in rewards.items():
        if part not in parts:
            continue
        if len(set(by_role)) == 1:
            found[f"{METRIC_GROUP}reward/{part}"] = float(by_role[0])
        else:
            named_roles = zip(curriculum.rules.roles, by_role, strict=True)
            found |= {
                f"{METRIC_GROUP}reward/{role}.{part}": float(one) for role, one in named_roles
            }
    return found


def flag_metrics(rules: Rules, name: str, value: Any) -> dict[str, float]:
    """A flag as numbers; one of words by the place of its word."""
    try:
        field = rules.fields.get(name)
        numbers = field.parse(value) if field else [float(value)]
    except (ConfigError, TypeError, ValueError):
        return {}
    if len(numbers) == 1:
        return {f"{METRIC_GROUP}flag/{name}": numbers[0]}
    if len(numbers) > MAX_LIST_METRICS:
        return {}
    return {f"{METRIC_GROUP}flag/{name}[{at}]": one for at, one in enumerate(numbers)}


def changes_opponents(curriculum: Curriculum) -> bool:
    """Whether anybody is met more or less often at some time."""
    every = [seating for phase in curriculum.seatings for seating in phase]
    other = any(phase.opponents is not None for phase in curriculum.phases)
    return other or any(seating.weight.changes for seating in every)


def opponent_metrics(lineups: Sequence[Lineup]) -> dict[str, float]:
    total = sum(lineup.weight for lineup in lineups)
    found: dict[str, float] = {}
    for lineup in lineups:
        name = f"{METRIC_GROUP}opponents/{opponent_names(lineup)}"
        found[name] = found.get(name, 0.0) + lineup.weight / total
    return found


def opponent_names(lineup: Lineup) -> str:
    names = [player_name(player) for player in lineup.players if player != LEARNER]
    return ",".join(dict.fromkeys(names)) or "self"


def player_name(player: Any) -> str:
    if isinstance(player, Mix):
        return player.name
    return player if isinstance(player, str) else f"policy {player}"
