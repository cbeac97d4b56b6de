// Connect Four in a browser.

import { calm, el, wait } from "/app/dom.js";

const COLUMNS = 7;
const HEIGHT = 6;
const STRIDE = BigInt(HEIGHT + 1);
const COLORS = ["first", "second"];
const NAMES = ["red", "yellow"];
const DIRECTIONS = [
  [1, 0],
  [0, 1],
  [1, 1],
  [1, -1],
];
const MOVE_MS = 250;

export const page = {
  rules: [
    "The two of you drop stones in turn; seat 0 is red and begins.",
    "A stone falls to the lowest empty cell of its column.",
    "Four of yours in a row win: across, up or diagonal. A full board without them is a draw.",
    "Click a column, or press 1 to 7.",
  ],
  turn: "click a column",
  make(host, session) {
    const cells = Array.from({ length: COLUMNS }, () =>
      Array.from({ length: HEIGHT }, () => el("span", { class: "cell" })),
    );
    const columns = cells.map((inside, action) =>
      el(
        "button",
        { class: "column", "data-action": action, onclick: () => session.choose(action) },
        inside,
      ),
    );
    host.append(el("div", { class: "board" }, columns));
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input, select, textarea")) return;
      if (/^[1-7]$/.test(event.key)) session.choose(Number(event.key) - 1);
    };
    document.addEventListener("keydown", onKey);
    const draw = (state, ask) => {
      const owners = ownersOf(state);
      const won = fourInARow(owners);
      columns.forEach((column, at) => {
        column.disabled = !ask?.legal.includes(at);
        column.classList.remove("hinted");
        column.setAttribute("aria-label", labelOf(session.engine.actionName(at), owners[at]));
        cells[at].forEach((cell, row) => {
          const owner = owners[at][row];
          cell.className = owner < 0 ? "cell" : `cell ${COLORS[owner]}`;
          cell.classList.toggle("won", won.has(`${at} ${row}`));
        });
      });
    };
    return {
      show: draw,
      async animate(before, move, after) {
        const [at] = move.actions;
        const row = ownersOf(before)[at].indexOf(-1);
        draw(after, null);
        const cell = cells[at][row];
        cell.style.setProperty("--fall", HEIGHT - row);
        cell.classList.add("fresh");
        await wait(calm() ? 0 : MOVE_MS);
        cell.classList.remove("fresh");
      },
      mark(action) {
        columns[action].classList.add("hinted");
      },
      close: () => document.removeEventListener("keydown", onKey),
    };
  },
  result(state, session) {
    const winner = state.scores.indexOf(1);
    if (winner < 0) return "Board full: a draw";
    if (winner === session.person) return "Four in a row: you win";
    return `Four in a row: ${session.nameOf(winner)} wins`;
  },
};

// The owner of every cell by column and row, -1: empty.
function ownersOf(state) {
  const stones = [...state.fields().stones].map(BigInt);
  return Array.from({ length: COLUMNS }, (_, column) =>
    Array.from({ length: HEIGHT }, (_, row) =>
      stones.findIndex((bits) => (bits >> (BigInt(column) * STRIDE + BigInt(row))) & 1n),
    ),
  );
}

function labelOf(name, column) {
  const inside = column.filter((owner) => owner >= 0).map((owner) => NAMES[owner]);
  return inside.length ? `${name}, from below: ${inside.join(", ")}` : `${name}, empty`;
}

// The cells of every four in a row, as "column row".
function fourInARow(owners) {
  const found = new Set();
  for (let column = 0; column < COLUMNS; column++)
    for (let row = 0; row < HEIGHT; row++)
      for (const [right, up] of DIRECTIONS) {
        const line = [0, 1, 2, 3].map((step) => [column + step * right, row + step * up]);
        const inside = line.map(([c, r]) => owners[c]?.[r] ?? -1);
        if (inside[0] >= 0 && inside.every((owner) => owner === inside[0]))
          line.forEach(([c, r]) => found.add(`${c} ${r}`));
      }
  return found;
}
