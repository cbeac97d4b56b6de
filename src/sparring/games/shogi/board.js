// The Shogi board in the page and the piece stands beside it. It draws positions and locates
// squares; moving.js handles the person's input.

import { el, replace, svg } from "/app/dom.js";
import { drawPiece } from "/games/shogi/pieces.js";
import { HAND, NAMES, RANK_SIGNS, SIDES, squareName } from "/games/shogi/position.js";
import { useKanji, usesKanji } from "/games/shogi/signs.js";

const CENTER = 40;
const UPWARDS = [0, 1, 2, 3, 4, 5, 6, 7, 8];

export class Board {
  constructor(host, session) {
    this.session = session;
    this.eyes = session.person;
    this.turned = this.eyes === 1; // White sits at the bottom
    this.position = null;
    this.squares = Array.from({ length: 81 }, (_, square) =>
      el("button", {
        class: "square",
        type: "button",
        role: "gridcell",
        tabindex: square === CENTER ? 0 : -1,
        "data-square": squareName(square),
      }),
    );
    this.stands = SIDES.map((_, side) => this.makeStand(side));
    this.grid = el("div", { class: "grid", role: "grid", "aria-label": "Shogi board" });
    this.files = el("div", { class: "files", "aria-hidden": "true" });
    this.ranks = el("div", { class: "ranks", "aria-hidden": "true" });
    this.arrows = svg("svg", { class: "arrows", viewBox: "0 0 9 9", preserveAspectRatio: "none" });
    this.surface = el("div", { class: "surface" }, this.grid, stars(), this.arrows);
    this.signs = el("button", { type: "button", onclick: () => this.swapSigns() });
    const turn = el("button", { type: "button", onclick: () => this.turn() }, "Turn the board");
    this.root = el(
      "div",
      { class: "shogi-set" },
      this.stands.map((stand) => stand.element),
      el("div", { class: "wood" }, this.files, this.surface, this.ranks),
      el("div", { class: "tools" }, this.signs, turn),
    );
    host.append(el("div", { class: "shogi-room" }, this.root));
    this.place();
  }

  makeStand(side) {
    const slots = {};
    for (const kind of HAND) {
      slots[kind] = el("button", { class: "slot", type: "button", "data-drop": kind });
    }
    const word = el("span", { class: "word" });
    const owner = el(
      "div",
      { class: "owner" },
      mark(side),
      el("span", { class: "side" }, SIDES[side]),
      el("span", { class: "who" }, this.session.players[side].name),
      word,
    );
    const rack = el("div", { class: "rack", role: "group" }, Object.values(slots));
    rack.setAttribute("aria-label", `${SIDES[side]}'s pieces in hand`);
    return { element: el("div", { class: "stand", "data-side": side }, owner, rack), slots, word };
  }

  // The side at the top.
  get far() {
    return this.turned ? 0 : 1;
  }

  // Puts everything where the side at the bottom sees it.
  place() {
    const ranks = this.turned ? UPWARDS.toReversed() : UPWARDS;
    const files = ranks.toReversed();
    const rankSigns = usesKanji() ? RANK_SIGNS : "abcdefghi";
    const row = (rank) => files.map((file) => this.squares[9 * file + rank]);
    replace(
      this.grid,
      ranks.map((rank) => el("div", { class: "rank", role: "row" }, row(rank))),
    );
    replace(
      this.files,
      files.map((file) => el("span", {}, String(file + 1))),
    );
    replace(
      this.ranks,
      ranks.map((rank) => el("span", {}, rankSigns[rank])),
    );
    this.stands.forEach(({ element }, side) => {
      element.classList.toggle("far", side === this.far);
      element.classList.toggle("near", side !== this.far);
    });
    this.signs.textContent = usesKanji() ? "Show letters" : "Show kanji";
  }

  turn() {
    this.turned = !this.turned;
    this.redraw();
  }

