"""Comparison of groups of runs: charts, matches and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from sparring.commands.shared.printing import ProgressBar, echo, make_table, print_table
from sparring.draw.charts.axes import Axis, By, Form, label
from sparring.draw.charts.chart import Chart, EstimateBar, EstimateChart, Series
from sparring.draw.charts.curves import color_of, equal_strength
from sparring.draw.charts.page import ChartPage
from sparring.errors import SparringError
from sparring.league.intervals import wilson
from sparring.league.statistics import Estimate
from sparring.training.records.comparison import Comparison, RunGroup
from sparring.training.records.comparison_report import (
    GroupMatch,
    budget_name,
    disagreements,
    measure_of,
)

MANY_GROUPS = 4
"""With more groups, only pairs with the strongest are shown."""
MAX_LABEL = 56
"""Longest settings of a group in a chart."""


def form_of(found: Comparison) -> Form:
    """Return the number format of strength: win shares in percent, scores as numbers."""
    return "number" if found.rules.seats == 1 else "percent"


def short_label(group: RunGroup) -> str:
    """Return the name and the settings of a group, shortened for a chart."""
    text = group.label if len(group.label) <= MAX_LABEL else group.label[: MAX_LABEL - 1] + "…"
    return f"{group.name}  {text}"


def estimate_cells(value: Estimate | None, form: Form) -> tuple[str, str]:
    """Return a value and its interval as text."""
    if value is None:
        return "–", "–"
    if value.low is None or value.high is None:
        return label(value.value, form), "–"
    return label(value.value, form), f"{label(value.low, form)} .. {label(value.high, form)}"


def make_page(found: Comparison, matches: Sequence[GroupMatch]) -> ChartPage:
    """Return curves with bands, and charts of the estimates in the tables."""
    runs = len(found.entries)
    facts = (measure_of(found), "lines: interquartile mean over runs; bands and bars: 95 %")
    charts: list[Chart | EstimateChart] = [curve_chart(found, by) for by in found.budgets]
    charts += estimates(found, matches)
    title = f"{found.rules.name}: {len(found.groups)} groups, {runs} runs"
    return ChartPage(title, facts, tuple(charts))


def curve_chart(found: Comparison, by: By) -> Chart:
    """Return the strength of every group over time or decisions."""
    lines, end = [], 0.0
    for at, group in enumerate(found.groups):
        band = group.over(by, seed=found.seed)
        color, dashed = color_of(at)
        lines.append(
            Series(short_label(group), color, band.x, band.values, band.low, band.high, dashed)
        )
        end = max([end, *(float(entry.strength_by(by)[0][-1]) for entry in group.entries)])
    one_seat = found.rules.seats == 1
    parity = None if one_seat else 1 / found.rules.seats
    return Chart(
        f"Strength by {by}",
        tuple(lines),
        form_of(found),
        wide=True,
        guide=parity,
        guide_name=equal_strength(parity),
        span=None if one_seat else (0.0, 1.0),
        axis=Axis(by, end or 1.0),
    )


def estimates(found: Comparison, matches: Sequence[GroupMatch]) -> list[EstimateChart]:
    """Return charts of final strength, strength at equal budget, pairs and score per hour."""
    form = form_of(found)
    rows = [estimate_row(found, g, found.strength(g), found.strengths(g)) for g in found.groups]
    charts = [EstimateChart("Final strength (dots: runs)", tuple(rows), form)]
    for by in found.uneven:
        at = [(g, found.strength_at_common(g, by)) for g in found.groups]
        rows = [estimate_row(found, g, value) for g, value in at if value]
        charts.append(EstimateChart(f"Strength at {budget_name(found, by)}", tuple(rows), form))
    rows = [
        EstimateBar(f"{one.name} over {two.name}", index(found, one), p.value, p.low, p.high)
        for one, two, p in pairs_shown(found)
        if p.low is not None
    ]
    title = "Probability that a run is stronger"
    charts.append(EstimateChart(title, tuple(rows), "percent", (0.0, 1.0), guide=0.5))
    rows = [
        EstimateBar(
            f"{m.one.name} against {m.two.name}", index(found, m.one), m.share, m.low, m.high
        )
        for m in matches
    ]
    title = "Head to head: share of wins of the best"
    charts.append(EstimateChart(title, tuple(rows), "percent", (0.0, 1.0), guide=0.5))
    for title, estimate, how in (
        ("Score gained per hour", found.score_per_hour, "number"),
        *losses(found).values(),
    ):
        known = [(g, estimate(g)) for g in found.groups]
        rows = [estimate_row(found, g, value) for g, value in known if value]
        charts.append(EstimateChart(title, tuple(rows), how))
    return [chart for chart in charts if chart.rows]


def losses(
    found: Comparison,
) -> dict[str, tuple[str, Callable[[RunGroup], Estimate | None], Form]]:
    """Return by column of what responses win: its title, how a group's is found, its format."""
    seen = next((one.of for entry in found.entries if (one := entry.run.seeing)), "")
    columns = {
        "exploited": (found.exploited_of, "a response", found.exploited_estimate),
        "seeing": (seen, "a response that sees what is hidden", found.seeing),
    }
    return {
        name: (
            f"{name.capitalize()}: {of} of {whose}",
            value,
            "percent" if of == "win share" else "number",
        )
        for name, (of, whose, value) in columns.items()
        if of
    }


