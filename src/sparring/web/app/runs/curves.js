// The curves of a run: groups of charts, and how they are looked at.

import { Board } from "/app/charts/board.js";
import { LineChart } from "/app/charts/line.js";
import { PLACES } from "/app/charts/store.js";
import { el, replace } from "/app/dom.js";
import { groupsOf } from "/app/runs/groups.js";
import { choice, skeleton } from "/app/runs/parts.js";

export class Curves {
  constructor(store, signal) {
    this.store = store;
    this.board = new Board({
      by: kept("by", "minutes"),
      smoothing: Number(kept("smoothing", 0)),
      signal,
    });
    this.charts = new Map(); // "group title" -> { chart, names }
    this.groups = new Map(); // name -> { element, grid }
    this.fairShare = null;
    this.known = 0;
    this.search = "";
    this.place = el("div", {}, skeleton(3, "chart"));
    this.element = el("div", {}, this.tools(), this.place);
  }

  tools() {
    const by = choice(
      "Axis",
      Object.fromEntries(PLACES.map((name) => [name, name])),
      this.board.by,
      (name) => {
        keep("by", name);
        this.board.set({ by: name });
      },
    );
    const amount = el("input", {
      type: "range",
      min: 0,
      max: 0.98,
      step: 0.02,
      value: this.board.smoothing,
      oninput: () => {
        keep("smoothing", amount.value);
        this.board.set({ smoothing: Number(amount.value) });
      },
    });
    const search = el("input", {
      type: "search",
      placeholder: "Find a curve",
      "aria-label": "Find a curve",
      oninput: () => {
        this.search = search.value;
        this.sift();
      },
    });
    const back = el(
      "button",
      { hidden: true, onclick: () => this.board.zoom(null) },
      "Show all of it",
    );
    this.board.onzoom = (window) => (back.hidden = window === null);
    return el("div", { class: "chart-tools" }, by, el("label", {}, "Smooth", amount), search, back);
  }

  // Draws what changed. New names make new charts; the others stay as they are.
  update(changed) {
    if (this.store.names.length !== this.known) this.arrange();
    for (const { chart } of this.charts.values()) {
      if (chart.spec.series.some(({ curve }) => changed.has(curve))) this.board.draw(chart);
    }
    // The axis grew for all of them.
    if (changed.size && !this.board.window) this.board.draw();
  }

  arrange() {
    if (!this.known) replace(this.place);
    this.known = this.store.names.length;
    for (const group of groupsOf(this.store, this.fairShare)) {
      const { grid } = this.groupOf(group);
      for (const [at, spec] of group.charts.entries()) {
        const key = `${group.name} ${spec.title}`;
        const names = spec.series.map(({ curve }) => curve).join(" ");
        const there = this.charts.get(key);
        if (!there) {
          const chart = new LineChart(spec, this.board);
          grid.insertBefore(chart.element, grid.children[at] ?? null);
          this.board.add(chart);
          this.charts.set(key, { chart, names });
        } else if (there.names !== names) {
          there.names = names;
          there.chart.take(spec);
        }
      }
    }
    this.sift();
  }

  groupOf({ name, folded }) {
    if (!this.groups.has(name)) {
      const grid = el("div", { class: "charts" });
      const element = folded
        ? el("details", { class: "chart-group" }, el("summary", {}, name), grid)
        : el("section", { class: "chart-group" }, el("h2", {}, name), grid);
      this.place.append(element);
      this.groups.set(name, { element, grid });
    }
    return this.groups.get(name);
  }

  marks(phases) {
    this.board.marks = phases.map(({ name, began }) => ({
      name,
      place: (by) => this.store.place(began, by),
    }));
    this.board.draw();
  }

  // Shows only charts whose title or lines match the search.
  sift() {
    const words = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { chart } of this.charts.values()) {
      const parts = [
        chart.spec.title,
        ...chart.spec.series.flatMap(({ name, curve }) => [name, curve]),
      ];
      const text = parts.join(" ").toLowerCase();
      chart.element.hidden = !words.every((word) => text.includes(word));
    }
    for (const { element, grid } of this.groups.values()) {
      element.hidden = ![...grid.children].some((child) => !child.hidden);
      if (element.tagName === "DETAILS" && words.length) element.open = true;
    }
  }

  showMessage(text) {
    if (!this.known) replace(this.place, el("p", { class: "soft empty" }, text));
  }
}

function kept(name, otherwise) {
  try {
    return localStorage.getItem(`curves.${name}`) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`curves.${name}`, value);
  } catch {
    // Without storage it holds until the page is left.
  }
}
