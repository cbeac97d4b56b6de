// One run: #/runs/NAME?tab=settings. Its strength, its curves while they grow, everything else.

import { Store } from "/app/charts/store.js";
import { ask, live } from "/app/data.js";
import { el, replace, toast } from "/app/dom.js";
import { Curves } from "/app/runs/curves.js";
import {
  checkpointsTab,
  eventsTab,
  machineTab,
  pathText,
  playLink,
  resultsTab,
  settingsTab,
} from "/app/runs/facts.js";
import { showLabels } from "/app/runs/labels.js";
import { orderButton } from "/app/runs/orders.js";
import {
  gameTitle,
  intervalText,
  liveSign,
  progressBar,
  skeleton,
  stateBadge,
  strengthText,
} from "/app/runs/parts.js";
import { Tabs } from "/app/runs/tabs.js";
import { MISSING, minutes, runAddress, short, whole } from "/app/words.js";

const TABS = {
  results: ["Results", resultsTab],
  checkpoints: ["Checkpoints", checkpointsTab],
  settings: ["Settings", settingsTab],
  events: ["Events", eventsTab],
  machine: ["Machine", machineTab],
};

export async function runPage(host, { path: [name], query, signal }) {
  document.title = `${name} · sparring`;
  const page = new RunPage(name, query.get("tab"), signal);
  host.append(page.element);
  await page.begin();
}

class RunPage {
  constructor(name, tab, signal) {
    this.name = name;
    this.signal = signal;
    this.address = `/api/runs/${encodeURIComponent(name)}`;
    this.store = new Store();
    this.curves = new Curves(this.store, signal);
    this.facts = null;
    this.last = -1;
    this.sign = liveSign();
    this.badge = el("span", {});
    this.about = el("span", { class: "soft" });
    this.tools = el("div", { class: "tools" });
    this.labels = el("div", { class: "labels" });
    this.path = el("p", { class: "soft path", hidden: true });
    this.obstacle = el("p", { class: "soft obstacle", hidden: true });
    this.headline = el("section", { class: "headline", "aria-label": "Headline" }, skeleton(2));
    this.tabs = new Tabs(this.panels(), tab, (chosen) => {
      const kept = chosen === "curves" ? "" : `?tab=${chosen}`;
      history.replaceState(null, "", runAddress(name) + kept);
    });
    this.element = el(
      "div",
      {},
      el(
        "div",
        { class: "page-head" },
        el("h1", {}, el("a", { class: "crumb", href: "#/runs" }, "Runs / "), name),
        [this.badge, this.about, this.sign.element, this.tools],
      ),
      [this.path, this.obstacle, this.labels, this.headline, this.tabs.element],
    );
  }

  panels() {
    const panels = { curves: { title: "Curves", make: () => this.curves.element } };
    for (const [name, [title, make]] of Object.entries(TABS)) {
      panels[name] = { title, make: () => (this.facts ? make(this.facts) : skeleton(6)) };
    }
    return panels;
  }

  // Facts and curves are requested in parallel; each is shown on arrival.
  async begin() {
    const facts = this.ask("").then((found) => this.takeFacts(found));
    const curves = this.ask("/curves").then((found) => this.takeCurves(found));
    await Promise.all([facts, curves]);
    const handlers = {
      points: (found) => this.takeCurves(found),
      reset: () => this.again(),
      state: (overview) => this.takeOverview(overview),
      events: () => this.refresh(),
    };
    const address = () => `${this.address}/live?since=${this.last}`;
    live(address, handlers, this.signal, (on) => this.sign.set(on));
  }

  ask(what) {
    return ask(this.address + what, this.signal);
  }

  // A run that went back to a checkpoint: what came after it is no longer true.
  async again() {
    const found = await this.ask("/curves");
    this.store.clear();
    this.takeCurves(found);
    this.curves.board.draw();
  }

  async refresh() {
    this.asked = Date.now();
    try {
      this.takeFacts(await this.ask(""));
    } catch (wrong) {
      if (!this.signal.aborted) toast(wrong.message);
    }
  }

