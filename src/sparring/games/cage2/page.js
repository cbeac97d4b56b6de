// CAGE-2 in a browser: a person at the defender's desk, or an onlooker who sees everything.

import { calm, el, replace, svg, wait } from "/app/dom.js";
import { Desk } from "/games/cage2/desk.js";
import { History, minus, noticedWords, stepOf } from "/games/cage2/history.js";
import { NetworkMap } from "/games/cage2/map.js";
import { SUBNETS, readSeen, readTruth, splitAction } from "/games/cage2/network.js";

const WATCH_MS = 350;
const MAX_BARS = 200;

export const page = {
  rules: [
    "You are blue: you defend a company's network of thirteen hosts. Red has a foothold on User0 that cannot be removed, and works its way through the user hosts and the enterprise hosts toward the operational server, step by step.",
    "You never win points, you only lose fewer. Every host on which red is privileged costs 0.1 a step, an enterprise host or Op_Server0 costs 1, and while red has stopped the service on Op_Server0 you pay 10. A Restore costs 1.",
    "Each step you do one thing. Analyse looks for malware and marks the host as privileged if there is some. Remove ends shells at user level that monitoring noticed. Restore makes a host new, with everything on it gone, your decoys too. A decoy opens a port on which red's attack comes to nothing. Sleep and Monitor only wait.",
    "Monitoring reports scans and exploits as they happen, and keeps a belief about every host. It makes errors: one shell in twenty slips through, a hit decoy looks like a scan, sessions over SSH cannot be removed. The cost of a step shows what monitoring does not.",
    "Dotted lines on the map show which hosts red finds next. Operational hosts can be reached only while red is on Enterprise0, 1 or 2. Red's actions are shown when the episode is over.",
    "Choose a host with the arrow keys, then press a (Analyse), r (Remove), x (Restore) or a digit (a decoy); w waits, . does the last thing again, j jumps to the next alarm.",
  ],
  make(host, session) {
    return new View(host, session);
  },
  describe(before, { actions }, after, session) {
    const called = session.engine.actionName(actions[0]);
    const step = stepOf(readSeen(before), actions[0], after, called);
    const noticed = noticedWords(step);
    const cost = step.cost ? `, ${minus(step.cost)}` : "";
    const lines = [`${step.name}${step.result ? `: ${step.result}` : ""}${cost}`];
    if (noticed) lines.push(`noticed: ${noticed}`);
    if (session.person < 0) lines.push(`red: ${step.red}`);
    return lines;
  },
  score(state) {
    return minus(-readSeen(state).total);
  },
  result(state) {
    return `${state.end}: ${minus(-readSeen(state).total)} against ${readTruth(state).red}`;
  },
};

class View {
  constructor(host, session) {
    this.session = session;
    this.plays = session.players.some(({ kind }) => kind === "person");
    this.history = new History(session);
    this.map = new NetworkMap((at) => this.pick(at));
    this.desk = new Desk(session, (at) => this.pick(at, true));
    this.score = el("div", { class: "figures" });
    this.bars = svg("svg", { class: "bars", role: "img", preserveAspectRatio: "none" });
    this.truth = el("div", { class: "debrief", hidden: true });
    this.root = el(
      "div",
      { class: "cage2-view" },
      el("div", { class: "head" }, this.score, this.bars),
      el("div", { class: "ground" }, this.map.element, legend(), this.truth),
      this.desk.element,
    );
    host.append(el("div", { class: "cage2-room" }, this.root));
    this.away = new AbortController();
    addEventListener("keydown", (event) => this.onKey(event), { signal: this.away.signal });
    this.pick(this.desk.host);
  }

  pick(host, focus = false) {
    this.map.pick(host, focus);
    this.desk.choose(host);
  }

  show(state, ask) {
    const seen = readSeen(state);
    // Blue learns the truth only when nothing can be done any more.
    const open = this.session.person < 0 || state.over;
    const truth = open ? readTruth(state) : null;
    this.map.draw(seen, truth);
    this.map.hint(null);
    this.desk.show(seen, ask);
    this.desk.element.hidden = !this.plays || state.over;
    this.root.classList.toggle("watched", this.desk.element.hidden);
    const steps = this.history.upTo(state);
    this.drawHead(seen, steps);
    this.drawTruth(truth, state.over && this.plays ? steps : []);
  }

