// Shogi's positions and moves as a page needs them. The rules themselves are the module's: here
// are only the board out of SFEN, squares out of actions, and notation. Squares are numbers as in
// csrc/games/shogi: 9 * (file - 1) + rank, 1a is 0, seen by Black.

export const HAND = "RBGSNLP"; // in the order of a piece stand
const DROPS = "PLNSBRG"; // in the order of the actions
const RANKS = "abcdefghi";
const DROP = 20; // the first label of a drop; before it ten directions, and ten that promote
// Files and ranks of a direction for the side that moves; left is towards higher files.
const STEPS = [
  [0, -1],
  [1, -1],
  [-1, -1],
  [1, 0],
  [-1, 0],
  [0, 1],
  [1, 1],
  [-1, 1],
  [1, -2],
  [-1, -2],
];
const FIRST_JUMP = 8;

export const NAMES = {
  P: "pawn",
  L: "lance",
  N: "knight",
  S: "silver",
  G: "gold",
  B: "bishop",
  R: "rook",
  K: "king",
  "+P": "tokin",
  "+L": "promoted lance",
  "+N": "promoted knight",
  "+S": "promoted silver",
  "+B": "horse",
  "+R": "dragon",
};
export const KANJI = {
  P: "歩",
  L: "香",
  N: "桂",
  S: "銀",
  G: "金",
  B: "角",
  R: "飛",
  K: "玉",
  "+P": "と",
  "+L": "杏",
  "+N": "圭",
  "+S": "全",
  "+B": "馬",
  "+R": "龍",
};
const MOVE_KANJI = { ...KANJI, "+L": "成香", "+N": "成桂", "+S": "成銀" };
export const WIDE_DIGITS = "１２３４５６７８９";
export const RANK_SIGNS = "一二三四五六七八九";
export const SIDES = ["Black", "White"];

export function squareName(square) {
  return `${Math.floor(square / 9) + 1}${RANKS[square % 9]}`;
}

// `board` has { kind, side } or null by square, a kind is "P" or "+P"; `hands` counts by side.
export function readSfen(text) {
  const [rows, mover, hands, number] = text.split(" ");
  const board = Array.from({ length: 81 }, () => null);
  rows.split("/").forEach((row, rank) => {
    let file = 9;
    for (const [, empty, promoted, letter] of row.matchAll(/(\d)|(\+?)([A-Za-z])/g)) {
      if (empty) {
        file -= Number(empty);
        continue;
      }
      board[9 * (file - 1) + rank] = pieceOf(promoted, letter);
      file -= 1;
    }
  });
  const held = [{}, {}];
  for (const [, count, letter] of hands.matchAll(/(\d*)([A-Za-z])/g)) {
    const { kind, side } = pieceOf("", letter);
    held[side][kind] = Number(count || 1);
  }
  return { board, hands: held, mover: mover === "b" ? 0 : 1, number: Number(number) };
}

function pieceOf(promoted, letter) {
  const kind = letter.toUpperCase();
  return { kind: promoted + kind, side: letter === kind ? 0 : 1 };
}

// What an action does in a position. `source` is a square, or the letter of a dropped piece;
// `kind` is the piece before the move, `captured` its victim or null.
export function readMove(position, action) {
  const label = Math.floor(action / 81);
  const seen = action % 81; // by the side that moves
  const turned = (square) => (position.mover === 0 ? square : 80 - square);
  const to = turned(seen);
  if (label >= DROP) {
    const kind = DROPS[label - DROP];
    return { action, source: kind, to, kind, drop: true, promotes: false, captured: null };
  }
  const source = turned(origin(label % 10, seen, (square) => position.board[turned(square)]));
  const { kind } = position.board[source];
  const captured = position.board[to]?.kind ?? null;
  return { action, source, to, kind, drop: false, promotes: label >= 10, captured };
}

// Against the direction of movement to the first piece; knights jump.
function origin(direction, to, occupied) {
  const [files, ranks] = STEPS[direction];
  const back = 9 * files + ranks;
  let square = to - back;
  while (direction < FIRST_JUMP && !occupied(square)) square -= back;
  return square;
}

export function usi(move) {
  const to = squareName(move.to);
  return move.drop ? `${move.kind}*${to}` : `${squareName(move.source)}${to}${plus(move)}`;
}

function plus(move) {
  return move.promotes ? "+" : "";
}

// As KIF files write it, `before` is the move before.
export function kif(move, before) {
  const place = ({ to }) => `${WIDE_DIGITS[Math.floor(to / 9)]}${RANK_SIGNS[to % 9]}`;
  const named = `${before?.to === move.to ? "同　" : place(move)}${MOVE_KANJI[move.kind]}`;
  if (move.drop) return `${named}打`;
  const from = `${Math.floor(move.source / 9) + 1}${(move.source % 9) + 1}`;
  return `${named}${move.promotes ? "成" : ""}(${from})`;
}

// For people who do not read USI, and for screen readers.
export function words(move) {
  const to = squareName(move.to);
  if (move.drop) return `${NAMES[move.kind]} dropped on ${to}`;
  const taken = move.captured ? `takes ${NAMES[move.captured]} on` : "to";
  const promoted = move.promotes ? ", promotes" : "";
  return `${NAMES[move.kind]} ${squareName(move.source)} ${taken} ${to}${promoted}`;
}

// The moves of a session up to a position, for the list: what was known stays known, and a game
// that jumped (a replay, a move taken back) is followed anew from its start.
export class Record {
  constructor(session) {
    this.session = session;
    this.lines = [];
  }

  upTo(state) {
    const count = Number(state.fields().ply[0]);
    const moves = (this.session.moves ?? []).slice(0, count).map((move) => [move].flat()[0]);
    let same = 0;
    while (same < moves.length && this.lines[same]?.move.action === moves[same]) ++same;
    this.lines.length = same;
    if (same < moves.length) this.follow(moves);
    return this.lines;
  }

  follow(moves) {
    const { engine, seed, setup } = this.session;
    const walker = engine.state(seed ?? 0, { skipForced: false, setup: setup ?? null });
    moves.forEach((action, at) => {
      if (at >= this.lines.length) this.add(readSfen(walker.text()), action);
      walker.apply(action);
    });
    walker.free();
  }

  add(position, action) {
    const move = readMove(position, action);
    const { mover, number } = position;
    this.lines.push({ move, mover, number, kif: kif(move, this.lines.at(-1)?.move) });
  }
}