  takeFacts(facts) {
    const { overview, ...rest } = facts;
    const content = JSON.stringify(rest);
    this.facts = facts;
    this.curves.fairShare = overview.parity;
    this.curves.marks(facts.phases.filter(({ began }) => began));
    this.takeOverview(overview);
    if (content === this.shownFacts) return;
    this.shownFacts = content;
    this.path.textContent = pathText(facts);
    this.path.hidden = !this.path.textContent;
    // A field with keyboard focus is not replaced.
    const typing =
      this.tabs.panel.contains(document.activeElement) && this.tabs.chosen === "settings";
    if (this.tabs.chosen !== "curves" && !typing) this.tabs.show();
  }

  takeCurves({ last, curves }) {
    this.last = Math.max(this.last, last ?? -1);
    const changed = this.store.add(curves);
    this.curves.update(changed);
    if (!this.store.names.length) {
      this.curves.showMessage("Nothing has been measured yet; curves begin with the first update.");
    }
    if (this.facts) this.showHeadline();
  }

  takeOverview(overview) {
    if (!this.facts) return;
    const ended = overview.state !== this.facts.overview.state;
    this.facts.overview = overview;
    // Checkpoints come without an event.
    if (ended || (this.tabs.chosen === "checkpoints" && Date.now() - this.asked > 10000)) {
      this.refresh();
    }
    replace(this.badge, stateBadge(overview));
    const what = overview.trouble || gameTitle(overview);
    this.about.textContent = `${what} · ${overview.algo.toUpperCase()}`;
    this.showTools();
    this.showLabels();
    this.showHeadline();
  }

  showLabels() {
    const { name, note, tags } = this.facts.overview;
    const content = JSON.stringify([note, tags]);
    if (content === this.shownLabels) return;
    this.shownLabels = content;
    showLabels(this.labels, { name, note, tags }, (labels) => {
      Object.assign(this.facts.overview, { note: labels.note, tags: labels.tags });
      this.showLabels();
    });
  }

  showTools() {
    const { overview, league, checkpoints, unplayable } = this.facts;
    const content = JSON.stringify([overview.state, league, checkpoints.length > 0, unplayable]);
    if (content === this.shownTools) return;
    this.shownTools = content;
    const ladder = `#/league/${encodeURIComponent(overview.name)}`;
    replace(
      this.tools,
      orderButton(overview),
      league ? el("a", { class: "button", href: ladder }, "League") : null,
      checkpoints.length
        ? playLink(this.facts, overview.name, "Play against it", "button primary")
        : null,
    );
    this.obstacle.hidden = !unplayable || !checkpoints.length;
    replace(
      this.obstacle,
      `It cannot be played in a page: ${unplayable}. In a terminal: `,
      el("code", {}, `sparring play ${overview.name}`),
    );
  }

  showHeadline() {
    const { overview } = this.facts;
    const pace = this.store.lastOf("charts/SPS");
    const against = measuredAgainst(this.facts);
    const tiles = [
      ["Decisions", short(overview.decisions)],
      ["Trained", minutes(overview.minutes)],
      ["Updates", whole(overview.updates)],
      ["Decisions/s", pace === undefined ? MISSING : short(pace)],
    ];
    const content = JSON.stringify([overview, pace]);
    if (content === this.shownHeadline) return;
    this.shownHeadline = content;
    replace(
      this.headline,
      el(
        "div",
        { class: "tile lead" },
        el("span", { class: "label" }, "Strength"),
        el("b", {}, strengthText(overview)),
        el(
          "span",
          { class: "soft" },
          [intervalText(overview), against].filter(Boolean).join(" · "),
        ),
      ),
      tiles.map(([label, value]) =>
        el("div", { class: "tile" }, el("span", { class: "label" }, label), el("b", {}, value)),
      ),
      overview.state === "running" ? progressBar(overview.progress, "Trained") : null,
    );
  }
}

// What the strength is: the share of wins against the game's best bot, or the return.
function measuredAgainst({ overview, results }) {
  const { against, measure, strength } = overview;
  if (overview.state === "unmeasured") return `not measured: sparring resume ${overview.name}`;
  if (strength === null) return against ? `not measured yet (${against})` : "not measured yet";
  const final = results?.results?.[measure === "score" ? "alone" : against];
  const when = final ? "after training" : "newest evaluation";
  return measure === "score" ? `return, ${when}` : `won against ${against}, ${when}`;
}