def pairs_shown(found: Comparison) -> list[tuple[RunGroup, RunGroup, Estimate]]:
    """Return all pairs of few groups; of many, the strongest against each other one."""
    if len(found.groups) <= MANY_GROUPS:
        return list(found.pairs())
    best = found.strongest
    pairs = []
    for one, two, p in found.pairs():
        if one is best:
            pairs.append((one, two, p))
        elif two is best:
            pairs.append((two, one, p.complement()))
    return pairs


def estimate_row(
    found: Comparison, group: RunGroup, value: Estimate, points: Sequence[float] = ()
) -> EstimateBar:
    dots = tuple(points) if len(points) > 1 else ()
    ends = value.value, value.low, value.high
    return EstimateBar(short_label(group), index(found, group), *ends, dots)


def index(found: Comparison, group: RunGroup) -> int:
    return color_of(found.groups.index(group))[0]


def matches_of(
    found: Comparison, *, games: int, seed: int = 0, threads: int = 0
) -> tuple[list[GroupMatch], list[str]]:
    """Play the best policies of the groups against each other; return matches and notes."""
    if not games or len(found.groups) < 2:
        return [], []
    if found.rules.seats == 1:
        return [], [f"{found.rules.name} has one seat: no matches between the groups"]
    matches, why = play_matches(found, games, seed, threads or os.cpu_count() or 1)
    return matches, [*why, *disagreements(found, matches)]


def play_matches(
    found: Comparison, games: int, seed: int, threads: int
) -> tuple[list[GroupMatch], list[str]]:
    from sparring.extras import set_threads
    from sparring.league.arena import share_of_wins
    from sparring.store.policies import load_policy

    set_threads(threads)
    try:
        policies = {
            group.name: load_policy(found.best(group).run.path, name=group.name, threads=threads)
            for group in found.groups
        }
    except SparringError as error:
        return [], [f"no matches between the groups: {error}"]
    pairs = pairs_shown(found)
    matches = []
    with ProgressBar(f"playing {found.rules.name}", len(pairs)) as steps:
        for at, (one, two, _) in enumerate(pairs):
            steps.next(f"{one.name} against {two.name}")
            ours, theirs = policies[one.name], policies[two.name]
            share, played, deals = share_of_wins(
                found.rules,
                ours,
                theirs,
                games=games,
                seed=seed + 1_000_003 * at,
                threads=threads,
            )
            matches.append(GroupMatch(one, two, played, share, *wilson(share, deals)))
    how = "the strongest run of each group, sampled actions, every deal from every seat"
    return matches, [f"matches: {how}"]


def print_comparison(
    found: Comparison, matches: Sequence[GroupMatch], lines: Sequence[str]
) -> None:
    print_groups(found)
    print_pairs(found, matches)
    for line in lines:
        echo(line)


def print_groups(found: Comparison) -> None:
    form = form_of(found)
    at = [f"at {budget_name(found, by)}" for by in found.uneven]
    name = f"{found.measure} (IQM)"
    rates = [found.score_per_hour(group) for group in found.groups]
    gained = ("score/h",) if any(rates) else ()
    lost = losses(found)
    numbers = ("runs", name, "95 %", *lost, *at, *gained)
    least = (*gained, *at, "settings", "runs")
    table = make_table(("group", "settings", *numbers), numbers=numbers, least=least)
    for group, rate in zip(found.groups, rates, strict=True):
        common = (
            estimate_cells(found.strength_at_common(group, by), form)[0] for by in found.uneven
        )
        last = [estimate_cells(rate, "number")[0]] if gained else []
        strength = estimate_cells(found.strength(group), form)
        lost_cells = (loss_cell(value(group), how) for _, value, how in lost.values())
        cells = (*strength, *lost_cells, *common, *last)
        table.add_row(group.name, group.label, str(len(group.entries)), *cells)
    print_table(table)


def loss_cell(value: Estimate | None, form: Form) -> str:
    """Return the cell of a group's loss to responses, with its interval."""
    text, interval = estimate_cells(value, form)
    return text if interval == "–" else f"{text} ({interval})"


def print_pairs(found: Comparison, matches: Sequence[GroupMatch]) -> None:
    """Print which group is stronger, by seeds and by matches."""
    by_pair = {(match.one.name, match.two.name): match for match in matches}
    pairs = pairs_shown(found)
    if not pairs:
        return
    numbers = ("stronger", "95 %", *(("wins in matches", "95 % of wins") if matches else ()))
    table = make_table(("pair", *numbers), numbers=numbers)
    for one, two, chance in pairs:
        match = by_pair.get((one.name, two.name))
        share = Estimate(match.share, match.low, match.high) if match else None
        known = chance if chance.low is not None else None
        cells: tuple[str, ...] = estimate_cells(known, "percent")
        cells += estimate_cells(share, "percent") if matches else ()
        table.add_row(f"{one.name} over {two.name}", *cells)
    print_table(table)
