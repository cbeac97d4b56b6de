// An agent's view of a decision: action probabilities, value, observation; with a search also visits,
// values of actions and the main line.

import { el, replace } from "/app/dom.js";
import { widen } from "/app/engine/engine.js";
import { whyNoSearch } from "/app/engine/search.js";
import { panel } from "/app/play/panels.js";
import { foundTable, lineOf } from "/app/play/found.js";
import { budgetOptions } from "/app/play/lineup.js";
import { Searching } from "/app/play/thinker.js";
import { actionName } from "/app/play/views.js";

const MAX_ACTIONS = 8;
const MAX_FEATURES = 48; // of a block

const LEAD =
  "What it would play and how surely, what it expects from there on, and the numbers that it sees.";

export class Mind {
  // `find(seat, peek)` returns the decision to show, { state, row, played }, or null; seat null:
  // any seat. `commentators` has `names`, and `network(name)` that loads one.
  constructor(game, session, { commentators = null, find = lastDecision, peeks = true } = {}) {
    Object.assign(this, { game, session, commentators, find, peeks });
    this.seated = session.players.flatMap((player, seat) =>
      player.kind === "agent" ? [{ ...player, seat }] : [],
    );
    this.chosen = this.seated[0] ?? null;
    this.decision = null; // that is shown
    this.looking = null; // the search for it
    this.build();
    this.offerSearch();
  }

  build() {
    this.who = el("select", { "aria-label": "Whose mind", onchange: () => this.choose() });
    this.depth = el("select", { "aria-label": "How far it searches", onchange: () => this.show() });
    this.peek = el("input", { type: "checkbox", onchange: () => this.show() });
    this.where = el("p", { class: "mind-where soft" });
    this.answer = el("div", { class: "mind-answer" });
    this.seen = el("div", { class: "mind-seen" });
    this.warning = el(
      "p",
      { class: "mind-spoiler", hidden: true },
      "A spoiler: this is what another player knows, hidden cards included.",
    );
    this.fill();
    this.element = panel("An agent's mind: how it sees the game", "mind", [
      el("p", { class: "soft" }, LEAD),
      el(
        "div",
        { class: "mind-choice" },
        this.who,
        this.depth,
        this.peeks ? this.peekLabel() : null,
      ),
      this.warning,
      this.where,
      this.answer,
      this.seen,
    ]);
    this.element.addEventListener("toggle", () => this.show());
  }

  peekLabel() {
    const about = "also where it is to move now, before it moves";
    return el("label", { title: about }, this.peek, "peek");
  }

  fill() {
    const names = this.commentators?.names ?? [];
    const sitting = this.seated.map(({ name, seat }, at) =>
      el("option", { value: `seat ${at}` }, `${name}, seat ${seat}`),
    );
    const others = names.map((name) => el("option", { value: `name ${name}` }, name));
    replace(
      this.who,
      sitting.length ? sitting : el("option", { value: "" }, "choose a commentator"),
      others.length ? el("optgroup", { label: "as a commentator" }, others) : null,
    );
    this.who.disabled = sitting.length + others.length === 0;
  }

  async choose() {
    const [, kind, name] = /^(\w*) ?(.*)$/.exec(this.who.value);
    if (kind === "name") this.chosen = await this.commentator(name);
    else this.chosen = kind === "seat" ? this.seated[Number(name)] : null;
    this.offerSearch();
    this.show();
  }

  async commentator(name) {
    try {
      return { name, network: await this.commentators.network(name), seat: null };
    } catch (wrong) {
      return { name, wrong: wrong.message };
    }
  }

  // How far the chosen agent looks ahead: as far as it does at the table, unless told otherwise.
  offerSearch() {
    const network = this.chosen?.network;
    this.depth.hidden = !network || whyNoSearch(this.game.rules, network.about) !== "";
    const own = this.depth.hidden ? "" : (network.budget ?? "");
    replace(this.depth, budgetOptions(this.game.rules, own, ["", "no search"]));
  }

