// Entry point of an agent file: one game and one agent, without a server. The rest of the file is
// written by src/sparring/web/agent_page.py. Pages of a site (site.js) share its parts.

import { el, svg } from "/app/dom.js";
import { fromBase64 } from "/app/engine/engine.js";
import { startFrame } from "/app/frame.js";
import { playPage } from "/app/pages/play.js";
import { replayPage } from "/app/pages/replay.js";
import { wayOptions } from "/app/play/lineup.js";
import { addressOf, newSeed, ordinaryWord } from "/app/play/setup.js";
import { useSource } from "/app/play/source.js";

const LEAD =
  "Everything is in this file: it plays without a network, and nothing leaves this page.";

// `page` is how the game looks, null for the plain view.
export function startAgent(page) {
  const about = JSON.parse(document.getElementById("about").textContent);
  useSource(fileSource(about, page));
  startFrame(
    {
      about: { show: (host) => aboutPage(host, about, LEAD), nav: "about" },
      play: { show: (host, at) => tablePage(host, at, about), nav: "play" },
      replay: { show: replayPage, nav: "replay" },
    },
    "about",
  );
}

// Data of the play pages, from this file.
function fileSource(about, page) {
  const { rules, agent } = about;
  return {
    ...ownSource(about, "file"),
    wasm: () => unpacked("wasm"),
    async page() {
      if (!page) throw new Error(`${rules.name} has no page`);
      return page;
    },
    async network(name) {
      if (name !== agent.name) throw new Error(`this file holds ${agent.name}, not ${name}`);
      return unpacked("network");
    },
    worker() {
      const script = new Blob([document.getElementById("worker").textContent]);
      return new Worker(URL.createObjectURL(script));
    },
  };
}

// What holds where one game is played with one agent; `what` is a file or a page.
export function ownSource({ rules, agent }, what) {
  return {
    server: false,
    games: async () => [rules],
    async rules(game, flags) {
      if (game !== rules.name) throw new Error(`this ${what} plays ${rules.name}, not ${game}`);
      const names = new Set([...Object.keys(flags), ...Object.keys(rules.flags)]);
      const other = [...names].find(
        (name) => name !== "skip_forced" && String(rules.flags[name]) !== String(flags[name]),
      );
      if (other) {
        throw new Error(`this ${what} plays with ${other}=${rules.settings[other]} alone`);
      }
      return rules;
    },
    players: async () => [agent],
    style: () => {}, // one sheet has them all
  };
}

async function unpacked(id) {
  return inflated(new Blob([fromBase64(document.getElementById(id).textContent.trim())]));
}

