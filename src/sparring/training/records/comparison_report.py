"""What a comparison says: its numbers as plain values, and what has to be said beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

from sparring.draw.charts.axes import By, label
from sparring.games.flags import changed_flags
from sparring.league.statistics import MIN_RUNS
from sparring.store.folders import join_names
from sparring.training.records.comparison import SAME_LENGTH, Comparison, RunGroup, differing
from sparring.training.records.exploited import EXPLOITABILITY

FORCED = "set.skip_forced"
"""The flag by which some runs are asked less often than others in the same games."""


@dataclass(frozen=True)
class GroupMatch:
    """How the best policies of two groups did against each other."""

    one: RunGroup
    two: RunGroup
    games: int
    share: float
    """Of the wins, the first group's; 0.5 among equals, however many seats there are."""
    low: float
    high: float

    def plain(self) -> dict[str, Any]:
        ends = {"share": self.share, "low": self.low, "high": self.high}
        return {"one": self.one.name, "two": self.two.name, "games": self.games, **ends}


def described(found: Comparison, matches: Sequence[GroupMatch]) -> dict[str, Any]:
    """Return everything that was found, as JSON has it."""
    return {
        "game": found.rules.name,
        "flags": changed_flags(found.rules),
        "by": list(found.by),
        "opponents": list(found.opponents),
        "measured": "after training" if found.measured_at_end else "last evaluation",
        "common": {by: found.common(by) for by in found.budgets},
        "groups": [described_group(found, group) for group in found.groups],
        "improvement": [
            {"one": one.name, "two": two.name, **p.plain()} for one, two, p in found.pairs()
        ],
        "matches": [match.plain() for match in matches],
    }


def described_group(found: Comparison, group: RunGroup) -> dict[str, Any]:
    at = {by: found.strength_at_common(group, by) for by in found.budgets}
    rate, lost = found.score_per_hour(group), found.exploited_estimate(group)
    seeing = found.seeing(group)
    return {
        "group": group.name,
        "settings": group.settings,
        "label": group.label,
        "runs": [
            {
                "run": str(entry.run.path),
                "seed": entry.seed,
                "strength": strength,
                "minutes": entry.run.minutes,
                "decisions": entry.run.decisions,
                "exploited": entry.run.exploited and asdict(entry.run.exploited),
                "seeing": entry.run.seeing and asdict(entry.run.seeing),
            }
            for entry, strength in zip(group.entries, found.strengths(group), strict=True)
        ],
        "strength": found.strength(group).plain(),
        "strength_at_common": {by: value and value.plain() for by, value in at.items()},
        "score_per_hour": rate and rate.plain(),
        "exploited": lost and lost.plain(),
        "seeing": seeing and seeing.plain(),
    }


def budget_name(found: Comparison, by: By) -> str:
    """Return the common budget as text."""
    place = found.common(by)
    return f"{label(place, 'rate')} decisions" if by == "decisions" else f"{place:.3g} min"


def measure_of(found: Comparison) -> str:
    """Say what strength means here."""
    when = (
        "best checkpoint, measured after training" if found.measured_at_end else "last evaluation"
    )
    if found.rules.seats == 1:
        return f"strength: {found.measure}, {when}"
    mean = "mean win share" if len(found.opponents) > 1 else "win share"
    return f"strength: {mean} against {found.measure}, {when}"


