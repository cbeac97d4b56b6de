// Tic-tac-toe in a browser.

import { calm, el, replace, svg, wait } from "/app/dom.js";

const LINES = ["012", "345", "678", "036", "147", "258", "048", "246"].map((line) =>
  [...line].map(Number),
);
const MARKS = ["cross", "ring"];
const MOVE_MS = 220;

export const page = {
  rules: [
    "The two of you take squares in turn; seat 0 has the crosses and begins.",
    "Three of yours in a row win: across, down or diagonal. A full board without one is a draw.",
    "Click a square, or press 1 to 9: they lie as on a phone, 1 is the upper left.",
  ],
  turn: "click a square",
  make(host, session) {
    const squares = Array.from({ length: 9 }, (_, action) =>
      el("button", {
        class: "square",
        "data-action": action,
        onclick: () => session.choose(action),
      }),
    );
    const strike = svg("svg", { class: "strike", viewBox: "0 0 3 3", "aria-hidden": "true" });
    host.append(el("div", { class: "board" }, squares, strike));
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input, select, textarea")) return;
      if (/^[1-9]$/.test(event.key)) session.choose(Number(event.key) - 1);
    };
    document.addEventListener("keydown", onKey);
    return {
      show(state, ask) {
        const owners = ownersOf(state);
        squares.forEach((square, at) => drawSquare(square, owners[at], session, at, ask));
        replace(strike, strikeOf(owners));
      },
      async animate(before, move, after) {
        const owners = ownersOf(after);
        const [at] = move.actions;
        drawSquare(squares[at], owners[at], session, at, null);
        squares[at].classList.add("fresh");
        await wait(calm() ? 0 : MOVE_MS);
        squares[at].classList.remove("fresh");
      },
      mark(action) {
        squares[action].classList.add("hinted");
      },
      close: () => document.removeEventListener("keydown", onKey),
    };
  },
  result(state, session) {
    const winner = state.scores.indexOf(1);
    if (winner < 0) return "Board full: a draw";
    if (winner === session.person) return "Three in a row: you win";
    return `Three in a row: ${session.nameOf(winner)} wins`;
  },
};

// The seat whose mark is on each square, -1: empty.
function ownersOf(state) {
  const { stones } = state.fields();
  return Array.from({ length: 9 }, (_, at) => [0, 1].findIndex((s) => (stones[s] >> at) & 1));
}

function drawSquare(square, owner, session, at, ask) {
  const name = session.engine.actionName(at);
  const mark = owner < 0 ? "" : MARKS[owner];
  square.setAttribute("aria-label", mark ? `${name}: ${mark}` : name);
  square.disabled = !ask?.legal.includes(at);
  square.classList.remove("hinted");
  if (square.dataset.mark === mark) return;
  square.dataset.mark = mark;
  replace(square, mark ? drawMark(owner) : []);
}

function drawMark(owner) {
  const shape =
    owner === 0
      ? svg("path", { d: "M26 26 74 74M74 26 26 74", pathLength: 100 })
      : svg("circle", { cx: 50, cy: 50, r: 27, pathLength: 100 });
  return svg("svg", { class: MARKS[owner], viewBox: "0 0 100 100", "aria-hidden": "true" }, shape);
}

function strikeOf(owners) {
  const won = LINES.filter(
    ([a, b, c]) => owners[a] >= 0 && owners[a] === owners[b] && owners[a] === owners[c],
  );
  return won.map(([first, , last]) =>
    svg("line", {
      x1: (first % 3) + 0.5,
      y1: Math.floor(first / 3) + 0.5,
      x2: (last % 3) + 0.5,
      y2: Math.floor(last / 3) + 0.5,
    }),
  );
}
