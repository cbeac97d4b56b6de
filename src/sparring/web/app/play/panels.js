// Pieces that stand around a table.

import { el, replace } from "/app/dom.js";
import { shortNumber } from "/app/play/views.js";

// Something that can be opened and closed.
export function panel(title, name, content, open = false) {
  return el(
    "details",
    { class: `panel panel-${name}`, open },
    el("summary", {}, title),
    el("div", { class: "panel-content" }, content),
  );
}

// Who sits where, what they have, and whose turn it is.
export function plates(session, page) {
  const hidden = page.plates === false;
  const element = el("ul", { class: "plates", "aria-label": "Players", hidden });
  const all = session.players.map((player, seat) => {
    const score = el("span", { class: "plate-score" });
    const turn = el("span", { class: "out-of-sight" });
    const item = el(
      "li",
      { class: `plate kind-${player.kind}`, "data-seat": seat },
      el("span", { class: "plate-seat", "aria-hidden": "true" }, String(seat)),
      el("span", { class: "plate-name", title: player.name }, player.name, turn),
      score,
    );
    return { item, score, turn };
  });
  replace(
    element,
    all.map(({ item }) => item),
  );
  return {
    element,
    show(state) {
      const rows = Array.from({ length: session.rules.rows }, (_, row) => state.seat(row));
      all.forEach(({ item, score, turn }, seat) => {
        const now = rows.includes(seat);
        item.classList.toggle("to-move", now);
        turn.textContent = now ? " is to move" : "";
        score.textContent = page.score?.(state, seat) ?? shortNumber(state.scores[seat]);
      });
    },
  };
}

// Keys and what they do.
export function keyList(keys) {
  return el(
    "dl",
    { class: "key-list" },
    keys.flatMap(([key, what]) => [
      el(
        "dt",
        {},
        key.split(" ").map((one) => el("kbd", {}, one)),
      ),
      el("dd", {}, what),
    ]),
  );
}