  swapSigns() {
    useKanji(!usesKanji());
    this.redraw();
  }

  redraw() {
    this.place();
    if (this.position) this.draw(this.position);
    this.mark(null);
  }

  // A replay may be seen through other eyes than before.
  follow(person) {
    if (person === this.eyes) return;
    this.eyes = person;
    this.turned = person === 1;
    this.place();
  }

  piece(kind, side) {
    return drawPiece(kind, { side, far: side === this.far, kanji: usesKanji() });
  }

  draw(position) {
    this.position = position;
    this.squares.forEach((square, at) => {
      const piece = position.board[at];
      replace(square, piece ? this.piece(piece.kind, piece.side) : []);
      square.setAttribute(
        "aria-label",
        `${squareName(at)}, ${piece ? this.owned(piece) : "empty"}`,
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
    const owner = this.eyes < 0 ? SIDES[side] : side === this.eyes ? "your" : "their";
    return `${owner} ${NAMES[kind]}`;
  }

  // The last move, check, whose turn it is, how it ended.
  drawStatus(state, last) {
    const { mover, in_check: inCheck, winner } = state.fields();
    this.squares.forEach((square, at) => {
      const piece = this.position.board[at];
      const attacked = inCheck[0] === 1 && piece?.kind === "K" && piece.side === mover[0];
      square.classList.toggle("last", last?.to === at || last?.source === at);
      square.classList.toggle("check", attacked);
    });
    this.stands.forEach(({ element, word }, side) => {
      const turn = !state.over && side === mover[0];
      element.classList.toggle("turn", turn);
      element.classList.toggle("won", state.over && winner[0] === side);
      element.classList.toggle("attacked", turn && inCheck[0] === 1);
      if (state.over) word.textContent = winner[0] < 0 ? "draw" : winner[0] === side ? "wins" : "";
      else word.textContent = turn ? (inCheck[0] ? "in check" : "to move") : "";
    });
  }

  // Where a move starts: a square, or a place on the stand.
  sourceElement(source, side) {
    return typeof source === "number" ? this.squares[source] : this.stands[side].slots[source];
  }

  // Points at a move; null takes it away.
  mark(move) {
    for (const old of this.root.querySelectorAll(".hint")) old.classList.remove("hint");
    replace(this.arrows);
    if (!move) return;
    this.squares[move.to].classList.add("hint");
    this.sourceElement(move.source, this.position.mover).classList.add("hint");
    if (!move.drop) replace(this.arrows, arrow(this.middle(move.source), this.middle(move.to)));
  }

  // In squares from the corner at the upper left.
  middle(square) {
    const seen = this.turned ? 80 - square : square;
    return [8.5 - Math.floor(seen / 9), (seen % 9) + 0.5];
  }
}

function arrow([x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [x, y] = [x2 - 0.42 * dx, y2 - 0.42 * dy]; // where the head begins
  const head = [
    [x2 - 0.1 * dx, y2 - 0.1 * dy],
    [x - 0.17 * dy, y + 0.17 * dx],
    [x + 0.17 * dy, y - 0.17 * dx],
  ];
  return [
    svg("line", { x1, y1, x2: x, y2: y }),
    svg("polygon", { points: head.map((at) => at.join()).join(" ") }),
  ];
}

// The four dots that mark off the camps.
function stars() {
  return svg(
    "svg",
    { class: "stars", viewBox: "0 0 9 9", preserveAspectRatio: "none", "aria-hidden": "true" },
    [3, 6].flatMap((x) => [3, 6].map((y) => svg("circle", { cx: x, cy: y, r: 0.07 }))),
  );
}

function mark(side) {
  return svg(
    "svg",
    { class: `side-mark side-${side}`, viewBox: "-12 -13 24 26", "aria-hidden": "true" },
    svg("polygon", { points: "0,-11 7,-7.5 10,11 -10,11 -7,-7.5" }),
  );
}
