// The Shogi table in the page: board, piece stands, name plates, list of moves. It draws positions
// and says where things lie; what a person does with them is in moving.js.

import { el, replace, svg } from "/app/dom.js";
import { drawPiece, drawsKanji } from "/games/shogi/pieces.js";
import { HAND, NAMES, RANK_SIGNS, SIDES, squareName, usi, words } from "/games/shogi/position.js";

const KEPT = "sparring.shogi.signs";

export class Table {
  constructor(host, session) {
    this.session = session;
    this.kanji = keptSigns() === "kanji";
    this.turned = session.person === 1; // White sits at the bottom
    this.position = null;
    this.squares = Array.from({ length: 81 }, (_, square) =>
      el("button", {
        class: "square",
        type: "button",
        role: "gridcell",
        tabindex: square === 40 ? 0 : -1,
        "data-square": squareName(square),
      }),
    );
    this.stands = [this.makeStand(0), this.makeStand(1)];
    this.grid = el("div", { class: "grid", role: "grid", "aria-label": "Shogi board" });
    this.files = el("div", { class: "files", "aria-hidden": "true" });
    this.ranks = el("div", { class: "ranks", "aria-hidden": "true" });
    this.arrows = svg("svg", { class: "arrows", viewBox: "0 0 9 9", preserveAspectRatio: "none" });
    this.surface = el("div", { class: "surface" }, this.grid, this.arrows);
    this.board = el("div", { class: "board" }, this.files, this.surface, this.ranks);
    this.list = el("ol", { class: "moves", tabindex: 0, "aria-label": "Moves" });
    this.heard = el("p", { class: "heard", role: "status" });
    this.signs = el("button", { type: "button", class: "quiet", onclick: () => this.swapSigns() });
    const turn = el(
      "button",
      { type: "button", class: "quiet", onclick: () => this.turn() },
      "Turn the board",
    );
    this.sheet = el(
      "section",
      { class: "sheet" },
      el("div", { class: "tools" }, this.signs, turn),
      this.list,
    );
    this.root = el(
      "div",
      { class: "shogi-table" },
      ...this.stands.map((stand) => stand.element),
      this.board,
      this.sheet,
      this.heard,
    );
    host.append(el("div", { class: "shogi-room" }, this.root));
    this.place();
  }

  makeStand(side) {
    const slots = {};
    for (const kind of HAND) {
      slots[kind] = el("button", {
        class: "slot",
        type: "button",
        "data-drop": kind,
        "data-side": side,
      });
    }
    const who = this.session.players?.[side];
    const name = who ? (who.kind === "person" ? "you" : who.name) : "";
    const said = el("span", { class: "said" });
    const plate = el(
      "div",
      { class: "plate" },
      mark(side),
      el("span", { class: "side" }, SIDES[side]),
      el("span", { class: "name" }, name),
      said,
    );
    const rack = el("div", { class: "rack", role: "group" }, Object.values(slots));
    rack.setAttribute("aria-label", `${SIDES[side]}'s pieces in hand`);
    return { element: el("div", { class: "stand" }, plate, rack), slots, said };
  }

  // The side at the top.
  get far() {
    return this.turned ? 0 : 1;
  }

  // Puts everything where the side at the bottom sees it.
  place() {
    const order = this.turned ? [8, 7, 6, 5, 4, 3, 2, 1, 0] : [0, 1, 2, 3, 4, 5, 6, 7, 8];
    const files = order.toReversed();
    replace(
      this.grid,
      order.map((rank) =>
        el(
          "div",
          { class: "rank", role: "row" },
          files.map((file) => this.squares[9 * file + rank]),
        ),
      ),
    );
    const ranks = this.kanji ? RANK_SIGNS : "abcdefghi";
    replace(
      this.files,
      files.map((file) => el("span", {}, String(file + 1))),
    );
    replace(
      this.ranks,
      order.map((rank) => el("span", {}, ranks[rank])),
    );
    this.stands.forEach((stand, side) => {
      stand.element.classList.toggle("far", side === this.far);
      stand.element.classList.toggle("near", side !== this.far);
    });
    this.signs.textContent = this.kanji ? "Show letters" : "Show kanji";
  }

  turn() {
    this.turned = !this.turned;
    this.redraw();
  }

  swapSigns() {
    this.kanji = !this.kanji;
    keepSigns(this.kanji ? "kanji" : "letters");
    this.redraw();
  }

  redraw() {
    this.place();
    if (this.position) {
      this.draw(this.position);
      this.drawList(this.lines);
    }
    this.mark(null);
  }

  piece(kind, side) {
    return drawPiece(kind, { side, far: side === this.far, kanji: this.kanji });
  }

