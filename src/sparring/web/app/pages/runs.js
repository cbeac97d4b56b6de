// All runs, live: #/runs?game=G&tag=T&sort=strength&search=TEXT

import { spark } from "/app/charts/spark.js";
import { live } from "/app/data.js";
import { el, replace } from "/app/dom.js";
import { tagLinks } from "/app/runs/labels.js";
import {
  gameTitle,
  intervalText,
  liveSign,
  progressBar,
  skeleton,
  stateBadge,
  strengthText,
} from "/app/runs/parts.js";
import { ago, minutes, runAddress, short, whole } from "/app/words.js";

const COLUMNS = [
  { key: "name", title: "Run", first: 1 },
  { key: "game", title: "Game", first: 1 },
  { key: "algo", title: "Algorithm", first: 1 },
  { key: "state", title: "State", first: 1 },
  { key: "strength", title: "Strength", first: -1, number: true },
  { key: "spark", title: "Over time" },
  { key: "decisions", title: "Decisions", first: -1, number: true },
  { key: "minutes", title: "Trained", first: -1, number: true },
  { key: "date", title: "Begun", first: -1, number: true },
];

export async function runsPage(host, { query, signal }) {
  document.title = "Runs · sparring";
  const list = new RunList(query);
  host.append(list.element);
  addEventListener("keydown", (event) => list.key(event), { signal });
  const handlers = {
    runs: ({ runs }) => list.take(runs),
    run: (run) => list.change(run),
    gone: ({ name }) => list.drop(name),
  };
  live("/api/live", handlers, signal, (on) => list.sign.set(on));
}

class RunList {
  constructor(query) {
    this.runs = null; // by name, once they are known
    this.rows = new Map(); // name -> { element, cells, shown }
    this.chosen = new Set();
    this.game = query.get("game") ?? "";
    this.tag = query.get("tag") ?? "";
    this.search = query.get("search") ?? "";
    const sort = query.get("sort") ?? "-date";
    this.sort = { key: sort.replace(/^-/, ""), order: sort.startsWith("-") ? -1 : 1 };
    this.sign = liveSign();
    this.make();
  }

