// Hidden information drawn anew: uniformly, or by a belief about who holds what.
//
// Cards that a seat has not seen are dealt uniformly, as a shuffle does. What the shuffle puts
// where it cannot be (a suit in the hand of a seat without that suit) is moved along chains of
// slots; then a Markov chain swaps cards. Its stationary distribution is the product of the weights
// over all deals that fit: hands keep their sizes, and forbidden places stay empty. The chain ends
// after kSweeps proposals for each card, so that far from the uniform deal a rest of it remains;
// tests hold both against enumerated deals. Without weights and forbidden places nothing but the
// shuffle happens.
//
// Everything is computed in a fixed order, without library functions: equal on all devices.
#pragma once

#include "core/bits.hpp"
#include "core/power.hpp"
#include "core/rng.hpp"

namespace sparring {

inline constexpr int kSweeps = 16, kMinMixed = 32;
// Weights are cut there: a belief forbids nothing, and the chain leaves every deal again.
inline constexpr f32 kMaxLogWeight = 12;

// A log-weight of a belief; what is not a number counts as very unlikely.
SPARRING_FN inline f32 log_weight(f32 given) {
  return given >= -kMaxLogWeight ? min(given, kMaxLogWeight) : -kMaxLogWeight;
}

SPARRING_FN inline f64 weight_of(f32 log_weight) {
  return exp2_of(static_cast<f64>(log_weight) * 1.4426950408889634);
}

// One of `count`, drawn by weights.
template <class Weight>
SPARRING_FN inline int draw_by_weight(int count, const Weight& weight, Rng& rng) {
  f64 sum = 0;
  SPARRING_FOR (int i = 0; i < count; ++i) sum += weight(i);
  f64 at = static_cast<f64>(rng.next()) * (1.0 / 4294967296.0) * sum;
  int chosen = -1;
  SPARRING_FOR (int i = 0; i < count; ++i) {
    if (weight(i) == 0) continue;
    chosen = i;
    at -= weight(i);
    if (at < 0) break;
  }
  return chosen;
}

// Unseen cards in slots; a slot belongs to a place (a hand, the stock), which never changes.
template <int N>
struct Deal {
  int count = 0;
  u8 card[N], place[N];

  SPARRING_FN void add(int new_card, int new_place) {
    card[count] = static_cast<u8>(new_card);
    place[count++] = static_cast<u8>(new_place);
  }

  SPARRING_FN void swap(int a, int b) {
    const u8 kept = card[a];
    card[a] = card[b];
    card[b] = kept;
  }

  SPARRING_FN void shuffle(Rng& rng) {
    SPARRING_FOR (int i = count; i > 1; --i) swap(i - 1, rng.below(i));
  }
};

// Moves the card of `slot` to a place where it may lie, and other cards on until one may lie in
// `slot`: the shortest such chain, found breadth first from a slot drawn at random. False if there
// is none, which no position that was played to has.
template <int N, class Allowed>
SPARRING_FN inline bool repair_slot(Deal<N>& deal, int slot, Rng& rng, const Allowed& allowed) {
  u8 queue[N], from[N];
  constexpr u8 kUnseen = 0xff;
  static_assert(N < kUnseen);
  SPARRING_FOR (int i = 0; i < deal.count; ++i) from[i] = kUnseen;
  from[slot] = queue[0] = static_cast<u8>(slot);
  const int offset = rng.below(deal.count);
  SPARRING_FOR (int head = 0, tail = 1; head < tail; ++head) {
    const int at = queue[head];
    SPARRING_FOR (int i = 0; i < deal.count; ++i) {
      const int to = i + offset < deal.count ? i + offset : i + offset - deal.count;
      if (from[to] != kUnseen || !allowed(deal.card[at], deal.place[to])) continue;
      from[to] = static_cast<u8>(at);
      queue[tail++] = static_cast<u8>(to);
      if (!allowed(deal.card[to], deal.place[slot])) continue;
      SPARRING_FOR (int end = to; end != slot; end = from[end]) deal.swap(end, from[end]);
      return true;
    }
  }
  return false;
}

// Swaps the card of one slot after another with that of a random slot, every fifth time in a turn
// of three, and keeps that by Metropolis' rule. Score has swap(deal, a, b), which swaps and returns
// by how much the log-weight of the deal rises.
template <int N, class Allowed, class Score>
SPARRING_FN inline void mix(Deal<N>& deal, Rng& rng, const Allowed& allowed, Score& score) {
  if (deal.count < 2) return;
  int at = 0;
  SPARRING_FOR (int left = kSweeps * max(deal.count, kMinMixed); left > 0; --left) {
    if (at == 0) at = deal.count;
    const int a = --at, b = rng.below(deal.count), c = left % 5 ? a : rng.below(deal.count);
    if (deal.place[a] == deal.place[b] || b == c) continue;
    f32 gain = score.swap(deal, a, b);
    if (c != a) gain += score.swap(deal, b, c);
    const auto fits = [&](int slot) { return allowed(deal.card[slot], deal.place[slot]); };
    if (fits(a) && fits(b) && fits(c) &&
        (gain >= 0 || static_cast<f64>(rng.uniform()) < weight_of(gain)))
      continue;
    if (c != a) score.swap(deal, b, c);
    score.swap(deal, a, b);
  }
}

// Draws a deal. restricted: whether there are forbidden places; weighted: whether `score` has
// weights.
template <int N, class Allowed, class Score>
SPARRING_FN inline void draw_deal(Deal<N>& deal, Rng& rng, bool restricted, const Allowed& allowed,
                                  bool weighted, Score& score) {
  deal.shuffle(rng);
  if (!restricted && !weighted) return;
  SPARRING_FOR (int slot = 0; restricted && slot < deal.count; ++slot)
    if (!allowed(deal.card[slot], deal.place[slot])) repair_slot(deal, slot, rng, allowed);
  mix(deal, rng, allowed, score);
}

}  // namespace sparring
