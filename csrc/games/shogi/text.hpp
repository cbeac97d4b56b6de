// Shogi as text: SFEN positions, USI moves, and the counts of legal move sequences that verify
// them. Host only.
#pragma once

#include "games/shogi/position.hpp"

#if SPARRING_HOST
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

namespace sparring::shogi {

inline constexpr const char* kStart =
    "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1";
inline constexpr char kLetters[] = "PLNSBRGK";                               // by Kind
inline constexpr u8 kHandOrder[kKinds] = {kRook,   kBishop, kGold, kSilver,  // of SFEN
                                          kKnight, kLance,  kPawn};

// The largest move number that is read; longer games are written with it.
inline constexpr int kMaxNumber = 65535, kMaxNumberDigits = 5;

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A piece's letter as Kind, kNoKind if there is no such piece.
inline int kind_of(char letter) {
  const std::string letters = kLetters;
  const size_t at =
      letters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(letter))));
  return at == std::string::npos ? static_cast<int>(kNoKind) : static_cast<int>(at);
}

inline std::string square_name(int square) {
  return {static_cast<char>('1' + square / kSide), static_cast<char>('a' + square % kSide)};
}

// A square of the mover's view in the coordinates of the board, and back.
inline int absolute_square(const Position& position, int square) {
  return position.mover == kBlack ? square : kLastSquare - square;
}

inline std::string usi_of(const Position& position, int action) {
  const int label = action / kSquares, to = action % kSquares;
  const std::string arrival = square_name(absolute_square(position, to));
  if (label >= kDrop) return std::string{kLetters[label - kDrop], '*'} + arrival;
  const int from = absolute_square(position, position.origin(label, to));
  return square_name(from) + arrival + (label >= kPromote ? "+" : "");
}

// Why no game can go on from a position whose pieces are in order; null if one can.
inline const char* why_unplayable(Position at) {
  if (kLine.near[at.king[kOwn]].has(at.king[kOther])) return "the kings touch";
  for (int turns = 0; turns < 2; ++turns) {
    const Forces own = at.forces(at.side[kOwn]);
    if ((((own.pawn | own.lance) & kRankA) | (own.knight & kTopTwo)).any())
      return "a piece stands where it can never move again";
    for (Board pawns = own.pawn; pawns.any();)
      if ((kLine.ray[kUp][pawns.pop()] & own.pawn).any()) return "a side has two pawns on one file";
    at.turn();
    if (turns == 0 && at.safety().in_check) return "the side that is not to move is in check";
  }
  return nullptr;
}

// One position read from SFEN, with the number of its move.
struct Sfen {
  Position position;
  int number;              // the move that comes next, from 1
  std::string wrong;       // why the text is no position; "" if it is one
  std::string unplayable;  // why no game can go on from it, as in some composed positions
};

// Reads the four fields one after the other; `wrong` says what stopped it.
class SfenReader {
 public:
  static Sfen read(const std::string& text) {
    SfenReader reader;
    reader.read_fields(text);
    return reader.sfen_;
  }

 private:
  Sfen sfen_{};
  int kings_[2] = {};

  bool stop(const std::string& why) {
    sfen_.wrong = why;
    return false;
  }

  void read_fields(const std::string& text) {
    std::istringstream in(text);
    std::string board, side, hands, number, more;
    in >> board >> side >> hands >> number >> more;
    if (hands.empty() || !more.empty()) {
      stop("an SFEN has the fields board, side, hands and a number: '" + text + "'");
      return;
    }
    if (!read_board(board) || !read_hands(hands) || !read_number(number)) return;
    if (side != "b" && side != "w") {
      stop("the side to move must be b or w, not '" + side + "'");
      return;
    }
    check_pieces();
    if (!sfen_.wrong.empty()) return;
    if (side == "w") sfen_.position.turn();
    check_playable();
  }

  bool read_board(const std::string& board) {
    int rank = 0, file = kSide - 1;
    bool promote = false;
    for (const char c : board) {
      if (c == '/') {
        if (file != -1 || promote) return stop("rank " + rank_name(rank) + " has not nine squares");
        ++rank;
        file = kSide - 1;
      } else if (c == '+') {
        if (promote) return stop("a + stands before a + on rank " + rank_name(rank));
        promote = true;
      } else if (c >= '1' && c <= '9' && !promote) {
        file -= c - '0';
      } else {
        if (file < 0 || rank >= kSide) return stop("rank " + rank_name(rank) + " is too long");
        if (!put(c, file * kSide + rank, promote)) return false;
        promote = false;
        --file;
      }
      if (file < -1) return stop("rank " + rank_name(rank) + " is too long");
    }
    if (rank != kSide - 1 || file != -1 || promote)
      return stop("a board has nine ranks of nine squares: '" + board + "'");
    return true;
  }

  static std::string rank_name(int rank) { return {static_cast<char>('a' + rank)}; }

