// Telling positions apart: a key per position, kept up to date move by move, and the memory of
// the positions of a game outside the game's struct.
#pragma once

#include "games/shogi/position.hpp"

namespace sparring::shogi {

// The numbers behind the keys (section 3.4) are computed, not stored: a GPU thread has no room.
SPARRING_FN constexpr u64 mixed(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

inline constexpr int kPieceCodes = 15, kKingCode = 14, kHandCounts = 19;
inline constexpr int kFirstHand = 1 + 2 * kPieceCodes * kSquares;
inline constexpr u64 kWhiteKey = mixed(kFirstHand + 2 * kKinds * kHandCounts);

SPARRING_FN constexpr int piece_code(int kind, bool promoted) {
  return kind == kKing ? kKingCode : kind + (promoted ? kKinds : 0);
}

// The square is that of the board, whoever looks at it.
SPARRING_FN constexpr u64 piece_key(int color, int code, int square) {
  return mixed(static_cast<u64>(1 + (color * kPieceCodes + code) * kSquares + square));
}

SPARRING_FN constexpr u64 hand_key(int color, int kind, int count) {
  if (count == 0) return 0;
  return mixed(static_cast<u64>(kFirstHand + (color * kKinds + kind) * kHandCounts + count));
}

// The key of a position from nothing.
SPARRING_FN inline u64 key_of(const Position& position) {
  u64 key = position.mover == kWhite ? kWhiteKey : 0;
  for (int who = 0; who < 2; ++who) {
    const int color = position.mover ^ who;
    for (Board rest = position.side[who]; rest.any();) {
      const int square = rest.pop();
      const int code = piece_code(position.kind_at(square), position.promoted.has(square));
      key ^= piece_key(color, code, position.mover == kBlack ? square : kLastSquare - square);
    }
    for (int k = 0; k < kKinds; ++k) key ^= hand_key(color, k, position.hand[who][k]);
  }
  return key;
}

// By what the key changes with a move; `after` is the position that it led to.
SPARRING_FN inline u64 key_change(const Position& after, const Change& change) {
  const int color = after.mover ^ 1;
  const u8* held = after.hand[kOther];
  const auto square = [&](int s) { return color == kBlack ? s : kLastSquare - s; };
  const int to = square(change.to);
  const bool promoted = change.promotes || change.was_promoted;
  u64 key = kWhiteKey ^ piece_key(color, piece_code(change.kind, promoted), to);
  if (change.drop)
    return key ^ hand_key(color, change.kind, held[change.kind]) ^
           hand_key(color, change.kind, held[change.kind] + 1);
  key ^= piece_key(color, piece_code(change.kind, change.was_promoted), square(change.from));
  if (change.captured != kNoKind)
    key ^= piece_key(after.mover, piece_code(change.captured, change.captured_promoted), to) ^
           hand_key(color, change.captured, held[change.captured]) ^
           hand_key(color, change.captured, held[change.captured] - 1);
  return key;
}

// Earlier occurrences of a position, and how many plies ago the third last one was.
struct Repeats {
  int count, distance;
};

// The keys of the last positions, in the extra state. No move of shogi is irreversible, so nothing
// can be forgotten at captures; a filter of 2,048 bits spares nearly all searches. It starts empty
// with the first key and never forgets, which costs a search now and then and no correctness.
class Memory {
 public:
  static constexpr int kFilterWords = 32;

  SPARRING_FN static constexpr int bytes(int positions) { return 8 * (kFilterWords + positions); }

  SPARRING_FN Memory(u8* extra, int positions)
      : filter_(reinterpret_cast<u64*>(extra)),
        keys_(filter_ + kFilterWords),
        positions_(positions) {}

  // Asks for the filter early: with many games it lies far away, and a move takes a while.
  SPARRING_FN void fetch() const {
#if SPARRING_HOST && !defined(__CUDA_ARCH__)
    for (int w = 0; w < kFilterWords; w += 8) __builtin_prefetch(filter_ + w);
#endif
  }

  // Adds the key of the position number `at` of the game.
  SPARRING_FN void add(u64 key, int at) {
    if (at == 0) zero_bytes(filter_, 8 * kFilterWords);
    filter_[word(key)] |= bits(key);
    keys_[at % positions_] = key;
  }

  // Whether the filter knows the keys that are left of the positions before number `at`.
  SPARRING_FN bool is_whole(int at) const {
    for (int i = max(0, at - positions_); i < at; ++i)
      if (!may_have(keys_[i % positions_])) return false;
    return true;
  }

  // Looks for the key of position number `at`, which was not added. The side to move is part of a
  // position, and no position returns after two plies.
  SPARRING_FN Repeats find(u64 key, int at) const {
    Repeats found{};
    if (!may_have(key)) return found;
    const int oldest = min(at, positions_);
    int place = at % positions_ - 4;
    for (int distance = 4; distance <= oldest && found.count < 3; distance += 2, place -= 2) {
      if (place < 0) place += positions_;
      if (keys_[place] == key) found = {found.count + 1, distance};
    }
    return found;
  }

 private:
  SPARRING_FN static int word(u64 key) { return static_cast<int>(key >> 6) & (kFilterWords - 1); }
  // Two bits of the word; other bits of the key choose the word.
  SPARRING_FN static u64 bits(u64 key) { return u64{1} << (key & 63) | u64{1} << (key >> 32 & 63); }

  SPARRING_FN bool may_have(u64 key) const { return (filter_[word(key)] & bits(key)) == bits(key); }

  u64* filter_;
  u64* keys_;
  int positions_;
};

}  // namespace sparring::shogi
