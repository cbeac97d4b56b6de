"""Charts of the curves of a run, or of several runs with a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sparring.draw.charts.axes import Curve, Floats, Form
from sparring.draw.charts.chart import Chart, Series
from sparring.draw.charts.page import COLORS
from sparring.games.stats import PREFIX

MAX_POINTS = 160
"""Points of a line; longer curves are drawn as means with their range."""
GRAY = len(COLORS) - 1
"""The last color, for the rest."""
PHASES = (
    *("stepping", "inference", "select", "evaluate", "settle", "transfer", "advantage"),
    *("replay", "sampling", "update", "other"),
)
LOSSES = {
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "entropy": "Entropy",
    "approx_kl": "Approximate KL per update",
    "clipfrac": "Clipped share of samples",
    "explained_variance": "Explained variance of returns",
    "grad_norm": "Gradient norm",
    "q_loss": "Q loss",
    "td_error": "Mean TD error",
    "critic_loss": "Critic loss",
    "actor_loss": "Policy loss",
    "temperature_loss": "Temperature loss",
}
LEARNING = {
    "replay_ratio": "Samples trained per decision",
    "steps_per_decision": "Gradient steps per decision",
    "replay_fill": "Replay: share that is full",
    "replay_age": "Replay: mean age in decisions",
    "epsilon": "Share of random actions",
    "temperature": "Temperature (entropy coefficient)",
}
"""Curves learning/... that are drawn."""
CURRICULUM = {
    "reward": "Reward weights",
    "flag": "Flags of the game",
    "opponents": "Share of games per opponent",
}
"""Groups of curriculum/..., one chart each."""
STRENGTH, EXPLOITABILITY = "eval/strength", "eval/exploitability"
EXACT = "Exploitability, exact"
PREVIOUS_BEST = "previous best"
"""An opponent that differs from run to run."""
SPEEDS = {"SPS": "decisions/s", "decisions_per_s": "decisions/s", "samples_per_s": "samples/s"}


def make_charts(curves: Mapping[str, Curve], *, fair_share: float | None = None) -> list[Chart]:
    """Return the charts that have data; the curves have x values of an axis."""
    exact = Chart(EXACT, single(curves, EXPLOITABILITY), from_zero=True)
    charts = [wins(curves, fair_share), scores(curves), exact, speeds(curves), phases(curves)]
    share = single(curves, "charts/machine_share", "share")
    charts.append(Chart("Share of this machine", share, "percent", from_zero=True))
    rate = single(curves, "charts/simulations_per_s")
    charts.append(Chart("Simulations of searches", rate, "rate", from_zero=True))
    charts += losses(curves)
    for name, title in LEARNING.items():
        charts.append(Chart(title, single(curves, f"learning/{name}"), from_zero=True))
    charts += [*curriculum(curves), *statistics(curves)]
    return [chart for chart in charts if chart.series]


def single(curves: Mapping[str, Curve], key: str, name: str = "last") -> tuple[Series, ...]:
    return (series(name, 0, curves[key]),) if key in curves else ()


def statistics(curves: Mapping[str, Curve]) -> list[Chart]:
    """A chart for each statistic of the game, with its stages if any."""
    charts = []
    for name, stages in statistic_names(curves).items():
        whole = "whole game" if len(stages) > 1 else "last"
        lines = [
            series(stage.removeprefix("_") or whole, at % GRAY, curves[PREFIX + name + stage])
            for at, stage in enumerate(stages)
        ]
        charts.append(Chart(statistic_title(name), tuple(lines)))
    return charts


def statistic_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the game's statistics with the suffixes of their stages, "" for the whole game.

    bid_kept_early is a stage of bid_kept; names that end with a number, such as a round, are left
    out.
    """
    there = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    found: dict[str, list[str]] = {}
    for name in there:
        whole = next((other for other in there if name.startswith(f"{other}_")), name)
        stages = found.setdefault(whole, [])
        if not name[-1].isdecimal():
            stages.append(name.removeprefix(whole))
    return {name: stages for name, stages in found.items() if stages}


def statistic_title(name: str) -> str:
    return f"Game statistics: {name.replace('_', ' ')}"