  toggle() {
    this.element.open = !this.element.open;
    if (this.element.open) this.element.scrollIntoView({ block: "nearest" });
  }

  show() {
    const before = this.looking;
    if (!this.element.open) before?.cancel();
    if (!this.element.open || this.session.closed) return;
    this.decision?.state.free();
    if (this.coming) this.coming.ready.then(() => this.show()).catch(() => {}); // the table tells
    this.decision =
      this.chosen?.network && !this.coming
        ? this.find(this.session, this.chosen.seat, this.peek.checked || !this.peeks)
        : null;
    this.looking = null;
    this.draw();
    if (this.decision && this.depth.value) this.look();
    before?.cancel(); // after the new one has begun: a search for the same goes on
  }

  // The chosen agent's network while it is still being fetched.
  get coming() {
    const network = this.chosen?.network?.network ?? this.chosen?.network;
    return network?.handle === 0 ? network : null;
  }

  // Searches in the decision that is shown.
  async look() {
    const { network, temperature = 0 } = this.chosen;
    const looking = new Searching(network.network ?? network, this.depth.value);
    const noise = temperature > 0 && network.budget === this.depth.value;
    const { state, row } = this.decision;
    this.looking = looking;
    const progress = (found) => this.looking === looking && this.draw(found);
    try {
      const options = { noise, seed: this.session.seed, progress };
      const found = await looking.consider(state, row, options);
      if (found) progress(found);
    } catch (wrong) {
      this.where.textContent = wrong.message;
    }
  }

  draw(found = null) {
    this.warning.hidden = true;
    if (!this.decision) {
      this.where.textContent = this.silence();
      replace(this.answer);
      replace(this.seen);
      return;
    }
    const { state, row, played } = this.decision;
    const { session, game } = this;
    const seat = state.seat(row);
    this.warning.hidden = !(game.rules.hides && seat !== session.person && session.person >= 0);
    const at = seat === session.person ? "you were" : `${session.nameOf(seat)} (seat ${seat}) was`;
    this.where.textContent =
      played === null ? "The decision that is to be made now." : `When ${at} to decide:`;
    const answer = this.chosen.network.answer(state, row);
    const searched = this.depth.value !== "" && !this.depth.hidden;
    replace(
      this.answer,
      valueLine(answer, found),
      searched ? lineOf(found, this) : null,
      found && !answer.mean ? foundTable(found, answer, this) : this.bars(answer, state, played),
    );
    if (found) return; // what it sees is there already
    replace(this.seen, blocksOf(state.observe(seat), game.rules));
  }

  close() {
    this.looking?.cancel();
    this.decision?.state.free();
    this.looking = this.decision = null;
  }

  silence() {
    if (this.chosen?.wrong) return this.chosen.wrong;
    if (this.coming) return `${this.chosen.name} is still being fetched.`;
    if (this.chosen) return `${this.chosen.name} has not decided anything yet.`;
    const names = this.commentators?.names ?? [];
    const none = "Bots have no network: they follow written rules.";
    return names.length
      ? `${none} Choose an agent that comments on the game.`
      : `${none} An agent that was trained for this game would have one.`;
  }

  bars(answer, state, played) {
    if (answer.mean) return boxBars(answer);
    const { game, session } = this;
    const ranked = Array.from(answer.probabilities, (share, action) => ({ share, action }))
      .filter(({ share }) => share > 0)
      .toSorted((a, b) => b.share - a.share);
    const shown = ranked.slice(0, MAX_ACTIONS).filter(({ share }, at) => share > 0.0005 || at < 3);
    const mine = ranked.find(({ action }) => action === played);
    if (mine && !shown.includes(mine)) shown.push(mine);
    const rest = ranked.length - shown.length;
    return el(
      "ol",
      { class: "mind-bars" },
      shown.map(({ share, action }) =>
        bar(actionName(game.page, state, action, session), share, action === played),
      ),
      rest > 0 ? el("li", { class: "soft" }, `and ${rest} more`) : null,
    );
  }
}

