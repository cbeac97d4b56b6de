// A position without its history: the pieces, what they attack, which moves are legal, and a move
// made. Seen by the side to move throughout, so that there is one code path for both colors.
#pragma once

#include "games/shogi/board.hpp"

namespace sparring::shogi {

enum Kind : u8 { kPawn, kLance, kKnight, kSilver, kBishop, kRook, kGold, kKing, kNoKind };
inline constexpr int kKinds = 7;  // those that can be captured and dropped
inline constexpr int kPieceTotal[kKinds] = {18, 4, 4, 4, 2, 2, 4};

enum Color : u8 { kBlack, kWhite };
enum Who { kOwn, kOther };  // the side to move and the side that waits

// Action labels: ten directions, the same with promotion, seven drops. Action = 81 * label + the
// square of arrival (section 4.1).
inline constexpr int kPromote = 10, kDrop = 20, kLabels = 27, kActions = kLabels * kSquares;

// For every label the squares where a move with that label may end: the legal mask itself.
struct Targets {
  Board of[kLabels];

  SPARRING_FN bool any() const {
    Board all{};
    for (const Board& board : of) all |= board;
    return all.any();
  }
  SPARRING_FN int count() const {
    int n = 0;
    for (const Board& board : of) n += board.count();
    return n;
  }
};

// The pieces of one side by the way they move.
struct Forces {
  Board pawn, lance, knight, silver, gold;  // gold: all that move like one
  Board bishop, rook;                       // promoted or not
  Board horse, dragon;                      // the promoted ones
};

// How the own king stands.
struct Safety {
  Board pinned;   // own pieces that may only move on the line to the king
  Board allowed;  // where pieces other than the king have to arrive
  bool in_check;
};

// What a move did, in the view of the side that made it.
struct Change {
  u8 kind, captured;  // kNoKind if nothing was captured
  u8 from, to;
  bool drop, promotes;
  bool was_promoted, captured_promoted;
};

struct Position {
  Board side[2];       // by Who
  Board kind[kKinds];  // both sides; a promoted piece stands under what it was
  Board promoted;
  u8 hand[2][8];  // by Who and Kind
  u8 king[2];     // squares by Who
  u8 mover;       // the color to move
  u8 in_check;    // whether its king is attacked
  u8 spare[4];

  SPARRING_FN Board occupied() const { return side[kOwn] | side[kOther]; }

  SPARRING_FN int kind_at(int square) const {
    int found = kKing;
    for (int k = 0; k < kKinds; ++k)
      if (kind[k].has(square)) found = k;
    return found;
  }

  SPARRING_FN Forces forces(Board of) const {
    const Board plain = of - promoted;
    const Board small = kind[kPawn] | kind[kLance] | kind[kKnight] | kind[kSilver];
    const Board bishop = of & kind[kBishop], rook = of & kind[kRook];
    return {.pawn = plain & kind[kPawn],
            .lance = plain & kind[kLance],
            .knight = plain & kind[kKnight],
            .silver = plain & kind[kSilver],
            .gold = of & (kind[kGold] | (small & promoted)),
            .bishop = bishop,
            .rook = rook,
            .horse = bishop & promoted,
            .dragon = rook & promoted};
  }

  // Pieces of the other side that attack a square by a single step or jump.
  SPARRING_FN Board step_attackers(int square, const Forces& other) const {
    const Board at = Board::of(square);
    const Board up = stepped<kUp>(at), down = stepped<kDown>(at);
    const Board up_slant = stepped<kUpLeft>(at) | stepped<kUpRight>(at);
    const Board down_slant = stepped<kDownLeft>(at) | stepped<kDownRight>(at);
    const Board beside = stepped<kLeft>(at) | stepped<kRight>(at);
    const Board jumps = stepped<kKnightLeft>(at) | stepped<kKnightRight>(at);
    return (up & other.pawn) | ((up | up_slant | down_slant) & other.silver) |
           ((up | up_slant | beside | down) & other.gold) | (jumps & other.knight) |
           ((up | beside | down) & other.horse) | ((up_slant | down_slant) & other.dragon);
  }

