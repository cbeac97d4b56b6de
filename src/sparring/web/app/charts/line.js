// A chart of lines with bands, or of shares on top of one another.
//
// spec = {
//   title, form ("number" | "percent" | "rate"), series: [...], wide, tall, stacked, fromZero, log,
//   span: [low, high] if the values have natural ends, guide: { value, name },
// }
// series = { name, color (0..7), dashed, thin, read(by) -> { x, y, low?, high? } }

import { AXES } from "/app/charts/board.js";
import { bandPath, dotPath, linePath } from "/app/charts/paths.js";
import { listen } from "/app/charts/pointer.js";
import { BOTTOM, LEFT, RIGHT, TOP, logTicks, scale, tickText, ticks } from "/app/charts/scale.js";
import { indexOf, smoothed } from "/app/charts/store.js";
import { numbersTable } from "/app/charts/table.js";
import { el, replace, setAll, svg } from "/app/dom.js";
import { isNumber, shown } from "/app/words.js";

const FEW = 60; // lines with no more points show them as dots
let made = 0;

export class LineChart {
  constructor(spec, board) {
    this.board = board;
    this.visible = false;
    this.hidden = new Set();
    this.log = false;
    this.drawn = null;
    this.id = `chart${(made += 1)}`;
    this.make(spec);
    this.take(spec);
  }

  make(spec) {
    this.title = svg("title", { id: `${this.id}-title` });
    this.description = svg("desc", { id: `${this.id}-description` });
    this.grid = svg("g", { class: "grid" });
    this.marked = svg("g", { class: "marks" });
    this.layers = svg("g", { class: "layers", "clip-path": `url(#${this.id}-clip)` });
    this.clip = svg("rect", {});
    this.cross = svg("line", { class: "cross", visibility: "hidden" });
    this.dots = svg("g", { class: "cross-dots" });
    this.band = svg("rect", { class: "zoom-band", visibility: "hidden" });
    this.svg = svg(
      "svg",
      { role: "img", "aria-labelledby": `${this.id}-title ${this.id}-description` },
      [this.title, this.description],
      svg("clipPath", { id: `${this.id}-clip` }, this.clip),
      [this.grid, this.marked, this.layers, this.band, this.cross, this.dots],
    );
    this.over = el("div", { class: "over", role: "slider", tabindex: 0, "aria-valuemin": 0 });
    this.plot = el("div", { class: "plot" }, this.svg, this.over);
    this.legend = el("ul", { class: "legend" });
    this.logButton = el(
      "button",
      {
        class: "quiet small",
        "aria-pressed": "false",
        hidden: true,
        onclick: () => this.turnLog(),
      },
      "log",
    );
    this.numbersButton = el(
      "button",
      { class: "quiet small", "aria-pressed": "false", onclick: () => this.turnTable() },
      "numbers",
    );
    this.numbers = el("div", { class: "numbers scroll", hidden: true });
    this.heading = el("h3", {});
    this.element = el(
      "figure",
      { class: `chart${spec.wide ? " wide" : ""}`, "data-chart": spec.title },
      el("figcaption", {}, this.heading, this.logButton, this.numbersButton),
      [this.legend, this.plot, this.numbers],
    );
    listen(this);
  }

  // Takes a spec, also in place of an older one: more opponents may have come.
  take(spec) {
    this.spec = spec;
    this.drawn = null; // its lines are those of the older spec
    this.heading.textContent = spec.title;
    this.title.textContent = spec.title;
    this.over.setAttribute("aria-label", `Position in ${spec.title}`);
    this.paths = spec.series.map((series) => this.pathsOf(series));
    replace(
      this.layers,
      this.paths.flatMap(({ band, raw, line, dots }) => [band, raw, line, dots]),
    );
    this.values = spec.series.map(() => el("b", {}));
    replace(
      this.legend,
      spec.series.map((series, at) => this.keyOf(series, at)),
    );
    this.legend.hidden = spec.series.length === 0;
    this.logButton.hidden = !spec.log;
    this.board.draw(this);
  }

  pathsOf(series) {
    const color = `c${series.color % 8}`;
    const dashed = series.dashed ? " dashed" : "";
    return {
      band: svg("path", { class: `${this.spec.stacked ? "area" : "band"} ${color}` }),
      raw: svg("path", { class: `raw ${color}` }),
      line: svg("path", { class: `line ${color}${dashed}${series.thin ? " thin" : ""}` }),
      dots: svg("path", { class: `dots ${color}` }),
    };
  }

