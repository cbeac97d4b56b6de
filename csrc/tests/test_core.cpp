// The generator, bit sets, rows of observations and the worker threads.
#include <atomic>
#include <vector>

#include "core/bits.hpp"
#include "core/describe.hpp"
#include "core/rng.hpp"
#include "core/thread_pool.hpp"
#include "tests/check.hpp"

using namespace sparring;

// Random123's published answers.
void philox_known_answers() {
  const PhiloxBlock zero = philox(0, 0, 0, 0, 0, 0);
  CHECK_EQUAL(zero.word[0], 0x6627e8d5u);
  CHECK_EQUAL(zero.word[1], 0xe169c58du);
  CHECK_EQUAL(zero.word[2], 0xbc57ac4cu);
  CHECK_EQUAL(zero.word[3], 0x9b00dbd8u);
  const u32 ones = ~0u;
  const PhiloxBlock full = philox(ones, ones, ones, ones, ones, ones);
  CHECK_EQUAL(full.word[0], 0x408f276du);
  CHECK_EQUAL(full.word[3], 0x6d5451fdu);
  const PhiloxBlock pi =
      philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0);
  CHECK_EQUAL(pi.word[0], 0xd16cfe09u);
  CHECK_EQUAL(pi.word[3], 0x24126ea1u);
}

void draws_continue_from_their_count() {
  Rng whole(99, 3, 5, Stream::kChance);
  for (u32 drawn = 0; drawn < 40; ++drawn) {
    Rng resumed(99, 3, 5, Stream::kChance, drawn);
    CHECK_EQUAL(resumed.next(), whole.next());
  }
}

// Chi-square over 6 classes; the bound is far out in the tail of 5 degrees of freedom.
void bounded_draws_are_even() {
  Rng rng(7, 0, 0, Stream::kSampling);
  const int draws = 600000;
  int count[6]{};
  for (int i = 0; i < draws; ++i) ++count[rng.below(6)];
  f64 chi = 0;
  for (int c : count) chi += (c - draws / 6.0) * (c - draws / 6.0) / (draws / 6.0);
  CHECK(chi < 25);
}

void bits_select_and_expand() {
  Rng rng(1, 0, 0, Stream::kSampling);
  for (int round = 0; round < 2000; ++round) {
    Bits<102> set = Bits<102>::none();
    std::vector<int> members;
    for (int i = 0; i < 102; ++i)
      if (rng.below(3) == 0) {
        set.set(i);
        members.push_back(i);
      }
    CHECK_EQUAL(set.count(), static_cast<int>(members.size()));
    for (size_t k = 0; k < members.size(); ++k)
      CHECK_EQUAL(set.select(static_cast<int>(k)), members[k]);
    CHECK_EQUAL(set.select(static_cast<int>(members.size())), -1);
    for (int count : {3, 8, 64, 71, 86, 102}) {
      std::vector<u8> out(static_cast<size_t>(count), 7);
      expand_bits(set, count, out.data());
      for (int i = 0; i < count; ++i) CHECK_EQUAL(out[static_cast<size_t>(i)] != 0, set.test(i));
    }
    std::vector<u8> over(102 + 16, 7);
    expand_bits_over(set, over.data());
    for (int i = 0; i < 102; ++i) CHECK_EQUAL(over[static_cast<size_t>(i)] != 0, set.test(i));
  }
}

// Three phases, each of which needs all of the one before; the middle one is empty.
struct CountingJob final : Job {
  int open(int phase) override {
    if (phase == 1) return 0;
    if (phase == 2) CHECK_EQUAL(first.load(), 50);
    return phase < 3 ? 50 : -1;
  }
  void run(int phase, int) override { ++(phase == 0 ? first : second); }
  std::atomic<int> first = 0, second = 0;
};

void crews_finish_every_phase() {
  for (int workers : {0, 1, 3}) {
    ThreadPool thread_pool(workers);
    for (int round = 0; round < 200; ++round) {
      CountingJob a, b;
      thread_pool.submit(a);
      thread_pool.submit(b);
      thread_pool.wait(b, true);
      thread_pool.wait(a, true);
      CHECK_EQUAL(a.second.load(), 50);
      CHECK_EQUAL(b.second.load(), 50);
    }
  }
}

// The example of docs/inside/add-a-game.md: two rows of a and b, then c, then d.
constexpr Feature kPair[] = {{"a"}, {"b", Type::kI16, 2}}, kSigned[] = {{"c", Type::kI8}},
                  kLast[] = {{"d"}};
constexpr Section kExample[] = {{"ab", kPair, 2}, {"c", kSigned}, {"d", kLast}};
static_assert(byte_of(kExample, "ab", "a") == 0 && byte_of(kExample, "ab", "b") == 4);
static_assert(byte_of(kExample, "c") == 3 && byte_of(kExample, "d", "d") == 2);

void rows_are_as_long_as_their_blocks() {
  CHECK_EQUAL(bytes_of(kExample), 8);
  CHECK_EQUAL(bytes_of(blocks_of(kExample)), 8);
  CHECK_EQUAL(blocks_of(kExample)[0].rows, 2);
  CHECK_TEXT(blocks_of(kExample)[0].columns[1].name, "b");
  CHECK_EQUAL(blocks_of(kExample)[0].columns[1].divisor, 2.0f);
}

int main() {
  philox_known_answers();
  draws_continue_from_their_count();
  bounded_draws_are_even();
  bits_select_and_expand();
  rows_are_as_long_as_their_blocks();
  crews_finish_every_phase();
}