  // Checks and pins against the own king (section 3.6, steps 1, 2 and 5).
  SPARRING_FN Safety safety() const {
    const int at = king[kOwn];
    const Forces other = forces(side[kOther]);
    const Board all = occupied();
    Board checkers = step_attackers(at, other), lines{};
    Safety safe{};
    Board snipers = (kLine.ray[kUp][at] & other.lance) | (kLine.cross[at] & other.rook) |
                    (kLine.diagonal[at] & other.bishop);
    while (snipers.any()) {
      const int from = snipers.pop();
      const Board path = between(at, from), met = path & all;
      if (!met.any()) {
        checkers |= Board::of(from);
        lines |= path;
      } else if (met.has_one()) {
        safe.pinned |= met & side[kOwn];
      }
    }
    safe.in_check = checkers.any();
    if (!safe.in_check)
      safe.allowed = kAll - side[kOwn];
    else if (checkers.has_one())
      safe.allowed = checkers | lines;
    return safe;
  }

  // Squares next to the own king that the other side attacks, the king itself being no shelter
  // (section 3.6, step 3). `near` limits the answer to the squares asked for.
  SPARRING_FN Board danger(Board near) const {
    const Forces other = forces(side[kOther]);
    const Board king_there = Board::of(king[kOther]);
    const Board straight = other.gold | other.horse | king_there;
    const Board slanting = other.silver | other.dragon | king_there;
    const Board ahead = slanting | other.gold;
    Board hit = stepped<kDown>(straight | other.pawn | other.silver) | stepped<kDownLeft>(ahead) |
                stepped<kDownRight>(ahead) | stepped<kLeft>(straight) | stepped<kRight>(straight) |
                stepped<kUp>(straight) | stepped<kUpLeft>(slanting) | stepped<kUpRight>(slanting) |
                knights_down(other.knight);
    const Board all = occupied() - Board::of(king[kOwn]);
    for (Board rest = other.lance; rest.any();) {
      const int from = rest.pop();
      if ((kLine.ray[kDown][from] & near).any()) hit |= slide<kDown>(from, all);
    }
    for (Board rest = other.rook; rest.any();) {
      const int from = rest.pop();
      if ((kLine.cross[from] & near).any()) hit |= slide_straight(from, all);
    }
    for (Board rest = other.bishop; rest.any();) {
      const int from = rest.pop();
      if ((kLine.diagonal[from] & near).any()) hit |= slide_slanting(from, all);
    }
    return hit & near;
  }

  SPARRING_FN static Board slide_straight(int from, Board all) {
    return slide<kUp>(from, all) | slide<kLeft>(from, all) | slide<kRight>(from, all) |
           slide<kDown>(from, all);
  }
  SPARRING_FN static Board slide_slanting(int from, Board all) {
    return slide<kUpLeft>(from, all) | slide<kUpRight>(from, all) | slide<kDownLeft>(from, all) |
           slide<kDownRight>(from, all);
  }

  // Where the own king can go.
  SPARRING_FN Board king_targets() const {
    const Board near = kLine.near[king[kOwn]] - side[kOwn];
    return near - danger(near);
  }

  SPARRING_FN void add_king_moves(Targets& out) const {
    const Board at = Board::of(king[kOwn]), free = king_targets();
    out.of[kUp] |= stepped<kUp>(at) & free;
    out.of[kUpLeft] |= stepped<kUpLeft>(at) & free;
    out.of[kUpRight] |= stepped<kUpRight>(at) & free;
    out.of[kLeft] |= stepped<kLeft>(at) & free;
    out.of[kRight] |= stepped<kRight>(at) & free;
    out.of[kDown] |= stepped<kDown>(at) & free;
    out.of[kDownLeft] |= stepped<kDownLeft>(at) & free;
    out.of[kDownRight] |= stepped<kDownRight>(at) & free;
  }

  // Moves of the pieces in `set`, all at once, that arrive in `allowed` (section 3.6, step 6).
  SPARRING_FN void add_moves(Board set, Board allowed, Targets& out) const {
    const Forces own = forces(set);
    const Board zone = allowed & kZone;
    const Board straight = own.gold | own.horse, slanting = own.silver | own.dragon;
    const Board pawns = stepped<kUp>(own.pawn), silvers = stepped<kUp>(own.silver);
    out.of[kUp] |= ((pawns - kRankA) | silvers | stepped<kUp>(straight)) & allowed;
    out.of[kPromote + kUp] |= (pawns | silvers) & zone;
    out.of[kUpLeft] |= stepped<kUpLeft>(slanting | own.gold) & allowed;
    out.of[kUpRight] |= stepped<kUpRight>(slanting | own.gold) & allowed;
    out.of[kPromote + kUpLeft] |= stepped<kUpLeft>(own.silver) & zone;
    out.of[kPromote + kUpRight] |= stepped<kUpRight>(own.silver) & zone;
    out.of[kLeft] |= stepped<kLeft>(straight) & allowed;
    out.of[kRight] |= stepped<kRight>(straight) & allowed;
    out.of[kDown] |= stepped<kDown>(straight) & allowed;
    out.of[kDownLeft] |= stepped<kDownLeft>(slanting) & allowed;
    out.of[kDownRight] |= stepped<kDownRight>(slanting) & allowed;
    const Board leaving = own.silver & kZone;  // a step back into the zone started in it
    out.of[kPromote + kDownLeft] |= stepped<kDownLeft>(leaving) & allowed;
    out.of[kPromote + kDownRight] |= stepped<kDownRight>(leaving) & allowed;
    const Board left = stepped<kKnightLeft>(own.knight), right = stepped<kKnightRight>(own.knight);
    out.of[kKnightLeft] |= (left & allowed) - kTopTwo;
    out.of[kKnightRight] |= (right & allowed) - kTopTwo;
    out.of[kPromote + kKnightLeft] |= left & zone;
    out.of[kPromote + kKnightRight] |= right & zone;
    add_slides(own, allowed, out);
  }

