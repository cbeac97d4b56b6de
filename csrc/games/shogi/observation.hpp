// What a seat sees (section 5): 28 planes of pieces, hands and four numbers about the game. The
// compact row has the numbers once, the 46 planes repeat each on all squares.
#pragma once

#include "games/shogi.hpp"

namespace sparring::shogi {

inline constexpr int kSidePlanes = 14, kPiecePlanes = 2 * kSidePlanes, kHands = 2 * kKinds;
inline constexpr Feature kFactFeatures[] = {
    {"in check"}, {"occurrences", Type::kU8, 3}, {"moves", Type::kU8, 255}, {"black"}};
inline constexpr int kFacts = Section("facts", kFactFeatures).bytes();
SPARRING_FN consteval int fact_byte(const char* name) { return byte_of(kFactFeatures, name); }

inline constexpr int kPlanes = kPiecePlanes + kHands + kFacts;
inline constexpr int kPieceBytes = kPiecePlanes * kSquares;
inline constexpr int kCompactBytes = kPieceBytes + kHands + kFacts + 1;  // and whose turn it is
inline constexpr int kPlaneBytes = kPlanes * kSquares;

SPARRING_FN inline int Game::row_bytes(const Config& config) {
  const int bytes = config.observation == kCompact ? kCompactBytes : kPlaneBytes;
  return padded(bytes);
}

// The pieces of one side: P L N S B R G K, then the promoted ones.
SPARRING_FN inline void piece_planes(const Position& view, int who, Board* planes) {
  const Board of = view.side[who], plain = of - view.promoted, promoted = of & view.promoted;
  for (int k = 0; k < kKinds; ++k) planes[k] = plain & view.kind[k];
  planes[kKing] = Board::of(view.king[who]);
  for (int k = 0; k < kGold; ++k) planes[kKing + 1 + k] = promoted & view.kind[k];
}

// 28 sets of 81 bits end to end, then each bit as a byte.
SPARRING_FN inline void write_pieces(const Position& view, u8* SPARRING_RESTRICT out) {
  Board planes[kPiecePlanes];
  piece_planes(view, kOwn, planes);
  piece_planes(view, kOther, planes + kSidePlanes);
  Bits<kPieceBytes> all;
  pack_boards<kPiecePlanes>(planes, all.word);
  expand_bits(all, kPieceBytes, out);
}

SPARRING_FN inline void fill_plane(u8* SPARRING_RESTRICT out, u8 value) {
  const u64 eight = value * 0x0101010101010101ull;
  for (int i = 0; i + 8 <= kSquares; i += 8) store8(out + i, eight);
  out[kLastSquare] = value;
}

SPARRING_FN inline void Game::observe(const Config& config, int me, u8* out, const u8*) const {
  const bool to_move = me == position.mover;
  Position view = position;
  if (!to_move) view.turn();
  write_pieces(view, out);
  u8 numbers[kHands + kFacts];
  for (int k = 0; k < kKinds; ++k) {
    numbers[k] = view.hand[kOwn][k];
    numbers[kKinds + k] = view.hand[kOther][k];
  }
  u8* fact = numbers + kHands;
  fact[fact_byte("in check")] = to_move && position.in_check;
  fact[fact_byte("occurrences")] = repeats;
  fact[fact_byte("moves")] = static_cast<u8>(min(ply >> 1, 255));
  fact[fact_byte("black")] = me == kBlack;
  out += kPieceBytes;
  if (config.observation == kCompact) {
    copy_bytes(out, numbers, sizeof numbers);
    out[sizeof numbers] = to_move;
  } else {
    for (int i = 0; i < kHands + kFacts; ++i) fill_plane(out + i * kSquares, numbers[i]);
  }
}

}  // namespace sparring::shogi
