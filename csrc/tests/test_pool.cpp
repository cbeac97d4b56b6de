// Pools: the same games for any threads and split, refusals, slots, line-ups, bytes, limits.
#include <cmath>
#include "core/pool.hpp"
#include "core/state.hpp"
#include "games/skull_king.hpp"
#include "games/tic_tac_toe.hpp"
#include "tests/check.hpp"
#include "tests/corridor.hpp"
#include "tests/duel.hpp"

// Sanitizers need the address space that the test of threads takes away.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <sys/resource.h>
#define CAN_LIMIT 1
#else
#define CAN_LIMIT 0
#endif

using namespace sparring;

template <class G>
std::vector<u64> digests(i64 games, int threads, int groups, int parts, int steps) {
  std::vector<std::unique_ptr<Pool<G>>> pools;
  for (int p = 0; p < parts; ++p) {
    PoolOptions options{.games = games / parts, .seed = 42, .threads = threads, .groups = groups};
    options.first_game = static_cast<u32>(p * games / parts);
    pools.push_back(std::make_unique<Pool<G>>(typename G::Config{}, options));
    pools.back()->reset();
  }
  std::vector<typename G::Action> actions(static_cast<size_t>(games * G::kRows));
  std::vector<u64> sums;
  for (int step = 0; step < steps; ++step) {
    u64 sum = 0;
    for (auto& pool : pools) {
      for (int group = 0; group < groups; ++group) {
        pool->sample(group, actions.data());
        CHECK(pool->accept(group, actions.data()).game < 0);
        if (groups > 1) pool->send(group);
      }
      if (groups == 1) pool->step_all();
      for (int group = 0; group < groups && groups > 1; ++group) pool->recv(group);
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
  const StateBytes at = pool.state().bytes();
  const std::vector<u8> before(at.envs, at.envs + 4096 * at.env_bytes);
  for (i32 wrong : {-1, 86, 1 << 30, 50}) {
    std::vector<i32> bad = actions;
    bad[3000] = wrong;
    if (wrong == 50 && pool.mask[3000 * 86 + 50]) continue;
    const RejectedAction rejected = pool.accept(0, bad.data());
    CHECK_EQUAL(rejected.game, 3000);
    CHECK_EQUAL(rejected.action, wrong);
    CHECK(!rejected.legal.empty());
    CHECK(std::equal(before.begin(), before.end(), at.envs));
  }
}

// Checking and stepping in one go is what `accept` and `step_all` do one after the other: the same
// games, and of several actions that cannot be played the first is named, whoever found it.
void answers_are_checked_before_any_game_moves() {
  constexpr i64 kGames = 600;
  for (int threads : {1, 2, 3})
    for (int groups : {1, 4}) {
      const PoolOptions options{.games = kGames, .seed = 7, .threads = threads, .groups = groups};
      Pool<skull_king::Game> pool({}, options), plain({}, {.games = kGames, .seed = 7});
      pool.reset();
      plain.reset();
      std::vector<i32> actions(kGames), twins(kGames);
      for (int step = 0; step < 300; ++step) {
        for (int group = 0; group < groups; ++group)
          pool.sample(group, actions.data() + pool.group_begin(group));
        plain.sample(0, twins.data());
        CHECK(actions == twins);
        if (step % 50 == 49) {
          std::vector<i32> bad = actions;
          bad[599] = bad[301] = bad[580] = -1;
          const u64 before = pool.digest();
          CHECK_EQUAL(pool.check_and_step_all(bad.data()).row, 301);
          CHECK_EQUAL(pool.digest(), before);
        }
        CHECK(pool.check_and_step_all(actions.data()).game < 0);
        CHECK(plain.accept(0, twins.data()).game < 0);
        plain.step_all();
        CHECK_EQUAL(pool.digest(), plain.digest());
      }
      i64 ended = 0;
      for (i64 count : pool.final_count) ended += count;
      CHECK_EQUAL(ended, plain.final_count[0]);
    }
}

void nan_is_refused_and_boxes_are_clipped() {
  Pool<duel::Game> a({}, {.games = 4, .seed = 1}), b({}, {.games = 4, .seed = 1});
  a.reset();
  b.reset();
  std::vector<Box<2>> wild(8, Box<2>{{5.0f, -7.0f}}), tame(8, Box<2>{{1.0f, -1.0f}});
  std::vector<Box<2>> nan = tame;
  nan[5].value[1] = std::nanf("");
  const RejectedAction rejected = a.accept(0, nan.data());
  CHECK_EQUAL(rejected.game, 2);
  CHECK_EQUAL(rejected.seat, 1);
  CHECK_EQUAL(rejected.component, 1);
  CHECK(a.accept(0, wild.data()).game < 0);
  CHECK(b.accept(0, tame.data()).game < 0);
  a.step_all();
  b.step_all();
  CHECK_EQUAL(a.digest(), b.digest());
}

// Seats are drawn evenly and never change inside a game.
void lineups_are_seat_fair() {
  Pool<tic_tac_toe::Game> pool({}, {.games = 64, .seed = 3});
  pool.state().set_lineups({3.0, 1.0}, {0, kRandomBot, 0, bot_player(0)}, {1, 1});
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

// What a call complains about, "" if it does not.
template <class F>
std::string trouble(F&& call) {
  try {
    call();
  } catch (const ConfigError& wrong) {
    return wrong.what();
  }
  return {};
}

// One slot and one thread leave nobody but the caller to do the work.
void send_and_recv_need_no_second_thread() {
  for (int threads : {1, 3}) {
    Pool<tic_tac_toe::Game> pool({}, {.games = 40, .seed = 5, .threads = threads});
    Pool<tic_tac_toe::Game> twin({}, {.games = 40, .seed = 5});
    pool.reset();
    twin.reset();
    std::vector<i32> actions(40);
    for (int step = 0; step < 20; ++step) {
      pool.sample(0, actions.data());
      CHECK(pool.accept(0, actions.data()).game < 0);
      CHECK(twin.accept(0, actions.data()).game < 0);
      pool.send(0);
      pool.recv(0);
      twin.step_all();
      CHECK_EQUAL(pool.digest(), twin.digest());
    }
    pool.accept(0, actions.data());
    pool.send(0);  // never received: the pool still goes away
  }
}

void a_game_that_never_asks_is_given_up() {
  for (int length : {3, 0}) {
    const corridor::Config config{.length = length, .door = 0};
    for (int threads : {1, 2}) {
      Pool<corridor::Game> pool(config, {.games = 64, .threads = threads, .skip_forced = true});
      const std::string said = trouble([&] { pool.reset(); });
      CHECK(said.starts_with("corridor game "));
      CHECK(said.find("skip_forced") != std::string::npos);
      std::vector<i32> actions(64);
      CHECK(!trouble([&] { pool.sample(0, actions.data()); }).empty());
      CHECK(!trouble([&] { pool.accept(0, actions.data()); }).empty());
    }
    CHECK(!trouble([&] { State<corridor::Game>(config, 0, 0, true, {}); }).empty());
  }
  // The only choice lies behind; what follows it is forced and has no end.
  const corridor::Config endless{.length = 0, .door = 2};
  Pool<corridor::Game> pool(endless, {.games = 8, .threads = 2, .skip_forced = true});
  pool.reset();
  std::vector<i32> actions(8, 1);
  CHECK(pool.accept(0, actions.data()).game < 0);
  CHECK(!trouble([&] { pool.step_all(); }).empty());
  CHECK(!trouble([&] { pool.accept(0, actions.data()); }).empty());
  pool.reset();
  CHECK(pool.accept(0, actions.data()).game < 0);
}

void forced_decisions_are_skipped_up_to_a_choice() {
  Pool<corridor::Game> pool({.length = 4, .door = 3}, {.games = 8, .skip_forced = true});
  pool.reset();
  std::vector<i32> actions(8, 1);
  for (int episode = 0; episode < 3; ++episode) {
    CHECK_EQUAL(pool.obs[0], 2);
    CHECK(pool.accept(0, actions.data()).game < 0);
    pool.step_all();
    CHECK_EQUAL(pool.final_count[0], 8);
    CHECK_EQUAL(pool.final_length[0], 4);
  }
}

// A state that sits down at a pool's table sees and plays what the pool plays, to the end.
void a_state_goes_on_from_a_table() {
  Pool<skull_king::Game> pool({}, {.games = 3, .seed = 9, .first_game = 4});
  pool.state().set_lineups({1.0}, {0, kRandomBot, bot_player(0), bot_player(1)}, {1});
  pool.reset();
  State<skull_king::Game> state({}, 9, 6, false, pool.state().weights());
  const StateBytes saved = pool.state().bytes();
  const u8* third = saved.envs + 2 * saved.env_bytes;
  CHECK(state.sit_down({third, third + saved.env_bytes}, {}).empty());
  std::vector<i32> actions(3);
  std::vector<u8> seen(static_cast<size_t>(pool.row_bytes()));
  while (!pool.terminated[2]) {
    const int at = state.seat(0);
    CHECK_EQUAL(at, pool.seat[2]);
    state.observe(at, seen.data());
    CHECK(std::equal(seen.begin(), seen.end(), &pool.obs[2 * pool.row_bytes()]));
    pool.sample(0, actions.data());
    CHECK(pool.accept(0, actions.data()).game < 0);
    CHECK(state.apply(&actions[2]).game < 0);
    pool.step_all();
  }
  CHECK(state.terminated());
  const i64 last = pool.final_count[0] - 1;
  for (int s = 0; s < 4; ++s) CHECK(state.score(s) == pool.final_score[last * 4 + s]);
}

// Starts are drawn by weight, the usual one among them; a bad one changes nothing.
void games_begin_where_they_are_told() {
  using tic_tac_toe::Game;
  Game starts[2]{};
  starts[0].stones[0] = 1 << 4;
  starts[0].mover = 1;
  starts[1].stones[0] = 1, starts[1].stones[1] = 1 << 8;
  Pool<Game> pool({}, {.games = 4000, .seed = 3, .threads = 2});
  const auto set = [&] {
    return pool.state().set_starts({1, 2, 6}, reinterpret_cast<const u8*>(starts), {0, 0}, {});
  };
  CHECK(set().empty());
  const auto count = [&] {
    pool.reset();
    std::vector<int> counts(3);
    for (i64 game = 0; game < 4000; ++game) {
      const Game& at = pool.state().envs[game].game;
      ++counts[at.stones[0] == 1 ? 2 : at.stones[0] ? 1 : 0];
    }
    return counts;
  };
  const std::vector<int> counts = count();
  for (size_t i = 0; i < 3; ++i)
    CHECK(std::abs(counts[i] - 4000 * (i == 2 ? 4 : 1) / 6) < 130);  // five deviations
  starts[1].stones[0] = 0777;
  CHECK(!set().empty());
  CHECK(count()[2] > 2500);
  CHECK(pool.state().set_starts({1}, nullptr, {}, {}).empty());
  CHECK_EQUAL(count()[0], 4000);
}

void too_many_games_are_refused() {
  CHECK(!trouble([] { Pool<duel::Game>({}, {.games = i64{1} << 31}); }).empty());
  CHECK(!trouble([] { Pool<duel::Game>({}, {.games = i64{1} << 62}); }).empty());
  const Pool<duel::Game> one({}, {.games = 1}), many({}, {.games = 1000, .threads = 3});
  CHECK(one.bytes() > i64{sizeof(Env<duel::Game>)} + 4 * one.row_bytes());
  CHECK_EQUAL(many.bytes(), 1000 * one.bytes());
}

void threads_that_cannot_be_made_are_an_error() {
  CHECK(trouble([] {
          ThreadPool thread_pool(100000);
        }).starts_with("threads=100000 is more than 1024;"));
#if CAN_LIMIT
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit tight = before;
  tight.rlim_cur = rlim_t{512} << 20;
  setrlimit(RLIMIT_AS, &tight);
  const std::string said = trouble([] { ThreadPool thread_pool(1000); });
  setrlimit(RLIMIT_AS, &before);
  CHECK(said.find("of 1000 threads could be started") != std::string::npos);
#endif
}

int main() {
  any_threads_and_split<skull_king::Game>();
  any_threads_and_split<tic_tac_toe::Game>();
  any_threads_and_split<duel::Game>();
  a_refusal_changes_nothing();
  answers_are_checked_before_any_game_moves();
  nan_is_refused_and_boxes_are_clipped();
  lineups_are_seat_fair();
  send_and_recv_need_no_second_thread();
  a_game_that_never_asks_is_given_up();
  forced_decisions_are_skipped_up_to_a_choice();
  a_state_goes_on_from_a_table();
  games_begin_where_they_are_told();
  too_many_games_are_refused();
  threads_that_cannot_be_made_are_an_error();
}