  draw(position) {
    this.position = position;
    this.squares.forEach((square, at) => {
      const piece = position.board[at];
      replace(square, piece ? this.piece(piece.kind, piece.side) : []);
      square.setAttribute(
        "aria-label",
        `${squareName(at)}${piece ? `, ${this.owned(piece)}` : ""}`,
      );
    });
    this.stands.forEach(({ slots }, side) => {
      for (const [kind, slot] of Object.entries(slots)) {
        const count = position.hands[side][kind] ?? 0;
        replace(slot, this.piece(kind, side), el("span", { class: "count" }, String(count)));
        slot.disabled = count === 0;
        slot.classList.toggle("many", count > 1);
        slot.setAttribute("aria-label", `${NAMES[kind]} in hand: ${count}`);
      }
    });
  }

  owned({ kind, side }) {
    const mine = this.session.person;
    const owner = mine < 0 ? SIDES[side] : side === mine ? "your" : "their";
    return `${owner} ${NAMES[kind]}`;
  }

  // Last move, check, whose turn it is, how it ended.
  drawStatus(state, lines) {
    const { mover, in_check: inCheck, winner } = state.fields();
    const last = lines.at(-1)?.move;
    this.squares.forEach((square, at) => {
      const piece = this.position.board[at];
      const checked = inCheck[0] && piece?.kind === "K" && piece.side === mover[0];
      square.classList.toggle("last", last?.to === at || last?.source === at);
      square.classList.toggle("check", Boolean(checked));
    });
    this.stands.forEach(({ element, said }, side) => {
      const moves = !state.over && side === mover[0];
      element.classList.toggle("moves-now", moves);
      element.classList.toggle("won", state.over && winner[0] === side);
      if (state.over) said.textContent = winner[0] === side ? "wins" : winner[0] < 0 ? "draw" : "";
      else said.textContent = moves ? (inCheck[0] ? "in check" : "to move") : "";
    });
    this.drawList(lines);
    const line = lines.at(-1);
    const told = line ? `${SIDES[line.mover]}: ${words(line.move)}.` : "";
    this.heard.textContent = `${told}${inCheck[0] ? " Check." : ""}`;
  }

  drawList(lines) {
    this.lines = lines;
    replace(
      this.list,
      lines.map(({ move, mover, number, kif }) =>
        el(
          "li",
          { class: mover === 0 ? "black" : "white" },
          el("span", { class: "number" }, String(number)),
          el("span", { class: "usi" }, usi(move)),
          el("span", { class: "plain" }, this.kanji ? kif : plainWords(move)),
        ),
      ),
    );
    this.list.scrollTop = this.list.scrollHeight;
  }

  // Where a move can start: a square or a slot of the stand.
  sourceElement(source, side) {
    return typeof source === "number" ? this.squares[source] : this.stands[side].slots[source];
  }

  // Points at a move; null takes it away.
  mark(move, side = this.position?.mover ?? 0) {
    for (const old of this.root.querySelectorAll(".hint")) old.classList.remove("hint");
    replace(this.arrows);
    if (!move) return;
    this.squares[move.to].classList.add("hint");
    this.sourceElement(move.source, side).classList.add("hint");
    if (move.drop) return;
    const [x1, y1, x2, y2] = [...this.middle(move.source), ...this.middle(move.to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const tip = [x2 - 0.1 * dx, y2 - 0.1 * dy];
    const base = [x2 - 0.42 * dx, y2 - 0.42 * dy];
    replace(
      this.arrows,
      svg("line", { x1, y1, x2: base[0], y2: base[1] }),
      svg("polygon", {
        points: [
          tip,
          [base[0] - 0.17 * dy, base[1] + 0.17 * dx],
          [base[0] + 0.17 * dy, base[1] - 0.17 * dx],
        ].join(" "),
      }),
    );
  }

  // In squares from the corner at the upper left.
  middle(square) {
    const seen = this.turned ? 80 - square : square;
    return [8.5 - Math.floor(seen / 9), (seen % 9) + 0.5];
  }
}

function plainWords(move) {
  if (move.drop) return `${NAMES[move.kind]} dropped`;
  const taken = move.captured ? ` × ${NAMES[move.captured]}` : "";
  return `${NAMES[move.kind]}${taken}${move.promotes ? ", promotes" : ""}`;
}

function mark(side) {
  return svg(
    "svg",
    {
      class: `mark ${side === 0 ? "black" : "white"}`,
      viewBox: "-12 -13 24 26",
      "aria-hidden": "true",
    },
    svg("polygon", { points: "0,-11 7,-7.5 10,11 -10,11 -7,-7.5" }),
  );
}

function keptSigns() {
  try {
    const kept = localStorage.getItem(KEPT);
    if (kept) return kept;
  } catch {
    // A page that was opened as a file may have no storage.
  }
  return drawsKanji() ? "kanji" : "letters";
}

function keepSigns(signs) {
  try {
    localStorage.setItem(KEPT, signs);
  } catch {
    // Then it is asked again next time.
  }
}
