// The solver of Connect Four against plain minimax: no table, no order, no bounds.
#include "core/rng.hpp"
#include "tests/check.hpp"
#include "tests/connect_four_solver.hpp"

using namespace sparring;
using namespace sparring::connect_four;

int minimax(const Position& at) {
  if (has_four(at.theirs())) return -1;
  if (at.taken == kBoard) return 0;
  int best = -1;
  for (int column = 0; column < kColumns; ++column)
    if (const u64 move = at.playable() & column_mask(column))
      best = std::max(best, -minimax(at.after(move)));
  return best;
}

// A position after random moves, the start again if somebody has won on the way.
Position drawn(int plies, Rng& rng) {
  Position at{0, 0};
  for (int ply = 0; ply < plies;) {
    const u64 move = at.playable() & column_mask(static_cast<int>(rng.below(kColumns)));
    if (!move) continue;
    at = at.after(move), ++ply;
    if (has_four(at.theirs())) at = {0, 0}, ply = 0;
  }
  return at;
}

void values_are_those_of_minimax() {
  // A small table, in which most of what was found is soon replaced.
  Table few(4), many(16);
  Solver solver(few), large(many);
  Rng rng(1, 0, 0, Stream::kBots);
  for (int i = 0; i < 400; ++i) {
    const Position at = drawn(30 + i % 12, rng);
    const int wanted = minimax(at);
    CHECK_EQUAL(solver.value(at), wanted);
    CHECK_EQUAL(large.value(at), wanted);
    int best = -1;
    for (int column = 0; column < kColumns; ++column)
      if (const u64 move = at.playable() & column_mask(column))
        best = std::max(best, solver.value_of(at, move));
    CHECK_EQUAL(best, wanted);
  }
}

void keys_differ_but_for_reflections() {
  Rng rng(2, 0, 0, Stream::kBots);
  for (int i = 0; i < 400; ++i) {
    const Position at = drawn(i % 42, rng);
    CHECK_EQUAL(mirrored(mirrored(key_of(at))), key_of(at));
    CHECK_EQUAL(key_of({mirrored(at.mine), mirrored(at.taken)}), mirrored(key_of(at)));
    for (u64 moves = at.playable(); moves; moves &= moves - 1)
      CHECK(key_of(at.after(moves & (~moves + 1))) != key_of(at));
  }
}

// A rule that speaks is right; each of them speaks often enough to be tested.
void answers_hold() {
  Rng rng(3, 0, 0, Stream::kBots);
  int held = 0, won_by_second = 0, won_by_first = 0;
  for (int i = 0; i < 2000; ++i) {
    const Position second_moves = drawn(31 + i % 5 * 2, rng),
                   first_moves = drawn(32 + i % 5 * 2, rng);
    const bool holds = second_answers(first_moves, false);
    const bool second_wins = second_answers(first_moves, true);
    const bool first_wins = first_answers(second_moves);
    if (holds) CHECK(minimax(first_moves) <= 0);
    if (second_wins) CHECK_EQUAL(minimax(first_moves), -1);
    if (first_wins) CHECK_EQUAL(minimax(second_moves), -1);
    held += holds, won_by_second += second_wins, won_by_first += first_wins;
  }
  CHECK(held > 100 && won_by_second > 20 && won_by_first > 20);
}

int main() {
  answers_hold();
  values_are_those_of_minimax();
  keys_differ_but_for_reflections();
}