  bool put(char letter, int square, bool promote) {
    Position& at = sfen_.position;
    const int kind = kind_of(letter);
    if (kind == kNoKind) return stop(std::string("there is no piece '") + letter + "'");
    if (promote && (kind == kGold || kind == kKing))
      return stop(std::string("'") + letter + "' does not promote");
    const int color = std::isupper(letter) ? kBlack : kWhite;
    at.side[color] |= Board::of(square);
    if (promote) at.promoted |= Board::of(square);
    if (kind == kKing) {
      ++kings_[color];
      at.king[color] = static_cast<u8>(square);
    } else {
      at.kind[kind] |= Board::of(square);
    }
    return true;
  }

  bool read_hands(const std::string& hands) {
    if (hands == "-") return true;
    int count = 0;
    for (const char c : hands) {
      if (is_digit(c)) {
        if (c == '0' && count == 0)
          return stop("a count in the hands begins with 0: '" + hands + "'");
        count = 10 * count + (c - '0');
        if (count > kPieceTotal[kPawn]) return stop("too many pieces in hand: '" + hands + "'");
        continue;
      }
      const int kind = kind_of(c);
      if (kind >= kKinds) return stop(std::string("'") + c + "' cannot be in hand");
      u8& held = sfen_.position.hand[std::isupper(c) ? kBlack : kWhite][kind];
      held = static_cast<u8>(min(held + max(count, 1), 2 * kPieceTotal[kPawn]));
      count = 0;
    }
    return count == 0 || stop("a count in the hands stands before no piece: '" + hands + "'");
  }

  bool read_number(const std::string& number) {
    sfen_.number = 1;
    if (number.empty()) return true;
    for (const char c : number)
      if (!is_digit(c)) return stop("the move number must be digits, not '" + number + "'");
    if (number.size() > kMaxNumberDigits || std::stoi(number) > kMaxNumber)
      return stop("the move number " + number + " is above " + std::to_string(kMaxNumber));
    sfen_.number = max(1, std::stoi(number));
    return true;
  }

  // Still seen by Black.
  void check_pieces() {
    if (kings_[kBlack] != 1 || kings_[kWhite] != 1) stop("each side needs exactly one king");
    const Position& at = sfen_.position;
    for (int k = 0; k < kKinds; ++k) {
      if (at.kind[k].count() + at.hand[kBlack][k] + at.hand[kWhite][k] > kPieceTotal[k])
        stop(std::string("there are more pieces ") + kLetters[k] + " than the box holds");
    }
  }

  void check_playable() {
    sfen_.position.in_check = sfen_.position.safety().in_check;
    if (const char* why = why_unplayable(sfen_.position)) sfen_.unplayable = why;
  }
};

inline std::string piece_name(const Position& black_view, int square) {
  const bool black = black_view.side[kBlack].has(square);
  const char letter = kLetters[black_view.kind_at(square)];
  const char cased = black ? letter : static_cast<char>(std::tolower(letter));
  return std::string(black_view.promoted.has(square) ? "+" : "") + cased;
}

inline std::string hands_name(const Position& black_view) {
  std::string text;
  for (int color = kBlack; color <= kWhite; ++color) {
    for (const int k : kHandOrder) {
      const int held = black_view.hand[color][k];
      if (held == 0) continue;
      if (held > 1) text += std::to_string(held);
      text += color == kBlack ? kLetters[k] : static_cast<char>(std::tolower(kLetters[k]));
    }
  }
  return text.empty() ? "-" : text;
}

inline std::string sfen_of(Position position, int number) {
  const bool black = position.mover == kBlack;
  if (!black) position.turn();
  std::string text;
  for (int rank = 0; rank < kSide; ++rank) {
    if (rank) text += '/';
    int empty = 0;
    for (int file = kSide - 1; file >= 0; --file) {
      const int square = file * kSide + rank;
      if (!position.occupied().has(square)) {
        ++empty;
        continue;
      }
      if (empty) text += std::to_string(empty);
      empty = 0;
      text += piece_name(position, square);
    }
    if (empty) text += std::to_string(empty);
  }
  return text + (black ? " b " : " w ") + hands_name(position) + ' ' +
         std::to_string(min(number, kMaxNumber));
}

inline std::vector<int> actions_of(const Targets& targets) {
  std::vector<int> actions;
  for (int label = 0; label < kLabels; ++label)
    for (Board rest = targets.of[label]; rest.any();)
      actions.push_back(label * kSquares + rest.pop());
  return actions;
}

// Legal sequences of `depth` moves. The last move is counted, not made.
inline u64 perft(const Position& position, int depth) {
  if (depth == 0) return 1;
  const Targets targets = position.targets(position.safety());
  if (depth == 1) return static_cast<u64>(targets.count());
  u64 total = 0;
  for (int label = 0; label < kLabels; ++label) {
    for (Board rest = targets.of[label]; rest.any();) {
      Position after = position;
      after.make(label, rest.pop());
      total += perft(after, depth - 1);
    }
  }
  return total;
}

}  // namespace sparring::shogi
#endif  // SPARRING_HOST
