// Shogi in a browser.

import { Moving } from "/games/shogi/moving.js";
import { Record, readMove, readSfen } from "/games/shogi/position.js";
import { Table } from "/games/shogi/table.js";

export const page = {
  rules: [
    "Two armies of twenty pieces; whoever leaves the other king no way out wins. The pieces of both sides look alike: a piece belongs to the side it points away from. Black begins.",
    "Pawns go one step ahead. Lances run straight ahead, knights jump two ahead and one aside. Silvers step ahead or along a diagonal, golds in any direction but diagonally back. Bishops run along diagonals, rooks along files and ranks, the king steps anywhere.",
    "A piece that you capture changes sides: it lies on your stand, and instead of a move you may drop it on any empty square. Not where it could never move again; no second unpromoted pawn of yours on a file; and no pawn that gives mate at once.",
    "The three ranks farthest from you promote: a move that begins or ends there may turn the piece over, and has to if it could not move otherwise. Bishop and rook keep their moves and gain a step in the directions they lacked; pawn, lance, knight and silver become golds.",
    "The same position four times is a draw, unless one side gave check all the time: that side loses. No legal move loses, too. A king that reaches the other's camp with enough pieces wins by points.",
    "Drag a piece, or click it and then a square; dots show where it may go. With the keyboard: arrows move, Enter takes and puts down, Escape lets go, a letter (P L N S G B R) takes a piece from your hand.",
  ],
  make(host, session) {
    const table = new Table(host, session);
    const moving = new Moving(table, session);
    const record = new Record(session);
    return {
      show(state, ask) {
        const position = readSfen(state.text());
        table.draw(position);
        table.mark(null);
        table.drawStatus(state, record.upTo(state));
        moving.offer(ask ? ask.legal.map((action) => readMove(position, action)) : []);
      },
      tell(before, { actions }) {
        const position = readSfen(before.text());
        table.mark(null);
        return moving.slide(readMove(position, actions[0]), position.mover);
      },
      mark(action) {
        table.mark(readMove(table.position, action));
      },
      close() {
        moving.close();
      },
    };
  },
};