  async animate(before, move, after) {
    // Pauses only in live games without a person: a playing person or a replay sets the pace.
    if (this.plays || !this.session.run) return;
    this.show(after, null);
    if (!calm()) await wait(WATCH_MS);
  }

  mark(action) {
    const { host } = splitAction(this.session.engine.actionName(action));
    if (host >= 0) this.pick(host);
    this.map.hint(host);
    this.desk.mark(action);
  }

  drawHead(seen, steps) {
    const most = this.session.rules.settings.max_steps;
    const last = steps.at(-1);
    replace(
      this.score,
      el("span", { class: "figure" }, minus(-seen.total), el("small", {}, "so far")),
      el("span", { class: "figure" }, `${seen.step}/${most}`, el("small", {}, "step")),
      el(
        "span",
        { class: `figure${last?.cost ? " paid" : ""}` },
        last ? minus(last.cost) : "–",
        el("small", {}, "last step"),
      ),
    );
    this.drawBars(steps, Math.min(most, MAX_BARS));
  }

  // A bar per step: its height is what the step cost, its foot what was noticed.
  drawBars(steps, room) {
    const shown = steps.slice(-room);
    this.bars.setAttribute("viewBox", `0 0 ${room} 24`);
    this.bars.setAttribute("aria-label", `cost of the last ${shown.length} steps`);
    replace(
      this.bars,
      svg("rect", { class: "floor", x: 0, y: 19.6, width: room, height: 0.6 }),
      shown.map((step, at) => {
        const height = 19 * Math.min(1, Math.sqrt(step.cost / 5));
        const kind = step.cost >= 10 ? "worst" : step.name.startsWith("Restore") ? "paid" : "cost";
        return svg("rect", { class: kind, x: at + 0.1, y: 19.6 - height, width: 0.8, height });
      }),
      shown.flatMap((step, at) =>
        step.noticed.map(({ activity }) =>
          svg("rect", { class: activity, x: at + 0.1, y: 21, width: 0.8, height: 3 }),
        ),
      ),
    );
  }

  // What was hidden: red's kind, the service, and after the end every move of red.
  drawTruth(truth, steps) {
    this.truth.hidden = !truth;
    if (!truth) return replace(this.truth);
    const moves = steps.map((step, at) =>
      el("li", { value: at + 1 }, step.red, el("small", {}, ` you: ${step.name}`)),
    );
    return replace(
      this.truth,
      el("p", {}, `Red is ${truth.red}. The service on Op_Server0 is ${truth.service}.`),
      moves.length ? el("h3", {}, "What red really did") : null,
      moves.length ? el("ol", { tabindex: 0 }, moves) : null,
    );
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // Keys in other fields and panels are not for the map.
    if (document.activeElement.closest("input, select, textarea, summary, ol, dialog")) return;
    if (!this.plays) return;
    if (this.arrow(event.key) || this.desk.key(event.key.toLowerCase())) event.preventDefault();
  }

  arrow(key) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      key
    ];
    if (!step) return false;
    const row = SUBNETS.findIndex(({ hosts }) => hosts.includes(this.desk.host));
    const column = SUBNETS[row].hosts.indexOf(this.desk.host);
    const line = SUBNETS[Math.max(0, Math.min(2, row + step[1]))].hosts;
    this.pick(line[Math.max(0, Math.min(line.length - 1, column + step[0]))], true);
    return true;
  }

  close() {
    this.away.abort();
    this.map.close();
  }
}

function legend() {
  const entries = [
    ["no", "no sign"],
    ["unknown", "unknown"],
    ["user", "user access"],
    ["privileged", "privileged"],
    ["scan", "scan now"],
    ["exploit", "exploit now"],
    ["decoy", "decoy on a port"],
  ];
  return el(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    entries.map(([kind, words]) => el("li", {}, el("i", { class: kind }), words)),
  );
}
