// Shogi's positions and moves as a page needs them. The rules themselves are the module's: here
// are only the board out of SFEN, squares out of actions, and notation. Squares are numbers as in
// csrc/games/shogi: 9 * (file - 1) + rank, 1a is 0, seen by Black.

export const HAND = "RBGSNLP"; // in the order of a piece stand
const DROPS = "PLNSBRG"; // in the order of the actions
const RANKS = "abcdefghi";
const DROP = 20; // the first label of a drop; before it ten directions, and ten that promote
// Files and ranks of a direction for the side that moves; left is toward higher files.
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

// As KIF files write it. `before` is where the move before arrived.
export function kif(move, before) {
  const place = `${WIDE_DIGITS[Math.floor(move.to / 9)]}${RANK_SIGNS[move.to % 9]}`;
  const named = `${before === move.to ? "同　" : place}${MOVE_KANJI[move.kind]}`;
  if (move.drop) return `${named}打`;
  const from = `${Math.floor(move.source / 9) + 1}${(move.source % 9) + 1}`;
  return `${named}${move.promotes ? "成" : ""}(${from})`;
}

// What a USI move leaves out: piece, capture, promotion.
export function words(move) {
  if (move.drop) return `${NAMES[move.kind]} dropped`;
  const taken = move.captured ? ` takes ${NAMES[move.captured]}` : "";
  return `${NAMES[move.kind]}${taken}${move.promotes ? ", promotes" : ""}`;
}

// The move that led to a position of a session: null at the start, or where it is unknown.
export function lastMove(session, state) {
  const ply = state.fields().ply[0];
  if (ply === 0 || ply > session.moves.length) return null;
  const before = session.positionAt(ply - 1);
  const move = readMove(readSfen(before.text()), session.moves[ply - 1][0]);
  before.free();
  return move;
}

// Where the move before a position arrived; its action was seen by the other side.
export function lastArrival(session, state) {
  const { ply, mover } = state.fields();
  const action = session.moves[ply[0] - 1]?.[0];
  if (ply[0] === 0 || action === undefined) return null;
  return mover[0] === 0 ? 80 - (action % 81) : action % 81;
}
