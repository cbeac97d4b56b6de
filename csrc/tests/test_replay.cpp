// The sum tree against a naive one over a million operations, how often leaves are drawn, powers,
// and a ring small enough to follow by hand.
#include <cmath>
#include <vector>

#include "core/replay.hpp"
#include "tests/check.hpp"

using namespace sparring;

struct Tree {
  std::vector<u32> leaf;
  std::vector<u64> sums;
  SumTree view;

  explicit Tree(int leaves)
      : leaf(static_cast<size_t>(leaves)), sums(static_cast<size_t>(tree_sums(leaves))) {
    view = {leaves, leaf.data(), sums.data()};
  }

  void put(int at, u32 weight) {
    leaf[static_cast<size_t>(at)] = weight;
    for (int level = 1; level <= tree_height(view.leaves); ++level)
      sum_node(view, tree_level(view.leaves, level), node_above(at, level));
  }
};

int naive_find(const std::vector<u32>& leaf, u64 point) {
  size_t at = 0;
  while (point >= leaf[at]) point -= leaf[at++];
  return static_cast<int>(at);
}

// Half of the operations change a weight, half of them look for a point.
void check_against_naive(int leaves, int operations) {
  Tree tree(leaves);
  std::vector<u32> naive(static_cast<size_t>(leaves));
  u64 total = 0;
  Rng rng(7, static_cast<u32>(leaves), 0, Stream::kReplay);
  for (int i = 0; i < operations; ++i) {
    if (i % 2 == 0 || total == 0) {
      const int at = rng.below(leaves);
      const u32 weight = rng.below(4) ? rng.next() >> rng.below(32) : 0;
      total += weight;
      total -= naive[static_cast<size_t>(at)];
      naive[static_cast<size_t>(at)] = weight;
      tree.put(at, weight);
      CHECK(tree_total(tree.view) == total);
    } else {
      const u64 point = below_64(total, rng);
      CHECK(find_leaf(tree.view, point) == naive_find(naive, point));
    }
  }
}

// Chi-square of how often leaves are drawn; one of weight 0 never is.
void check_distribution() {
  constexpr int kLeaves = 1000, kDraws = 400000;
  Tree tree(kLeaves);
  for (int i = 0; i < kLeaves; ++i) tree.put(i, static_cast<u32>(i % 10 * (i % 10) * 5000));
  std::vector<int> found(kLeaves);
  for (int i = 0; i < kDraws; ++i) {
    Rng rng = sample_rng(3, i, 11);
    ++found[static_cast<size_t>(draw_leaf(tree.view, rng))];
  }
  f64 chi_square = 0;
  int kinds = 0;
  for (size_t i = 0; i < kLeaves; ++i) {
    const f64 expected =
        static_cast<f64>(tree.leaf[i]) * kDraws / static_cast<f64>(tree_total(tree.view));
    if (expected == 0) {
      CHECK_EQUAL(found[i], 0);
      continue;
    }
    chi_square += (found[i] - expected) * (found[i] - expected) / expected;
    ++kinds;
  }
  const f64 freedom = kinds - 1;
  CHECK(std::abs(chi_square - freedom) < 4 * std::sqrt(2 * freedom));
}

void check_powers() {
  for (f64 base = 1e-8; base < 1e8; base *= 1.037)
    for (const f64 exponent : {0.1, 0.6, 1.0}) {
      const f64 wanted = std::pow(base, exponent);
      CHECK(std::abs(power_of(base, exponent) - wanted) < 1e-9 * wanted);
    }
  CHECK(power_of(0, 0) == 1 && power_of(0, 0.5) == 0 && power_of(1, 0.6) == 1);
  CHECK(weight_of(1, 0.6f) == kOne && weight_of(-1, 0.6f) == kOne && weight_of(0, 0.6f) == 1);
  CHECK(weight_of(1e30f, 1) == ~u32{0} && weight_of(NAN, 0.6f) >= 1);
  CHECK(correction_of(8, 2, 0.5f) == 0.5f && correction_of(8, 2, 0) == 1);
}

// Six entries: 0 and 2 are followed by 1 and 3, 1 by 4, which is open; 3 ends the game; 5 is the
// last row after 2 was cut instead.
void check_follow() {
  std::vector<u8> end = {kToNext, kToNext, kToNext, kTerminated, kNotASample, kNotASample};
  std::vector<i32> next = {1, 4, 3, 3, 4, 5};
  std::vector<f32> reward = {1, 2, 4, 8, 0, 0}, discount = {0.5f, 0.25f, 0.5f, 0, 0, 0};
  RingView ring{};
  ring.capacity = 6;
  ring.end = end.data();
  ring.next = next.data();
  ring.reward = reward.data();
  ring.discount = discount.data();
  const auto check = [&](int index, int n, f32 sum, f32 factor, int after) {
    const NStepReturn found = n_step_return(ring, index, n);
    CHECK(found.reward == sum && found.discount == factor && found.index == after);
  };
  check(0, 1, 1, 0.5f, 1);
  check(0, 2, 2, 0.125f, 4);
  check(0, 9, 2, 0.125f, 4);
  check(2, 1, 4, 0.5f, 3);
  check(2, 2, 8, 0, 3);
  end[2] = kTruncated;
  next[2] = 5;
  discount[2] = -0.5f;  // the other seat's value
  check(2, 3, 4, -0.5f, 5);
  // Entry 3 alone can be sampled: drawn until it comes up, or found behind what came up.
  end = {0, 0, 0, kTerminated, 0, 0};
  for (int i = 0; i < 100; ++i) {
    Rng rng = sample_rng(1, i, 0);
    CHECK_EQUAL(pick(ring, 2, 6, rng), 3);
  }
}

// One entry among very many: draws alone would not find it.
void check_rare() {
  std::vector<u8> end(1 << 20);
  end[4321] = kToNext;
  RingView ring{};
  ring.capacity = static_cast<int>(end.size());
  ring.end = end.data();
  Rng rng = sample_rng(1, 0, 0);
  CHECK_EQUAL(pick(ring, 77777, ring.capacity, rng), 4321);
}

void check_masks() {
  Rng rng(5, 0, 0, Stream::kReplay);
  for (int actions = 1; actions < 200; ++actions) {
    const size_t size = static_cast<size_t>(actions);
    std::vector<u8> mask(size), back(size, 9);
    for (u8& legal : mask) legal = static_cast<u8>(rng.below(2));
    std::vector<u64> words;
    for (int first = 0; first < actions; first += 64)
      words.push_back(pack_mask(mask.data(), first, actions));
    unpack_mask(words.data(), actions, back.data());
    CHECK(mask == back);
  }
}

int main() {
  for (const int leaves : {1, 5, 16, 17, 256, 300, 4097}) check_against_naive(leaves, 143000);
  check_distribution();
  check_powers();
  check_follow();
  check_rare();
  check_masks();
}