  keyOf(series, at) {
    const toggle = () => {
      if (this.hidden.has(series.name)) this.hidden.delete(series.name);
      else this.hidden.add(series.name);
      key.setAttribute("aria-pressed", String(!this.hidden.has(series.name)));
      this.board.draw(this);
    };
    const key = el(
      "button",
      {
        class: `key c${series.color % 8}`,
        "aria-pressed": String(!this.hidden.has(series.name)),
        title: `Show or hide ${series.name}`,
        onclick: toggle,
      },
      el("i", { class: series.dashed ? "dashed" : "" }),
      el("span", {}, series.name),
      this.values[at],
    );
    return el("li", { hidden: series.unnamed }, key);
  }

  turnLog() {
    this.log = !this.log;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.board.draw(this);
  }

  turnTable() {
    this.numbers.hidden = !this.numbers.hidden;
    this.numbersButton.setAttribute("aria-pressed", String(!this.numbers.hidden));
    this.board.draw(this);
  }

  end(by) {
    return Math.max(0, ...this.spec.series.map(({ read }) => read(by).x.at(-1) ?? 0));
  }

  draw([from, to]) {
    const width = this.plot.clientWidth;
    const height = this.plot.clientHeight;
    if (!width) return;
    const lines = this.spec.series.map((series) => this.lineOf(series, from, to));
    const log = this.log && lines.every(({ y, rows }) => rows[1] <= rows[0] || positive(y, rows));
    const [low, high] = this.reach(lines, log);
    const toX = scale([from, to], [LEFT, width - RIGHT]);
    const toY = scale([low, high], [height - BOTTOM, TOP], log);
    this.drawn = { lines, toX, toY, from, to, width, height };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    setAll(this.clip, {
      x: LEFT,
      y: 0,
      width: width - LEFT - RIGHT + 4,
      height: height - BOTTOM + 2,
    });
    this.drawGrid(low, high, log);
    this.drawMarks();
    for (const [at, line] of lines.entries())
      this.drawLine(this.paths[at], line, this.spec.series[at]);
    this.describe(lines);
    if (!this.numbers.hidden) replace(this.numbers, numbersTable(this.spec, lines, this.board.by));
  }

  lineOf(series, from, to) {
    const { x, y, low, high } = series.read(this.board.by);
    const rows = [Math.max(0, indexOf(x, from) - 1), Math.min(x.length, indexOf(x, to) + 1)];
    const weight = this.spec.stacked || low ? 0 : this.board.smoothing;
    const shownValues = weight ? smoothed(y, weight) : y;
    return {
      x,
      y: shownValues,
      raw: weight ? y : null,
      low,
      high,
      rows,
      off: this.hidden.has(series.name),
    };
  }

  // The values at the bottom and at the top.
  reach(lines, log) {
    if (this.spec.span && !log) return this.spec.span;
    let low = Infinity;
    let high = -Infinity;
    const see = (value) => {
      if (value === null || !Number.isFinite(value)) return;
      if (value < low) low = value;
      if (value > high) high = value;
    };
    for (const line of lines) {
      if (line.off) continue;
      for (let row = line.rows[0]; row < line.rows[1]; row += 1) {
        see(line.y[row]);
        if (line.low) see(line.low[row]);
        if (line.high) see(line.high[row]);
      }
    }
    if (low > high) return [0, 1];
    if (log) return [low / 1.15, high * 1.15];
    if (this.spec.fromZero) low = Math.min(0, low);
    const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
    return [this.spec.fromZero && low === 0 ? 0 : low - room, high + room];
  }

