// The league of a run: #/league/NAME. Ratings of all players, and who beats whom.

import { Board } from "/app/charts/board.js";
import { LineChart } from "/app/charts/line.js";
import { ask } from "/app/data.js";
import { el, replace } from "/app/dom.js";
import { sheetTable } from "/app/runs/facts.js";
import { skeleton } from "/app/runs/parts.js";
import { MISSING, isNumber, percent, runAddress, short, whole } from "/app/words.js";

const MAX_BOTS = 6;
const STRONGEST = 55; // percent of its color that a share of 1 has: numbers stay readable on it

export async function leaguePage(host, { path: [name = ""], signal }) {
  document.title = `League of ${name} · sparring`;
  const place = el("div", {}, skeleton(8, "row"));
  host.append(
    el(
      "div",
      { class: "page-head" },
      el("h1", {}, el("a", { class: "crumb", href: runAddress(name) }, `${name} / `), "League"),
    ),
    place,
  );
  const league = await ask(`/api/runs/${encodeURIComponent(name)}/league`, signal);
  replace(place, ladder(league), payoff(league.payoff, name), worth(league, signal));
}

function ladder({ players }) {
  const rated = players.filter(({ rating }) => isNumber(rating));
  const low = Math.min(...rated.map((player) => player.low));
  const high = Math.max(...rated.map((player) => player.high));
  const rows = players.map((player) =>
    el(
      "tr",
      { class: `role-${player.role}${player.removed ? " removed" : ""}` },
      el("th", { scope: "row" }, player.player, tagOf(player)),
      cell(isNumber(player.rating) ? rounded(player.rating) : MISSING),
      cell(intervalOf(player)),
      el("td", { class: "span-cell" }, rung(player, low, high)),
      cell(player.decisions === null ? MISSING : short(player.decisions)),
      [player.training, player.matches].flatMap((tally) => [
        cell(tally ? whole(tally.wins + tally.draws + tally.losses) : MISSING),
        cell(tally ? percent(points(tally)) : MISSING),
      ]),
    ),
  );
  const heads = ["Player", "Rating", "95 %", "", "Decisions"];
  heads.push("Trained on", "Points", "In matches", "Points");
  return [
    el("h2", {}, "Ladder"),
    sheetTable("Ladder", heads, rows, [0, 3]),
    el(
      "p",
      { class: "soft" },
      "Points: the learner's share against that player, a draw being half.",
    ),
  ];
}

function tagOf({ player, role, removed }) {
  const words = [role === "main" || role === player ? "" : role, removed ? "removed" : ""]
    .filter(Boolean)
    .join(", ");
  return words ? el("span", { class: "tag" }, words) : null;
}

function intervalOf({ low, high }) {
  if (!isNumber(low)) return MISSING;
  return low === high ? "given" : `${rounded(low)} – ${rounded(high)}`;
}

function rounded(value) {
  return String(Math.round(value) + 0); // no -0
}

// Where a rating lies between the lowest and the highest of all.
function rung({ rating, low, high }, least, most) {
  const bar = el("span", { class: "interval-bar wide", "aria-hidden": "true" });
  if (!isNumber(rating)) return bar;
  const place = (value) => (100 * (value - least)) / (most - least || 1);
  const range = el("i", { class: "range" });
  range.style.left = `${place(low)}%`;
  range.style.width = `${place(high) - place(low)}%`;
  const value = el("i", { class: "value" });
  value.style.left = `${place(rating)}%`;
  bar.append(range, value);
  return bar;
}

function points({ wins, draws, losses }) {
  const games = wins + draws + losses;
  return games ? (wins + draws / 2) / games : null;
}

