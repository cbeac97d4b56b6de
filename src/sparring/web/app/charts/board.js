// Charts that belong together: one axis from left to right, one cursor, one zoom. Those that changed
// and can be seen are drawn on animation frames. The others are drawn once while the page is idle, so
// that a picture of the whole page has them, and before it is printed.

export const AXES = {
  minutes: { name: "minutes", unit: "min" },
  decisions: { name: "decisions", unit: "decisions" },
  updates: { name: "updates", unit: "updates" },
};

const IDLE_MS = 30;

export class Board {
  constructor({ by = "minutes", smoothing = 0, signal }) {
    this.by = by;
    this.smoothing = smoothing;
    this.window = null; // [from, to] of the axis while zoomed
    this.cursor = null; // a place on the axis
    this.marks = []; // { name, place(by) }
    this.charts = new Set();
    this.dirty = new Set();
    this.waiting = 0;
    this.idle = 0;
    this.onzoom = () => {};
    this.seen = new IntersectionObserver((entries) => this.sight(entries), { rootMargin: "150px" });
    this.sizes = new ResizeObserver((entries) => {
      for (const { target } of entries) this.draw(target.chart);
    });
    addEventListener("beforeprint", () => this.drawDirty(), { signal });
    signal.addEventListener("abort", () => this.close());
  }

  close() {
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.idle);
    this.seen.disconnect();
    this.sizes.disconnect();
    this.charts.clear();
  }

  add(chart) {
    this.charts.add(chart);
    chart.plot.chart = chart;
    this.seen.observe(chart.plot);
    this.sizes.observe(chart.plot);
    this.draw(chart);
  }

  remove(chart) {
    this.charts.delete(chart);
    this.dirty.delete(chart);
    this.seen.unobserve(chart.plot);
    this.sizes.unobserve(chart.plot);
  }

  sight(entries) {
    for (const { target, isIntersecting } of entries) {
      target.chart.visible = isIntersecting;
      if (isIntersecting) this.draw(target.chart);
    }
  }

  // Has a chart drawn anew as soon as it can be seen; without one, all of them.
  draw(chart = null) {
    for (const one of chart ? [chart] : this.charts) this.dirty.add(one);
    this.wake();
  }

  wake() {
    this.waiting ||= requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.waiting = 0;
    this.drawDirty(({ visible }) => visible);
    for (const chart of this.charts) if (chart.visible) chart.point(this.cursor);
    this.idle ||= setTimeout(() => this.drawAhead(), IDLE_MS);
  }

  drawDirty(meant = () => true) {
    const span = this.span();
    for (const chart of this.dirty) {
      if (!this.charts.has(chart) || !meant(chart)) continue;
      this.dirty.delete(chart);
      chart.draw(span);
      chart.point(this.cursor);
    }
  }

  // One chart that was never drawn, then a pause: scrolling and clicking come first.
  drawAhead() {
    this.idle = 0;
    const next = [...this.dirty].find(({ drawn, plot }) => !drawn && plot.clientWidth > 0);
    if (!next) return;
    this.drawDirty((chart) => chart === next);
    this.idle = setTimeout(() => this.drawAhead(), IDLE_MS);
  }

  // From where to where the axis goes: the zoom, else everything that there is.
  span() {
    if (this.window) return this.window;
    let last = 0;
    for (const chart of this.charts) last = Math.max(last, chart.end(this.by));
    return [0, last || 1];
  }

  set(changes) {
    if (changes.by && changes.by !== this.by) {
      this.window = null;
      this.cursor = null;
    }
    Object.assign(this, changes);
    this.draw();
    this.onzoom(this.window);
  }

  zoom(window) {
    this.set({ window });
  }

  point(cursor) {
    this.cursor = cursor;
    this.wake();
  }
}
