// Runs over one another: #/compare/A/B/...?by=run. Runs that differ in nothing but their seed are
// one group, with an interval over them.

import { Board } from "/app/charts/board.js";
import { LineChart } from "/app/charts/line.js";
import { Store } from "/app/charts/store.js";
import { ask, live } from "/app/data.js";
import { el, replace } from "/app/dom.js";
import { sheetTable } from "/app/runs/facts.js";
import { LOSSES } from "/app/runs/groups.js";
import { choice, skeleton } from "/app/runs/parts.js";
import {
  MISSING,
  isNumber,
  minutes,
  percent,
  runAddress,
  short,
  shown,
  titled,
} from "/app/words.js";

const MAX_CURVES = 12; // runs whose curves are drawn one by one
const WANTED = ["charts/score", "charts/SPS", "charts/length", "losses/", "stats/"];
const AGAIN_MS = 4000;

export async function comparePage(host, { path: names, query, signal }) {
  document.title = "Compare · sparring";
  if (names.length < 2) {
    const words = "Choose two runs or more in the list of runs, then Compare.";
    host.append(el("p", { class: "notice" }, words, " ", el("a", { href: "#/runs" }, "Runs")));
    return;
  }
  const page = new ComparePage(names, query.get("by") ?? "", signal);
  host.append(page.element);
  await page.load();
  page.follow();
}

class ComparePage {
  constructor(names, by, signal) {
    this.names = names;
    this.by = by;
    this.signal = signal;
    this.board = new Board({ by: "minutes", signal });
    this.stores = new Map(names.map((name) => [name, new Store()]));
    this.charts = new Map();
    this.notes = el("div", {}, skeleton(2));
    this.strength = el("div", { class: "charts" });
    this.tables = el("div", {}, skeleton(4, "row"));
    this.runCurves = el("div", { class: "charts" });
    const back = el(
      "button",
      { hidden: true, onclick: () => this.board.zoom(null) },
      "Show all of it",
    );
    this.board.onzoom = (window) => (back.hidden = window === null);
    this.element = el(
      "div",
      {},
      el(
        "div",
        { class: "page-head" },
        el("h1", {}, el("a", { class: "crumb", href: "#/runs" }, "Runs / "), "Compare"),
        this.chips(),
      ),
      el("div", { class: "chart-tools" }, this.tools(), back),
      [this.notes, this.strength, this.tables],
      el("section", { class: "chart-group" }, el("h2", {}, "Curves of the runs"), this.runCurves),
    );
  }

  chips() {
    const without = (name) => {
      const rest = this.names.filter((other) => other !== name);
      return `#/compare/${rest.map(encodeURIComponent).join("/")}`;
    };
    return el(
      "ul",
      { class: "chips", "aria-label": "Runs" },
      this.names.map((name) =>
        el(
          "li",
          {},
          el("a", { href: runAddress(name) }, name),
          el("a", { href: without(name), "aria-label": `Leave ${name} out`, class: "away" }, "×"),
        ),
      ),
    );
  }

  tools() {
    const axes = { minutes: "minutes", decisions: "decisions" };
    return [
      choice("Axis", axes, "minutes", (by) => this.board.set({ by })),
      choice("Groups", { "": "by settings", run: "each run" }, this.by, (by) => {
        this.by = by;
        const kept = by ? `?by=${by}` : "";
        const where = this.names.map(encodeURIComponent).join("/");
        history.replaceState(null, "", `#/compare/${where}${kept}`);
        this.load();
      }),
    ];
  }

  // Loads the comparison of groups, then the curves of single runs.
  async load() {
    await this.loadGroups(); // first: they define the strength curve
    await this.loadCurves();
    this.drawRunCurves();
  }

  async loadGroups() {
    const query = new URLSearchParams(this.names.map((name) => ["run", name]));
    if (this.by) query.set("by", this.by);
    try {
      this.found = await ask(`/api/compare?${query}`, this.signal);
    } catch (wrong) {
      if (wrong.name === "AbortError") throw wrong;
      this.found = null;
      replace(this.notes, el("p", { class: "notice bad", role: "alert" }, wrong.message));
      replace(this.tables);
      return;
    }
    this.showGroups();
  }

  async loadCurves() {
    const only = new URLSearchParams([...WANTED, this.curve()].map((name) => ["only", name]));
    const drawn = this.names.slice(0, MAX_CURVES);
    await Promise.all(
      drawn.map(async (name) => {
        const address = `/api/runs/${encodeURIComponent(name)}/curves?${only}&only=charts/decisions`;
        const { curves } = await ask(address, this.signal);
        this.stores.get(name).add(curves);
      }),
    );
  }

  follow() {
    let due = 0;
    this.signal.addEventListener("abort", () => clearTimeout(due));
    const changed = ({ name }) => {
      if (!this.stores.has(name) || due) return;
      due = setTimeout(() => {
        due = 0;
        this.load().catch(() => {}); // a removed run is reported at the next visit
      }, AGAIN_MS);
    };
    live("/api/live", { run: changed }, this.signal);
  }

  colorOf(run) {
    const at =
      this.found?.groups.findIndex(({ runs }) => runs.some((one) => one.run === run)) ?? -1;
    return at < 0 ? this.names.indexOf(run) : at;
  }

