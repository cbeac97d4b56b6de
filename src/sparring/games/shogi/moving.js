// How a person moves Shogi's pieces: by drag, by two clicks or taps, or by keyboard. All three
// hold a piece first, which shows where it may go, and put it down.

import { calm, el, replace } from "/app/dom.js";
import { HAND, NAMES, squareName } from "/games/shogi/position.js";

const FAR_ENOUGH = 6; // pixels between a click and a drag
const SLIDE_MS = 260;

export class Moving {
  constructor(board, session) {
    Object.assign(this, { board, session });
    this.moves = []; // what the person may play now
    this.held = null; // a square, or the letter of a piece in hand
    this.drag = null;
    this.dropped = false; // the piece already lies where it was put
    this.plays = session.players.some(({ kind }) => kind === "person");
    const { root } = board;
    this.question = el("div", { class: "promotion", role: "dialog", hidden: true });
    board.surface.append(this.question);
    root.addEventListener("click", (event) => this.onClick(event));
    root.addEventListener("pointerdown", (event) => this.onDown(event));
    root.addEventListener("keydown", (event) => this.onKey(event));
    this.away = new AbortController();
    const { signal } = this.away;
    addEventListener("pointermove", (event) => this.onMove(event), { signal });
    addEventListener("pointerup", (event) => this.onUp(event), { signal });
    addEventListener("pointercancel", () => this.endDrag(), { signal });
    addEventListener("keydown", (event) => this.onFirstKey(event), { signal });
  }

  // New moves to choose from; none while others think.
  offer(moves) {
    this.moves = moves;
    this.endDrag();
    this.release();
    const { squares, stands } = this.board;
    const sources = new Set(moves.map((move) => move.source));
    squares.forEach((square, at) => square.classList.toggle("can", sources.has(at)));
    stands.forEach(({ slots }, side) => {
      for (const [kind, slot] of Object.entries(slots)) {
        slot.classList.toggle("can", side === this.session.person && sources.has(kind));
      }
    });
  }

  // Which place an element belongs to: a square's number, a piece of the person's hand, or null.
  placeOf(element) {
    const square = element?.closest?.(".square");
    if (square && this.board.root.contains(square)) return this.board.squares.indexOf(square);
    const slot = element?.closest?.(".slot.can");
    return slot ? slot.dataset.drop : null;
  }

  canHold(place) {
    return this.moves.some((move) => move.source === place);
  }

  hold(place) {
    this.release();
    this.held = place;
    this.board.mark(null);
    this.board.sourceElement(place, this.session.person).classList.add("held");
    for (const move of this.moves) {
      if (move.source !== place) continue;
      this.board.squares[move.to].classList.add(move.captured ? "prey" : "target");
    }
  }

  release() {
    this.held = null;
    this.question.hidden = true;
    const marked = this.board.root.querySelectorAll(".held, .target, .prey");
    for (const old of marked) old.classList.remove("held", "target", "prey");
  }

  // Puts the held piece down. False if it cannot go there.
  put(place) {
    const fitting = this.moves.filter((move) => move.source === this.held && move.to === place);
    if (fitting.length === 0) return false;
    if (fitting.length === 1) this.choose(fitting[0]);
    else this.askPromotion(fitting);
    return true;
  }

  choose(move) {
    this.moves = [];
    this.release();
    this.session.choose(move.action);
  }

  onClick(event) {
    const endsDrag = this.justDragged && event.detail > 0; // keys click with 0
    this.justDragged = false;
    if (endsDrag || this.question.contains(event.target)) return;
    const place = this.placeOf(event.target);
    if (place === null) {
      if (!event.target.closest(".sheet")) this.release();
    } else if (this.held === null || !this.put(place)) {
      if (place !== this.held && this.canHold(place)) this.hold(place);
      else this.release();
    }
  }

  onDown(event) {
    this.justDragged = false;
    const place = this.placeOf(event.target);
    if (event.button !== 0 || place === null || !this.canHold(place)) return;
    this.drag = { place, x: event.clientX, y: event.clientY, ghost: null };
  }