// The bytes behind gzip.
export function inflated(blob) {
  const stream = blob.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// The default opponent is the agent, with the flags of its training.
export function tablePage(host, at, { rules, agent }) {
  if (!at.query.has("against")) at.query.set("against", ordinaryWord(agent));
  if (!at.query.has("set")) {
    for (const [name, value] of Object.entries(rules.flags)) {
      at.query.append("set", `${name}=${value}`);
    }
  }
  return playPage(host, { ...at, path: [rules.name] });
}

export function aboutPage(host, about, lead) {
  const { rules, agent } = about;
  const seats = Array.from({ length: rules.seats }, (_, seat) => seat);
  const words = seats.length === 2 ? ["Play first", "Play second"] : ["Play"];
  const seatWord = (seat) => words[seat] ?? `From seat ${seat}`;
  const starts = [...seats, -1].map((seat) =>
    el(
      "a",
      { class: seat === 0 ? "button primary" : "button", "data-seat": seat },
      seat < 0 ? "Watch it play itself" : seatWord(seat),
    ),
  );
  const way = el(
    "select",
    { "aria-label": "How it plays", onchange: () => aim() },
    wayOptions(
      rules,
      Boolean(rules.search) && agent.searchable,
      agent.plays === "sampled" ? "sampled" : "",
    ),
  );
  // The links lead to tables where it plays in the chosen way.
  const aim = () => {
    const against = way.value ? `${agent.name}@${way.value}` : agent.name;
    for (const link of starts) {
      const person = Number(link.getAttribute("data-seat"));
      const wish = { seed: newSeed(), person, against, flags: {} };
      link.setAttribute("href", addressOf(rules.name, wish));
    }
  };
  aim();
  document.title = `${agent.name} - ${rules.title}`;
  host.append(
    el("h1", {}, agent.name),
    el("p", { class: "agent-lead" }, `An agent that plays ${rules.title}. `, lead),
    el("p", { class: "agent-start" }, starts, el("label", {}, el("span", {}, "It plays"), way)),
    strengthTable(about),
    factList(about),
  );
}

// How often it wins against whom, with the interval as a line.
function strengthTable({ strength, rules }) {
  if (strength.length === 0)
    return el("p", { class: "soft" }, "Its strength has not been measured.");
  const scores = strength.every(({ win }) => win === undefined || win === null);
  return el(
    "section",
    {},
    el("h2", {}, "How strong it is"),
    el(
      "table",
      { class: "agent-strength" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          [rules.seats === 1 ? "" : "against", scores ? "score" : "wins", "", "games"].map((word) =>
            el("th", { scope: "col" }, word),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        strength.map((row) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, row.opponent),
            el("td", { class: "number" }, scores ? score(row.score, rules) : percent(row.win)),
            el("td", {}, scores ? range(row, rules) : interval(row, rules.seats)),
            el("td", { class: "number soft" }, row.games.toLocaleString("en")),
          ),
        ),
      ),
    ),
    el("p", { class: "soft" }, measured(strength, rules, scores)),
  );
}

function range({ low, high }, rules) {
  return typeof low === "number" ? `${score(low, rules)} to ${score(high, rules)}` : null;
}

function score(value, { seats }) {
  return value.toFixed(seats === 1 ? 2 : 3);
}

function measured([first], { seats }, scores) {
  if (scores) return "The mean score of whole games, with a 95 % interval where it is known.";
  const fair = `equals would win ${percent(1 / seats)}, the thin mark`;
  return `Every deal was played from every seat; ${first.when}. Lines are 95 % intervals; ${fair}.`;
}

function interval({ win, low, high, opponent }, seats) {
  const at = (share) => 2 + 156 * share;
  return svg(
    "svg",
    {
      viewBox: "0 0 160 14",
      width: 160,
      height: 14,
      role: "img",
      class: "agent-interval",
      "aria-label": `between ${percent(low)} and ${percent(high)} against ${opponent}`,
    },
    svg("line", { x1: 2, x2: 158, y1: 7, y2: 7, class: "scale" }),
    svg("line", { x1: at(1 / seats), x2: at(1 / seats), y1: 1, y2: 13, class: "fair" }),
    svg("line", { x1: at(low), x2: at(high), y1: 7, y2: 7, class: "range" }),
    svg("circle", { cx: at(win), cy: 7, r: 4, class: "mean" }),
  );
}

// Nearly all is not all.
function percent(share) {
  if (share >= 0.9995 && share < 1) return `${Math.floor(10_000 * share) / 100} %`;
  return `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
}

function factList({ agent, rules, sparring }) {
  const flags = Object.entries(rules.flags).map(([name, value]) => `${name}=${value}`);
  const facts = [
    ["Run", agent.run],
    ["Checkpoint", agent.checkpoint],
    ["Learned by", agent.algo],
    ["Decisions it learned from", agent.decisions?.toLocaleString("en")],
    ["Minutes of training", agent.minutes?.toFixed(1)],
    ["Network", `${agent.kind}, ${agent.parameters.toLocaleString("en")} numbers`],
    ["Flags of the game", flags.join(" ") || "the usual ones"],
    ["Made by", `sparring ${sparring}`],
  ];
  return el(
    "section",
    {},
    el("h2", {}, "What it is"),
    el(
      "dl",
      { class: "agent-facts" },
      facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]),
    ),
  );
}
