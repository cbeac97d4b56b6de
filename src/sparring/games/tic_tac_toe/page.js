// Tic-tac-toe in a browser.

import { el } from "/app/dom.js";

export const page = {
  rules: ["Three of yours in a row, in any direction, win. You may click or press 1 to 9."],
  make(host, session) {
    const squares = Array.from({ length: 9 }, (_, action) =>
      el("button", {
        class: "square",
        "data-action": action,
        "aria-label": `square ${action + 1}`,
        onclick: () => session.choose(action),
      }),
    );
    host.append(el("div", { class: "tic-tac-toe" }, squares));
    return {
      show(state, ask) {
        const [crosses, rings] = state.fields().stones;
        squares.forEach((square, at) => {
          square.textContent = (crosses >> at) & 1 ? "✕" : (rings >> at) & 1 ? "◯" : "";
          square.disabled = !ask?.legal.includes(at);
        });
      },
      mark(action) {
        squares[action].classList.add("hinted");
      },
    };
  },
};
