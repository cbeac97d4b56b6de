// Tabs of a run besides its curves: one function per tab, from facts to elements.

import { el, replace } from "/app/dom.js";
import {
  MISSING,
  ago,
  bytes,
  isNumber,
  minutes,
  percent,
  short,
  shown,
  titled,
  typed,
  whole,
} from "/app/words.js";

const ALONE = "alone";

export function resultsTab({ results, overview }) {
  const table = results?.results;
  if (!table) return nothing("Measured when the training ends: every opponent, with intervals.");
  const alone = ALONE in table;
  const heads = alone
    ? ["", "Score", "95 %", "Games"]
    : ["Opponent", "Wins", "95 %", "", "Won", "Drawn", "Lost", "Score", "Margin", "Place"];
  const rows = Object.entries(table).map(([name, met]) =>
    alone ? aloneRow(met) : opponentRow(name, met),
  );
  const summary = [
    `Checkpoint ${results.checkpoint}, after ${short(results.decisions)} decisions`,
    `ended: ${results.ended ?? overview.state}`,
  ];
  return el(
    "div",
    {},
    el("p", { class: "soft" }, summary.join(" · ")),
    sheetTable("Results against every opponent", heads, rows, [0, 3]),
    alone ? null : statisticsTable(table),
  );
}

function opponentRow(name, met) {
  const cells = [
    percent(met.win),
    `${(100 * met.low).toFixed(1)} – ${(100 * met.high).toFixed(1)}`,
  ];
  const rest = [met.wins, met.ties, met.losses].map(whole);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name),
    cells.map(number),
    el("td", { class: "span-cell" }, intervalBar(met)),
    [
      ...rest,
      shown(met.score),
      shown(met.margin),
      isNumber(met.rank) ? met.rank.toFixed(2) : MISSING,
    ].map(number),
  );
}

function aloneRow(met) {
  const interval = `${shown(met.score_low)} – ${shown(met.score_high)}`;
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, "alone"),
    [shown(met.score), interval, whole(met.games)].map(number),
  );
}

// Where a share of wins lies between none and all, its interval, and what an equal would win.
export function intervalBar({ win, low, high, parity }) {
  const bar = el("span", { class: "interval-bar", "aria-hidden": "true" });
  const put = (kind, from, to) => {
    const part = el("i", { class: kind });
    part.style.left = `${100 * from}%`;
    part.style.width = `${Math.max(0, 100 * (to - from))}%`;
    bar.append(part);
  };
  if (isNumber(parity)) put("parity", parity, parity);
  if (isNumber(low) && isNumber(high)) put("range", low, high);
  if (isNumber(win)) put("value", win, win);
  return bar;
}

function statisticsTable(table) {
  const names = Object.keys(Object.values(table)[0]?.stats ?? {}).filter(
    (name) => !/\d$/.test(name),
  );
  if (!names.length) return null;
  const rows = names.map((name) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, titled(name)),
      Object.values(table).map((met) => number(shown(met.stats?.[name]))),
    ),
  );
  return [
    el("h2", {}, "How it played"),
    sheetTable("Statistics of its games", ["Statistic", ...Object.keys(table)], rows, [0]),
  ];
}

export function checkpointsTab(facts) {
  const { checkpoints, overview } = facts;
  if (!checkpoints.length) return nothing("The first checkpoint comes after a minute of training.");
  const heads = ["Checkpoint", "", "Decisions", "Strength", "Size", "Saved"];
  const rows = checkpoints.map((one) => {
    const player = `${overview.name}/${one.number}`;
    const weights = `/api/network?player=${encodeURIComponent(player)}`;
    return el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        one.number,
        one.best ? el("span", { class: "tag" }, "best") : null,
      ),
      el(
        "td",
        { class: "actions" },
        playLink(facts, player, "play"),
        el(
          "a",
          { href: weights, download: `${overview.name}-${one.number}.bin` },
          "download weights",
        ),
      ),
      number(short(one.decisions)),
      number(overview.measure === "score" ? shown(one.strength) : percent(one.strength)),
      number(bytes(one.size)),
      number(ago(new Date(1000 * one.seconds).toISOString())),
    );
  });
  return sheetTable("Checkpoints", heads, rows, [0, 1]);
}