  SPARRING_FN void add_slides(const Forces& own, Board allowed, Targets& out) const {
    const Board all = occupied();
    for (Board rest = own.lance; rest.any();) {
      const Board reached = slide<kUp>(rest.pop(), all) & allowed;
      out.of[kUp] |= reached - kRankA;
      out.of[kPromote + kUp] |= reached & kZone;
    }
    for (Board rest = own.rook; rest.any();) {
      const int from = rest.pop();
      const Board promoting = promotes_from(from, allowed);
      add_slide<kUp>(from, all, allowed, promoting, out);
      add_slide<kLeft>(from, all, allowed, promoting, out);
      add_slide<kRight>(from, all, allowed, promoting, out);
      add_slide<kDown>(from, all, allowed, promoting, out);
    }
    for (Board rest = own.bishop; rest.any();) {
      const int from = rest.pop();
      const Board promoting = promotes_from(from, allowed);
      add_slide<kUpLeft>(from, all, allowed, promoting, out);
      add_slide<kUpRight>(from, all, allowed, promoting, out);
      add_slide<kDownLeft>(from, all, allowed, promoting, out);
      add_slide<kDownRight>(from, all, allowed, promoting, out);
    }
  }

  // Where a rook or bishop may promote on arrival.
  SPARRING_FN Board promotes_from(int from, Board allowed) const {
    if (promoted.has(from)) return Board::none();
    return kZone.has(from) ? allowed : allowed & kZone;
  }

  template <int D>
  SPARRING_FN static void add_slide(int from, Board all, Board allowed, Board promoting,
                                    Targets& out) {
    const Board reached = slide<D>(from, all);
    out.of[D] |= reached & allowed;
    out.of[kPromote + D] |= reached & promoting;
  }

  // Moves on the board of everything but the king; a pinned piece stays on its line.
  SPARRING_FN void add_board_moves(const Safety& safe, Targets& out) const {
    const int at = king[kOwn];
    Board set = side[kOwn] - safe.pinned - Board::of(at), allowed = safe.allowed;
    for (Board rest = safe.pinned;;) {
      add_moves(set, allowed, out);
      if (!rest.any()) return;
      const int from = rest.pop();
      set = Board::of(from);
      allowed = safe.allowed & kLine.ray[direction_of(at, from)][at];
    }
  }

  // Drops on empty squares, in check between king and checker (section 3.6, steps 8 and 9).
  SPARRING_FN void add_drops(const Safety& safe, Targets& out) const {
    const Board free = safe.allowed - occupied();
    const u8* held = hand[kOwn];
    if (held[kPawn]) {
      const Board squares = (free - kRankA) & files_without(own_pawns());
      out.of[kDrop + kPawn] = squares;
      const int front = king[kOther] + 1;
      if (front <= kLastSquare && squares.has(front) && king[kOther] % kSide != kSide - 1 &&
          mates_by_pawn(front))
        out.of[kDrop + kPawn] = squares - Board::of(front);
    }
    if (held[kLance]) out.of[kDrop + kLance] = free - kRankA;
    if (held[kKnight]) out.of[kDrop + kKnight] = free - kTopTwo;
    for (int k = kSilver; k <= kGold; ++k)
      if (held[k]) out.of[kDrop + k] = free;
  }

  SPARRING_FN Board own_pawns() const { return (side[kOwn] & kind[kPawn]) - promoted; }

