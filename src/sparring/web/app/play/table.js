// A table: the game in the middle, and beside it what happened, the rules, an agent's mind.

import { el, replace } from "/app/dom.js";
import { Mind } from "/app/play/mind.js";
import { keyList, panel, plates } from "/app/play/panels.js";
import { arrivalLine, progressLine } from "/app/play/progress.js";
import { sharePanel } from "/app/play/sharing.js";
import { Session } from "/app/play/session.js";
import { actionName, lines, result } from "/app/play/views.js";

const KEYS = [
  ["u", "take back your last decision"],
  ["h", "a hint: what the adviser would do"],
  ["n", "a new game"],
  ["s", "the same deal or start again"],
  ["m", "an agent's mind, open or closed"],
  [".", "an agent that searches moves now"],
  ["?", "these keys"],
];

// `game` is { rules, engine, page }. Options: those of a session; `title`, above the table;
// `again(seed)`, which opens the same table, with a new deal if the seed is null; `more`, additional
// panels; `choice`, beside the title; `commentators`, agents without a seat whose networks can be
// inspected.
export class Table {
  constructor(host, game, options) {
    const { title, again, more = [], choice = null, commentators = null, ...deal } = options;
    Object.assign(this, { game, host, again });
    const { rules, engine, page } = game;
    const Kind = page.session ?? Session;
    const skipForced = Boolean(rules.skip_forced);
    this.session = new Kind(engine, { ...deal, skipForced });
    this.stepLines = []; // log lines of every step, or of every point in real time
    this.moved = true; // since the status line last said whose turn it is
    this.build(el("h1", {}, title), { choice, more, commentators });
    this.view = page.make(this.board, this.session);
    this.session.view = this.view;
    this.recall();
    this.session.show = () => this.show();
    this.session.animate = (before, move, after) => this.animate(before, move, after);
    this.session.progress = (player, found) => this.thinking.show(player, found);
    this.session.trouble = (wrong) => this.complain(wrong);
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  build(title, { choice, more, commentators }) {
    const { rules, page } = this.game;
    const seats = `${rules.name.replaceAll("_", "-")}-table`;
    this.board = el("div", { class: `table ${seats}` });
    this.plates = plates(this.session, page);
    this.status = el("p", { class: "status-line", role: "status", "aria-live": "polite" });
    this.thinking = progressLine(rules, this.session.players, () => this.session.hurry());
    this.undoButton = this.button("Undo", "u", () => this.undo());
    this.hintButton = this.button("Hint", "h", () => this.hint());
    this.log = el("ol", { class: "log", tabindex: "0", "aria-label": "What happened" });
    this.mind = new Mind(this.game, this.session, { commentators });
    const keys = KEYS.filter(([key]) => key !== "s" || this.repeats);
    this.keys = panel("Keys", "keys", keyList(keys));
    const buttons = el(
      "div",
      { class: "play-buttons", role: "toolbar", "aria-label": "Game" },
      this.undoButton,
      this.hintButton,
      this.repeats
        ? this.button(rules.hides ? "Same deal" : "Same start", "s", () => this.repeat())
        : "",
      this.button("New game", "n", () => this.again(null)),
    );
    const side = el(
      "aside",
      { class: "play-side", "aria-label": "Beside the table" },
      panel("What happened", "happened", this.log, true),
      this.mind.element,
      ...more,
      panel(
        "Rules",
        "rules",
        page.rules.map((text) => el("p", {}, text)),
      ),
      sharePanel(() => this.session.replay()),
      this.keys,
    );
    const middle = el(
      "div",
      { class: "play-main" },
      this.plates.element,
      arrivalLine(this.session.players, () => this.goOn()) ?? "",
      this.thinking.element,
      this.board,
      this.status,
    );
    // The buttons stand above the table: below it a window would have to be scrolled for them.
    this.host.append(
      el("div", { class: "play-head" }, choice ? [title, choice] : title, buttons),
      el("div", { class: "play-body" }, middle, side),
    );
  }

  // Whether the seed decides more than the draws of bots.
  get repeats() {
    const { rules, page } = this.game;
    return rules.chance && !page.realtime;
  }

  repeat() {
    return this.again(this.session.seed);
  }

  button(name, key, go) {
    return el(
      "button",
      { type: "button", onclick: go, "aria-keyshortcuts": key },
      name,
      el("kbd", { "aria-hidden": "true" }, key),
    );
  }

  // Log lines of the moves with which the session starts.
  recall() {
    const { session } = this;
    const before = session.positionAt(0);
    for (const actions of session.moves) {
      const after = before.clone();
      after.apply(...actions);
      this.stepLines.push(this.linesOf(before, actions, after));
      before.apply(...actions);
      after.free();
    }
    before.free();
  }

  linesOf(before, actions, after) {
    const seats = actions.map((_, row) => before.seat(row));
    return lines(this.game.page, before, { seats, actions }, after, this.session);
  }

  run() {
    return this.session.run();
  }

  show() {
    const { session } = this;
    if (session.closed) return;
    const { state, answer } = session;
    this.stepLines.length = Math.min(this.stepLines.length, session.logged);
    this.view.show(state, answer);
    this.plates.show(state, answer);
    this.undoButton.disabled = !session.canUndo;
    this.hintButton.disabled = !answer;
    this.status.classList.toggle("verdict", state.over);
    if (answer && this.moved) this.showTurn();
    if (state.over) {
      const ended = result(this.game.page, state, session);
      this.showStatus(ended);
      if (this.stepLines.length < session.logged) this.stepLines.push([ended]); // a point in real time
    }
    this.showLog();
    this.mind.show();
  }

  showLog() {
    const kept = this.stepLines.slice(-400); // a long game must not make every move slower
    const first = this.stepLines.length - kept.length;
    replace(
      this.log,
      kept.flatMap((all, at) => all.map((line) => el("li", { "data-step": first + at }, line))),
    );
    this.log.scrollTop = this.log.scrollHeight;
  }

  async animate(before, move, after) {
    const added = lines(this.game.page, before, move, after, this.session);
    this.stepLines.push(added);
    this.moved = true;
    this.showStatus(added.join(". "));
    this.showLog();
    await this.view.animate?.(before, move, after);
  }

  // What the person may do now, after what happened.
  showTurn() {
    const { turn } = this.game.page;
    this.moved = false;
    if (!turn) return;
    const before = this.status.textContent;
    this.showStatus(`${before && `${before}. `}Your turn: ${turn}.`);
  }

  showStatus(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  undo() {
    this.moved = false; // the line says what was done
    if (!this.session.undo()) return this.showStatus("There is nothing to take back.");
    this.complaint?.remove();
    this.showStatus("Taken back.");
    return null;
  }

  async hint() {
    const { session } = this;
    try {
      const hint = await session.hint();
      if (!hint) return;
      const name = actionName(this.game.page, session.state, hint.action, session);
      this.view.mark?.(hint.action);
      this.showStatus(`${hint.by} would play ${name}`);
    } catch (wrong) {
      this.complain(wrong);
    }
  }

  // After a player whose network did not come.
  goOn() {
    this.complaint?.remove();
    this.session.run();
  }

  complain(wrong) {
    if (this.session.closed) return;
    this.complaint?.remove();
    this.complaint = el(
      "p",
      { class: "notice bad", role: "alert" },
      `The game is stopped: ${wrong.message}. Undo, or start a new game.`,
    );
    this.status.after(this.complaint);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest?.("input, select, textarea, dialog")) return;
    const todo = {
      u: () => this.undo(),
      h: () => this.hint(),
      n: () => this.again(null),
      s: this.repeats && (() => this.repeat()), // else it may be a game's key
      m: () => this.mind.toggle(),
      ".": this.thinking.active && (() => this.session.hurry()),
      "?": () => this.showKeys(),
    }[event.key];
    if (!todo) return;
    event.preventDefault();
    todo();
  }

  showKeys() {
    this.keys.open = !this.keys.open;
    if (this.keys.open) this.keys.scrollIntoView({ block: "nearest" });
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    this.view.close?.();
    this.mind.close();
    this.session.close();
  }
}