  make() {
    this.count = el("span", { class: "soft" });
    this.searchField = el("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search runs by name, note or tag",
      value: this.search,
      oninput: () => this.filter({ search: this.searchField.value }),
    });
    this.gameField = el("select", {
      "aria-label": "Game",
      onchange: () => this.filter({ game: this.gameField.value }),
    });
    replace(this.gameField, el("option", { value: "" }, "All games"));
    this.tagField = el("select", {
      "aria-label": "Tag",
      hidden: true,
      onchange: () => this.filter({ tag: this.tagField.value }),
    });
    this.body = el("tbody", {});
    this.table = el(
      "table",
      { class: "runs" },
      el("caption", { class: "out-of-sight" }, "Runs"),
      el("thead", {}, el("tr", {}, el("th", { class: "pick" }), this.heads())),
      this.body,
    );
    this.place = el("div", { class: "sheet flush" }, skeleton(8, "row"));
    this.bar = el("div", { class: "chosen-bar", hidden: true });
    this.element = el(
      "div",
      {},
      el(
        "div",
        { class: "page-head" },
        el("h1", {}, "Runs"),
        [this.count, this.sign.element],
        el("div", { class: "tools" }, this.searchField, this.gameField, this.tagField),
      ),
      [this.place, this.bar],
      el(
        "p",
        { class: "soft keys" },
        [
          el("kbd", {}, "j"),
          " ",
          el("kbd", {}, "k"),
          " move, ",
          el("kbd", {}, "enter"),
          " opens, ",
        ],
        [el("kbd", {}, "x"), " chooses, ", el("kbd", {}, "c"), " compares, "],
        [el("kbd", {}, "/"), " searches"],
      ),
    );
  }

  heads() {
    return COLUMNS.map(({ key, title, first, number }) => {
      const sorted =
        this.sort.key === key ? (this.sort.order > 0 ? "ascending" : "descending") : null;
      const props = {
        scope: "col",
        class: `col-${key}${number ? " number" : ""}`,
        "aria-sort": sorted,
      };
      if (!first) return el("th", props, title);
      const turn = () => {
        const same = this.sort.key === key;
        this.filter({ sort: { key, order: same ? -this.sort.order : first } });
        replace(this.table.tHead.rows[0], this.table.tHead.rows[0].cells[0], this.heads());
        this.table.querySelector(`th.col-${key} button`).focus();
      };
      return el("th", props, el("button", { class: "head", onclick: turn }, title));
    });
  }

  take(runs) {
    this.runs = new Map(runs.map((run) => [run.name, run]));
    this.show();
  }

  change(run) {
    this.runs?.set(run.name, run);
    this.show();
  }

  drop(name) {
    this.runs?.delete(name);
    this.chosen.delete(name);
    this.show();
  }

  filter(changes) {
    Object.assign(this, changes);
    const kept = new URLSearchParams();
    if (this.game) kept.set("game", this.game);
    if (this.tag) kept.set("tag", this.tag);
    if (this.search) kept.set("search", this.search);
    const sort = `${this.sort.order < 0 ? "-" : ""}${this.sort.key}`;
    if (sort !== "-date") kept.set("sort", sort);
    history.replaceState(null, "", `#/runs${kept.size ? `?${kept}` : ""}`);
    this.show();
  }

  show() {
    if (!this.runs) return;
    if (!this.runs.size) {
      replace(this.place, noRuns());
      this.count.textContent = "";
      return;
    }
    this.showChoices();
    const runs = this.sortedRuns();
    if (this.table.parentNode !== this.place) replace(this.place, this.table);
    const focused = document.activeElement;
    const rows = runs.map((run) => this.rowOf(run));
    const same =
      rows.length === this.body.children.length &&
      rows.every((row, at) => row === this.body.children[at]);
    if (!same) {
      replace(this.body, rows.length ? rows : nothingFits());
      if (this.body.contains(focused)) focused.focus({ preventScroll: true });
    }
    const running = runs.filter(({ state }) => state === "running").length;
    this.count.textContent = `${whole(runs.length)}${running ? `, ${running} running` : ""}`;
    this.showChosen();
  }

  showChoices() {
    const runs = [...this.runs.values()];
    const games = runs.map(({ game }) => game);
    const tags = runs.flatMap((run) => run.tags);
    fillChoice(this.gameField, "All games", games, this.game);
    fillChoice(this.tagField, "All tags", tags, this.tag);
    this.tagField.hidden = this.tagField.options.length < 2;
  }

  sortedRuns() {
    const { key, order } = this.sort;
    const words = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (run) => {
      const about = `${run.note} ${run.tags.join(" ")}`;
      const text = `${run.name} ${run.game} ${run.algo} ${run.state} ${about}`.toLowerCase();
      const chosen = !this.game || run.game === this.game;
      const tagged = !this.tag || run.tags.includes(this.tag);
      return chosen && tagged && words.every((word) => text.includes(word));
    };
    return [...this.runs.values()].filter(fits).sort((a, b) => {
      const [one, two] = [a[key], b[key]];
      if (one === two) return a.name.localeCompare(b.name);
      if (one === null || one === undefined) return 1;
      if (two === null || two === undefined) return -1;
      return order * (typeof one === "number" ? one - two : String(one).localeCompare(String(two)));
    });
  }

  // The row of a run; one that is there already changes only where the run did.
  rowOf(run) {
    let row = this.rows.get(run.name);
    if (!row) {
      row = this.makeRow(run);
      this.rows.set(run.name, row);
    }
    for (const { key } of COLUMNS) {
      const content = CELLS[key](run);
      const text = JSON.stringify(content.values);
      if (row.shown[key] === text) continue;
      row.shown[key] = text;
      replace(row.cells[key], content.make());
    }
    return row.element;
  }

  makeRow(run) {
    const pick = el("input", {
      type: "checkbox",
      "aria-label": `Choose ${run.name}`,
      onchange: () => this.choose(run.name, pick.checked),
    });
    const cells = {};
    const made = COLUMNS.map(({ key, number }) => {
      cells[key] = el(key === "name" ? "th" : "td", {
        class: `col-${key}${number ? " number" : ""}`,
        scope: key === "name" ? "row" : null,
      });
      return cells[key];
    });
    const element = el("tr", { "data-run": run.name }, el("td", { class: "pick" }, pick), made);
    element.addEventListener("click", (event) => {
      if (event.target.closest("a, input, button") || getSelection().toString()) return;
      location.hash = runAddress(run.name);
    });
    return { element, cells, pick, shown: {} };
  }

  choose(name, on) {
    if (on) this.chosen.add(name);
    else this.chosen.delete(name);
    const row = this.rows.get(name);
    row.pick.checked = on;
    row.element.classList.toggle("chosen", on);
    this.showChosen();
  }

  showChosen() {
    const names = [...this.chosen];
    this.bar.hidden = names.length === 0;
    if (!names.length) return;
    const clear = () => names.forEach((name) => this.choose(name, false));
    const go = el("a", { class: "button primary", href: compareAddress(names) }, "Compare");
    replace(
      this.bar,
      el("span", {}, `${names.length} chosen`),
      names.length > 1 ? go : el("span", { class: "soft" }, "choose another to compare"),
      el("button", { class: "quiet", onclick: clear }, "Clear"),
    );
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const rows = [...this.body.rows];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const go = (to) =>
      rows[Math.max(0, Math.min(rows.length - 1, to))]?.querySelector("a")?.focus();
    const name = rows[at]?.dataset.run;
    const keys = {
      j: () => go(at + 1),
      k: () => go(at < 0 ? rows.length - 1 : at - 1),
      x: () => name && this.choose(name, !this.chosen.has(name)),
      c: () => this.chosen.size > 1 && (location.hash = compareAddress([...this.chosen])),
      "/": () => this.searchField.focus(),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }
}

