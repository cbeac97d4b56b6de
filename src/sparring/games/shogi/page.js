// Shogi in a browser.

import { Board } from "/games/shogi/board.js";
import { Moving } from "/games/shogi/moving.js";
import {
  kif,
  lastArrival,
  lastMove,
  readMove,
  readSfen,
  usi,
  words,
} from "/games/shogi/position.js";
import { usesKanji } from "/games/shogi/signs.js";

export const page = {
  rules: [
    "Two armies of twenty pieces; checkmate of the other king wins. The pieces of both sides look alike: a piece belongs to the side it points away from. Black begins.",
    "Pawns go one step ahead. Lances run straight ahead, knights jump two ahead and one aside. Silvers step ahead or along a diagonal, golds in any direction but diagonally back. Bishops run along diagonals, rooks along files and ranks, the king steps anywhere.",
    "A piece that you capture changes sides: it lies on your stand, and instead of a move you may drop it on any empty square. Not where it could never move again; no second unpromoted pawn of yours on a file; and no pawn that gives mate at once.",
    "The three ranks farthest from you promote: a move that begins or ends there may turn the piece over, and has to if it could not move otherwise. Bishop and rook keep their moves and gain a step in the directions they lacked; pawn, lance, knight and silver become golds.",
    "The same position four times is a draw, unless one side gave check all the time: that side loses. No legal move loses, too. A king that reaches the other's camp with enough pieces wins by points.",
    "Drag a piece, or click it and then a square; dots show where it may go. With the keyboard: arrows move, Enter takes and puts down, Escape lets go, a letter (P L N S G B R) takes a piece from your hand.",
    "Moves are written as USI: 7g7f goes from file 7, rank g to rank f; + promotes, P*5e drops a pawn on 5e.",
  ],
  turn: "drag a piece, or click it and then a square",
  make(host, session) {
    const board = new Board(host, session);
    const moving = new Moving(board, session);
    return {
      show(state, ask) {
        const position = readSfen(state.text());
        board.follow(session.person);
        board.draw(position);
        board.mark(null);
        board.drawStatus(state, lastMove(session, state));
        moving.offer(ask ? ask.legal.map((action) => readMove(position, action)) : []);
      },
      animate(before, { actions }) {
        const position = readSfen(before.text());
        board.mark(null);
        return moving.slide(readMove(position, actions[0]), position.mover);
      },
      mark(action) {
        board.mark(readMove(board.position, action));
      },
      close() {
        moving.close();
      },
    };
  },
  actionName(state, action) {
    const move = readMove(readSfen(state.text()), action);
    return `${usi(move)}, ${words(move)}`;
  },
  describe(before, { actions }, after, session) {
    const position = readSfen(before.text());
    const move = readMove(position, actions[0]);
    const side = position.mover === 0 ? "☗" : "☖";
    const plain = usesKanji() ? kif(move, lastArrival(session, before)) : words(move);
    const check = after.fields().in_check[0] && !after.over ? ", check" : "";
    return [`${position.number}. ${side} ${usi(move)} ${plain}${check}`];
  },
  score(state, seat) {
    if (state.over) return ["loses", "draw", "wins"][Math.sign(state.scores[seat]) + 1];
    return seat === 0 ? "Black" : "White";
  },
};