  showGroups() {
    const { found } = this;
    replace(
      this.notes,
      found.notes.map((note) => el("p", { class: "soft note" }, titled(note))),
    );
    const form = found.measure === "score" || found.parity === null ? "number" : "percent";
    const groups = found.groups.map(({ group, label }, at) => ({
      name: `${group}: ${label.length > 48 ? `${label.slice(0, 47)}…` : label}`,
      color: at % 8,
      dashed: at >= 8,
      read: (by) => {
        const band = this.found.curves[by]?.[at] ?? { x: [], value: [] };
        return { x: band.x, y: band.value, low: band.low, high: band.high };
      },
    }));
    const guide = found.parity ? { value: found.parity, name: "equal strength" } : null;
    this.put(this.strength, {
      title: found.parity === null ? "Return" : `Won against ${found.opponents.join(", ")}`,
      series: [...groups, ...this.seedLines()],
      wide: true,
      form,
      guide,
    });
    replace(this.tables, groupTable(found, form), pairTable(found));
  }

  // Single runs of groups with several runs: thin lines behind the group's line.
  seedLines() {
    const several = this.found.groups.filter(({ runs }) => runs.length > 1);
    return several.flatMap(({ runs }) =>
      runs.map(({ run }) => ({
        name: run,
        unnamed: true,
        thin: true,
        color: this.colorOf(run),
        read: (by) => this.stores.get(run)?.line(this.curve(), by) ?? { x: [], y: [] },
      })),
    );
  }

  // The curve of the runs that their groups' strength is made of.
  curve() {
    if (this.found?.opponents.length !== 1) return "eval/strength";
    return `eval/${this.found.opponents[0]}/${this.found.parity === null ? "score" : "win"}`;
  }

  drawRunCurves() {
    const stores = [...this.stores].filter(([, store]) => store.names.length);
    const names = new Set(stores.flatMap(([, store]) => store.names));
    names.delete("charts/decisions");
    names.delete(this.curve());
    const wanted = [...names].filter((name) => !/\d$/.test(name)).toSorted(byWanted);
    for (const curve of wanted) {
      const series = stores
        .filter(([, store]) => store.has(curve))
        .map(([run, store], at) => ({
          name: run,
          color: this.colorOf(run) % 8,
          dashed: at >= 8,
          read: (by) => store.line(curve, by),
        }));
      this.put(this.runCurves, {
        title: titleOf(curve),
        series,
        form: curve === "charts/SPS" ? "rate" : "number",
      });
    }
    this.board.draw();
  }

  put(place, spec) {
    const there = this.charts.get(spec.title);
    if (there) {
      there.take(spec);
      return;
    }
    if (spec.wide) this.removeAll(place);
    const chart = new LineChart(spec, this.board);
    place.append(chart.element);
    this.board.add(chart);
    this.charts.set(spec.title, chart);
  }

  removeAll(place) {
    for (const [title, chart] of this.charts) {
      if (chart.element.parentNode !== place) continue;
      this.board.remove(chart);
      this.charts.delete(title);
      chart.element.remove();
    }
  }
}

function byWanted(one, two) {
  const place = (name) => WANTED.findIndex((start) => name.startsWith(start));
  return place(one) - place(two) || one.localeCompare(two);
}

function titleOf(curve) {
  if (curve === "charts/SPS") return "Decisions per second";
  const [group, name, ...role] = curve.split("/");
  const title = (group === "losses" && LOSSES[name]) || titled(name);
  return [title, ...role].join(", ");
}

function groupTable(found, form) {
  const late = Object.keys(found.common);
  const place = {
    minutes: (value) => minutes(value),
    decisions: (value) => `${short(value)} decisions`,
  };
  const heads = [
    "Group",
    "Settings",
    "Runs",
    "Strength",
    "95 %",
    ...late.map((by) => `At ${place[by](found.common[by])}`),
    "Score/h",
  ];
  const rows = found.groups.map((group, at) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("i", { class: `swatch c${at % 8}` }), group.group),
      el("td", { class: "wrap" }, group.label),
      el(
        "td",
        { class: "wrap" },
        group.runs.flatMap(({ run }, i) => [
          i ? ", " : "",
          el("a", { href: runAddress(run) }, run),
        ]),
      ),
      numberCell(shown(group.strength.value, form)),
      numberCell(intervalOf(group.strength, form)),
      late.map((by) => numberCell(shown(group.strength_at_common[by]?.value, form))),
      numberCell(shown(group.score_per_hour?.value)),
    ),
  );
  return sheetTable("Groups", heads, rows, [0, 1, 2]);
}

function pairTable({ improvement }) {
  const known = improvement.filter(({ low }) => isNumber(low));
  if (!known.length) return null;
  const rows = known.map(({ one, two, value, low, high }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, `${one} over ${two}`),
      numberCell(percent(value, 0)),
      numberCell(intervalOf({ low, high }, "percent")),
    ),
  );
  return [
    el("h2", {}, "Probability that a run of one group is stronger"),
    sheetTable("Pairs of groups", ["Pair", "Stronger", "95 %"], rows, [0]),
  ];
}

function numberCell(text) {
  return el("td", { class: "number" }, text);
}

function intervalOf({ low, high }, form) {
  return isNumber(low) ? `${shown(low, form)} – ${shown(high, form)}` : MISSING;
}