  drawGrid(low, high, log) {
    const { toX, toY, from, to, width, height } = this.drawn;
    const rows = log
      ? logTicks(low, high, 5)
      : ticks(low, high, Math.max(2, Math.floor(height / 44)));
    const step = rows.length > 1 ? Math.abs(rows[1] - rows[0]) : Math.abs(high - low);
    const shapes = rows.flatMap((value) => [
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: toY(value), y2: toY(value) }),
      svg(
        "text",
        { x: LEFT - 7, y: toY(value) + 4, class: "y" },
        tickText(value, this.spec.form, log ? value : step),
      ),
    ]);
    const hours = this.board.by === "minutes" && to > 300;
    const per = hours ? 60 : 1;
    const columns = ticks(from / per, to / per, Math.max(2, Math.floor(width / 84)));
    const wide = columns.length > 1 ? columns[1] - columns[0] : 1;
    const unit = hours ? "h" : AXES[this.board.by].unit;
    for (const value of columns) {
      const x = toX(value * per);
      if (x < LEFT - 1 || x > width - RIGHT + 1) continue;
      shapes.push(svg("text", { x, y: height - 7, class: "x" }, tickText(value, "number", wide)));
    }
    const guide = this.spec.guide;
    if (guide && isNumber(guide.value) && guide.value >= low && guide.value <= high) {
      const y = toY(guide.value);
      shapes.push(
        svg("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: "guide" }),
        svg("text", { x: width - RIGHT, y: y - 5, class: "guide-name" }, guide.name),
      );
    }
    shapes.push(svg("text", { x: width - RIGHT, y: height - 7, class: "unit" }, unit));
    replace(this.grid, dropCrowded(shapes, width, unit));
  }

  drawMarks() {
    const { toX, from, to, height } = this.drawn;
    const shapes = [];
    for (const { name, place } of this.board.marks) {
      const at = place(this.board.by);
      if (!isNumber(at) || at < from || at > to) continue;
      const x = Math.round(toX(at)) + 0.5;
      shapes.push(svg("line", { x1: x, x2: x, y1: TOP, y2: height - BOTTOM }));
      if (this.spec.wide) shapes.push(svg("text", { x: x + 5, y: TOP + 10 }, name));
    }
    replace(this.marked, shapes);
  }

  drawLine(paths, line, series) {
    const { toX, toY } = this.drawn;
    const { x, y, raw, low, high, rows, off } = line;
    const empty = off || rows[1] <= rows[0];
    const few = !series.thin && !this.spec.stacked && rows[1] - rows[0] <= FEW;
    setPath(paths.band, empty || !low ? "" : bandPath(x, low, high, toX, toY, rows));
    setPath(paths.raw, empty || !raw ? "" : linePath(x, raw, toX, toY, rows));
    setPath(paths.line, empty || this.spec.stacked ? "" : linePath(x, y, toX, toY, rows));
    setPath(paths.dots, empty || !few ? "" : dotPath(x, y, toX, toY, rows));
  }

  describe(lines) {
    const ends = this.spec.series
      .map(({ name, unnamed }, at) => [
        unnamed,
        `${name} ${shown(lastOf(lines[at]), this.spec.form)}`,
      ])
      .filter(([unnamed]) => !unnamed)
      .map(([, text]) => text);
    this.description.textContent = `Over ${AXES[this.board.by].name}. Last values: ${ends.join(", ") || "none yet"}.`;
  }

  // Shows the values at a place on the axis, or the last ones.
  point(place) {
    if (!this.drawn) return;
    const { lines, toX, toY, from, to, height } = this.drawn;
    const inside = place !== null && place >= from && place <= to;
    const dots = [];
    for (const [at, line] of lines.entries()) {
      const row = inside ? suggestion(line, place) : -1;
      const value = inside ? line.y[row] : lastOf(line);
      const text = line.off ? "" : shown(value, this.spec.form);
      if (this.values[at].textContent !== text) this.values[at].textContent = text;
      if (inside && !line.off && !this.spec.stacked && isNumber(value)) {
        const color = `c${this.spec.series[at].color % 8}`;
        dots.push(svg("circle", { cx: toX(line.x[row]), cy: toY(value), r: 3.5, class: color }));
      }
    }
    const x = inside ? toX(place) : 0;
    setAll(this.cross, {
      x1: x,
      x2: x,
      y1: TOP,
      y2: height - BOTTOM,
      visibility: inside ? "visible" : "hidden",
    });
    if (dots.length || this.dots.childElementCount) replace(this.dots, dots);
  }
}

function suggestion({ x }, place) {
  const right = indexOf(x, place);
  if (right <= 0) return 0;
  if (right >= x.length) return x.length - 1;
  return place - x[right - 1] < x[right] - place ? right - 1 : right;
}

function lastOf({ y }) {
  return y.findLast((value) => value !== null && Number.isFinite(value));
}

function positive(y, [first, last]) {
  for (let row = first; row < last; row += 1) if (y[row] !== null && y[row] <= 0) return false;
  return true;
}

// The unit stands where the last tick would; ticks that it covers are left out.
function dropCrowded(shapes, width, unit) {
  const limit = width - RIGHT - 7 * unit.length - 12;
  return shapes.filter(
    (shape) => shape.getAttribute("class") !== "x" || Number(shape.getAttribute("x")) < limit,
  );
}

function setPath(path, d) {
  if (path.getAttribute("d") !== d) path.setAttribute("d", d);
}
