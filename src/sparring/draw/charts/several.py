"""Curves of several runs on common axes: one chart per number, one line per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparring.draw.charts.axes import Curve, Form
from sparring.draw.charts.curves import (
    GREY,
    LEARNING,
    LOSSES,
    SPEEDS,
    Chart,
    Series,
    bucket_means,
    loss_title,
    opponents,
    statistic_names,
    statistic_title,
)
from sparring.games.stats import PREFIX

STRENGTH = "eval/strength"
OWN_PAST = "previous best"
"""An opponent that every run has for itself."""


def make_common_charts(
    runs: Mapping[str, Mapping[str, Curve]], *, fair_share: float | None = None
) -> list[Chart]:
    """Return the charts for which some run has numbers; `runs` by the name of its line."""
    names = list(dict.fromkeys(name for curves in runs.values() for name in curves))
    shared = fair_share is not None or any(opponents(names, "win"))
    charts = [strength_chart(runs, shared, fair_share)]
    for rival in dict.fromkeys(opponents(names, "win")):
        if rival == OWN_PAST:
            continue
        lines = lines_of(runs, f"eval/{rival}/win")
        charts.append(Chart(f"Win share against {rival}", lines, "percent", span=(0.0, 1.0)))
    charts.append(Chart("Score in training", lines_of(runs, "charts/score")))
    for name in (n for n in names if n.split("/")[-1] in SPEEDS):
        title = f"Speed, {SPEEDS[name.split('/')[-1]]}"
        charts.append(Chart(title, lines_of(runs, name), "rate", from_zero=True))
    charts.append(Chart("Phase of the curriculum", lines_of(runs, "charts/phase"), from_zero=True))
    there = [name.removeprefix("losses/") for name in names if name.startswith("losses/")]
    for name in [n for n in LOSSES if n in there] + [n for n in there if n not in LOSSES]:
        charts.append(Chart(loss_title(name), lines_of(runs, f"losses/{name}")))
    for name in (n for n in LEARNING if f"learning/{n}" in names):
        lines = lines_of(runs, f"learning/{name}")
        charts.append(Chart(LEARNING[name], lines, from_zero=True))
    for name in statistic_names(names):
        charts.append(Chart(statistic_title(name), lines_of(runs, PREFIX + name)))
    drawn = [chart for chart in charts if chart.series]
    return [replace(chart, wide=not at, named=not at) for at, chart in enumerate(drawn)]


def strength_chart(
    runs: Mapping[str, Mapping[str, Curve]], shared: bool, fair_share: float | None
) -> Chart:
    """The mean win share over the opponents; the score where there are none."""
    form: Form = "percent" if shared else "number"
    return Chart(
        "Mean over opponents" if shared else "Strength: score in evaluations",
        lines_of(runs, STRENGTH),
        form,
        wide=True,
        span=(0.0, 1.0) if shared else None,
        guide=fair_share,
        guide_name="" if fair_share is None else f"equal strength {fair_share:.0%}",
    )


def lines_of(runs: Mapping[str, Mapping[str, Curve]], name: str) -> tuple[Series, ...]:
    """Return one line per run that has the curve; a run has the same colour in every chart."""
    lines = []
    for at, (run, curves) in enumerate(runs.items()):
        if name in curves:
            _, x, values = curves[name]
            look = colour_of(at)
            lines.append(
                Series(run, look[0], bucket_means(x), bucket_means(values), dashed=look[1])
            )
    return tuple(lines)


def colour_of(at: int) -> tuple[int, bool]:
    """Return the colour of the line with this number, and whether it is dashed."""
    return at % GREY, at // GREY % 2 == 1


def short_names(names: Sequence[str]) -> list[str]:
    """Leave out the words with which all names begin; what is left tells them apart."""
    words = [name.split("-") for name in names]
    common = 0
    while all(len(w) > common + 1 and w[common] == words[0][common] for w in words):
        common += 1
    short = ["-".join(w[common:]) for w in words]
    return short if len(names) > 1 and len(set(short)) == len(set(names)) else list(names)
