"""A run's curves as charts: what is drawn, apart from how it is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sparring.draw.charts.axes import Axis, Curve, Floats, Form, Mark, label, ticks
from sparring.draw.charts.estimates import Estimates
from sparring.games.stats import PREFIX

MOST_POINTS = 160
"""Points of a line; more are drawn as means, with the range they span behind them."""
FEW_POINTS = 60
"""Lines with no more points than this show them as dots."""
EMPTY = "Nothing has been measured yet. Draw this again once the run has made an update."
COLOURS = 8
GREY = COLOURS - 1
"""The last colour, for what is left over."""
PHASES = (
    *("stepping", "inference", "transfer", "advantage"),
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
    "q_loss": "Loss of values",
    "td_error": "Mean error of values",
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
    "temperature": "Temperature: worth of entropy",
}
"""Of learning from replay; curves of learning/... with other names are not drawn."""
CURRICULUM = {
    "reward": "Reward weights",
    "flag": "Flags of the game",
    "opponents": "How often who is met",
}
"""Of curriculum/..., one chart each."""
SPEEDS = {"SPS": "decisions/s", "decisions_per_s": "decisions/s", "samples_per_s": "samples/s"}


@dataclass(frozen=True)
class Series:
    """A line, or one layer of a stack: `low` to `high` is filled."""

    name: str
    colour: int
    x: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    dashed: bool = False
    joined: bool = True
    """Whether its points are joined by a line; else they are dots alone."""

    @property
    def last(self) -> float:
        """The last value that is a number."""
        there = known(self.values)
        return float(there[-1]) if len(there) else math.nan


@dataclass(frozen=True)
class Chart:
    """Series on common axes."""

    title: str
    series: tuple[Series, ...]
    form: Form = "number"
    stacked: bool = False
    wide: bool = False
    span: tuple[float, float] | None = None
    """The values from bottom to top. None: what the lines span."""
    from_zero: bool = False
    guide: float | None = None
    guide_name: str = ""
    axis: Axis | None = None
    """From left to right. None: as on the rest of the page."""
    named: bool = True
    """Whether the keys have names; where many charts share their lines, one of them does."""

    @property
    def y_range(self) -> tuple[float, float]:
        """The values at the bottom and at the top."""
        if self.span:
            return self.span
        # Most of what lies behind the lines; all of it has spikes that flatten everything else.
        parts = [known(s.values) for s in self.series]
        parts += [share_of(s.low, 5) for s in self.series]
        parts += [share_of(s.high, 95) for s in self.series]
        values = np.concatenate(parts)
        if not len(values):
            return 0.0, 1.0
        low, high = float(values.min()), float(values.max())
        low = min(low, 0.0) if self.from_zero else low
        room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        return (low if self.from_zero else low - room), high + room

    @property
    def dotted(self) -> bool:
        """Whether the lines are short enough to show their points."""
        return all(len(s.values) <= FEW_POINTS for s in self.series)

    def guide_on_left(self, axis: Axis) -> bool:
        """Whether the guide is named on the left: where fewer lines pass just above it."""
        low, high = self.y_range
        guide = low if self.guide is None else self.guide
        passing = {True: 0, False: 0}
        for s in self.series:
            near = (s.values > guide - 0.03 * (high - low)) & (
                s.values < guide + 0.1 * (high - low)
            )
            passing[True] += int((near & (s.x < 0.15 * axis.end)).sum())
            passing[False] += int((near & (s.x > 0.85 * axis.end)).sum())
        return passing[True] < passing[False]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Where the horizontal lines are, and what they are called."""
        low, high = self.y_range
        at = ticks(low, high, 5 if self.wide else 4)
        step = at[1] - at[0] if len(at) > 1 else high - low
        return [(value, label(value, self.form, step)) for value in at]


@dataclass(frozen=True)
class Page:
    """All charts of a run, or of a comparison."""

    title: str
    facts: tuple[str, ...]
    charts: tuple[Chart | Estimates, ...]
    axis: Axis
    marks: tuple[Mark, ...] = ()
    """Drawn into every chart along the axis, and named in the first."""

    def marked(self, chart: Chart) -> tuple[tuple[Mark, float, bool], ...]:
        """The marks of a chart, how much room each has to the right, and whether it is named."""
        if chart.axis is not None or chart.stacked or not self.marks:
            return ()
        ends = [*(mark.x for mark in self.marks[1:]), self.axis.end]
        named = chart is self.charts[0]
        return tuple(
            (mark, end - mark.x, named) for mark, end in zip(self.marks, ends, strict=True)
        )