def notes(found: Comparison) -> list[str]:
    """Say what the numbers cannot tell, and why."""
    told = [measure_of(found)]
    if not found.by:
        told.append("the runs differ in nothing but the seed: one group")
    alone = [group.name for group in found.groups if len(group.entries) == 1]
    if alone:
        word = "has" if len(alone) == 1 else "have"
        told.append(
            f"{listed(alone)} {word} one run: nothing can be told about seeds, so there is no "
            "interval, and a difference may be luck; train more seeds"
        )
    few = [g.name for g in found.groups if 1 < len(g.entries) < MIN_RUNS]
    if few:
        told.append(
            f"{listed(few)}: fewer than {MIN_RUNS} runs, so the intervals are rough; train more "
            "seeds"
        )
    told += [*apart(found), *exploited_notes(found)]
    for group in found.groups:
        seeds = Counter(entry.seed for entry in group.entries)
        twice = [str(seed) for seed, count in seeds.items() if count > 1]
        if twice:
            told.append(
                f"{group.name} has seed {listed(twice)} more than once: no runs of their own"
            )
        others = [key for key in differing(group.entries) if key not in found.by]
        if others:
            told.append(f"within {group.name} runs also differ in {listed(others)}")
    going_on = [entry.run.name for entry in found.entries if entry.run.state == "running"]
    if going_on:
        told.append(f"still going on: {', '.join(going_on)}")
    if len({entry.settings.get(FORCED) for entry in found.entries}) > 1:
        told.append(f"{FORCED}: decisions are those that were asked for; minutes are alike")
    if not found.budgets:
        told.append("some runs were measured at their end alone: there are no curves")
    if found.uneven:
        told.append(
            "the runs are not equally long: compare them at "
            f"{budget_name(found, 'decisions')} or at {budget_name(found, 'minutes')}, "
            "which all of them have"
        )
    return told


def disagreements(found: Comparison, matches: Sequence[GroupMatch]) -> list[str]:
    """Say where the group with the lower strength wins the matches beyond chance."""
    told = []
    for match in matches:
        if match.low <= 0.5 <= match.high:
            continue
        won, lost = (match.one, match.two) if match.share > 0.5 else (match.two, match.one)
        if found.strength(won).value < found.strength(lost).value:
            told.append(
                f"strength and matches disagree: {won.name} wins the matches against {lost.name}, "
                f"which has more strength; strength counts {listed(found.opponents)} alone"
            )
    return told


def exploited_notes(found: Comparison) -> list[str]:
    """Say what the losses to responses mean, and whose are missing or not comparable."""
    known = [one for group in found.groups for one in found.exploited(group)]
    runs = [entry.run for entry in found.entries]
    old = [r.name for r in runs if r.exploitations and not (r.exploited or r.seeing)]
    told = []
    if old:
        told.append(f"{listed(old)}: exploited at another checkpoint than its best; do it again")
    if seen := [run.seeing for run in runs if run.seeing]:
        what = "score per game" if seen[0].of == "score" else seen[0].of
        told.append(
            f"seeing: {what} of the strongest response that sees what is hidden, which no opponent "
            f"may: no bound, but what seeing is worth; {len(seen)} of {len(runs)} runs"
        )
    if not known:
        return told
    what = "score per game" if found.exploited_of == "score" else found.exploited_of
    bound = "exact" if found.exploited_of == EXPLOITABILITY else "a lower bound"
    told.append(
        f"exploited: {what} of the strongest response, {bound}; an equal wins "
        f"{known[0].equal:.3g}; {len(known)} of {len(found.entries)} runs"
    )
    decisions = sorted(one.decisions for one in known)
    uneven = decisions[-1] - decisions[0] > SAME_LENGTH * decisions[-1]
    if uneven or len({(one.plays, one.responses) for one in known}) > 1:
        most, least = (label(decisions[at], "rate") for at in (-1, 0))
        counts = sorted({one.responses for one in known})
        ways = listed(sorted({one.plays for one in known}))
        told.append(
            f"the responses are not alike ({least} to {most} decisions, {counts[0]} to "
            f"{counts[-1]} responses, against {ways} actions): more of them find more"
        )
    return told


def apart(found: Comparison) -> list[str]:
    """Say how little it may mean that two groups do not overlap, which no bootstrap knows."""
    cases: dict[tuple[int, int], list[str]] = {}
    for one, two, chance in found.pairs():
        if chance.low is not None and chance.value in (0.0, 1.0):
            better, worse = (one, two) if chance.value else (two, one)
            counts = sorted((len(one.entries), len(two.entries)))
            words = cases.setdefault((counts[0], counts[1]), [])
            words.append(f"{better.name} over {worse.name}")
    return [
        f"{join_names(pairs)}: all runs of the one are stronger than all of the other; luck puts "
        f"{few} and {many} runs so far apart in 1 of {comb(few + many, few) // 2:,} comparisons"
        for (few, many), pairs in cases.items()
    ]


def listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