// A link to a game against an agent; a gray text with the reason where pages cannot play the game.
export function playLink({ overview, settings, unplayable }, player, text, kind = "") {
  const props = { class: kind || null };
  if (unplayable) {
    return el("a", { ...props, role: "link", "aria-disabled": true, title: unplayable }, text);
  }
  return el("a", { ...props, href: playAddress(overview, settings, player) }, text);
}

// The address of a game against an agent, by the rules that it learned.
function playAddress({ game }, settings, player) {
  const query = new URLSearchParams({ against: player });
  const flags = settings.find(({ name }) => name === "set")?.value ?? [];
  for (const flag of flags) query.append("set", flag);
  return `#/play/${encodeURIComponent(game)}?${query}`;
}

// Settings that differ from the defaults come first.
export function settingsTab({ settings }) {
  const rows = settings
    .toSorted((a, b) => Number(b.changed) - Number(a.changed))
    .map((one) => ({
      text: `${one.name} ${typed(one.value)} ${one.help}`.toLowerCase(),
      row: settingRow(one),
    }));
  const count = el("span", { class: "soft", role: "status" });
  const body = el("tbody", {});
  const sift = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fit = rows.filter(({ text }) => words.every((word) => text.includes(word)));
    replace(
      body,
      fit.map(({ row }) => row),
    );
    const changed = settings.filter((one) => one.changed).length;
    count.textContent = words.length ? `${fit.length} found` : `${changed} changed from the usual`;
  };
  const search = el("input", {
    type: "search",
    placeholder: "Find a setting",
    "aria-label": "Find a setting",
    oninput: sift,
  });
  sift();
  const heads = el("tr", {}, ["Setting", "Value", "Usually", "What it does"].map(columnHead));
  const table = el("table", { class: "settings" }, el("thead", {}, heads), body);
  return el(
    "div",
    {},
    el("div", { class: "chart-tools" }, search, count),
    el("div", { class: "sheet flush" }, el("div", { class: "scroll" }, table)),
  );
}

function settingRow({ name, value, default: usual, changed, help }) {
  return el(
    "tr",
    { class: changed ? "changed" : "" },
    el("th", { scope: "row" }, el("code", {}, name)),
    el("td", {}, el("code", {}, typed(value))),
    el("td", { class: "soft" }, changed ? el("code", {}, typed(usual)) : ""),
    el("td", { class: "soft help" }, help),
  );
}

// Events beside training, newest first.
export function eventsTab({ events, phases }) {
  const begun = phases.filter(({ began }) => began);
  const terms = begun.map(({ name, began, terms: all }) => ({
    update: began.update,
    seconds: began.seconds,
    event: "phase",
    name,
    terms: all,
  }));
  const all = [...events.filter(({ event }) => event !== "phase"), ...terms];
  if (!all.length) return nothing("No events yet besides training.");
  all.sort((a, b) => a.update - b.update).reverse();
  return el(
    "ol",
    { class: "timeline sheet" },
    all.map((event) =>
      el(
        "li",
        { class: kindOf(event) },
        el("span", { class: "when number" }, `update ${whole(event.update)}`),
        el(
          "span",
          { class: "when soft number" },
          isNumber(event.seconds) ? minutes(event.seconds / 60) : "",
        ),
        el("span", {}, sentence(event)),
      ),
    ),
  );
}

function kindOf({ event }) {
  if (["diverged", "failed", "lost"].includes(event)) return "bad";
  if (event === "best" || event === "target reached") return "good";
  return event === "phase" ? "phase" : "";
}