// The last decision of a seat; with `peek` the one that it has to make now.
export function lastDecision(session, seat, peek) {
  const wanted = (at) => at >= 0 && (seat === null || at === seat);
  const rows = Array.from({ length: session.rules.rows }, (_, row) => row);
  if (peek) {
    const row = rows.find((at) => wanted(session.state.seat(at)));
    if (row !== undefined) return { state: session.state.clone(), row, played: null };
  }
  for (let step = session.moves.length - 1; step >= 0; --step) {
    const state = session.positionAt(step);
    const row = rows.find((at) => wanted(state.seat(at)));
    if (row !== undefined) return { state, row, played: session.moves[step][row] };
    state.free();
  }
  return null;
}

// What the network expects; after a search, what the search does.
function valueLine({ value }, found) {
  if (value === null || value === undefined) return null;
  return el(
    "p",
    { class: "mind-value" },
    "expects to be paid ",
    el("strong", {}, (found?.value ?? value).toFixed(3)),
    " from here on",
    found ? `, without the search ${value.toFixed(3)}` : null,
  );
}

function bar(name, share, played) {
  const fill = el("span", { class: "mind-fill" });
  fill.style.width = `${(100 * share).toFixed(1)}%`;
  return el(
    "li",
    { class: played ? "played" : "" },
    el("span", { class: "mind-name" }, name, played ? el("small", {}, " played") : null),
    el("span", { class: "mind-share number" }, `${(100 * share).toFixed(1)} %`),
    el("span", { class: "mind-track", "aria-hidden": "true" }, fill),
  );
}

// Continuous actions: what it means to do and how much it varies.
function boxBars({ mean, spread }) {
  return el(
    "ol",
    { class: "mind-bars" },
    mean.map((middle, at) =>
      el(
        "li",
        {},
        el("span", { class: "mind-name" }, `action ${at}`),
        el(
          "span",
          { class: "mind-share number" },
          `${middle.toFixed(2)} ± ${spread[at].toFixed(2)}`,
        ),
      ),
    ),
  );
}

// The nonzero features of an observation by block.
export function blocksOf(row, rules) {
  const seen = widen(row, rules);
  const shown = rules.blocks.flatMap((block) => {
    const parts = featuresOf(block, seen, rules);
    if (parts.length === 0) return [];
    const rest = parts.length - MAX_FEATURES;
    return [
      el("dt", {}, block.name),
      el(
        "dd",
        {},
        parts.slice(0, MAX_FEATURES).map((part) => el("span", { class: "feature" }, part)),
        rest > 0 ? ` and ${rest} more` : null,
      ),
    ];
  });
  return [el("h3", {}, "What it sees"), el("dl", { class: "mind-blocks" }, shown)];
}

function featuresOf({ first, rows, columns }, seen, rules) {
  const parts = [];
  for (let at = 0; at < rows; ++at) {
    columns.forEach((column, c) => {
      const feature = first + at * columns.length + c;
      if (!seen[feature]) return;
      const value = shortest(seen[feature], divisorOf(feature, rules));
      parts.push([rows > 1 ? `${at}:` : "", column, value].filter(Boolean).join(" "));
    });
  }
  return parts;
}

function divisorOf(feature, rules) {
  const run = rules.runs.find(([first, count]) => feature >= first && feature < first + count);
  return run ? run[4] : 1;
}

// Counts as they are, "3 of 13"; what is only there or not has no number.
function shortest(value, divisor) {
  if (value === 1 && divisor === 1) return "";
  if (divisor !== 1) return `${Number((value * divisor).toPrecision(6))} of ${divisor}`;
  return String(Number(value.toPrecision(3)));
}