  onMove(event) {
    const { drag } = this;
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.ghost) {
      if (Math.hypot(dx, dy) < FAR_ENOUGH) return;
      this.hold(drag.place);
      drag.ghost = this.lift(this.board.sourceElement(drag.place, this.session.person));
      drag.ghost.classList.add("in-hand");
    }
    drag.ghost.style.transform = `translate(${dx}px, ${dy}px)`;
    this.hover(document.elementFromPoint(event.clientX, event.clientY));
  }

  hover(element) {
    const square = element?.closest?.(".target, .prey") ?? null;
    if (square === this.drag.over) return;
    this.drag.over?.classList.remove("over");
    square?.classList.add("over");
    this.drag.over = square;
  }

  onUp(event) {
    if (!this.drag?.ghost) {
      this.drag = null;
      return;
    }
    const place = this.placeOf(document.elementFromPoint(event.clientX, event.clientY));
    this.endDrag();
    this.justDragged = true;
    this.dropped = place !== null && this.put(place);
    if (!this.dropped) this.release();
  }

  endDrag() {
    this.drag?.over?.classList.remove("over");
    this.drag?.ghost?.remove();
    for (const old of this.board.root.querySelectorAll(".lifted")) old.classList.remove("lifted");
    this.drag = null;
  }

  // A copy of a piece that floats above the page; what it was taken from looks empty.
  lift(element) {
    const piece = element.querySelector(".shogi-piece");
    const { left, top, width, height } = piece.getBoundingClientRect();
    const ghost = el("div", { class: "shogi-ghost" }, piece.cloneNode(true));
    Object.assign(ghost.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    if (element.querySelector(".count")?.textContent !== "1" && element.matches(".slot")) {
      element.classList.add("fewer");
    } else {
      element.classList.add("lifted");
    }
    this.board.root.append(ghost);
    return ghost;
  }

  // Animates another player's move, from the position before it.
  async slide(move, mover) {
    const skip = this.dropped && mover === this.session.person;
    this.dropped = false;
    if (skip || calm() || document.hidden) return;
    const { board } = this;
    const from = board.sourceElement(move.source, mover);
    const to = board.squares[move.to];
    const goals = [[this.lift(from), to]];
    if (move.captured) {
      goals.push([this.lift(to), board.stands[mover].slots[move.captured.at(-1)]]);
    }
    await Promise.all(goals.map(([ghost, goal], taken) => glide(ghost, goal, Boolean(taken))));
    for (const [ghost] of goals) ghost.remove();
    for (const old of board.root.querySelectorAll(".lifted, .fewer")) {
      old.classList.remove("lifted", "fewer");
    }
  }

  askPromotion(fitting) {
    const [move] = fitting;
    const side = this.session.person;
    const buttons = fitting
      .toSorted((a, b) => Number(b.promotes) - Number(a.promotes))
      .map((choice) => {
        const kind = choice.promotes ? `+${move.kind}` : move.kind;
        return el(
          "button",
          {
            type: "button",
            "data-promote": choice.promotes ? "yes" : "no",
            "aria-label": choice.promotes
              ? `promote to ${NAMES[kind]}`
              : `stay a ${NAMES[move.kind]}`,
            onclick: () => this.choose(choice),
          },
          this.board.piece(kind, side),
          el("span", {}, choice.promotes ? "promote" : "stay"),
        );
      });
    replace(this.question, buttons);
    this.question.setAttribute("aria-label", `Promote on ${squareName(move.to)}?`);
    const [x, y] = this.board.middle(move.to);
    this.question.style.setProperty("--x", x);
    this.question.style.setProperty("--y", y);
    this.question.hidden = false;
    buttons[0].focus({ preventScroll: true });
  }

  // Arrows reach the board while nothing else on the page has the keyboard.
  onFirstKey(event) {
    const free = document.activeElement.contains(this.board.root) && this.moves.length > 0;
    if (!free || !event.key.startsWith("Arrow")) return;
    focusOn(this.board.squares.find((square) => square.tabIndex === 0));
    event.preventDefault();
  }

  // Keys that mean something here must not mean something to the page as well.
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.plays) return;
    const handled = this.question.hidden ? this.boardKey(event) : this.questionKey(event);
    if (!handled) return;
    event.preventDefault();
    event.stopPropagation();
  }

  questionKey({ key }) {
    const buttons = [...this.question.querySelectorAll("button")];
    if (key === "Escape") {
      const [at] = this.moves.filter((move) => move.source === this.held);
      this.release();
      this.board.sourceElement(at.source, this.session.person).focus();
      return true;
    }
    if (!key.startsWith("Arrow")) return false;
    const other = buttons.find((button) => button !== document.activeElement);
    other.focus();
    return true;
  }

  boardKey({ key, target }) {
    if (key === "Escape") {
      this.release();
      return true;
    }
    const kind = key.toUpperCase();
    if (key.length === 1 && HAND.includes(kind)) {
      if (this.canHold(kind)) this.hold(kind);
      return true;
    }
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      key
    ];
    return step ? this.step(target, ...step) : false;
  }

  // Moves the cursor; below the board is the player's hand.
  step(from, dx, dy) {
    const { board } = this;
    const slot = from.closest(".slot");
    if (slot) {
      const open = [...slot.parentElement.querySelectorAll(".slot:enabled")];
      if (dy < 0) return focusOn(board.squares.find((square) => square.tabIndex === 0));
      return focusOn(open[open.indexOf(slot) + dx + dy] ?? slot);
    }
    const square = board.squares.indexOf(from.closest(".square"));
    if (square < 0) return false;
    const [x, y] = board.middle(square).map(Math.floor);
    const [column, row] = [x + dx, y + dy];
    if (row > 8) {
      const near = board.stands[1 - board.far];
      const open = Object.values(near.slots).find((each) => !each.disabled);
      return open ? focusOn(open) : true;
    }
    if (column < 0 || column > 8 || row < 0) return true;
    const seen = 9 * (8 - column) + row;
    this.setCursor(board.turned ? 80 - seen : seen);
    return true;
  }

  setCursor(square) {
    for (const each of this.board.squares) each.tabIndex = -1;
    this.board.squares[square].tabIndex = 0;
    focusOn(this.board.squares[square]);
  }

  close() {
    this.endDrag();
    this.away.abort();
  }
}

function focusOn(element) {
  element.focus({ preventScroll: true });
  return true;
}

async function glide(ghost, goal, taken) {
  const from = ghost.getBoundingClientRect();
  const to = (goal.querySelector(".shogi-piece") ?? goal).getBoundingClientRect();
  const dx = to.left + to.width / 2 - from.left - from.width / 2;
  const dy = to.top + to.height / 2 - from.top - from.height / 2;
  const away = { transform: `translate(${dx}px, ${dy}px)`, opacity: taken ? 0 : 1 };
  const glided = ghost.animate([{ transform: "none", opacity: 1 }, away], {
    duration: SLIDE_MS,
    delay: taken ? SLIDE_MS / 3 : 0,
    easing: "cubic-bezier(0.3, 0.1, 0.2, 1)",
    fill: "both",
  });
  await glided.finished.catch(() => {}); // a page that goes away ends it
}