def losses(curves: Mapping[str, Curve]) -> list[Chart]:
    """A chart for every loss, with a line per role if there are roles."""
    lines: dict[str, list[Series]] = {}
    for key in (key for key in curves if key.startswith("losses/")):
        name, _, role = key.removeprefix("losses/").partition("/")
        of_loss = lines.setdefault(name, [])
        of_loss.append(series(role or "last", len(of_loss) % GRAY, curves[key]))
    return [Chart(loss_title(name), tuple(lines[name])) for name in sort_losses(lines)]


def sort_losses(losses: Iterable[str]) -> list[str]:
    """Return the losses of LOSSES in their order, then the others."""
    there = list(losses)
    return [n for n in LOSSES if n in there] + [n for n in there if n not in LOSSES]


def loss_title(name: str) -> str:
    """Return the title of a loss, with its role if any."""
    loss, _, role = name.partition("/")
    title = LOSSES.get(loss, loss.replace("_", " ").capitalize())
    return f"{title}, {role}" if role else title


def curriculum(curves: Mapping[str, Curve]) -> list[Chart]:
    """Values that phases and schedules of a run changed."""
    charts = []
    for group, title in CURRICULUM.items():
        begins = f"curriculum/{group}/"
        names = sorted(name for name in curves if name.startswith(begins))
        lines = [
            replace(series(name.removeprefix(begins), at % GRAY, curves[name]), dashed=at >= GRAY)
            for at, name in enumerate(names)
        ]
        form: Form = "percent" if group == "opponents" else "number"
        charts.append(Chart(title, tuple(lines), form, from_zero=True))
    return charts


def wins(curves: Mapping[str, Curve], fair_share: float | None) -> Chart:
    """Win share against each opponent, with its interval."""
    lines: list[Series] = []
    for name in opponents(curves, "win"):
        updates, x, values = curves[f"eval/{name}/win"]
        low, high = (
            values_at_updates(updates, curves.get(f"eval/{name}/{end}")) for end in ("low", "high")
        )
        lines.append(Series(name, len(lines) % GRAY, x, values, low, high))
    return Chart(
        "Win share against each opponent",
        tuple(lines),
        "percent",
        wide=True,
        span=(0.0, 1.0),
        guide=fair_share,
        guide_name=equal_strength(fair_share),
    )


def equal_strength(share: float | None) -> str:
    """Return the label of the win share of an equal player."""
    return "" if share is None else f"equal strength {share:.0%}"


def scores(curves: Mapping[str, Curve]) -> Chart:
    """Scores in training and in evaluations."""
    met = opponents(curves, "score")
    lines = [
        series(f"against {n}", at % GRAY, curves[f"eval/{n}/score"]) for at, n in enumerate(met)
    ]
    own = [n for n in curves if n.split("/")[-1] == "score" and not n.startswith("eval/")]
    # An opponent has the same color here as among the wins.
    lines += [series("training", GRAY if met else 0, curves[n]) for n in own]
    return Chart("Score", tuple(lines))


def speeds(curves: Mapping[str, Curve]) -> Chart:
    """Decisions per second end to end, and samples per second of the learner."""
    found = {n: SPEEDS[n.split("/")[-1]] for n in curves if n.split("/")[-1] in SPEEDS}
    lines = [series(shown, at % GRAY, curves[n]) for at, (n, shown) in enumerate(found.items())]
    return Chart("Speed, update included", tuple(lines), "rate", from_zero=True)


def phases(curves: Mapping[str, Curve]) -> Chart:
    """Shares of the time of each update."""
    names = [name for name in PHASES if f"phases/{name}" in curves]
    names += sorted(n[7:] for n in curves if n[:7] == "phases/" and n[7:] not in PHASES)
    if not names:
        return Chart("Where the time goes", ())
    first = curves[f"phases/{names[0]}"]
    layers = [np.nan_to_num(values_at_updates(first[0], curves[f"phases/{n}"])) for n in names]
    shares = np.stack(layers)
    total = shares.sum(axis=0)
    shares = shares / np.where(total > 0, total, np.nan)
    tops = np.cumsum(shares, axis=0)
    stack = []
    for at, name in enumerate(names):
        color = GRAY if name == "other" else at % GRAY
        columns = (first[1], shares[at], tops[at] - shares[at], tops[at])
        x, values, low, high = (downsample(column) for column in columns)
        stack.append(Series(name, color, x, values, low, high))
    return Chart("Where the time goes", tuple(stack), "percent", stacked=True, span=(0.0, 1.0))


