// The result of a search, as the panel of an agent's mind shows it.

import { el } from "/app/dom.js";
import { simulationsWord } from "/app/play/lineup.js";
import { actionName } from "/app/play/views.js";

const MAX_ACTIONS = 8;
const MAX_LINE = 10; // moves

// How much was searched, and the moves that are expected to follow; `mind` has the decision.
export function lineOf(found, { game, session, decision, chosen }) {
  if (!found) return el("p", { class: "mind-line soft" }, "searching …");
  const { ms = 0 } = found;
  const names = mainLine(found, decision, game, session);
  const made = amount(found, game.rules, chosen.network.about);
  return el(
    "p",
    { class: "mind-line" },
    el("span", { class: "soft" }, `${made} in ${(ms / 1000).toFixed(2)} s. `),
    names.length > 1 ? [el("span", { class: "soft" }, "Main line: "), names.join(" · ")] : null,
  );
}

// Every action that is tried is played out once in each world, the others not at all.
function amount({ simulations, visits }, rules, about) {
  const made = `${simulations} ${simulationsWord(rules)}`;
  if (!rules.search.worlds || simulations === 0) return made;
  const worlds = Math.max(...visits);
  const by = about.belief ? "drawn by what it believes" : "all equally likely";
  const tried = visits.filter((count) => count > 0).length;
  return `${made}: ${tried} actions in ${worlds} ${worlds === 1 ? "world" : "worlds"} each, ${by},`;
}

// Names of the actions, each in the position that it is played in. Where several players move at
// once, or actions are continuous, only the first is known.
function mainLine({ line }, { state }, { rules, page }, session) {
  if (rules.rows > 1 || rules.box) return [];
  const position = state.clone();
  const names = [];
  for (const action of line.slice(0, MAX_LINE)) {
    if (position.over || !position.legal().includes(action)) break; // chance went another way
    names.push(actionName(page, position, action, session));
    position.apply(action);
  }
  position.free();
  return names;
}

// How often each action was tried (in worlds, where all are tried alike: how probable the search
// makes it), what it is worth, what the network thought of it. The first number ranks them.
export function foundTable(found, { probabilities }, { game, session, decision }) {
  const { state, played } = decision;
  const { worlds } = game.rules.search;
  const ranked = found.visits
    .map((visits, action) => ({ action, visits, prior: probabilities[action] }))
    .filter(({ visits, prior }) => visits > 0 || prior > 0)
    .map((tried) => ({ ...tried, rank: worlds ? found.policy[tried.action] : tried.visits }))
    .toSorted((a, b) => b.rank - a.rank || b.prior - a.prior);
  const shown = ranked.slice(0, MAX_ACTIONS);
  const mine = ranked.find(({ action }) => action === played);
  if (mine && !shown.includes(mine)) shown.push(mine);
  const most = Math.max(worlds ? 1e-9 : 1, ranked[0]?.rank ?? 1);
  const row = ({ action, visits, prior, rank }) => {
    const fill = el("span", { class: "mind-fill" });
    fill.style.width = `${((100 * rank) / most).toFixed(1)}%`;
    const name = actionName(game.page, state, action, session);
    return el(
      "tr",
      { class: action === played ? "played" : "" },
      el(
        "th",
        { scope: "row" },
        name,
        action === played ? el("small", {}, " played") : null,
        el("span", { class: "mind-track", "aria-hidden": "true" }, fill),
      ),
      el("td", { class: "number" }, worlds ? percent(rank) : String(visits)),
      el("td", { class: "number" }, visits > 0 ? found.q[action].toFixed(3) : "–"),
      el("td", { class: "number soft" }, percent(prior)),
    );
  };
  const rest = ranked.length - shown.length;
  const columns = ["action", worlds ? "search" : "visits", "value", "network"];
  return [
    el(
      "table",
      { class: "mind-found" },
      el("thead", {}, el("tr", {}, columns.map(columnHead))),
      el("tbody", {}, shown.map(row)),
    ),
    rest > 0 ? el("p", { class: "soft" }, `and ${rest} more`) : null,
  ];
}

function columnHead(name) {
  return el("th", { scope: "col" }, name);
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}
