"""Display of a curriculum: its timeline before training, its metrics during training."""

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
from sparring.schedule import Schedule, format_number

UNITS = ("decisions", "episodes")
PHASE = "charts/phase"
"""Metric: number of the current phase, from 1."""
METRIC_GROUP = "curriculum/"
MAX_LIST_METRICS = 16
"""Longest list flag that gets metrics."""


TimelineEntry = dict[str, Any]
"""One phase: `from` and `to` (None if they depend on the run), `length`, and its settings, with
schedules as text."""


def timeline_of(curriculum: Curriculum, opponents: Sequence[str]) -> list[TimelineEntry]:
    """Return all phases. opponents: of the run, for phases that name none."""
    entries, base = [], curriculum.base
    begins: Mapping[str, int] | None = dict.fromkeys(UNITS, 0)
    for index, phase in enumerate(curriculum.phases):
        ends = end_of(phase, begins)
        entry = {
            "name": phase.name,
            "length": {key: getattr(phase, key) for key in UNITS if getattr(phase, key)},
            "until": until_of(phase),
            "opponents": opponents if phase.opponents is None else phase.opponents,
            "flags": to_plain({**base.flags, **phase.flags}),
            "rewards": to_plain({**base.rewards, **phase.rewards}),
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
    """Return the end of a phase on the clock of the run, None if it depends on the run."""
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
    """Replace schedules by their text, at any depth."""
    if isinstance(value, Mapping):
        return {name: to_plain(one) for name, one in value.items()}
    if isinstance(value, Schedule):
        return value.plain()
    return [to_plain(one) for one in value] if isinstance(value, list | tuple) else value


def moment_text(at: Mapping[str, int] | None, otherwise: str) -> str:
    """Return a moment of the run as text."""
    if at is None:
        return otherwise
    if not any(at.values()):
        return "0"
    return ", ".join(f"{count:,} {unit}" for unit, count in at.items())


def end_text(entry: TimelineEntry, *, last: bool) -> str:
    """Return the end condition of a phase as text."""
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
    """Return the overrides of a phase, without opponents, as text."""
    groups = {"set": "flags", "rewards": "rewards", "settings": "settings"}
    texts = [
        f"{name} {' '.join(f'{flag}={value_text(value)}' for flag, value in entry[key].items())}"
        for name, key in groups.items()
        if entry[key]
    ]
    if entry["starts"]:
        texts.append(f"starts {' '.join(entry['starts'])}")
    if entry["clear_replay"]:
        texts.append("the replay is cleared")
    return "; ".join(texts) or "as in the run"


def value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return format_number(value) if isinstance(value, float) else str(value)


def checks_of(entries: Sequence[TimelineEntry], budget: str, amount: float) -> list[str]:
    """Return remarks about a timeline: phases that the budget of the run never reaches."""
    count = len(entries)
    several = f"{count} phases follow one another" if count > 1 else "one phase, the whole run"
    checks = [f"every setting fits; {several}"]
    begun = {entry["name"]: entry["from"] or {budget: -1} for entry in entries}
    late = [name for name, begins in begun.items() if begins.get(budget, 0) >= amount]
    if late:
        checks.append(f"never reached with {budget} {amount:,.10g}: {', '.join(late)}")
    elif count > 1 and budget not in (entries[-1]["from"] or ()):
        checks.append(f"whether {budget} {amount:,.10g} reach the last phase depends on the run")
    return checks


def curriculum_metrics(state: CurriculumState) -> dict[str, float]:
    """Return the current overrides as metrics; rewards and line-ups only if they ever change."""
    curriculum, current = state.curriculum, state.current
    metrics: dict[str, float] = {}
    if len(curriculum.phases) > 1:
        metrics[PHASE] = float(state.index + 1)
    if current.get("rewards") is not None:
        metrics |= reward_metrics(curriculum, current["rewards"])
    for name, value in current.get("flags", {}).items():
        metrics |= flag_metrics(curriculum.rules, name, value)
    if changes_opponents(curriculum):
        lineups = [seating.lineup for phase in curriculum.seatings for seating in phase]
        metrics |= dict.fromkeys(
            (f"{METRIC_GROUP}opponents/{opponent_names(one)}" for one in lineups), 0.0
        )
        metrics |= opponent_metrics(current["lineups"])
    return metrics


def reward_metrics(
    curriculum: Curriculum, rewards: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Return weights of reward parts that change, one per role where roles differ."""
    named = {name for phase in curriculum.phases for name in phase.rewards}
    named |= {name for name, one in curriculum.base.rewards.items() if one.changes}
    parts = {name.rpartition(".")[2] for name in named}
    metrics: dict[str, float] = {}
    for part, by_role in rewards.items():
        if part not in parts:
            continue
        if len(set(by_role)) == 1:
            metrics[f"{METRIC_GROUP}reward/{part}"] = float(by_role[0])
        else:
            named_roles = zip(curriculum.rules.roles, by_role, strict=True)
            metrics |= {
                f"{METRIC_GROUP}reward/{role}.{part}": float(one) for role, one in named_roles
            }
    return metrics


def flag_metrics(rules: Rules, name: str, value: Any) -> dict[str, float]:
    """Return a flag as metrics; an enum flag as the index of its value."""
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
    """Whether weights of line-ups differ between phases or over time."""
    every = [seating for phase in curriculum.seatings for seating in phase]
    other = any(phase.opponents is not None for phase in curriculum.phases)
    return other or any(seating.weight.changes for seating in every)


def opponent_metrics(lineups: Sequence[Lineup]) -> dict[str, float]:
    total = sum(lineup.weight for lineup in lineups)
    metrics: dict[str, float] = {}
    for lineup in lineups:
        name = f"{METRIC_GROUP}opponents/{opponent_names(lineup)}"
        metrics[name] = metrics.get(name, 0.0) + lineup.weight / total
    return metrics


def opponent_names(lineup: Lineup) -> str:
    names = [player_name(player) for player in lineup.players if player != LEARNER]
    return ",".join(dict.fromkeys(names)) or "self"


def player_name(player: Any) -> str:
    if isinstance(player, Mix):
        return player.name
    return player if isinstance(player, str) else f"policy {player}"
