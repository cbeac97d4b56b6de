// How a game looks and how a person moves in it. A game with a custom page has
// `games/<name>/page.css` and `games/<name>/page.js` with
//
//   export const page = {
//     rules: ["A paragraph.", ...],          the rules, explained beside the table
//     turn: "click a square",                 optional: what a person does, for the status line
//     realtime: 50,                           steps per second of a real-time game
//     session: RealtimeSession,               optional: a class in place of Session
//     make(host, session) -> view,
//     actionName(state, action, session),     optional: the name of an action in a position
//     describe(before, move, after, session), optional: lines for the log in place of "NAME: action"
//     score(state, seat),                     optional: text in place of the number
//     plates: false,                          optional: the table itself shows who plays, and scores
//     result(state, session),                 optional: one line at the end
//   };
//
// and a view has
//
//   show(state, ask)              draws a position as `session.person` may see it; `ask` is null, or
//                                 { legal, row } and the view calls session.choose(action)
//   animate(before, move, after)  optional: shows a step; returns a promise;
//                                 move = { seats, actions }
//   control()                     real-time games: the person's action in this step
//   mark(action)                  optional: highlights an action (a hint)
//   close()                       optional: removes listeners
//
// `show` may be called at any time with any position: after an undo, by a replay's slider. The same
// view shows a replay, with a session without moving players; `session.person` is the viewing seat.

import { el, replace } from "/app/dom.js";

// Any game by its text and the names of its actions.
export const plainPage = {
  rules: [],
  turn: "choose an action",
  make(host, session) {
    const board = el("pre", { class: "plain-board" });
    const choices = el("div", { class: "plain-choices" });
    host.append(board, choices);
    return {
      show(state, ask) {
        board.textContent = state.text(session.sees(-1) ? -1 : session.person);
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
      mark(action) {
        choices.querySelector(`[data-action="${action}"]`)?.classList.add("hinted");
      },
    };
  },
};

// The name of an action in a position.
export function actionName(page, state, action, session) {
  if (session.rules.box) return action.map((number) => number.toFixed(2)).join(" ");
  return page.actionName?.(state, action, session) ?? session.engine.actionName(action);
}

// Log lines of one step.
export function lines(page, before, move, after, session) {
  if (page.describe) return page.describe(before, move, after, session);
  return move.seats.flatMap((seat, row) =>
    seat < 0
      ? []
      : [`${session.nameOf(seat)}: ${actionName(page, before, move.actions[row], session)}`],
  );
}

// How the game ended, from the person's side.
export function result(page, state, session) {
  if (page.result) return page.result(state, session);
  const { scores } = state;
  const best = Math.max(...scores);
  const winners = scores.flatMap((score, seat) => (score === best ? [seat] : []));
  if (scores.length === 1) return `${state.end}: ${shortNumber(best)}`;
  if (winners.length === scores.length) return `${state.end}: a draw`;
  const mine = session.person >= 0 && winners.includes(session.person);
  const who = mine ? "you win" : `${winners.map((seat) => session.nameOf(seat)).join(", ")} wins`;
  return `${state.end}: ${winners.length > 1 && mine ? "you share the win" : who}`;
}

export function shortNumber(number) {
  return Number.isInteger(number) ? String(number) : number.toFixed(2);
}