def make_charts(curves: Mapping[str, Curve], *, fair_share: float | None = None) -> list[Chart]:
    """Return the charts for which there are numbers; the curves were placed on an axis."""
    charts = [wins(curves, fair_share), scores(curves), speeds(curves), phases(curves)]
    charts += losses(curves)
    charts += learning(curves)
    charts += curriculum(curves)
    charts += statistics(curves)
    return [chart for chart in charts if chart.series]


def statistics(curves: Mapping[str, Curve]) -> list[Chart]:
    """How the learner plays: a chart for each statistic of the game, with its stages if any."""
    return [
        Chart(
            statistic_title(name),
            tuple(
                series(stage_name(stage, len(stages)), at % GREY, curves[PREFIX + name + stage])
                for at, stage in enumerate(stages)
            ),
        )
        for name, stages in statistic_names(curves).items()
    ]


def statistic_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the game's statistics with what their stages add to the name, "" for the whole game.

    bid_kept_early is a stage of bid_kept; what ends with a number, such as a round, is left out.
    """
    there = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    found: dict[str, list[str]] = {}
    for name in there:
        whole = next((other for other in there if name.startswith(f"{other}_")), name)
        stages = found.setdefault(whole, [])
        if not name[-1].isdecimal():
            stages.append(name.removeprefix(whole))
    return {name: stages for name, stages in found.items() if stages}


def stage_name(stage: str, stages: int) -> str:
    """Return what the line of a stage is called."""
    return stage.removeprefix("_") or ("whole game" if stages > 1 else "last")


def statistic_title(name: str) -> str:
    """Return what a chart of a statistic is called."""
    return f"Game statistics: {name.replace('_', ' ')}"


def losses(curves: Mapping[str, Curve]) -> list[Chart]:
    """A chart for every loss; where roles learn apart, a line for each of them."""
    lines: dict[str, list[Series]] = {}
    for key in (key for key in curves if key.startswith("losses/")):
        name, _, role = key.removeprefix("losses/").partition("/")
        own = lines.setdefault(name, [])
        own.append(series(role or "last", len(own) % GREY, curves[key]))
    known = [name for name in LOSSES if name in lines]
    others = [name for name in lines if name not in LOSSES]
    return [Chart(loss_title(name), tuple(lines[name])) for name in known + others]


def loss_title(name: str) -> str:
    """What a loss is called above its chart; that of a role says whose it is."""
    loss, _, role = name.partition("/")
    title = LOSSES.get(loss, loss.replace("_", " ").capitalize())
    return f"{title}, {role}" if role else title


def learning(curves: Mapping[str, Curve]) -> list[Chart]:
    """How a learner from replay learns."""
    return [
        Chart(title, (series("last", 0, curves[f"learning/{name}"]),), from_zero=True)
        for name, title in LEARNING.items()
        if f"learning/{name}" in curves
    ]


def curriculum(curves: Mapping[str, Curve]) -> list[Chart]:
    """What the phases of a run and its schedules change, as it was."""
    charts = []
    for group, title in CURRICULUM.items():
        begins = f"curriculum/{group}/"
        names = sorted(name for name in curves if name.startswith(begins))
        lines = [
            replace(series(name.removeprefix(begins), at % GREY, curves[name]), dashed=at >= GREY)
            for at, name in enumerate(names)
        ]
        form: Form = "percent" if group == "opponents" else "number"
        charts.append(Chart(title, tuple(lines), form, from_zero=True))
    return charts


def wins(curves: Mapping[str, Curve], fair_share: float | None) -> Chart:
    """The share of wins against each opponent, with its interval."""
    lines: list[Series] = []
    for name in opponents(curves, "win"):
        updates, x, values = curves[f"eval/{name}/win"]
        low, high = (matching(updates, curves.get(f"eval/{name}/{end}")) for end in ("low", "high"))
        lines.append(Series(name, len(lines) % GREY, x, values, low, high))
    return Chart(
        "Win share against each opponent",
        tuple(lines),
        "percent",
        wide=True,
        span=(0.0, 1.0),
        guide=fair_share,
        guide_name="" if fair_share is None else f"equal strength {fair_share:.0%}",
    )


def scores(curves: Mapping[str, Curve]) -> Chart:
    """What games earn: while training, and in evaluations."""
    met = opponents(curves, "score")
    lines = [
        series(f"against {n}", at % GREY, curves[f"eval/{n}/score"]) for at, n in enumerate(met)
    ]
    own = [n for n in curves if n.split("/")[-1] == "score" and not n.startswith("eval/")]
    # An opponent has the same colour here as among the wins.
    lines += [series("training", GREY if met else 0, curves[n]) for n in own]
    return Chart("Score", tuple(lines))


def speeds(curves: Mapping[str, Curve]) -> Chart:
    """End-to-end decisions per second, and what the learner takes in."""
    found = {n: SPEEDS[n.split("/")[-1]] for n in curves if n.split("/")[-1] in SPEEDS}
    lines = [series(shown, at % GREY, curves[n]) for at, (n, shown) in enumerate(found.items())]
    return Chart("Speed, update included", tuple(lines), "rate", from_zero=True)


def phases(curves: Mapping[str, Curve]) -> Chart:
    """Where the time goes, as shares of each update."""
    names = [name for name in PHASES if f"phases/{name}" in curves]
    names += sorted(n[7:] for n in curves if n[:7] == "phases/" and n[7:] not in PHASES)
    if not names:
        return Chart("Where the time goes", ())
    first = curves[f"phases/{names[0]}"]
    layers = [np.nan_to_num(matching(first[0], curves[f"phases/{n}"])) for n in names]
    shares = np.stack(layers)
    total = shares.sum(axis=0)
    shares = shares / np.where(total > 0, total, np.nan)
    tops = np.cumsum(shares, axis=0)
    stack = []
    for at, name in enumerate(names):
        colour = GREY if name == "other" else at % GREY
        columns = (first[1], shares[at], tops[at] - shares[at], tops[at])
        x, values, low, high = (bucket_means(column) for column in columns)
        stack.append(Series(name, colour, x, values, low, high))
    return Chart("Where the time goes", tuple(stack), "percent", stacked=True, span=(0.0, 1.0))


def opponents(curves: Iterable[str], what: str) -> list[str]:
    """Return who was met in evaluations."""
    parts = (name.split("/") for name in curves)
    return ["/".join(p[1:-1]) for p in parts if p[0] == "eval" and p[-1] == what and len(p) > 2]


def matching(updates: npt.NDArray[np.int64], other: Curve | None) -> Floats:
    """Return another curve's values at the same updates, NaN where it has none."""
    values = np.full(len(updates), np.nan)
    if other is not None:
        _, mine, theirs = np.intersect1d(updates, other[0], return_indices=True)
        values[mine] = other[2][theirs]
    return values


def series(name: str, colour: int, curve: Curve) -> Series:
    """Return a line; a long one as means, with the range of what they stand for."""
    _, x, values = curve
    if len(values) <= MOST_POINTS:
        return Series(name, colour, x, values)
    low, high = (bucket_means(values, how) for how in (np.nanmin, np.nanmax))
    return Series(name, colour, bucket_means(x), bucket_means(values), low, high)


def bucket_means(values: Floats, how: Callable[[Floats], float] = np.nanmean) -> Floats:
    """Join neighbours until few enough points are left."""
    if len(values) <= MOST_POINTS:
        return values
    parts = np.array_split(values, MOST_POINTS)
    return np.array([how(p) if np.isfinite(p).any() else np.nan for p in parts])


def known(values: Floats) -> Floats:
    """Return the values that are numbers."""
    return values[np.isfinite(values)]


def share_of(values: Floats | None, percent: int) -> Floats:
    """Return the value that so many percent lie below, or nothing."""
    there = known(values) if values is not None else np.empty(0)
    return np.percentile(there, [percent]) if len(there) else there


def pieces(*columns: Floats) -> list[slice]:
    """Return the stretches in which all columns are numbers; lines break in between."""
    there = np.isfinite(np.stack(columns)).all(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