// A matrix of shares; arrow keys move through it, and a line below describes the cell.
function payoff({ names, share, low, high }, run) {
  if (names.length < 2) return null;
  const status = el("p", { class: "status-line", role: "status" }, "Row against column.");
  const describe = (row, column) => {
    status.textContent = sentence(names[row], names[column], share[row][column], [
      low[row][column],
      high[row][column],
    ]);
  };
  const cellOf = (row, column) => {
    const value = share[row][column];
    const known = isNumber(value);
    const one = el(
      "td",
      {
        class: `heat${known ? "" : " unknown"}`,
        tabindex: row + column === 1 ? 0 : -1,
        "data-at": `${row} ${column}`,
        onpointerenter: () => describe(row, column),
        onfocus: () => describe(row, column),
      },
      known ? String(Math.round(100 * value)) : row === column ? "" : "·",
    );
    if (known) one.style.background = heat(value);
    return one;
  };
  const table = el(
    "table",
    { class: "payoff", role: "grid" },
    el("caption", { class: "out-of-sight" }, "Who beats whom, in percent"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("td", {}),
        names.map((name) => el("th", { scope: "col" }, el("span", {}, name))),
      ),
    ),
    el(
      "tbody",
      {},
      names.map((name, row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name),
          names.map((_, column) => cellOf(row, column)),
        ),
      ),
    ),
  );
  table.addEventListener("keydown", walk);
  return [
    el("h2", {}, "Who beats whom"),
    el("div", { class: "sheet" }, el("div", { class: "scroll" }, table), status),
    el(
      "p",
      { class: "soft" },
      "Games of the learner. Matches between snapshots: ",
      el("code", {}, `sparring league ${run} --matches 1000`),
    ),
  ];
}

function sentence(one, two, value, [low, high]) {
  if (one === two) return `${one} does not meet itself.`;
  if (!isNumber(value)) return `${one} and ${two} have not met.`;
  return `${one} wins ${percent(value)} (${percent(low)} – ${percent(high)}) against ${two}.`;
}

function heat(value) {
  const color = value >= 0.5 ? "var(--c0)" : "var(--c1)";
  const much = Math.round((2 * Math.abs(value - 0.5)) ** 0.7 * STRONGEST);
  return `color-mix(in oklab, ${color} ${much}%, var(--sheet))`;
}

function walk(event) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
    event.key
  ];
  const from = event.target.dataset.at?.split(" ").map(Number);
  if (!step || !from) return;
  event.preventDefault();
  const to = event.currentTarget.querySelector(
    `[data-at="${from[0] + step[0]} ${from[1] + step[1]}"]`,
  );
  if (!to) return;
  event.target.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

// Ratings of snapshots over the decisions at which they were taken; bots are horizontal lines.
function worth({ players }, signal) {
  const rated = players.filter(({ rating }) => isNumber(rating));
  const taken = rated.filter(({ decisions }) => isNumber(decisions));
  if (taken.length < 2) return null;
  const roles = [...new Set(taken.map(({ role }) => role))];
  const end = Math.max(...taken.map(({ decisions }) => decisions));
  const lines = roles.map((role, at) => {
    const mine = taken
      .filter((player) => player.role === role)
      .sort((a, b) => a.decisions - b.decisions);
    const column = (key) => mine.map((player) => player[key]);
    const read = () => ({
      x: column("decisions"),
      y: column("rating"),
      low: column("low"),
      high: column("high"),
    });
    return { name: roles.length > 1 ? `snapshots, ${role}` : "snapshots", color: at, read };
  });
  const bots = rated.filter(({ role }) => role === "bot").slice(0, MAX_BOTS);
  for (const [at, { player, rating }] of bots.entries()) {
    const read = () => ({ x: [0, end], y: [rating, rating] });
    lines.push({ name: player, color: (roles.length + at) % 8, dashed: true, thin: true, read });
  }
  const board = new Board({ by: "decisions", signal });
  const chart = new LineChart(
    { title: "Rating of the snapshots", series: lines, wide: true },
    board,
  );
  board.add(chart);
  return [el("h2", {}, "Over time"), chart.element];
}

function cell(text) {
  return el("td", { class: "number" }, text);
}
