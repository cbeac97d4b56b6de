// Sets of squares of the 9x9 board, steps and slides of whole sets. Everything is seen by the side
// to move, which plays toward rank a; square = 9 * (file - 1) + rank with rank a = 0.
#pragma once

#include "core/fn.hpp"

#if defined(__aarch64__) && !defined(__CUDACC__)
#include <arm_acle.h>
#endif

namespace sparring::shogi {

inline constexpr int kSquares = 81, kLastSquare = 80, kSide = 9;

SPARRING_FN inline u64 reverse_bits(u64 x) {
#if defined(__CUDA_ARCH__)
  return __brevll(x);
#elif defined(__aarch64__) && !defined(__CUDACC__)
  return __rbitll(x);
#else
  x = (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
  x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
  x = (x >> 8 & 0x00ff00ff00ff00ffull) | (x & 0x00ff00ff00ff00ffull) << 8;
  x = (x >> 16 & 0x0000ffff0000ffffull) | (x & 0x0000ffff0000ffffull) << 16;
  return x >> 32 | x << 32;
#endif
}

// A set of squares; bit number = square. The bits above square 80 are always 0.
struct Board {
  u64 low, high;

  SPARRING_FN static constexpr Board none() { return {0, 0}; }
  SPARRING_FN static constexpr Board of(int square) {
    const u64 bit = u64{1} << (square & 63);
    return {square < 64 ? bit : 0, square < 64 ? 0 : bit};
  }

  SPARRING_FN constexpr bool any() const { return (low | high) != 0; }
  SPARRING_FN constexpr bool has(int square) const {
    return ((square < 64 ? low : high) >> (square & 63)) & 1;
  }
  SPARRING_FN constexpr bool has_one() const {
    return low ? !(low & (low - 1)) && !high : high && !(high & (high - 1));
  }
  SPARRING_FN int count() const { return popcount(low) + popcount(high); }
  SPARRING_FN int first() const { return low ? lowest_bit(low) : 64 + lowest_bit(high); }
  SPARRING_FN int last() const { return high ? 64 + highest_bit(high) : highest_bit(low); }
  // Removes and returns the lowest square; the set must not be empty.
  SPARRING_FN int pop() {
    if (low) {
      const int square = lowest_bit(low);
      low &= low - 1;
      return square;
    }
    const int square = 64 + lowest_bit(high);
    high &= high - 1;
    return square;
  }

  // The set as the other side sees it: square s becomes 80 - s.
  SPARRING_FN Board rotated() const {
    constexpr int kUnused = 128 - kSquares;
    const u64 a = reverse_bits(high), b = reverse_bits(low);
    return {a >> kUnused | b << (64 - kUnused), b >> kUnused};
  }

  SPARRING_FN friend constexpr Board operator&(Board a, Board b) {
    return {a.low & b.low, a.high & b.high};
  }
  SPARRING_FN friend constexpr Board operator|(Board a, Board b) {
    return {a.low | b.low, a.high | b.high};
  }
  SPARRING_FN friend constexpr Board operator^(Board a, Board b) {
    return {a.low ^ b.low, a.high ^ b.high};
  }
  // Squares of a that are not in b.
  SPARRING_FN friend constexpr Board operator-(Board a, Board b) {
    return {a.low & ~b.low, a.high & ~b.high};
  }
  SPARRING_FN friend constexpr bool operator==(Board a, Board b) {
    return a.low == b.low && a.high == b.high;
  }
  SPARRING_FN constexpr Board& operator|=(Board b) { return *this = *this | b; }
  SPARRING_FN constexpr Board& operator&=(Board b) { return *this = *this & b; }
  SPARRING_FN constexpr Board& operator^=(Board b) { return *this = *this ^ b; }
};

SPARRING_FN constexpr Board rank_board(int rank) {
  Board all{};
  for (int file = 0; file < kSide; ++file) all |= Board::of(file * kSide + rank);
  return all;
}

inline constexpr Board kAll = {~u64{0}, (u64{1} << (kSquares - 64)) - 1};
inline constexpr Board kRankA = rank_board(0), kRankI = rank_board(8);
inline constexpr Board kTopTwo = kRankA | rank_board(1), kBottomTwo = rank_board(7) | kRankI;
inline constexpr Board kZone = kTopTwo | rank_board(2);  // where the side to move promotes

// Directions of movement, in the order of the action labels. Left is toward higher files.
enum Direction {
  kUp,
  kUpLeft,
  kUpRight,
  kLeft,
  kRight,
  kDown,
  kDownLeft,
  kDownRight,
  kKnightLeft,
  kKnightRight,
  kDirections
};
inline constexpr int kLines = 8;  // directions that slide: all but the knight's
inline constexpr int kDelta[kDirections] = {-1, 8, -10, 9, -9, 1, 10, -8, 7, -11};
inline constexpr int kFileStep[kLines] = {0, 1, -1, 1, -1, 0, 1, -1};
inline constexpr int kRankStep[kLines] = {-1, -1, -1, 0, 0, 1, 1, 1};
inline constexpr int kOpposite[kLines] = {kDown, kDownRight, kDownLeft, kRight,
                                          kLeft, kUp,        kUpRight,  kUpLeft};

template <int Delta>
SPARRING_FN constexpr Board shifted(Board x) {
  if constexpr (Delta > 0)
    return Board{x.low << Delta, x.high << Delta | x.low >> (64 - Delta)} & kAll;
  else
    return {x.low >> -Delta | x.high << (64 + Delta), x.high >> -Delta};
}

// All pieces of the set go one step; those that would leave the board vanish.
template <int D>
SPARRING_FN constexpr Board stepped(Board x) {
  if constexpr (D >= kKnightLeft)
    x = x - kTopTwo;
  else if constexpr (kRankStep[D] < 0)
    x = x - kRankA;
  else if constexpr (kRankStep[D] > 0)
    x = x - kRankI;
  return shifted<kDelta[D]>(x);
}

// Where the other side's knights jump to.
SPARRING_FN constexpr Board knights_down(Board x) {
  x = x - kBottomTwo;
  return shifted<11>(x) | shifted<-7>(x);
}

// What only depends on the square.
struct Lines {
  Board ray[kLines][kSquares];  // all squares in a direction, to the edge
  Board cross[kSquares];        // the four straight rays
  Board diagonal[kSquares];     // the four slanting rays
  Board near[kSquares];         // the neighbors
};

constexpr Lines make_lines() {
  Lines lines{};
  for (int d = 0; d < kLines; ++d) {
    for (int square = 0; square < kSquares; ++square) {
      int file = square / kSide + kFileStep[d], rank = square % kSide + kRankStep[d];
      for (int steps = 0; file >= 0 && file < kSide && rank >= 0 && rank < kSide; ++steps) {
        const Board at = Board::of(file * kSide + rank);
        lines.ray[d][square] |= at;
        if (steps == 0) lines.near[square] |= at;
        file += kFileStep[d];
        rank += kRankStep[d];
      }
      Board& wide = kFileStep[d] && kRankStep[d] ? lines.diagonal[square] : lines.cross[square];
      wide |= lines.ray[d][square];
    }
  }
  return lines;
}

inline constexpr Lines kLine = make_lines();

// Squares a slider reaches in one direction, the first occupied one included.
template <int D>
SPARRING_FN inline Board slide(int from, Board occupied) {
  const Board ray = kLine.ray[D][from];
  const Board met = occupied & ray;
  if constexpr (kDelta[D] > 0) {  // all bits up to the lowest one that is set
    const Board less = {met.low - 1, met.high - (met.low == 0)};
    return ray & (met ^ less);
  } else {  // all bits down to the highest one that is set
    return ray & Board{met.high ? 0 : ~u64{0} << highest_bit(met.low | 1),
                       ~u64{0} << highest_bit(met.high | 1)};
  }
}

// The direction from one square to another on the same line.
SPARRING_FN inline int direction_of(int from, int to) {
  const int files = to / kSide - from / kSide, ranks = to % kSide - from % kSide;
  const int across = files > 0 ? 1 : files < 0 ? 2 : 0;  // straight, left, right
  return ranks < 0 ? kUp + across : ranks > 0 ? kDown + across : kLeft - 1 + across;
}

// The squares strictly between two squares of one line.
SPARRING_FN inline Board between(int a, int b) {
  const int d = direction_of(a, b);
  return kLine.ray[d][a] & kLine.ray[kOpposite[d]][b];
}

// Word `Word` of a row of bits that has 81 for each board, one board after the other.
template <int Word, int Count>
SPARRING_FN constexpr u64 packed_word(const Board* boards) {
  constexpr int kFirst = 64 * Word / kSquares, kSkip = 64 * Word % kSquares;
  const Board first = boards[kFirst];
  u64 word;
  if constexpr (kSkip >= 64)
    word = first.high >> (kSkip - 64);
  else if constexpr (kSkip > 0)
    word = first.low >> kSkip | first.high << (64 - kSkip);
  else
    word = first.low;
  if constexpr (kSquares - kSkip < 64 && kFirst + 1 < Count)
    word |= boards[kFirst + 1].low << (kSquares - kSkip);
  return word;
}

// Writes `Count` boards end to end. Every shift is known when this is compiled, and every word is
// written once.
template <int Count, int Word = 0>
SPARRING_FN constexpr void pack_boards(const Board* boards, u64* words) {
  words[Word] = packed_word<Word, Count>(boards);
  if constexpr (64 * (Word + 1) < Count * kSquares) pack_boards<Count, Word + 1>(boards, words);
}

}  // namespace sparring::shogi
