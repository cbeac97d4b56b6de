// The result of a search, as the panel of an agent's mind shows it.

import { el } from "/app/dom.js";
import { actionName } from "/app/play/views.js";

const MAX_ACTIONS = 8;
const MAX_LINE = 10; // moves

// How much was searched, and the moves that are expected to follow; `mind` has the decision.
export function lineOf(found, { game, session, decision }) {
  if (!found) return el("p", { class: "mind-line soft" }, "searching …");
  const { simulations, ms = 0 } = found;
  const names = mainLine(found, decision, game, session);
  return el(
    "p",
    { class: "mind-line" },
    el("span", { class: "soft" }, `${simulations} simulations in ${(ms / 1000).toFixed(2)} s. `),
    names.length > 1 ? [el("span", { class: "soft" }, "Main line: "), names.join(" · ")] : null,
  );
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

// Actions by visits: how often each was tried, what it is worth, what the network thought of it.
export function foundTable(found, { probabilities }, { game, session, decision }) {
  const { state, played } = decision;
  const ranked = found.visits
    .map((visits, action) => ({ action, visits, prior: probabilities[action] }))
    .filter(({ visits, prior }) => visits > 0 || prior > 0)
    .toSorted((a, b) => b.visits - a.visits || b.prior - a.prior);
  const shown = ranked.slice(0, MAX_ACTIONS);
  const mine = ranked.find(({ action }) => action === played);
  if (mine && !shown.includes(mine)) shown.push(mine);
  const most = Math.max(1, ranked[0]?.visits ?? 1);
  const row = ({ action, visits, prior }) => {
    const fill = el("span", { class: "mind-fill" });
    fill.style.width = `${((100 * visits) / most).toFixed(1)}%`;
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
      el("td", { class: "number" }, String(visits)),
      el("td", { class: "number" }, visits > 0 ? found.q[action].toFixed(3) : "–"),
      el("td", { class: "number soft" }, `${(100 * prior).toFixed(1)} %`),
    );
  };
  const rest = ranked.length - shown.length;
  return [
    el(
      "table",
      { class: "mind-found" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["action", "visits", "value", "network"].map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      el("tbody", {}, shown.map(row)),
    ),
    rest > 0 ? el("p", { class: "soft" }, `and ${rest} more`) : null,
  ];
}
