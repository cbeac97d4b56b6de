// How a game looks and how a person moves in it. A game with a page of its own has
// `games/<name>/page.js` with
//
//   export const page = {
//     rules: ["A paragraph.", ...],          the rules, explained beside the table
//     realtime: 50,                           steps a second, of games that do not wait for anybody
//     make(host, session) -> view,
//   };
//
// and a view has
//
//   show(state, ask)           draws a position as `session.person` may see it; `ask` is null, or
//                              { legal, row } and the view calls session.choose(action)
//   tell(before, move, after)  optional: shows what happened, as a promise; move = {seats, actions}
//   control()                  of realtime games: the action of the person in this step
//   mark(action)               optional: points at an action (a hint)
//   close()                    optional: lets go of listeners
//
// A replay is shown by the same view with a session in which nobody is a person.

import { el, replace } from "/app/dom.js";

// Any game by its own text and the names of its actions.
export const plainPage = {
  rules: [],
  make(host, session) {
    const board = el("pre", { class: "plain-board" });
    const choices = el("div", { class: "plain-choices" });
    host.append(board, choices);
    return {
      show(state, ask) {
        board.textContent = state.text(session.person);
        const legal = ask ? ask.legal : [];
        replace(
          choices,
          legal.map((action) =>
            el(
              "button",
              { "data-action": action, onclick: () => session.choose(action) },
              session.engine.actionName(action),
            ),
          ),
        );
      },
    };
  },
};