def opponents(curves: Iterable[str], what: str) -> list[str]:
    """Return the opponents of evaluations."""
    parts = (name.split("/") for name in curves)
    return ["/".join(p[1:-1]) for p in parts if p[0] == "eval" and p[-1] == what and len(p) > 2]


def values_at_updates(updates: npt.NDArray[np.int64], other: Curve | None) -> Floats:
    """Return another curve's values at the same updates, NaN where it has none."""
    values = np.full(len(updates), np.nan)
    if other is not None:
        _, mine, theirs = np.intersect1d(updates, other[0], return_indices=True)
        values[mine] = other[2][theirs]
    return values


def series(name: str, color: int, curve: Curve) -> Series:
    """Return a line; a long one as means with their range."""
    _, x, values = curve
    if len(values) <= MAX_POINTS:
        return Series(name, color, x, values)
    low, high = (downsample(values, how) for how in (np.nanmin, np.nanmax))
    return Series(name, color, downsample(x), downsample(values), low, high)


def downsample(values: Floats, how: Callable[[Floats], float] = np.nanmean) -> Floats:
    """Average neighbors down to MAX_POINTS."""
    if len(values) <= MAX_POINTS:
        return values
    parts = np.array_split(values, MAX_POINTS)
    return np.array([how(p) if np.isfinite(p).any() else np.nan for p in parts])


def make_common_charts(
    runs: Mapping[str, Mapping[str, Curve]], *, fair_share: float | None = None
) -> list[Chart]:
    """Return the charts that have data of some run; `runs` by the name of its line."""
    names = list(dict.fromkeys(name for curves in runs.values() for name in curves))
    shared = fair_share is not None or any(opponents(names, "win"))
    charts = [
        Chart(
            "Mean over opponents" if shared else "Strength: score in evaluations",
            lines_of(runs, STRENGTH),
            "percent" if shared else "number",
            span=(0.0, 1.0) if shared else None,
            guide=fair_share,
            guide_name=equal_strength(fair_share),
        )
    ]
    for rival in dict.fromkeys(opponents(names, "win")):
        if rival != PREVIOUS_BEST:
            lines = lines_of(runs, f"eval/{rival}/win")
            charts.append(Chart(f"Win share against {rival}", lines, "percent", span=(0.0, 1.0)))
    charts.append(Chart(EXACT, lines_of(runs, EXPLOITABILITY), from_zero=True))
    charts.append(Chart("Score in training", lines_of(runs, "charts/score")))
    for name in (n for n in names if n.split("/")[-1] in SPEEDS):
        title = f"Speed, {SPEEDS[name.split('/')[-1]]}"
        charts.append(Chart(title, lines_of(runs, name), "rate", from_zero=True))
    charts.append(Chart("Phase of the curriculum", lines_of(runs, "charts/phase"), from_zero=True))
    there = [name.removeprefix("losses/") for name in names if name.startswith("losses/")]
    for name in sort_losses(there):
        charts.append(Chart(loss_title(name), lines_of(runs, f"losses/{name}")))
    for name, title in LEARNING.items():
        charts.append(Chart(title, lines_of(runs, f"learning/{name}"), from_zero=True))
    for name in statistic_names(names):
        charts.append(Chart(statistic_title(name), lines_of(runs, PREFIX + name)))
    drawn = [chart for chart in charts if chart.series]
    return [replace(chart, wide=not at, named=not at) for at, chart in enumerate(drawn)]


def lines_of(runs: Mapping[str, Mapping[str, Curve]], name: str) -> tuple[Series, ...]:
    """Return one line per run with the curve; a run has the same color in every chart."""
    lines = []
    for at, (run, curves) in enumerate(runs.items()):
        if name in curves:
            _, x, values = curves[name]
            color, dashed = color_of(at)
            line = Series(run, color, downsample(x), downsample(values), dashed=dashed)
            lines.append(line)
    return tuple(lines)


def color_of(at: int) -> tuple[int, bool]:
    """Return the color of the line with this number, and whether it is dashed."""
    return at % GRAY, at // GRAY % 2 == 1


def short_names(names: Sequence[str]) -> list[str]:
    """Remove the common prefix of all names, if the rest stays unique."""
    words = [name.split("-") for name in names]
    common = 0
    while all(len(w) > common + 1 and w[common] == words[0][common] for w in words):
        common += 1
    short = ["-".join(w[common:]) for w in words]
    return short if len(names) > 1 and len(set(short)) == len(set(names)) else list(names)
