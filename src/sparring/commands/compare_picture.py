"""What `sparring compare` shows: the picture, and what has to be said beside the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from sparring.draw.charts.axes import Axis, By, Form, label
from sparring.draw.charts.curves import Chart, Page, Series
from sparring.draw.charts.estimates import Estimate, Estimates
from sparring.draw.charts.several import colour_of
from sparring.league.statistics import ROUGH_BELOW, Found
from sparring.store.folders import shortened
from sparring.training.records.comparison import Comparison, Group, differing

MANY_GROUPS = 4
"""Beyond these, a picture and a table have no room for all pairs."""
LONGEST = 56
"""Letters of a group's settings in a picture."""
BUDGETS: tuple[By, ...] = ("decisions", "minutes")
FORCED = "set.skip_forced"
"""The flag by which some runs are asked less often than others in the same games."""


@dataclass(frozen=True)
class Match:
    """How the best policies of two groups did against each other."""

    one: Group
    two: Group
    games: int
    share: float
    """Of the wins, the first group's; 0.5 among equals, however many seats there are."""
    low: float
    high: float

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        ends = {"share": self.share, "low": self.low, "high": self.high}
        return {"one": self.one.name, "two": self.two.name, "games": self.games, **ends}


def form_of(found: Comparison) -> Form:
    """Return how strength is written: win shares as percentages, scores as they are."""
    return "number" if found.rules.seats == 1 else "percent"


def short_label(group: Group) -> str:
    """Return a group's name and settings, cut where a picture has no more room."""
    text = group.label if len(group.label) <= LONGEST else group.label[: LONGEST - 1] + "…"
    return f"{group.name}  {text}"


def shown(value: Found | None, form: Form) -> tuple[str, str]:
    """Return a value and its interval as text."""
    if value is None:
        return "–", "–"
    if value.low is None or value.high is None:
        return label(value.value, form), "–"
    return label(value.value, form), f"{label(value.low, form)} .. {label(value.high, form)}"


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
        return f"strength: score, {when}"
    return f"strength: mean win share against {', '.join(found.opponents)}, {when}"


def make_page(found: Comparison, matches: Sequence[Match]) -> Page:
    """Return curves with bands, and the estimates that the tables have."""
    runs = len(found.entries)
    facts = (measure_of(found), "lines: interquartile mean over runs; bands and bars: 95 %")
    charts: list[Chart | Estimates] = [curve_chart(found, by) for by in BUDGETS]
    charts += estimates(found, matches)
    title = f"{found.rules.name}: {len(found.groups)} groups, {runs} runs"
    return Page(title, facts, tuple(charts), Axis("minutes", 1.0))


def curve_chart(found: Comparison, by: By) -> Chart:
    """Return the strength of every group over what it cost."""
    lines, end = [], 0.0
    for at, group in enumerate(found.groups):
        band = group.over(by, seed=found.seed)
        colour, dashed = colour_of(at)
        lines.append(
            Series(short_label(group), colour, band.x, band.values, band.low, band.high, dashed)
        )
        end = max([end, *(float(entry.strength_by(by)[0][-1]) for entry in group.entries)])
    alone = found.rules.seats == 1
    parity = None if alone else 1 / found.rules.seats
    return Chart(
        f"Strength by {by}",
        tuple(lines),
        form_of(found),
        wide=True,
        guide=parity,
        guide_name="" if parity is None else f"equal strength {parity:.0%}",
        span=None if alone else (0.0, 1.0),
        axis=Axis(by, end or 1.0),
    )


def estimates(found: Comparison, matches: Sequence[Match]) -> list[Estimates]:
    """Return final strength, the same at the common budget, who is better, score per hour."""
    form = form_of(found)
    rows = [estimate_row(found, g, found.strength(g), found.strengths(g)) for g in found.groups]
    charts = [Estimates("Final strength (dots: runs)", tuple(rows), form)]
    for by in BUDGETS:
        if found.differs(by):
            at = [(g, found.strength_at_common(g, by)) for g in found.groups]
            rows = [estimate_row(found, g, value) for g, value in at if value]
            charts.append(Estimates(f"Strength at {budget_name(found, by)}", tuple(rows), form))
    rows = [
        Estimate(f"{one.name} over {two.name}", index(found, one), p.value, p.low, p.high)
        for one, two, p in pairs_shown(found)
        if p.low is not None
    ]
    title = "Probability that a run is stronger"
    charts.append(Estimates(title, tuple(rows), "percent", (0.0, 1.0), guide=0.5))
    rows = [
        Estimate(f"{m.one.name} against {m.two.name}", index(found, m.one), m.share, m.low, m.high)
        for m in matches
    ]
    title = "Head to head: share of wins of the best"
    charts.append(Estimates(title, tuple(rows), "percent", (0.0, 1.0), guide=0.5))
    rates = [(g, found.score_per_hour(g)) for g in found.groups]
    rows = [estimate_row(found, g, value) for g, value in rates if value]
    charts.append(Estimates("Score gained per hour", tuple(rows)))
    return [chart for chart in charts if chart.rows]


def pairs_shown(found: Comparison) -> list[tuple[Group, Group, Found]]:
    """Return all pairs of a few groups; of many, the strongest against each of the others."""
    if len(found.groups) <= MANY_GROUPS:
        return list(found.pairs())
    best = found.strongest
    pairs = []
    for one, two, p in found.pairs():
        if one is best:
            pairs.append((one, two, p))
        elif two is best:
            pairs.append((two, one, p.turned()))
    return pairs


def estimate_row(
    found: Comparison, group: Group, value: Found, points: Sequence[float] = ()
) -> Estimate:
    """Return one line about a group."""
    dots = tuple(points) if len(points) > 1 else ()
    ends = value.value, value.low, value.high
    return Estimate(short_label(group), index(found, group), *ends, dots)


def index(found: Comparison, group: Group) -> int:
    """Return a group's colour."""
    return colour_of(found.groups.index(group))[0]


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
    few = [g.name for g in found.groups if 1 < len(g.entries) < ROUGH_BELOW]
    if few:
        told.append(
            f"{listed(few)}: fewer than {ROUGH_BELOW} runs, so the intervals are too narrow"
        )
    told += apart(found)
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
    if found.differs("minutes") or found.differs("decisions"):
        told.append(
            "the runs are not equally long: compare them at "
            f"{budget_name(found, 'decisions')} or at {budget_name(found, 'minutes')}, "
            "which all of them have"
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
        f"{shortened(pairs)}: all runs of the one are stronger than all of the other; luck puts "
        f"{few} and {many} runs so far apart in 1 of {comb(few + many, few) // 2:,} comparisons"
        for (few, many), pairs in cases.items()
    ]


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence has them."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