  // All squares of the files that have none of the pawns. A file is nine neighboring bits: adding
  // eight ones to the pawns above rank i carries into the bit of rank i where there is any, and
  // never further. The bits that stay 0 are then spread over their files.
  SPARRING_FN static Board files_without(Board pawns) {
    const Board ends = kRankI - (plus(pawns - kRankI, kAll - kRankI) | pawns);
    return ends | minus(ends, shifted<-8>(ends));
  }
  SPARRING_FN static Board plus(Board a, Board b) {
    const u64 low = a.low + b.low;
    return {low, a.high + b.high + (low < a.low)};
  }
  SPARRING_FN static Board minus(Board a, Board b) {
    return {a.low - b.low, a.high - b.high - (a.low < b.low)};
  }

  // Whether a pawn dropped in front of the other king leaves no answer (section 1.6). The checker
  // stands next to the king, so that only the king and captures can answer.
  SPARRING_APART SPARRING_FN bool mates_by_pawn(int front) const {
    Position after = *this;
    after.make(kDrop + kPawn, front);
    if (after.king_targets().any()) return false;
    Targets answers{};
    after.add_board_moves(after.safety(), answers);
    return !answers.any();
  }

  SPARRING_FN void add_all(const Safety& safe, Targets& out) const {
    add_king_moves(out);
    if (!safe.allowed.any()) return;
    add_board_moves(safe, out);
    add_drops(safe, out);
  }

  SPARRING_FN Targets targets(const Safety& safe) const {
    Targets out{};
    add_all(safe, out);
    return out;
  }

  // Nearly always some free piece can step ahead; the whole answer is worked out only if not.
  SPARRING_FN bool can_move(const Safety& safe) const {
    if (!safe.in_check) {
      const Forces own = forces(side[kOwn] - safe.pinned);
      const Board ahead = stepped<kUp>(own.pawn | own.silver | own.gold | own.horse);
      if ((ahead - side[kOwn]).any()) return true;
    }
    return targets(safe).any();
  }

  // Where a move started: the nearest own piece against the direction of movement.
  SPARRING_FN int origin(int label, int to) const {
    const int d = label >= kPromote ? label - kPromote : label;
    if (d >= kKnightLeft) return to - kDelta[d];
    const int back = kOpposite[d];
    const Board met = side[kOwn] & kLine.ray[back][to];
    return kDelta[back] > 0 ? met.first() : met.last();
  }

  // Plays a legal move and turns the board to the other side. The caller keeps `in_check`.
  SPARRING_FN Change make(int label, int to) {
    const Board at = Board::of(to);
    Change change{};
    change.to = static_cast<u8>(to);
    change.captured = kNoKind;
    if (label >= kDrop) {
      change.drop = true;
      change.kind = static_cast<u8>(label - kDrop);
      --hand[kOwn][change.kind];
      kind[change.kind] |= at;
      side[kOwn] |= at;
    } else {
      move_piece(label, at, change);
    }
    turn();
    return change;
  }

  SPARRING_FN void move_piece(int label, Board at, Change& change) {
    const int from = origin(label, change.to);
    const Board start = Board::of(from), both = start | at;
    change.from = static_cast<u8>(from);
    if (side[kOther].has(change.to)) capture(at, change);
    change.kind = static_cast<u8>(kind_at(from));
    change.promotes = label >= kPromote;
    change.was_promoted = promoted.has(from);
    side[kOwn] ^= both;
    promoted = promoted - start;
    if (change.promotes || change.was_promoted) promoted |= at;
    if (change.kind == kKing)
      king[kOwn] = change.to;
    else
      kind[change.kind] ^= both;
  }

  SPARRING_FN void capture(Board at, Change& change) {
    change.captured = static_cast<u8>(kind_at(change.to));
    change.captured_promoted = promoted.has(change.to);
    side[kOther] ^= at;
    kind[change.captured] ^= at;
    promoted = promoted - at;
    ++hand[kOwn][change.captured];
  }

  // The same position seen by the other side, which is now to move.
  SPARRING_FN void turn() {
    const Board own = side[kOwn].rotated();
    side[kOwn] = side[kOther].rotated();
    side[kOther] = own;
    for (Board& board : kind) board = board.rotated();
    promoted = promoted.rotated();
    for (int k = 0; k < 8; ++k) {
      const u8 kept = hand[kOwn][k];
      hand[kOwn][k] = hand[kOther][k];
      hand[kOther][k] = kept;
    }
    const u8 kept = king[kOwn];
    king[kOwn] = static_cast<u8>(kLastSquare - king[kOther]);
    king[kOther] = static_cast<u8>(kLastSquare - kept);
    mover ^= 1;
  }
};

static_assert(sizeof(Position) == 184, "a position has no padding");

}  // namespace sparring::shogi
