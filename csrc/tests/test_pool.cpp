// Pools: the same games for any threads and split, refusals, slots, line-ups, bytes.
#include <cmath>
#include "core/pool.hpp"
#include "games/skull_king.hpp"
#include "games/tic_tac_toe.hpp"
#include "tests/check.hpp"
#include "tests/duel.hpp"

using namespace sparring;

template <class G>
std::vector<u64> digests(i64 games, int threads, int slots, int parts, int steps) {
  std::vector<std::unique_ptr<Pool<G>>> pools;
  for (int p = 0; p < parts; ++p) {
    PoolOptions options{.games = games / parts, .seed = 42, .threads = threads, .slots = slots};
    options.first_game = static_cast<u32>(p * games / parts);
    pools.push_back(std::make_unique<Pool<G>>(typename G::Config{}, options));
    pools.back()->reset();
  }
  std::vector<typename G::Action> actions(static_cast<size_t>(games * G::kRows));
  std::vector<u64> sums;
  for (int step = 0; step < steps; ++step) {
    u64 sum = 0;
    for (auto& pool : pools) {
      for (int slot = 0; slot < slots; ++slot) {
        pool->sample(slot, actions.data());
        CHECK(pool->accept(slot, actions.data()).game < 0);
        if (slots > 1) pool->send(slot);
      }
      if (slots == 1) pool->step_all();
      for (int slot = 0; slot < slots && slots > 1; ++slot) pool->recv(slot);
      sum += pool->digest();
    }
    sums.push_back(sum);
  }
  return sums;
}

template <class G>
void any_threads_and_split() {
  const std::vector<u64> one = digests<G>(96, 1, 1, 1, 120);
  CHECK(digests<G>(96, 2, 1, 1, 120) == one);
  CHECK(digests<G>(96, 4, 1, 1, 120) == one);
  CHECK(digests<G>(96, 1, 1, 3, 120) == one);
  CHECK(digests<G>(96, 2, 2, 1, 120) == one);
  CHECK(digests<G>(96, 3, 4, 2, 120) == one);
}

void a_refusal_changes_nothing() {
  Pool<skull_king::Game> pool({}, {.games = 4096, .seed = 1, .threads = 2});
  pool.reset();
  std::vector<i32> actions(4096);
  for (int step = 0; step < 30; ++step) {
    pool.sample(0, actions.data());
    CHECK(pool.accept(0, actions.data()).game < 0);
    pool.step_all();
  }
  pool.sample(0, actions.data());
  const std::vector<u8> before(pool.tables(), pool.tables() + 4096 * pool.table_bytes());
  for (i32 wrong : {-1, 86, 1 << 30, 50}) {
    std::vector<i32> bad = actions;
    bad[3000] = wrong;
    if (wrong == 50 && pool.mask[3000 * 86 + 50]) continue;
    const Refusal refused = pool.accept(0, bad.data());
    CHECK_EQUAL(refused.game, 3000);
    CHECK_EQUAL(refused.action, wrong);
    CHECK(!refused.legal.empty());
    CHECK(std::equal(before.begin(), before.end(), pool.tables()));
  }
}

void nan_is_refused_and_boxes_are_clipped() {
  Pool<duel::Game> a({}, {.games = 4, .seed = 1}), b({}, {.games = 4, .seed = 1});
  a.reset();
  b.reset();
  std::vector<Box<2>> wild(8, Box<2>{{5.0f, -7.0f}}), tame(8, Box<2>{{1.0f, -1.0f}});
  std::vector<Box<2>> nan = tame;
  nan[5].value[1] = std::nanf("");
  const Refusal refused = a.accept(0, nan.data());
  CHECK_EQUAL(refused.game, 2);
  CHECK_EQUAL(refused.seat, 1);
  CHECK_EQUAL(refused.component, 1);
  CHECK(a.accept(0, wild.data()).game < 0);
  CHECK(b.accept(0, tame.data()).game < 0);
  a.step_all();
  b.step_all();
  CHECK_EQUAL(a.digest(), b.digest());
}

// Seats are drawn evenly and never change inside a game.
void lineups_are_seat_fair() {
  Pool<tic_tac_toe::Game> pool({}, {.games = 64, .seed = 3});
  pool.set_lineups({3.0, 1.0}, {0, kRandomBot, 0, bot_player(0)}, {1, 1});
  pool.reset();
  std::vector<i32> actions(64);
  int first = 0, careful = 0, ended = 0;
  for (int step = 0; step < 4000; ++step) {
    pool.sample(0, actions.data());
    CHECK(pool.accept(0, actions.data()).game < 0);
    pool.step_all();
    for (i64 i = 0; i < pool.final_count[0]; ++i, ++ended) {
      first += pool.final_policy[2 * i] == 0;
      const i16 other = pool.final_policy[2 * i + (pool.final_policy[2 * i] == 0)];
      careful += other == bot_player(0);
    }
  }
  CHECK(ended > 40000);
  CHECK(first > 0.49 * ended && first < 0.51 * ended);
  CHECK(careful > 0.24 * ended && careful < 0.26 * ended);
}

int main() {
  any_threads_and_split<skull_king::Game>();
  any_threads_and_split<tic_tac_toe::Game>();
  any_threads_and_split<duel::Game>();
  a_refusal_changes_nothing();
  nan_is_refused_and_boxes_are_clipped();
  lineups_are_seat_fair();
}