function sentence({ event, ...facts }) {
  const known = {
    best: () => `New best: mean ${shown(facts.strength)}, checkpoint ${facts.checkpoint}`,
    planned: () => `The schedules now assume ${whole(facts.total_updates)} updates`,
    ended: () => `Ended: ${facts.why}`,
    init: () => `Began with trained weights: ${facts.summary}`,
    phase: () => `Phase ${facts.name} began${termsText(facts.terms)}`,
  };
  if (event in known) return known[event]();
  const rest = Object.entries(facts).filter(([key]) => key !== "update" && key !== "seconds");
  const details = rest.map(([key, value]) => `${key.replaceAll("_", " ")} ${typed(value)}`);
  return `${titled(String(event))}${details.length ? `: ${details.join(", ")}` : ""}`;
}

function termsText(terms) {
  const details = Object.entries(terms ?? {}).filter(([key]) => key !== "name");
  return details.length
    ? `: ${details.map(([key, value]) => `${key} ${typed(value)}`).join(", ")}`
    : "";
}

export function machineTab({ machine, network, profile, overview, origin }) {
  const facts = Object.entries(machine ?? {}).filter(([, value]) => typed(value) !== "none");
  return el(
    "div",
    { class: "two" },
    el(
      "section",
      { class: "sheet" },
      el("h2", {}, "What limits it"),
      profile ? verdicts(profile) : noProfile(overview.name),
    ),
    el(
      "section",
      { class: "sheet" },
      el("h2", {}, "Machine"),
      el(
        "dl",
        {},
        facts.flatMap(([key, value]) => [el("dt", {}, titled(key)), el("dd", {}, typed(value))]),
      ),
      origin ? el("p", { class: "soft" }, `It began from ${typed(origin)}.`) : null,
    ),
    network ? networkSheet(network) : null,
  );
}

// The compute path of the network in one line, "" if unknown.
export function pathText({ network }) {
  return typeof network?.path === "string" ? network.path : "";
}

// How large the network is, layer by layer.
function networkSheet({ parameters, macs, layers }) {
  const products = isNumber(macs) ? `${whole(macs)} multiply-accumulates` : "unknown work";
  const rows = (layers ?? []).map(({ name, kind, shape, parameters: weights, macs: work }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      [kind, (shape ?? []).join(" × ")].map((text) => el("td", {}, text)),
      [weights, work].map((count) => number(whole(count))),
    ),
  );
  return el(
    "section",
    { class: "sheet wide" },
    el("h2", {}, "Network"),
    el("p", { class: "soft" }, `${whole(parameters)} parameters, ${products} per decision.`),
    sheetTable("Layers", ["Layer", "Kind", "Shape", "Parameters", "MACs"], rows, [0, 1, 2]),
  );
}

function verdicts({ verdicts: found, decisions_per_s: pace }) {
  return [
    el("p", { class: "soft" }, `Profiled at ${short(pace)} decisions/s.`),
    (found ?? []).map(({ cause, text, gain, do: typedWord }) =>
      el(
        "div",
        { class: "verdict" },
        el(
          "h3",
          {},
          titled(cause),
          isNumber(gain) ? el("span", { class: "tag" }, `+${percent(gain, 0)}`) : null,
        ),
        el("p", {}, text),
        typedWord ? el("pre", {}, el("code", {}, typedWord)) : null,
      ),
    ),
  ];
}

function noProfile(name) {
  return [
    el(
      "p",
      { class: "soft" },
      "Not profiled yet. This command shows where the time goes and what to do:",
    ),
    el("pre", {}, el("code", {}, `sparring profile ${name}`)),
  ];
}

function nothing(text) {
  return el("p", { class: "empty soft" }, text);
}

function number(text) {
  return el("td", { class: "number" }, text);
}

function columnHead(text) {
  return el("th", { scope: "col" }, text);
}

// A table on a sheet, of rows that are elements; columns are numbers but for those at `words`.
export function sheetTable(caption, heads, rows, words) {
  const head = heads.map((text, at) =>
    el("th", { scope: "col", class: words.includes(at) ? "" : "number" }, text),
  );
  const table = el(
    "table",
    {},
    el("caption", { class: "out-of-sight" }, caption),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, rows),
  );
  return el("div", { class: "sheet flush" }, el("div", { class: "scroll" }, table));
}