// Cells of a row: `make` is called when `values` change.
const CELLS = {
  name: ({ name, note, tags }) => ({
    values: [name, note, tags],
    make: () => [
      el("a", { href: runAddress(name) }, name),
      tagLinks(tags),
      note ? el("p", { class: "note", title: note }, note) : null,
    ],
  }),
  game: (run) => ({ values: run.game, make: () => gameTitle(run) }),
  algo: ({ algo }) => ({ values: algo, make: () => algo.toUpperCase() }),
  state: ({ state, trouble, progress }) => ({
    values: [state, trouble, state === "running" ? progress : 0],
    make: () => [
      stateBadge({ state, trouble }),
      state === "running" ? progressBar(progress, "Trained") : null,
    ],
  }),
  strength: (run) => ({
    values: [run.strength, run.low, run.high, run.against],
    make: () => [
      el("b", {}, strengthText(run)),
      run.strength === null ? null : el("span", { class: "soft" }, ` ${run.against}`),
      el("span", { class: "interval" }, intervalText(run)),
    ],
  }),
  spark: ({ evaluations }) => ({
    values: evaluations.strength,
    make: () => spark(evaluations.strength, "Strength over the run"),
  }),
  decisions: ({ decisions }) => ({ values: decisions, make: () => short(decisions) }),
  minutes: ({ minutes: value }) => ({ values: value, make: () => minutes(value) }),
  date: ({ date }) => ({
    values: ago(date),
    make: () => el("time", { datetime: date }, ago(date)),
  }),
};

// Options of a choice: all, and every value that there is. A chosen one stays though it went.
function fillChoice(field, all, values, chosen) {
  const known = [...new Set(chosen ? [...values, chosen] : values)].sort();
  const text = JSON.stringify(known);
  if (field.dataset.known !== text) {
    field.dataset.known = text;
    const options = known.map((value) => el("option", { value }, value));
    replace(field, el("option", { value: "" }, all), options);
  }
  field.value = chosen;
}

function compareAddress(names) {
  return `#/compare/${names.map(encodeURIComponent).join("/")}`;
}

function noRuns() {
  return el(
    "div",
    { class: "empty" },
    el("h2", {}, "No runs here yet"),
    el("p", { class: "soft" }, "Train one in a terminal; it appears here by itself:"),
    el("pre", {}, el("code", {}, "sparring train tic_tac_toe --minutes 1")),
    el("p", { class: "soft" }, "sparring games lists what else can be learned."),
  );
}

function nothingFits() {
  const cell = el("td", { colspan: COLUMNS.length + 1, class: "soft" }, "No run fits the search.");
  return el("tr", {}, cell);
}
