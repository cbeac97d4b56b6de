"""Charts as one HTML file: inline SVG, no resources from elsewhere, for phone and desktop."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from sparring.draw.charts.axes import Floats, label
from sparring.draw.charts.curves import EMPTY, Chart, Page, Series, pieces
from sparring.draw.charts.estimates import Estimate, Estimates

SIZE = 1000.0
"""Width and height of a plot in its own units; the browser stretches it."""

STYLE = """
:root { color-scheme: light dark; --page:#f6f7f9; --card:#fff; --ink:#16191f; --soft:#5d6572;
  --line:#e3e6eb; --c0:#2563eb; --c1:#f27900; --c2:#21a563; --c3:#8e4aa5; --c4:#592311;
  --c5:#284c59; --c6:#3f007f; --c7:#8b93a1 }
@media (prefers-color-scheme: dark) { :root { --page:#0f1217; --card:#181c23; --ink:#e8eaee;
  --soft:#9aa3b0; --line:#2c323c; --c0:#6ea8fe; --c1:#d87c20; --c2:#92ff26; --c3:#9226ff;
  --c4:#8c6238; --c5:#e5ffcc; --c6:#ffccf2; --c7:#788190 } }
* { box-sizing: border-box }
body { margin:0; padding:24px clamp(12px,3vw,40px) 40px; background:var(--page); color:var(--ink);
  font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif }
main { max-width:1240px; margin:0 auto }
h1 { margin:0 0 4px; font-size:20px; line-height:1.25; overflow-wrap:anywhere }
.facts { margin:0 0 20px; color:var(--soft) }
.facts span { display:inline-block; margin-right:16px }
.grid { display:grid; gap:14px;
  grid-template-columns:repeat(auto-fill,minmax(min(100%,310px),1fr)) }
figure { margin:0; padding:14px 16px 10px; background:var(--card); border:1px solid var(--line);
  border-radius:10px; min-width:0; display:flex; flex-direction:column }
figure.wide { grid-column:1/-1 }
figcaption { display:flex; flex-wrap:wrap; gap:2px 14px; align-items:baseline; margin-bottom:8px }
figcaption b { font-weight:600; margin-right:auto }
.many figcaption b { flex-basis:100% }
.key { white-space:nowrap; color:var(--soft) }
.key i { display:inline-block; width:9px; height:9px; border-radius:50%; margin-right:5px;
  background:currentcolor }
.key i.ring { background:none; border:2px solid }
.key em { font-style:normal; color:var(--ink); font-variant-numeric:tabular-nums; margin-left:4px }
.plot { position:relative; flex:1 0 180px; margin:6px 0 22px 46px; touch-action:pan-y }
.plot.said { margin-bottom:38px }
.said .x.unit { left:50%; margin-top:22px }
.wide .plot { flex-basis:clamp(220px,40vw,340px) }
.plot svg { position:absolute; inset:0; width:100%; height:100%; overflow:visible }
.plot svg * { vector-effect:non-scaling-stroke }
.y, .x { position:absolute; color:var(--soft); font-size:11.5px; font-variant-numeric:tabular-nums;
  white-space:nowrap }
.y { right:100%; margin-right:7px; transform:translateY(50%); line-height:1 }
.x { top:100%; margin-top:5px; transform:translateX(-50%) }
.guide { position:absolute; transform:translateY(-2px); color:var(--soft);
  font-size:11.5px }
.mark { position:absolute; top:0; padding:0 4px; overflow:hidden; text-overflow:ellipsis;
  white-space:nowrap; color:var(--soft); font-size:11.5px }
.row { padding:4px 0 }
.row .key { display:flex; justify-content:space-between; gap:14px; white-space:normal;
  overflow-wrap:anywhere }
.row em { white-space:nowrap }
.bar { position:relative; height:20px; margin:2px 8px 0;
  background:linear-gradient(var(--line),var(--line)) 0 50%/100% 1px no-repeat }
.bar * { position:absolute; top:50%; transform:translate(-50%,-50%); border-radius:50% }
.bar .single { width:6px; height:6px; background:var(--ink) }
.bar .value { width:12px; height:12px }
.bar .between { height:3px; border-radius:2px; transform:translateY(-50%) }
.bar .even { width:0; height:20px; border-radius:0; border-left:1px dashed var(--soft) }
.scale { position:relative; height:18px; margin:4px 8px 0 }
.scale .x { top:0; margin:0 }
.now { position:absolute; top:0; bottom:0; width:1px; background:var(--soft); pointer-events:none }
.tip { position:absolute; top:6px; z-index:1; padding:6px 9px; background:var(--card);
  border:1px solid var(--line); border-radius:7px; box-shadow:0 3px 12px #0003; font-size:12.5px;
  pointer-events:none; white-space:nowrap }
.tip div { display:flex; justify-content:space-between; gap:14px }
[hidden] { display:none !important }
.none { padding:40px 20px; text-align:center; color:var(--soft); background:var(--card);
  border:1px solid var(--line); border-radius:10px }
"""

SCRIPT = """
const show = { percent: v => (100 * v).toFixed(1) + '%', number: v => '' + +v.toPrecision(4),
  rate: v => v >= 1e6 ? (v / 1e6).toPrecision(3) + 'M' : v >= 1e3 ? (v / 1e3).toPrecision(3) + 'k'
    : v.toPrecision(3) };
for (const figure of document.querySelectorAll('figure')) {
  const data = figure.querySelector('script');
  if (!data) continue;
  const chart = JSON.parse(data.textContent), say = show[chart.form];
  const plot = figure.querySelector('.plot'), now = plot.querySelector('.now'),
    tip = plot.querySelector('.tip');
  const row = (name, value, colour) => {
    const line = tip.appendChild(document.createElement('div'));
    line.className = 'key'; line.append(name);
    if (colour !== undefined) {
      const dot = document.createElement('i'); dot.style.background = `var(--c${colour})`;
      const left = document.createElement('span'); left.append(dot, name);
      const right = document.createElement('em'); right.textContent = value;
      line.replaceChildren(left, right);
    }
  };
  const hide = () => { now.hidden = tip.hidden = true; };
  plot.onpointerleave = hide;
  plot.onpointermove = plot.onpointerdown = event => {
    const box = plot.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * chart.end;
    const closer = (a, b) => Math.abs(a - at) < Math.abs(b - at);
    const near = xs => xs.reduce((best, x, i) => closer(x, xs[best]) ? i : best, 0);
    const lead = chart.series.map(s => s.x[near(s.x)]).reduce((a, b) => closer(b, a) ? b : a);
    tip.replaceChildren();
    row((chart.names.length ? chart.names[Math.floor(lead)]
      : chart.by == 'minutes' ? lead.toFixed(lead < 10 ? 2 : 1)
      : Math.round(lead).toLocaleString('en')) + ' ' + chart.by);
    for (const s of chart.series) {
      const i = near(s.x), v = s.y[i];
      const band = s.low && s.low[i] !== null ? ` (${say(s.low[i])} to ${say(s.high[i])})` : '';
      row(s.name, v === null || v === undefined ? '–' : say(v) + band, s.colour);
    }
    now.hidden = tip.hidden = false;
    const x = lead / chart.end * box.width;
    now.style.left = x + 'px';
    const room = Math.min(x + 12, box.width - tip.offsetWidth);
    tip.style.left = (x + 12 + tip.offsetWidth > box.width && x > tip.offsetWidth + 12
      ? x - tip.offsetWidth - 12 : Math.max(room, -46)) + 'px';
  };
}
"""


def draw_html(page: Page) -> str:
    """Return the whole file."""
    facts = "".join(f"<span>{escape(fact)}</span>" for fact in page.facts)
    figures = "".join(
        estimates(chart) if isinstance(chart, Estimates) else figure(chart, page)
        for chart in page.charts
    )
    body = f'<div class="grid">{figures}</div>' if figures else f'<p class="none">{EMPTY}</p>'
    title = escape(page.title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{title}</h1><p class="facts">{facts}</p>{body}</main>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def figure(chart: Chart, page: Page) -> str:
    """Return one chart: caption with the last values, plot, axes, and its numbers."""
    low, high = chart.y_range
    axis = chart.axis or page.axis

    def x(place: Floats | float) -> Any:
        return np.asarray(place) / axis.end * SIZE

    def y(values: Floats | float) -> Any:
        return (high - np.clip(values, low, high)) / (high - low) * SIZE

    keys = "".join(
        f'<span class="key"><i{" class=ring" if s.dashed else ""} style="color:var(--c{s.colour})">'
        "</i>"
        f"{escape(s.name) if chart.named else ''}<em>{label(s.last, chart.form)}</em></span>"
        for s in chart.series
    )
    lines = "".join(
        f'<path d="M0 {y(value):.1f}H{SIZE:g}" stroke="var(--line)"/>' for value, _ in chart.y_ticks
    )
    names = "".join(
        f'<span class="y" style="bottom:{100 - y(value) / SIZE * 100:.2f}%">{escape(name)}</span>'
        for value, name in chart.y_ticks
    )
    unit = axis.unit
    for value, name in axis.ticks:
        names += f'<span class="x" style="left:{x(value) / SIZE * 100:.2f}%">{name}{unit}</span>'
        unit = ""
    said = " said" if axis.caption else ""
    names += f'<span class="x unit">{axis.caption}</span>' if said else ""
    if chart.guide is not None:
        at = y(chart.guide)
        lines += f'<path d="M0 {at:.1f}H{SIZE:g}" stroke="var(--soft)" stroke-dasharray="5 4"/>'
        side = "left" if chart.guide_on_left(axis) else "right"
        names += (
            f'<span class="guide" style="{side}:4px;bottom:{100 - at / SIZE * 100:.2f}%">'
            f"{escape(chart.guide_name)}</span>"
        )
    for mark, room, named in page.marked(chart):
        at = x(mark.x)
        if mark.x > 0:
            lines += f'<path d="M{at:.1f} 0V{SIZE:g}" stroke="var(--soft)" stroke-dasharray="5 4"/>'
        if named:
            place = f"left:{at / SIZE * 100:.2f}%;max-width:{x(room) / SIZE * 100:.2f}%"
            names += f'<span class="mark" style="{place}">{escape(mark.name)}</span>'
    drawn = "".join(layer(s, chart, x, y) for s in chart.series)
    kind = "wide" if chart.wide else "many" if len(chart.series) > 1 else "one"
    text = json.dumps(numbers(chart, page)).replace("<", "\\u003c")
    return (
        f'<figure class="{kind}">'
        f"<figcaption><b>{escape(chart.title)}</b>{keys}</figcaption>"
        f'<div class="plot{said}"><svg viewBox="0 0 {SIZE:g} {SIZE:g}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(chart.title)}" fill="none">{lines}{drawn}</svg>{names}'
        '<div class="now" hidden></div><div class="tip" hidden></div></div>'
        f'<script type="application/json">{text}</script></figure>'
    )


def estimates(chart: Estimates) -> str:
    """Return one card: a line per estimate, its name and numbers above it."""
    low, high = chart.x_range

    def x(value: float) -> float:
        return (min(max(value, low), high) - low) / (high - low) * 100

    rows = "".join(estimate(row, chart, x) for row in chart.rows)
    names = "".join(
        f'<span class="x" style="left:{x(value):.2f}%">{escape(name)}</span>'
        for value, name in chart.x_ticks
    )
    return (
        f"<figure><figcaption><b>{escape(chart.title)}</b></figcaption>"
        f'{rows}<div class="scale">{names}</div></figure>'
    )


def estimate(row: Estimate, chart: Estimates, x: Callable[[float], float]) -> str:
    """Return a value with its interval and the single numbers behind it."""
    colour = f"background:var(--c{row.colour})"
    marks = ""
    if chart.guide is not None:
        marks = f'<i class="even" style="left:{x(chart.guide):.2f}%"></i>'
    if row.low is not None and row.high is not None:
        width = x(row.high) - x(row.low)
        marks += (
            f'<i class="between" style="left:{x(row.low):.2f}%;width:{width:.2f}%;{colour}"></i>'
        )
    marks += "".join(f'<i class="single" style="left:{x(v):.2f}%"></i>' for v in row.points)
    if np.isfinite(row.value):
        marks += f'<i class="value" style="left:{x(row.value):.2f}%;{colour}"></i>'
    return (
        f'<div class="row"><div class="key"><span>{escape(row.name)}</span>'
        f'<em>{escape(row.shown(chart.form))}</em></div><div class="bar">{marks}</div></div>'
    )


def layer(series: Series, chart: Chart, x: Any, y: Any) -> str:
    """Return a line with what lies behind it, or one layer of a stack."""
    colour = f"var(--c{series.colour})"
    parts = []
    if series.low is not None and series.high is not None:
        clear = 0.85 if chart.stacked else 0.16
        for part in pieces(series.low, series.high):
            at = x(series.x[part])
            there = points(at, y(series.high[part]))
            back = points(at[::-1], y(series.low[part][::-1]))
            path = f"M{there}L{back}Z"
            parts.append(f'<path d="{path}" fill="{colour}" fill-opacity="{clear}"/>')
    if chart.stacked:
        return "".join(parts)
    dots = ""
    for part in pieces(series.values):
        at, up = x(series.x[part]), y(series.values[part])
        dash = 'stroke-dasharray="8 6" ' if series.dashed else ""
        if series.joined:
            parts.append(
                f'<path d="M{points(at, up)}" stroke="{colour}" stroke-width="2" {dash}'
                'stroke-linejoin="round" stroke-linecap="round"/>'
            )
        if chart.dotted or not series.joined:
            dots += "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(at, up, strict=True))
    if dots:  # a line of no length with round ends stays round however the plot is stretched
        parts.append(
            f'<path d="{dots}" stroke="{colour}" stroke-width="{6 if series.joined else 10}" '
            'stroke-linecap="round"/>'
        )
    return "".join(parts)


def points(x: Floats, y: Floats) -> str:
    """Return places as SVG has them."""
    return "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def numbers(chart: Chart, page: Page) -> dict[str, Any]:
    """Return what the pointer shows."""

    def plain(values: Floats | None) -> list[float | None] | None:
        if values is None:
            return None
        return [float(f"{v:.5g}") if np.isfinite(v) else None for v in values]

    axis = chart.axis or page.axis
    return {
        "form": chart.form,
        "by": axis.by,
        "names": axis.names,
        "end": axis.end,
        "series": [
            {
                "name": s.name,
                "colour": s.colour,
                "x": plain(s.x),
                "y": plain(s.values),
                "low": None if chart.stacked else plain(s.low),
                "high": None if chart.stacked else plain(s.high),
            }
            for s in chart.series
        ],
    }
